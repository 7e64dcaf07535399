"""All points in the order of their distance to a validation point, from one of three sources.

Distances come from tiles, a table for some validation points at a time. For few features and few
points they are summed directly from a transposed copy. Or the caller computed them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.inputs.checked_inputs import Points, Validation
from thresher.inputs.labels import Codes
from thresher.inputs.precomputed import Distances, refuse_nan
from thresher.kernels.distances import direct_keys
from thresher.kernels.order import fill_patterns, mixed_runs, order_points, run_points, sort_runs
from thresher.metrics import CHUNK, Rows
from thresher.neighbors.tiles import (
    DIRECT_WIDTH,
    Computed,
    GivenTiles,
    Judge,
    Tiles,
    pair_table,
    tiles,
)
from thresher.threads import cut, one_blas_thread, run

COPY_BYTES = 64 << 20  # of points that are copied whole, transposed
TABLE_BYTES = 96 << 20  # of distances held at once, where they come from a product
LEAST_ROWS = 8
PAIRS = 1 << 22  # distances that are held at a time by `orders`
PARALLEL_PRODUCT = 1 << 24  # fewer multiplications are not worth a thread


@dataclass(frozen=True)
class Bench:
    """The buffers of one thread; after `order` its keys are the points, nearest first."""

    distances: NDArray[np.float64]
    patterns: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    spare: NDArray[np.uint64]
    histogram: NDArray[np.int64]

    @classmethod
    def of(cls, n: int) -> Bench:
        """Buffers for n points."""
        keys = (np.empty(n, np.uint64), np.empty(n, np.uint64))
        buffers = (np.empty(n), np.empty(n, np.uint32), *keys)  # untouched memory costs nothing
        return cls(*buffers, np.empty((3, 4096), np.int64))


def order(bench: Bench, source: Source, v: int, codes: Codes, code: int) -> None:
    """Fill the bench's keys with all points, nearest to validation point v first."""
    exact = source.precision == "float64"
    distances = source.distances(v, bench.distances)
    least = order_points(
        distances, source.factor, exact, codes, code,
        bench.patterns, bench.keys, bench.spare, bench.histogram,
    )  # fmt: skip
    error = source.error(v) if exact else 0.0
    if error == 0.0:
        return
    spare = bench.spare.view(np.int64)
    runs = spare[: len(spare) // 2 * 2].reshape(-1, 2)
    # where a distance exceeds this, its float32 neighbors are more than the error away
    band, widest = np.empty(2, np.uint32), 2.0**25 * error
    fill_patterns(np.array([-widest, widest]), source.factor, band)
    settle_ties(
        bench.keys, distances, error, band, least, runs, lambda ties: source.pair_keys(v, ties)
    )


def settle_ties(
    keys: NDArray[np.uint64], distances: NDArray[Any], error: float, band: NDArray[np.uint32],
    least: np.uint32, runs: NDArray[np.int64],
    pair_keys: Callable[[NDArray[np.int64]], NDArray[np.float64]],
) -> None:  # fmt: skip
    """Put near ties that differ in match in the order of the pair rule; others do not matter.

    `pair_keys` has the pair rule's numbers; see `kernels.order.mixed_runs` for all else.
    """
    count, size = mixed_runs(keys, distances, error, band, least, runs)
    if count:
        ties = np.empty(size, np.int64)
        run_points(keys, runs[:count], ties)
        distances[ties] = pair_keys(ties)
        sort_runs(keys, runs[:count], distances)


class Source(Judge, Protocol):
    """Distances of all points to the validation points start..stop, in turn."""

    precision: str

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:
        """Numbers that sort as the distances to validation point v; may use the buffer."""


def sources(
    points: Points, validation: Validation, precision: str, step: int = 1
) -> Iterator[Source]:
    """Where the distances come from, for one range of validation points after the other.

    Ranges of distances that the caller computed begin at multiples of `step`, however they are cut.
    """
    rows = points.rows
    if isinstance(rows, Distances):
        for columns, part in rows.blocks(step):
            yield _Given(columns.start, columns.stop, part, precision=precision)
    elif rows.width <= DIRECT_WIDTH and _copy_bytes(rows) <= COPY_BYTES:
        yield _Direct(rows, validation, precision)
    else:
        most = max(LEAST_ROWS, TABLE_BYTES // (np.dtype(precision).itemsize * len(rows)))
        table = np.empty((min(most, len(validation)), len(rows)), precision)  # new memory is dear
        for some in tiles(points, validation, precision, most):
            yield _Table(some, precision, table, rows.width)


def _copy_bytes(rows: Rows) -> int:
    return len(rows) * rows.width * max(4, rows.array.dtype.itemsize)


@dataclass
class _Given(GivenTiles):
    """Distances that the caller computed."""

    precision: str = "float64"

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:
        buffer[:] = self.part[:, v - self.start]
        refuse_nan(buffer[:, None], 0, v)
        return buffer


class _Direct(Computed):
    """Distances by summing over features in float64, in the same order for every pair."""

    def __init__(self, points: Rows, validation: Validation, precision: str) -> None:
        super().__init__(0, len(validation), precision, points, validation)
        wide = np.float64 if points.array.dtype == np.float64 else np.float32
        self.columns: NDArray[Any] = np.ascontiguousarray(points.part(slice(None)).T, wide)
        self.dims = (0,) * points.width

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:
        direct_keys(
            self.columns, self.dims, self.points.squares, self.V[v], float(self.v2[v]),
            self.cosine, buffer,
        )  # fmt: skip
        return buffer


class _Table:
    """Distances from tiles, all points against a few validation points at a time."""

    def __init__(self, part: Tiles, precision: str, table: NDArray[Any], width: int) -> None:
        self.start, self.stop, self.precision = part.start, part.stop, precision
        self.tiles, self.factor, self.width = part, part.factor, width
        self.error, self.pair_keys = part.error, part.pair_keys
        self.table = table[: part.stop - part.start]
        self._fill()

    def _fill(self) -> None:
        """The table of distances, a tile of points at a time, converted on the fly."""

        def job(first: int, end: int) -> None:
            self.tiles.fill(first, end, self.table[:, first:end])

        pieces = cut(0, self.table.shape[1], max(64, CHUNK // self.width))
        with one_blas_thread():
            run(job, pieces, parallel=self.table.size * self.width >= PARALLEL_PRODUCT)

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:  # noqa: ARG002
        return self.table[v - self.start]


def orders(points: Points, validation: Validation) -> Iterator[NDArray[np.int64]]:
    """For each judge, the points ordered by distance, by the pair rule; ties by position."""
    for first, keys in _key_blocks(points, validation):
        for v in range(first, first + keys.shape[1]):
            column = np.asarray(keys[:, v - first], np.float64)
            refuse_nan(column[:, None], 0, v)
            ordered = np.argsort(column, kind="stable")
            yield ordered[ordered != v] if validation.mutual else ordered


def _key_blocks(points: Points, validation: Validation) -> Iterator[tuple[int, Any]]:
    """Numbers that sort as distances do, for some judges at a time, and the first of these."""
    if isinstance(points.rows, Distances):
        for columns, part in points.rows.blocks(1):
            yield columns.start, part
        return
    assert validation.rows is not None  # noqa: S101 - they have features, too
    for lo, hi in cut(0, len(validation), max(1, PAIRS // len(points))):
        some, cosine = validation.rows.some(slice(lo, hi)), validation.metric == "cosine"
        yield lo, pair_table(points.rows, some, cosine=cosine)
