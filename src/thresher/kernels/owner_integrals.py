"""The double integrals behind the values of owners, one game after the other.

A game has players with a mass n > 0 and a gain b; see `games.owner_values` for what is integrated,
and why. Players of the same mass share everything but their own gain, so a game costs as much as it
has *different* masses. The integral over s is the trapezoid rule in log s. That over p is a Gauss
rule that fits X, the sum of 1 - E over the players: in the complex plane the integrand, a
polynomial in p, stays below exp(X |p|) times a constant.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thresher.array_types import Floats, Integers

STEP, FINE = 0.27, 0.23  # of the trapezoid rule: its error falls as exp(-pi^2 / step)
LEAST = 1e-8  # over the mass of all is where s begins: what lies below is the square of that
MOST = 40.0  # over the least mass is where s ends
SERIES = 0.2  # up to here 1 - (1 + x) exp(-x) is a series: it is 0 to rounding


@njit(cache=True, nogil=True)
def add_owner_values(
    near: Floats, gains: Floats, weights: Floats, empty: Floats, square: bool,
    alone: Floats, sizes: Integers, limits: Floats, rules: Floats, cut: Floats,
    shape: tuple[float, float, float], out: Floats,
) -> None:  # fmt: skip
    """Add to out[o] what owner o is worth in each game.

    In game v owner o has the mass near[v, o] and the gain gains[v, o], which is times weights[v]. A
    coalition is worth its gain over its mass, or with `square` minus the square of that; one
    without mass has empty[v] in its place. `alone` has the chance that none of the other players is
    present, for 1, 2, ... players. Rule r is rules[r, :, :sizes[r]], chances p and their masses
    times p, and is good up to X = limits[r]. Beyond the last, `cut` is taken: nodes and masses on
    [0, 1], stretched to p <= reach / (X + excess), with `shape` = (reach, excess, power): masses
    grow with stretch^power, and are times (1 - p)^excess.
    """
    owners = near.shape[1]
    chances = np.empty((2, max(rules.shape[2], cut.shape[1])))
    for v in range(near.shape[0]):
        if weights[v] <= 0.0:
            continue
        players = np.empty(owners, np.int64)
        count = 0
        for o in range(owners):
            if near[v, o] > 0.0:
                players[count] = o
                count += 1
        if count == 0:
            continue
        players = players[:count]
        gain, own = gains[v][players] / weights[v], near[v][players]
        center = gain.sum() / own.sum()
        apart = gain - center * own
        masses, group, times, some = _groups(own, apart)
        sums = np.zeros((6, masses.shape[0]))
        if count > 1:
            _integrate(
                masses, times, some, count, square, sizes, limits, rules, cut, shape, chances, sums
            )
        for i in range(count):
            k, b = group[i], apart[i]
            r = b / own[i]
            first = r * sums[0, k] - sums[1, k]
            share = center + r
            if square:
                second = r * r * sums[2, k] + b * (b * sums[3, k] + sums[4, k]) - sums[5, k]
                none = (empty[v] - share) * (empty[v] + share)
                value = none * alone[count - 1] - 2.0 * center * first - second
            else:
                value = (share - empty[v]) * alone[count - 1] + first
            out[players[i]] += weights[v] * value


@njit(cache=True, nogil=True)
def _groups(near: Floats, gain: Floats) -> tuple[Floats, Integers, Integers, Floats]:
    """The different masses, the one of each player, how many have it; sums of gains and squares."""
    order = np.argsort(near, kind="mergesort")
    group = np.empty(near.shape[0], np.int64)
    masses, times = np.empty(near.shape[0]), np.zeros(near.shape[0], np.int64)
    sums = np.zeros((2, near.shape[0]))
    count = 0
    for i in order:
        if count == 0 or masses[count - 1] != near[i]:
            masses[count] = near[i]
            count += 1
        group[i] = count - 1
        times[count - 1] += 1
        sums[0, count - 1] += gain[i]
        sums[1, count - 1] += gain[i] * gain[i]
    return masses[:count], group, times[:count], sums[:, :count]


@njit(cache=True, nogil=True)
def _integrate(
    masses: Floats, times: Integers, gains: Floats, players: int, square: bool,
    sizes: Integers, limits: Floats, rules: Floats, cut: Floats,
    shape: tuple[float, float, float], chances: Floats, out: Floats,
) -> None:  # fmt: skip
    """Add to out[:, k] the integrals of each mass: two, or with `square` six."""
    E, e, u = np.empty(masses.shape[0]), np.empty(masses.shape[0]), np.empty(masses.shape[0])
    sums = np.empty(out.shape)
    step = FINE if square else STEP
    s_log = np.log(LEAST / (masses * times).sum())
    end = np.log((MOST + 5.0 if square else MOST) / masses[0])
    while s_log < end:
        s = np.exp(s_log)
        s_log += step
        X = 0.0
        for k in range(masses.shape[0]):
            x = masses[k] * s
            E[k], e[k] = np.exp(-x), -np.expm1(-x)
            u[k] = _second(x) if x < SERIES else e[k] - x * E[k]
            X += times[k] * e[k]
        nodes = _choose(X, players, sizes, limits, rules, cut, shape, chances)
        _add_chances(chances[:, :nodes], masses, times, gains, square, E, e, sums)
        scale = step * s
        for k in range(masses.shape[0]):
            out[0, k] += scale * e[k] * sums[0, k]
            out[1, k] += scale * e[k] * sums[1, k]
            if square:
                own = (s * e[k] - u[k] / masses[k]) * sums[2, k] - 2.0 * s * sums[3, k]
                out[2, k] += scale * u[k] * sums[0, k]
                out[3, k] += scale * own
                out[4, k] += scale * 2.0 * s * sums[4, k]
                out[5, k] += scale * s * e[k] * sums[5, k]


@njit(cache=True, nogil=True)
def _second(x: float) -> float:
    """1 - (1 + x) exp(-x) for a small x, by its series."""
    term, total = x * x / 2.0, 0.0
    for k in range(2, 16):
        total += term * (k - 1)
        term *= -x / (k + 1)
    return total


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
    chances: Floats, masses: Floats, times: Integers, gains: Floats, square: bool,
    E: Floats, e: Floats, sums: Floats,
) -> None:  # fmt: skip
    """The integrals over p for each mass, at one s, with Q over all players but one of that mass.

    They are those of Q times N, B, t, t^2, B t and V + p B^2, with N the sum of n t, B that of b t,
    and V that of b^2 t (1 - p t).
    """
    t, inverse = np.empty(E.shape[0]), np.empty(E.shape[0])
    sums[:] = 0.0
    for j in range(chances.shape[1]):
        p = chances[0, j]
        N = B = V = log_Q = 0.0
        for k in range(E.shape[0]):
            x = p * e[k]
            g = 1.0 - x if x < 0.5 else (1.0 - p) + p * E[k]
            inverse[k] = 1.0 / g
            t[k] = E[k] * inverse[k]
            N += masses[k] * times[k] * t[k]
            B += gains[0, k] * t[k]
            V += gains[1, k] * t[k] * inverse[k]
            log_Q += times[k] * (np.log1p(-x) if x < 0.5 else np.log(g))
        Q = chances[1, j] * np.exp(log_Q)
        if Q == 0.0:
            continue
        V = V * (1.0 - p) + p * B * B
        for k in range(E.shape[0]):
            rest = Q * inverse[k]
            sums[0, k] += rest * N
            sums[1, k] += rest * B
            if square:
                sums[2, k] += rest * t[k]
                sums[3, k] += rest * t[k] * t[k]
                sums[4, k] += rest * t[k] * B
                sums[5, k] += rest * V
