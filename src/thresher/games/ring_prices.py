"""Ring counts to prices: what a near point is worth if points have weights by distance.

The points of a ring have one weight w. The utility of a coalition is the weight of its near members
that carry the label, divided by the weight of all its near members, or 1/C if it has none. Let a
point of weight w join a coalition whose near members weigh N > 0, `lack` of it without the label.
If the point carries the label, utility grows by

    (N - lack + w) / (N + w) - (N - lack) / N  =  lack (1/N - 1/(N + w))

and if it does not, utility shrinks by the same with `carry` = N - lack in place of `lack`.
Semivalues are mixtures over the chance p with which each other point is present, independently
(Shapley: p uniform, Beta(a, b): p ~ Beta(b, a), Banzhaf: p = 1/2, leave-one-out: p = 1). And 1/N is
the integral of exp(-N s) over s > 0. So points are independent, and with E = exp(-w s) and
g = 1 - p + p E for each point of the rest,

    gain =  (1 - 1/C) w0 + int mu(dp) int ds p (1 - E_i) prod g  sum over those that lack  w E / g
    loss =  (0 - 1/C) w0 - int mu(dp) int ds p (1 - E_i) prod g  sum over those that carry w E / g

with w0 the chance that nobody else is present. Points of one ring share g, so a validation point
costs the same for any number of near points. Leave-one-out needs no integral: p = 1.

Estimated counts need not be whole. Then the same integral has real powers of g, and w0 is linear
between whole counts. So prices agree with those of whole counts, and are smooth in between.
"""

from __future__ import annotations

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.games.chances import chances
from thresher.games.semivalues import Semivalue, weights
from thresher.kernels.integrals import decays, ring_integrals
from thresher.threads import cut, run

Counts = Integers | Floats  # estimated ones need not be whole

JOB = 8  # validation points of one job


def ring_prices(
    same: Counts, other: Counts, ring_weights: Floats, classes: int, semivalue: Semivalue
) -> Floats:
    """Prices of the shape (3, 2, rings, M); `same` and `other` have that of (rings, M).

    They are for a member that carries the label of a validation point, a member that lacks it, and
    a newcomer, each under that label and under another one. If a ring has no such member, its price
    is that of a newcomer.

    Examples
    --------
    >>> same, other = np.array([[1, 0], [2, 0]]), np.array([[1, 0], [0, 1]])
    >>> found = ring_prices(same, other, np.array([1.0, 1.0]), 2, "shapley")
    >>> found[0, 0].round(4).tolist()  # as if there were no rings
    [[0.2153, 0.5], [0.2153, 0.5]]
    """
    found = _integrals(same, other, ring_weights, semivalue)
    near = (same + other).sum(axis=0)
    alone = _alone(semivalue, np.maximum(near, 1)), _alone(semivalue, near + 1)
    table = np.empty((3, 2, *same.shape))
    for who, (gain, loss, w0) in enumerate(
        ((found[4], found[3], alone[0]), (found[5], found[2], alone[0]), (*found[1::-1], alone[1]))
    ):
        table[who] = (1 - 1 / classes) * w0 + gain, (0 - 1 / classes) * w0 - loss
    table[0] = np.where(same > 0, table[0], table[2])
    table[1] = np.where(other > 0, table[1], table[2])
    return table


def ring_utility(same: Counts, other: Counts, ring_weights: Floats, classes: int) -> float:
    """The utility of all points: the sum of weighted label shares, or 1/C if nobody is near."""
    carry, near = ring_weights @ same, ring_weights @ (same + other)
    shares = np.divide(carry, near, out=np.full(len(near), 1 / classes), where=near > 0)
    return float(shares.sum())


def _alone(semivalue: Semivalue, near: Counts) -> Floats:
    """The chance w0 that nobody else is present."""
    low = np.floor(near).astype(np.int64)
    before, after = (weights(semivalue, each)[0] for each in (low, low + 1))
    return np.asarray(before + (near - low) * (after - before))


def _integrals(same: Counts, other: Counts, of_ring: Floats, semivalue: Semivalue) -> Floats:
    """The six integrals for each ring and validation point; see `kernels.integrals`."""
    if semivalue == "leave-one-out":
        return _differences(same, other, of_ring)
    rules = chances(semivalue)
    counts = [np.ascontiguousarray(each.T, np.float64) for each in (same, other)]
    whole = same.dtype.kind == "i"
    found = np.empty((len(counts[0]), 6, len(of_ring)))
    relative = np.ascontiguousarray(of_ring / of_ring.max())  # only ratios of weights matter

    most = max(1.0, float(((counts[0] + counts[1]) @ relative).max()))
    grid = decays(relative, 2 * most, whole)

    def job(lo: int, hi: int) -> None:
        some = counts[0][lo:hi], counts[1][lo:hi], relative
        ring_integrals(*some, grid, rules, whole, found[lo:hi])

    run(job, cut(0, len(found), JOB), parallel=len(found) > JOB)
    return np.ascontiguousarray(found.transpose(1, 2, 0))


def _differences(same: Counts, other: Counts, of_ring: Floats) -> Floats:
    """The same six numbers for p = 1: a weight times 1/N - 1/(N + w) = w / (N (N + w))."""
    w = of_ring[:, None]
    found = np.zeros((6, *same.shape))
    for place, (mine, theirs) in enumerate(
        ((0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (0, 1))  # who leaves: one of same, one of other
    ):
        own = np.arange(len(of_ring))[:, None, None] == np.arange(len(of_ring))[None, :, None]
        rest_same = np.maximum(same[None] - mine * own, 0)
        rest_other = np.maximum(other[None] - theirs * own, 0)
        asked = rest_same if place in {0, 2, 3} else rest_other
        weight = np.einsum("lkv,k->lv", asked, of_ring)
        mass = np.einsum("lkv,k->lv", rest_same + rest_other, of_ring)
        some = np.maximum(mass, np.finfo(float).tiny)
        found[place] = np.where(mass > 0, weight / some * (w / (mass + w)), 0.0)
    return found
