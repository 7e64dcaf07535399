"""What a point with a target adds, in a private table, to each validation point near it.

Targets are clipped to public bounds and rounded to u = k / G, with k from -G at the lower bound to
G at the upper one. A point adds L(u) = (u (u - 1) / 2, 1 - u^2, u (u + 1) / 2), which has length

    |L(u)|^2 = 1 - 3/2 u^2 (1 - u^2) <= 1,

and the sums of these three show how many points are near, and the sums of their u and u^2. In units
of 1 / (2 G^2) all three are whole numbers, so that nothing is rounded afterwards. No two sums of
such vectors have a smaller cosine than -`OPPOSED` (T13 of docs/privacy-proofs.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.inputs.checked_inputs import Points
from thresher.inputs.labels import Classes
from thresher.kernels.units import add_products, add_sum_squares
from thresher.neighbors.blocks import BitBlock
from thresher.passes.walk import visit
from thresher.privacy.contributions import JOB_UNITS, Contributions, Units, in_lanes
from thresher.sides.ball_side import BallSide
from thresher.sides.target_side import TargetSide
from thresher.threads import cut, run

G = 64
ONE = 2 * G * G  # whole numbers that stand for 1
OPPOSED = 0.14974
ENTRIES = 3


def steps(u: Floats) -> Integers:
    """Targets clipped and rounded to k; u is 0 in the middle of the bounds, 1 at the upper one.

    Examples
    --------
    >>> steps(np.array([-7.0, 0.0, 0.5, 1.0])).tolist()
    [-64, 0, 32, 64]
    """
    return np.rint(G * np.clip(u, -1.0, 1.0)).astype(np.int64)


def basis(k: Integers) -> Integers:
    """What points add, in units of 1 / (2 G^2): three rows, one column per point.

    Examples
    --------
    >>> basis(np.array([-64, 0, 32])).tolist()
    [[8192, 0, -1024], [0, 8192, 6144], [0, 0, 3072]]
    """
    return np.array([k * (k - G), 2 * (G * G - k * k), k * (k + G)])


def sums(table: Floats) -> tuple[Floats, Floats, Floats]:
    """The number of near points and the sums of their u and u^2, from sums of L(u)."""
    low, middle, high = table
    return low + middle + high, high - low, high + low


class TargetContributions(Contributions):
    """Which private points are near which validation points, and the sums of L(u) over units.

    Vectors are whole numbers: `ONE` times those of the theory. Labels do not matter here: all near
    pairs are counted as if there were one class.
    """

    def __init__(self, points: Points, side: TargetSide, k: Integers, units: Units) -> None:
        judges = replace(
            side.validation, codes=np.zeros(len(side), np.int32), classes=Classes((0,))
        )
        alike = Points(points.rows, np.zeros(len(points), np.int32))
        self.plain = Contributions(
            alike, BallSide(judges, side.radius), Units.of(None, len(points))
        )
        self.points, self.validation, self.units = points, side.validation, units
        self.near, self.game, self.adds = self.plain.near, side.counting(), basis(k)

    def squares(self, importance: Integers | None = None) -> Integers:
        """The squared length of each unit's whole vector, or `LONGEST` if it is longer."""
        if len(self.units) == len(self.points):  # a point adds the same wherever it is near
            squares = np.zeros(len(self.units), np.int64)
            near, each = self.plain.squares(importance), (self.adds**2).sum(axis=0)
            add_products(np.arange(len(near)), each, near, squares)
            return squares[self.units.order]
        squares = np.zeros(len(self.units), np.int64)

        def add(block: BitBlock) -> None:
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
        each = self.units.each(weights)
        return np.array([self.plain.counts(each * adds)[0] for adds in self.adds])
