"""What others say about the target of a point: games whose payments include evidence.

With a radius, the others are the near validation points, each of which has a target. With leaves,
they are the other rows in the point's leaf, tree by tree; the point itself never counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.games.leaf_targets import LeafTargets
from thresher.games.ring_targets import RingTargetGame
from thresher.games.targets import TargetGame, summed

Beside = Callable[[slice], tuple[Floats, Floats]]


class WithChanges:
    """A game that pays its prices, and how these change with the target of a member."""

    columns: ClassVar[int] = 6

    def prices(self: Any, sums: Integers, columns: slice) -> Floats:
        """What each cell pays."""
        members, _, moved = self.all_prices(sums, columns)
        return np.concatenate([members, moved])


class WithJudges(WithChanges):
    """The same, with the number of near judges, the sum of their targets and that of squares."""

    columns: ClassVar[int] = 9

    def prices(self: Any, sums: Integers, columns: slice) -> Floats:
        """What each cell pays and says about its judge, which is the same for all its rings."""
        paid = super().prices(sums, columns)
        targets = self.judges[columns].astype(np.float64)
        said = np.array([np.ones(len(targets)), targets, targets**2])
        said = said.reshape(3, *(1,) * (paid.ndim - 2), -1)
        return np.concatenate([paid, np.broadcast_to(said, (3, *paid.shape[1:]))])


class NearTargets(WithJudges, TargetGame):
    """Pay values, what they would be with other targets, and what the near judges say."""


class NearRingTargets(WithJudges, RingTargetGame):
    """The same, with weights of near points by distance."""


class LeafChanges(WithChanges, LeafTargets):
    """Pay values, and what they would be with other targets."""


@dataclass(frozen=True)
class OtherTargets(TargetGame):
    """The mean target of the others in each point's leaf, as a mean over trees.

    The payments are the number of others, the number of trees with any, and the two terms of their
    means: (sum of all) / others, and 1 / others, from which the point's own target is subtracted.
    """

    # the number and the sum of targets of other rows in some cells, such as validation points
    beside: Beside | None = None
    columns: ClassVar[int] = 4

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each leaf says about the others."""
        count, one, _ = summed(sums)
        if self.beside is not None:
            more, their = self.beside(columns)
            count, one = count + more, one + their
        others = np.maximum(count - 1, 0)
        some = np.maximum(others, 1)
        known = others > 0
        return np.array([others, known, np.where(known, one / some, 0.0), known / some])

    def means(self, out: Floats, groups: object) -> Floats:
        """The mean target of the others, in steps; NaN if there are none."""
        own: Floats = groups.targets.astype(np.float64)  # type: ignore[attr-defined]
        some = out[1] > 0
        return np.divide(out[2] - own * out[3], out[1], out=np.full(len(own), np.nan), where=some)
