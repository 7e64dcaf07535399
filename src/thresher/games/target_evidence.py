"""What others say about the target of a point: games that pay evidence in place of value.

By a radius the others are the near validation points, each of which has a target. In leaves they
are the other rows in the point's leaf, tree by tree; the point itself never counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.games.leaf_targets import LeafTargets
from thresher.games.ring_targets import RingTargetGame
from thresher.games.target_changes import changes
from thresher.games.targets import TargetGame, summed

Beside = Callable[[slice], tuple[Floats, Floats]]


@dataclass(frozen=True)
class NearTargets(TargetGame):
    """Values, what they would be with other targets, and what the near judges say.

    The payments are those of `TargetGame`, the three of `changes`, and of the near judges their
    number, the sum of their targets and that of squares.
    """

    columns: int = 9

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each cell pays, and what it says."""
        moved = changes(sums, self.judges[columns], self.semivalue)
        said = _said(self.judges[columns])
        return np.concatenate([super().prices(sums, columns), moved, said])

    def total(self, out: Floats, groups: object) -> Floats:
        """What each point is paid."""
        return super().total(out[:3], groups)


@dataclass(frozen=True)
class NearRingTargets(RingTargetGame):
    """The same where near points weigh by their distance; all near judges say as much."""

    columns: int = 9

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each ring of a cell pays, and what the cell says."""
        members, _, moved = self.all_prices(sums, columns)
        said = np.broadcast_to(_said(self.judges[columns])[:, None], members.shape)
        return np.concatenate([members, moved, said])

    def total(self, out: Floats, groups: object) -> Floats:
        """What each point is paid."""
        return super().total(out[:3], groups)


def _said(judges: Integers) -> Floats:
    """What judges say: that they are there, their targets, and the squares of these."""
    targets = judges.astype(np.float64)
    return np.array([np.ones(len(targets)), targets, targets**2])


@dataclass(frozen=True)
class LeafChanges(LeafTargets):
    """Values, and what they would be with other targets: the payments of both."""

    columns: int = 6

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each leaf pays."""
        return np.concatenate([super().prices(sums, columns), self.leaf_changes(sums, columns)])

    def total(self, out: Floats, groups: object) -> Floats:
        """What each point is paid."""
        return super().total(out[:3], groups)


@dataclass(frozen=True)
class OtherTargets(TargetGame):
    """The mean target of the others in each point's leaf, as a mean over trees.

    The payments are how many others there are, in how many trees there are any, and the two terms
    of their means: (sum of all) / others, and 1 / others, which the point's own target takes away.
    """

    # the number and the sum of targets of other rows in some cells, such as validation points
    beside: Beside | None = None
    columns: int = 4

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each leaf says."""
        count, one, _ = summed(sums)
        if self.beside is not None:
            more, their = self.beside(columns)
            count, one = count + more, one + their
        others = np.maximum(count - 1, 0)
        some = np.maximum(others, 1)
        known = others > 0
        return np.array([others, known, np.where(known, one / some, 0.0), known / some])

    def means(self, out: Floats, groups: object) -> Floats:
        """The mean target of the others, in steps; NaN where there is nobody."""
        own: Floats = groups.targets.astype(np.float64)  # type: ignore[attr-defined]
        some = out[1] > 0
        return np.divide(out[2] - own * out[3], out[1], out=np.full(len(own), np.nan), where=some)
