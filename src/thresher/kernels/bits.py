"""Bits to numbers: how many bits are set in each column, and what the set bits of a row are worth.

Both work on rows `lo` to `hi` of the words of one block of validation points. Counts are integers,
and a row's worth is added up in one fixed order (below), so neither depends on how rows are cut.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Flags, Floats, Integers, LongWords, Words

U32 = np.uint32
U64 = np.uint64
SLICES = 15  # bit-sliced counters hold up to 2^15 - 1 rows before they are emptied
FULL = 32_000
LOWEST = U32(0x077CB531)  # a de Bruijn sequence: its shifts differ in their upper five bits
PLACE = np.zeros(32, np.int64)
for _shift in range(32):
    PLACE[((0x077CB531 << _shift) & 0xFFFFFFFF) >> 27] = _shift


@njit(cache=True, nogil=True)
def count_columns(words: Words, lo: int, hi: int, counts: Integers) -> None:
    """Add to counts[v] the number of rows lo <= i < hi whose bit v is set.

    The counters are bit-sliced: slice q holds bit q of 32 counters a word. Eight rows at a time
    pass through carry-save adders, so only their carry runs through the upper slices.
    """
    width = words.shape[1]
    s = np.zeros((SLICES, width), U32)
    i = lo
    held = 0
    while i < hi:
        if i + 8 <= hi:
            _add_eight(words, i, s)
            i += 8
            held += 8
        else:
            for w in range(width):
                _carry(s, 0, w, words[i, w])
            i += 1
            held += 1
        if held >= FULL or i >= hi:
            _empty(s, counts)
            held = 0


@njit(cache=True, nogil=True)
def _add_eight(words: Words, i: int, s: Words) -> None:
    for w in range(words.shape[1]):
        ones, twos, fours = s[0, w], s[1, w], s[2, w]
        ones, a = _add(ones, words[i, w], words[i + 1, w])
        ones, b = _add(ones, words[i + 2, w], words[i + 3, w])
        twos, c = _add(twos, a, b)
        ones, a = _add(ones, words[i + 4, w], words[i + 5, w])
        ones, b = _add(ones, words[i + 6, w], words[i + 7, w])
        twos, d = _add(twos, a, b)
        fours, eights = _add(fours, c, d)
        s[0, w], s[1, w], s[2, w] = ones, twos, fours
        _carry(s, 3, w, eights)


@njit(cache=True, nogil=True)
def _add(x: np.uint32, y: np.uint32, z: np.uint32) -> tuple[np.uint32, np.uint32]:
    """A full adder: the sum bits and the carry bits of x + y + z, 32 at a time."""
    u = U32(x ^ y)
    return U32(u ^ z), U32((x & y) | (u & z))


@njit(cache=True, nogil=True)
def _carry(s: Words, q: int, w: int, carry: np.uint32) -> None:
    for p in range(q, SLICES):
        both = U32(s[p, w] & carry)
        s[p, w] = U32(s[p, w] ^ carry)
        carry = both


@njit(cache=True, nogil=True)
def _empty(s: Words, counts: Integers) -> None:
    for w in range(s.shape[1]):
        for q in range(SLICES):
            x = s[q, w]
            s[q, w] = U32(0)
            for b in range(32):
                counts[w * 32 + b] += np.int64((x >> U32(b)) & U32(1)) << q


@njit(cache=True, nogil=True)
def byte_tables(weights: Floats, tables: Floats) -> None:
    """tables[j, x] = the weights of the set bits of byte x, added from the lowest bit up.

    Row j is about the validation points 8j to 8j + 7.
    """
    for j in range(tables.shape[0]):
        tables[j, 0] = 0.0
        for k in range(8):
            weight = weights[8 * j + k]
            for q in range(1 << k):
                tables[j, (1 << k) + q] = tables[j, q] + weight


@njit(cache=True, nogil=True)
def add_by_tables(words: LongWords, lo: int, hi: int, tables: Floats, out: Floats) -> None:
    """Add to out[i] the weights of the set bits of row i, 64 validation points at a time.

    Order: within a byte from the lowest bit up; eight bytes by a fixed tree; words from first to
    last. 256 rows x 64 validation points at a time keep the tables in the fastest cache.
    """
    for first in range(lo, hi, 256):
        n = min(hi, first + 256) - first
        part = out[first : first + n]
        rows = words[first : first + n]
        for w in range(words.shape[1]):
            t = tables[8 * w : 8 * w + 8]
            for i in range(n):
                x = rows[i, w]
                part[i] += (
                    (t[0, x & U64(255)] + t[1, (x >> U64(8)) & U64(255)])
                    + (t[2, (x >> U64(16)) & U64(255)] + t[3, (x >> U64(24)) & U64(255)])
                ) + (
                    (t[4, (x >> U64(32)) & U64(255)] + t[5, (x >> U64(40)) & U64(255)])
                    + (t[6, (x >> U64(48)) & U64(255)] + t[7, x >> U64(56)])
                )


@njit(cache=True, nogil=True)
def add_by_bits(words: LongWords, lo: int, hi: int, weights: Floats, out: Floats) -> None:
    """The same as `add_by_tables`, to the last bit, without tables: for classes with few points."""
    b = np.zeros(8)
    for i in range(lo, hi):
        for w in range(words.shape[1]):
            x = words[i, w]
            b[:] = 0.0
            for k in range(64):
                if (x >> U64(k)) & U64(1):
                    b[k >> 3] += weights[w * 64 + k]
            out[i] += ((b[0] + b[1]) + (b[2] + b[3])) + ((b[4] + b[5]) + (b[6] + b[7]))


@njit(cache=True, nogil=True)
def _lowest(x: np.uint32) -> int:
    """The place of the lowest set bit of x > 0."""
    return PLACE[U32(U32(x & U32(~x + U32(1))) * LOWEST) >> U32(27)]


@njit(cache=True, nogil=True)
def count_visits(
    words: Words, leaf_of: Words, query_of: Words, codes: NDArray[np.int32], segment_of: Integers,
    counts: Integers,
) -> None:  # fmt: skip
    """Add to counts[s, v] the near points of segment s that visits of v found.

    A visit's bits are the points of its leaf; codes[leaf, bit] is the class of one.
    """
    for t in range(words.shape[0]):
        own = codes[leaf_of[t]]
        v = query_of[t]
        for w in range(words.shape[1]):
            x = words[t, w]
            while x:
                counts[segment_of[own[w * 32 + _lowest(x)]], v] += 1
                x = U32(x & U32(x - U32(1)))


@njit(cache=True, nogil=True)
def add_visits(
    words: Words, starts: Integers, first: int, last: int, query_of: Words,
    codes: NDArray[np.int32], segment_of: Integers, positions: Words, weights: Floats, out: Floats,
) -> None:  # fmt: skip
    """The same as `add_by_tables`, to the last bit, for visits of the leaves first <= j < last.

    A leaf's visits come by validation point, so that the bytes of a point fill from the lowest bit
    up; when the next 64 validation points begin, bytes are added by the same tree. What is absent
    would add 0.0, which changes no sum: none of them is -0.0. weights[v, s] is for segment s.
    """
    size = words.shape[1] * 32
    b = np.zeros((size, 8))
    met = np.empty(size, np.int64)
    is_met = np.zeros(size, np.bool_)
    for j in range(first, last):
        count = 0
        current = np.int64(-1)
        for t in range(starts[j], starts[j + 1]):
            v = np.int64(query_of[t])
            if v >> 6 != current:
                _flush(b, met[:count], is_met, positions[j], out)
                count = 0
                current = v >> 6
            byte = (v & 63) >> 3
            for w in range(words.shape[1]):
                x = words[t, w]
                while x:
                    i = w * 32 + _lowest(x)
                    x = U32(x & U32(x - U32(1)))
                    if not is_met[i]:
                        is_met[i] = True
                        met[count] = i
                        count += 1
                    b[i, byte] += weights[v, segment_of[codes[j, i]]]
        _flush(b, met[:count], is_met, positions[j], out)


@njit(cache=True, nogil=True)
def _flush(b: Floats, met: Integers, is_met: Flags, positions: Words, out: Floats) -> None:
    for i in met:
        c = b[i]
        out[positions[i]] += ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]))
        c[:] = 0.0
        is_met[i] = False


@njit(cache=True, nogil=True)
def rows_of_visits(
    words: Words, starts: Integers, leaves: tuple[int, int], query_of: Words, positions: Words,
    columns: tuple[int, int], out: LongWords,
) -> None:  # fmt: skip
    """Set bit v of row positions[leaf, p] if visits of a leaf say that its point p is near v.

    For the leaves and validation points from the first to before the second number; bit 0 is the
    first of these validation points.
    """
    for j in range(leaves[0], leaves[1]):
        for t in range(starts[j], starts[j + 1]):
            v = np.int64(query_of[t]) - columns[0]
            if v < 0 or query_of[t] >= columns[1]:
                continue
            bit = U64(U64(1) << U64(v & 63))
            for w in range(words.shape[1]):
                x = words[t, w]
                while x:
                    i = positions[j, w * 32 + _lowest(x)]
                    out[i, v >> 6] = U64(out[i, v >> 6] | bit)
                    x = U32(x & U32(x - U32(1)))
