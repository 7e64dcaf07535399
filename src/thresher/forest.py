"""leaf_shapley and forest_shapley: exact values for the soft vote of trees.

Near = in the same leaf. A tree's vote for a label is its share among the coalition's members in
the judge's leaf, 1/C where there is none. The vote of the forest is the mean over its trees. With
the structure of the trees fixed that is a sum of threshold games, so that every semivalue is exact,
from the class counts of leaves.

For a coalition S of the points, judges j with labels y_j, and the trees T_j that judge j uses,

    U(S) = sum_j mean_{t in T_j} share of y_j among the members of S that are in leaf_t(j),

where a point that is a judge is left out of its own game. Validation points use all trees. Points
use, and are in, only the trees in which they are `unseen`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_flag, check_no_limits, is_dask
from thresher.errors import InputError
from thresher.games.forest_vote import ForestVote, Watch, judge_weights
from thresher.games.semivalues import Semivalue, check_semivalue, semivalue_name, weight_table
from thresher.growth import check_growth, check_multiple, grown_from
from thresher.inputs import warn_of_codes
from thresher.labels import Classes, Codes, check_labels, check_owners, class_list
from thresher.neighbors.forests import Forest
from thresher.neighbors.growing import grow
from thresher.neighbors.leaves import LeafRows, LeafTable, Leaves
from thresher.neighbors.tree_columns import TreeColumns
from thresher.passes.dask_valuation import DaskValuation
from thresher.passes.walk import value_while_counting
from thresher.progress import progress_bar
from thresher.regression import CLASSES, REGRESSION, Targets, check_task, leaf_regression
from thresher.valuation import Valuation

LEAVES, FOREST = "leaf-shapley", "forest-shapley"
REGRESSOR = {"bootstrap": False, "min_samples_leaf": 5, "max_features": 1 / 3}

Floats = NDArray[np.float64]


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
        label each. Leaves come from `forest.apply(X)`, from the leaf indices of LightGBM or
        XGBoost, or from any other partition, such as cells of a grid or hashes.
    leaves_val, y_val
        The validation set. Without it every point is a judge of the others.
    unseen
        Where each point may be: True in the trees that did not see it while they were grown, in the
        shape of `leaves`. Everywhere, if not given.
    semivalue, classes, owners, progress
        As in `tknn_shapley`.
    mean
        Divide by the number of judges; without it, values are sums over them.
    task, empty
        As in `tknn_shapley`: for regression the utility of a coalition for a judge is the mean over
        trees of minus the squared error of the mean target in the judge's leaf.

    Returns
    -------
    Valuation
        One value a point, in input order; they add up to the utility of all points less that of
        none.

    Notes
    -----
    The utility of a coalition for a judge is the mean over trees of the share of its members in the
    judge's leaf that carry the judge's label, 1/C where there is none: what `predict_proba` of a
    forest averages. Validation points use all trees, points that judge each other those in which
    they are `unseen`. Cost O(N T), and O(leaves x classes) for each tree.

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
        targets = Targets.check(y, y_val, empty)
        votes = leaf_target_votes(leaves, leaves_val, targets, unseen)
        return leaf_regression(
            votes, targets, LEAVES, {}, check_semivalue(semivalue), owners=owners,
            mean=check_flag("mean", mean), progress=check_flag("progress", progress),
        )  # fmt: skip
    check_no_empty(empty)
    votes = leaf_votes(leaves, y, leaves_val, y_val, unseen=unseen, classes=classes)
    return votes.valuation(LEAVES, {}, semivalue, owners=owners, mean=mean, progress=progress)


def leaf_target_votes(leaves: Any, leaves_val: Any, targets: Targets, unseen: Any) -> Votes:
    """Points and judges with numbers in leaves that are known, checked."""
    zeros = [np.zeros(len(each), np.int64) for each in (targets.points, targets.judges)]
    judges = None if leaves_val is None else zeros[1]
    return leaf_votes(leaves, zeros[0], leaves_val, judges, unseen=unseen, classes=[0])


def check_no_classes(classes: Any) -> None:
    """Refuse classes, which numbers have none of."""
    if classes is not None:
        raise InputError("classes goes without task='regression', which has targets")


def check_no_empty(empty: Any) -> None:
    """Refuse a prediction for no points, which classes do not need."""
    if empty is not None:
        raise InputError("empty goes with task='regression': classes have 1/C where nobody is near")


def leaf_votes(
    leaves: Any, y: Any, leaves_val: Any, y_val: Any, *, unseen: Any, classes: Any
) -> Votes:
    """Points and judges in leaves that are known, checked."""
    table = _check_leaves("leaves", leaves)
    table_val = None if leaves_val is None else _check_leaves("leaves_val", leaves_val)
    if (leaves_val is None) != (y_val is None):
        raise InputError("leaves_val and y_val go together: pass both, or neither")
    if table_val is not None and table_val.shape[1] != table.shape[1]:
        raise InputError(
            f"leaves_val has {table_val.shape[1]} trees (columns) but leaves has {table.shape[1]}"
        )
    allowed = None if unseen is None else _check_unseen(unseen, table.shape)
    numbered, numbered_val, sizes = _number_leaves(table, table_val)
    rows = LeafTable(numbered, allowed)
    rows_val = None if numbered_val is None else LeafTable(numbered_val)
    trees = np.full(len(table), table.shape[1]) if allowed is None else allowed.sum(axis=1)
    return Votes.of(rows, y, rows_val, y_val, sizes, trees, classes, table.shape[1] // 2)


@dataclass(frozen=True)
class Votes:
    """Points and judges in the leaves of trees."""

    rows: LeafRows
    codes: Codes
    rows_val: LeafRows | None
    codes_val: Codes | None
    near: Leaves
    trees: NDArray[np.int64]  # that each point is in
    classes: Classes
    middle: int = 0  # the tree at which a second, independent half begins; 0 if none does
    forest: Forest | None = None

    @classmethod
    def of(
        cls, rows: LeafRows, y: Any, rows_val: LeafRows | None, y_val: Any, sizes: Sequence[int],
        trees: NDArray[np.int64], classes: Any, middle: int = 0, forest: Forest | None = None,
    ) -> Votes:  # fmt: skip
        """With labels that were not checked yet, and so many leaves in each tree."""
        labels = check_labels("y", y, len(rows))
        labels_val = None if rows_val is None else check_labels("y_val", y_val, len(rows_val))
        found = class_list(classes, labels, *(() if labels_val is None else (labels_val,)))
        codes = found.encode("y", labels)
        codes_val = None if labels_val is None else found.encode("y_val", labels_val)
        if classes is None and codes_val is not None:
            warn_of_codes(codes, codes_val, found, stacklevel=5)
        near = Leaves(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))
        return cls(rows, codes, rows_val, codes_val, near, trees, found, middle, forest)

    @property
    def judges(self) -> int:
        """How many there are."""
        return int((self.trees > 0).sum()) if self.codes_val is None else len(self.codes_val)

    def valuation(
        self, method: str, about: dict[str, Any], semivalue: Semivalue, *, owners: Any,
        mean: bool, progress: bool, watch: Watch | None = None,
    ) -> Valuation:  # fmt: skip
        """The values, exactly; `watch` looks on."""
        semivalue, mean = check_semivalue(semivalue), check_flag("mean", mean)
        progress, known = check_flag("progress", progress), check_owners(owners, len(self.codes))
        own = None if self.rows_val is not None else 1 / np.maximum(self.trees, 1)
        weights = weight_table(semivalue, len(self.codes) + 1)
        game = ForestVote(len(self.classes), self._judges, weights, own, watch)
        judges, divisor = self.judges, max(self.judges, 1) if mean else 1
        utilities: list[float] = []

        def see(columns: slice, sums: NDArray[np.int64]) -> None:
            utilities.append(game.utility(sums, columns))

        with progress_bar(method, len(self.near.starts) - 1, show=progress, unit="trees") as bar:
            values = value_while_counting(self, self.near, game, see, divisor=divisor, advance=bar)
        values.flags.writeable = False
        params = {
            **about,
            "trees": len(self.near.starts) - 1,
            "semivalue": semivalue_name(semivalue),
            "classes": list(self.classes.labels),
            "judges": "points" if self.rows_val is None else "validation",
            "validation_points": 0 if self.codes_val is None else judges,
            "mean": mean,
        }
        none = judges / len(self.classes) / divisor
        return Valuation(values, method, params, sum(utilities) / divisor, none, known)

    def _judges(self, columns: slice, sums: NDArray[np.int64]) -> Floats:
        """The weight of the judges of each class in each leaf of a tree."""
        if self.rows_val is not None:
            return self.validation_counts(columns) / (len(self.near.starts) - 1)
        if self.trees.min() == self.trees.max():  # whole numbers, whatever the order of points
            return np.asarray(sums / max(int(self.trees[0]), 1), np.float64)
        leaves, weights = self.rows.leaves(self.near.tree(columns)), 1 / np.maximum(self.trees, 1)
        return judge_weights(leaves, self.codes, self._shape(columns), weights)

    def validation_counts(self, columns: slice) -> Floats:
        """How many validation points of each class are in each leaf of a tree."""
        assert self.rows_val is not None and self.codes_val is not None  # noqa: S101, PT018
        leaves = self.rows_val.leaves(self.near.tree(columns))
        return judge_weights(leaves, self.codes_val, self._shape(columns))

    def counts_beside(self, columns: slice) -> Floats:
        """How many rows of each class are in each leaf of a tree without filling it.

        These are validation points, and points that the tree was grown from.
        """
        found = np.zeros(self._shape(columns))
        if self.rows_val is not None:
            found += self.validation_counts(columns)
        seen = None if self.forest is None else self.forest.trees[self.near.tree(columns)].seen
        if self.forest is not None and seen is not None:
            places = self.classes.known_codes(list(self.forest.classes))[seen.codes]
            found[places[places >= 0]] += seen.counts[places >= 0]
        return found

    def _shape(self, columns: slice) -> tuple[int, int]:
        return len(self.classes), columns.stop - columns.start


def forest_shapley(
    X: Any,
    y: Any,
    X_val: Any = None,
    y_val: Any = None,
    *,
    forest: Any = None,
    trees: int = 200,
    folds: int = 2,
    seed: int = 0,
    semivalue: Semivalue = "shapley",
    classes: Any = None,
    owners: Any = None,
    mean: bool = False,
    progress: bool = False,
    memory: int | str | None = None,
    checkpoint: str | PathLike[str] | None = None,
    task: str = CLASSES,
    empty: float | None = None,
) -> Valuation | DaskValuation:
    """The exact value of each point for the soft vote of a random forest.

    The structure of the trees is grown first, and then fixed. A point fills only trees that were
    grown without it, so that a wrong label cannot shape the leaf that judges it.

    Parameters
    ----------
    X, y
        The points: a table (NumPy, pandas, polars, Arrow, Dask) and a label each; or a `Scan` of
        files, and None. Cells may be missing, columns of a data frame may be categories or text,
        and no scaling is needed.
    X_val, y_val
        The validation set. Without it every point is a judge of the others.
    forest
        The structure, as `grow_forest` makes it; then `trees`, `folds` and `seed` are its own. Or a
        classifier of scikit-learn's that has `apply` and `n_estimators`, to grow the trees with;
        `RandomForestClassifier(bootstrap=False)` if not given. One that is fitted is taken as it
        is: then every point fills all of its trees, whether they saw it or not.
    trees
        How many trees there are in all, a multiple of `folds`.
    folds
        Points are divided into so many folds, by a hash of their features: copies stay together,
        and the order of points does not matter. Each point fills the trees that were grown on the
        other folds, which is `trees / folds` of them.
    seed
        Of the folds and of the trees.
    semivalue, classes, owners, mean, progress
        As in `leaf_shapley`.
    memory, checkpoint
        As in `tknn_shapley`: points are read in parts, and dropped through the trees where they
        lie. The values are the same to the last bit.
    task, empty
        As in `leaf_shapley`; in memory. The forest is a regressor then, by default
        `RandomForestRegressor(bootstrap=False, min_samples_leaf=5, max_features=1/3)`.

    Returns
    -------
    Valuation
        One value a point, in input order; of Dask collections a `DaskValuation`.

    Notes
    -----
    `leaf_shapley` has the utility. The folds are drawn anew up to ten times, each with its share
    of the trees. At most 20,000 points of a fold decide the structure: those with the smallest
    hashes of their features, so that order and partitions do not matter. All of them fill it.
    Growing the trees takes most of the time. Values take O(N trees depth), and memory for one tree
    at a time; in parts and on Dask, for the class counts of all leaves.

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
    trees, folds, seed = check_growth(trees, folds, seed)
    if (X_val is None) != (y_val is None):
        raise InputError("X_val and y_val go together: pass both, or neither")
    in_parts = not (memory is None and checkpoint is None) or hasattr(X, "source_of_parts")
    if check_task(task) == REGRESSION:
        check_no_classes(classes)
        if in_parts or is_dask(X):
            raise InputError("task='regression' needs arrays in memory")
        targets = Targets.check(y, y_val, empty)
        votes, about = target_votes(X, X_val, targets, forest, (trees, folds, seed), progress)
        return leaf_regression(
            votes, targets, FOREST, about, check_semivalue(semivalue), owners=owners,
            mean=check_flag("mean", mean), progress=check_flag("progress", progress),
        )  # fmt: skip
    check_no_empty(empty)
    if in_parts or is_dask(X):
        from thresher.passes import forest_passes

        mean, progress = check_flag("mean", mean), check_flag("progress", progress)
        semivalue = check_semivalue(semivalue)
        growth = forest_passes.Growth(
            forest, (trees, folds, seed), X_val, y_val, semivalue, classes, mean
        )
        if is_dask(X):
            check_no_limits(memory, checkpoint)
            return forest_passes.forest_on_dask(X, y, growth, owners=owners, progress=progress)
        return forest_passes.forest_in_parts(
            X, y, growth, owners=owners, progress=progress, memory=memory, checkpoint=checkpoint
        )
    votes, about = forest_votes(
        X, y, X_val, y_val, forest=forest, trees=trees, folds=folds, seed=seed, classes=classes,
        progress=progress,
    )  # fmt: skip
    return votes.valuation(FOREST, about, semivalue, owners=owners, mean=mean, progress=progress)


