"""Points and judges in the leaves of trees: which of them vote, and what votes are worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Array, Flags, Floats, Integers
from thresher.errors import InputError
from thresher.games.forest_vote import ForestVote, Watch, judge_weights
from thresher.games.leaf_targets import Judges, LeafTargets, leaf_judges
from thresher.games.semivalues import Semivalue, check_semivalue, semivalue_name, weight_table
from thresher.games.target_evidence import Paid
from thresher.inputs.checked_inputs import warn_of_codes
from thresher.inputs.checks import check_both, check_flag
from thresher.inputs.labels import Classes, Codes, check_labels, check_owners, class_list
from thresher.neighbors.forests import Forest
from thresher.neighbors.leaves import LeafRows, LeafTable, Leaves
from thresher.passes.walk import pay_while_counting, values_of
from thresher.progress import progress_bar
from thresher.regression import Targets
from thresher.valuation import Valuation


def leaf_votes(
    leaves: Any, y: Any, leaves_val: Any, y_val: Any, *, unseen: Any, classes: Any
) -> Votes:
    """Checked points and judges, whose leaves are known."""
    table = _check_leaves("leaves", leaves)
    table_val = None if leaves_val is None else _check_leaves("leaves_val", leaves_val)
    check_both(leaves_val, y_val, "leaves_val")
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
    trees: Integers  # that each point is in
    classes: Classes
    middle: int = 0  # the tree at which a second, independent half begins; 0 if none does
    forest: Forest | None = None

    @classmethod
    def of(
        cls, rows: LeafRows, y: Any, rows_val: LeafRows | None, y_val: Any, sizes: Sequence[int],
        trees: Integers, classes: Any, middle: int = 0, forest: Forest | None = None,
    ) -> Votes:  # fmt: skip
        """Votes with labels that were not checked yet; `sizes` are the numbers of leaves."""
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
        """How many judges there are."""
        return int((self.trees > 0).sum()) if self.codes_val is None else len(self.codes_val)

    def valuation(
        self, method: str, about: dict[str, Any], semivalue: Semivalue, *, owners: Any,
        mean: bool, progress: bool, watch: Watch | None = None,
    ) -> Valuation:  # fmt: skip
        """The exact values; `watch` sees the sums and payments of each block."""
        semivalue, mean = check_semivalue(semivalue), check_flag("mean", mean)
        progress = check_flag("progress", progress)
        own = None if self.rows_val is not None else 1 / np.maximum(self.trees, 1)
        weights = weight_table(semivalue, len(self.codes) + 1)
        game = ForestVote(len(self.classes), self._judges, weights, own, watch)
        task = {"classes": list(self.classes.labels)}
        judges = self.judges, self.judges / len(self.classes)
        return self.paid_by(
            game, method, about, semivalue, task, judges, owners=owners, mean=mean,
            progress=progress,
        )  # fmt: skip

    def paid_by(
        self, game: Any, method: str, about: dict[str, Any], semivalue: Semivalue,
        task: dict[str, Any], judges: tuple[int, float], *, owners: Any, mean: bool,
        progress: bool, show: Callable[[Floats], None] | None = None,
    ) -> Valuation:  # fmt: skip
        """The values by a game of leaves.

        `task` says what labels are. `judges` has the number of judges and their utility without
        points. `show` sees the payments before they become values.
        """
        known, divisor = check_owners(owners, len(self.codes)), max(judges[0], 1) if mean else 1
        trees, utilities = len(self.near.starts) - 1, []

        def see(columns: slice, sums: Integers) -> None:
            utilities.append(game.utility(sums, columns))

        with progress_bar(method, trees, show=progress, unit="trees") as bar:
            paid, groups = pay_while_counting(self, self.near, game, see, advance=bar)
        if show is not None:
            show(paid)
        params = {
            **about,
            "trees": trees,
            "semivalue": semivalue_name(semivalue),
            **task,
            "judges": "points" if self.rows_val is None else "validation",
            "validation_points": 0 if self.rows_val is None else judges[0],
            "mean": mean,
        }
        ends = sum(utilities) / divisor, judges[1] / divisor
        values = values_of(game, paid, groups, divisor)
        return Valuation(values, method, params, *ends, known)

    def _judges(self, columns: slice, sums: Integers) -> Floats:
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
        """How many rows of each class are in each leaf of a tree, but do not fill it.

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


