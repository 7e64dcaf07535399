"""The nearest points of every validation point, in order, without sorting all points.

Points stream by in tiles, each tile once for many validation points. A validation point has a row
of candidates (`kernels.select`): at most twice as many as are wanted, plus a tile. A point whose
distance exceeds that of the last one wanted by more than the error of the arithmetic is not among
the nearest by the pair rule, so it is never looked at again. If near ties fill a row, the pair rule
settles it. Hence the points kept are those of a full sort, and so is their order as far as values
depend on it, whatever the tiles and the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.inputs.checked_inputs import Points, Validation
from thresher.inputs.labels import Codes
from thresher.inputs.precomputed import Distances
from thresher.kernels.select import collect, merge, shrink, shrink_row
from thresher.neighbors.sorting import settle_ties
from thresher.neighbors.tiles import Tiles, tiles
from thresher.threads import cut, in_order, one_blas_thread, take

TILE_NUMBERS = 1 << 17  # in a tile of points, and in one of distances
TILE_POINTS = 4096
SPAN = 1 << 16  # points of one job
CANDIDATE_BYTES = 32 << 20  # held by one thread, for as many validation points as they suffice for
PARALLEL_PAIRS = 1 << 20  # fewer are not worth a thread
PARALLEL_SORT = 1 << 15
Fill = Callable[[int, int, NDArray[Any]], None]
ALL_PATTERNS = np.array([0, 2**32 - 1], np.uint32)


def closest(
    points: Points, validation: Validation, kept: int, precision: str, advance: Any
) -> Iterator[NDArray[np.uint64]]:
    """For every validation point its `kept` nearest points as keys: index << 1 | match.

    There must be more than `kept` points; if points judge each other, none is in its own list.
    """
    rows = points.rows
    width = 1 if isinstance(rows, Distances) else rows.width
    most = max(1, CANDIDATE_BYTES // (16 * (2 * kept + TILE_POINTS)))
    for part in tiles(points, validation, precision, most):
        count = part.stop - part.start
        height = max(64, min(TILE_POINTS, TILE_NUMBERS // max(width, count)))
        fill = _fill_others(part) if validation.mutual else part.fill
        found = _search(part, fill, len(points), kept, precision, height, advance)
        codes = validation.codes[part.start : part.stop].tolist()
        rows_left = [(r, points.codes, code) for r, code in enumerate(codes)]
        yield from in_order(found.ranked, rows_left, parallel=count * kept >= PARALLEL_SORT)


def _fill_others(part: Tiles) -> Fill:
    """How tiles are filled if points judge each other: no point is in its own list."""

    def fill(first: int, end: int, out: NDArray[Any]) -> None:
        part.fill(first, end, out)
        ahead = first - part.start  # of the first judge
        judges = np.arange(max(0, ahead), min(len(out), end - part.start))
        out[judges, judges - ahead] = np.nan  # never at or below a limit

    return fill


def _search(
    part: Tiles, fill: Fill, n: int, kept: int, precision: str, height: int, advance: Any
) -> _Candidates:
    """The candidates among all points, one span of them after the other."""
    count = part.stop - part.start
    total = _Candidates(part, kept, 3 * kept)
    spare: SimpleQueue[tuple[_Candidates, NDArray[Any]]] = SimpleQueue()

    def job(first: int, end: int) -> tuple[_Candidates, NDArray[Any]]:
        work = take(spare)
        if work is None:
            work = _Candidates(part, kept, 2 * kept + height), np.empty(count * height, precision)
        found, numbers = work
        found.clear(total.limits)
        for lo, hi in cut(first, end, height):
            tile = numbers[: count * (hi - lo)].reshape(count, hi - lo)
            fill(lo, hi, tile)
            found.add(tile, lo)
        found.shrink(kept)
        if advance is not None:
            advance((end - first) * count)
        return work

    spans = cut(0, n, max(SPAN, 16 * kept))
    with one_blas_thread():
        for work in in_order(job, spans, parallel=n * count >= PARALLEL_PAIRS):
            total.merge(work[0])
            spare.put(work)
    total.shrink(kept)
    return total


class _Candidates:
    """Rows of candidates, one for each validation point of the tiles."""

    def __init__(self, part: Tiles, kept: int, capacity: int) -> None:
        self.tiles, self.kept = part, kept
        count = part.stop - part.start
        self.errors = np.array([part.error(v) for v in range(part.start, part.stop)])
        self.limits = np.full(count, np.inf)
        self.counts = np.zeros(count, np.int64)
        self.keys = np.empty((count, capacity))
        self.points = np.empty((count, capacity), np.int64)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels read and write."""
        return self.limits, self.counts, self.keys, self.points

    def clear(self, limits: NDArray[np.float64]) -> None:
        """Remove all candidates; earlier points have set the limits.

        Another thread may be lowering the limits. Which points are let in depends on that, but not
        which are left in the end.
        """
        self.limits[:] = limits
        self.counts[:] = 0

    def add(self, tile: NDArray[Any], first: int) -> None:
        """Let in points of a tile; rows keep room for the next one."""
        collect(tile, first, *self.arrays)
        self.shrink(2 * self.kept)

    def merge(self, other: _Candidates) -> None:
        """Let in the candidates of a later span."""
        merge(other.counts, other.keys, other.points, *self.arrays)
        np.minimum(self.limits, other.limits, out=self.limits)
        self.shrink(2 * self.kept)

    def shrink(self, room: int) -> None:
        """Leave at most `room` candidates, by the pair rule where distances cannot tell."""
        if not shrink(self.kept, room, self.errors, *self.arrays):
            return
        for r in np.flatnonzero(self.counts > room):
            count, error = int(self.counts[r]), float(self.errors[r])
            keys, points = self.keys[r], self.points[r]
            keys[:count] = self.tiles.pair_keys(self.tiles.start + int(r), points[:count])
            self.counts[r], _ = shrink_row(self.kept, 0.0, count, keys, points)
            self.limits[r] = keys[: self.kept].max() + error

    def ranked(self, r: int, codes: Codes, code: int) -> NDArray[np.uint64]:
        """The candidates of row r, `kept` of them, nearest first."""
        distances = self.keys[r, : self.kept].copy()
        points = self.points[r, : self.kept]
        order = np.argsort(distances, kind="stable")  # candidates are in the order of the input
        match = codes[points] == code
        keys = (order.astype(np.uint64) << np.uint64(1)) | match[order]
        if self.errors[r] > 0.0:
            runs, v = np.empty((self.kept // 2 + 1, 2), np.int64), self.tiles.start + r
            settle_ties(
                keys, distances, float(self.errors[r]), ALL_PATTERNS, np.uint32(0), runs,
                lambda ties: self.tiles.pair_keys(v, points[ties]),
            )  # fmt: skip
        order = (keys >> np.uint64(1)).astype(np.int64)
        return (points[order].astype(np.uint64) << np.uint64(1)) | match[order]
