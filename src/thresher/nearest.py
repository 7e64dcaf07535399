"""KNN-Shapley, both utilities: the sorted sibling of count and price.

With the points sorted by distance to a validation point, match_i = 1 where the i-th carries its
label, values follow from far to near by one recursion,

    value_N given,   value_i = value_{i+1} + step_i (match_i - match_{i+1})

    jia2019      step_i = 1 / max(k, i)                        value_N = match_N / max(k, N)
    soft-label   step_i = 1 / max(K, i) + (H_K - 1) / (N - 1)  value_N = (match_N - 1/C) / N
                 with K = min(k, N)                                + (match_N - s) (H_K - 1) / N

where H_K is the harmonic number and s the share of matches among the N - 1 others (no such term for
N = 1). The printed soft-label theorem holds only for k <= N; with K = min(k, N) it holds for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Literal, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.checks import MAX_INTEGER, check_choice, check_count, check_flag
from thresher.errors import InputError
from thresher.inputs import Points, Validation, check_pair
from thresher.kernels.distances import direct_keys, product_keys
from thresher.kernels.order import (
    fill_patterns,
    mixed_runs,
    order_points,
    run_points,
    sort_runs,
)
from thresher.kernels.pairs import pair_keys
from thresher.kernels.scan import add_values
from thresher.labels import Codes, check_owners
from thresher.metrics import CHUNK, SMALLEST_SQUARE, Rows, power_of_two
from thresher.near import Distances
from thresher.progress import progress_bar
from thresher.threads import cut, in_order, one_blas_thread, run
from thresher.valuation import Valuation

Utility = Literal["soft-label", "jia2019"]
Precision = Literal["float64", "float32"]
Item = TypeVar("Item")

DIRECT_WIDTH = 24  # up to this many features distances are summed directly, above by a product
JOB_ROWS = 16  # validation points a job, at most
TABLE_BYTES = 96 << 20  # of distances held at once, where they come from a product
LEAST_ROWS = 8
PARALLEL_PAIRS = 1 << 18  # fewer pairs are not worth a thread
PARALLEL_PRODUCT = 1 << 24  # nor are fewer multiplications


def knn_shapley(
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    k: int = 5,
    metric: str = "cosine",
    utility: Utility = "soft-label",
    classes: Any = None,
    owners: Any = None,
    mean: bool = False,
    progress: bool = False,
    precision: Precision = "float64",
) -> Valuation:
    """The exact Shapley value of each point for the k-nearest-neighbor classifier.

    Parameters
    ----------
    X, y, X_val, y_val, metric, classes, owners, mean, progress
        As in `tknn_shapley`.
    k
        Neighbors consulted; may exceed the number of points.
    utility
        "soft-label" (Wang and Jia 2023): the share of the label among the min(k, |S|) nearest of
        the coalition S, 1/C for the empty one. "jia2019" (Jia et al. 2019): their number over k, 0
        for the empty one.
    precision
        Of the order of the points. "float64" is exact: equal distances, and only those, are ordered
        by position in the input. "float32" is faster on many features and lets rounding order
        points whose distances are nearly equal, as float32 products see them: center the data.

    Returns
    -------
    Valuation
        One value a point, in input order.

    Raises
    ------
    InputError
        Where an argument cannot be used; the message names it and the first offending rows.

    Notes
    -----
    Cost O(M N (d + log N)) in time and O(N) in memory.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    >>> th.knn_shapley(X, y, [[0.1]], ["a"], k=1, metric="euclidean").values.round(3).tolist()
    [0.667, -0.333, 0.167]
    """
    k = check_count("k", k)
    if k > MAX_INTEGER:
        raise InputError(f"k must be at most 2**53, got {k}")
    check_choice("utility", utility, get_args(Utility))
    check_choice("precision", precision, get_args(Precision))
    mean, progress = check_flag("mean", mean), check_flag("progress", progress)
    points, validation = check_pair(X, y, X_val, y_val, metric=metric, classes=classes)
    known_owners = check_owners(owners, len(points))
    plan = _Plan.of(points, validation, k, utility)
    with progress_bar("knn-shapley", len(points) * len(validation), show=progress) as advance:
        values, matches = _sum_over_validation(points, validation, plan, precision, advance)
    divisor = len(validation) if mean else 1
    ends = plan.utility_ends(matches)
    params = {
        "k": k,
        "metric": validation.metric,
        "utility": utility,
        "classes": list(validation.classes.labels),
        "validation_points": len(validation),
        "mean": mean,
        "precision": precision,
    }
    return Valuation(
        values / divisor, "knn-shapley", params, ends[0] / divisor, ends[1] / divisor, known_owners
    )


@dataclass(frozen=True)
class _Plan:
    """The numbers of the recursion, and how many neighbors the utility of all points consults."""

    steps: NDArray[np.float64]
    last_match: NDArray[np.float64]  # value of the farthest point if it matches, by class
    last_other: NDArray[np.float64]
    consulted: int
    divisor: int
    empty: float

    @classmethod
    def of(cls, points: Points, validation: Validation, k: int, utility: str) -> _Plan:
        n, classes = len(points), len(validation.classes)
        rank = np.arange(1, n, dtype=np.float64)
        consulted = min(k, n)
        if utility == "jia2019":
            last = np.full(classes, 1 / max(k, n))
            return cls(1 / np.maximum(k, rank), last, 0 * last, consulted, k, 0.0)
        excess = float((1 / np.arange(2, consulted + 1)).sum())  # H_K - 1
        others = max(n - 1, 1)
        sizes = np.bincount(points.codes, minlength=classes).astype(np.float64)
        last_match = (1 - 1 / classes) / n + (1 - np.maximum(sizes - 1, 0) / others) * excess / n
        last_other = (0 - 1 / classes) / n - sizes / others * excess / n
        steps = 1 / np.maximum(consulted, rank) + excess / others
        return cls(steps, last_match, last_other, consulted, consulted, 1 / classes)

    def utility_ends(self, matches: NDArray[np.int64]) -> tuple[float, float]:
        """Utility of all points and of none, from the matches among the consulted neighbors."""
        return float(matches.sum()) / self.divisor, self.empty * len(matches)


@dataclass(frozen=True)
class _Bench:
    """The buffers of one thread."""

    distances: NDArray[np.float64]
    patterns: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    spare: NDArray[np.uint64]
    histogram: NDArray[np.int64]

    @classmethod
    def of(cls, n: int) -> _Bench:
        keys = (np.empty(n, np.uint64), np.empty(n, np.uint64))
        buffers = (np.empty(n), np.empty(n, np.uint32), *keys)  # untouched memory costs nothing
        return cls(*buffers, np.empty((3, 4096), np.int64))


def _sum_over_validation(
    points: Points, validation: Validation, plan: _Plan, precision: str, advance: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Values in input order, and for each validation point the matches among its neighbors.

    The validation set is cut in jobs that depend on its size and N alone; each sums its own values,
    and the sums are added in the order of the jobs: the same bits for any number of threads.
    """
    n = len(points)
    total = np.zeros(n)
    matches = np.zeros(len(validation), np.int64)
    benches: SimpleQueue[_Bench] = SimpleQueue()  # buffers are handed on from job to job
    sums: SimpleQueue[NDArray[np.float64]] = SimpleQueue()

    def job(source: _Source, lo: int, hi: int) -> NDArray[np.float64]:
        bench = _take(benches) or _Bench.of(n)
        values = _take(sums)
        values = np.empty(n) if values is None else values
        values[:] = 0.0
        for v in range(lo, hi):
            code = int(validation.codes[v])
            _order(bench, source, v, points.codes, code)
            last = float(plan.last_match[code]), float(plan.last_other[code])
            matches[v] = add_values(bench.keys, plan.steps, *last, plan.consulted, values)
            if advance is not None:
                advance(n)
        benches.put(bench)
        return values

    parallel = n * len(validation) >= PARALLEL_PAIRS
    rows = max(1, min(JOB_ROWS, -(-len(validation) // 16)))
    for source in _sources(points, validation, precision):
        jobs = [(source, lo, hi) for lo, hi in cut(source.start, source.stop, rows)]
        for values in in_order(job, jobs, parallel=parallel):
            total += values
            sums.put(values)
    return total, matches


def _take(queue: SimpleQueue[Item]) -> Item | None:
    try:
        return queue.get_nowait()
    except Empty:
        return None


def _order(bench: _Bench, source: _Source, v: int, codes: Codes, code: int) -> None:
    """Fill the bench's keys with all points, nearest to validation point v first."""
    exact = source.precision == "float64"
    distances = source.distances(v, bench.distances)
    least = order_points(
        distances, source.factor, exact, codes, code,
        bench.patterns, bench.keys, bench.spare, bench.histogram,
    )  # fmt: skip
    if exact:
        source.settle(v, bench, distances, least)


class _Source(Protocol):
    """Distances of all points to the validation points start..stop, in turn."""

    start: int
    stop: int
    precision: str
    factor: float  # a power of two that brings the distances into the range of float32

    def distances(self, v: int, buffer: NDArray[np.float64]) -> NDArray[Any]:
        """Numbers that sort as the distances to validation point v; may use the buffer."""

    def settle(self, v: int, bench: _Bench, distances: NDArray[Any], least: np.uint32) -> None:
        """Put near ties among the sorted keys in the order of the pair rule."""


def _sources(points: Points, validation: Validation, precision: str) -> Iterator[_Source]:
    rows = points.rows
    if isinstance(rows, Distances):
        for columns, part in rows.blocks():
            yield _Given(columns.start, columns.stop, precision, part)
    elif rows.width <= DIRECT_WIDTH:
        yield _Direct(0, len(validation), precision, rows, validation)
    else:
        size = max(LEAST_ROWS, TABLE_BYTES // (8 * len(rows)))
        table = np.empty((min(size, len(validation)), len(rows)), precision)  # fresh memory is dear
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

    def settle(self, v: int, bench: _Bench, distances: NDArray[Any], least: np.uint32) -> None:
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

    def settle(self, v: int, bench: _Bench, distances: NDArray[Any], least: np.uint32) -> None:
        """Nothing is in doubt: equal pairs have equal distances, wherever they stand."""


def _factor(points: Rows, validation: Rows, *, cosine: bool) -> float:
    """A power of two that brings squared distances into the range of float32; cosines are."""
    if cosine:
        return 1.0
    longest = points.largest_norm() + validation.largest_norm()
    if longest**2 < SMALLEST_SQUARE and (points.array.any() or validation.array.any()):
        raise InputError("X and X_val have no value beyond 1e-72: rescale the features")
    return power_of_two(longest) ** 2


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
        if (
            self.precision == "float32"
        ):  # where float32 has no room, scale; the keys are of one scale
            scale = power_of_two(max(self.longest, self.validation.largest_norm()))
            self.factor = 1.0
        V = np.ascontiguousarray(self.V * scale, self.precision)
        v2 = self.validation.squares[self.start : self.stop] * scale**2

        def job(first: int, end: int) -> None:
            if self.precision == "float32":
                tile: NDArray[Any] = self.points.as_float32(first, end, scale)
            else:
                tile = self.points.as_float64(slice(first, end))
            x2 = self.points.squares[first:end] * scale**2
            product_keys(np.dot(V, tile.T), x2, v2, self.cosine, self.table[:, first:end])

        pieces = cut(0, len(self.points), max(64, CHUNK // self.points.width))
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

    def settle(self, v: int, bench: _Bench, distances: NDArray[Any], least: np.uint32) -> None:
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