def leaf_regression(
    votes: Votes, targets: Targets, method: str, about: dict[str, Any], semivalue: Semivalue, *,
    owners: Any, mean: bool, progress: bool, kind: type[LeafTargets] = LeafTargets,
    show: Callable[[Paid], None] | None = None,
) -> Valuation:  # fmt: skip
    """`leaf_shapley` and `forest_shapley` with numbers as targets, for points in known leaves.

    `show` sees what the points were paid.
    """
    mutual, grid = votes.rows_val is None, targets.grid()
    if mutual and votes.trees.min() != votes.trees.max():
        raise InputError(
            "some points are in more trees than others: regression then needs a validation set, "
            "X_val and y_val"
        )
    share = 1 / max(int(votes.trees[0]), 1) if mutual else 1 / (len(votes.near.starts) - 1)
    judges = grid.rounded(targets.judges)
    empty = float(grid.rounded(np.array([targets.empty]))[0])

    def judges_of(columns: slice) -> Judges:
        assert votes.rows_val is not None  # noqa: S101 - points do not judge each other
        leaves = votes.rows_val.leaves(votes.near.tree(columns))
        return leaf_judges(leaves, columns.stop - columns.start, judges, share)

    def see(sums: Floats) -> None:
        if show is not None:
            show(Paid(sums, grid, targets, len(judges) if mean else 1))

    in_leaves = None if mutual else judges_of
    game = kind(judges, empty, grid, semivalue, leaf_judges=in_leaves, share=share)
    task = {**targets.record(), "bounds": list(targets.bounds()), "grid": grid.record()}
    codes: Any = grid.codes(targets.points)  # what other games know as classes
    none = -math.fsum((judges - empty) ** 2)
    return replace(votes, codes=codes).paid_by(
        game, method, about, semivalue, task, (len(judges), none), owners=owners, mean=mean,
        progress=progress, show=see,
    )  # fmt: skip


def _check_leaves(name: str, leaves: Any) -> Array:
    """A table of whole numbers: points by trees."""
    try:
        table = np.asarray(leaves)
    except ValueError as ragged:
        raise InputError(f"{name} is not a rectangular table: {ragged}") from None
    if table.ndim != 2:
        hint = f": for one tree use {name}.reshape(-1, 1)" if table.ndim == 1 else ""
        raise InputError(f"{name} must have two dimensions (points, trees), got {table.ndim}{hint}")
    if not table.size:
        raise InputError(
            f"{name} is empty, with shape {table.shape}: at least one row and one tree are needed"
        )
    if table.dtype.kind == "f":
        if not (np.isfinite(table) & (table == np.floor(table)) & (abs(table) < 2**53)).all():
            raise InputError(f"{name} must hold whole numbers, got floats that are not whole")
        return table.astype(np.int64)
    if table.dtype.kind not in "iub":
        raise InputError(f"{name} must hold whole numbers, got dtype {table.dtype}")
    return table


def _check_unseen(unseen: Any, shape: tuple[int, ...]) -> Flags:
    table = np.asarray(unseen)
    if table.shape != shape:
        raise InputError(f"unseen has shape {table.shape} but leaves has {shape}")
    if table.dtype.kind != "b" and not np.isin(table, (0, 1)).all():
        raise InputError(
            f"unseen must hold True and False, got other entries of dtype {table.dtype}"
        )
    return table.astype(np.bool_)


def _number_leaves(
    table: Array, table_val: Array | None
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
