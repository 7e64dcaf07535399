"""Masks that hide an upload, modulo 2^64.

Silo i uses one stream for each other silo j that takes part. It adds the stream if i < j and
subtracts it if i > j, so that these streams cancel in the sum. It also adds a stream of its own,
whose seed is recovered only if the silo survives. Without that self mask, an upload that arrives
after its pairwise masks were recovered would not be hidden.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np

from thresher.array_types import LongWords
from thresher.federate import primitives
from thresher.federate.primitives import Stream, agree, derive


def self_mask(seed: bytes, silo: int, size: int, *, salt: bytes, stream: Stream) -> LongWords:
    """The mask of one silo alone."""
    return stream(derive(seed, "self mask", salt=salt, about=struct.pack(">H", silo)), size)


def pair_mask(
    secret: bytes, public: bytes, pair: tuple[int, int], size: int, *, salt: bytes, stream: Stream
) -> LongWords:
    """The mask that two silos share, from one silo's secret and the other's public key."""
    about = struct.pack(">HH", *sorted(pair))
    return stream(derive(agree(secret, public), "pair mask", salt=salt, about=about), size)


def pair_masks(
    secret: bytes, silo: int, others: Iterable[tuple[int, bytes]], size: int,
    *, salt: bytes, stream: Stream = primitives.stream,
) -> LongWords:  # fmt: skip
    """The sum of a silo's masks with `others`, each given by number and public key."""
    total = np.zeros(size, np.uint64)
    for other, public in others:
        mask = pair_mask(secret, public, (silo, other), size, salt=salt, stream=stream)
        if silo < other:
            total += mask
        else:
            total -= mask
    return total


def to_words(table: object) -> LongWords:
    """Whole numbers modulo 2^64."""
    return np.ascontiguousarray(table, np.int64).ravel().view(np.uint64)


def to_numbers(words: LongWords) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The whole numbers from -2^63 to 2^63 - 1 that words modulo 2^64 stand for."""
    return words.view(np.int64)
