"""Receipts for rows: signed, and bound to the rows by a commitment that reveals nothing about them.

    commitment = SHA-256("thresher.commitment/1" | salt | rows)

Only the owner keeps the salt. Without it, nobody can check a guess at the rows. With it, the owner
can prove later what was submitted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from thresher.errors import InputError

FORMAT = "thresher.receipt/1"
SALT_BYTES = 32


def new_salt() -> bytes:
    """A random salt."""
    return secrets.token_bytes(SALT_BYTES)


def commitment_of(salt: bytes, rows: bytes) -> str:
    """The commitment to rows exactly as they were submitted, byte for byte."""
    if len(salt) != SALT_BYTES:
        raise InputError(f"salt must have {SALT_BYTES} bytes, got {len(salt)}")
    return hashlib.sha256(b"thresher.commitment/1" + salt + rows).hexdigest()


def canonical(document: Mapping[str, Any]) -> bytes:
    """The canonical text of a document: sorted keys, no spaces, only finite numbers.

    Examples
    --------
    >>> canonical({"b": 1, "a": "x"})
    b'{"a":"x","b":1}'
    """
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True
    )
    return text.encode("ascii")


def sign(key: Ed25519PrivateKey, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a signature of its whole content, and the key that checks it."""
    public = key.public_key().public_bytes_raw()
    signed = {**document, "format": FORMAT, "key": public.hex()}
    return {**signed, "signature": base64.b64encode(key.sign(canonical(signed))).decode()}


def check_receipt(receipt: Mapping[str, Any], key: str) -> None:
    """Raise unless the receipt was signed by the market's key, given as hexadecimal text.

    Examples
    --------
    >>> key = Ed25519PrivateKey.generate()
    >>> receipt = sign(key, {"rows": 3})
    >>> check_receipt(receipt, receipt["key"])
    >>> check_receipt(receipt | {"rows": 4}, receipt["key"])
    Traceback (most recent call last):
    thresher.errors.InputError: the receipt was changed, or another key signed it
    """
    signed = {name: entry for name, entry in receipt.items() if name != "signature"}
    signed |= {"format": FORMAT, "key": key}
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(base64.b64decode(receipt["signature"], validate=True), canonical(signed))
    except (InvalidSignature, LookupError, TypeError, ValueError):
        raise InputError("the receipt was changed, or another key signed it") from None
