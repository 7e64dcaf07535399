"""Secrets in parts: any `threshold` parts give the secret, and fewer reveal nothing (Shamir 1979).

The field has the prime order 2^256 + 297, so any 32 bytes are an element. A share is the value of a
random polynomial at 1 + the number of its holder, in 33 bytes. Other encodings of it are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thresher.federate.primitives import KEY_BYTES, Entropy, ProtocolError, system_entropy

PRIME = 2**256 + 297
SHARE_BYTES = 33
WIDE_BYTES = 48  # reduced modulo the prime, they are uniform up to 2^-127


def split(
    secret: bytes, holders: Sequence[int], threshold: int, entropy: Entropy = system_entropy
) -> dict[int, bytes]:
    """A share of the secret for every holder.

    Examples
    --------
    >>> parts = split(bytes(31) + b"7", holders=range(5), threshold=3)
    >>> join({holder: parts[holder] for holder in (0, 2, 4)}, threshold=3)[-1:]
    b'7'
    """
    if len(secret) != KEY_BYTES or not 1 <= threshold <= len(holders):
        raise ValueError(
            "a secret must have 32 bytes, and at least as many holders as its threshold"
        )
    more = (int.from_bytes(entropy(WIDE_BYTES), "big") % PRIME for _ in range(threshold - 1))
    polynomial = [int.from_bytes(secret, "big"), *more]
    return {holder: _encoded(_value(polynomial, holder + 1)) for holder in holders}


def join(parts: Mapping[int, bytes], threshold: int) -> bytes:
    """The secret whose shares, by holder, these are; the first `threshold` are used."""
    chosen = sorted(parts)[:threshold]
    if len(chosen) < threshold:
        raise ProtocolError(f"only {len(chosen)} shares arrived, but {threshold} are needed")
    weights = lagrange_weights(chosen)
    secret = sum(weights[holder] * read_share(parts[holder]) for holder in chosen) % PRIME
    if secret >> (8 * KEY_BYTES):
        raise ProtocolError("the shares are not parts of one secret")
    return secret.to_bytes(KEY_BYTES, "big")


def read_share(share: bytes) -> int:
    """The field element in a share; only one encoding of it is allowed."""
    number = int.from_bytes(share, "big")
    if len(share) != SHARE_BYTES or number >= PRIME:
        raise ProtocolError("a share is not an element of the field")
    return number


def lagrange_weights(holders: Sequence[int]) -> dict[int, int]:
    """The factors of the holders' shares whose sum gives the polynomial at 0."""
    places = [holder + 1 for holder in holders]
    weights = {}
    for holder, place in zip(holders, places, strict=True):
        above = below = 1
        for other in places:
            if other != place:
                above, below = above * other % PRIME, below * (other - place) % PRIME
        weights[holder] = above * pow(below, -1, PRIME) % PRIME
    return weights


def _value(polynomial: Sequence[int], place: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * place + coefficient) % PRIME
    return value


def _encoded(number: int) -> bytes:
    return number.to_bytes(SHARE_BYTES, "big")
