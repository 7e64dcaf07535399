"""The ball with numbers: validation points judge by their targets, and near is within a radius.

The codes of targets take the place of class codes: `TargetClasses` rounds targets to a public grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.games.owner_counts import target_games
from thresher.games.owner_values import OwnerGames
from thresher.games.ring_targets import RingTargetGame
from thresher.games.semivalues import Semivalue
from thresher.games.targets import TargetGame
from thresher.inputs.checked_inputs import Points, check_validation, own_copy
from thresher.inputs.checks import check_radius
from thresher.inputs.grids import Grid
from thresher.inputs.labels import Classes
from thresher.neighbors.kernel import Kernel
from thresher.regression import (
    Targets,
    check_bounds,
    check_range,
    check_targets,
    checked_points,
    first_rounded,
    spread,
    too_wide,
)
from thresher.sides.ball_side import BallSide
from thresher.sides.label_kinds import NumberSide

TARGETS, RING_TARGETS = "targets", "ring-targets"  # what files call sides
UNIT = Grid(1.0)
ROOM = 1.0  # times the range of validation targets, on either side, where none is given


@dataclass(frozen=True)
class TargetClasses(Classes):
    """A grid of targets within public bounds, in place of classes."""

    grid: Grid = UNIT
    bounds: tuple[float, float] = (0.0, 1.0)
    # the targets of a validation set, which show how far apart targets usually are
    judges: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), compare=False)

    def encode(self, name: str, raw: Any, *, first: int = 0) -> Any:
        """The code of every target; an error names the first row that is out of bounds."""
        targets = check_targets(name, raw, first=first)
        outside = np.flatnonzero((targets < self.bounds[0]) | (targets > self.bounds[1]))
        if len(outside):
            raise InputError(
                f"{name} has {targets[outside[0]]:g} in row {first + int(outside[0])}, outside "
                f"the bounds {self.bounds[0]:g} to {self.bounds[1]:g}: pass wider bounds= where "
                "the points are counted"
            )
        usual = spread(np.concatenate([self.judges, targets]))
        row = first_rounded(targets, self.grid, usual)
        if row is not None:
            raise too_wide(name, targets, row, self.bounds, first)
        return self.grid.codes(targets)

    def known_codes(self, raw: Any) -> Any:
        """The code of every target."""
        return self.encode("y", raw)

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The targets with these codes, as the grid has them."""
        return np.asarray(self.grid.origin + self.grid.numbers(codes))

    @property
    def code_range(self) -> tuple[int, int]:
        """The lowest and the highest code."""
        low, high = self.grid.codes(np.array(self.bounds)).tolist()
        return int(low), int(high)

    @property
    def code_dtype(self) -> Any:
        """The dtype of codes."""
        return np.int64

    def code(self, name: str, label: object) -> int:
        """The code of one target."""
        return int(self.encode(name, [label])[0])

    def find(self, label: Any) -> int:
        """Not used: single targets are counted as tables."""
        del label
        return -1


