"""The game of numbers: points carry targets, and cells pay by how far their mean is from their own.

The utility of a coalition for a judge with target t is minus the squared error of the mean of its
near members, or of a public number if it has none. Let z = y - t for the valued point, and z0 for
the public number. For the c - 1 others, let m be the mean, q the mean square, and p the mean
product of two different ones. Then the value of a member is

    P0 (z0^2 - z^2) + q (A - B + D) + p (3B - 2D - A) - 2 z m (B - D) - z^2 D

with P0, A, B and D from `moments`. Why: alone, the point adds z0^2 - z^2. For j > 0 others, the
average squared mean is (q + (j - 1) p) / j, and with the point it is
(j q + j (j - 1) p + 2 j z m + z^2) / (j + 1)^2.

In the sums over *all* near points, this is a quadratic in z, and so in y. So each cell has three
prices, and keeps the number of near points, the sum of their targets and that of their squares.

If the target of a member moves from u to w, its value grows by (w - u) (K - H u - G (u + w)). These
are the terms in z and z^2, with the member's own target taken out of the sum of the others. Each
cell has its own G, K and H, and they add up over cells like prices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.games.moments import moments
from thresher.games.semivalues import Semivalue
from thresher.kernels.target_sums import LIMB, LOW
from thresher.neighbors.groups import Groups

ENTRIES = 4  # count, sum, and the two parts of the sum of squares


@dataclass(frozen=True)
class Grid:
    """Targets as whole numbers of steps from a center, at most 2^31 of them."""

    # center, step: public numbers; the step is a power of two
    center: float
    step: float

    @classmethod
    def over(cls, low: float, high: float) -> Grid:
        """The grid of targets from `low` to `high`.

        Examples
        --------
        >>> Grid.over(0.0, 4.0)
        Grid(center=2.0, step=9.313225746154785e-10)
        """
        center = low / 2 + high / 2
        half = max(high - center, center - low)
        return cls(center, float(2.0 ** (np.ceil(np.log2(half)) - LIMB)) if half > 0 else 1.0)

    def steps(self, targets: Floats) -> Integers:
        """Targets on the grid, rounded to the nearest step."""
        return np.rint((targets - self.center) / self.step).astype(np.int64)

    def record(self) -> dict[str, float]:
        """What a result says about the grid."""
        return {"center": self.center, "step": self.step}


@dataclass(frozen=True)
class TargetGroups(Groups):
    """Points in input order, with their targets in steps of a grid, and their owners."""

    targets: Integers
    whose: Integers

    @classmethod
    def of_targets(cls, targets: Array, whose: Array | None = None) -> TargetGroups:
        """The points with these targets."""
        plain = Groups.of(np.zeros(len(targets), np.int32), 1)
        owners = np.zeros(len(targets), np.int64) if whose is None else whose
        known = (np.ascontiguousarray(each, np.int64) for each in (targets, owners))
        return cls(plain.positions, plain.starts, *known)

    def sums(self, block: Any, owners: int = 1) -> Integers:
        """The four sums of near targets in each cell of a block, by owner and by ring."""
        found: Integers = block.sum_targets(self.targets, self.whose, owners)
        return found.reshape(-1, found.shape[-1])


@dataclass(frozen=True)
class TargetGame:
    """The game in which cells pay by how near the mean target is to their own, in grid steps.

    Here, the code of a point is its target, not its class.
    """

    judges: Integers  # the targets of the cells
    empty: int  # the prediction where nobody is near
    semivalue: Semivalue = "shapley"  # how utility is shared out
    # sums that a point is paid: of what does not depend on its target u, times u, times u^2
    columns: ClassVar[int] = 3

    @property
    def entries(self) -> int:
        """How many numbers a cell keeps."""
        return ENTRIES

    def groups(self, codes: Array) -> TargetGroups:
        """Points in input order."""
        return TargetGroups.of_targets(codes)

    def sums(self, block: Any, groups: Any) -> Integers:
        """The number, the sum and the sum of squares of near targets in each cell."""
        return groups.sums(block)

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each cell pays a member: the coefficients of 1, u and u^2."""
        return self.quadratics(sums, columns)

    def all_prices(self, sums: Integers, columns: slice) -> Floats:
        """Prices of the shape (3, 3, cells): for members, for newcomers, and changes."""
        both = [self.quadratics(sums, columns, newcomer=new) for new in (False, True)]
        return np.array([*both, self.changes(sums, columns)])

    def quadratics(self, sums: Integers, columns: slice, *, newcomer: bool = False) -> Floats:
        """What each cell pays a member or a newcomer."""
        about = self.judges[columns], self.empty, self.semivalue
        return quadratics(sums, *about, newcomer=newcomer)

    def changes(self, sums: Integers, columns: slice) -> Floats:
        """How a member's value changes with its target: G, K and H of each cell."""
        return changes(sums, self.judges[columns], self.semivalue)

    def pay(self, block: Any, groups: Groups, prices: Floats, out: Floats) -> None:
        """Add what the cells of a block pay to each point in `out`, one row per coefficient."""
        segments = [(0, len(groups.positions), 0)]
        for row, weights in zip(out, prices, strict=True):
            block.add(segments, weights[None], row)

    def total(self, out: Floats, groups: Any) -> Floats:
        """What each point is paid."""
        u = groups.targets.astype(np.float64)
        return out[0] + u * (out[1] + u * out[2])

    def utility(self, sums: Integers, columns: slice) -> float:
        """The utility of all counted points for some cells: minus the squared errors."""
        judges, near = self.judges[columns], np.maximum(sums[0], 1)
        errors = np.where(sums[0] > 0, centered(sums, judges)[0] / near, self.empty - judges)
        return -float((errors**2).sum())


