"""All points in the order of their distance to a validation point, from one of three sources.

Distances come from tiles, a table for some validation points at a time; for few features and few
points they are summed directly from a transposed copy; or the caller computed them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs import Points, Validation
from thresher.kernels.distances import direct_keys
from thresher.kernels.order import fill_patterns, mixed_runs, order_points, run_points, sort_runs
from thresher.labels import Codes
from thresher.metrics import CHUNK, Rows
from thresher.neighbors.tiles import DIRECT_WIDTH, Tiles, range_factor, tiles
from thresher.precomputed import Distances
from thresher.threads import cut, one_blas_thread, run

COPY_BYTES = 64 << 20  # of points that are copied whole, transposed
TABLE_BYTES = 96 << 20  # of distances held at once, where they come from a product
LEAST_ROWS = 8
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
    if exact:
        source.settle(v, bench, distances, least)


class Source(Protocol):
    """Distances of all points to the validation points start..stop, in turn."""

    start: int
    stop: int
    precision: str
    factor: float  # a power of two that brings the distances into the range of float32

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:
        """Numbers that sort as the distances to validation point v; may use the buffer."""

    def settle(self, v: int, bench: Bench, distances: NDArray[Any], least: np.uint32) -> None:
        """Put near ties among the sorted keys in the order of the pair rule."""


def sources(
    points: Points, validation: Validation, precision: str, step: int = 1
) -> Iterator[Source]:
    """Where the distances come from, for one range of validation points after the other.

    Ranges of distances that the caller computed begin at multiples of `step`, however they are cut.
    """
    rows = points.rows
    if isinstance(rows, Distances):
        for columns, part in rows.blocks(step):
            yield _Given(columns.start, columns.stop, precision, part)
    elif rows.width <= DIRECT_WIDTH and _copy_bytes(rows) <= COPY_BYTES:
        yield _Direct(0, len(validation), precision, rows, validation)
    else:
        most = max(LEAST_ROWS, TABLE_BYTES // (np.dtype(precision).itemsize * len(rows)))
        table = np.empty((min(most, len(validation)), len(rows)), precision)  # new memory is dear
        for some in tiles(points, validation, precision, most):
            yield _Table(some, precision, table, rows.width)


def _copy_bytes(rows: Rows) -> int:
    return len(rows) * rows.width * max(4, rows.array.dtype.itemsize)


@dataclass
class _Given:
    """Distances that the caller computed."""

    start: int
    stop: int
    precision: str
    part: NDArray[Any]
    factor: float = 1.0

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:
        buffer[:] = self.part[:, v - self.start]
        if np.isnan(buffer).any():
            row = int(np.argmax(np.isnan(buffer)))
            raise InputError(f"X has NaN as the distance in row {row}, column {v}")
        return buffer

    def settle(self, v: int, bench: Bench, distances: NDArray[Any], least: np.uint32) -> None:
        """Nothing is in doubt."""


class _Direct:
    """Distances by summing over features in float64, in the same order for every pair."""

    def __init__(
        self, start: int, stop: int, precision: str, points: Rows, validation: Validation
    ) -> None:
        self.start, self.stop, self.precision = start, stop, precision
        assert validation.rows is not None  # noqa: S101 - check_pair made it
        wide = np.float64 if points.array.dtype == np.float64 else np.float32
        self.columns: NDArray[Any] = np.ascontiguousarray(points.array.T, wide)
        self.dims = (0,) * points.width
        self.points, self.validation = points, validation.rows
        self.V = self.validation.as_float64(slice(None))
        self.cosine = validation.metric == "cosine"
        self.factor = range_factor(points, self.validation, precision, cosine=self.cosine)

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:
        direct_keys(
            self.columns, self.dims, self.points.squares, self.V[v],
            float(self.validation.squares[v]), self.cosine, buffer,
        )  # fmt: skip
        return buffer

    def settle(self, v: int, bench: Bench, distances: NDArray[Any], least: np.uint32) -> None:
        """Nothing is in doubt: equal pairs have equal distances, wherever they stand."""


class _Table:
    """Distances from tiles, all points against a few validation points at a time."""

    def __init__(self, part: Tiles, precision: str, table: NDArray[Any], width: int) -> None:
        self.start, self.stop, self.precision = part.start, part.stop, precision
        self.tiles, self.factor, self.width = part, part.factor, width
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

    def settle(self, v: int, bench: Bench, distances: NDArray[Any], least: np.uint32) -> None:
        """Put near ties among the sorted keys in the order of the pair rule."""
        error = self.tiles.error(v)
        if error == 0.0:
            return
        spare = bench.spare.view(np.int64)
        runs = spare[: len(spare) // 2 * 2].reshape(-1, 2)
        # where a distance exceeds this, its float32 neighbors are more than the error away
        band = np.empty(2, np.uint32)
        widest = 2.0**25 * error
        fill_patterns(np.array([-widest, widest]), self.factor, band)
        count, size = mixed_runs(bench.keys, distances, error, band, least, runs)
        if not count:
            return
        near_ties = np.empty(size, np.int64)
        run_points(bench.keys, runs[:count], near_ties)
        distances[near_ties] = self.tiles.pair_keys(v, near_ties)
        sort_runs(bench.keys, runs[:count], distances)
