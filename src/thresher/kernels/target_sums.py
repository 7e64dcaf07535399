"""Sums of targets over near points: their number, sum, and sum of squares, as whole numbers.

Every group of points, such as those of one owner, has its own sums: out[place, entry], with place =
group * columns + column.

A target is a float64 that is a whole multiple u of the grid's step, with |u| <= 2^92. It is kept in
parts of 31 bits, u = a + 2^31 b + 2^62 c, where all parts have the sign of u, and its square in six
such parts. So sums over 2^31 points fit in 64 bits. Integers add up to the same bits in any order.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Bytes, Floats, Integers, Words

U32 = np.uint32
LIMB = 31  # bits of a part
LOW = (1 << LIMB) - 1
FIRSTS, SECONDS = 3, 6  # parts of a target, and of its square
ENTRIES = 1 + FIRSTS + SECONDS
WIDEST = FIRSTS * LIMB - 1  # bits of the largest whole number
Parts = tuple[np.int64, ...]


@njit(cache=True, nogil=True)
def parts_of(u: float) -> Parts:
    """The parts of a whole number, and of its square, the lowest first."""
    size = abs(u)
    c = np.int64(size * 2.0**-62)
    size -= c * 2.0**62
    b = np.int64(size * 2.0**-31)
    a = np.int64(size - b * 2.0**31)
    x = a * a
    y = 2 * a * b + (x >> LIMB)
    z = 2 * a * c + b * b + (y >> LIMB)
    p = 2 * b * c + (z >> LIMB)
    q = c * c + (p >> LIMB)
    sign = np.int64(-1) if u < 0 else np.int64(1)
    return sign * a, sign * b, sign * c, x & LOW, y & LOW, z & LOW, p & LOW, q & LOW, q >> LIMB


@njit(cache=True, nogil=True)
def _add(parts: Parts, out: Integers) -> None:
    out[0] += 1
    out[1] += parts[0]
    out[2] += parts[1]
    out[3] += parts[2]
    out[4] += parts[3]
    out[5] += parts[4]
    out[6] += parts[5]
    out[7] += parts[6]
    out[8] += parts[7]
    out[9] += parts[8]


@njit(cache=True, nogil=True)
def sum_columns(
    words: Words, lo: int, hi: int, targets: Floats, scale: float, groups: Integers, out: Integers
) -> None:
    """Add the targets of all rows to the columns whose bit is set in the words lo <= w < hi.

    `scale` is one over the step of the grid.
    """
    columns = words.shape[1] * 32
    for i in range(targets.shape[0]):
        parts, first = parts_of(targets[i] * scale), groups[i] * columns
        for w in range(lo, hi):
            x = words[i, w]
            v = first + w * 32
            while x:
                if x & U32(1):
                    _add(parts, out[v])
                x = U32(x >> U32(1))
                v += 1


@njit(cache=True, nogil=True)
def sum_visits(
    words: Words, leaf_of: Words, query_of: Words, positions: Words, targets: Floats,
    scale: float, groups: Integers, columns: int, out: Integers,
) -> None:  # fmt: skip
    """The same for the visits of a tree: positions[leaf, bit] is the row of a point."""
    for t in range(words.shape[0]):
        for w in range(words.shape[1]):
            x = words[t, w]
            p = w * 32
            while x:
                if x & U32(1):
                    i = positions[leaf_of[t], p]
                    place = groups[i] * columns + query_of[t]
                    _add(parts_of(targets[i] * scale), out[place])
                x = U32(x >> U32(1))
                p += 1


@njit(cache=True, nogil=True)
def sum_codes(
    codes: Bytes, lo: int, hi: int, rings: int, targets: Floats, scale: float, groups: Integers,
    columns: int, out: Integers,
) -> None:  # fmt: skip
    """The same for rings, in the columns lo <= v < hi; a group has a place for each ring.

    Code c > 0 means ring `rings` - c, and code 0 means that a point is not near.
    """
    for i in range(targets.shape[0]):
        parts, first = parts_of(targets[i] * scale), groups[i] * rings + rings
        for v in range(lo, hi):
            if codes[i, v]:
                _add(parts, out[(first - codes[i, v]) * columns + v])


@njit(cache=True, nogil=True)
def sum_visit_codes(
    codes: Bytes, leaf_of: Words, query_of: Words, positions: Words, rings: int,
    targets: Floats, scale: float, groups: Integers, columns: int, out: Integers,
) -> None:  # fmt: skip
    """The same for the visits of a tree."""
    for t in range(codes.shape[0]):
        for p in range(codes.shape[1]):
            if codes[t, p]:
                i = positions[leaf_of[t], p]
                place = (groups[i] * rings + rings - codes[t, p]) * columns + query_of[t]
                _add(parts_of(targets[i] * scale), out[place])


@njit(cache=True, nogil=True)
def sum_leaves(
    leaf_of: NDArray[np.int32], targets: Floats, scale: float, groups: Integers, columns: int,
    out: Integers,
) -> None:  # fmt: skip
    """The same for the leaves of one tree; a point with a negative leaf is in none."""
    for i in range(leaf_of.shape[0]):
        if leaf_of[i] >= 0:
            _add(parts_of(targets[i] * scale), out[groups[i] * columns + leaf_of[i]])


@njit(cache=True, nogil=True)
def _carry(limbs: Integers) -> None:
    """Make all limbs but the last, which has the sign, at least 0 and less than 2^31."""
    for k in range(limbs.shape[0] - 1):
        limbs[k + 1] += limbs[k] >> LIMB
        limbs[k] &= LOW


@njit(cache=True, nogil=True)
def _subtract_product(one: Integers, other: Integers, out: Integers) -> None:
    """Subtract a product of numbers whose limbs are below 2^31 from the limbs `out`."""
    for i in range(one.shape[0]):
        for j in range(other.shape[0]):
            product = one[i] * other[j]
            out[i + j] -= product & LOW
            out[i + j + 1] -= product >> LIMB


@njit(cache=True, nogil=True)
def _number(limbs: Integers) -> float:
    """A number whose limbs were carried."""
    found = 0.0
    for k in range(limbs.shape[0] - 1, -1, -1):
        found = found * 2.0**31 + limbs[k]
    return found


@njit(cache=True, nogil=True)
def first_sums(table: Integers, out: Floats) -> None:
    """Write the sum of the whole numbers in each cell."""
    limbs = np.zeros(FIRSTS + 2, np.int64)
    for v in range(out.shape[0]):
        limbs[FIRSTS:] = 0
        limbs[:FIRSTS] = table[1 : 1 + FIRSTS, v]
        _carry(limbs)
        out[v] = _number(limbs)


@njit(cache=True, nogil=True)
def residual_sums(table: Integers, centers: Floats, one: Floats, two: Floats) -> None:
    """Write the sums of r and r^2 in each cell, with r the whole numbers less that of its center.

    Nothing is rounded before the end. With c the center, n the count and S the sum of u, the sum of
    r is R = S - n c, and that of r^2 is the sum of u^2 less c (S + R).
    """
    c, n = np.zeros(FIRSTS, np.int64), np.zeros(2, np.int64)
    first, rest = np.zeros(FIRSTS + 4, np.int64), np.zeros(FIRSTS + 4, np.int64)
    second = np.zeros(SECONDS + 6, np.int64)
    for v in range(one.shape[0]):
        parts = parts_of(centers[v])
        c[0], c[1], c[2] = parts[0], parts[1], parts[2]
        n[0], n[1] = table[0, v] & LOW, table[0, v] >> LIMB
        first[FIRSTS:] = 0
        first[:FIRSTS] = table[1 : 1 + FIRSTS, v]
        _carry(first)
        rest[:] = first
        _subtract_product(n, c, rest)
        _carry(rest)
        one[v] = _number(rest)
        second[SECONDS:] = 0
        second[:SECONDS] = table[1 + FIRSTS :, v]
        first += rest
        _carry(first)
        _subtract_product(c, first, second)
        _carry(second)
        two[v] = _number(second)
