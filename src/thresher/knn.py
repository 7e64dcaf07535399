"""KNN-Shapley with both utilities: values from sorted distances instead of counts.

Sort the points by distance to a validation point, and let match_i = 1 if the i-th point carries its
label, and otherwise 0. Values follow from far to near by one recursion,

    value_N given,   value_i = value_{i+1} + step_i (match_i - match_{i+1})

    jia2019      step_i = 1 / max(k, i)                        value_N = match_N / max(k, N)
    soft-label   step_i = 1 / max(K, i) + (H_K - 1) / (N - 1)  value_N = (match_N - 1/C) / N
                 with K = min(k, N)                                + (match_N - s) (H_K - 1) / N

where H_K is the harmonic number and s the share of matches among the N - 1 others (no such term for
N = 1). The printed soft-label theorem holds only for k <= N; with K = min(k, N) it holds for all.
If an error is allowed, only the nearest points are sorted: see `truncation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.games.nearest_targets import Chances, nearest_values
from thresher.games.semivalues import Semivalue, check_semivalue, semivalue_name
from thresher.games.truncation import Truncation, error_bound, neighbors_kept
from thresher.inputs.checked_inputs import Points, Validation, check_pair
from thresher.inputs.checks import MAX_INTEGER, check_choice, check_count, check_flag, check_number
from thresher.inputs.labels import check_owners
from thresher.inputs.precomputed import Distances
from thresher.kernels.order import move_to_front
from thresher.kernels.recursion import add_values
from thresher.neighbors.closest import closest
from thresher.neighbors.parallel_rows import tie_directions, warn_of_one_feature
from thresher.neighbors.sorting import Bench, Source, order, orders, sources
from thresher.progress import progress_bar
from thresher.regression import CLASSES, REGRESSION, check_task, checked_points
from thresher.threads import cut, in_order, take
from thresher.valuation import Valuation

Utility = Literal["soft-label", "jia2019", "mean"]
Precision = Literal["float64", "float32"]

JOB_ROWS = 16  # validation points a job, at most
PARALLEL_PAIRS = 1 << 18  # fewer pairs are not worth a thread (measured)
FULL_SORT = 32  # where more than one of so many points is kept, all are as soon sorted (measured)
PARALLEL_POINTS = 3000  # nor are fewer points: a row of them is sorted before a thread is switched


def _check_for_classes(empty: Any, semivalue: Any) -> None:
    """Raise if an argument for numbers is given."""
    if empty is not None:
        raise InputError("empty needs task='regression'")
    if not isinstance(semivalue, str) or semivalue != "shapley":
        raise InputError(
            "semivalue needs task='regression': for classes, knn_shapley computes only Shapley "
            "values; use tknn_shapley for the others"
        )


def knn_shapley(
    X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, k: int = 5, metric: str = "cosine",
    utility: Utility = "soft-label", classes: Any = None, owners: Any = None, mean: bool = False,
    progress: bool = False, precision: Precision = "float64", error: float = 0.0,
    task: str = CLASSES, empty: float | None = None, semivalue: Semivalue = "shapley",
    complete: bool = False,
) -> Valuation:  # fmt: skip
    """The Shapley value of each point for the k-nearest-neighbor classifier, exact by default.

    Parameters
    ----------
    X, y, X_val, y_val, metric, classes, owners, mean, progress
        As in `tknn_shapley`.
    k
        How many neighbors are consulted; it may exceed the number of points.
    utility
        "soft-label" (Wang and Jia 2023): the share of the label among the `min(k, |S|)` nearest
        points of the coalition S, and 1/C for the empty coalition. "jia2019" (Jia et al. 2019): the
        number of such points divided by k, and 0 for the empty coalition.
    precision
        The precision with which points are ordered by distance. "float64" is exact: only equal
        distances are ordered by position in the input. For the cosine metric, points in the same
        direction up to rounding, such as multiples of a row, are equally far. "float32" is faster
        on many features, but rounding may swap points whose distances are nearly equal in float32:
        center the data first.
    error
        How far a value may be off for each validation point, and so for their mean. If it is above
        0, each validation point orders only its nearest points, at most max(k, 1/error) of them.
        All other points of a label get their mean. If that is more than one point in 32, all points
        are sorted, which is as fast, and values are exact.
    task, empty
        As in `tknn_shapley`. For regression, the default `utility` stands for "mean": minus the
        squared error of the mean of the `min(k, |S|)` nearest targets. With "jia2019" it is minus
        the squared error of their sum divided by k, and 0 for the empty coalition, which is the
        largest utility possible. Leave out precision, error and classes.
    semivalue
        For regression, as in `tknn_shapley`; for classes "shapley".
    complete
        As in `tknn_shapley`: True if all points that a sparse X does not store are equally far,
        beyond those that it stores, and ordered by position. Otherwise each column must store the
        nearest points that are needed: all of them, or with an error some.

    Returns
    -------
    Valuation
        One value per point, in input order. Its `params` say how many neighbors were kept, and give
        the proven bound on the error of every value, for the order that `precision` gives.

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the first offending rows.

    Notes
    -----
    The cost is O(M N (d + log N)) time, or O(M N d) with an error. Memory is O(N) beyond the input
    and a bounded table. Features in float16, float32 or float64 are read in place, also from disk
    if X is a memmap. With K neighbors kept, the error for a validation point is at most max((1/sqrt
    K - 1/sqrt N)^2, 1/(K+1) - 1/N) (docs/concepts.md has the proof). Values still add up.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    >>> th.knn_shapley(X, y, [[0.1]], ["a"], k=1, metric="euclidean").values.round(3).tolist()
    [0.667, -0.333, 0.167]
    >>> th.knn_shapley(X, y, k=1, metric="euclidean").values.round(3).tolist()  # by each other
    [0.0, -1.5, 0.0]
    """
    k = check_count("k", k, most=MAX_INTEGER)
    regression = check_task(task) == REGRESSION
    if regression and isinstance(utility, str) and utility == "soft-label":
        utility = "mean"
    known = ("mean", "jia2019") if regression else ("soft-label", "jia2019")
    check_choice("utility", utility, known)
    check_choice("precision", precision, get_args(Precision))
    mean, progress = check_flag("mean", mean), check_flag("progress", progress)
    error = check_number("error", error, least=0, most=1)
    if regression:
        if precision != "float64" or error or classes is not None:
            raise InputError("precision, error and classes cannot be used with task='regression'")
        return knn_regression(
            X, y, X_val, y_val, k=k, metric=metric, utility=utility, owners=owners, mean=mean,
            progress=progress, empty=empty, semivalue=check_semivalue(semivalue),
            complete=complete,
        )  # fmt: skip
    _check_for_classes(empty, semivalue)
    points, validation = check_pair(
        X, y, X_val, y_val, metric=metric, classes=classes, mutual=True, complete=complete
    )
    warn_of_one_feature(points, metric, stacklevel=2)
    points = tie_directions(points, metric)
    known_owners = check_owners(owners, len(points))
    sizes = np.bincount(points.codes, minlength=len(validation.classes))
    left_out = int(validation.mutual)  # the judge itself
    players = len(points) - left_out
    plan = Recursion.of(sizes, k, utility, left_out)
    kept = neighbors_kept(players, k, error)
    given = points.rows if isinstance(points.rows, Distances) else None
    if kept * FULL_SORT > players and (given is None or given.in_doubt is None):
        kept = players
    if given is not None:
        given.check_order(kept, k, partial(error_bound, players))
    with progress_bar("knn-shapley", len(points) * len(validation), show=progress) as advance:
        if kept == players:
            values, matches = _sum_over_validation(points, validation, plan, precision, advance)
        else:
            short = Truncation.of(
                sizes, k, kept, excess=plan.excess, empty=plan.empty, left_out=left_out
            )
            values, matches = _sum_of_nearest(points, validation, short, k, precision, advance)
    divisor = len(validation) if mean else 1
    ends = float(matches.sum()) / plan.divisor, plan.empty * len(matches)
    params = {
        "k": k,
        "metric": validation.metric,
        "utility": utility,
        "classes": list(validation.classes.labels),
        **validation.record(),
        "mean": mean,
        "precision": precision,
        "error": error,
        "neighbors_kept": kept,
        "bound": error_bound(players, kept) * len(validation) / divisor,
    }
    return Valuation(
        values / divisor, "knn-shapley", params, ends[0] / divisor, ends[1] / divisor, known_owners
    )


@dataclass(frozen=True)
class Recursion:
    """The numbers of the recursion, and how many neighbors the utility of all points consults."""

    steps: NDArray[np.float64]
    last_match: NDArray[np.float64]  # value of the farthest point if it matches, by class
    last_other: NDArray[np.float64]
    consulted: int
    divisor: int  # of the matches among them: their utility
    empty: float  # utility of no points, for each validation point
    excess: float  # H_K - 1; 0 for jia2019

    @classmethod
    def of(cls, sizes: NDArray[np.int64], k: int, utility: str, left_out: int = 0) -> Recursion:
        """The recursion for these class sizes; judges leave out this many of their own class."""
        n, classes = int(sizes.sum()) - left_out, len(sizes)
        sizes = np.maximum(sizes - left_out, 0)
        rank = np.arange(1, n, dtype=np.float64)
        consulted = min(k, n)
        if utility == "jia2019":
            last = np.full(classes, 1 / max(k, n))
            return cls(1 / np.maximum(k, rank), last, 0 * last, consulted, k, 0.0, 0.0)
        excess = float((1 / np.arange(2, consulted + 1)).sum())  # H_K - 1
        others = max(n - 1, 1)
        last_match = (1 - 1 / classes) / n + (1 - np.maximum(sizes - 1, 0) / others) * excess / n
        last_other = (0 - 1 / classes) / n - sizes / others * excess / n
        steps = 1 / np.maximum(consulted, rank) + excess / others
        return cls(steps, last_match, last_other, consulted, consulted, 1 / classes, excess)


def _sum_over_validation(
    points: Points, validation: Validation, plan: Recursion, precision: str, advance: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Values in input order and, for each validation point, the matches among its neighbors.

    The validation set is cut into jobs that depend only on its size and N. Each job sums its own
    values, and the sums are added in the order of the jobs. So the bits are the same for any number
    of threads.
    """
    n, left_out = len(points), int(validation.mutual)
    total = np.zeros(n)
    matches = np.zeros(len(validation), np.int64)
    benches: SimpleQueue[Bench] = SimpleQueue()  # buffers are handed on from job to job
    sums: SimpleQueue[NDArray[np.float64]] = SimpleQueue()

    def job(source: Source, lo: int, hi: int) -> NDArray[np.float64]:
        bench = take(benches) or Bench.of(n)
        values = take(sums)
        values = np.empty(n) if values is None else values
        values[:] = 0.0
        for v in range(lo, hi):
            code = int(validation.codes[v])
            order(bench, source, v, points.codes, code)
            if left_out:
                move_to_front(bench.keys, v)
            last = float(plan.last_match[code]), float(plan.last_other[code])
            matches[v] = add_values(
                bench.keys[left_out:], plan.steps, *last, plan.consulted, values
            )
            if advance is not None:
                advance(n)
        benches.put(bench)
        return values

    parallel = n >= PARALLEL_POINTS and n * len(validation) >= PARALLEL_PAIRS
    rows = max(1, min(JOB_ROWS, -(-len(validation) // 16)))
    for source in sources(points, validation, precision, rows):
        jobs = [(source, lo, hi) for lo, hi in cut(source.start, source.stop, rows)]
        for values in in_order(job, jobs, parallel=parallel):
            total += values
            sums.put(values)
    return total, matches


def _sum_of_nearest(
    points: Points, validation: Validation, plan: Truncation, k: int, precision: str, advance: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The same, but only from the nearest points, added in the order of the validation points."""
    total = np.zeros(len(points))
    far = np.zeros(len(plan.sizes))
    matches = np.zeros(len(validation), np.int64)
    found = closest(points, validation, plan.kept, precision, advance)
    for v, keys in enumerate(found):
        code = int(validation.codes[v])
        beyond = int(plan.sizes[code]) - int((keys & np.uint64(1)).sum())
        matches[v] = add_values(keys, plan.steps, *plan.last(beyond), k, total)
        for_far = plan.far(code, beyond)
        far += for_far
        if validation.mutual:  # it is not a far point of its own
            total[v] -= for_far[code]
    total += far[points.codes]
    return total, matches


def knn_regression(
    X: Any, y: Any, X_val: Any, y_val: Any, *, k: int, metric: str, utility: str, owners: Any,
    mean: bool, progress: bool, empty: Any, semivalue: Semivalue = "shapley",
    complete: bool = False,
) -> Valuation:  # fmt: skip
    """`knn_shapley` for targets that are numbers."""
    if utility == "jia2019" and empty is not None:
        raise InputError("empty needs utility='mean': jia2019 has utility 0 for no points")
    given = 0.0 if utility == "jia2019" else empty
    points, validation, targets = checked_points(
        X, y, X_val, y_val, metric=metric, empty=given, complete=complete
    )
    if isinstance(points.rows, Distances):
        points.rows.check_order(points.rows.players, k, None)
    warn_of_one_feature(points, metric, stacklevel=3)
    points = tie_directions(points, metric)
    known_owners = check_owners(owners, len(points))
    prediction = None if utility == "jia2019" else targets.empty
    values, everybody, nobody = np.zeros(len(points)), 0.0, 0.0
    chances = Chances.of(semivalue, len(points) - validation.mutual, k)
    with progress_bar("knn-shapley", len(points) * len(validation), show=progress) as advance:
        for v, ordered in enumerate(orders(points, validation)):
            own, t = targets.points[ordered], float(targets.judges[v])
            values[ordered] += nearest_values(own, t, k, prediction, chances)
            few = own[:k]
            guess = few.sum() / k if prediction is None else few.mean()
            everybody -= float((guess - t) ** 2)
            nobody -= 0.0 if prediction is None else (prediction - t) ** 2
            if advance is not None:
                advance(len(points))
    divisor = len(validation) if mean else 1
    params = {
        "k": k,
        "metric": validation.metric,
        "utility": utility,
        "semivalue": semivalue_name(semivalue),
        **(targets.record() | ({"empty": None} if prediction is None else {})),
        **validation.record(),
        "mean": mean,
    }
    return Valuation(
        values / divisor, "knn-shapley", params, everybody / divisor, nobody / divisor, known_owners
    )
