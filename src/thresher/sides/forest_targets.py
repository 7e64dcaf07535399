"""The forest with numbers: leaves predict the mean of the targets in them.

Each leaf keeps the number of its points, the sum of their targets and that of their squares. Prices
have the shape (2, 3, leaves): for members and for newcomers, the coefficients of 1, u and u^2 of a
target u in steps of the grid.
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
from thresher.regression import Targets, leaf_judges
from thresher.sides.forest import ForestPoints, ForestSide, validation_digest
from thresher.sides.protocol import Footprint
from thresher.sides.targets import TARGETS, NumberSide, TargetClasses

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
        """The same, once all points were counted."""
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
        """The quadratics of members and of newcomers; none of leaves without judges."""
        game = self.counting(semivalue)
        table = np.empty((2, 3, self.shape[1]))
        for columns in self._trees():
            for row, newcomer in zip(table, (False, True), strict=True):
                row[:, columns] = game.leaf_prices(counts[:, columns], columns, newcomer=newcomer)
        return table * self.grid.step**2

    def params(self, semivalue: str, *, mean: bool) -> dict[str, Any]:
        """What a valuation says about itself."""
        about = super().params(semivalue, mean=mean)
        del about["classes"]
        return {**about, "task": "regression", "empty": self.empty, "grid": self.grid.record()}

    def identity(self) -> dict[str, Any]:
        """What tells it from others."""
        return {
            "grid": self.grid.record(),
            "empty": self.empty,
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
    forest: Any, features: Any, judges: NDArray[np.float64], empty: float,
    bounds: tuple[float, float],
) -> TargetForestSide:  # fmt: skip
    """The side of a forest and validation rows with these targets; without `features`, points."""
    if not isinstance(forest, Forest):
        raise InputError(
            f"forest must be a Forest, as grow_forest makes it, got {type(forest).__name__}"
        )
    grid = Grid.over(*bounds)
    codes: Any = grid.steps(judges if features is not None else judges[:0])
    return TargetForestSide(
        forest, TargetClasses((TARGETS,), grid, bounds), features, codes, empty=empty
    )


def points_in_leaves(
    forest: Any, X: Any, X_val: Any, targets: Targets
) -> tuple[ForestPoints, TargetForestSide]:
    """Points and their judges, where near means in the same leaf and targets are numbers."""
    judged: Any = None if X_val is None else np.zeros(0)  # the forest is checked first
    side = target_forest_side(forest, judged, targets.judges, targets.empty, targets.bounds())
    features = forest.encode("X", X)
    if X_val is not None:
        judged = forest.encode("X_val", X_val)
    for name, rows, theirs in (("X", features, targets.points), ("X_val", judged, targets.judges)):
        if rows is not None and len(rows) != len(theirs):
            raise InputError(f"{name} has {len(rows)} rows but there are {len(theirs)} targets")
    codes: Any = side.grid.steps(targets.points)
    errors = squared_errors(sums_of(codes), side.empty_steps)
    side = dataclasses.replace(side, features=judged, nobody=errors)
    return ForestPoints(forest.rows(features), codes), side
