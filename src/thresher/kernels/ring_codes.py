"""Pairs to rings: one byte for each pair, which says how many of the rings' edges it is within.

Code 0 is out of reach, and the code of the innermost ring is the number of rings. What `masks` says
about one radius holds here for each edge: float32 proposes, and pairs in doubt at any edge are
noted and decided later. A row's worth is added up in one order: over 64 validation points from
first to last, and then these sums from first to last. Points out of reach add 0.0, which changes no
sum, because no sum is -0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Bytes, Floats, Integers, Single, Words

UNSURE = 255  # the code of pairs that may be near an edge
GROUP = 64  # validation points that are summed together
ROWS = 256  # rows whose codes stay at hand
FEW_RINGS = 64
U8 = np.uint8
U64 = np.uint64
BRUIJN = U64(0x03F79D71B4CB0A89)  # its first six bits, shifted by k, are different for each k
SEVEN = U64(0x7F7F7F7F7F7F7F7F)
TOGETHER = U64(0x0102040810204080)  # moves bit 8 i to bit 56 + i
BIT_OF = np.zeros(64, np.uint8)
for _bit in range(64):
    BIT_OF[((int(BRUIJN) << _bit) % 2**64) >> 58] = _bit


@njit(cache=True, nogil=True, fastmath={"contract"})
def ring_codes(
    tile: Single, dims: tuple[int, ...], columns: Single, norms: Single, levels: Single,
    scores: Single, step: Single, bins: Bytes, positions: NDArray[np.integer[Any]], codes: Bytes,
    notes: Words,
) -> int:  # fmt: skip
    """Compute codes from a tile of rows or of the matrix product; return the number of noted pairs.

    As in `masks`, `dims` has an entry for each of a few features. If it has none, `tile` is the
    product with all columns. levels[e] and scores[e] are those of edge e, the outermost first. A
    note is (row, column). How far a pair is within the outermost edge gives its code, by `bins` or,
    without them, by the `step` of rings of equal width. Pairs near an edge are compared with each
    edge, and so are all pairs of a row that is not exact enough.
    """
    count = 0
    a, b, slack, reach = scores[0, 0], scores[0, 1], scores[0, 2], scores[0, 3]
    width = columns.shape[1] if len(dims) > 0 else tile.shape[1]
    within, level = np.empty(width, np.float32), levels[0]
    for i in range(tile.shape[0]):
        n, x, out = norms[i], tile[i], codes[positions[i]]
        h = a * n * n + b * n
        if len(dims) > 0:
            for j in range(width):
                r = -h - level[j]
                for k in range(len(dims)):
                    r += x[k] * columns[k, j]
                within[j] = r
        else:
            for j in range(width):
                within[j] = (x[j] - h) - level[j]
        factor = step[0] if step[1] == np.float32(0) else step[1] / n
        wrong = (slack * (reach * n + abs(h) + scores[0, 4]) + scores[0, 5]) * factor
        if bins.shape[0] > 0:
            unsure = _binned(within, factor, wrong, bins, out)
        else:
            unsure = _stepped(within, factor, wrong, scores.shape[0], step, out)
        if unsure:
            for j in range(width):
                if out[j] == UNSURE:
                    product = np.float32(0)
                    for k in range(len(dims)):
                        product += x[k] * columns[k, j]
                    if len(dims) == 0:
                        product = x[j]
                    inside, doubt = _compare(product, n, j, levels, scores)
                    out[j] = inside
                    if doubt:
                        notes[count, 0] = i
                        notes[count, 1] = j
                        count += 1
        out[width:] = 0
    return count


@njit(cache=True, nogil=True, fastmath={"contract"})
def _binned(within: Single, factor: np.float32, wrong: np.float32, bins: Bytes, out: Bytes) -> bool:
    """Find codes by bins, which are `UNSURE` near an edge; return whether some are."""
    last, unsure = np.float32(bins.shape[0] - 1), False
    exact = wrong < np.float32(0.5)
    for j in range(within.shape[0]):
        place = min(max(within[j] * factor + np.float32(2), np.float32(0)), last)
        out[j] = bins[np.int32(place)] if exact else UNSURE
        unsure |= out[j] == UNSURE
    return unsure


@njit(cache=True, nogil=True, fastmath={"contract"})
def _stepped(
    within: Single, factor: np.float32, wrong: np.float32, rings: int, step: Single, out: Bytes
) -> bool:
    """Find codes of rings of equal width; return whether some are `UNSURE`.

    In units of the width, a pair is t = L - d within the outermost of L edges. For cosine, t is r
    step[1] over the norm; otherwise d^2 = L^2 - r step[0]. A pair is unsure if t is near a whole
    number.
    """
    edges, unsure = np.float32(rings), False
    close = np.float32(2) * wrong + edges * edges * np.float32(1e-6) + step[2]
    if not close < np.float32(0.2):
        out[: within.shape[0]] = UNSURE
        return True
    sure = np.float32(0.5) - close
    for j in range(within.shape[0]):
        place = within[j] * factor
        if step[1] == np.float32(0):
            place = edges - np.sqrt(max(edges * edges - place, np.float32(0)))
        place = max(place + np.float32(1), np.float32(0.5))
        whole = np.int32(place)
        near = abs(place - np.float32(whole) - np.float32(0.5)) > sure
        unsure |= near
        out[j] = UNSURE if near else np.uint8(whole)
    return unsure


@njit(cache=True, nogil=True, fastmath={"contract"})
def _compare(
    product: np.float32, n: np.float32, j: int, levels: Single, scores: Single
) -> tuple[int, bool]:
    """How many edges a pair is within, and whether float32 leaves one of them in doubt."""
    inside, doubt = 0, False
    for e in range(scores.shape[0]):
        h = scores[e, 0] * n * n + scores[e, 1] * n
        r = (product - h) - levels[e, j]
        width = scores[e, 2] * (scores[e, 3] * n + abs(h) + scores[e, 4]) + scores[e, 5]
        inside += r >= np.float32(0)
        doubt |= abs(r) <= width
    return inside, doubt


@njit(cache=True, nogil=True)
def distance_codes(D: Floats, edges: Floats, positions: Words, codes: Bytes) -> None:
    """Compute codes from a tile of distances that the caller computed."""
    for i in range(D.shape[0]):
        out = codes[positions[i]]
        out[D.shape[1] :] = 0
        for j in range(D.shape[1]):
            inside = 0
            for e in range(edges.shape[0]):
                inside += D[i, j] <= edges[e]
            out[j] = inside


@njit(cache=True, nogil=True)
def count_codes(codes: Bytes, lo: int, hi: int, counts: Integers) -> None:
    """Add to counts[v, c] the rows lo <= i < hi with code c at v, for codes c > 0.

    A few rings are counted one after the other, in vectors of bytes that do not overflow.
    """
    rings, lanes = counts.shape[1] - 1, codes.shape[1]
    if rings > FEW_RINGS:
        for i in range(lo, hi):
            for j in range(lanes):
                counts[j, codes[i, j]] += 1
        return
    found = np.empty((rings, lanes), np.uint8)
    for first in range(lo, hi, 255):
        found[:] = 0
        for i in range(first, min(first + 255, hi)):
            row = codes[i]
            for c in range(rings):
                code, sums = U8(c + 1), found[c]
                for j in range(lanes):
                    sums[j] = U8(sums[j] + U8(row[j] == code))
        for c in range(rings):
            for j in range(lanes):
                counts[j, c + 1] += found[c, j]


@njit(cache=True, nogil=True)
def add_codes(codes: Bytes, lo: int, hi: int, table: Floats, out: Floats) -> None:
    """Add to out[i] what row i is paid: table[v, c] by v for code c, which is 0 for code 0.

    Four rows at a time, so that none waits for its sum.
    """
    for first in range(lo, hi, ROWS):
        last = min(first + ROWS, hi)
        for begin in range(0, codes.shape[1], GROUP):
            end = begin + GROUP
            pay = table[begin:end]
            for i in range(first, last - 3, 4):
                p, q, r, s = (
                    codes[i, begin:end], codes[i + 1, begin:end], codes[i + 2, begin:end],
                    codes[i + 3, begin:end],
                )  # fmt: skip
                a = b = c = d = 0.0
                for v in range(GROUP):
                    a += pay[v, p[v]]
                    b += pay[v, q[v]]
                    c += pay[v, r[v]]
                    d += pay[v, s[v]]
                out[i] += a
                out[i + 1] += b
                out[i + 2] += c
                out[i + 3] += d
            for i in range(last - (last - first) % 4, last):
                a = 0.0
                for v in range(GROUP):
                    a += pay[v, codes[i, begin + v]]
                out[i] += a


@njit(cache=True, nogil=True)
def _lowest(x: np.uint64) -> np.int64:
    """The place of the lowest bit of a word that is not 0."""
    return np.int64(BIT_OF[((x & (~x + U64(1))) * BRUIJN) >> U64(58)])


@njit(cache=True, nogil=True)
def _near(words: NDArray[np.uint64], begin: int) -> np.uint64:
    """A bit for each of the 64 codes of eight words, which is set if the code is not 0."""
    found = U64(0)
    for k in range(8):
        x = words[begin + k]
        x = ((((x & SEVEN) + SEVEN) | x) & ~SEVEN) >> U64(7)  # bit 8 i is that of byte i
        found |= ((x * TOGETHER) >> U64(56)) << U64(8 * k)
    return found


@njit(cache=True, nogil=True)
def add_few_codes(codes: Bytes, lo: int, hi: int, table: Floats, out: Floats) -> None:
    """The same as `add_codes`, to the last bit, if most codes are 0. Eight codes are a word."""
    words = codes.view(U64)
    for first in range(lo, hi, ROWS):
        for begin in range(0, codes.shape[1], GROUP):
            for i in range(first, min(first + ROWS, hi)):
                x, row, total = _near(words[i], begin // 8), codes[i], 0.0
                while x:
                    v = begin + _lowest(x)
                    total += table[v, row[v]]
                    x &= x - U64(1)
                out[i] += total


@njit(cache=True, nogil=True)
def count_visit_codes(
    codes: Bytes, leaf_of: Words, query_of: Words, classes: NDArray[np.int32],
    segment_of: Integers, counts: Integers,
) -> None:  # fmt: skip
    """Add to counts[s, v, c] the points of segment s with code c that visits of v found."""
    for t in range(codes.shape[0]):
        own = classes[leaf_of[t]]
        v = query_of[t]
        for p in range(codes.shape[1]):
            if codes[t, p]:
                counts[segment_of[own[p]], v, codes[t, p]] += 1


@njit(cache=True, nogil=True)
def add_visit_codes(
    codes: Bytes, starts: Integers, first: int, last: int, query_of: Words,
    classes: NDArray[np.int32], segment_of: Integers, positions: Words, tables: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """The same as `add_codes`, to the last bit, for visits of the leaves first <= j < last.

    A leaf's visits come by validation point; tables[s] is for segment s.
    """
    size = codes.shape[1]
    sums = np.zeros(size)
    for j in range(first, last):
        group = np.int64(-1)
        for t in range(starts[j], starts[j + 1]):
            v = np.int64(query_of[t])
            if v // GROUP != group:
                _flush(sums, positions[j], out)
                group = v // GROUP
            for p in range(size):
                if codes[t, p]:
                    sums[p] += tables[segment_of[classes[j, p]], v, codes[t, p]]
        _flush(sums, positions[j], out)


@njit(cache=True, nogil=True)
def _flush(sums: Floats, positions: Words, out: Floats) -> None:
    for p in range(sums.shape[0]):
        if sums[p] != 0.0:
            out[positions[p]] += sums[p]
            sums[p] = 0.0


@njit(cache=True, nogil=True)
def rows_of_visit_codes(
    codes: Bytes, starts: Integers, leaves: tuple[int, int], query_of: Words, positions: Words,
    columns: tuple[int, int], out: Bytes,
) -> None:  # fmt: skip
    """Write the codes that visits of some leaves found to out[position, v - columns[0]]."""
    for j in range(leaves[0], leaves[1]):
        for t in range(starts[j], starts[j + 1]):
            v = np.int64(query_of[t])
            if columns[0] <= v < columns[1]:
                for p in range(codes.shape[1]):
                    if codes[t, p]:
                        out[positions[j, p], v - columns[0]] = codes[t, p]
