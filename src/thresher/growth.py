"""`grow_forest`: the structure of a forest, grown once and then fixed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.inputs.checks import check_count
from thresher.inputs.labels import Classes, Codes, check_labels, class_list
from thresher.neighbors.forests import Forest
from thresher.neighbors.growing import grow
from thresher.neighbors.tree_columns import Features, TreeColumns
from thresher.regression import CLASSES, check_targets, is_regression

MOST_TREES = 1_000_000
USUAL_GROWTH = 200, 2, 0  # how many trees and folds there are by default, and the seed

REGRESSOR = {"bootstrap": False, "min_samples_leaf": 5, "max_features": 1 / 3}


def grow_forest(
    X: Any, y: Any, *, forest: Any = None, trees: int = 200, folds: int = 2, seed: int = 0,
    classes: Any = None, progress: bool = False, task: str = CLASSES,
) -> Forest:  # fmt: skip
    """Grow the structure of a forest for `forest_shapley`, `NeighborCounts` and `LiveCounts`.

    Parameters
    ----------
    X, y
        As in `forest_shapley`, in memory.
    forest, trees, folds, seed
        As in `forest_shapley`.
    classes
        All classes. The default is those of `y`.
    progress
        Show a progress bar on standard error.
    task
        As in `tknn_shapley`. For regression, `y` holds numbers, and the forest is the one of
        `forest_shapley` with this task.

    Returns
    -------
    Forest
        The splits of the trees as plain arrays, without any of the rows.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> forest = th.grow_forest(X, y, trees=4)
    >>> counts = th.NeighborCounts(forest=forest).add(X, y)
    >>> values = counts.price_list().values(X, y)
    >>> (values == th.forest_shapley(X, y, forest=forest).values).all().item()
    True
    """
    settings = check_growth(trees, folds, seed, forest)
    if isinstance(forest, Forest):
        raise InputError("forest is already grown: pass it as it is, without grow_forest")
    if is_fitted(forest) and classes is not None:
        raise InputError("classes cannot be used with a fitted forest, which has its own")
    if is_regression(task, None, None, classes):
        return grow_on_targets(X, check_targets("y", y), forest, settings, progress=progress)
    columns = TreeColumns.of("X", X)
    features = columns.encode("X", X)
    return grown_from(features, columns, y, forest, settings, classes, progress=progress)


def grow_on_targets(
    X: Any, targets: Floats, forest: Any, settings: tuple[int, int, int], *,
    progress: bool = False,
) -> Forest:  # fmt: skip
    """Grow the structure from rows with targets."""
    columns = TreeColumns.of("X", X)
    features = columns.encode("X", X)
    if len(features) != len(targets):
        raise InputError(f"X has {len(features)} rows but y has {len(targets)} targets")
    return grow_targets(features, targets, columns, forest, settings, progress=progress)


def grow_targets(
    features: Features, targets: Floats, columns: TreeColumns, forest: Any,
    settings: tuple[int, int, int], *, progress: bool = False,
) -> Forest:  # fmt: skip
    """Grow the structure from rows of numbers with targets, or take that of a fitted forest."""
    if forest is None:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(**REGRESSOR)
    check_regressor(forest)
    if is_fitted(forest):
        return Forest.as_fitted(forest, columns)
    return replace(grow(features, targets, forest, *settings, progress=progress), columns=columns)


def grown_from(
    features: Features, columns: TreeColumns, y: Any, forest: Any, settings: tuple[int, int, int],
    classes: Any, *, progress: bool = False,
) -> Forest:  # fmt: skip
    """Grow the structure from rows of numbers, or take that of a fitted forest."""
    labels = check_labels("y", y, len(features))
    if is_fitted(forest):
        return Forest.as_fitted(forest, columns)
    known = class_list(classes, labels)
    codes = known.encode("y", labels)
    return grow_codes(features, codes, known, columns, forest, settings, progress=progress)


def grow_codes(
    features: Features, codes: Codes, classes: Classes, columns: TreeColumns, forest: Any,
    settings: tuple[int, int, int], *, progress: bool = False,
) -> Forest:  # fmt: skip
    """Grow the structure from rows of numbers with class codes."""
    grown = grow(features, codes, forest, *settings, progress=progress)
    return replace(grown, columns=columns, classes=classes.labels)


def check_growth(
    trees: object, folds: object, seed: object, forest: Any = None
) -> tuple[int, int, int]:
    """The numbers of trees and folds, and the seed; those of a known `forest` must be the same."""
    found = (
        check_count("trees", trees, most=MOST_TREES),
        check_count("folds", folds, least=2, most=MOST_TREES),
        check_count("seed", seed, least=0, most=2**31),
    )
    own: tuple[Any, ...]
    if isinstance(forest, Forest):
        own = forest.size, forest.folds, forest.seed
    elif is_fitted(forest):
        own = np.size(getattr(forest, "estimators_", ())), None, None
    else:
        return found
    names = "trees", "folds", "seed"
    for name, given, usual, known in zip(names, found, USUAL_GROWTH, own, strict=True):
        if given not in {usual, known}:
            raise InputError(
                f"{name}={given} cannot be used with a forest that is already grown or fitted: "
                f"leave {name} out, or pass a forest that is not fitted"
            )
    return found


def check_regressor(forest: Any) -> None:
    """Raise if the forest is a classifier although targets are numbers."""
    from sklearn.base import is_classifier

    if is_classifier(forest):
        raise InputError(
            "forest must be a regressor with task='regression', such as RandomForestRegressor(), "
            f"got {type(forest).__name__}"
        )


def is_fitted(forest: Any) -> bool:
    """Whether this is a fitted scikit-learn estimator."""
    return hasattr(forest, "classes_") or hasattr(forest, "estimators_")
