"""All points in the order of their distance to a validation point, from one of three sources.

For few features distances are summed directly; for many they come from a matrix product, a table
for some validation points at a time; or the caller computed them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs import Points, Validation
from thresher.kernels.distances import direct_keys, product_keys
from thresher.kernels.order import (
    fill_patterns,
    mixed_runs,
    order_points,
    run_points,
    sort_runs,
)
from thresher.kernels.pairs import pair_keys
from thresher.labels import Codes
from thresher.metrics import CHUNK, SMALLEST_SQUARE, Rows, power_of_two
from thresher.near import Distances
from thresher.threads import cut, one_blas_thread, run, take

DIRECT_WIDTH = 24  # up to this many features distances are summed directly, above by a product
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


def sources(points: Points, validation: Validation, precision: str) -> Iterator[Source]:
    """Where the distances come from, for one range of validation points after the other."""
    rows = points.rows
    if isinstance(rows, Distances):
        for columns, part in rows.blocks():
            yield _Given(columns.start, columns.stop, precision, part)
    elif rows.width <= DIRECT_WIDTH:
        yield _Direct(0, len(validation), precision, rows, validation)
    else:
        most = max(LEAST_ROWS, TABLE_BYTES // (np.dtype(precision).itemsize * len(rows)))
        size = -(-len(validation) // -(-len(validation) // most))
        table = np.empty((size, len(rows)), precision)  # fresh memory is dear
        for lo, hi in cut(0, len(validation), size):
            yield _Product(lo, hi, precision, rows, validation, table[: hi - lo])


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
        self.factor = _factor(points, self.validation, cosine=self.cosine)

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:
        direct_keys(
            self.columns, self.dims, self.points.squares, self.V[v],
            float(self.validation.squares[v]), self.cosine, buffer,
        )  # fmt: skip
        return buffer

    def settle(self, v: int, bench: Bench, distances: NDArray[Any], least: np.uint32) -> None:
        """Nothing is in doubt: equal pairs have equal distances, wherever they stand."""


def _factor(points: Rows, validation: Rows, *, cosine: bool) -> float:
    """A power of two that brings squared distances into the range of float32; cosines are."""
    if cosine:
        return 1.0
    longest = points.largest_norm() + validation.largest_norm()
    if longest**2 < SMALLEST_SQUARE and (points.array.any() or validation.array.any()):
        raise InputError("X and X_val have no value beyond 1e-72: rescale the features")
    return power_of_two(longest) ** 2


@dataclass(frozen=True)
class _Tile:
    """The buffers of one thread that fills a table of distances."""

    rows: NDArray[Any]
    product: NDArray[Any]

    @classmethod
    def of(cls, height: int, V: NDArray[Any]) -> _Tile:
        """Buffers for that many points and all of V."""
        return cls(np.empty((height, V.shape[1]), V.dtype), np.empty(height * len(V), V.dtype))


class _Product:
    """Distances by a matrix product; in float64, near ties are settled by the pair rule."""

    def __init__(
        self,
        start: int,
        stop: int,
        precision: str,
        points: Rows,
        validation: Validation,
        table: NDArray[Any],
    ) -> None:
        self.start, self.stop, self.precision = start, stop, precision
        assert validation.rows is not None  # noqa: S101 - check_pair made it
        self.points, self.validation = points, validation.rows
        self.cosine = validation.metric == "cosine"
        self.V = self.validation.as_float64(slice(start, stop))
        self.longest = points.largest_norm()
        self.factor = _factor(points, self.validation, cosine=self.cosine)
        self.table = table
        self._fill()

    def _fill(self) -> None:
        """The table of distances, a tile of points at a time, converted on the fly."""
        scale = 1.0
        if self.precision == "float32":  # keys are then of a scale for which float32 has room
            scale = power_of_two(max(self.longest, self.validation.largest_norm()))
            self.factor = 1.0
        V = np.ascontiguousarray(self.V * scale, self.precision)
        v2 = self.validation.squares[self.start : self.stop] * scale**2

        height = max(64, CHUNK // self.points.width)
        buffers: SimpleQueue[_Tile] = SimpleQueue()

        def job(first: int, end: int) -> None:
            buffer = take(buffers) or _Tile.of(height, V)
            if self.precision == "float32":
                tile: NDArray[Any] = self.points.as_float32(first, end, scale)
            else:
                tile = buffer.rows[: end - first]
                tile[...] = self.points.array[first:end]
            product = buffer.product[: len(V) * len(tile)].reshape(len(V), len(tile))
            np.dot(V, tile.T, out=product)
            x2 = self.points.squares[first:end] * scale**2
            product_keys(product, x2, v2, self.cosine, self.table[:, first:end])
            buffers.put(buffer)

        pieces = cut(0, len(self.points), height)
        work = len(self.points) * self.V.size
        with one_blas_thread():
            run(job, pieces, parallel=work >= PARALLEL_PRODUCT)

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:  # noqa: ARG002
        return self.table[v - self.start]

    def _error(self, v: int) -> float:
        """Computed distances that differ by more than this are in the pair rule's order.

        With u = 2^-53, a product and the norms are each wrong by at most (d + 2) u times the
        lengths, the pair rule itself likewise, and a cosine squared by twice as much as a cosine;
        all that for each of two points.
        """
        unit = (self.points.width + 8) * 2.0**-53
        if self.cosine:
            return 16 * unit
        return 4 * unit * (self.longest + float(np.sqrt(self.validation.squares[v]))) ** 2

    def settle(self, v: int, bench: Bench, distances: NDArray[Any], least: np.uint32) -> None:
        spare = bench.spare.view(np.int64)
        runs = spare[: len(spare) // 2 * 2].reshape(-1, 2)
        error = self._error(v)
        # where a distance exceeds this, its float32 neighbors are more than the error away
        band = np.empty(2, np.uint32)
        widest = 2.0**25 * error
        fill_patterns(np.array([-widest, widest]), self.factor, band)
        count, size = mixed_runs(bench.keys, distances, error, band, least, runs)
        if not count:
            return
        near_ties = np.empty(size, np.int64)
        run_points(bench.keys, runs[:count], near_ties)
        for lo, hi in cut(0, size, max(1, CHUNK // self.points.width)):
            which = near_ties[lo:hi]
            exact = np.empty(hi - lo)
            pair_keys(
                self.points.as_float64(which), self.points.squares[which],
                self.V[v - self.start], float(self.validation.squares[v]), self.cosine, exact,
            )  # fmt: skip
            distances[which] = exact
        sort_runs(bench.keys, runs[:count], distances)
