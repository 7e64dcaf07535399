"""The only module that calls `cryptography`: signatures, agreement, derived keys, streams, seals.

Every derived key has a purpose (`label`), and its salt binds it to a round. So no key serves two
purposes or two rounds.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from thresher.array_types import LongWords
from thresher.errors import ThresherError, require

KEY_BYTES, SIGNATURE_BYTES, SEAL_BYTES = 32, 64, 16
DOMAIN = b"thresher federate/1 "
Entropy = Callable[[int], bytes]
Stream = Callable[[bytes, int], LongWords]


class ProtocolError(ThresherError):
    """The error raised if a message, a party or a round does not follow the protocol.

    Examples
    --------
    >>> from thresher.federate import Coordinator, Key, ProtocolError, Task
    >>> key, silos = Key.create(), {"north": Key.create().public, "south": Key.create().public}
    >>> task = Task.create(
    ...     [[1.0, 0.0], [0.0, 1.0]], ["yes", "no"], silos=silos, key=key,
    ...     epsilon=1, delta=1e-6, fewest=2,
    ... )
    >>> with Coordinator(task, key=key, first_wait=0.1) as running:
    ...     try:
    ...         running.run()
    ...     except ProtocolError:
    ...         print("too few silos came")
    too few silos came
    """


def system_entropy(size: int) -> bytes:
    """Random bytes from the operating system."""
    return secrets.token_bytes(size)


def public_signing_key(secret: bytes) -> bytes:
    """The Ed25519 public key of a secret of 32 bytes."""
    return bytes(_signer(secret).public_key().public_bytes_raw())


def sign(secret: bytes, content: bytes) -> bytes:
    """The Ed25519 signature of `content`."""
    return bytes(_signer(secret).sign(DOMAIN + content))


def is_signed(public: bytes, signature: bytes, content: bytes) -> bool:
    """Whether the holder of this key signed `content` with `signature`."""
    wrong = _part("exceptions").InvalidSignature
    ed25519 = _part("hazmat.primitives.asymmetric.ed25519")
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(public).verify(signature, DOMAIN + content)
    except (wrong, ValueError):
        return False
    return True


def public_exchange_key(secret: bytes) -> bytes:
    """The X25519 public key of a secret of 32 bytes."""
    return bytes(_exchanger(secret).public_key().public_bytes_raw())


def agree(secret: bytes, public: bytes) -> bytes:
    """The secret that only the holders of two X25519 keys know; raise if a key makes it public."""
    x25519 = _part("hazmat.primitives.asymmetric.x25519")
    try:
        shared = _exchanger(secret).exchange(x25519.X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise ProtocolError(
            "an X25519 key is unsafe: it gives the same secret with every other key"
        ) from None
    return bytes(shared)


def derive(secret: bytes, label: str, *, salt: bytes, about: bytes = b"") -> bytes:
    """Derive a key of 32 bytes for one purpose, by HKDF-SHA256."""
    hkdf, hashes = _part("hazmat.primitives.kdf.hkdf"), _part("hazmat.primitives.hashes")
    info = DOMAIN + label.encode() + b"\0" + about
    return bytes(hkdf.HKDF(hashes.SHA256(), KEY_BYTES, salt=salt, info=info).derive(secret))


def stream(key: bytes, size: int) -> LongWords:
    """A stream of uniform 64-bit words, by ChaCha20; each key is used for one stream."""
    ciphers = _part("hazmat.primitives.ciphers")
    cipher = ciphers.Cipher(ciphers.algorithms.ChaCha20(key, bytes(16)), None)
    return np.frombuffer(cipher.encryptor().update(bytes(8 * size)), "<u8")


def seal(key: bytes, content: bytes, about: bytes) -> bytes:
    """Seal content so that only holders of the key can read or change it (ChaCha20-Poly1305).

    The nonce is constant: each key seals one message.
    """
    return bytes(_aead(key).encrypt(bytes(12), content, about))


def unseal(key: bytes, sealed: bytes, about: bytes) -> bytes:
    """Open what `seal` sealed for the same purpose."""
    try:
        return bytes(_aead(key).decrypt(bytes(12), sealed, about))
    except _part("exceptions").InvalidTag:
        raise ProtocolError("a sealed share was changed, or belongs to another round") from None


def digest(label: str, *parts: bytes) -> bytes:
    """A SHA-256 of a name and of parts, each with its length."""
    state = hashlib.sha256(DOMAIN + label.encode())
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)
    return state.digest()


def _signer(secret: bytes) -> Any:
    ed25519 = _part("hazmat.primitives.asymmetric.ed25519")
    return ed25519.Ed25519PrivateKey.from_private_bytes(secret)


def _exchanger(secret: bytes) -> Any:
    x25519 = _part("hazmat.primitives.asymmetric.x25519")
    return x25519.X25519PrivateKey.from_private_bytes(secret)


def _aead(key: bytes) -> Any:
    return _part("hazmat.primitives.ciphers.aead").ChaCha20Poly1305(key)


def _part(name: str) -> Any:
    return require(f"cryptography.{name}", purpose="a federated release", extra="federate")
