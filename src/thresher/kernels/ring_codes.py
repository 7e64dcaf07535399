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
U64 = np.uint64


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
def count_codes(codes: NDArray[np.uint64], lo: int, hi: int, counts: Integers) -> None:
    """Add to counts[v, c] the rows lo <= i < hi with code c at v, for codes c > 0.

    Eight codes are a word: most words are out of reach as a whole.
    """
    for i in range(lo, hi):
        for w in range(codes.shape[1]):
            x = codes[i, w]
            if x:
                for k in range(8):
                    counts[8 * w + k, (x >> U64(8 * k)) & U64(255)] += 1


@njit(cache=True, nogil=True)
def add_codes(codes: NDArray[np.uint64], lo: int, hi: int, table: Floats, out: Floats) -> None:
    """Add to out[i] what row i is paid: table[v, c] by v for code c, nothing for code 0.

    Eight codes are a word: most words are out of reach as a whole.
    """
    for i in range(lo, hi):
        for begin in range(0, codes.shape[1], GROUP // 8):
            total = 0.0
            for w in range(begin, begin + GROUP // 8):
                x = codes[i, w]
                if x:
                    for k in range(8):
                        total += table[8 * w + k, (x >> U64(8 * k)) & U64(255)]
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