@dataclass(frozen=True)
class TargetSide(NumberSide, BallSide):
    """A validation set with targets, a radius or a kernel, and the prediction if no point is near.

    Each validation point keeps the number of near points, the sum of their targets and that of
    their squares. The rows of prices are those of `TargetGame.all_prices`: for members and for
    newcomers, the coefficients of 1, r and r^2, how the value of a member changes with its target,
    and the center from which r counts. With a kernel, each ring has its own prices.
    """

    empty: float = 0.0
    dtype: ClassVar[Any] = np.int64

    @property
    def kind(self) -> str:
        """Its name in files."""
        return TARGETS if self.kernel is None else RING_TARGETS

    def counting(self, semivalue: Semivalue = "shapley") -> Any:
        """What a point adds: one more, with its target."""
        about = self.targets, self.none, self.grid, semivalue
        if self.kernel is None:
            return TargetGame(*about)
        return RingTargetGame(*about, weights=self.kernel.weights)

    def owner_games(self, sums: NDArray[Any], columns: slice, owners: int) -> list[OwnerGames]:
        """One game for each validation point."""
        del owners
        targets: Any = self.targets[columns]
        judges = np.ones(len(targets)), targets, 0.0
        weights = (1.0,) if self.kernel is None else self.kernel.weights
        return [target_games(sums, judges, self.none, self.grid, weights)]

    def check_points(
        self, X: Any, y: Any, labels: Any = None, *, strangers: bool = False, first: int = 0,
        name: str = "X",
    ) -> Points:  # fmt: skip
        """Points that match the validation set in width, with targets within the bounds."""
        del strangers
        return super().check_points(X, y, labels, first=first, name=name)

    def alone_prices(self) -> NDArray[np.float64]:
        """What a point would be worth alone, around the target of each judge: z0^2 - z^2."""
        z0 = self.none - self.targets
        return np.array([z0**2, np.zeros_like(z0), np.full_like(z0, -1.0), self.targets])

    def identity(self) -> dict[str, Any]:
        """What tells this side from others."""
        return {**self.task_record(), **super().identity()}


def target_side(
    X_val: Any, y_val: Any, *, radius: object, metric: object, empty: Any, bounds: Any,
    kernel: Kernel | None = None, grid: Callable[[float, float], Grid] = Grid.over,
    complete: bool = False,
) -> TargetSide:  # fmt: skip
    """The side of a validation set that was not checked yet; `grid` makes one from bounds."""
    if y_val is None:
        raise InputError("y_val is None: counts need a validation set")
    targets = Targets.of_judges(y_val, empty)
    zeros = np.zeros(len(targets.judges), np.int64)
    validation = check_validation(
        X_val, zeros, metric=metric, classes=[0], public=True, complete=complete
    )
    low, high = public_bounds(bounds, targets)
    about = (TARGETS,), grid(low, high), (low, high), targets.judges
    classes = TargetClasses(*about)
    codes = classes.encode("y_val", targets.judges)
    judges = replace(own_copy(validation), codes=codes, classes=classes)
    return TargetSide(judges, check_radius(radius), kernel, targets.empty)


def targets_in_balls(
    X: Any, y: Any, X_val: Any, y_val: Any, radius: float, *, metric: str, empty: Any, bounds: Any,
    kernel: Kernel | None = None, complete: bool = False,
) -> tuple[Points, TargetSide, Targets]:  # fmt: skip
    """Points, the side that judges them, and the targets of both, which all are on its grid."""
    points, validation, targets = checked_points(
        X, y, X_val, y_val, metric=metric, empty=empty, complete=complete
    )
    wide = targets.bounds(bounds)
    grid = Grid.over(*wide)
    codes: Any = [grid.codes(each) for each in (targets.points, targets.judges)]
    classes = TargetClasses((TARGETS,), grid, wide)
    judges = replace(validation, codes=codes[1], classes=classes)
    side = TargetSide(judges, radius, kernel, targets.empty)
    return replace(points, codes=codes[0]), side, targets


def public_bounds(bounds: Any, targets: Targets) -> tuple[float, float]:
    """The public range of targets: given, or that of the validation set with room on both sides."""
    if bounds is None:
        low, high = float(targets.judges.min()), float(targets.judges.max())
        low, high = min(low, targets.empty), max(high, targets.empty)
        if low == high:
            raise InputError(
                f"y_val has one distinct target, {low:g}: pass bounds=, the public range of targets"
            )
        check_range(low, high)
        return low - ROOM * (high - low), high + ROOM * (high - low)
    return holding_bounds(bounds, targets.empty)


def holding_bounds(bounds: Any, empty: float) -> tuple[float, float]:
    """The public range of targets, if `empty` is within it."""
    found = check_bounds(bounds)
    if not found[0] <= empty <= found[1]:
        raise InputError(f"empty is {empty:g}, outside the bounds {bounds!r}")
    return found
