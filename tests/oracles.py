"""The definitions, slow and obvious. Nothing here is shared with the library."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
from mpmath import beta as beta_function
from mpmath import mp, mpf

mp.dps = 40


def coalition_weight(semivalue, n, size):
    """The weight of one coalition of `size` others among n players; beta is ("beta", a, b)."""
    if semivalue == "shapley":
        return Fraction(1, n * comb(n - 1, size))
    if semivalue == "banzhaf":
        return Fraction(1, 2 ** (n - 1))
    if semivalue == "leave-one-out":
        return Fraction(int(size == n - 1))
    _, a, b = semivalue
    ends = beta_function(mpf(size) + b, mpf(n - 1 - size) + a)
    return ends / beta_function(mpf(a), mpf(b))


def semivalues(utility, n, semivalue="shapley"):
    """Every player's semivalue, by going through all coalitions of the others."""
    found = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        total = 0
        for size in range(n):
            weight = coalition_weight(semivalue, n, size)
            for coalition in combinations(others, size):
                total += weight * (utility({*coalition, i}) - utility({*coalition}))
        found.append(float(total))
    return np.array(found)


def threshold_utility(coalition, near, match, classes):
    """The share of near members that match; 1/C if there is none."""
    inside = [i for i in coalition if near[i]]
    if not inside:
        return Fraction(1, classes)
    return Fraction(sum(int(match[i]) for i in inside), len(inside))


def nearest_utility(coalition, order, match, k, classes, version):
    nearest = [i for i in order if i in coalition][:k]
    matches = sum(int(match[i]) for i in nearest)
    if version == "jia2019":
        return Fraction(matches, k)
    return Fraction(matches, len(nearest)) if nearest else Fraction(1, classes)


def euclidean_squares(X, v):
    return [sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(x, v)) for x in X]


def is_near(x, v, metric, radius):
    """Exactly, in rational arithmetic: whether the distance is at most the radius."""
    x, v = [Fraction(float(a)) for a in x], [Fraction(float(a)) for a in v]
    radius = Fraction(float(radius))
    if metric == "euclidean":
        return sum((a - b) ** 2 for a, b in zip(x, v)) <= radius**2
    product = sum(a * b for a, b in zip(x, v))
    scale = sum(a * a for a in x) * sum(b * b for b in v)
    least = 1 - radius
    if least > 0:
        return product > 0 and product**2 >= least**2 * scale
    return product >= 0 or product**2 <= least**2 * scale


def threshold_values(X, y, X_val, y_val, *, metric, radius, classes, semivalue="shapley"):
    total = np.zeros(len(X))
    for v, label in zip(X_val, y_val):
        near = [is_near(x, v, metric, radius) for x in X]
        match = [a == label for a in y]
        total += semivalues(
            lambda s, n=near, m=match: threshold_utility(s, n, m, classes), len(X), semivalue
        )
    return total


def nearest_values(X, y, X_val, y_val, *, k, classes, version):
    """Euclidean, ties by position."""
    total = np.zeros(len(X))
    for v, label in zip(X_val, y_val):
        squares = euclidean_squares(X, v)
        order = sorted(range(len(X)), key=lambda i, s=squares: s[i])
        match = [a == label for a in y]
        total += semivalues(
            lambda s, o=order, m=match: nearest_utility(s, o, m, k, classes, version), len(X)
        )
    return total


def exact_weights(semivalue, c):
    """(w0, W) by their defining sums over the size of the coalition, in 40 digits."""
    p = [comb(c - 1, j) * mpf_of(coalition_weight(semivalue, c, j)) for j in range(c)]
    return p[0], sum((p[j] / (1 + j) for j in range(1, c)), mpf(0))


def mpf_of(number):
    if isinstance(number, Fraction):
        return mpf(number.numerator) / number.denominator
    return mpf(number)


def discrete_gaussian_delta(epsilon, sigma, shift):
    """delta(epsilon) of a whole shift under discrete Gaussian noise, as a sum over the lattice.

    The privacy loss is (sum_j u_j x_j + |u|^2 / 2) / sigma^2 for noise x: whole numbers u_j times
    discrete Gaussians, whose laws are convolved.
    """
    reach = int(10 * sigma) + 2
    x = np.arange(-reach, reach + 1)
    one = np.exp(-(x**2) / (2 * sigma**2))
    one /= one.sum()
    size = 1 << math.ceil(math.log2(2 * sum(abs(u) for u in shift) * reach + 2))
    law = np.ones(size // 2 + 1, complex)
    for u in set(shift):
        spread = np.zeros(size)
        np.add.at(spread, (u * x) % size, one)
        law *= np.fft.rfft(spread) ** shift.count(u)
    probability = np.maximum(np.fft.irfft(law, size), 0)
    total = np.concatenate([np.arange(size // 2), np.arange(-size // 2, 0)])
    loss = (total + sum(u * u for u in shift) / 2) / sigma**2
    return float((probability * np.where(loss > epsilon, -np.expm1(epsilon - loss), 0)).sum())


def owner_values(near, same, empty, semivalue="shapley", square=False):
    """One judge, owners as players: rational dynamic programming over (size, mass) of coalitions.

    T[q][z, m] adds up the q-th powers of the gains of the coalitions of z owners with m points
    near, which are whole numbers; an owner is taken out by dividing. Utility is the gain for each
    point, or with `square` minus its square.
    """
    players = [o for o, count in enumerate(near) if count]
    n, most = len(players), sum(near)
    T = [np.zeros((n + 1, most + 1), object) for _ in range(3 if square else 2)]
    T[0][0, 0] = 1
    for o in players:
        c = near[o]
        for q in reversed(range(len(T))):
            T[q][1:, c:] += grown([each[:-1, : most + 1 - c] for each in T], q, same[o])
    found = np.zeros(len(near))
    for o in players:
        c, total = near[o], 0
        without = [each.copy() for each in T]
        for z in range(1, n + 1):
            for q in range(len(T)):
                rest = [each[z - 1, : most + 1 - c] for each in without]
                without[q][z, c:] -= grown(rest, q, same[o])
        for z in range(n):
            inner = sum(
                gain_of([int(each[z, m]) for each in without], m, c, same[o], empty)
                for m in np.flatnonzero(without[0][z]).tolist()
            )
            total += coalition_weight(semivalue, n, z) * (
                inner if isinstance(semivalue, str) else mpf_of(Fraction(inner))
            )
        found[o] = float(total)
    return found


def grown(powers, q, gain):
    """Sums of q-th powers of gains when each gain grows by one number."""
    return sum(comb(q, k) * gain ** (q - k) * powers[k] for k in range(q + 1))


def gain_of(powers, mass, own, gain, empty):
    """What an owner adds to coalitions of one mass, whose gains have these sums of powers."""
    q = len(powers) - 1
    after = Fraction(int(grown(powers, q, gain)), (mass + own) ** q)
    before = Fraction(powers[q], mass**q) if mass else powers[0] * Fraction(empty) ** q
    return (after - before) * (-1 if q == 2 else 1)


def owner_utility(coalition, near, same, empty):
    """The share of the coalition's near points that carry the label; `empty` if there is none."""
    points = sum(near[o] for o in coalition)
    return Fraction(sum(same[o] for o in coalition), points) if points else empty
