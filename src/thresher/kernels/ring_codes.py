"""Pairs to rings: one byte a pair, how many of the rings' edges the pair is within.

0 is out of reach, and the number of rings is the innermost one. What `masks` says of one radius
holds here for each edge: float32 proposes, and pairs in doubt at any edge are noted and settled.
A row's worth is added up in one order: over 64 validation points from first to last, and these sums
from first to last. What is out of reach adds 0.0, which changes no sum: none of them is -0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Single = NDArray[np.float32]
Words = NDArray[np.uint32]

UNSURE = 255  # the code of pairs that may be near an edge
GROUP = 64  # validation points that are summed together
ROWS = 256  # rows whose codes stay at hand
U64 = np.uint64
BRUIJN = U64(0x03F79D71B4CB0A89)  # its first six bits, shifted by k, are different for each k
SEVEN = U64(0x7F7F7F7F7F7F7F7F)
TOGETHER = U64(0x0102040810204080)  # moves bit 8 i to bit 56 + i
BIT_OF = np.zeros(64, np.uint8)
for _bit in range(64):
    BIT_OF[((int(BRUIJN) << _bit) % 2**64) >> 58] = _bit


@njit(cache=True, nogil=True, fastmath={"contract"})
def product_codes(
    G: Single, norms: Single, levels: Single, scores: Single, scale: Single, bins: Bytes,
    positions: NDArray[np.integer[Any]], codes: Bytes, notes: Words,
) -> int:  # fmt: skip
    """Codes from a tile `G` of the matrix product; the number of noted pairs is returned.

    levels[e] and scores[e] are those of edge e, the outermost first; a note is (row, column). How
    far a pair is within the outermost edge, r times `scale` (the first number, or the second over
    the norm), says in which bin it is: bins have a code, or `UNSURE` near an edge. Pairs in those
    are compared with each edge, and so are all pairs of a row whose r is not as exact as a bin.
    """
    count = 0
    last = bins.shape[0] - 1
    a, b, slack, reach = scores[0, 0], scores[0, 1], scores[0, 2], scores[0, 3]
    for i in range(G.shape[0]):
        n = norms[i]
        out, g = codes[positions[i]], G[i]
        h = a * n * n + b * n
        factor = scale[0] if scale[1] == np.float32(0) else scale[1] / n
        width = slack * (reach * n + abs(h) + scores[0, 4]) + scores[0, 5]
        if width * factor < np.float32(0.5):
            for j in range(g.shape[0]):
                place = ((g[j] - h) - levels[0, j]) * factor + np.float32(2)
                place = min(max(place, np.float32(0)), np.float32(last))
                out[j] = bins[np.int32(place)]
        else:
            out[: g.shape[0]] = UNSURE
        for j in range(g.shape[0]):
            if out[j] == UNSURE:
                inside, doubt = _compare(g[j], n, j, levels, scores)
                out[j] = inside
                if doubt:
                    notes[count, 0] = i
                    notes[count, 1] = j
                    count += 1
        out[g.shape[0] :] = 0
    return count


@njit(cache=True, nogil=True, fastmath={"contract"})
def even_codes(
    G: Single, norms: Single, levels: Single, scores: Single, step: Single,
    positions: NDArray[np.integer[Any]], codes: Bytes, notes: Words,
) -> int:  # fmt: skip
    """As `product_codes` for rings of equal width, whose number follows without a table.

    In widths, a pair is t = L - d within the outermost of L edges. For cosine that is r times
    step[1] over the norm; else d^2 = L^2 - r step[0]. Pairs whose t is near a whole number are
    compared with each edge, and so are all pairs of a row whose t is not exact enough.
    """
    count = 0
    edges = np.float32(scores.shape[0])
    a, b, slack, reach = scores[0, 0], scores[0, 1], scores[0, 2], scores[0, 3]
    most, level = edges + np.float32(2.5), levels[0]
    for i in range(G.shape[0]):
        n = norms[i]
        out, g = codes[positions[i]], G[i]
        h = a * n * n + b * n
        factor = step[0] if step[1] == np.float32(0) else step[1] / n
        width = slack * (reach * n + abs(h) + scores[0, 4]) + scores[0, 5]
        close = np.float32(2) * width * factor + edges * edges * np.float32(1e-6) + step[2]
        unsure = np.int32(0)
        if not close < np.float32(0.2):
            out[: g.shape[0]] = UNSURE
            unsure = np.int32(1)
        elif step[1] != np.float32(0):
            for j in range(g.shape[0]):
                place = ((g[j] - h) - level[j]) * factor + np.float32(2)
                place = min(max(place, np.float32(0.5)), most)
                whole = np.int32(place)
                part = place - np.float32(whole)
                near = (part < close) | (part > np.float32(1) - close)
                unsure |= near
                out[j] = UNSURE if near else max(whole - 1, 0)
        else:
            for j in range(g.shape[0]):
                square = edges * edges - ((g[j] - h) - level[j]) * factor
                place = edges - np.sqrt(max(square, np.float32(0))) + np.float32(2)
                place = max(place, np.float32(0.5))
                whole = np.int32(place)
                part = place - np.float32(whole)
                near = (part < close) | (part > np.float32(1) - close)
                unsure |= near
                out[j] = UNSURE if near else max(whole - 1, 0)
        if unsure:
            for j in range(g.shape[0]):
                if out[j] == UNSURE:
                    inside, doubt = _compare(g[j], n, j, levels, scores)
                    out[j] = inside
                    if doubt:
                        notes[count, 0] = i
                        notes[count, 1] = j
                        count += 1
        out[g.shape[0] :] = 0
    return count


@njit(cache=True, nogil=True, fastmath={"contract"})
def _compare(
    product: np.float32, n: np.float32, j: int, levels: Single, scores: Single
) -> tuple[int, bool]:
    """How many edges a pair is within, and whether float32 cannot tell for one of them."""
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
    """Codes from a tile of distances that the caller computed."""
    for i in range(D.shape[0]):
        out = codes[positions[i]]
        out[D.shape[1] :] = 0
        for j in range(D.shape[1]):
            inside = 0
            for e in range(edges.shape[0]):
                inside += D[i, j] <= edges[e]
            out[j] = inside


@njit(cache=True, nogil=True)
def _lowest(x: np.uint64) -> np.int64:
    """The place of the lowest bit of a word that is not 0."""
    return np.int64(BIT_OF[((x & (~x + U64(1))) * BRUIJN) >> U64(58)])


@njit(cache=True, nogil=True)
def _near(words: NDArray[np.uint64], begin: int) -> np.uint64:
    """A bit for each of the 64 codes of eight words: whether it is not 0."""
    found = U64(0)
    for k in range(8):
        x = words[begin + k]
        x = ((((x & SEVEN) + SEVEN) | x) & ~SEVEN) >> U64(7)  # bit 8 i is that of byte i
        found |= ((x * TOGETHER) >> U64(56)) << U64(8 * k)
    return found


@njit(cache=True, nogil=True)
def count_codes(codes: NDArray[np.uint64], lo: int, hi: int, counts: Integers) -> None:
    """Add to counts[v, c] the rows lo <= i < hi with code c at v, for codes c > 0.

    Eight codes are a word: most of them are out of reach.
    """
    for first in range(lo, hi, ROWS):
        for begin in range(0, codes.shape[1], GROUP // 8):
            for i in range(first, min(first + ROWS, hi)):
                x, row = _near(codes[i], begin), codes[i]
                while x:
                    k = _lowest(x)
                    code = (row[begin + (k >> 3)] >> U64(8 * (k & 7))) & U64(255)
                    counts[8 * begin + k, code] += 1
                    x &= x - U64(1)


@njit(cache=True, nogil=True)
def add_codes(codes: NDArray[np.uint64], lo: int, hi: int, table: Floats, out: Floats) -> None:
    """Add to out[i] what row i is paid: table[v, c] by v for code c, nothing for code 0.

    Eight codes are a word: most of them are out of reach.
    """
    for first in range(lo, hi, ROWS):
        for begin in range(0, codes.shape[1], GROUP // 8):
            for i in range(first, min(first + ROWS, hi)):
                x, row, total = _near(codes[i], begin), codes[i], 0.0
                while x:
                    k = _lowest(x)
                    code = (row[begin + (k >> 3)] >> U64(8 * (k & 7))) & U64(255)
                    total += table[8 * begin + k, code]
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
    """As `add_codes`, to the last bit, for the visits of the leaves first <= j < last.

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
