"""Owners as players: what each owner adds, where coalitions are made of owners.

Take one judge. Owner i has n_i > 0 points near it, a_i of which carry the judge's label; owners
with none are null players and drop out. The utility of a coalition S is A / N, with A and N the
sums of a and n over S, and 1/C where S is empty. With r = a_i / n_i, owner i adds to S

    (A + a_i) / (N + n_i) - A / N  =  (r N - A) (1/N - 1/(N + n_i)),   r - 1/C if S is empty

Semivalues are mixtures over the chance p with which each other owner is present, on its own
(Shapley: p uniform, Beta(a, b): p ~ Beta(b, a), Banzhaf: p = 1/2, leave-one-out: p = 1). And 1/N is
the integral of exp(-N s) over s > 0. Then owners are independent: with E_j = exp(-n_j s) and
g_j = 1 - p + p E_j, the chance that j is absent or decays,

    value_i = (r - 1/C) w0 + r L - (1 - r) K
    K = int mu(dp) int ds p (1 - E_i) prod_{j != i} g_j  sum_{j != i} a_j E_j / g_j
    L = the same with n_j - a_j in place of a_j

where w0 is the chance that nobody else is present. All terms are positive, so K and L are found to
rounding. Leave-one-out needs no integral. Where several judges share a cell, as in the leaf of a
tree, a_i adds up what each judge likes, times its weight: values are linear in a.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.games.chances import chances
from thresher.games.semivalues import Semivalue, weights
from thresher.kernels.owner_integrals import add_owner_values
from thresher.threads import cut, in_order

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

JOB = 16  # games of one job: sums run in this order, whatever the block


@dataclass(frozen=True)
class OwnerGames:
    """Some games among owners: a row for each game, a column for each owner.

    Parameters
    ----------
    near
        How many points each owner has in each game.
    carry
        What the judges of a game like of them: the points that carry the label, times the weight.
    weight
        The weight of all judges of a game.
    empty
        The utility of no points, for judges of weight 1.
    """

    near: Integers
    carry: Floats
    weight: Floats
    empty: float

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
        shares = self.carry.sum(axis=1) / np.maximum(points, 1)
        return float(np.where(points > 0, shares, self.weight * self.empty).sum())

    def _values(self, semivalue: Semivalue) -> Callable[[int, int], Floats]:
        """What finds the values of some games."""
        owners = self.near.shape[1]
        if semivalue == "leave-one-out":
            return lambda lo, hi: self._differences(slice(lo, hi)).sum(axis=0)
        rule, alone = chances(semivalue), weights(semivalue, np.arange(1, owners + 2))[0]

        def job(lo: int, hi: int) -> Floats:
            found = np.zeros(owners)
            add_owner_values(
                self.near[lo:hi], self.carry[lo:hi], self.weight[lo:hi], self.empty, alone,
                rule.sizes, rule.limits, rule.nodes, rule.cut, rule.shape, found,
            )  # fmt: skip
            return found

        return job

    def _differences(self, some: slice) -> Floats:
        """What each owner adds to all others: n (r N - A) / (N (N + n)), N and A of the others."""
        near, carry = self.near[some], self.carry[some]
        rest = near.sum(axis=1, keepdims=True) - near
        others = carry.sum(axis=1, keepdims=True) - carry
        share = carry / np.maximum(near, 1)
        alone = share - self.weight[some, None] * self.empty
        beside = near * (share - others / np.maximum(rest, 1)) / np.maximum(rest + near, 1)
        return np.where(near > 0, np.where(rest > 0, beside, alone), 0.0)
