"""The pair rule: float64 numbers of one row or one pair of rows, in a fixed order of operations.

Every result depends, bit for bit, only on the rows it is given. Other rows, blocks, threads and the
dtype of a matrix product have no effect. Sums run in a few lanes, or in 64 for wide rows (lane j
takes the features j, j + 64, ..., and the lanes are added in a fixed tree). So the order is as
fixed as with one lane, and the sums are as fast as vectors.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Bytes, Floats, Integers, LongWords, Numbers, Words

U32 = np.uint32
LANES = 64
WIDE = 128  # from so many features on rows are summed in many lanes
PANEL = 64  # validation points that one row meets at a time


@njit(cache=True, nogil=True)
def dot(x: Numbers, v: Numbers) -> float:
    """The dot product sum_k x_k v_k in float64."""
    return _dot(x, v, x.shape[0]) if x.shape[0] < WIDE else _wide_dot(x, v)


@njit(cache=True, nogil=True)
def squared_distance(x: Numbers, v: Numbers) -> float:
    """sum_k (x_k - v_k)^2 in float64; exactly 0 for equal rows."""
    return _squared_distance(x, v) if x.shape[0] < WIDE else _wide_squared_distance(x, v)


@njit(cache=True, nogil=True)
def _dot(x: Numbers, v: Numbers, n: int) -> float:
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = n - n % 8
    for k in range(0, whole, 8):
        a0 += np.float64(x[k]) * np.float64(v[k])
        a1 += np.float64(x[k + 1]) * np.float64(v[k + 1])
        a2 += np.float64(x[k + 2]) * np.float64(v[k + 2])
        a3 += np.float64(x[k + 3]) * np.float64(v[k + 3])
        a4 += np.float64(x[k + 4]) * np.float64(v[k + 4])
        a5 += np.float64(x[k + 5]) * np.float64(v[k + 5])
        a6 += np.float64(x[k + 6]) * np.float64(v[k + 6])
        a7 += np.float64(x[k + 7]) * np.float64(v[k + 7])
    for k in range(whole, n):
        a0 += np.float64(x[k]) * np.float64(v[k])
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@njit(cache=True, nogil=True)
def _squared_distance(x: Numbers, v: Numbers) -> float:
    a0 = a1 = a2 = a3 = 0.0
    n = x.shape[0]
    whole = n - n % 4
    for k in range(0, whole, 4):
        t0 = np.float64(x[k]) - np.float64(v[k])
        t1 = np.float64(x[k + 1]) - np.float64(v[k + 1])
        t2 = np.float64(x[k + 2]) - np.float64(v[k + 2])
        t3 = np.float64(x[k + 3]) - np.float64(v[k + 3])
        a0 += t0 * t0
        a1 += t1 * t1
        a2 += t2 * t2
        a3 += t3 * t3
    for k in range(whole, n):
        t0 = np.float64(x[k]) - np.float64(v[k])
        a0 += t0 * t0
    return (a0 + a1) + (a2 + a3)


@njit(cache=True, nogil=True)
def _wide_dot(x: Numbers, v: Numbers) -> float:
    lanes = np.zeros(LANES)
    for c in range(0, x.shape[0], LANES):
        xs = x[c : c + LANES]
        vs = v[c : c + LANES]
        for j in range(xs.shape[0]):
            lanes[j] += np.float64(xs[j]) * np.float64(vs[j])
    return _added_up(lanes)


@njit(cache=True, nogil=True)
def _wide_squared_distance(x: Numbers, v: Numbers) -> float:  # apart, so that both are vectors
    lanes = np.zeros(LANES)
    for c in range(0, x.shape[0], LANES):
        xs = x[c : c + LANES]
        vs = v[c : c + LANES]
        for j in range(xs.shape[0]):
            t = np.float64(xs[j]) - np.float64(vs[j])
            lanes[j] += t * t
    return _added_up(lanes)


@njit(cache=True, nogil=True)
def _added_up(lanes: Floats) -> float:
    """The sum of the lanes: the upper half is added to the lower half until one is left."""
    half = LANES // 2
    while half > 0:
        for j in range(half):
            lanes[j] += lanes[j + half]
        half //= 2
    return lanes[0]


@njit(cache=True, nogil=True)
def squared_norms(X: Numbers, dims: tuple[int, ...], out: Floats) -> None:
    """|x|^2 of every row; NaN or infinite where the row holds such a number.

    If `dims` has an entry for each feature, its type makes their number a constant of the loop.
    """
    for i in range(X.shape[0]):
        out[i] = _dot(X[i], X[i], len(dims)) if len(dims) > 0 else dot(X[i], X[i])


@njit(cache=True, nogil=True)
def similarity(x: Numbers, v: Numbers, x2: float, v2: float) -> float:
    """The cosine of the angle between two rows, 0 if one is zero; x2 = |x|^2 and v2 = |v|^2."""
    return _cosine(dot(x, v), x2 * v2)


@njit(cache=True, nogil=True, error_model="numpy")  # no test for 0, so that loops are vectors
def _cosine(product: float, scale: float) -> float:
    return product / np.sqrt(scale) if scale > 0.0 else 0.0


@njit(cache=True, nogil=True)
def distance(x: Numbers, v: Numbers, x2: float, v2: float, cosine: bool) -> float:
    """The distance of the pair in the metric's own units."""
    if cosine:
        return 1.0 - similarity(x, v, x2, v2)
    return np.sqrt(squared_distance(x, v))


