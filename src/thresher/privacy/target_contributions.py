"""What each unit of privacy adds to the table, where points have targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thresher.array_types import Integers
from thresher.inputs.checked_inputs import Points
from thresher.inputs.labels import Classes
from thresher.kernels.units import add_sum_squares
from thresher.neighbors.blocks import Block
from thresher.passes.walk import visit
from thresher.privacy.contributions import JOB_UNITS, Contributions, Units, in_lanes
from thresher.privacy.lagrange import basis
from thresher.sides.target_side import TargetSide
from thresher.threads import cut, run


class TargetContributions(Contributions):
    """The bits of private points, and the sums of L(u) over units; see `lagrange`.

    Vectors are whole numbers, `lagrange.ONE` times what the theory has. Whose label agrees does not
    matter here: all near pairs are counted as if there were one class.
    """

    def __init__(self, points: Points, side: TargetSide, k: Integers, units: Units) -> None:
        judges = replace(
            side.validation, codes=np.zeros(len(side), np.int32), classes=Classes((0,))
        )
        alike = Points(points.rows, np.zeros(len(points), np.int32))
        self.plain = Contributions(alike, judges, side.radius, Units.of(None, len(points)))
        self.points, self.validation, self.units = points, side.validation, units
        self.near, self.game, self.adds = self.plain.near, side.counting(), basis(k)

    def squares(self, importance: Integers | None = None) -> Integers:
        """The squared length of each unit's whole vector, or `LONGEST` if it is longer."""
        if len(self.units) == len(self.points):  # a point adds the same wherever it is near
            near = self.plain.squares(importance)
            return (near * (self.adds**2).sum(axis=0))[self.units.order]
        squares = np.zeros(len(self.units), np.int64)

        def add(block: Block) -> None:
            often = in_lanes(importance, block)

            def job(lo: int, hi: int) -> None:
                starts, found = self.units.starts[lo : hi + 1], squares[lo:hi]
                add_sum_squares(block.words, self.adds, self.units.order, starts, often, found)

            run(job, cut(0, len(self.units), JOB_UNITS), parallel=len(self.units) > JOB_UNITS)

        visit(self.points, self.near, self.plain.groups, add)
        return squares

    def counts(self, weights: Integers) -> Integers:
        """The table of L(u) x M with every unit's vector times its whole weight.

        Nothing wraps: a point adds at most 2^12 times `ONE`, which is 2^25, and there are fewer
        than 2^31 points.
        """
        each = np.empty(len(self.points), np.int64)
        each[self.units.order] = np.repeat(weights, np.diff(self.units.starts))
        return np.array([self.plain.counts(each * adds)[0] for adds in self.adds])
