"""Ranks and percentiles of values on disk, in bounded memory.

Values are parted by splitters, of which a sample of them knows the right ones. What equals a
splitter is ranked by counting, which is how ties of any number are dealt with; what lies between
two is few, and is sorted in memory, range after range.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError

CHUNK = 1 << 18  # values looked at together
SAMPLE = 1 << 12  # splitters
ROW = 64  # bytes that sorting takes for each value

Values = NDArray[np.float64]
Places = NDArray[np.int64]


def rank_values(values: Values, rank: Places, below: Places, *, room: int = 1 << 28) -> None:
    """Fill in the rank of each value (1 is the lowest, equal ones by position) and those below it.

    Parameters
    ----------
    values
        The values; any array or memmap.
    rank, below
        Where the ranks go, and how many values are lower.
    room
        The bytes that may be used.

    Examples
    --------
    >>> values = np.array([0.5, -1.0, 0.5, 0.0])
    >>> rank, below = np.empty(4, np.int64), np.empty(4, np.int64)
    >>> rank_values(values, rank, below)
    >>> rank.tolist(), below.tolist()
    ([3, 1, 4, 2], [2, 0, 2, 1])
    """
    most = max(CHUNK, room // ROW)
    splitters, counts = _splitters(values, most)
    starts = np.concatenate([[0], np.cumsum(counts)])
    _rank_equal(values, splitters, starts, rank, below)
    for low, high in _ranges(counts, most):
        _rank_between(values, splitters, (low, high), starts, rank, below)


def _splitters(values: Values, most: int) -> tuple[Values, Places]:
    """Splitters that leave at most so many values between them, and how many are in each bucket.

    Bucket 2i is what lies below splitter i and above the one before, bucket 2i + 1 what equals it.
    """
    splitters = np.unique(_sample(values, None, np.empty(0)))
    for _ in range(64):  # each time the largest ranges shrink by a factor of hundreds
        counts = _counts(values, splitters)
        large = np.flatnonzero((counts > most) & (np.arange(len(counts)) % 2 == 0))
        if not len(large):
            return splitters, counts
        found = [_sample(values, int(bucket), splitters) for bucket in large]
        splitters = np.unique(np.concatenate([splitters, *found]))
    raise InputError("values cannot be ranked: some of them are NaN")


def _sample(values: Values, bucket: int | None, splitters: Values) -> Values:
    """Some of the values, or of those in one bucket, at even steps."""
    quota = max(1, SAMPLE * CHUNK // max(CHUNK, len(values)))
    found = []
    for _, part in _parts(values):
        some = part if bucket is None else part[_buckets(part, splitters) == bucket]
        found.append(some[:: max(1, len(some) // quota)])
    return np.concatenate(found)


def _buckets(part: Values, splitters: Values) -> Places:
    left = np.searchsorted(splitters, part, side="left")
    return left + np.searchsorted(splitters, part, side="right")


def _counts(values: Values, splitters: Values) -> Places:
    counts = np.zeros(2 * len(splitters) + 1, np.int64)
    for _, part in _parts(values):
        counts += np.bincount(_buckets(part, splitters), minlength=len(counts))
    return counts


def _rank_equal(
    values: Values, splitters: Values, starts: Places, rank: Places, below: Places
) -> None:
    """Those that equal a splitter, in the order of their positions."""
    seen = np.zeros(len(starts), np.int64)
    for lo, part in _parts(values):
        buckets = _buckets(part, splitters)
        which = np.flatnonzero(buckets % 2)
        order = which[np.argsort(buckets[which], kind="stable")]
        mine = buckets[order]
        found, first, times = np.unique(mine, return_index=True, return_counts=True)
        within = np.arange(len(mine)) - np.repeat(first, times)
        rank[lo + order] = starts[mine] + seen[mine] + within + 1
        below[lo + order] = starts[mine]
        seen[found] += times


def _ranges(counts: Places, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive buckets that together have at most so many values between splitters."""
    low, total = 0, 0
    for bucket in range(0, len(counts), 2):
        if total and total + counts[bucket] > most:
            yield low, bucket - 1
            low, total = bucket, 0
        total += int(counts[bucket])
    if total:
        yield low, len(counts) - 1


def _rank_between(
    values: Values, splitters: Values, ends: tuple[int, int], starts: Places, rank: Places,
    below: Places,
) -> None:  # fmt: skip
    """Those between splitters, in the buckets of a range."""
    places, found = [], []
    for lo, part in _parts(values):
        buckets = _buckets(part, splitters)
        which = np.flatnonzero((buckets >= ends[0]) & (buckets <= ends[1]) & (buckets % 2 == 0))
        places.append(lo + which)
        found.append(part[which])
    rows, numbers = np.concatenate(places), np.concatenate(found)
    del places, found
    order = np.argsort(numbers, kind="stable")
    rows, numbers = rows[order], numbers[order]
    buckets = _buckets(numbers, splitters)
    first = np.searchsorted(buckets, buckets, side="left")  # sorted values have sorted buckets
    rank[rows] = starts[buckets] + np.arange(len(rows)) - first + 1
    below[rows] = starts[buckets] + np.searchsorted(numbers, numbers, side="left") - first


def _parts(values: Values) -> Iterator[tuple[int, Values]]:
    for lo in range(0, len(values), CHUNK):
        yield lo, np.asarray(values[lo : lo + CHUNK])