def target_votes(
    X: Any, X_val: Any, targets: Targets, forest: Any, settings: tuple[int, int, int],
    progress: bool,  # noqa: FBT001
) -> tuple[Votes, dict[str, Any]]:  # fmt: skip
    """Points and judges in the leaves of a forest for numbers, which is grown first."""
    columns = TreeColumns.of("X", X)
    if not isinstance(forest, Forest):
        if forest is None:
            from sklearn.ensemble import RandomForestRegressor

            forest = RandomForestRegressor(**REGRESSOR)
        check_multiple(*settings[:2])
        features = columns.encode("X", X)
        if len(features) != len(targets.points):
            raise InputError(f"X has {len(features)} rows but y has {len(targets.points)} targets")
        grown = grow(features, targets.points, forest, *settings, progress=progress)
        forest = replace(grown, columns=columns)
    numbers = [np.zeros(len(each), np.int64) for each in (targets.points, targets.judges)]
    judges = None if X_val is None else numbers[1]
    known = {"trees": settings[0], "folds": settings[1], "seed": settings[2]}
    return forest_votes(
        X, numbers[0], X_val, judges, forest=forest, classes=[0], progress=progress, **known
    )


def forest_votes(
    X: Any, y: Any, X_val: Any, y_val: Any, *, forest: Any, trees: int, folds: int, seed: int,
    classes: Any, progress: bool,
) -> tuple[Votes, dict[str, Any]]:  # fmt: skip
    """Points and judges in the leaves of a forest that is grown first, and what to say of it."""
    settings = check_growth(trees, folds, seed)
    if (X_val is None) != (y_val is None):
        raise InputError("X_val and y_val go together: pass both, or neither")
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


