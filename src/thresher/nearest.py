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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_choice, check_count, check_flag
from thresher.errors import InputError
from thresher.inputs import Points, Validation, check_pair
from thresher.kernels.distances import direct_distances, pair_distances, product_distances
from thresher.kernels.order import (
    fill_patterns,
    mixed_runs,
    restore_order,
    run_points,
    sort_keys,
    sort_runs,
)
from thresher.kernels.scan import add_values, count_matches
from thresher.labels import check_owners
from thresher.metrics import CHUNK, METRIC_CODES, Rows
from thresher.near import Distances
from thresher.progress import progress_bar
from thresher.threads import cut, in_order, one_blas_thread
from thresher.valuation import Valuation

Utility = Literal["soft-label", "jia2019"]
Precision = Literal["float64", "float32"]
Item = TypeVar("Item")

DIRECT_WIDTH = 24  # up to this many features distances are summed directly, above by a product
DIRECT_ROWS = 16  # validation points a job, where distances are summed directly
ROW_BYTES = 48 << 20  # bytes of distances a job holds, where they come from a product
LEAST_ROWS = 4
PARALLEL_PAIRS = 1 << 20  # fewer pairs are not worth a thread
MOST_POINTS = 1 << 31  # an index and a flag share 32 bits


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
        by position in the input. "float32" lets rounding order points whose distances are nearly
        equal, and is faster on many features.

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
    check_choice("utility", utility, get_args(Utility))
    check_choice("precision", precision, get_args(Precision))
    mean, progress = check_flag("mean", mean), check_flag("progress", progress)
    points, validation = check_pair(X, y, X_val, y_val, metric=metric, classes=classes)
    if len(points) >= MOST_POINTS:
        raise InputError(f"X has {len(points)} rows; knn_shapley takes fewer than {MOST_POINTS}")
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


@dataclass
class _Bench:
    """The buffers of one thread."""

    patterns: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    spare: NDArray[np.uint64]
    histogram: NDArray[np.int64]

    @classmethod
    def of(cls, n: int) -> _Bench:
        keys = (np.empty(n, np.uint64), np.empty(n, np.uint64))
        return cls(np.empty(n, np.uint32), *keys, np.empty((3, 4096), np.int64))


Row = tuple[int, NDArray[Any], Callable[[NDArray[np.uint64], NDArray[np.uint64]], None]]


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

    def job(rows: Callable[[], Iterator[Row]]) -> NDArray[np.float64]:
        bench = _take(benches) or _Bench.of(n)
        values = _take(sums)
        values = np.empty(n) if values is None else values
        values[:] = 0.0
        for v, distances, settle in rows():
            _order(bench, distances, points.codes, int(validation.codes[v]), settle)
            code = validation.codes[v]
            last = float(plan.last_match[code]), float(plan.last_other[code])
            add_values(bench.keys, plan.steps, *last, values)
            matches[v] = count_matches(bench.keys, plan.consulted)
            if advance is not None:
                advance(n)
        benches.put(bench)
        return values

    with one_blas_thread():
        jobs = _row_jobs(points, validation, precision)
        for values in in_order(job, jobs, parallel=n * len(validation) >= PARALLEL_PAIRS):
            total += values
            sums.put(values)
    return total, matches


def _take(queue: SimpleQueue[Item]) -> Item | None:
    try:
        return queue.get_nowait()
    except Empty:
        return None


def _order(
    bench: _Bench,
    distances: NDArray[Any],
    codes: NDArray[np.int32],
    code: int,
    settle: Callable[[NDArray[np.uint64], NDArray[np.uint64]], None],
) -> None:
    fill_patterns(distances, bench.patterns)
    sort_keys(bench.patterns, codes, code, bench.keys, bench.spare, bench.histogram)
    if distances.dtype == np.float64:
        restore_order(bench.keys, distances)
    settle(bench.keys, bench.spare)