@njit(cache=True, nogil=True)
def is_near(x: Numbers, v: Numbers, x2: float, v2: float, cosine: bool, radius: float) -> bool:
    """Whether the distance of the pair is at most `radius`.

    A distance that `distance` computes as equal to the radius counts, and so does a cosine
    similarity that is computed as equal to 1 - radius. Either of the two subtractions from 1 may
    round the wrong way (similarity 0.7 at radius 0.3, or 0.3 at 0.7).
    """
    if cosine:
        return _alike_enough(dot(x, v), x2 * v2, radius)
    return np.sqrt(squared_distance(x, v)) <= radius


@njit(cache=True, nogil=True)
def _alike_enough(product: float, scale: float, radius: float) -> bool:
    alike = _cosine(product, scale)
    return (radius >= 2.0) | (1.0 - alike <= radius) | (alike >= 1.0 - radius)


@njit(cache=True, nogil=True)
def order_key(x: Numbers, v: Numbers, x2: float, v2: float, cosine: bool) -> float:
    """A number that orders points like their distances to v, with fewer roundings.

    It is the squared distance, or minus the squared cosine with its sign. For integers, only one
    division is rounded, so equal distances, such as those of parallel rows, give equal numbers.
    """
    if not cosine:
        return squared_distance(x, v)
    product = dot(x, v)
    return -product * abs(product) / (x2 * v2)


@njit(cache=True, nogil=True)
def settle(
    notes: Words, rows: Integers, X: Numbers, x2: Floats, V: Floats, v2: Floats, cosine: bool,
    radius: float, positions: Words, words: Words,
) -> None:  # fmt: skip
    """Decide every noted pair by the pair rule; X[rows[j]] is the row that note j is about."""
    for j in range(notes.shape[0]):
        i = notes[j, 0]
        w = notes[j, 1]
        word = words[positions[i], w]
        for bit in range(32):
            v = w * 32 + bit
            mask = U32(U32(1) << U32(bit))
            if notes[j, 2] & mask and v < V.shape[0]:
                if is_near(X[rows[j]], V[v], x2[i], v2[v], cosine, radius):
                    word = U32(word | mask)
                else:
                    word = U32(word & ~mask)
        words[positions[i], w] = word


@njit(cache=True, nogil=True)
def settle_visits(
    notes: Words, first_rows: Integers, queries: Words, order: Words, X: Numbers, x2: Floats,
    V: Floats, v2: Floats, cosine: bool, radius: float, words: Words,
) -> None:  # fmt: skip
    """Decide every noted pair by the pair rule if the words of a visit are about points.

    Note j is about visit notes[j, 0] of validation point queries[visit], whose bits are the points
    X[order[first_rows[j]]] and so on.
    """
    for j in range(notes.shape[0]):
        t = notes[j, 0]
        w = notes[j, 1]
        v = queries[t]
        word = words[t, w]
        for bit in range(32):
            mask = U32(U32(1) << U32(bit))
            place = first_rows[j] + w * 32 + bit
            if notes[j, 2] & mask and place < order.shape[0]:
                i = order[place]
                if is_near(X[i], V[v], x2[i], v2[v], cosine, radius):
                    word = U32(word | mask)
                else:
                    word = U32(word & ~mask)
        words[t, w] = word


@njit(cache=True, nogil=True)
def pair_codes(
    rows: Integers, X: Numbers, x2: Floats, queries: Integers, V: Floats, v2: Floats, cosine: bool,
    edges: Floats, out: Bytes,
) -> None:  # fmt: skip
    """How many of the edges each pair (rows[j], queries[j]) is within, by the pair rule."""
    for j in range(rows.shape[0]):
        i, v = rows[j], queries[j]
        product = dot(X[i], V[v]) if cosine else np.sqrt(squared_distance(X[i], V[v]))
        out[j] = _edges_around(product, x2[i] * v2[v], cosine, edges)


@njit(cache=True, nogil=True)
def _edges_around(product: float, scale: float, cosine: bool, edges: Floats) -> int:
    """For how many edges `is_near` holds; for the euclidean metric, `product` is the distance."""
    count = 0
    for e in range(edges.shape[0]):
        if cosine:
            count += _alike_enough(product, scale, edges[e])
        else:
            count += product <= edges[e]
    return count


@njit(cache=True, nogil=True)
def pair_keys(X: Floats, x2: Floats, v: Floats, v2: float, cosine: bool, out: Floats) -> None:
    """The order keys of the rows of X by the pair rule."""
    for i in range(X.shape[0]):
        out[i] = order_key(X[i], v, x2[i], v2, cosine)


