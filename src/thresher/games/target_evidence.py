"""What others say about the target of a point: games whose payments include evidence.

With a radius, the others are the near validation points, each of which has a target. With leaves,
they are the other rows in the point's leaf, tree by tree; the point itself never counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Flags, Floats, Integers
from thresher.games.leaf_targets import LeafTargets
from thresher.games.ring_targets import RingTargetGame
from thresher.games.targets import NearSums, TargetGame, moved, with_changes
from thresher.inputs.far_off import far_off
from thresher.inputs.grids import Grid
from thresher.regression import Targets

Beside = Callable[[slice], tuple[Floats, Floats]]


class WithChanges:
    """A game that pays values, and S and G, by which they change with the target of a member."""

    columns: ClassVar[int] = 3

    def prices(self: Any, sums: Integers, columns: slice) -> Floats:
        """What each cell pays."""
        return with_changes(self.all_prices(sums, columns))

    def total(self, out: Floats, groups: object) -> Floats:
        """The values."""
        del groups
        return out[0]


class WithJudges(WithChanges):
    """The same, with the number of near judges, and the sums of their targets and their squares.

    These are relative to `middle_of` all judges. Judges whose targets are far off say nothing.
    """

    columns: ClassVar[int] = 6

    def prices(self: Any, sums: Integers, columns: slice) -> Floats:
        """What each cell pays and says about its judge, which is the same for all its rings."""
        paid = super().prices(sums, columns)
        heard, middle = self.heard
        targets = np.where(heard[columns], self.judges[columns] - middle, 0.0)
        said = np.zeros((9, *paid.shape[1:]))
        said[0], said[3], said[6] = heard[columns], targets, targets**2
        return np.concatenate([paid[:-1], said, paid[-1:]])

    @cached_property
    def heard(self: Any) -> tuple[Flags, float]:
        """Which judges say something, and a number in the middle of their targets."""
        return ~far_off(self.judges), middle_of(self.judges)


def middle_of(targets: Floats) -> float:
    """A number in the middle of most targets."""
    return float(np.median(targets))


class NearTargets(WithJudges, TargetGame):
    """Pay values, what they would be with other targets, and what the near judges say."""


class NearRingTargets(WithJudges, RingTargetGame):
    """The same, with weights of near points by distance."""


class LeafChanges(WithChanges, LeafTargets):
    """Pay values, and what they would be with other targets."""


@dataclass(frozen=True)
class OtherTargets(TargetGame):
    """The mean target of the others in each point's leaf, as a mean over trees.

    The payments are the number of others, the number of trees with any, and the sum of their means.
    """

    # the number and the sum of targets of other rows in some cells, such as validation points
    beside: Beside | None = None
    columns: ClassVar[int] = 3

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each leaf says about the others."""
        near = NearSums.of(sums, self.grid, self.empty)
        count, one = near.count.astype(np.float64), near.one
        if self.beside is not None:
            more, their = self.beside(columns)
            count, one = count + more, one + (their - more * near.center)
        others = np.maximum(count - 1, 0)
        some, nothing = np.maximum(others, 1), np.zeros_like(count)
        known = (others > 0).astype(np.float64)
        mean = known * (near.center + one / some), -known / some, nothing
        numbers = others, nothing, nothing, known, nothing, nothing
        return np.array([*numbers, *mean, near.center])

    def means(self, out: Floats) -> Floats:
        """The mean target of the others, relative to the origin; NaN if there are none."""
        return np.divide(out[2], out[1], out=np.full(out.shape[1], np.nan), where=out[1] > 0)


@dataclass(frozen=True)
class Paid:
    """What a game of `target_evidence` paid points."""

    sums: Floats
    grid: Grid
    targets: Targets
    divisor: int

    def worth(self, targets: Floats) -> Floats:
        """What each point would be worth with another target, all else equal."""
        now = self.grid.rounded(self.targets.points)
        return moved(self.sums[:3], targets - self.grid.origin - now) / self.divisor