def _row_jobs(
    points: Points, validation: Validation, precision: str
) -> Iterator[tuple[Callable[[], Iterator[Row]]]]:
    """Jobs that yield, for some validation points in turn, the distances of all points."""
    rows = points.rows
    if isinstance(rows, Distances):
        for columns, part in rows.blocks():
            yield (partial(_given_rows, columns, part, precision),)
        return
    maker: _DirectRows | _ProductRows
    if rows.width <= DIRECT_WIDTH:
        size = max(1, min(DIRECT_ROWS, -(-len(validation) // 16)))
        maker = _DirectRows(rows, validation, np.ascontiguousarray(_wide(rows.array).T), precision)
    else:
        size = max(LEAST_ROWS, min(ROW_BYTES // (8 * len(rows)), -(-len(validation) // 8)))
        maker = _ProductRows(rows, validation, precision)
    for lo, hi in cut(0, len(validation), size):
        yield (partial(maker.rows, lo, hi),)


def _wide(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _given_rows(columns: slice, part: NDArray[Any], precision: str) -> Iterator[Row]:
    for v in range(columns.start, columns.stop):
        distances = np.ascontiguousarray(part[:, v - columns.start], np.float64)
        if np.isnan(distances).any():
            row = int(np.argmax(np.isnan(distances)))
            raise InputError(f"X has NaN as the distance in row {row}, column {v}")
        yield v, distances.astype(precision, copy=False), _settled


def _settled(keys: NDArray[np.uint64], spare: NDArray[np.uint64]) -> None:
    """Nothing to settle: the distances are those of the pair rule already."""


@dataclass(frozen=True)
class _DirectRows:
    """Distances by summing over features in float64, in the same order for every pair."""

    points: Rows
    validation: Validation
    XT: NDArray[Any]
    precision: str

    def rows(self, lo: int, hi: int) -> Iterator[Row]:
        rows = self.validation.rows
        assert rows is not None  # noqa: S101
        metric = METRIC_CODES[self.validation.metric]
        V = rows.as_float64(slice(lo, hi))
        distances = np.empty(len(self.points))
        for v in range(lo, hi):
            square = float(rows.squares[v])
            direct_distances(self.XT, self.points.squares, V[v - lo], square, metric, distances)
            yield v, distances.astype(self.precision, copy=False), _settled


@dataclass(frozen=True)
class _ProductRows:
    """Distances by a matrix product; in float64, near ties are settled by the pair rule."""

    points: Rows
    validation: Validation
    precision: str

    def rows(self, lo: int, hi: int) -> Iterator[Row]:
        rows = self.validation.rows
        assert rows is not None  # noqa: S101
        n, metric = len(self.points), METRIC_CODES[self.validation.metric]
        V = rows.as_float64(slice(lo, hi))
        columns = np.ascontiguousarray(V.T, self.precision)
        table = np.empty((hi - lo, n), self.precision)
        for first, end in cut(0, n, max(64, CHUNK // self.points.width)):
            tile = self._tile(first, end)
            product_distances(
                np.dot(tile, columns), self.points.squares[first:end], rows.squares[lo:hi], metric,
                table[:, first:end],
            )  # fmt: skip
        for v in range(lo, hi):
            distances = table[v - lo]
            error = self._error(float(rows.squares[v]))

            def settle(keys: Any, spare: Any, v: int = v, distances: Any = distances,
                       error: float = error) -> None:  # fmt: skip
                self._settle(keys, spare, distances, error, V[v - lo], float(rows.squares[v]))

            yield v, distances, settle if self.precision == "float64" else _settled

    def _tile(self, first: int, end: int) -> NDArray[Any]:
        return np.ascontiguousarray(self.points.array[first:end], self.precision)

    def _error(self, square: float) -> float:
        """Distances that differ by more are in the pair rule's order.

        u = 2^-53: a product and the norms are each wrong by at most (d + 2) u times the lengths,
        the pair rule itself likewise; twice for two points.
        """
        unit = (self.points.width + 8) * 2.0**-53
        if self.validation.metric == "cosine":
            return 8 * unit
        return 4 * unit * (self.points.largest_norm() + float(np.sqrt(square))) ** 2

    def _settle(
        self, keys: Any, spare: Any, distances: Any, error: float, v: Any, square: float
    ) -> None:
        runs = spare.view(np.int64)[: len(spare) // 2 * 2].reshape(-1, 2)
        count, size = mixed_runs(keys, distances, error, runs)
        if not count:
            return
        near_ties = np.empty(size, np.int64)
        run_points(keys, runs[:count], near_ties)
        metric = METRIC_CODES[self.validation.metric]
        for lo, hi in cut(0, size, max(1, CHUNK // self.points.width)):
            which = near_ties[lo:hi]
            exact = np.empty(hi - lo)
            squares = self.points.squares[which]
            pair_distances(self.points.as_float64(which), squares, v, square, metric, exact)
            distances[which] = exact
        sort_runs(keys, runs[:count], distances)