@njit(cache=True, nogil=True)
def pair_distances(X: Floats, x2: Floats, v: Floats, v2: float, cosine: bool, out: Floats) -> None:
    """The distances of the rows of X to v by the pair rule, in the metric's own units."""
    for i in range(X.shape[0]):
        out[i] = distance(X[i], v, x2[i], v2, cosine)


@njit(cache=True, nogil=True)
def fingerprints(X: Floats, salt: Integers, out: LongWords) -> None:
    """A 64-bit number for each row and its integer of `salt`, equal only for equal rows.

    Rows are compared as float64 numbers (so -0.0 is 0.0), whatever their dtype is. Two different
    rows agree with probability 2^-64, but somebody could construct rows that agree.
    """
    bits = (X + 0.0).view(np.uint64)
    for i in range(X.shape[0]):
        out[i] = _fingerprint(bits[i], salt[i])


@njit(cache=True, nogil=True)
def fingerprint(x: Floats, salt: int) -> int:
    """The number that `fingerprints` gives one row."""
    return _fingerprint((x + 0.0).view(np.uint64), np.int64(salt))  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def _fingerprint(bits: LongWords, salt: np.int64) -> np.uint64:
    multiplier = np.uint64(0x9E3779B97F4A7C15)
    shift = np.uint64(29)
    h = np.uint64(salt) * multiplier + np.uint64(0x243F6A8885A308D3)
    for k in range(bits.shape[0]):
        h = (h ^ bits[k]) * multiplier
        h ^= h >> shift
    return h


@njit(cache=True)
def move_row(
    x: Floats, panels: Floats, v2: Floats, codes: NDArray[np.int32], cosine: bool, edges: Floats,
    bounds: tuple[float, float], leave: int, enter: int, twins: bool, counts: Integers,
) -> bool:  # fmt: skip
    """Count row x out of class `leave` and into class `enter` (-1 is none), by the pair rule.

    The first half of `counts` is for the label of a validation point, and the second for other
    labels. Each has one row for each ring, the innermost first.

    Return False and change nothing if |x|^2 is not within `bounds` or, with `twins`, if x is a
    validation row. `panels[p, k, j]` is feature k of validation point 64 p + j: the pair rule is
    applied to 64 pairs at once, each in its own order. The interpreter's lock is kept, so nobody
    sees half an update.
    """
    x2 = dot(x, x)
    if not bounds[0] <= x2 <= bounds[1]:
        return False
    if twins and _is_among(x, x2, panels, v2):
        return False
    lanes = np.empty((LANES, PANEL))
    near, before = np.empty(PANEL, np.int64), np.empty(PANEL, np.int64)
    change = np.int64(enter >= 0) - np.int64(leave >= 0)
    for p in range(panels.shape[0]):
        lo = p * PANEL
        n = min(PANEL, v2.shape[0] - lo)
        _panel_sums(x, panels[p], cosine, lanes)
        before[:] = 0
        for e in range(edges.shape[0]):
            if cosine:
                for j in range(n):
                    near[j] = _alike_enough(lanes[0, j], x2 * v2[lo + j], edges[e])
            else:
                for j in range(n):
                    near[j] = np.sqrt(lanes[0, j]) <= edges[e]
            for j in range(n):
                code = codes[lo + j]
                same = np.int64(code == enter) - np.int64(code == leave)
                counts[e, lo + j] += (near[j] - before[j]) * same
                counts[edges.shape[0] + e, lo + j] += (near[j] - before[j]) * (change - same)
                before[j] = near[j]
    return True


@njit(cache=True)
def _is_among(x: Floats, x2: float, panels: Floats, v2: Floats) -> bool:
    """Whether x is a validation row; equal rows have equal norms, bit for bit."""
    for v in range(v2.shape[0]):
        if v2[v] == x2:
            k = 0
            while k < x.shape[0] and panels[v // PANEL, k, v % PANEL] == x[k]:
                k += 1
            if k == x.shape[0]:
                return True
    return False


@njit(cache=True)
def _panel_sums(x: Floats, panel: Floats, cosine: bool, a: Floats) -> None:
    """Set a[0, j] to `dot` or `squared_distance` of x and validation point j, to the last bit.

    A few lanes are added up in neighboring pairs, and many as in `_added_up`.
    """
    n = x.shape[0]
    few = 8 if cosine else 4
    count = few if n < WIDE else LANES
    whole = n - n % count if n < WIDE else n  # the rest of few lanes goes to the first
    a[:count] = 0.0
    for k in range(n):
        lane = k % count if k < whole else 0
        if cosine:
            for j in range(PANEL):
                a[lane, j] += x[k] * panel[k, j]
        else:
            for j in range(PANEL):
                t = x[k] - panel[k, j]
                a[lane, j] += t * t
    left = count
    while left > 1:
        left //= 2
        apart = count // (2 * left) if n < WIDE else left  # from a lane to the one added to it
        for i in range(left):
            lane = i * count // left if n < WIDE else i
            for j in range(PANEL):
                a[lane, j] += a[lane + apart, j]
