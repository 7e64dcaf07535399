"""The game of numbers: points carry targets, and cells pay by how far their mean is from their own.

The utility of a coalition for a judge with target t is minus the squared error of the mean of its
near members, or of a public number e if it has none. A cell has a center c near the mean of its
points. Let r = y - c for the valued point, a = c - t, g = e - c. For the o other near points, let
m be the mean of r, q the mean of r^2, and p the mean product of two different ones. Then the value
of a member is

    P0 (g (g + 2 a) - 2 a r - r^2) - 2 a B (r - m)
    + q (A - B + D) + p (3B - 2D - A) - 2 r m (B - D) - r^2 D

with P0, A, B and D from `moments`. Why: alone, the point adds (e - t)^2 - (y - t)^2. For j > 0
others with mean M, it moves the mean by (r - M) / (j + 1). Squared errors grow by twice that times
a, and by the difference of squares around c. There, the mean square is (q + (j - 1) p) / j,
and with the point it is (j q + j (j - 1) p + 2 j r m + r^2) / (j + 1)^2.

In the sums over *all* near points, this is a quadratic in r. So each cell has three prices and its
center, and keeps the number of near points, the sum of their targets and that of their squares. A
target that is far off is far from the centers of its own cells only: others lose no digit by it.

If the target of a member moves by d, its value grows by d (S - G d). These are the terms in r and
r^2, with the member's own target taken out of the sum of the others:

    G = P0 + D,  S = K - (H + 2 G) r,  K = H sum(r) - 2 a (P0 + B),  H = -2 (B - D) / o

Each cell has its own G, K and H; S and G add up over cells like values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError
from thresher.games.moments import moments
from thresher.games.semivalues import Semivalue
from thresher.inputs.checks import rows_text
from thresher.inputs.grids import Grid
from thresher.kernels.target_sums import (
    ENTRIES,
    FIRSTS,
    LIMB,
    LOW,
    first_sums,
    residual_sums,
    sum_leaves,
)
from thresher.neighbors.groups import Groups

MEMBERS, NEWCOMERS, CHANGES = slice(0, 3), slice(3, 6), slice(6, 9)
CENTER = 9  # the row of prices that says around which target the others are
PRICES = 10  # rows of prices
KEPT = 1e-6  # of a value, which may be lost where a target moves from far off


@dataclass(frozen=True)
class TargetGroups(Groups):
    """Points in input order, with their targets on a grid, and their owners."""

    targets: Floats
    whose: Integers
    scale: float  # one over the step of the grid

    @classmethod
    def of_codes(cls, codes: Array, grid: Grid, whose: Array | None = None) -> TargetGroups:
        """The points whose targets have these codes."""
        plain = Groups.of(np.zeros(len(codes), np.int32), 1)
        owners = np.zeros(len(codes), np.int64) if whose is None else whose
        known = np.ascontiguousarray(grid.numbers(codes)), np.ascontiguousarray(owners, np.int64)
        return cls(plain.positions, plain.starts, *known, 1 / grid.step)

    def sums(self, block: Any, owners: int = 1) -> Integers:
        """The sums of near targets in each cell of a block, by owner and by ring."""
        found: Integers = block.sum_targets(self.targets, self.whose, owners, self.scale)
        return found.reshape(-1, found.shape[-1])


@dataclass(frozen=True)
class NearSums:
    """What is near some cells: how many points, and the sums of r and r^2 around a center."""

    count: Integers
    one: Floats
    two: Floats
    center: Floats

    @classmethod
    def of(cls, sums: Integers, grid: Grid, elsewhere: Floats | float) -> NearSums:
        """The sums around the mean of the points, or `elsewhere` in cells without points."""
        steps = means_in_steps(sums)
        center = np.where(sums[0] > 0, steps * grid.step, elsewhere)
        return cls(sums[0], *centered(sums, steps, grid.step), center)


@dataclass(frozen=True)
class TargetGame:
    """The game in which cells pay by how near the mean target is to their own.

    The code of a point is that of its target. All targets are relative to the origin of the grid.
    """

    judges: Floats  # the targets of the cells
    empty: float  # the prediction where nobody is near
    grid: Grid
    semivalue: Semivalue = "shapley"  # how utility is shared out
    columns: ClassVar[int] = 0  # sums that a point is paid, if it is not the value alone

    @property
    def entries(self) -> int:
        """How many numbers a cell keeps."""
        return ENTRIES

    def groups(self, codes: Array) -> TargetGroups:
        """Points in input order."""
        return TargetGroups.of_codes(codes, self.grid)

    def sums(self, block: Any, groups: Any) -> Integers:
        """The number, the sum and the sum of squares of near targets in each cell."""
        return groups.sums(block)

    def near(self, sums: Integers, columns: slice) -> NearSums:
        """What is near some cells."""
        return NearSums.of(sums, self.grid, self.judges[columns])

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each cell pays a member: the coefficients of 1, r and r^2, and its center."""
        near = self.near(sums, columns)
        return np.array([*self.quadratics(near, columns), near.center])

    def all_prices(self, sums: Integers, columns: slice) -> Floats:
        """All rows of prices: for members, for newcomers, changes, and centers."""
        near = self.near(sums, columns)
        both = [self.quadratics(near, columns, newcomer=new) for new in (False, True)]
        return np.array([*both[0], *both[1], *self.changes(near, columns), near.center])

    def quadratics(self, near: NearSums, columns: slice, *, newcomer: bool = False) -> Floats:
        """What each cell pays a member or a newcomer."""
        return quadratics(near, self.judges[columns], self.empty, self.semivalue, newcomer=newcomer)

    def changes(self, near: NearSums, columns: slice) -> Floats:
        """How a member's value changes with its target: G, K and H of each cell."""
        return changes(near, self.judges[columns], self.semivalue)

    def pay(self, block: Any, groups: Any, prices: Floats, out: Floats) -> None:
        """Add what the cells of a block pay to each point in `out`, one row per kind of payment."""
        block.pay_targets(groups.targets, prices, np.atleast_2d(out))

    def utility(self, sums: Integers, columns: slice) -> float:
        """The utility of all counted points for some cells: minus the squared errors."""
        near, judges = self.near(sums, columns), self.judges[columns]
        mean = near.one / np.maximum(near.count, 1)
        errors = np.where(near.count > 0, near.center - judges + mean, self.empty - judges)
        return -float((errors**2).sum())


