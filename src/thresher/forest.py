"""`leaf_shapley` and `forest_shapley`: exact values for the soft vote of trees.

Near means in the same leaf. A tree's vote for a label is its share among the coalition's members in
the judge's leaf, or 1/C if there are none. The vote of the forest is the mean over its trees. If
the structure of the trees is fixed, that is a sum of threshold games. So every semivalue follows
exactly from the class counts of leaves.

For a coalition S of the points, judges j with labels y_j, and the trees T_j that judge j uses,

    U(S) = sum_j mean_{t in T_j} share of y_j among the members of S that are in leaf_t(j),

where a point that is also a judge is left out of its own game. Validation points use all trees.
Points use, and are in, only the trees in which they are `unseen`.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, overload

import numpy as np

from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.growth import check_growth, grow_on_targets, grown_from
from thresher.inputs.checks import (
    DaskCollection,
    check_both,
    check_flag,
    check_no_limits,
    is_dask,
)
from thresher.neighbors.forests import Forest
from thresher.neighbors.tree_columns import TreeColumns
from thresher.passes.dask_valuation import DaskValuation
from thresher.passes.votes import Votes, leaf_regression, leaf_votes
from thresher.regression import CLASSES, REGRESSION, Targets, check_no_classes, check_task
from thresher.valuation import Valuation

LEAVES, FOREST = "leaf-shapley", "forest-shapley"


def leaf_shapley(
    leaves: Any,
    y: Any,
    leaves_val: Any = None,
    y_val: Any = None,
    *,
    unseen: Any = None,
    semivalue: Semivalue = "shapley",
    classes: Any = None,
    owners: Any = None,
    mean: bool = False,
    progress: bool = False,
    task: str = CLASSES,
    empty: float | None = None,
) -> Valuation:
    """The exact value of each point for the soft vote of trees whose leaves are known.

    Parameters
    ----------
    leaves, y
        The points: a whole number for the leaf of each point (row) in each tree (column), and a
        label for each point. Leaves come from `forest.apply(X)`, from the leaf indices of LightGBM
        or XGBoost, or from any other partition, such as cells of a grid or hashes.
    leaves_val, y_val
        The validation set. Without it, the points judge each other.
    unseen
        An array like `leaves`: True where the tree was grown without the point. The default is True
        everywhere.
    semivalue, classes, owners, progress
        As in `tknn_shapley`.
    mean
        Divide by the number of judges. Otherwise values are sums over them.
    task, empty
        As in `tknn_shapley`. For regression, the utility of a coalition for a judge is minus the
        squared error of the mean target in the judge's leaf, as a mean over trees.

    Returns
    -------
    Valuation
        One value per point, in input order. They add up to the utility of all points minus that of
        none.

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the first offending rows.

    Notes
    -----
    A judge is a validation point, or a point if they judge each other. The utility of a coalition
    for a judge is a mean over trees: the share of its members in the judge's leaf that carry the
    judge's label, or 1/C if it has no member there. That is what `predict_proba` of a forest
    averages. Validation points use all trees, points that judge each other those in which they are
    `unseen`. Cost O(N T), and O(leaves x classes) for each tree.

    Examples
    --------
    >>> import thresher as th
    >>> leaves, y = [[0, 0], [0, 1], [1, 1]], ["cat", "dog", "dog"]
    >>> th.leaf_shapley(leaves, y, [[0, 0], [1, 1]], ["cat", "dog"]).values.round(3).tolist()
    [0.5, -0.125, 0.375]
    >>> th.leaf_shapley(leaves, y).values.round(3).tolist()
    [-0.25, 0.0, 0.25]
    """
    if check_task(task) == REGRESSION:
        check_no_classes(classes)
        votes, targets = leaf_target_votes(leaves, y, leaves_val, y_val, unseen, empty)
        return leaf_regression(
            votes, targets, LEAVES, {}, check_semivalue(semivalue), owners=owners,
            mean=check_flag("mean", mean), progress=check_flag("progress", progress),
        )  # fmt: skip
    check_no_empty(empty)
    votes = leaf_votes(leaves, y, leaves_val, y_val, unseen=unseen, classes=classes)
    return votes.valuation(LEAVES, {}, semivalue, owners=owners, mean=mean, progress=progress)


def leaf_target_votes(
    leaves: Any, y: Any, leaves_val: Any, y_val: Any, unseen: Any, empty: Any
) -> tuple[Votes, Targets]:
    """Check points and judges with numbers in known leaves, and their targets."""
    check_both(leaves_val, y_val, "leaves_val")
    targets = Targets.check(y, y_val, empty)
    points, judges = targets.as_classes(judged=leaves_val is not None)
    votes = leaf_votes(leaves, points, leaves_val, judges, unseen=unseen, classes=[0])
    return votes, targets


def check_no_empty(empty: Any) -> None:
    """Raise if a prediction for no points is given, which classes do not need."""
    if empty is not None:
        raise InputError(
            "empty needs task='regression': for classes, the utility is 1/C where no point is near"
        )


@overload
def forest_shapley(X: DaskCollection, *others: Any, **options: Any) -> DaskValuation: ...
@overload
def forest_shapley(
    X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, forest: Any = None, trees: int = 200,
    folds: int = 2, seed: int = 0, semivalue: Semivalue = "shapley", classes: Any = None,
    owners: Any = None, mean: bool = False, progress: bool = False,
    memory: int | str | None = None, checkpoint: str | PathLike[str] | None = None,
    task: str = CLASSES, empty: float | None = None,
) -> Valuation: ...  # fmt: skip


def forest_shapley(
    X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, forest: Any = None, trees: int = 200,
    folds: int = 2, seed: int = 0, semivalue: Semivalue = "shapley", classes: Any = None,
    owners: Any = None, mean: bool = False, progress: bool = False,
    memory: int | str | None = None, checkpoint: str | PathLike[str] | None = None,
    task: str = CLASSES, empty: float | None = None,
) -> Valuation | DaskValuation:  # fmt: skip
    """The exact value of each point for the soft vote of a random forest.

    The structure of the trees is grown first, and then fixed. A point fills only trees that were
    grown without it, so that a wrong label cannot shape the leaf that judges it.

    Parameters
    ----------
    X, y
        The points: a table (NumPy, pandas, polars, Arrow, Dask) and a label for each row, or a
        `Scan` of files and None. Cells may be missing, columns of a data frame may be categories or
        text, and no scaling is needed.
    X_val, y_val
        The validation set. Without it, the points judge each other.
    forest
        The structure that `grow_forest` makes, with its own `trees`, `folds` and `seed`. Or a
        scikit-learn classifier with `apply` and `n_estimators` that grows the trees; the default is
        `RandomForestClassifier(bootstrap=False)`. Its own `n_estimators` and `random_state` are not
        used: `trees` and `seed` replace them. A fitted forest is used as it is: every point then
        fills all of its trees, whether they saw it or not. `X` must have the columns that it was
        fitted on.
    trees
        How many trees there are in all, a multiple of `folds`.
    folds
        How many folds there are. A hash of its features assigns each point to a fold, so copies
        stay together and the order of points does not matter. Each point fills the trees that were
        grown on the other folds, which is `trees / folds` of them.
    seed
        The seed of the folds and of the trees.
    semivalue, classes, owners, mean, progress
        As in `leaf_shapley`.
    memory, checkpoint
        As in `tknn_shapley`. Points are read in parts and pass through the trees where they are
        stored. The values are the same to the last bit.
    task, empty
        As in `leaf_shapley`. The forest is a regressor then, by default
        `RandomForestRegressor(bootstrap=False, min_samples_leaf=5, max_features=1/3)`.

    Returns
    -------
    Valuation
        One value per point, in input order; a `DaskValuation` for Dask collections.

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it and the first offending rows.

    Notes
    -----
    `leaf_shapley` defines the utility. Folds are drawn up to ten times, and the trees are divided
    among these draws. For each fold, at most 20,000 points outside it decide the structure of its
    trees: those with the smallest hashes of their features, so order and partitions do not matter.
    All points of the fold fill them. Growing the trees takes most of the time. Values take
    O(N trees depth) time, and memory for one tree at a time. In parts and on Dask, they take memory
    for the class counts of all leaves, or for their sums of targets.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y, wrong = th.flip_labels((X[:, 0] > 0).astype(int), fraction=0.05, seed=0)
    >>> valuation = th.forest_shapley(X, y, trees=40)
    >>> int(wrong[valuation.suspects(10)].sum())
    9
    """
    trees, folds, seed = check_growth(trees, folds, seed, forest)
    check_both(X_val, y_val)
    in_parts = not (memory is None and checkpoint is None) or hasattr(X, "source_of_parts")
    regression = check_task(task) == REGRESSION
    check_no_classes(classes) if regression else check_no_empty(empty)
    if in_parts or is_dask(X):
        from thresher.passes.forest_growth import Growth, growth_of
        from thresher.passes.forest_passes import forest_in_parts, forest_on_dask

        mean, progress = check_flag("mean", mean), check_flag("progress", progress)
        how = forest, (trees, folds, seed), X_val, y_val, check_semivalue(semivalue)
        growth = Growth(*how, classes, mean)
        if regression:
            growth = growth_of(*how, mean=mean, empty=empty)
        if is_dask(X):
            check_no_limits(memory, checkpoint)
            return forest_on_dask(X, y, growth, owners=owners, progress=progress)
        return forest_in_parts(
            X, y, growth, owners=owners, progress=progress, memory=memory, checkpoint=checkpoint
        )
    if regression:
        targets = Targets.check(y, y_val, empty)
        votes, about = target_votes(X, X_val, targets, forest, (trees, folds, seed), progress)
        return leaf_regression(
            votes, targets, FOREST, about, check_semivalue(semivalue), owners=owners,
            mean=check_flag("mean", mean), progress=check_flag("progress", progress),
        )  # fmt: skip
    votes, about = forest_votes(
        X, y, X_val, y_val, forest=forest, trees=trees, folds=folds, seed=seed, classes=classes,
        progress=progress,
    )  # fmt: skip
    return votes.valuation(FOREST, about, semivalue, owners=owners, mean=mean, progress=progress)


def target_votes(
    X: Any, X_val: Any, targets: Targets, forest: Any, settings: tuple[int, int, int],
    progress: bool,  # noqa: FBT001
) -> tuple[Votes, dict[str, Any]]:  # fmt: skip
    """Grow a forest for numbers, and find points and judges in its leaves."""
    if not isinstance(forest, Forest):
        forest = grow_on_targets(X, targets.points, forest, settings, progress=progress)
    points, judges = targets.as_classes(judged=X_val is not None)
    known = dict(zip(("trees", "folds", "seed"), settings, strict=True))
    return forest_votes(
        X, points, X_val, judges, forest=forest, classes=[0], progress=progress, **known
    )


def forest_votes(
    X: Any, y: Any, X_val: Any, y_val: Any, *, forest: Any, trees: int, folds: int, seed: int,
    classes: Any, progress: bool,
) -> tuple[Votes, dict[str, Any]]:  # fmt: skip
    """Grow a forest, and find points and judges in its leaves, with facts about the forest."""
    settings = check_growth(trees, folds, seed)
    check_both(X_val, y_val)
    if isinstance(forest, Forest):
        features = forest.encode("X", X)
    else:
        columns = TreeColumns.of("X", X)
        features = columns.encode("X", X)
        forest = grown_from(features, columns, y, forest, settings, classes, progress=progress)
    rows, rows_val = forest.rows(features), None
    if X_val is not None:
        rows_val = forest.rows(forest.encode("X_val", X_val), everywhere=True)
    each = np.full(len(features), forest.trees_each)
    sizes, middle = forest.sizes, forest.middle
    votes = Votes.of(rows, y, rows_val, y_val, sizes, each, classes, middle, forest)
    about: dict[str, Any] = {"forest": forest.name, "folds": forest.folds or None}
    return votes, about | ({"seed": forest.seed} if forest.folds else {})
