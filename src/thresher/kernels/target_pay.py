"""What cells pay near points by quadratics in their targets, around a center of each cell.

prices[place] has three numbers for each kind of payment, and then the center: a point with target u
is paid a + r (b + r c), with r = u - center. So nothing cancels, however far off other cells are. A
place is a cell, or with rings a ring of a cell: cell * rings + ring.

Payments are added 64 cells at a time, in the order of cells. So all ways to find near points give
the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Bytes, Floats, Integers, LongWords, Words

U64 = np.uint64
GROUP = 64  # cells whose payments are added up together
BRUIJN = U64(0x03F79D71B4CB0A89)  # its first six bits, shifted by k, are different for each k
BIT_OF = np.zeros(64, np.uint8)
for _bit in range(64):
    BIT_OF[((int(BRUIJN) << _bit) % 2**64) >> 58] = _bit


@njit(cache=True, nogil=True)
def _lowest(x: np.uint64) -> np.int64:
    """The place of the lowest bit of a word that is not 0."""
    return np.int64(BIT_OF[((x & (~x + U64(1))) * BRUIJN) >> U64(58)])


@njit(cache=True, nogil=True)
def _paid(prices: Floats, first: int, u: float) -> float:
    r = u - prices[prices.shape[0] - 1]
    return float(prices[first] + r * (prices[first + 1] + r * prices[first + 2]))


@njit(cache=True, nogil=True)
def pay_columns(
    words: LongWords, lo: int, hi: int, targets: Floats, prices: Floats, out: Floats
) -> None:
    """Add to out[k, i], for lo <= i < hi, what the set bits of row i pay."""
    for k in range(out.shape[0]):
        for i in range(lo, hi):
            u = targets[i]
            for w in range(words.shape[1]):
                x, total = words[i, w], 0.0
                while x:
                    total += _paid(prices[w * 64 + _lowest(x)], 3 * k, u)
                    x &= x - U64(1)
                out[k, i] += total


@njit(cache=True, nogil=True)
def pay_codes(
    codes: Bytes, lo: int, hi: int, rings: int, targets: Floats, prices: Floats, out: Floats
) -> None:
    """The same for the codes of rings."""
    for k in range(out.shape[0]):
        for i in range(lo, hi):
            u = targets[i]
            for begin in range(0, codes.shape[1], GROUP):
                total = 0.0
                for v in range(begin, min(begin + GROUP, codes.shape[1])):
                    if codes[i, v]:
                        total += _paid(prices[(v + 1) * rings - codes[i, v]], 3 * k, u)
                out[k, i] += total


@njit(cache=True, nogil=True)
def pay_visits(
    words: Words, starts: Integers, first: int, last: int, query_of: Words, positions: Words,
    targets: Floats, prices: Floats, out: Floats,
) -> None:  # fmt: skip
    """The same as `pay_columns`, to the last bit, for visits of the leaves first <= j < last."""
    sums = np.zeros(words.shape[1] * 32)
    for k in range(out.shape[0]):
        for j in range(first, last):
            group = np.int64(-1)
            for t in range(starts[j], starts[j + 1]):
                v = np.int64(query_of[t])
                if v // GROUP != group:
                    _flush(sums, positions[j], out[k])
                    group = v // GROUP
                for w in range(words.shape[1]):
                    x = U64(words[t, w])
                    while x:
                        p = w * 32 + _lowest(x)
                        sums[p] += _paid(prices[v], 3 * k, targets[positions[j, p]])
                        x &= x - U64(1)
            _flush(sums, positions[j], out[k])


@njit(cache=True, nogil=True)
def pay_visit_codes(
    codes: Bytes, starts: Integers, first: int, last: int, query_of: Words, positions: Words,
    rings: int, targets: Floats, prices: Floats, out: Floats,
) -> None:  # fmt: skip
    """The same as `pay_codes`, to the last bit, for visits of the leaves first <= j < last."""
    sums = np.zeros(codes.shape[1])
    for k in range(out.shape[0]):
        for j in range(first, last):
            group = np.int64(-1)
            for t in range(starts[j], starts[j + 1]):
                v = np.int64(query_of[t])
                if v // GROUP != group:
                    _flush(sums, positions[j], out[k])
                    group = v // GROUP
                for p in range(codes.shape[1]):
                    if codes[t, p]:
                        place = (v + 1) * rings - codes[t, p]
                        sums[p] += _paid(prices[place], 3 * k, targets[positions[j, p]])
            _flush(sums, positions[j], out[k])


@njit(cache=True, nogil=True)
def _flush(sums: Floats, positions: Words, out: Floats) -> None:
    for p in range(sums.shape[0]):
        if sums[p] != 0.0:
            out[positions[p]] += sums[p]
            sums[p] = 0.0


@njit(cache=True, nogil=True)
def pay_leaves(
    leaf_of: NDArray[np.int32], lo: int, hi: int, targets: Floats, prices: Floats, out: Floats
) -> None:
    """Add to out[k, i], for lo <= i < hi, what the leaf of point i pays; none if it is negative."""
    for k in range(out.shape[0]):
        for i in range(lo, hi):
            if leaf_of[i] >= 0:
                out[k, i] += _paid(prices[leaf_of[i]], 3 * k, targets[i])
