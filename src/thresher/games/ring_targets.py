"""The game of numbers in which near points have weights by distance.

The points of a ring have one weight w. The utility of a coalition for a judge with target t is
minus the squared error of the weighted mean of its near members' targets, or of a public number if
it has none. A point is a player of the ratio game of `games.owner_values`, with mass w and gain w
(u - t). Take a center c near the weighted mean of all near points. With r = u - c of the valued
point, b = w r, and N and B the sums of w and b over the others in a coalition, the point adds to B
/ N and to (B / N)^2 the means

    K = int mu(dp) int ds  p Q (1 - E) (r N - B)
    L = int mu(dp) int ds  p Q { r^2 v N + 2 b s E B - s (1 - E) (V + p B^2) },  v = 1 - (1 + w s) E

with Q, N, B and V those of the others, as there. Its value is

    (z0^2 - (c - t + r)^2) w0 - 2 (c - t) K - L

where w0 is the chance that nobody else is present, and z0 the error of the public number. All
points of a ring share Q, and pairs are the square of one sum, so a judge costs the same for any
number of near points. In the sums over *all* near points, the value is a quadratic in r: three
prices for each ring, around the center of the cell. Leave-one-out needs no integral.

A member that is alone in its ring may outweigh all others by far. The coefficients of its quadratic
are then large and cancel. But its target is known, and so its value is known, which becomes its
price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.games.chances import chances
from thresher.games.semivalues import Semivalue, weights
from thresher.games.targets import (
    CENTER,
    MEMBERS,
    TargetGame,
    both_errors,
    centered,
    means_in_steps,
)
from thresher.inputs.grids import Grid
from thresher.kernels.integrals import ring_target_integrals
from thresher.kernels.target_sums import ENTRIES
from thresher.threads import cut, run

JOB = 8  # validation points of one job
INTEGRALS = 15


@dataclass(frozen=True)
class RingTargetGame(TargetGame):
    """The game in which cells pay by how near the weighted mean target is to their own.

    A cell keeps the sums of `targets` for each ring, entry by entry.
    """

    weights: tuple[float, ...] = (1.0,)  # of each ring, the innermost first

    @property
    def entries(self) -> int:
        """How many numbers a cell keeps, for all rings."""
        return ENTRIES * len(self.weights)

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What each cell pays a member of each ring, and its center."""
        found = self.all_prices(sums, columns)
        return np.concatenate([found[MEMBERS], found[CENTER:]])

    def all_prices(self, sums: Integers, columns: slice) -> Floats:
        """Like `ring_prices`, for some cells."""
        return ring_prices(self.near_rings(sums, columns), self.semivalue)

    def near_rings(self, sums: Integers, columns: slice) -> NearRings:
        """What is near some cells."""
        judges, weights = self.judges[columns], np.array(self.weights)
        return NearRings.of(sums, judges, self.empty, weights, self.grid)

    def utility(self, sums: Integers, columns: slice) -> float:
        """The utility of all counted points for some cells: minus the squared errors."""
        return -float((self.near_rings(sums, columns).error ** 2).sum())


@dataclass(frozen=True)
class NearRings:
    """What is near each cell, ring by ring, relative to a target near the weighted mean of all."""

    weights: Floats  # of the rings, as a column; only ratios matter, and the largest is 1
    counts: Integers  # the points of each ring
    first: Floats  # the sum of r over the points of each ring
    second: Floats  # and that of r^2
    center: Floats  # the target around which they are, a whole number of steps
    apart: Floats  # how far it is from that of the judge
    # none, gap: and how far the prediction of nobody is, from the judge and from the center
    none: Floats
    gap: Floats
    both: Floats  # the sum of `none` and `apart`

    @classmethod
    def of(
        cls, sums: Integers, judges: Floats, empty: float, of_ring: Floats, grid: Grid
    ) -> NearRings:
        """What is near cells with these sums."""
        rings, cells = len(of_ring), len(judges)
        table = sums.reshape(ENTRIES, -1)
        w = (of_ring / of_ring.max())[:, None]
        means = means_in_steps(table)
        mass, first = (_added(w * each.reshape(rings, -1)) for each in (table[0], table[0] * means))
        mean = np.divide(first, mass, out=judges / grid.step, where=mass > 0)
        steps = np.rint(mean)
        one, two = (
            each.reshape(rings, cells) for each in centered(table, np.tile(steps, rings), grid.step)
        )
        center = steps * grid.step
        both = both_errors(empty, center, judges)
        about = center, center - judges, empty - judges, empty - center, both
        return cls(w, table[0].reshape(rings, -1), one, two, *about)

    @property
    def near(self) -> Integers:
        """How many points are near each cell."""
        return self.counts.sum(axis=0)

    @property
    def mass(self) -> Floats:
        """How much the near points weigh together."""
        return _added(self.weights * self.counts)

    @property
    def gain(self) -> Floats:
        """The sum of the gains b."""
        return _added(self.weights * self.first)

    @property
    def error(self) -> Floats:
        """How far the prediction of all is from the target of each judge."""
        some = self.near > 0
        mean = np.divide(self.gain, self.mass, out=np.zeros(len(some)), where=some)
        return np.where(some, self.apart + mean, self.none)

    def beside(self) -> tuple[Floats, Floats]:
        """The weight of all points but one of a ring, and the gain of all other rings."""
        mass, gain = np.zeros(self.first.shape), np.zeros(self.first.shape)
        for k in range(len(mass)):
            own = np.arange(len(mass))[:, None] == k
            mass[k] = _added(self.weights * np.maximum(self.counts - own, 0))
            gain[k] = _added(np.where(own, 0.0, self.weights * self.first))
        return mass, gain


