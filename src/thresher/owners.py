"""owner_shapley: the exact value of each owner, where the players of the game are the owners."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from thresher.checks import check_choice, check_flag, check_radius, is_dask
from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs import check_pair
from thresher.labels import check_labels, check_owners, class_list
from thresher.neighbors.ball import Neighbors, check_neighbors
from thresher.neighbors.forests import Forest
from thresher.owner_valuation import OwnerValuation
from thresher.passes.owner_sums import METHOD, value_owners
from thresher.passes.problem import Problem
from thresher.progress import progress_bar
from thresher.sides.ball import BallSide
from thresher.sides.forest import forest_side
from thresher.sides.protocol import PublicSide, SidePoints


def owner_shapley(
    X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, owners: Any, radius: float = 0.5,
    metric: str = "cosine", kernel: str = "box", semivalue: Semivalue = "shapley",
    task: str = "classification", forest: Forest | None = None, classes: Any = None,
    mean: bool = False, neighbors: Neighbors = "auto", progress: bool = False,
    memory: int | str | None = None,
) -> OwnerValuation:  # fmt: skip
    """The exact value of each owner, where the players of the game are the owners.

    A coalition is some owners with all of their points. `Valuation.by_owner` adds up the values of
    points instead; docs/payouts.md says which rule to choose.

    Parameters
    ----------
    X, y, X_val, y_val, radius, metric, semivalue, classes, neighbors, progress
        As in `tknn_shapley`.
    owners
        The owner of each point. Owners that differ only by case or spaces are different owners, and
        a warning names them.
    kernel
        How near points weigh by their distance: "box", all alike up to the radius.
    task
        What is predicted: "classification", the labels.
    forest
        The structure of trees, as `grow_forest` makes it: then near means in the same leaf, as in
        `forest_shapley`, radius and metric play no part, and without `X_val` and `y_val` the points
        judge each other.
    mean
        As in `tknn_shapley`.
    memory
        As in `tknn_shapley`: points are read in parts, once for their labels and once for the sums,
        or more often where the sums of all owners do not fit.

    Returns
    -------
    OwnerValuation
        One value an owner, in order of first appearance.

    Notes
    -----
    For a validation point the utility of some owners is the share of their near points that carry
    the label, 1/C where there is none; the utility is the sum over validation points. Values come
    from one double integral for each validation point, exact to rounding: see
    `games/owner_values.py`. It costs O(different numbers of near points that owners have) for each
    validation point, whatever the number of points; owners with no near point cost nothing there.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 2.0]], ["cat", "dog", "dog", "dog"]
    >>> data = X, y, [[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"]
    >>> found = th.owner_shapley(*data, owners=["ann", "bob", "ann", "bob"], radius=0.4)
    >>> {owner: round(value, 3) for owner, value in found.by_owner().items()}
    {'ann': 0.75, 'bob': -0.25}
    """
    radius, semivalue = check_radius(radius), check_semivalue(semivalue)
    check_choice("kernel", kernel, ("box",))
    check_choice("task", task, ("classification",))
    mean, progress = check_flag("mean", mean), check_flag("progress", progress)
    neighbors = check_neighbors(neighbors)
    if owners is None:
        raise InputError("owners is None: say whose each point is, with one entry a point")
    if forest is not None and (radius, metric) != (0.5, "cosine"):
        raise InputError("radius and metric go without forest: near is in the same leaf")
    if memory is not None or hasattr(X, "source_of_parts") or is_dask(X):
        from thresher.passes.owner_passes import owners_in_parts, owners_on_dask

        problem = _problem(X_val, y_val, radius, metric, semivalue, forest, classes, mean=mean)
        if is_dask(X):
            return owners_on_dask(X, y, problem, owners, neighbors, progress=progress)
        return owners_in_parts(X, y, problem, owners, neighbors, memory, progress=progress)
    points: SidePoints
    side: PublicSide
    if forest is None:
        labels: Any = {"metric": metric, "classes": classes}
        near, validation = check_pair(X, y, X_val, y_val, mutual=True, **labels)
        points, side = near, BallSide(validation, radius)
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
    """Points and judges, where near means in the same leaf."""
    side, labels = forest_side(forest, X_val, y_val, classes), check_labels("y", y)
    public = _listed("y_val", [] if y_val is None else y_val)
    side = side.with_classes(class_list(classes, labels, public), public)
    return side.check_points(X, y, labels), side


def _listed(name: str, labels: Any) -> list[Hashable]:
    found = check_labels(name, labels)
    return found if isinstance(found, list) else list(found.tolist())


def _problem(
    X_val: Any, y_val: Any, radius: float, metric: str, semivalue: Semivalue,
    forest: Forest | None, classes: Any, *, mean: bool,
) -> Problem:  # fmt: skip
    """What points are valued by that are read in parts."""
    from thresher.passes.partitions import collected

    X_val, y_val = collected(X_val), collected(y_val)
    if forest is None:
        return Problem.check(
            X_val, y_val, radius=radius, metric=metric, semivalue=semivalue, classes=classes,
            mean=mean,
        )  # fmt: skip
    side = forest_side(forest, X_val, y_val, classes)
    labels = _listed("y_val", [] if y_val is None else y_val)
    return Problem(side, labels, semivalue, classes, mean, expected=forest.classes)


def _steps(side: PublicSide, points: int) -> int:
    return points * len(side) if isinstance(side, BallSide) else side.near().cells
