"""tknn_shapley and zero_budget_score: count, price and value in one pass over the distances."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from importlib import import_module
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_flag, check_radius, is_dask
from thresher.errors import InputError, ReachWarning
from thresher.inputs import (
    Points,
    Validation,
    check_pair,
    check_points,
    check_validation,
    warn_of_twins,
)
from thresher.labels import check_owners
from thresher.near import Groups, own_counts
from thresher.neighbors import Neighbors, Search, check_exact, check_neighbors
from thresher.prices import Semivalue, check_semivalue, member_prices, semivalue_name, utility
from thresher.progress import progress_bar
from thresher.valuation import Valuation

METHOD = "tknn-shapley"


def tknn_shapley(
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    radius: float = 0.5,
    metric: str = "cosine",
    semivalue: Semivalue = "shapley",
    classes: Any = None,
    owners: Any = None,
    mean: bool = False,
    neighbors: Neighbors = "auto",
    progress: bool = False,
    memory: int | str | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Valuation:
    """The exact value of each point for the threshold nearest-neighbor classifier.

    Parameters
    ----------
    X, y
        The points: a table of numbers (NumPy, memmap, pandas, polars, Arrow) and a label each; or a
        `Scan` of files, and None.
    X_val, y_val
        The validation set, on which utility is measured.
    radius
        Distance up to which a point counts, inclusive, in the metric's units; see `suggest_radius`.
    metric
        "cosine" (1 - cosine similarity, in [0, 2]), "euclidean", or "precomputed": then X holds the
        distances, one row a point and one column a validation point (or yields blocks of such
        columns), and X_val is None.
    semivalue
        "shapley", "banzhaf", "leave-one-out" or `Beta(a, b)`.
    classes
        All classes; without it, those that occur in `y` and `y_val`.
    owners
        The owner of each point, for `Valuation.by_owner`.
    mean
        Divide by the number of validation points; without it, values are sums over them.
    neighbors
        How near pairs are found. "all" looks at every pair, "tree" only at those that boxes around
        the points do not exclude, and "auto" takes the one that is expected to be faster: all give
        the same bits. "approximate" misses near pairs, about one in twenty; `Valuation.params` then
        says so, and what share of the near pairs of a sample was found.
    progress
        Show a progress bar on standard error.
    memory
        The most bytes this process may take, as a number or as "2GB", its interpreter and whatever
        it holds included, pages of files not: points are read in parts, in two passes. The values
        are the same to the last bit.
    checkpoint
        A folder that a broken run goes on from, when it is called with the same arguments; it is
        removed at the end. Points are then read in parts, too.

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
    The utility of a coalition for a validation point is the share of its near members that carry
    the label, 1/C where there is none; `prices` has the closed form. Cost at most O(N M d) in time
    and O(N + M) in memory; by a tree O(N log N + (N + M log N) d) for few features and a small
    radius. Whether a pair is near is decided as in float64, for any dtype. From "Threshold
    KNN-Shapley" (Wang, Zhu, Wang, Jia, Mittal, NeurIPS 2023).

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[1.0, 0.1], [0.9, 0.0], [0.1, 1.0]], ["cat", "dog", "dog"]
    >>> valuation = th.tknn_shapley(X, y, [[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> valuation.values.round(3).tolist()
    [0.5, -0.5, 0.5]
    """
    radius, semivalue = check_radius(radius), check_semivalue(semivalue)
    mean, progress = check_flag("mean", mean), check_flag("progress", progress)
    neighbors = check_neighbors(neighbors)
    if is_dask(X) and not (memory is None and checkpoint is None):
        raise InputError(
            "memory and checkpoint go without Dask: workers have memory of their own, and a worker "
            "that is lost takes nothing with it"
        )
    if memory is not None or checkpoint is not None or hasattr(X, "source_of_parts"):
        valuing = import_module("thresher.engines.valuing")  # a layer above
        return valuing.value_in_parts(
            X, y, X_val, y_val, radius=radius, metric=metric, semivalue=semivalue, classes=classes,
            owners=owners, mean=mean, neighbors=check_exact(neighbors), progress=progress,
            memory=memory, checkpoint=checkpoint,
        )  # fmt: skip
    if is_dask(X):
        cluster = import_module("thresher.engines.cluster")  # a layer above
        return cluster.value_on_dask(
            X, y, X_val, y_val, radius=radius, metric=metric, semivalue=semivalue, classes=classes,
            owners=owners, mean=mean, neighbors=check_exact(neighbors), progress=progress,
        )  # fmt: skip
    points, validation = check_pair(X, y, X_val, y_val, metric=metric, classes=classes)
    known_owners = check_owners(owners, len(points))
    with progress_bar("tknn-shapley", len(points) * len(validation), show=progress) as advance:
        way = validation.search(points.rows, radius, neighbors)
        sums, groups, utility_all = _sum_of_prices(points, validation, way, semivalue, advance)
    values = groups.in_input_order(sums, len(validation) if mean else 1)
    return valuation_of(
        values, validation, radius, semivalue, utility_all,
        mean=mean, owners=known_owners, found=way.record,
    )  # fmt: skip


def valuation_of(
    values: NDArray[np.float64], validation: Validation, radius: float, semivalue: Semivalue,
    utility_all: float, *, mean: bool, owners: tuple[Hashable, ...] | None = None,
    found: Mapping[str, Any] = MappingProxyType({}),
) -> Valuation:  # fmt: skip
    """The result of `tknn_shapley` with these values, and the sum of utilities of all points.

    `found` says how near pairs were found, where not all were.
    """
    divisor = len(validation) if mean else 1
    utility_none = len(validation) / len(validation.classes)
    values.flags.writeable = False
    params = {**settings(validation, radius, semivalue_name(semivalue), mean=mean), **found}
    return Valuation(values, METHOD, params, utility_all / divisor, utility_none / divisor, owners)


def zero_budget_score(
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    radius: float = 0.5,
    metric: str = "cosine",
    classes: Any = None,
    owners: Any = None,
    mean: bool = False,
) -> Valuation:
    """What each point would be worth alone: a score that uses no other person's data.

    The sum, over the validation points within the radius, of 1 - 1/C where the labels agree and
    -1/C where they do not. It costs no privacy budget at all, and is the baseline that every
    private valuation has to beat. `utility_all` is NaN: it would depend on everybody.

    Parameters
    ----------
    X, y, X_val, y_val, radius, metric, owners, mean
        As in `tknn_shapley`.
    classes
        All classes; without it, those of `y_val`: a list read off `y` would depend on everybody. A
        label that is not among those of `y_val` agrees with none.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[1.0, 0.1], [0.9, 0.0]], ["cat", "dog"]
    >>> X_val, y_val = [[1.0, 0.0], [0.9, 0.2], [0.0, 1.0]], ["cat", "cat", "dog"]
    >>> th.zero_budget_score(X, y, X_val, y_val).values.tolist()
    [1.0, -1.0]
    """
    radius, mean = check_radius(radius), check_flag("mean", mean)
    validation = check_validation(X_val, y_val, metric=metric, classes=classes)
    points = check_points(X, y, validation, strangers=classes is None)
    warn_of_twins(points, validation, stacklevel=3)
    known_owners = check_owners(owners, len(points))
    share = 1 / len(validation.classes)
    groups = Groups.of(points.codes, len(validation.classes) + 1)
    sums = np.zeros(len(points))
    for block in validation.search(points.rows, radius).blocks(groups):
        codes = validation.codes[block.columns]
        segments = groups.segments(np.unique(codes))
        weights = [np.where(codes == code, 1 - share, -share) for _, _, code in segments]
        block.add(segments, np.array(weights), sums)
    params = {
        "radius": radius,
        "metric": validation.metric,
        "classes": list(validation.classes.labels),
        "validation_points": len(validation),
        "mean": mean,
    }
    divisor = len(validation) if mean else 1
    values, ends = groups.in_input_order(sums, divisor), (np.nan, len(validation) * share / divisor)
    return Valuation(values, "zero-budget-score", params, *ends, known_owners)


def _sum_of_prices(
    points: Points, validation: Validation, way: Search, semivalue: Semivalue, advance: Any
) -> tuple[NDArray[np.float64], Groups, float]:
    """Values sorted by class, and the utility of all points; each distance is computed once."""
    classes = len(validation.classes)
    groups = Groups.of(points.codes, classes)
    sums = np.zeros(len(points))
    counts = np.zeros((2, len(validation)), np.int64)
    for block in way.blocks(groups, advance):
        codes = validation.codes[block.columns]
        segments = groups.segments(np.unique(codes))
        same, other = own_counts(block.count(segments), segments, codes)
        counts[:, block.columns] = same, other
        gain, loss = member_prices(same, other, classes, semivalue)
        weights = [np.where(codes == code, gain, loss) for _, _, code in segments]
        block.add(segments, np.array(weights), sums)
    if not counts.any():
        warn_of_reach(way.radius, stacklevel=4)
    same, other = counts  # priced at once: the same bits for any blocks
    return sums, groups, utility(same, other, classes)


def warn_of_reach(radius: float, *, stacklevel: int) -> None:
    """Warn that nobody is near."""
    warnings.warn(
        f"no point is within radius {radius:g} of any validation point, so every value is 0: "
        "suggest_radius finds a radius that fits the data",
        ReachWarning,
        stacklevel=stacklevel,
    )


def settings(
    validation: Validation, radius: float, semivalue: str, *, mean: bool = False
) -> dict[str, Any]:
    """The parameters that a valuation by `tknn_shapley` holds."""
    return {
        "radius": radius,
        "metric": validation.metric,
        "semivalue": semivalue,
        "classes": list(validation.classes.labels),
        "validation_points": len(validation),
        "mean": mean,
    }