@dataclass(frozen=True)
class Retargeted(TargetGame):
    """Pay members as if each had one other target; the payments are prices, and G, K and H."""

    target: int = 0
    columns: ClassVar[int] = 6

    def total(self, out: Floats, groups: Any) -> Floats:
        """What each point would be paid."""
        now = groups.targets.astype(np.float64)
        return super().total(out, groups) + growth(out[3:], now, float(self.target))


def sums_of(targets: Integers) -> Integers:
    """What a cell keeps about these targets: number, sum, and sum of squares in two parts."""
    squares = targets * targets
    found = len(targets), targets.sum(), (squares >> LIMB).sum(), (squares & LOW).sum()
    return np.array(found, np.int64)[:, None]


def squared_errors(sums: Integers, guess: int) -> int:
    """The exact sum of squared errors of one guess for all targets in these cells."""
    count, first, high, low = (int(each.astype(object).sum()) for each in sums)
    return count * guess**2 - 2 * guess * first + (high << LIMB) + low


def summed(sums: Integers) -> tuple[Floats, Floats, Floats]:
    """The number, the sum and the sum of squares of near targets, rounded once."""
    squares = (sums[2].astype(object) << LIMB) + sums[3].astype(object)
    count, first = sums[:2].astype(np.float64)
    return count, first, squares.astype(np.float64)


def centered(sums: Integers, judges: Array) -> tuple[Floats, Floats]:
    """The sums of z and z^2 in each cell, where z is u minus the judge's target.

    They are exact around the nearest whole number; the remaining part of a step is shifted in
    floats.
    """
    near = np.rint(judges)
    count, first, high, low = (each.astype(object) for each in sums)
    t = near.astype(np.int64).astype(object)
    one = (first - count * t).astype(np.float64)
    two = ((high << LIMB) + low - 2 * t * first + count * t * t).astype(np.float64)
    left = judges - near
    return one - sums[0] * left, two - 2 * left * one + sums[0] * left**2


def quadratics(
    sums: Integers, judges: Array, empty: int, semivalue: Semivalue, *,
    newcomer: bool = False,
) -> Floats:  # fmt: skip
    """What a cell pays a point by its u: the coefficients of 1, u and u^2, one row each.

    The point is a member, which is among the sums, or a newcomer. If nobody was counted, the price
    of a member is that of a first one.
    """
    z0 = (empty - judges).astype(np.float64)
    found = residual_prices(sums[0], centered(sums, judges), z0, semivalue, newcomer=newcomer)
    return shifted(found, judges)


def residual_prices(
    count: Integers, sums: tuple[Floats, Floats], z0: Floats, semivalue: Semivalue, *,
    newcomer: bool = False,
) -> Floats:  # fmt: skip
    """What a cell pays a point by its z: the coefficients of 1, z and z^2, one row each.

    `sums` are those of z and z^2 over the `count` near points, and `z0` is the z of the public
    number.
    """
    one, two = sums
    own = 0.0 if newcomer else 1.0
    others = np.maximum(count - int(own), 0)
    near = moments(semivalue, others + 1)
    P0, A, B, D = near.alone, near.inverse, near.next_inverse, near.next_square
    some, pairs = np.maximum(others, 1), np.maximum(others * (others - 1.0), 1.0)
    squares, products = (A - B + D) / some, np.where(others > 1, 3 * B - 2 * D - A, 0.0) / pairs
    mixed = -2 * (B - D) / some
    return np.array(
        [
            P0 * z0**2 + squares * two + products * (one**2 - two),
            mixed * one - own * 2 * products * one,
            -P0 - D - own * (squares + mixed - 2 * products),
        ]
    )


def shifted(in_z: Floats, judges: Array) -> Floats:
    """Quadratics in z = u - t as quadratics in u."""
    a, b, g = in_z
    t = judges.astype(np.float64)
    return np.array([a - b * t + g * t * t, b - 2 * g * t, g])


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


def growth(paid: Floats, now: Floats, new: Floats | float) -> Floats:
    """How much values grow if targets move from `now` to `new`; `paid` has G, K and H."""
    square, pull, own = paid
    return np.asarray((new - now) * (pull - own * now - square * (now + new)))


def estimated_quadratics(
    count: Floats, mean: Floats, square: Floats, judges: Floats, empty: float,
    semivalue: Semivalue, *, newcomer: bool,
) -> Floats:  # fmt: skip
    """Like `targets.quadratics`, for near targets with this mean and mean square.

    Between two whole numbers of points, prices are interpolated.

    Examples
    --------
    >>> about = np.array([0.5]), np.array([0.5]), np.array([0.0]), 0.0, "shapley"
    >>> found = [
    ...     estimated_quadratics(np.array([c]), *about, newcomer=True)[0, 0] for c in (1, 1.5, 2)
    ... ]
    >>> [round(float(price), 4) for price in found]
    [0.1875, 0.1794, 0.1713]
    """
    z = mean - judges, square - 2 * judges * mean + judges**2

    def prices(c: Integers) -> Floats:
        sums = c * z[0], c * z[1]
        return residual_prices(c, sums, empty - judges, semivalue, newcomer=newcomer)

    return shifted(_between(count, prices), judges)


def estimated_changes(count: Floats, mean: Floats, judges: Floats, semivalue: Semivalue) -> Floats:
    """Like `targets.changes`, for near targets with this mean."""
    return _between(count, lambda c: residual_changes(c, c * (mean - judges), judges, semivalue))


def _between(count: Floats, prices: Callable[[Integers], Floats]) -> Floats:
    """Prices at any number of points, interpolated between the whole numbers below and above."""
    whole = np.floor(count).astype(np.int64)
    share = count - whole
    return (1 - share) * prices(whole) + share * prices(whole + 1)
