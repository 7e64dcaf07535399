"""`owner_shapley`: the exact value of each owner in the game whose players are the owners."""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike
from typing import Any

from thresher.errors import InputError
from thresher.games.semivalues import Calibrated, Semivalue, check_semivalue
from thresher.inputs.checked_inputs import check_pair
from thresher.inputs.checks import check_both, check_flag, check_no_limits, is_dask
from thresher.inputs.labels import check_labels, check_owners, class_list
from thresher.inputs.precomputed import check_complete
from thresher.neighbors.ball import Neighbors, check_neighbors
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX, Kernel, check_kernel
from thresher.owner_valuation import OwnerValuation
from thresher.passes.owner_sums import METHOD, value_owners
from thresher.passes.problem import Problem
from thresher.progress import progress_bar
from thresher.regression import CLASSES, Targets, is_regression
from thresher.sides.ball_side import BallSide
from thresher.sides.forest_side import check_leaves_alone, forest_side
from thresher.sides.protocol import PublicSide, SidePoints
from thresher.sides.target_forest_side import points_in_leaves, target_forest_side
from thresher.sides.target_side import targets_in_balls


def owner_shapley(
    X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, owners: Any, radius: float = 0.5,
    metric: str = "cosine", kernel: Any = BOX, rings: int = 16, semivalue: Semivalue = "shapley",
    task: str = CLASSES, empty: float | None = None, bounds: tuple[float, float] | None = None,
    forest: Forest | None = None, classes: Any = None, mean: bool = False,
    neighbors: Neighbors = "auto", progress: bool = False, memory: int | str | None = None,
    checkpoint: str | PathLike[str] | None = None, complete: bool = False,
) -> OwnerValuation:  # fmt: skip
    """The exact value of each owner in the game whose players are the owners.

    A coalition is a set of owners with all of their points. `Valuation.by_owner` adds up the values
    of points instead. docs/payouts.md says which rule to choose.

    Parameters
    ----------
    X, y, X_val, y_val, radius, metric, semivalue, classes, neighbors, progress
        As in `tknn_shapley`.
    owners
        The owner of each point. Owners that differ only by case or spaces are different owners, and
        a warning names them.
    kernel, rings
        How much near points count by their distance, as in `tknn_shapley`.
    task, empty, bounds
        As in `tknn_shapley`. "regression" takes numbers in place of labels. In parts and
        on Dask the default for `bounds` is that of `NeighborCounts`.
    forest
        The structure of trees that `grow_forest` makes. Near then means in the same leaf, as in
        `forest_shapley`, and radius and metric are not used. Without `X_val` and `y_val`, the
        points judge each other.
    mean
        As in `tknn_shapley`.
    memory
        As in `tknn_shapley`. Points are read in parts, once for their labels and once for the sums,
        or more often if the sums of all owners do not fit.
    checkpoint
        As in `tknn_shapley`; `memory` may change from one run to the next.
    complete
        As in `tknn_shapley`.

    Returns
    -------
    OwnerValuation
        One value per owner, in order of first appearance.

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the first offending rows.

    Notes
    -----
    For a validation point, the utility of a set of owners is the share of their near points that
    carry the label, weighted by the kernel, or 1/C if they have no near point. For regression it is
    minus the squared error of the mean of their near targets. Utility is added up over validation
    points. Values come from one double integral for each validation point, exact to rounding: see
    `games/owner_values.py`. The cost for a validation point is O(different numbers of near points
    that owners have), whatever the number of points. Owners without a near point cost nothing
    there. The integral runs over the chance that each other owner is present, and the semivalue
    must be a mixture over that chance. So Beta(a, b) takes a and b from 0.01 to 64, and
    `Calibrated` is refused.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 2.0]], ["cat", "dog", "dog", "dog"]
    >>> data = X, y, [[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"]
    >>> found = th.owner_shapley(*data, owners=["ann", "bob", "ann", "bob"], radius=0.4)
    >>> {owner: round(value, 3) for owner, value in found.by_owner().items()}
    {'ann': 0.75, 'bob': -0.25}
    """
    asked = radius, metric, kernel
    radius, shape = check_kernel(kernel, rings, radius)
    semivalue = _check_mixture(semivalue)
    regression = is_regression(task, empty, bounds, classes)
    mean, progress = check_flag("mean", mean), check_flag("progress", progress)
    neighbors = check_neighbors(neighbors)
    if owners is None:
        raise InputError(
            "owners is None: pass the owner of each point, one entry for each row of X"
        )
    if forest is not None:
        check_leaves_alone(*asked)
    numbers = {"empty": empty, "bounds": bounds} if regression else None
    in_parts = memory is not None or checkpoint is not None or hasattr(X, "source_of_parts")
    complete = check_complete(complete, metric, in_parts=in_parts or is_dask(X))
    if in_parts or is_dask(X):
        from thresher.passes.owner_passes import owners_in_parts, owners_on_dask

        problem = _problem(
            X_val, y_val, radius, metric, shape, semivalue, forest, classes, numbers, mean=mean
        )
        if is_dask(X):
            check_no_limits(memory, checkpoint)
            return owners_on_dask(X, y, problem, owners, neighbors, progress=progress)
        return owners_in_parts(
            X, y, problem, owners, neighbors, memory, checkpoint, progress=progress
        )
    points: SidePoints
    side: PublicSide
    if regression and forest is None:
        data = X, y, X_val, y_val
        near_targets: Any = {"metric": metric, "empty": empty, "bounds": bounds, "kernel": shape}
        near_targets["complete"] = complete
        points, side, _ = targets_in_balls(*data, radius, **near_targets)
    elif regression:
        check_both(X_val, y_val)
        points, side = points_in_leaves(forest, X, X_val, Targets.check(y, y_val, empty), bounds)
    elif forest is None:
        labels: Any = {"metric": metric, "classes": classes, "complete": complete}
        near, validation = check_pair(X, y, X_val, y_val, mutual=True, **labels)
        points, side = near, BallSide(validation, radius, shape)
    else:
        points, side = _in_leaves(X, y, X_val, y_val, forest, classes)
    known: Any = check_owners(owners, len(points))
    with progress_bar(METHOD, _steps(side, len(points)), show=progress) as advance:
        return value_owners(
            points, side, known, semivalue, neighbors=neighbors, mean=mean, advance=advance,
            stacklevel=3,
        )  # fmt: skip