def _added(table: Floats) -> Floats:
    """The sum over rings, one after the other, so that no bit depends on the number of cells."""
    found = np.zeros(table.shape[1])
    for row in table:
        found += row
    return found


def ring_prices(near: NearRings, semivalue: Semivalue) -> Floats:
    """All rows of prices, as `TargetGame.all_prices` has them, each of the shape (rings, M).

    If a ring has no member, its price is that of a newcomer.

    Examples
    --------
    >>> from thresher.games.targets import sums_of
    >>> sums = [sums_of(np.array(each)) for each in ([4.0, 8.0], [1.0])]
    >>> table = np.stack(sums, axis=1).reshape(20, 1)
    >>> about = np.array([3.0]), 0.0, Grid(1.0)
    >>> found = RingTargetGame(*about, weights=(1.0, 1.0)).all_prices(table, slice(1))
    >>> plain = TargetGame(*about).all_prices(sum(sums), slice(1))
    >>> bool(np.allclose(found[:, 0], plain))
    True
    """
    find = _differences if semivalue == "leave-one-out" else _integrals
    members, newcomers, changes = find(near, semivalue)
    alone = near.counts == 1
    constant = members[0] + near.first * (members[1] + near.first * members[2])
    members = np.where(alone, [constant, *np.zeros((2, *alone.shape))], members)
    members = np.where(near.counts > 0, members, newcomers)
    center = np.broadcast_to(near.center, alone.shape)
    some = near.counts > 0
    square, line, own = np.where(
        some, changes, [-newcomers[2], newcomers[1], np.zeros(alone.shape)]
    )
    return np.array([*members, *newcomers, square, line, -own, center])


Found = tuple[Floats, Floats, Floats]


def _integrals(near: NearRings, semivalue: Semivalue) -> Found:
    """The quadratics in r of members and newcomers, and how a member's value changes with its r.

    The value of a member that moves from r to x grows by (x - r) (line + own r) - square (x^2 -
    r^2): these three numbers.
    """
    w, apart = near.weights, near.apart
    found = _integrated(near, semivalue)
    players = np.maximum(near.near, 1)
    alone, joined = (weights(semivalue, each)[0] for each in (players, near.near + 1))

    def quadratic(w0: Floats, parts: Floats, more: Floats | float) -> Floats:
        mean, others, bent, crossed, rest = parts
        return np.array(
            [
                w0 * near.gap * near.both + 2 * apart * others + rest,
                -2 * apart * (w0 + mean) - w * crossed,
                -w0 - bent - more,
            ]
        )

    members = quadratic(alone, found[[0, 1, 2, 4, 5]], w**2 * found[3])
    newcomers = quadratic(joined, found[10:15], 0.0)
    own_mean, own_bent, pull, own_pull = found[6:10]
    square = alone + found[2] - w * own_bent
    line = -2 * apart * (alone + found[0] - w * own_mean) - 2 * w * pull
    return members, newcomers, np.array([square, line, 2 * w**2 * own_pull])


def _integrated(near: NearRings, semivalue: Semivalue) -> Floats:
    """The fifteen integrals for each ring and cell; see `kernels.integrals`."""
    rules, w = chances(semivalue), np.ascontiguousarray(near.weights[:, 0])
    counts = np.ascontiguousarray(near.counts.T)
    gains = np.stack([(near.weights * near.first).T, (near.weights**2 * near.second).T], axis=1)
    found = np.empty((len(counts), INTEGRALS, len(w)))

    def job(lo: int, hi: int) -> None:
        ring_target_integrals(counts[lo:hi], gains[lo:hi], w, rules, found[lo:hi])

    run(job, cut(0, len(found), JOB), parallel=len(found) > JOB)
    return np.ascontiguousarray(found.transpose(1, 2, 0))


def _differences(near: NearRings, semivalue: Semivalue) -> Found:
    """The same numbers for leave-one-out: what a point adds to all others."""
    del semivalue
    w, apart, all_of, everybody = near.weights, near.apart, near.gain, near.error
    rest, gain = near.beside()
    some, mass = np.where(rest > 0, rest, 1.0), np.where(near.near > 0, near.mass, 1.0)
    alone, nothing = _alone(near), np.zeros((2, *rest.shape))
    # squares differ by (a - b) (a + b), with a - b as a product: it may be small
    q, apart_by = w / some, all_of * w / (some * mass)
    error = everybody + apart_by
    members = np.array([apart_by * (error + everybody), -2 * error * q, q**2])
    apart_by = w * (gain / some - near.first) / mass  # where r is known, and a large q would cancel
    single = np.array([apart_by * (2 * everybody + apart_by), *nothing])
    members = np.where(near.counts == 1, single, members)
    members = np.where(near.near == 1, alone, members)
    total = mass + w
    q, apart_by = w / total, all_of * w / (mass * total)
    error = apart + all_of / total
    newcomers = np.array([apart_by * (everybody + error), -2 * error * q, -(q**2)])
    newcomers = np.where(near.near > 0, newcomers, alone)
    share = w / mass
    return members, newcomers, np.array([share**2, -2 * share * near.error, 2 * share**2])


def _alone(near: NearRings) -> Floats:
    """The quadratics of the only point: z0^2 - z^2."""
    shape = near.first.shape
    found: list[Any] = [near.gap * near.both, -2 * near.apart, -1.0]
    return np.array([np.broadcast_to(each, shape) for each in found])
