"""Numbers that order points by distance, for a tile of points against some validation points.

Points stream by: a tile is computed from its rows alone, read and converted on the fly, so that a
table on disk need not fit in memory. For few features distances are summed directly; for many they
come from a matrix product, and near ties are settled by the pair rule; or the caller computed them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.checked_inputs import Points, Validation
from thresher.inputs.precomputed import Distances, refuse_nan
from thresher.kernels.distances import direct_tile, product_keys
from thresher.kernels.pairs import pair_keys
from thresher.metrics import CHUNK, SMALLEST_SQUARE, Rows, centered, power_of_two
from thresher.threads import cut, take

USUAL_ROWS = 1024  # by which the usual length is judged
LONG = 4096.0  # times the usual length
FEW = 64  # one in so many rows
DIRECT_WIDTH = 24  # up to this many features distances are summed directly, above by a product


class Judge(Protocol):
    """Which distances to the validation points start..stop are near ties, and which is nearer."""

    start: int
    stop: int
    factor: float  # a power of two that brings the numbers into the range of float32

    def error(self, v: int) -> float:
        """Numbers that differ by more than this are in the pair rule's order; 0 if all are.

        Each is at most half of it away from the pair rule's number.
        """

    def pair_keys(self, v: int, which: NDArray[np.int64]) -> NDArray[np.float64]:
        """The pair rule's numbers of some of the points."""


class Tiles(Judge, Protocol):
    """Distances of the points to the validation points start..stop, a tile at a time."""

    def fill(self, first: int, end: int, out: NDArray[Any]) -> None:
        """Numbers that sort as the distances of points first..end do, one row per validation point.

        `out` has the dtype of the precision; any number of threads may fill tiles at once.
        """


