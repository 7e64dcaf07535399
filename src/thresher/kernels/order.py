"""The order of all points by distance to one validation point, nearest first, ties by position.

A point is stored as one 64-bit key. The upper 32 bits are a pattern that sorts like its float32
distance. The lower ones are its index and whether its label matches. Rounding to float32 keeps the
order of float64 numbers unless it makes them equal, and a radix sort is stable. So only the order
within runs of equal patterns has to be restored from float64.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Floats, Integers, Numbers, Words
from thresher.array_types import LongWords as Keys

Codes = NDArray[np.int32]

U32 = np.uint32
U64 = np.uint64

RADIX_BITS = 12  # digits of at most 12 bits: three of them hold any pattern above the least
MANY = 1 << 19  # keys that leave the cache,
WIDE_BITS = 27  # and span more bits than this, are cut by their leading digit first
LEADING_BITS = 9
BUCKET_BITS = 8  # digits within a bucket


@njit(cache=True, nogil=True)
def fill_patterns(
    distances: Numbers, factor: float, patterns: Words
) -> tuple[np.uint32, np.uint32]:
    """Write 32 bits for every distance that sort, as unsigned integers, like its float32 rounding.

    `factor`, a power of two, brings the distances into the range of float32. Returns the least
    and the largest of the patterns.
    """
    rounded = patterns.view(np.float32)
    least = U32(0xFFFFFFFF)
    most = U32(0)
    for i in range(distances.shape[0]):
        rounded[i] = np.float32(distances[i] * factor) + np.float32(0)  # -0.0 is 0.0
    for i in range(distances.shape[0]):
        negative = U32(patterns[i] >> U32(31))
        pattern = U32(~patterns[i]) if negative else U32(patterns[i] | U32(0x80000000))
        patterns[i] = pattern
        least = min(least, pattern)
        most = max(most, pattern)
    return least, most


@njit(cache=True, nogil=True)
def sort_keys(
    patterns: Words, least: np.uint32, most: np.uint32, codes: Codes, code: int, keys: Keys,
    spare: Keys, histogram: Integers,
) -> None:  # fmt: skip
    """Fill `keys` with (pattern - least) << 32 | index << 1 | match, sorted by pattern, stable.

    All patterns lie between `least` and `most`.

    This is a least-significant-digit radix sort. Digits are fitted to the bits that really differ:
    two passes if the patterns span at most 24 bits, and otherwise three. `histogram` is 3 x 4096.
    For more keys than the cache holds, three passes by wide digits are slower than one by the
    leading digit followed by passes over each bucket.
    """
    n = patterns.shape[0]
    least = U32(least)
    span = U32(most - least)
    bits = 0
    while span:
        span = U32(span >> U32(1))
        bits += 1
    if n >= MANY and bits > WIDE_BITS:
        _sort_buckets(patterns, least, bits, codes, code, keys, spare, histogram)
        return
    passes = 2 if bits <= 2 * RADIX_BITS else 3
    q = max(1, (bits + passes - 1) // passes)
    mask = U32((1 << q) - 1)
    histogram[:, : 1 << q] = 0
    for i in range(n):
        key = U32(patterns[i] - least)
        histogram[0, key & mask] += 1
        histogram[1, U32(key >> U32(q)) & mask] += 1
        if passes == 3:
            histogram[2, U32(key >> U32(2 * q))] += 1
    for p in range(passes):
        start = 0
        for j in range(1 << q):
            here = histogram[p, j]
            histogram[p, j] = start
            start += here
    first, second = (spare, keys) if passes == 2 else (keys, spare)
    for i in range(n):
        key = U32(patterns[i] - least)
        digit = key & mask
        at = histogram[0, digit]
        histogram[0, digit] = at + 1
        match = U64(1) if codes[i] == code else U64(0)
        first[at] = (U64(key) << U64(32)) | (U64(i) << U64(1)) | match
    _scatter(first, second, U64(32 + q), U64(mask), histogram[1])
    if passes == 3:
        _scatter(second, first, U64(32 + 2 * q), U64(mask), histogram[2])


@njit(cache=True, nogil=True)
def _sort_buckets(
    patterns: Words, least: np.uint32, bits: int, codes: Codes, code: int, keys: Keys, spare: Keys,
    histogram: Integers,
) -> None:  # fmt: skip
    """`sort_keys` for many keys: a pass by the leading digit, then buckets that fit the cache."""
    n = patterns.shape[0]
    rest = bits - LEADING_BITS
    passes = (rest + BUCKET_BITS - 1) // BUCKET_BITS
    q = U64((rest + passes - 1) // passes)
    starts = histogram[0]
    starts[: (1 << LEADING_BITS) + 1] = 0
    for i in range(n):
        starts[(U32(patterns[i] - least) >> U32(rest)) + 1] += 1
    for j in range(1 << LEADING_BITS):
        starts[j + 1] += starts[j]
    place = histogram[1]
    place[: 1 << LEADING_BITS] = starts[: 1 << LEADING_BITS]
    first, second = (keys, spare) if passes % 2 == 0 else (spare, keys)
    for i in range(n):
        key = U32(patterns[i] - least)
        digit = key >> U32(rest)
        at = place[digit]
        place[digit] = at + 1
        match = U64(1) if codes[i] == code else U64(0)
        first[at] = (U64(key) << U64(32)) | (U64(i) << U64(1)) | match
    for j in range(1 << LEADING_BITS):
        lo = starts[j]
        hi = starts[j + 1]
        if lo < hi:
            _sort_bucket(first[lo:hi], second[lo:hi], passes, q, histogram[2])


@njit(cache=True, nogil=True)
def _sort_bucket(source: Keys, target: Keys, passes: int, q: np.uint64, count: Integers) -> None:
    """Sort by the lowest digits of the pattern, of q bits each, back and forth between arrays."""
    mask = U64((U64(1) << q) - U64(1))
    for p in range(passes):
        shift = U64(32) + U64(p) * q
        count[: mask + U64(1)] = 0
        for i in range(source.shape[0]):
            count[(source[i] >> shift) & mask] += 1
        start = 0
        for digit in range(mask + U64(1)):
            here = count[digit]
            count[digit] = start
            start += here
        _scatter(source, target, shift, mask, count)
        source, target = target, source


@njit(cache=True, nogil=True)
def _scatter(
    source: Keys, target: Keys, shift: np.uint64, mask: np.uint64, starts: Integers
) -> None:
    for i in range(source.shape[0]):
        key = source[i]
        digit = (key >> shift) & mask
        at = starts[digit]
        starts[digit] = at + 1
        target[at] = key


@njit(cache=True, nogil=True)
def restore_order(keys: Keys, distances: Numbers) -> None:
    """Sort runs of equal float32 patterns by float64 distance; equal distances keep their order."""
    n = keys.shape[0]
    i = 1
    while i < n:
        pattern = keys[i] >> U64(32)
        if pattern != keys[i - 1] >> U64(32):
            i += 1
            continue
        first = i - 1
        while i < n and keys[i] >> U64(32) == pattern:
            i += 1
        _sort_run(keys, first, i, distances)


@njit(cache=True, nogil=True)
def _sort_run(keys: Keys, first: int, end: int, distances: Numbers) -> None:
    """Sort keys[first:end] by float64 distance, stable: by insertion if short, else by merging."""
    if end - first > 32:
        run = keys[first:end].copy()
        values = np.empty(end - first, np.float64)
        for j in range(end - first):
            values[j] = distances[U32(run[j]) >> U32(1)]
        if np.all(values[1:] >= values[:-1]):
            return
        order = np.argsort(values, kind="mergesort")
        for j in range(end - first):
            keys[first + j] = run[order[j]]
        return
    for i in range(first + 1, end):
        key = keys[i]
        own = distances[U32(key) >> U32(1)]
        j = i
        while j > first and distances[U32(keys[j - 1]) >> U32(1)] > own:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@njit(cache=True, nogil=True)
def order_points(
    distances: Numbers, factor: float, exact: bool, codes: Codes, code: int, patterns: Words,
    keys: Keys, spare: Keys, histogram: Integers,
) -> np.uint32:  # fmt: skip
    """Fill `keys` with all points, nearest first; if `exact`, in the order of float64.

    Returns the least pattern, from which the keys' patterns are counted.
    """
    least, most = fill_patterns(distances, factor, patterns)
    sort_keys(patterns, least, most, codes, code, keys, spare, histogram)
    if exact:
        restore_order(keys, distances)
    return least


@njit(cache=True, nogil=True)
def move_to_front(keys: Keys, point: int) -> None:
    """Move the key of a point to the front; the others keep their order.

    A point that judges others is its own nearest one, or nearly so, so there is little to move.
    """
    at = 0
    while U32(keys[at]) >> U32(1) != point:
        at += 1
    key = keys[at]
    while at > 0:
        keys[at] = keys[at - 1]
        at -= 1
    keys[0] = key


@njit(cache=True, nogil=True)
def mixed_runs(
    keys: Keys, distances: Floats, error: float, band: Words, least: np.uint32,
    runs: Integers,
) -> tuple[int, int]:  # fmt: skip
    """Find runs of sorted keys in which each gap between distances is at most `error`.

    Only runs with matching *and* other points are kept, because points with equal matches have
    equal values in any order. Fill `runs` with (first, end), and return how many there are and the
    number of their points. Outside the patterns of `band`, distances whose patterns are two apart
    differ by more than `error`, so the distances themselves need not be looked up. The keys'
    patterns are counted from `least`.
    """
    n = keys.shape[0]
    low = np.int64(band[0]) - np.int64(least)
    high = np.int64(band[1]) - np.int64(least)
    count = 0
    points = 0
    first = 0
    while first < n - 1:
        here = np.int64(keys[first] >> U64(32))
        after = np.int64(keys[first + 1] >> U64(32))
        if after - here > 1 and (after < low or here > high):
            first += 1
            continue
        last = distances[U32(keys[first]) >> U32(1)]
        matches = np.int64(keys[first] & U64(1))
        end = first + 1
        while end < n and distances[U32(keys[end]) >> U32(1)] - last <= error:
            last = distances[U32(keys[end]) >> U32(1)]
            matches += np.int64(keys[end] & U64(1))
            end += 1
        if 0 < matches < end - first:
            runs[count, 0] = first
            runs[count, 1] = end
            count += 1
            points += end - first
        first = end
    return count, points


@njit(cache=True, nogil=True)
def run_points(keys: Keys, runs: Integers, points: Integers) -> None:
    """The points that the runs hold."""
    count = 0
    for j in range(runs.shape[0]):
        for r in range(runs[j, 0], runs[j, 1]):
            points[count] = np.int64(U32(keys[r]) >> U32(1))
            count += 1


@njit(cache=True, nogil=True)
def sort_runs(keys: Keys, runs: Integers, distances: Floats) -> None:
    """Sort the keys of each run by distance, then by position."""
    for j in range(runs.shape[0]):
        first = runs[j, 0]
        end = runs[j, 1]
        by_position = np.sort(keys[first:end] & U64(0xFFFFFFFF))
        keys[first:end] = by_position
        _sort_run(keys, first, end, distances)