@dataclass(frozen=True)
class Retargeted(TargetGame):
    """Pay points what they are worth, and S and G, by which that changes with their targets.

    At the end, each has the value that it would have with one other target.
    """

    target: float = 0.0
    columns: ClassVar[int] = 3

    def total(self, out: Floats, groups: Any) -> Floats:
        """What each point would be paid."""
        by = self.target - groups.targets
        check_kept(out, by, np.append(self.judges, [*groups.targets, self.target, self.empty]))
        return moved(out, by)


def with_changes(prices: Floats) -> Floats:
    """All rows of prices as what members are paid if S and G are paid, too."""
    square, pull, own = prices[CHANGES]
    nothing = np.zeros_like(square)
    slopes = np.array([pull, -(own + 2 * square), nothing, square, nothing, nothing])
    return np.concatenate([prices[MEMBERS], slopes, prices[CENTER:]])


def with_slopes(prices: Floats) -> Floats:
    """The same for newcomers, whose value is the quadratic itself."""
    _, linear, bend = prices[NEWCOMERS]
    nothing = np.zeros_like(bend)
    slopes = np.array([linear, 2 * bend, nothing, -bend, nothing, nothing])
    return np.concatenate([prices[NEWCOMERS], slopes, prices[CENTER:]])


def moved(paid: Floats, by: Floats | float) -> Floats:
    """Values after targets moved `by` so much; `paid` has values, S and G."""
    value, slope, square = paid
    return np.asarray(value + by * (slope - square * by))


def check_kept(paid: Floats, by: Floats, known: Floats) -> None:
    """Raise if values after a move are lost to rounding; `known` targets show what is usual.

    A point whose own target is far off is paid so much now that the rest may have no digit left.
    """
    value, slope, square = np.abs(paid)
    found, usual = np.abs(moved(paid, by)), float(np.median(np.abs(known - np.median(known))))
    lost = np.finfo(float).eps * (value + np.abs(by) * (slope + square * np.abs(by)))
    rows = np.flatnonzero(lost > KEPT * np.maximum(found, square * usual**2))
    if len(rows):
        raise InputError(
            f"X has {rows_text(rows)} with a target so far off that what the point would be worth "
            "with another one is lost to rounding: relabel it in the counts, or correct it in y, "
            "and compute prices again"
        )


def sums_of(targets: Floats, step: float = 1.0) -> Integers:
    """What a cell keeps about these targets.

    Examples
    --------
    >>> sums_of(np.array([3.0, -1.0]))[:5, 0].tolist()
    [2, 2, 0, 0, 10]
    """
    found, zeros = np.zeros((1, ENTRIES), np.int64), np.zeros(len(targets), np.int32)
    groups = zeros.astype(np.int64)
    sum_leaves(zeros, np.asarray(targets, np.float64), 1 / step, groups, 1, found)
    return found.T


def squared_errors(sums: Integers, guess: float, step: float) -> int:
    """The sum of squared errors of one guess for all targets in these cells, in squared steps."""
    parts = [(int((row >> LIMB).sum()) << LIMB) + int((row & LOW).sum()) for row in sums]
    first = sum(part << LIMB * k for k, part in enumerate(parts[1 : 1 + FIRSTS]))
    second = sum(part << LIMB * k for k, part in enumerate(parts[1 + FIRSTS :]))
    steps = int(guess / step)
    return parts[0] * steps**2 - 2 * steps * first + second