def _check_leaves(name: str, leaves: Any) -> NDArray[Any]:
    """A table of whole numbers: points by trees."""
    try:
        table = np.asarray(leaves)
    except ValueError as ragged:
        raise InputError(f"{name} is not a rectangular table: {ragged}") from None
    if table.ndim != 2:
        hint = f": for one tree use {name}.reshape(-1, 1)" if table.ndim == 1 else ""
        raise InputError(f"{name} must have two dimensions (points, trees), got {table.ndim}{hint}")
    if not table.size:
        raise InputError(f"{name} is empty, with shape {table.shape}: a row and a tree are needed")
    if table.dtype.kind == "f":
        if not (np.isfinite(table) & (table == np.floor(table)) & (abs(table) < 2**53)).all():
            raise InputError(f"{name} must hold whole numbers, got other floats")
        return table.astype(np.int64)
    if table.dtype.kind not in "iub":
        raise InputError(f"{name} must hold whole numbers, got dtype {table.dtype}")
    return table


def _check_unseen(unseen: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    table = np.asarray(unseen)
    if table.shape != shape:
        raise InputError(f"unseen has shape {table.shape} but leaves has {shape}")
    if table.dtype.kind != "b" and not np.isin(table, (0, 1)).all():
        raise InputError("unseen must hold True and False")
    return table.astype(np.bool_)


def _number_leaves(
    table: NDArray[Any], table_val: NDArray[Any] | None
) -> tuple[NDArray[np.int32], NDArray[np.int32] | None, list[int]]:
    """Leaves as 0, 1, 2, ... within each tree, and how many each tree has."""
    found = np.empty(table.shape, np.int32)
    found_val = None if table_val is None else np.empty(table_val.shape, np.int32)
    sizes = []
    for tree in range(table.shape[1]):
        column = table[:, tree]
        if table_val is not None:
            column = np.concatenate([column, table_val[:, tree]])
        names, numbers = np.unique(column, return_inverse=True)
        found[:, tree] = numbers[: len(table)]
        if found_val is not None:
            found_val[:, tree] = numbers[len(table) :]
        sizes.append(len(names))
    return found, found_val, sizes
