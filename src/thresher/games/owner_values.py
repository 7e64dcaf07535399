"""Owners as players: what each owner adds, where coalitions are made of owners.

Take one judge. Owner i has a mass n_i > 0 near it and a gain b_i; owners without mass are null
players and drop out. With N and B the sums of n and b over a coalition S, the utility of S is

    classes   B / N       n counts near points, b those that carry the judge's label; 1/C if empty
    rings     B / N       the same, each point times the weight of its ring
    numbers   -(B / N)^2  b adds up targets less the judge's; -z^2 if empty, z the error there

Semivalues are mixtures over the chance p with which each other owner is present, independently
(Shapley: p uniform, Beta(a, b): p ~ Beta(b, a), Banzhaf: p = 1/2, leave-one-out: p = 1). And 1/N is
the integral of exp(-N s) over s > 0, and 1/N^2 that of s exp(-N s). Then owners are independent:
let E = exp(-n s) and g = 1 - p + p E, the chance that an owner is absent or decays, and t = E / g.
Take c = B / N of all owners, write b for what is left of b - c n, and r = b / n. Over coalitions of
others that are not empty owner i adds to B / N, and to (B / N)^2 with c left out, the means

    K = int mu(dp) int ds  p Q { r (1 - E) N - (1 - E) B }
    L = int mu(dp) int ds  p Q { r^2 u N + b^2 t (s (1 - E) - u / n - 2 s t) + 2 b s t B
                                 - s (1 - E) (V + p B^2) },    u = 1 - (1 + n s) E

where Q is the product of g over the others, and over *all* owners N = sum n t, B = sum b t and
V = sum b^2 t (1 - p t). (What i itself adds to these sums is in the second term, since
E + (1 - E) p t = t.) With w0 the chance that nobody else is present the values are

    classes, rings    (c + r - 1/C) w0 + K
    numbers           (z^2 - (c + r)^2) w0 - 2 c K - L, where c includes `apart`

Leave-one-out needs no integral. If several judges share a cell, as in the leaf of a tree, b adds up
the judges' gains, times their weights, because values are linear in b. With numbers, a cell has the
mean target of its judges; how much their targets differ does not affect any value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thresher.array_types import Array, Floats
from thresher.games.chances import chances
from thresher.games.semivalues import Semivalue, weights
from thresher.kernels.integrals import add_owner_values
from thresher.threads import cut, in_order

JOB = 16  # games of one job: sums run in this order, whatever the block


@dataclass(frozen=True)
class OwnerGames:
    """Games among owners, with a row for each game and a column for each owner."""

    near: Array  # the mass of each owner in each game: how many points it has, or what they weigh
    # what the judges of a game find in them, such as how many carry the label, times the
    # weight. That of owners without mass is not looked at.
    gain: Floats
    weight: Floats  # the weight of all judges of a game
    # what takes the place of gain over mass where there are no points, for judges of weight 1
    empty: float | Floats
    square: bool = False  # whether utility is minus the square of gain over mass
    # what is added to gain over mass, and to `empty`, before they are squared: gains may be around
    # a number that is far from what the judges look for
    apart: float | Floats = 0.0
    rest: float = 0.0  # utility that no coalition changes

    def add_values(self, semivalue: Semivalue, out: Floats) -> None:
        """Add the value of each owner, game after game.

        Examples
        --------
        >>> near, same = np.array([[20, 20, 40]]), np.array([[14.0, 14.0, 28.0]])
        >>> values = np.zeros(3)
        >>> OwnerGames(near, same, np.ones(1), 0.5).add_values("shapley", values)
        >>> values.round(4).tolist()
        [0.0667, 0.0667, 0.0667]
        """
        pieces = cut(0, len(self.near), JOB)
        for found in in_order(self._values(semivalue), pieces, parallel=len(pieces) > 1):
            out += found

    def utility(self) -> float:
        """The utility of all owners, added up over games."""
        points = self.near.sum(axis=1)
        shares = np.where(self.near > 0, self.gain, 0.0).sum(axis=1) / np.where(
            points > 0, points, 1
        )
        found = np.where(points > 0, shares, self.weight * self.empty)
        if self.square:
            found = found + self.weight * self.apart
            size = np.frexp(found)[1]  # of targets whose squares float64 does not hold
            found, weight = np.ldexp(found, -size), np.ldexp(self.weight, -size)
            found = np.ldexp(-found * found / np.where(weight > 0, weight, 1.0), size)
        return float(found.sum()) + self.rest

    def _values(self, semivalue: Semivalue) -> Callable[[int, int], Floats]:
        """The function that computes the values of some games."""
        owners = self.near.shape[1]
        if semivalue == "leave-one-out":
            return lambda lo, hi: self._differences(slice(lo, hi)).sum(axis=0)
        rules, alone = chances(semivalue), weights(semivalue, np.arange(1, owners + 2))[0]
        near = self.near.astype(np.float64, copy=False)
        empty, apart = self._each(self.empty), self._each(self.apart)

        def job(lo: int, hi: int) -> Floats:
            found = np.zeros(owners)
            add_owner_values(
                near[lo:hi], self.gain[lo:hi], self.weight[lo:hi], empty[lo:hi], apart[lo:hi],
                self.square, alone, rules, found,
            )  # fmt: skip
            return found

        return job

    def _each(self, number: float | Floats) -> Floats:
        """A number for each game."""
        return np.array(np.broadcast_to(number, len(self.near)), np.float64)

    def _differences(self, some: slice) -> Floats:
        """What each owner adds to all others: n (r N - B) / (N (N + n)), N and B of the others."""
        near, weight = self.near[some], self.weight[some, None]
        gain = np.where(near > 0, self.gain[some], 0.0) / np.where(weight > 0, weight, 1.0)
        rest = _of_others(near)
        others = _of_others(gain) / np.where(rest > 0, rest, 1)
        share = gain / np.where(near > 0, near, 1)
        beside = near * (share - others) / np.where(rest + near > 0, rest + near, 1)
        empty = self._each(self.empty)[some, None]
        alone = share - empty
        if self.square:
            twice = 2 * self._each(self.apart)[some, None]
            alone = -alone * (share + empty + twice)
            beside = -beside * (2 * others + beside + twice)
        return weight * np.where(near > 0, np.where(rest > 0, beside, alone), 0.0)


def _of_others(table: Array) -> Array:
    """For each column, the sum of all other columns, computed without subtraction."""
    found = np.zeros_like(table)
    found[:, 1:] += np.cumsum(table[:, :-1], axis=1)
    found[:, :-1] += np.cumsum(table[:, :0:-1], axis=1)[:, ::-1]
    return found