def tiles(points: Points, validation: Validation, precision: str, most: int) -> Iterator[Tiles]:
    """The tiles of at most `most` validation points at a time, in equal parts if possible."""
    rows = points.rows
    if isinstance(rows, Distances):
        for columns, part in rows.blocks(1):
            for lo, hi in cut(columns.start, columns.stop, most):
                yield GivenTiles(lo, hi, part[:, lo - columns.start : hi - columns.start])
        return
    kind = DirectTiles if rows.width <= DIRECT_WIDTH else ProductTiles
    if kind is ProductTiles and precision == "float64" and validation.metric == "euclidean":
        assert validation.rows is not None  # noqa: S101 - check_pair made it
        rows, theirs = centered(rows, validation.rows)
        validation = replace(validation, rows=theirs)
    size = -(-len(validation) // -(-len(validation) // most))
    for lo, hi in cut(0, len(validation), size):
        yield kind(lo, hi, precision, rows, validation)


def pair_table(rows: Rows, others: Rows, *, cosine: bool) -> NDArray[np.float64]:
    """The pair rule's numbers, which sort as distances do: a row per row, a column per other."""
    X, V = rows.as_float64(slice(None)), others.as_float64(slice(None))
    table = np.empty((len(V), len(X)))
    for v, key in enumerate(table):
        pair_keys(X, rows.squares, V[v], float(others.squares[v]), cosine, key)
    return table.T


def range_factor(points: Rows, validation: Rows, precision: str, *, cosine: bool) -> float:
    """A power of two that brings squared distances into the range of float32; cosines are.

    In float64 it does so for most of them: others become 0 or infinity, and are told apart later.
    """
    if cosine:
        return 1.0
    longest = points.largest_norm() + validation.largest_norm()
    tiny = points.center is None and longest**2 < SMALLEST_SQUARE  # from a center it may be 0
    if tiny and (points.array.any() or validation.array.any()):
        raise InputError("X and X_val have only values below 1e-72: rescale the features")
    usual = usual_norm(points) + usual_norm(validation) if precision == "float64" else 0.0
    return power_of_two(usual or longest) ** 2


def usual_norm(rows: Rows) -> float:
    """The norm that half of the rows, or of some of them, do not exceed."""
    return float(np.sqrt(np.median(rows.squares[:: max(1, len(rows) // USUAL_ROWS)])))


def outliers(rows: Rows) -> NDArray[np.int64]:
    """The few rows that are so much longer than most that a product is too coarse for all others.

    If many rows are that long, none is an outlier.
    """
    limit = (LONG * usual_norm(rows)) ** 2
    found = np.flatnonzero(rows.squares > limit)
    return found if len(found) * FEW <= len(rows) else found[:0]


@dataclass
class GivenTiles:
    """Distances that the caller computed."""

    start: int
    stop: int
    part: Any  # an array, or a sparse matrix that is read like one
    factor: float = 1.0

    def fill(self, first: int, end: int, out: NDArray[Any]) -> None:
        """Copy them."""
        with np.errstate(over="ignore"):  # float32 has no room: infinitely far
            out[...] = self.part[first:end].T
        refuse_nan(out.T, first, self.start)

    def error(self, v: int) -> float:  # noqa: ARG002
        """Nothing is in doubt."""
        return 0.0

    def pair_keys(self, v: int, which: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same numbers as the tiles have."""
        return np.asarray(self.part[which, v - self.start], np.float64)


class Computed:
    """What distances by sums and by products have in common."""

    def __init__(
        self, start: int, stop: int, precision: str, points: Rows, validation: Validation
    ) -> None:
        assert validation.rows is not None  # noqa: S101 - check_pair made it
        self.start, self.stop, self.precision = start, stop, precision
        self.points, self.validation = points, validation.rows
        self.cosine = validation.metric == "cosine"
        self.V = self.validation.as_float64(slice(start, stop))
        self.v2 = self.validation.squares[start:stop]
        self.factor = range_factor(points, self.validation, precision, cosine=self.cosine)
        self.longest = points.largest_norm()
        self.buffers: SimpleQueue[NDArray[Any]] = SimpleQueue()  # handed on from tile to tile

    def _buffer(
        self, queue: SimpleQueue[NDArray[Any]], shape: tuple[int, int], dtype: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """A buffer, an old one if possible, and its beginning in this shape."""
        size, buffer = shape[0] * shape[1], take(queue)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = np.empty(size, dtype)
        return buffer, buffer[:size].reshape(shape)

    def error(self, v: int) -> float:  # noqa: ARG002
        """Nothing is in doubt: equal pairs have equal distances, wherever they stand."""
        return 0.0

    def pair_keys(self, v: int, which: NDArray[np.int64]) -> NDArray[np.float64]:
        """The pair rule's numbers of some of the points."""
        exact = np.empty(len(which))
        for lo, hi in cut(0, len(which), max(1, CHUNK // self.points.width)):
            rows = which[lo:hi]
            pair_keys(
                self.points.as_float64(rows), self.points.squares[rows],
                self.V[v - self.start], float(self.v2[v - self.start]), self.cosine, exact[lo:hi],
            )  # fmt: skip
        return exact


class DirectTiles(Computed):
    """Distances by summing over features in float64, in the same order for every pair."""

    def __init__(
        self, start: int, stop: int, precision: str, points: Rows, validation: Validation
    ) -> None:
        super().__init__(start, stop, precision, points, validation)
        self.scale = 1.0
        if precision == "float32":  # numbers are then written in the range of float32
            self.scale, self.factor = self.factor, 1.0

    def fill(self, first: int, end: int, out: NDArray[Any]) -> None:
        """Transpose the tile, and sum column by column."""
        array, shape = self.points.array, (self.points.width, end - first)
        wide = np.float64 if array.dtype == np.float64 else np.float32
        buffer, columns = self._buffer(self.buffers, shape, wide)
        columns[...] = self.points.part(slice(first, end)).T
        direct_tile(
            columns, (0,) * self.points.width, self.points.squares[first:end], self.V, self.v2,
            self.cosine, self.scale, out,
        )  # fmt: skip
        self.buffers.put(buffer)


class ProductTiles(Computed):
    """Distances by a matrix product; in float64, near ties are settled by the pair rule."""

    def __init__(
        self, start: int, stop: int, precision: str, points: Rows, validation: Validation
    ) -> None:
        super().__init__(start, stop, precision, points, validation)
        self.outliers = np.empty(0, np.int64)
        if precision == "float64" and not self.cosine:
            self.outliers = outliers(points)
        if len(self.outliers):
            others = np.delete(points.squares, self.outliers)
            self.longest = float(np.sqrt(others.max(initial=0.0)))
        self.scale = 1.0
        if precision == "float32":  # numbers are then of a scale for which float32 has room
            self.scale = power_of_two(max(self.longest, self.validation.largest_norm()))
            self.factor = 1.0
        self.center = 0.0 if points.center is None else points.center
        self.scaled = np.ascontiguousarray((self.V - self.center) * self.scale, precision)
        self.scaled_v2 = self.v2 * self.scale**2
        self.products: SimpleQueue[NDArray[Any]] = SimpleQueue()

    def fill(self, first: int, end: int, out: NDArray[Any]) -> None:
        """Convert the tile, multiply, and turn products into distances."""
        height, width, count = end - first, self.points.width, len(self.scaled)
        buffer = None
        if self.precision == "float32":
            tile: NDArray[Any] = self.points.as_float32(first, end, self.scale)
        else:
            buffer, tile = self._buffer(self.buffers, (height, width), np.float64)
            np.subtract(self.points.part(slice(first, end)), self.center, out=tile)
        spare, product = self._buffer(self.products, (count, height), self.scaled.dtype)
        np.dot(self.scaled, tile.T, out=product)
        x2 = self.points.squares[first:end] * self.scale**2
        product_keys(product, x2, self.scaled_v2, self.cosine, out)
        self._fill_outliers(first, end, out)
        self.products.put(spare)
        if buffer is not None:
            self.buffers.put(buffer)

    def _fill_outliers(self, first: int, end: int, out: NDArray[Any]) -> None:
        """The pair rule's own numbers for them: their products would be too coarse."""
        column = np.empty(len(self.V))
        for row in self.outliers[slice(*np.searchsorted(self.outliers, [first, end]))]:
            x = np.array(self.points.array[row], np.float64)
            pair_keys(self.V, self.v2, x, float(self.points.squares[row]), self.cosine, column)
            out[:, row - first] = column

    def error(self, v: int) -> float:
        """Computed distances that differ by more than this are in the pair rule's order.

        With u = 2^-53, a product and the norms are each wrong by at most (d + 2) u times the
        lengths, the pair rule itself likewise, rows seen from a center by u, and a cosine squared
        by twice as much as a cosine; all that for each of two points; outliers have the pair rule's
        numbers. What underflows is at most 5 d / 2 times 2^-1074 for each of the two, below
        (d + 8) 2^-1072. In float32 rounding may order them: nothing is settled.
        """
        if self.precision == "float32":
            return 0.0
        unit = (self.points.width + 8) * 2.0**-53
        if self.cosine:
            return 16 * unit
        lengths = self.longest + float(np.sqrt(self.v2[v - self.start]))
        return 4 * unit * lengths**2 + (self.points.width + 8) * 2.0**-1071
