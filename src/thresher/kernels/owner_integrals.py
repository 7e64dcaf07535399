"""The double integrals behind the values of owners, one game after the other.

A game has players with a whole mass n > 0, of which `carry` agrees with the judge; see
`games.owner_values` for what is integrated, and why. Players of the same mass share everything but
their own carry, so a game costs as much as it has *different* masses. The integral over s is the
trapezoid rule in log s. That over p is a Gauss rule that fits X, the sum of 1 - E over the players:
in the complex plane the integrand, a polynomial in p, stays below exp(X |p|) times a constant.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEP = 0.27  # of the trapezoid rule: its error falls as exp(-pi^2 / step)
LEAST = 1e-8  # over the mass of all is where s begins: what lies below is the square of that
MOST = 40.0  # over the least mass is where s ends


@njit(cache=True, nogil=True)
def add_owner_values(
    near: Integers, carry: Floats, weights: Floats, empty: float, alone: Floats, sizes: Integers,
    limits: Floats, rules: Floats, cut: Floats, shape: tuple[float, float, float], out: Floats,
) -> None:  # fmt: skip
    """Add to out[o] what owner o is worth in each game.

    Game v has near[v, o] points of owner o, of which the judges like carry[v, o] and weigh
    weights[v]; a coalition without any has the utility `empty`. `alone` has the chance that none
    of the other players is present, for 1, 2, ... players. Rule r is rules[r, :, :sizes[r]],
    chances p and their masses times p, and is good up to X = limits[r]. Beyond the last, `cut` is
    taken: nodes and masses on [0, 1], stretched to p <= reach / (X + excess), with `shape` =
    (reach, excess, power): masses grow with stretch^power, and are times (1 - p)^excess.
    """
    owners = near.shape[1]
    chances = np.empty((2, max(rules.shape[2], cut.shape[1])))
    for v in range(near.shape[0]):
        if weights[v] <= 0.0:
            continue
        players = np.empty(owners, np.int64)
        count = 0
        for o in range(owners):
            if near[v, o] > 0:
                players[count] = o
                count += 1
        if count == 0:
            continue
        players = players[:count]
        share = carry[v][players] / weights[v]
        masses, group, times, carried = _groups(near[v][players], share)
        sums = np.zeros((3, masses.shape[0]))
        if count > 1:
            _integrate(
                masses, times, carried, count, sizes, limits, rules, cut, shape, chances, sums
            )
        for i in range(count):
            k = group[i]
            r = share[i] / masses[k]
            lack = sums[1, k] - (masses[k] - share[i]) * sums[2, k]
            like = sums[0, k] - share[i] * sums[2, k]
            value = (r - empty) * alone[count - 1] + r * lack - (1.0 - r) * like
            out[players[i]] += weights[v] * value


@njit(cache=True, nogil=True)
def _groups(near: Integers, share: Floats) -> tuple[Floats, Integers, Integers, Floats]:
    """The different masses, the one of each player, and of each: how many, and what they carry."""
    order = np.argsort(near, kind="mergesort")
    group = np.empty(near.shape[0], np.int64)
    masses, times = np.empty(near.shape[0]), np.zeros(near.shape[0], np.int64)
    carried = np.zeros(near.shape[0])
    count = 0
    for i in order:
        if count == 0 or masses[count - 1] != near[i]:
            masses[count] = near[i]
            count += 1
        group[i] = count - 1
        times[count - 1] += 1
        carried[count - 1] += share[i]
    return masses[:count], group, times[:count], carried[:count]


@njit(cache=True, nogil=True)
def _integrate(
    masses: Floats, times: Integers, carried: Floats, players: int, sizes: Integers,
    limits: Floats, rules: Floats, cut: Floats, shape: tuple[float, float, float],
    chances: Floats, out: Floats,
) -> None:  # fmt: skip
    """Add to out[:, k] three integrals for each mass: over what is carried, what is not, itself.

    The player itself is left out of the first two where it is the only one of its mass; then the
    third is 0.
    """
    E, e = np.empty(masses.shape[0]), np.empty(masses.shape[0])
    lacked = np.maximum(masses * times - carried, 0.0)
    sums = np.empty(out.shape)
    s_log = np.log(LEAST / (masses * times).sum())
    end = np.log(MOST / masses[0])
    while s_log < end:
        s = np.exp(s_log)
        s_log += STEP
        X = 0.0
        for k in range(masses.shape[0]):
            E[k], e[k] = np.exp(-masses[k] * s), -np.expm1(-masses[k] * s)
            X += times[k] * e[k]
        nodes = _choose(X, players, sizes, limits, rules, cut, shape, chances)
        _add_chances(chances[:, :nodes], times, carried, lacked, E, e, sums)
        for k in range(masses.shape[0]):
            scale = STEP * s * e[k]
            for i in range(3):
                out[i, k] += scale * sums[i, k]


@njit(cache=True, nogil=True)
def _choose(
    X: float, players: int, sizes: Integers, limits: Floats, rules: Floats, cut: Floats,
    shape: tuple[float, float, float], chances: Floats,
) -> int:  # fmt: skip
    """Write the chances and masses that are right for X, and return how many they are."""
    for r in range(sizes.shape[0]):
        n = sizes[r]
        if limits[r] >= X or players < 2 * n:  # exact for a polynomial of that degree
            chances[:, :n] = rules[r, :, :n]
            return int(n)
    reach, excess, power = shape
    stretch = reach / (X + max(excess, 0.0))
    for j in range(cut.shape[1]):
        p = stretch * cut[0, j]
        chances[0, j] = p
        chances[1, j] = cut[1, j] * stretch**power * (1.0 - p) ** excess
    return cut.shape[1]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_chances(
    chances: Floats, times: Integers, carried: Floats, lacked: Floats, E: Floats, e: Floats,
    sums: Floats,
) -> None:  # fmt: skip
    """The three integrals over p for each mass, at one s."""
    t, inverse = np.empty(E.shape[0]), np.empty(E.shape[0])
    sums[:] = 0.0
    for j in range(chances.shape[1]):
        p = chances[0, j]
        carry = lack = log_Q = 0.0
        for k in range(E.shape[0]):
            x = p * e[k]
            g = 1.0 - x if x < 0.5 else (1.0 - p) + p * E[k]
            inverse[k] = 1.0 / g
            t[k] = E[k] * inverse[k]
            carry += carried[k] * t[k]
            lack += lacked[k] * t[k]
            log_Q += times[k] * (np.log1p(-x) if x < 0.5 else np.log(g))
        Q = chances[1, j] * np.exp(log_Q)
        if Q == 0.0:
            continue
        for k in range(E.shape[0]):
            rest = Q * inverse[k]
            if times[k] == 1:
                sums[0, k] += rest * max(carry - carried[k] * t[k], 0.0)
                sums[1, k] += rest * max(lack - lacked[k] * t[k], 0.0)
            else:
                sums[0, k] += rest * carry
                sums[1, k] += rest * lack
                sums[2, k] += rest * t[k]
