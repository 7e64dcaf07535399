"""`tknn_shapley` and `zero_budget_score`: count, price and value in one pass over the distances."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, overload

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.games.target_evidence import Paid
from thresher.inputs.checked_inputs import (
    check_pair,
    check_validation,
    warn_of_labels,
    warn_of_twins,
)
from thresher.inputs.checks import (
    DaskCollection,
    check_flag,
    check_no_limits,
    check_radius,
    is_dask,
)
from thresher.inputs.labels import check_labels, check_owners, class_list
from thresher.inputs.precomputed import check_complete
from thresher.neighbors.ball import Neighbors, check_neighbors
from thresher.neighbors.kernel import BOX, Kernel, check_kernel
from thresher.passes.dask_valuation import DaskValuation
from thresher.passes.result import value_here
from thresher.passes.walk import value
from thresher.regression import CLASSES, is_regression
from thresher.sides.ball_side import BallSide
from thresher.sides.target_side import target_side, targets_in_balls
from thresher.valuation import Valuation


@overload
def tknn_shapley(X: DaskCollection, *others: Any, **options: Any) -> DaskValuation: ...
@overload
def tknn_shapley(
    X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, radius: float = 0.5,
    metric: str = "cosine", semivalue: Semivalue = "shapley", classes: Any = None,
    owners: Any = None, mean: bool = False, neighbors: Neighbors = "auto", progress: bool = False,
    memory: int | str | None = None, checkpoint: str | PathLike[str] | None = None,
    kernel: Any = BOX, rings: int = 16, task: str = CLASSES, empty: float | None = None,
    bounds: tuple[float, float] | None = None, complete: bool = False,
) -> Valuation: ...  # fmt: skip


def tknn_shapley(
    X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, radius: float = 0.5,
    metric: str = "cosine", semivalue: Semivalue = "shapley", classes: Any = None,
    owners: Any = None, mean: bool = False, neighbors: Neighbors = "auto", progress: bool = False,
    memory: int | str | None = None, checkpoint: str | PathLike[str] | None = None,
    kernel: Any = BOX, rings: int = 16, task: str = CLASSES, empty: float | None = None,
    bounds: tuple[float, float] | None = None, complete: bool = False,
) -> Valuation | DaskValuation:  # fmt: skip
    """The exact value of each point for the threshold nearest-neighbor classifier.

    Parameters
    ----------
    X, y
        The points: a table of numbers (NumPy, memmap, pandas, polars, Arrow) and a label for each
        row, or a `Scan` of files and None.
    X_val, y_val
        The validation set, on which utility is measured. `tknn_shapley` and `knn_shapley` work
        without one: each point then judges all other points, and no point judges itself.
        Precomputed distances are then those between the points.
    radius
        The distance up to which a point counts, inclusive, in the metric's units; see
        `suggest_radius`.
    metric
        "cosine" (1 - cosine similarity, in [0, 2]), "euclidean", or "precomputed". For
        "precomputed", X_val is None, and X holds the distances, one row per point and one column
        per validation point (or yields blocks of such columns). What a sparse matrix does not
        store is far, as in a graph of scikit-learn.
    semivalue
        "shapley", "banzhaf", "leave-one-out", `Beta(a, b)`, or (without a kernel) `Calibrated(t)`.
    classes
        All classes. The default is those that occur in `y` and `y_val`.
    owners
        The owner of each point, for `Valuation.by_owner`.
    mean
        Divide by the number of validation points, or of points that judge each other. Otherwise
        values are sums over them.
    neighbors
        How near pairs are found. "all" looks at every pair, "tree" only at those that boxes around
        the points do not exclude, and "auto" takes the one that is expected to be faster: all give
        the same bits.
    progress
        Show a progress bar on standard error.
    memory
        The most memory that this process may use, in bytes or as "2GB". It includes the interpreter
        and everything else in the process, but not pages of files. Points are then read in parts,
        in two passes. The values are the same to the last bit.
    checkpoint
        The path of a file that saves progress. After an interruption of any kind, call the function
        again with the same arguments to continue. The file is removed at the end of the run. Points
        are then read in parts, too.
    kernel
        How much near points count. "box" counts all of them alike. "gaussian", "triangular" and
        "epanechnikov" count points less the farther away they are, in `rings` of equal width, each
        with the weight at its middle (the radius is three standard deviations of the Gaussian). Or
        a sequence of (radius, weight), one for each ring from the inside out; then leave out
        `radius`.
    rings
        Into how many rings a named kernel is divided.
    task
        "classification" or "regression". For regression, `y` and `y_val` hold numbers, and utility
        is minus the squared error of the mean of the near targets, weighted by the kernel.
    empty
        For regression: the prediction if no point is near, a public number. The default is the mean
        of the validation targets. Without validation targets it is required.
    bounds
        For regression: the public range of targets. Targets are kept in steps of the larger bound
        divided by 2^92. The default is the range of all targets; finding it in parts and on Dask
        takes an extra pass.
    complete
        For sparse precomputed distances: True if X stores all that are within the radius. Without
        it, X is refused if it looks like a graph of nearest points that may lack some.

    Returns
    -------
    Valuation
        One value per point, in input order.

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the first offending rows.

    Notes
    -----
    The utility of a coalition for a validation point is the share of its near members that carry
    the label, weighted by the kernel, or 1/C if it has none. The utilities for all validation
    points are added up. The box has closed forms. With another kernel, values are converged
    integrals, exact to rounding. The cost is at most O(N M d) time and O(N + M) memory; with a tree
    it is O(N log N + (N + M log N) d) for few features and a small radius. Whether a pair is near
    is decided as in float64, for any dtype. From "Threshold KNN-Shapley" (Wang, Zhu, Wang, Jia,
    Mittal, NeurIPS 2023).

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[1.0, 0.1], [0.9, 0.0], [0.1, 1.0]], ["cat", "dog", "dog"]
    >>> valuation = th.tknn_shapley(X, y, [[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> valuation.values.round(3).tolist()
    [0.5, -0.5, 0.5]
    >>> th.tknn_shapley(X, y).values.tolist()  # near each other, the first two disagree
    [-0.5, -0.5, 0.0]
    """
    radius, shape = check_kernel(kernel, rings, radius)
    semivalue = check_semivalue(semivalue, calibrated=shape is None)
    mean, progress = check_flag("mean", mean), check_flag("progress", progress)
    neighbors = check_neighbors(neighbors)
    regression = is_regression(task, empty, bounds, classes)
    in_parts = memory is not None or checkpoint is not None or hasattr(X, "source_of_parts")
    if X_val is None and y_val is None and (in_parts or is_dask(X)):
        raise InputError(
            "X_val and y_val are needed with memory, checkpoint, a Scan or Dask: points that "
            "judge each other must all be in memory. Pass a validation set, such as a sample of "
            "rows that you leave out of X"
        )
    complete = check_complete(complete, metric, in_parts=in_parts or is_dask(X))
    if regression and not (in_parts or is_dask(X)):
        return radius_regression(
            X, y, X_val, y_val, radius=radius, metric=metric, semivalue=semivalue, owners=owners,
            mean=mean, neighbors=neighbors, progress=progress, empty=empty,
            bounds=bounds, kernel=shape, complete=complete,
        )  # fmt: skip
    if is_dask(X):
        check_no_limits(memory, checkpoint)
    settings: Any = {
        "radius": radius, "metric": metric, "semivalue": semivalue, "classes": classes,
        "owners": owners, "mean": mean, "neighbors": neighbors, "progress": progress,
        "kernel": shape, "targets": {"empty": empty, "bounds": bounds} if regression else None,
    }  # fmt: skip
    if in_parts:
        from thresher.passes.in_parts import value_in_parts

        return value_in_parts(X, y, X_val, y_val, memory=memory, checkpoint=checkpoint, **settings)
    if is_dask(X):
        from thresher.passes.on_dask import value_on_dask

        return value_on_dask(X, y, X_val, y_val, **settings)
    points, validation = check_pair(
        X, y, X_val, y_val, metric=metric, classes=classes, mutual=True, complete=complete
    )
    return value_here(
        points, BallSide(validation, radius, shape), semivalue, owners=owners, mean=mean,
        neighbors=neighbors, progress=progress, stacklevel=3,
    )  # fmt: skip


def radius_regression(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
    owners: Any, mean: bool, neighbors: Neighbors, progress: bool, empty: Any,
    bounds: Any = None, kernel: Kernel | None = None, kind: Any = None,
    show: Callable[[Paid], None] | None = None, complete: bool = False,
) -> Valuation:  # fmt: skip
    """`tknn_shapley` for targets that are numbers; `show` receives what the game paid points.

    `kind` is the game, a `TargetGame`, or with a kernel a `RingTargetGame`.
    """
    known: Any = {"metric": metric, "empty": empty, "bounds": bounds, "kernel": kernel}
    known["complete"] = complete
    points, side, targets = targets_in_balls(X, y, X_val, y_val, radius, **known)

    def see(sums: Floats) -> None:
        if show is not None:
            show(Paid(sums, side.grid, targets, len(side) if mean else 1))

    return value_here(
        points, side, semivalue, owners=owners, mean=mean, neighbors=neighbors, progress=progress,
        stacklevel=4, kind=kind, show=see,
    )  # fmt: skip


def zero_budget_score(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float = 0.5, metric: str = "cosine",
    classes: Any = None, owners: Any = None, mean: bool = False, task: str = CLASSES,
    empty: float | None = None, bounds: tuple[float, float] | None = None, complete: bool = False,
) -> Valuation:  # fmt: skip
    """What each point would be worth alone: a score that uses no other person's data.

    It is a sum over the validation points within the radius: 1 - 1/C if the labels agree, and -1/C
    if they do not. For regression, it is the squared error of `empty` minus that of the point. The
    score costs no privacy budget at all, and is the baseline that every private valuation has to
    beat. `utility_all` is NaN, because it would depend on everybody.

    Parameters
    ----------
    X, y, X_val, y_val, radius, metric, owners, mean, task, empty
        As in `tknn_shapley`.
    bounds, complete
        As in `NeighborCounts`.
    classes
        All classes. The default is those of `y_val`, because a list taken from `y` would depend on
        everybody. A label that is not among those of `y_val` agrees with none.

    Returns
    -------
    Valuation
        One score per point, in input order.

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the first offending rows.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[1.0, 0.1], [0.9, 0.0]], ["cat", "dog"]
    >>> X_val, y_val = [[1.0, 0.0], [0.9, 0.2], [0.0, 1.0]], ["cat", "cat", "dog"]
    >>> th.zero_budget_score(X, y, X_val, y_val).values.tolist()
    [1.0, -1.0]
    """
    radius, mean = check_radius(radius), check_flag("mean", mean)
    side: BallSide
    if is_regression(task, empty, bounds, classes):
        side = target_side(
            X_val, y_val, radius=radius, metric=metric, empty=empty, bounds=bounds,
            complete=complete,
        )  # fmt: skip
        points, prices = side.check_points(X, y), side.alone_prices()
        none = side.utility_none(len(side))
    else:
        validation = check_validation(
            X_val, y_val, metric=metric, classes=classes, public=True, complete=complete
        )
        labels, side = check_labels("y", y), BallSide(validation, radius)
        points = side.check_points(X, y, labels, strangers=classes is None)
        if classes is None:
            warn_of_labels(class_list(None, labels).labels, validation.classes.labels, stacklevel=3)
        warn_of_twins(points, validation, stacklevel=3)
        share = 1 / len(validation.classes)
        prices = np.repeat([[1 - share], [-share]], len(validation), axis=1)
        none = len(validation) * share
    known_owners, divisor = check_owners(owners, len(points)), len(side) if mean else 1
    values = value(points, side.near(), side.counting(), prices, divisor=divisor)
    params = side.params("shapley", mean=mean)
    del params["semivalue"]
    return Valuation(values, "zero-budget-score", params, np.nan, none / divisor, known_owners)