def means_in_steps(sums: Integers) -> Floats:
    """The mean target in each cell, rounded to a whole number of steps; 0 where nobody is."""
    first = np.empty(sums.shape[1])
    first_sums(sums, first)
    return np.rint(first / np.maximum(sums[0], 1))


def centered(sums: Integers, centers: Floats, step: float) -> tuple[Floats, Floats]:
    """The sums of r and r^2 in each cell, where r is a target minus a center in whole steps.

    They are exact before they are rounded.
    """
    one, two = np.empty((2, sums.shape[1]))
    residual_sums(sums, centers, one, two)
    return one * step, two * step * step


def quadratics(
    near: NearSums, judges: Floats, empty: float, semivalue: Semivalue, *, newcomer: bool = False
) -> Floats:
    """What a cell pays a point by its r: the coefficients of 1, r and r^2, one row each.

    The point is a member, which is among the sums, or a newcomer. If nobody was counted, the price
    of a member is that of a first one.
    """
    own = 0.0 if newcomer else 1.0
    others = np.maximum(near.count - int(own), 0)
    known = moments(semivalue, others + 1)
    return residual_prices(near, others, known, judges, empty, own)


def residual_prices(
    near: NearSums, others: Integers, known: Any, judges: Floats, empty: float, own: float
) -> Floats:
    """The same, by the moments of the number of `others`; `own` is 1 for members, else 0."""
    P0, A, B, D = known.alone, known.inverse, known.next_inverse, known.next_square
    one, two, apart, gap = near.one, near.two, near.center - judges, empty - near.center
    both = both_errors(empty, near.center, judges)
    some, pairs = np.maximum(others, 1), np.maximum(others * (others - 1.0), 1.0)
    squares, products = (A - B + D) / some, np.where(others > 1, 3 * B - 2 * D - A, 0.0) / pairs
    mixed, pull = -2 * (B - D) / some, 2 * apart * B
    return np.array(
        [
            P0 * gap * both + pull * one / some + squares * two
            + products * (one**2 - two),
            -2 * apart * P0 - pull * (1 + own / some) + (mixed - own * 2 * products) * one,
            -P0 - D - own * (squares + mixed - 2 * products),
        ]
    )  # fmt: skip


def both_errors(empty: float, center: Floats, judges: Floats) -> Floats:
    """The errors of two numbers for each judge, added up: nearly opposite ones lose no digit."""
    (first, lost), (second, more) = _difference(empty, judges), _difference(center, judges)
    found, rest = _difference(first, -second)
    return found + (lost + more + rest)


def _difference(one: Floats | float, other: Floats) -> tuple[Floats, Floats]:
    """A difference, and what it lost to rounding (Knuth's two-sum)."""
    found = one - other
    back = found - one
    return found, (one - (found - back)) - (other + back)


def changes(near: NearSums, judges: Floats, semivalue: Semivalue) -> Floats:
    """G, K and H of each cell, one row each."""
    others = np.maximum(near.count - 1, 0)
    known = moments(semivalue, others + 1)
    square = known.alone + known.next_square
    own = -2 * (known.next_inverse - known.next_square) / np.maximum(others, 1)
    pull = own * near.one - 2 * (near.center - judges) * (known.alone + known.next_inverse)
    return np.array([square, pull, own])


def estimated_prices(
    count: Floats, mean: Floats, square: Floats, judges: Floats, empty: float,
    semivalue: Semivalue,
) -> Floats:  # fmt: skip
    """Like `TargetGame.all_prices`, for near targets with this mean and mean square.

    Between two whole numbers of points, prices are interpolated.

    Examples
    --------
    >>> about = np.array([0.5]), np.array([0.5]), np.array([0.0]), 0.0, "shapley"
    >>> found = [estimated_prices(np.array([c]), *about)[3:6, 0] for c in (1, 1.5, 2)]
    >>> [round(float(a - 0.5 * b + 0.25 * c), 4) for a, b, c in found]
    [0.1875, 0.1794, 0.1713]
    """
    spread = np.maximum(square - mean**2, 0.0)

    def prices(c: Integers) -> Floats:
        near = NearSums(c, np.zeros_like(mean), np.asarray(c * spread), mean)
        both = [quadratics(near, judges, empty, semivalue, newcomer=new) for new in (False, True)]
        return np.array([*both[0], *both[1], *changes(near, judges, semivalue), mean])

    return _between(count, prices)


def _between(count: Floats, prices: Callable[[Integers], Floats]) -> Floats:
    """Prices at any number of points, interpolated between the whole numbers below and above."""
    below = np.floor(count).astype(np.int64)
    share = count - below
    return (1 - share) * prices(below) + share * prices(below + 1)
