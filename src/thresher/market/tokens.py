"""Tokens: random, shown once, stored as a digest, compared in constant time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import NamedTuple

PREFIX = "thresher"


class Secret(NamedTuple):
    """A new token or code: the text that is shown once, its public name, and its stored digest."""

    text: str
    id: str
    digest: bytes


def new_secret() -> Secret:
    """Create a secret of 256 random bits.

    Examples
    --------
    >>> one = new_secret()
    >>> read_secret(one.text)[0] == one.id
    True
    >>> is_same(read_secret(one.text)[1], one.digest)
    True
    """
    name, secret = secrets.token_hex(8), secrets.token_bytes(32)
    shown = base64.b32encode(secret).decode().rstrip("=").lower()
    return Secret(f"{PREFIX}-{name}-{shown}", name, digest_of(secret))


def read_secret(text: str) -> tuple[str, bytes]:
    """The name and the secret in a token; any other text gives a name that nobody has."""
    parts = text.strip().split("-")
    if len(parts) != 3 or parts[0] != PREFIX or not parts[1].isalnum():
        return "", b""
    try:
        return parts[1], base64.b32decode(parts[2].upper() + "=" * (-len(parts[2]) % 8))
    except ValueError:
        return "", b""


def digest_of(secret: bytes) -> bytes:
    """The digest to store; a secret has 256 random bits, so it needs no salt or stretching."""
    return hashlib.sha256(b"thresher.market token" + secret).digest()


def is_same(secret: bytes, digest: bytes) -> bool:
    """Whether a secret has this digest, in a time that does not depend on the answer."""
    return hmac.compare_digest(digest_of(secret), digest)
