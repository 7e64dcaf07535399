"""Sums of whole-number targets over near points: their number, sum, and sum of squares.

Every group of points, such as those of one owner, has its own sums: out[entry, group, column].

A target u has at most 2^31 steps. Its square is kept in two parts, u^2 = 2^31 high + low, so that
sums over 2^31 points fit in 64 bits. Integers add up to the same bits in any order.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Bytes, Integers, Words

U32 = np.uint32
LIMB = 31
LOW = (1 << LIMB) - 1


@njit(cache=True, nogil=True)
def _add(u: np.int64, group: np.int64, v: int, out: Integers) -> None:
    out[0, group, v] += 1
    out[1, group, v] += u
    out[2, group, v] += (u * u) >> LIMB
    out[3, group, v] += (u * u) & LOW


@njit(cache=True, nogil=True)
def sum_columns(
    words: Words, lo: int, hi: int, targets: Integers, groups: Integers, out: Integers
) -> None:
    """Add the targets of all rows to the columns whose bit is set in the words lo <= w < hi."""
    for i in range(targets.shape[0]):
        for w in range(lo, hi):
            x = words[i, w]
            v = w * 32
            while x:
                if x & U32(1):
                    _add(targets[i], groups[i], v, out)
                x = U32(x >> U32(1))
                v += 1


@njit(cache=True, nogil=True)
def sum_visits(
    words: Words, leaf_of: Words, query_of: Words, positions: Words, targets: Integers,
    groups: Integers, out: Integers,
) -> None:  # fmt: skip
    """The same for the visits of a tree: positions[leaf, bit] is the row of a point."""
    for t in range(words.shape[0]):
        for w in range(words.shape[1]):
            x = words[t, w]
            p = w * 32
            while x:
                if x & U32(1):
                    i = positions[leaf_of[t], p]
                    _add(targets[i], groups[i], query_of[t], out)
                x = U32(x >> U32(1))
                p += 1


@njit(cache=True, nogil=True)
def sum_codes(
    codes: Bytes, lo: int, hi: int, rings: int, targets: Integers, groups: Integers, out: Integers
) -> None:
    """The same for rings, in the columns lo <= v < hi; a group has a place for each ring.

    Code c > 0 means ring `rings` - c, and code 0 means that a point is not near.
    """
    for i in range(targets.shape[0]):
        first = groups[i] * rings + rings
        for v in range(lo, hi):
            if codes[i, v]:
                _add(targets[i], first - codes[i, v], v, out)


@njit(cache=True, nogil=True)
def sum_visit_codes(
    codes: Bytes, leaf_of: Words, query_of: Words, positions: Words, rings: int,
    targets: Integers, groups: Integers, out: Integers,
) -> None:  # fmt: skip
    """The same for the visits of a tree."""
    for t in range(codes.shape[0]):
        for p in range(codes.shape[1]):
            if codes[t, p]:
                i = positions[leaf_of[t], p]
                _add(targets[i], groups[i] * rings + rings - codes[t, p], query_of[t], out)


@njit(cache=True, nogil=True)
def sum_leaves(
    leaf_of: NDArray[np.int32], targets: Integers, groups: Integers, out: Integers
) -> None:
    """The same for the leaves of one tree; a point with a negative leaf is in none."""
    for i in range(leaf_of.shape[0]):
        if leaf_of[i] >= 0:
            _add(targets[i], groups[i], leaf_of[i], out)
