"""The nearest points of several validation points, picked out of tiles of distances.

Each validation point has a row of candidates: distances, and the points they belong to in the order
of the input. A candidate is added if it is at or below the row's limit, beyond which no point can
be among the `kept` nearest. When a row becomes too full, it is shrunk, which lowers the limit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thresher.array_types import Floats, Integers, Numbers

GROUP = 64  # distances compared at once, before one of them is looked at
BINS = 1024


@njit(cache=True, nogil=True)
def collect(
    tile: Numbers, first: int, limits: Floats, counts: Integers, keys: Floats,
    points: Integers,
) -> None:  # fmt: skip
    """Add candidates among the points first, first + 1, ..., whose distances are columns of `tile`.

    Every row has room for all of them.
    """
    for r in range(tile.shape[0]):
        limit = limits[r]
        count = counts[r]
        for lo in range(0, tile.shape[1], GROUP):
            group = tile[r, lo : lo + GROUP]
            inside = 0
            for i in range(group.shape[0]):
                inside += int(group[i] <= limit)
            if inside == 0:
                continue
            for i in range(group.shape[0]):
                if group[i] <= limit:
                    keys[r, count] = group[i]
                    points[r, count] = first + lo + i
                    count += 1
        counts[r] = count


@njit(cache=True, nogil=True)
def merge(
    other_counts: Integers, other_keys: Floats, other_points: Integers, limits: Floats,
    counts: Integers, keys: Floats, points: Integers,
) -> None:  # fmt: skip
    """Add the candidates of other rows, whose points come later in the input."""
    for r in range(counts.shape[0]):
        count = counts[r]
        for i in range(other_counts[r]):
            if other_keys[r, i] <= limits[r]:
                keys[r, count] = other_keys[r, i]
                points[r, count] = other_points[r, i]
                count += 1
        counts[r] = count


@njit(cache=True, nogil=True)
def shrink(
    kept: int, room: int, errors: Floats, limits: Floats, counts: Integers, keys: Floats,
    points: Integers,
) -> int:  # fmt: skip
    """Shrink rows with more than `room` candidates; return how many still have more.

    If distances may be wrong by half an `error` each, everything that may be among the `kept`
    nearest stays. There is no limit on how many points may be that near to each other.
    """
    crowded = 0
    for r in range(counts.shape[0]):
        if counts[r] > room:
            counts[r], limits[r] = shrink_row(kept, errors[r], counts[r], keys[r], points[r])
            crowded += int(counts[r] > room)
    return crowded


@njit(cache=True, nogil=True)
def shrink_row(
    kept: int, error: float, count: int, keys: Floats, points: Integers
) -> tuple[int, float]:
    """Keep only the candidates that may be among the `kept` nearest, in their order.

    Return how many they are, and the limit for points that come later in the input. Without an
    error, later points with equal distances come after the present ones.
    """
    last = smallest(keys[:count], kept)
    nearer = 0
    for i in range(count):
        nearer += int(keys[i] < last)
    limit = last + error if error > 0.0 else np.nextafter(last, -np.inf)
    equal = kept - nearer if error == 0.0 else count  # of those at `last`
    left = 0
    for i in range(count):
        tied = keys[i] == last
        if keys[i] <= limit or (tied and equal > 0):
            equal -= int(tied)
            keys[left] = keys[i]
            points[left] = points[i]
            left += 1
    return left, limit


@njit(cache=True, nogil=True)
def smallest(numbers: Floats, rank: int) -> float:
    """The number of this rank, from 1; only the numbers in its histogram bin are sorted.

    Rounding is monotone, so bins are in the order of the numbers.
    """
    low = numbers[0]
    high = numbers[0]
    for x in numbers:
        low = min(low, x)
        high = max(high, x)
    scale = (BINS - 1) / (high - low) if high > low else 0.0
    if not (0.0 < scale < np.inf):
        return float(np.sort(numbers)[rank - 1])
    counts = np.zeros(BINS, np.int64)
    for x in numbers:
        counts[int((x - low) * scale)] += 1
    wanted = 0
    while rank > counts[wanted]:
        rank -= counts[wanted]
        wanted += 1
    found = np.empty(counts[wanted])
    size = 0
    for x in numbers:
        if int((x - low) * scale) == wanted:
            found[size] = x
            size += 1
    return float(np.sort(found)[rank - 1])
