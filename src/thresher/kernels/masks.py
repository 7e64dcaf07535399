"""Pairs to bits: near or not, 32 validation points a word, at the point's class-sorted position.

For both metrics a pair is near when r = x.v - h(x) - t(v) >= 0, where

    euclidean   h = |x|^2 / 2           t = (|v|^2 - radius^2) / 2
    cosine      h = (1 - radius) |x|    t = 0,  v of length 1

With h = a |x|^2 + b |x|, both metrics cost the same. r is computed in float32 and carries an error
of at most `slack * (reach * |x| + |h| + level) + tiny` (`metrics.Score`). Pairs within that error
are *noted* in the hot loop and decided afterwards by the pair rule, so float32 decides nothing that
it could get wrong. Both hot loops write their notes themselves: a call costs a few percent
(measured).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thresher.array_types import Floats, Integers, Single, Words

U32 = np.uint32
ZERO = U32(0)
BIT = (U32(1) << np.arange(32, dtype=U32)).astype(U32)


@njit(cache=True, nogil=True, fastmath={"contract"})
def direct_words(
    X: Single, dims: tuple[int, ...], norms: Single, VT: Single, level: Single, score: Single,
    positions: Words, words: Words, notes: Words,
) -> int:  # fmt: skip
    """Compute words directly from the rows, for few features; return the number of notes.

    `dims` is a tuple with as many entries as there are features. Its *type* makes that number a
    constant of the compiled loop, which is then unrolled, and each such loop is cached on disk.
    """
    a, b, slack, reach, most, tiny = score[0], score[1], score[2], score[3], score[4], score[5]
    count = 0
    for i in range(X.shape[0]):
        x = X[i]
        n = norms[i]
        h = a * n * n + b * n
        doubt_width = slack * (reach * n + abs(h) + most) + tiny
        out = words[positions[i]]
        for w in range(words.shape[1]):
            first = w * 32
            near = ZERO
            doubt = ZERO
            for j in range(32):
                r = -h - level[first + j]
                for k in range(len(dims)):
                    r += x[k] * VT[k, first + j]
                near = U32(near | (BIT[j] if r >= np.float32(0) else ZERO))
                doubt = U32(doubt | (BIT[j] if abs(r) <= doubt_width else ZERO))
            out[w] = near
            if doubt:
                notes[count, 0] = i
                notes[count, 1] = w
                notes[count, 2] = doubt
                count += 1
    return count


@njit(cache=True, nogil=True)
def visit_words(
    leaf_of: Words, query_of: Words, first: int, Q: Single, dims: tuple[int, ...], norms: Single,
    columns: Single, level: Single, score: Single, words: Words, notes: Words,
) -> int:  # fmt: skip
    """Compute the words of visits (leaf, query), sorted by leaf; return the number of notes.

    `columns`, `level` and `score` have an entry for each leaf. Notes refer to visit `first` + row.
    """
    count = 0
    rows = np.arange(words.shape[0]).astype(U32)
    some = np.empty((words.shape[0], Q.shape[1]), np.float32)
    some_norms = np.empty(words.shape[0], np.float32)
    t = 0
    while t < words.shape[0]:
        leaf = leaf_of[t]
        end = t
        while end < words.shape[0] and leaf_of[end] == leaf:
            q = query_of[end]
            some_norms[end] = norms[q]
            for k in range(Q.shape[1]):
                some[end, k] = Q[q, k]
            end += 1
        found = direct_words(
            some[t:end], dims, some_norms[t:end], columns[leaf], level[leaf], score[leaf],
            rows, words[t:end], notes[count:],
        )  # fmt: skip
        for j in range(count, count + found):
            notes[j, 0] += U32(first + t)
        count += found
        t = end
    return count


@njit(cache=True, nogil=True, fastmath={"contract"})
def product_words(
    G: Single, norms: Single, level: Single, score: Single, positions: Words, words: Words,
    notes: Words,
) -> int:  # fmt: skip
    """Compute words from a tile `G` of the matrix product; return the number of notes."""
    a, b, slack, reach, most, tiny = score[0], score[1], score[2], score[3], score[4], score[5]
    count = 0
    for i in range(G.shape[0]):
        n = norms[i]
        h = a * n * n + b * n
        doubt_width = slack * (reach * n + abs(h) + most) + tiny
        out = words[positions[i]]
        whole = G.shape[1] // 32
        for w in range(words.shape[1]):
            near = ZERO
            doubt = ZERO
            if w < whole:
                g = G[i, w * 32 : w * 32 + 32]
                t = level[w * 32 : w * 32 + 32]
                for j in range(32):
                    r = (g[j] - h) - t[j]
                    near = U32(near | (BIT[j] if r >= np.float32(0) else ZERO))
                    doubt = U32(doubt | (BIT[j] if abs(r) <= doubt_width else ZERO))
            else:  # the last columns, if they do not fill a word
                for j in range(w * 32, G.shape[1]):
                    r = (G[i, j] - h) - level[j]
                    near = U32(near | (BIT[j - w * 32] if r >= np.float32(0) else ZERO))
                    doubt = U32(doubt | (BIT[j - w * 32] if abs(r) <= doubt_width else ZERO))
            out[w] = near
            if doubt:
                notes[count, 0] = i
                notes[count, 1] = w
                notes[count, 2] = doubt
                count += 1
    return count


@njit(cache=True, nogil=True)
def distance_words(D: Floats, radius: float, positions: Words, words: Words) -> None:
    """Compute words from a tile of distances that the caller computed."""
    for i in range(D.shape[0]):
        for w in range(words.shape[1]):
            near = ZERO
            for j in range(w * 32, min(D.shape[1], w * 32 + 32)):
                near = U32(near | (BIT[j - w * 32] if D[i, j] <= radius else ZERO))
            words[positions[i], w] = near


@njit(cache=True, nogil=True)
def put_columns(found: Words, places: Integers, words: Words) -> None:
    """Set bit places[j] of a row in `words` if its bit j in `found` is set."""
    for i in range(found.shape[0]):
        for w in range(found.shape[1]):
            if found[i, w]:
                for j in range(w * 32, min(places.shape[0], w * 32 + 32)):
                    if found[i, w] & BIT[j - w * 32]:
                        v = places[j]
                        words[i, v >> 5] = U32(words[i, v >> 5] | BIT[v & 31])
