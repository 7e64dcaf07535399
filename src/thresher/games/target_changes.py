"""What a member would be worth with another target, if nothing else changed.

Where its target moves from u to w, its value grows by (w - u) (K - H u - G (u + w)): the terms of
`targets` in z and z^2, with the member's own target taken out of the sum of the others. Each cell
has its own G, K and H, and they add up over cells like prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.games.moments import moments
from thresher.games.semivalues import Semivalue
from thresher.games.targets import TargetGame, centered, summed


def changes(sums: Integers, judges: Array, semivalue: Semivalue) -> Floats:
    """G, K and H of each cell, one row each."""
    return residual_changes(sums[0], centered(sums, judges)[0], judges, semivalue)


def residual_changes(count: Integers, first: Floats, judges: Array, semivalue: Semivalue) -> Floats:
    """G, K and H of cells with `count` near points, whose residuals add up to `first`."""
    others = np.maximum(count - 1, 0)
    near = moments(semivalue, others + 1)
    square = near.alone + near.next_square
    mixed = -2 * (near.next_inverse - near.next_square) / np.maximum(others, 1)
    return np.array([square, 2 * square * judges + mixed * (first + judges), mixed])


def changes_among_points(sums: Integers, semivalue: Semivalue) -> Floats:
    """The same where the other points in a leaf are the judges."""
    count, one, _ = summed(sums)
    judges = np.maximum(count - 1, 0)
    near = moments(semivalue, np.maximum(judges, 1).astype(np.int64))
    square = np.where(judges > 0, near.alone + near.next_square, 0.0)
    return np.array([judges * square, 2 * square * one, 2 * square])


def growth(paid: Floats, now: Floats, new: Floats | float) -> Floats:
    """By how much values grow where targets move from `now` to `new`; `paid` has G, K and H."""
    square, pull, own = paid
    return np.asarray((new - now) * (pull - own * now - square * (now + new)))


@dataclass(frozen=True)
class Retargeted(TargetGame):
    """Members are paid as if each had one other target; payments are prices, and G, K and H."""

    target: int = 0
    columns: int = 6

    def total(self, out: Floats, groups: Any) -> Floats:
        """What each point would be paid."""
        now = groups.targets.astype(np.float64)
        return super().total(out[:3], groups) + growth(out[3:], now, float(self.target))
