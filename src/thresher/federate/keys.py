"""Keys that identify the parties: Ed25519, one for each silo and one for the coordinator."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from thresher.errors import InputError, either
from thresher.federate import primitives
from thresher.files import reading, write_text

FORMAT = "thresher.key/1"


@dataclass(frozen=True)
class Key:
    """A secret key; `public` is the part that others need.

    Examples
    --------
    >>> from thresher.federate import Key
    >>> key = Key.create()
    >>> len(key.public), key
    (64, Key(...))
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes) or len(self.secret) != primitives.KEY_BYTES:
            raise InputError("a key has 32 bytes: use Key.create or Key.load")

    def __repr__(self) -> str:
        return f"Key({self.public[:8]}...)"

    @classmethod
    def create(cls) -> Key:
        """Create a key from the operating system's entropy."""
        return cls(primitives.system_entropy(primitives.KEY_BYTES))

    @property
    def public(self) -> str:
        """The public key, as 64 hexadecimal digits, for the person who creates the task."""
        return primitives.public_signing_key(self.secret).hex()

    def save(self, path: str | Path) -> None:
        """Write the key to a new file that only you can read."""
        text = json.dumps({"format": FORMAT, "public": self.public, "secret": self.secret.hex()})
        write_text(path, f"{text}\n", replace=False, private=True)

    @classmethod
    def load(cls, path: str | Path) -> Key:
        """Load the key from a file that `save` wrote."""
        way = either("Key.create().save(path)", f"thresher federate key {path}")
        with reading(path, "key", otherwise=f"{way} makes it") as found:
            document = json.loads(found.read_text(encoding="utf-8"))
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                raise InputError(f"its format is not {FORMAT}")
            return cls(bytes.fromhex(document["secret"]))


def check_public(name: str, key: object) -> bytes:
    """The bytes of a public key in hexadecimal."""
    try:
        found = bytes.fromhex(key) if isinstance(key, str) else b""
    except ValueError:
        found = b""
    if len(found) != primitives.KEY_BYTES or found.hex() != key:
        raise InputError(f"{name} must be a public key of 64 hexadecimal digits, got {key!r}")
    return found
