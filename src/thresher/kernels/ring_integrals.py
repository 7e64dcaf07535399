"""The double integrals behind the prices of rings, one validation point after the other.

A ring holds points of one weight w. For one more point of ring l beside some near points, the rest,
the price is made of

    int mu(dp) int_0^inf ds  p (1 - E_l) Q R       E = exp(-w s),  g = 1 - p + p E

with Q the product of g over the rest, and R the sum of w E / g over those of the rest that carry
the label, or over the others: see `games.ring_prices`. All terms are positive: nothing cancels.
The integral over s is the trapezoid rule in log s. That over p is a Gauss rule which fits
X = the sum of 1 - E over the near points: in the complex plane the integrand, a polynomial in p,
stays below exp(X |p|) times a constant.

Counts need not be whole: Q is then a product of powers. A member leaves its ring with the part of
itself that was counted, which is all of it where at least one was.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEP = 0.28  # of the trapezoid rule: its error falls as exp(-pi^2 / step)
WIDE_STEP = 0.5  # for counts that are not whole, which are estimates
LEAST = 1e-7  # times 1 / mass is where s begins: what lies below is the square of that
FEWEST = 28  # nodes of a rule for counts that are not whole: powers are no polynomials
MOST = 40.0  # over the least weight is where s ends


@njit(cache=True, nogil=True)
def ring_integrals(
    same: Floats, other: Floats, weights: Floats, sizes: Integers, limits: Floats,
    rules: Floats, cut: Floats, shape: tuple[float, float, float], whole: bool, out: Floats,
) -> None:  # fmt: skip
    """Fill out[v] of each validation point v with six integrals for each ring.

    0 and 1 are for a newcomer: over the near points that carry the label, and over the others. 2 to
    5 are for a member, which is not among its own rest: over those that carry the label if it does
    not, if it does; over the others if it carries the label, if it does not.

    Rule r is rules[r, :, :sizes[r]], chances p and their masses times p. It is good up to X =
    limits[r], or, if counts are `whole`, for so few of them that the integrand is a polynomial that
    it integrates exactly. Beyond the last `cut` is taken: nodes and masses on [0, 1], stretched to
    p <= reach / (X + excess), with `shape` = (reach, excess, power): masses grow with
    stretch^power, and are multiplied by (1 - p)^excess.
    """
    rings, step = weights.shape[0], STEP if whole else WIDE_STEP
    E, e, present = np.empty(rings), np.empty(rings), np.empty(rings, np.int64)
    chances = np.empty((2, max(rules.shape[2], cut.shape[1])))
    sums, room = np.empty((6, rings)), np.empty((4, rings))
    for v in range(same.shape[0]):
        out[v] = 0.0
        near = same[v] + other[v]
        count = 0
        for k in range(rings):
            if near[k] > 0:
                present[count] = k
                count += 1
        if count == 0:
            continue
        some = present[:count]
        points = near.sum() if whole else np.inf
        s_log, end = np.log(LEAST / (near * weights).sum()), np.log(MOST / weights[some].min())
        while s_log < end:
            s = np.exp(s_log)
            s_log += step
            X = 0.0
            for k in range(rings):
                E[k], e[k] = np.exp(-weights[k] * s), -np.expm1(-weights[k] * s)
                X += near[k] * e[k]
            nodes = _choose(X, points, sizes, limits, rules, cut, shape, chances)
            _add_chances(chances[:, :nodes], near, same[v], weights, E, e, whole, room, sums)
            for i in range(6):
                for k in range(rings):
                    out[v, i, k] += step * s * e[k] * sums[i, k]


@njit(cache=True, nogil=True)
def _choose(
    X: float, points: float, sizes: Integers, limits: Floats, rules: Floats, cut: Floats,
    shape: tuple[float, float, float], chances: Floats,
) -> int:  # fmt: skip
    """Write the chances and masses that are right for X, and return how many they are."""
    for r in range(sizes.shape[0]):
        n = sizes[r]
        if points == np.inf and n < FEWEST and r + 1 < sizes.shape[0]:
            continue
        if limits[r] >= X or points < 2 * n:  # of a polynomial of that degree it is exact
            chances[:, :n] = rules[r, :, :n]
            return n
    reach, excess, power = shape
    stretch = reach / (X + max(excess, 0.0))
    for j in range(cut.shape[1]):
        p = stretch * cut[0, j]
        chances[0, j] = p
        chances[1, j] = cut[1, j] * stretch**power * (1.0 - p) ** excess
    return cut.shape[1]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan"})
def _add_chances(
    chances: Floats, near: Floats, same: Floats, weights: Floats, E: Floats, e: Floats,
    whole: bool, room: Floats, sums: Floats,
) -> None:  # fmt: skip
    """The six integrals over p for each ring, at one s; rings without points are left at 0.

    `room` has four rows to compute in.
    """
    rings, largest = weights.shape[0], e.max()
    t, inverse, logs, other = room[0], room[1], room[2], room[3]
    for k in range(rings):
        other[k] = near[k] - same[k]
    sums[:] = 0.0
    all_carry = all_lack = 0.0
    two, three, four, five = sums[2], sums[3], sums[4], sums[5]
    for j in range(chances.shape[1]):
        p = chances[0, j]
        _set_logs(p, p * largest, E, e, inverse, logs)
        carry = lack = log_Q = 0.0
        for k in range(rings):
            t[k] = weights[k] * E[k] * inverse[k]
        for k in range(rings):
            carry += same[k] * t[k]
            lack += other[k] * t[k]
            log_Q += near[k] * logs[k]
        Q = chances[1, j] * np.exp(log_Q)
        all_carry += Q * carry
        all_lack += Q * lack
        if whole:
            for k in range(rings):
                rest = Q * inverse[k]
                two[k] += rest * carry
                three[k] += rest * max(carry - t[k], 0.0)
                four[k] += rest * lack
                five[k] += rest * max(lack - t[k], 0.0)
            continue
        for k in range(rings):
            mine, theirs = min(same[k], 1.0), min(other[k], 1.0)
            left, stayed = Q * np.exp(-mine * logs[k]), Q * np.exp(-theirs * logs[k])
            two[k] += stayed * carry
            three[k] += left * max(carry - mine * t[k], 0.0)
            four[k] += left * lack
            five[k] += stayed * max(lack - theirs * t[k], 0.0)
    sums[0], sums[1] = all_carry, all_lack


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan"})
def _set_logs(
    p: float, largest: float, E: Floats, e: Floats, inverse: Floats, logs: Floats
) -> None:
    """Set 1 / g and log g of each ring, where x = p (1 - E) is at most `largest`.

    log g is a series in x / (2 - x) where x is at most 1/2, which vectors can do. Where all x are
    small, few terms do.
    """
    rings = e.shape[0]
    if largest <= 0.0625:
        for k in range(rings):
            x = p * e[k]
            inverse[k] = 1.0 / (1.0 - x)
            z = x / (2.0 - x)
            y = z * z
            series = 1.0 / 11
            series = series * y + 1.0 / 9
            series = series * y + 1.0 / 7
            series = series * y + 1.0 / 5
            series = series * y + 1.0 / 3
            series = series * y + 1.0
            logs[k] = -2.0 * z * series
        return
    for k in range(rings):
        x = min(p * e[k], 0.5)
        inverse[k] = 1.0 / (1.0 - x)
        z = x / (2.0 - x)
        y = z * z
        series = 1.0 / 35
        series = series * y + 1.0 / 33
        series = series * y + 1.0 / 31
        series = series * y + 1.0 / 29
        series = series * y + 1.0 / 27
        series = series * y + 1.0 / 25
        series = series * y + 1.0 / 23
        series = series * y + 1.0 / 21
        series = series * y + 1.0 / 19
        series = series * y + 1.0 / 17
        series = series * y + 1.0 / 15
        series = series * y + 1.0 / 13
        series = series * y + 1.0 / 11
        series = series * y + 1.0 / 9
        series = series * y + 1.0 / 7
        series = series * y + 1.0 / 5
        series = series * y + 1.0 / 3
        series = series * y + 1.0
        logs[k] = -2.0 * z * series
    if largest > 0.5:
        for k in range(rings):
            if p * e[k] > 0.5:
                inverse[k] = 1.0 / ((1.0 - p) + p * E[k])
                logs[k] = -np.log(inverse[k])
