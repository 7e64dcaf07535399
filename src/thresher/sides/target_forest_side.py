"""The forest with numbers: leaves predict the mean of the targets in them.

Each leaf keeps the number of its points, the sum of their targets and that of their squares. The
rows of prices are those of `TargetGame.all_prices`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.games.leaf_targets import Judges, LeafTargets, leaf_judges
from thresher.games.owner_counts import mutual_target_games, target_games
from thresher.games.owner_values import OwnerGames
from thresher.games.semivalues import Semivalue
from thresher.games.targets import PRICES, squared_errors
from thresher.inputs.checks import check_both
from thresher.inputs.grids import Grid
from thresher.kernels.target_sums import ENTRIES
from thresher.regression import Targets, check_empty
from thresher.sides.forest_side import ForestPoints, ForestSide, check_forest, validation_digest
from thresher.sides.label_kinds import NumberSide
from thresher.sides.protocol import Footprint
from thresher.sides.target_side import TARGETS, TargetClasses, holding_bounds, public_bounds


@dataclass(frozen=True)
class TargetForestSide(NumberSide, ForestSide):
    """A forest, and judges with targets: a validation set, or the points themselves.

    Its `codes` are those of the targets of the validation set, if there is one.
    """

    empty: float = 0.0  # the prediction where nobody is
    nobody: float = 0.0
    kind: ClassVar[str] = "forest-targets"
    dtype: ClassVar[Any] = np.int64

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of counts: some numbers for each leaf."""
        return ENTRIES, int(self.forest.starts[-1])

    def counting(self, semivalue: Semivalue = "shapley") -> Any:
        """What a point adds: one more, with its target."""
        return LeafTargets(
            self.targets, self.none, self.grid, semivalue,
            leaf_judges=None if self.holds_points else self._leaf_judges,
            share=1 / self.forest.trees_each,
        )  # fmt: skip

    def _leaf_judges(self, columns: slice) -> Judges:
        """The validation points in the leaves of a tree."""
        assert self.features is not None  # noqa: S101 - there is a validation set
        leaves = self.forest.rows(self.features, everywhere=True).leaves(self.near().tree(columns))
        size = columns.stop - columns.start
        return leaf_judges(leaves, size, self.targets, 1 / self.forest.size)

    def owner_games(self, sums: NDArray[Any], columns: slice, owners: int) -> Iterable[OwnerGames]:
        """One game for each leaf of a tree, or several if points judge each other."""
        del owners
        if self.holds_points:
            size, share = columns.stop - columns.start, 1 / self.forest.trees_each
            return mutual_target_games(sums, size, self.none, self.grid, share)
        return [target_games(sums, self._leaf_judges(columns), self.none, self.grid)]

    def with_counts(self, counts: NDArray[Any]) -> Self:
        """The same side, once all points were counted; counts may be added up over leaves."""
        if not self.holds_points:
            return self
        step = self.grid.step
        errors = squared_errors(counts, self.none, step) // self.forest.trees_each
        return dataclasses.replace(self, nobody=float(errors) * step * step)

    @property
    def price_shape(self) -> tuple[int, ...]:
        """The shape of one coefficient of all prices: one for each leaf."""
        return (self.shape[1],)

    def price_cells(self) -> list[slice]:
        """The leaves of each tree."""
        return self._trees()

    def identity(self) -> dict[str, Any]:
        """What tells this side from others."""
        return {
            **self.task_record(),
            "forest": self.forest.digest(),
            "validation": validation_digest(self.features, self.codes.tolist()),
        }

    def footprint(self) -> Footprint:
        """As for classes, plus 64-bit sums, and prices."""
        plain, cells = super().footprint(), self.shape[1]
        standing = 2 * plain.standing + (ENTRIES + PRICES) * 8 * cells
        return dataclasses.replace(plain, standing=standing)


def target_forest_side(
    forest: Any, X_val: Any, y_val: Any, *, empty: Any = None, bounds: Any = None
) -> TargetForestSide:
    """The side of a forest and a validation set; without a set, the points judge each other.

    The arguments were not checked yet. `bounds` is the public range of targets.
    """
    check_both(X_val, y_val)
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
    """The side of a forest and validation rows with checked targets; points judge if no `X_val`."""
    forest = check_forest(forest)
    features = None if X_val is None else forest.encode("X_val", X_val)
    if features is not None:
        _check_rows("X_val", features, judges)
    classes = TargetClasses((TARGETS,), Grid.over(*bounds), bounds, judges)
    codes: Any = classes.encode("y_val", judges) if len(judges) else np.zeros(0, np.int64)
    return TargetForestSide(forest, classes, features, codes, empty=empty)


def points_in_leaves(
    forest: Any, X: Any, X_val: Any, targets: Targets, bounds: Any = None
) -> tuple[ForestPoints, TargetForestSide]:
    """Points and their side, where near means in the same leaf and targets are numbers."""
    judges = np.zeros(0) if X_val is None else targets.judges
    side = side_in_bounds(forest, X_val, judges, targets.empty, targets.bounds(bounds))
    features = forest.encode("X", X)
    _check_rows("X", features, targets.points)
    codes: Any = side.grid.codes(targets.points)
    return ForestPoints(forest.rows(features), codes), side


def _check_rows(name: str, rows: Any, targets: NDArray[np.float64]) -> None:
    if len(rows) != len(targets):
        raise InputError(f"{name} has {len(rows)} rows but there are {len(targets)} targets")
