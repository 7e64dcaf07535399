"""The forest with numbers: leaves predict the mean of the targets in them.

Each leaf keeps the number of its points, the sum of their targets and that of their squares. Prices
have the shape (3, 3, leaves): for members and for newcomers, the coefficients of 1, u and u^2 of a
target u in steps of the grid, and how the value of a member changes with its target.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.games.leaf_targets import Judges, LeafTargets
from thresher.games.owner_targets import leaf_target_games, mutual_target_games
from thresher.games.owner_values import OwnerGames
from thresher.games.semivalues import Semivalue
from thresher.games.targets import ENTRIES, Grid, squared_errors, sums_of
from thresher.neighbors.forests import Forest
from thresher.regression import Targets, check_empty, leaf_judges
from thresher.sides.forest import ForestPoints, ForestSide, validation_digest
from thresher.sides.numbers import CHANGES, MEMBERS, NEWCOMERS, NumberSide
from thresher.sides.protocol import Footprint
from thresher.sides.targets import TARGETS, TargetClasses, holding_bounds, public_bounds

OBJECTS = 200  # bytes of the sums of a leaf while they are exact


@dataclass(frozen=True)
class TargetForestSide(NumberSide, ForestSide):
    """A forest, and judges with targets: a validation set, or the points themselves.

    Its `codes` are the targets in steps of the grid; there are none where points judge.
    """

    empty: float = 0.0  # the prediction where nobody is
    # where points judge each other: the sum of the squared errors of `empty`, in steps, once all
    # points were counted
    nobody: int = 0
    kind: ClassVar[str] = "forest-targets"
    dtype: ClassVar[Any] = np.int64

    @property
    def shape(self) -> tuple[int, int]:
        """Four numbers for each leaf."""
        return ENTRIES, int(self.forest.starts[-1])

    def counting(self, semivalue: Semivalue = "shapley") -> Any:
        """A point is one more, with its target."""
        return LeafTargets(
            self.codes.astype(np.int64), self.empty_steps, semivalue,
            leaf_judges=None if self.holds_points else self._leaf_judges,
            share=1 / self.forest.trees_each,
        )  # fmt: skip

    def _leaf_judges(self, columns: slice) -> Judges:
        """The validation points in the leaves of a tree."""
        assert self.features is not None  # noqa: S101 - there is a validation set
        leaves = self.forest.rows(self.features, everywhere=True).leaves(self.near().tree(columns))
        size = columns.stop - columns.start
        return leaf_judges(leaves, size, self.codes.astype(np.int64), 1 / self.forest.size)

    def owner_games(self, sums: NDArray[Any], columns: slice, owners: int) -> Iterable[OwnerGames]:
        """One game for each leaf of a tree, or several where points judge each other."""
        del owners
        size, unit = columns.stop - columns.start, self.grid.step**2
        if self.holds_points:
            share = unit / self.forest.trees_each
            return mutual_target_games(sums, size, self.empty_steps, share)
        return [leaf_target_games(sums, self._leaf_judges(columns), self.empty_steps, unit)]

    def with_counts(self, counts: NDArray[Any]) -> Self:
        """The same, once all points were counted; counts may be added up over leaves."""
        if not self.holds_points:
            return self
        errors = squared_errors(counts, self.empty_steps) // self.forest.trees_each
        return dataclasses.replace(self, nobody=errors)

    def utility(self, counts: NDArray[Any]) -> float:
        """The utility of all counted points."""
        game, unit = self.counting(), self.grid.step**2
        return sum(game.leaf_utility(counts[:, each], each) for each in self._trees()) * unit

    def utility_none(self, judges: int) -> float:
        """The utility without points: minus the squared errors of `empty`."""
        del judges
        errors = self.nobody
        if not self.holds_points:
            errors = squared_errors(sums_of(self.codes.astype(np.int64)), self.empty_steps)
        return -float(errors) * self.grid.step**2

    def prices(self, counts: NDArray[Any], semivalue: Semivalue) -> NDArray[np.float64]:
        """What leaves pay members and newcomers; nothing where a leaf has no judges."""
        game = self.counting(semivalue)
        table = np.empty((3, 3, self.shape[1]))
        for columns in self._trees():
            sums = counts[:, columns]
            table[MEMBERS][:, columns] = game.leaf_prices(sums, columns)
            table[NEWCOMERS][:, columns] = game.leaf_prices(sums, columns, newcomer=True)
            table[CHANGES][:, columns] = game.leaf_changes(sums, columns)
        return table * self.grid.step**2

    def params(self, semivalue: str, *, mean: bool) -> dict[str, Any]:
        """What a valuation says about itself."""
        about = super().params(semivalue, mean=mean)
        del about["classes"]
        return {**about, **self.target_record()}

    def describe(self) -> dict[str, Any]:
        """What a file says of it, besides its arrays."""
        return {**super().describe(), **self.target_record()}

    def identity(self) -> dict[str, Any]:
        """What tells it from others."""
        return {
            **self.target_record(),
            "forest": self.forest.digest(),
            "validation": validation_digest(self.features, self.codes.tolist()),
        }

    def footprint(self) -> Footprint:
        """As for classes, with sums of 64 bits, prices, and exact sums of one tree at a time."""
        plain, cells = super().footprint(), self.shape[1]
        largest = max(tree.size for tree in self.forest.trees)
        standing = 2 * plain.standing + 12 * 8 * cells + OBJECTS * largest
        return dataclasses.replace(plain, standing=standing)


def target_forest_side(
    forest: Any, X_val: Any, y_val: Any, *, empty: Any = None, bounds: Any = None
) -> TargetForestSide:
    """The side of a forest and a validation set; without one the points judge each other.

    Nothing was checked yet. `bounds` is the public range of targets.
    """
    if (X_val is None) != (y_val is None):
        raise InputError("X_val and y_val go together: pass both, or neither")
    if y_val is None:
        known = check_empty(empty, None)
        if bounds is None:
            raise InputError(
                "bounds is needed if there is no validation set: pass the public range of targets, "
                "such as bounds=(0, 100)"
            )
        wide = holding_bounds(bounds, known)
        return side_in_bounds(forest, None, np.zeros(0), known, wide)
    targets = Targets.of_judges(y_val, empty)
    wide = public_bounds(bounds, targets)
    return side_in_bounds(forest, X_val, targets.judges, targets.empty, wide)


def side_in_bounds(
    forest: Any, X_val: Any, judges: NDArray[np.float64], empty: float,
    bounds: tuple[float, float],
) -> TargetForestSide:  # fmt: skip
    """The side of a forest and validation rows with checked targets; without `X_val`, points."""
    if not isinstance(forest, Forest):
        raise InputError(
            f"forest must be a Forest, as grow_forest makes it, got {type(forest).__name__}"
        )
    features = None if X_val is None else forest.encode("X_val", X_val)
    if features is not None:
        _check_rows("X_val", features, judges)
    classes = TargetClasses((TARGETS,), Grid.over(*bounds), bounds)
    codes: Any = classes.encode("y_val", judges) if len(judges) else np.zeros(0, np.int64)
    return TargetForestSide(forest, classes, features, codes, empty=empty)


def points_in_leaves(
    forest: Any, X: Any, X_val: Any, targets: Targets, bounds: Any = None
) -> tuple[ForestPoints, TargetForestSide]:
    """Points and their judges, where near means in the same leaf and targets are numbers."""
    judges = np.zeros(0) if X_val is None else targets.judges
    side = side_in_bounds(forest, X_val, judges, targets.empty, targets.bounds(bounds))
    features = forest.encode("X", X)
    _check_rows("X", features, targets.points)
    codes: Any = side.grid.steps(targets.points)
    return ForestPoints(forest.rows(features), codes), side


def _check_rows(name: str, rows: Any, targets: NDArray[np.float64]) -> None:
    if len(rows) != len(targets):
        raise InputError(f"{name} has {len(rows)} rows but there are {len(targets)} targets")
