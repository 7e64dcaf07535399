"""The game of leaves with numbers: the mean prediction of trees, by the targets in their leaves.

A cell is a leaf. Its judges are the validation points in it. What a point is worth to a judge is
linear in the judge's target. So all judges together pay what one judge with their mean target
would, times their weight. Without a validation set, the judges are the points themselves, and each
is left out of its own game. Then let T1 and T2 be the sums of r and r^2 of the c - 1 other points
in a leaf, n = c - 2, x the r of the valued point, and e that of the prediction if nobody is there,
all around the mean target of the leaf. With the moments of c - 1 near points, the others together
pay

    (c - 1) P0 (e^2 - x^2) - 2 P0 T1 (e - x) + (A - B + D) T2 + (B - 2D - A) (T1^2 - T2) / n
    + 2 D x T1 - (c - 1) D x^2

which is the sum over judges of the value by `targets`, with the judge taken out of both sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.games.moments import moments
from thresher.games.semivalues import Semivalue
from thresher.games.targets import NearSums, TargetGame, changes, quadratics

Judges = tuple[Floats, Floats, float]  # weight and mean target of a leaf, and what is left over


@dataclass(frozen=True)
class LeafTargets(TargetGame):
    """The game in which leaves pay by how near their mean target is to those of their judges."""

    # the judges in some cells: their weight and mean target in each, and the weighted sum of
    # squared deviations from these means. None where points judge each other.
    leaf_judges: Callable[[slice], Judges] | None = None
    share: float = 1.0  # the weight of a tree, where points judge each other

    def near(self, sums: Integers, columns: slice) -> NearSums:
        """What is near some cells."""
        del columns
        return NearSums.of(sums, self.grid, self.empty)

    def quadratics(self, near: NearSums, columns: slice, *, newcomer: bool = False) -> Floats:
        """What each leaf pays a member or a newcomer."""
        if self.leaf_judges is None:
            return self.share * _among_points(near, self, newcomer=newcomer)
        weight, mean, _ = self.leaf_judges(columns)
        return weight * quadratics(near, mean, self.empty, self.semivalue, newcomer=newcomer)

    def changes(self, near: NearSums, columns: slice) -> Floats:
        """How a member's value changes with its target in each leaf."""
        if self.leaf_judges is None:
            return self.share * _changes_among_points(near, self.semivalue)
        weight, mean, _ = self.leaf_judges(columns)
        return weight * changes(near, mean, self.semivalue)

    def utility(self, sums: Integers, columns: slice) -> float:
        """The utility of all points for the judges of these leaves."""
        near = self.near(sums, columns)
        count, one, two = near.count, near.one, near.two
        gap = self.empty - near.center
        if self.leaf_judges is None:
            alone = two - 2 * gap * one + gap**2  # of the only point
            several = count * (count * two - one**2) / np.maximum(count - 1, 1) ** 2
            errors = np.where(count > 1, several, np.where(count == 1, alone, 0.0))
            return -self.share * float(errors.sum())
        weight, mean, rest = self.leaf_judges(columns)
        apart = near.center - mean
        errors = np.where(count > 0, apart + one / np.maximum(count, 1), apart + gap)
        return -float((weight * errors**2).sum()) - rest


def leaf_judges(leaves: Array, size: int, targets: Floats, share: float) -> Judges:
    """The weight and the mean target of the judges in each leaf, and their targets' residuals."""
    count = np.bincount(leaves, minlength=size)
    means = np.bincount(leaves, targets, minlength=size) / np.maximum(count, 1)
    left = float(((targets - means[leaves]) ** 2).sum())
    return np.asarray(count * share, np.float64), means, left * share


def _among_points(near: NearSums, game: TargetGame, *, newcomer: bool) -> Floats:
    """What the others in a leaf pay a point, by its r; the point is in the sums, or a newcomer."""
    one, two, empty = near.one, near.two, game.empty - near.center
    own = 0.0 if newcomer else 1.0
    judges = np.maximum(near.count - own, 0)
    known = moments(game.semivalue, np.maximum(judges, 1).astype(np.int64))
    P0, A, B, D = known.alone, known.inverse, known.next_inverse, known.next_square
    pairs = np.where(judges > 1, (B - 2 * D - A) / np.maximum(judges - 1, 1), 0.0)
    squares = A - B + D
    # of a member T1 = one - x and T2 = two - x^2, so T1^2 - T2 = one^2 - two - 2 one x + 2 x^2
    found = np.array(
        [
            judges * P0 * empty**2 - 2 * P0 * empty * one + squares * two + pairs * (one**2 - two),
            2 * P0 * (one + own * empty) - own * 2 * pairs * one + 2 * D * one,
            -judges * (P0 + D) - own * (2 * P0 + squares - 2 * pairs + 2 * D),
        ]
    )
    return np.where(judges > 0, found, 0.0)


def _changes_among_points(near: NearSums, semivalue: Semivalue) -> Floats:
    """How the value of a member changes with its target if the others in a leaf judge it."""
    judges = np.maximum(near.count - 1, 0)
    known = moments(semivalue, np.maximum(judges, 1).astype(np.int64))
    square = np.where(judges > 0, known.alone + known.next_square, 0.0)
    return np.array([judges * square, 2 * square * near.one, 2 * square])