def _in_leaves(
    X: Any, y: Any, X_val: Any, y_val: Any, forest: Forest, classes: Any
) -> tuple[SidePoints, PublicSide]:
    """Points and judges if near means in the same leaf."""
    side, labels = forest_side(forest, X_val, y_val, classes), check_labels("y", y)
    public = _listed("y_val", [] if y_val is None else y_val)
    side = side.with_classes(class_list(classes, labels, public), public)
    return side.check_points(X, y, labels), side


def _listed(name: str, labels: Any) -> list[Hashable]:
    found = check_labels(name, labels)
    return found if isinstance(found, list) else list(found.tolist())


def _problem(
    X_val: Any, y_val: Any, radius: float, metric: str, kernel: Kernel | None,
    semivalue: Semivalue, forest: Forest | None, classes: Any, numbers: dict[str, Any] | None, *,
    mean: bool,
) -> Problem:  # fmt: skip
    """The problem for points that are read in parts."""
    from thresher.passes.partitions import collected

    X_val, y_val = collected(X_val), collected(y_val)
    about: Any = {"radius": radius, "metric": metric, "semivalue": semivalue, "mean": mean}
    if forest is None:
        return Problem.check(X_val, y_val, kernel=kernel, classes=classes, targets=numbers, **about)
    if numbers is not None:
        side = target_forest_side(forest, X_val, y_val, **numbers)
        return Problem.by_numbers(side, semivalue, mean=mean)
    leaves = forest_side(forest, X_val, y_val, classes)
    labels = _listed("y_val", [] if y_val is None else y_val)
    return Problem(leaves, labels, semivalue, classes, mean, expected=forest.classes)


def _check_mixture(semivalue: Any) -> Semivalue:
    """Return the semivalue if it is a mixture over the chance that others are present."""
    if isinstance(semivalue, Calibrated):
        raise InputError(
            "semivalue=Calibrated values points, not owners. Use 'shapley', 'banzhaf', "
            "'leave-one-out' or Beta(a, b), or value the points and add them up with "
            "Valuation.by_owner"
        )
    return check_semivalue(semivalue)


def _steps(side: PublicSide, points: int) -> int:
    return points * len(side) if isinstance(side, BallSide) else side.near().cells
