"""The forest with numbers: leaves predict the mean of the targets in them. Owners alone need it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.games.owner_targets import (
    leaf_target_games,
    mutual_target_games,
)
from thresher.games.owner_values import OwnerGames
from thresher.games.targets import Grid
from thresher.labels import Classes
from thresher.neighbors.forests import Forest
from thresher.regression import Targets, leaf_judges
from thresher.sides.forest import ForestPoints, ForestSide
from thresher.sides.targets import TARGETS, OwnedTargets


@dataclass(frozen=True, kw_only=True)
class TargetForestSide(OwnedTargets, ForestSide):
    """A forest, and judges with targets: a validation set, or the points themselves.

    Parameters
    ----------
    judged
        The targets of all judges, in steps of the grid.
    grid, empty
        The grid, and the prediction where nobody is.
    """

    judged: NDArray[np.int64]
    grid: Grid
    empty: float

    def owner_games(self, sums: NDArray[Any], columns: slice, owners: int) -> Iterable[OwnerGames]:
        """One game for each leaf of a tree, or several where points judge each other."""
        del owners
        size, unit, none = columns.stop - columns.start, self.grid.step**2, self._empty
        if self.features is None:
            return mutual_target_games(sums, size, none, unit / self.forest.trees_each)
        leaves = self.forest.rows(self.features, everywhere=True).leaves(self.near().tree(columns))
        judges = leaf_judges(leaves, size, self.judged, 1 / self.forest.size)
        return [leaf_target_games(sums, judges, none, unit)]

    @property
    def _empty(self) -> int:
        return int(self.grid.steps(np.array([self.empty]))[0])

    def utility_none(self, judges: int) -> float:
        """The utility without points: minus the squared errors of `empty`."""
        del judges
        return -float(((self._empty - self.judged).astype(float) ** 2).sum()) * self.grid.step**2

    def params(self, semivalue: str, *, mean: bool) -> dict[str, Any]:
        """What a valuation says about itself."""
        about = super().params(semivalue, mean=mean)
        del about["classes"]
        return {**about, "task": "regression", "empty": self.empty, "grid": self.grid.record()}


def points_in_leaves(
    forest: Any, X: Any, X_val: Any, targets: Targets
) -> tuple[ForestPoints, TargetForestSide]:
    """Points and their judges, where near means in the same leaf and targets are numbers."""
    if not isinstance(forest, Forest):
        raise InputError(
            f"forest must be a Forest, as grow_forest makes it, got {type(forest).__name__}"
        )
    grid, features = targets.grid(), forest.encode("X", X)
    judged = None if X_val is None else forest.encode("X_val", X_val)
    for name, rows, theirs in (("X", features, targets.points), ("X_val", judged, targets.judges)):
        if rows is not None and len(rows) != len(theirs):
            raise InputError(f"{name} has {len(rows)} rows but there are {len(theirs)} targets")
    codes: Any = grid.steps(targets.points)
    none = np.zeros(0 if judged is None else len(judged), np.int32)
    judges = grid.steps(targets.judges)
    about = forest, Classes((TARGETS,)), judged, none
    side = TargetForestSide(*about, judged=judges, grid=grid, empty=targets.empty)
    return ForestPoints(forest.rows(features), codes), side
