"""Gauss rules over the chance p with which each other player is present.

Semivalues are mixtures over p: Shapley takes p uniform, Beta(a, b) takes p ~ Beta(b, a), Banzhaf p
= 1/2. The integrands of ratio games are polynomials in p that stay below exp(X |p|) times a
constant, where X measures how many players matter. A small rule is exact enough for a small X.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from thresher.array_types import Floats
from thresher.games.semivalues import Beta, Semivalue
from thresher.inputs.checks import check_number
from thresher.kernels.integrals import Rule, Rules

AGREE = 3e-14  # how well a finer rule confirms one
SIZES = (2, 4, 8, 16, 28, 40, 64, 128, 256, 512)  # nodes of rules over p
FAR_SIZES = (3, 4, 5, 6, 8, 12, 16)  # the same for large growths
TESTED = np.geomspace(1e-4, 2048, 200)  # growths that rules are tried with
FAR_TESTED = np.geomspace(16, 1e6, 400)
LEAST, MOST = 0.01, 64.0  # of the a and b of Beta


@lru_cache(maxsize=16)
def chances(semivalue: Semivalue) -> Rules:
    """Gauss rules of a semivalue that is a mixture over p in (0, 1), in the form for the kernels.

    The first three are for a small growth X: sizes, the X up to which each rule is exact enough,
    and nodes. The next three are for a large X: sizes, the X from which each rule is exact enough,
    and nodes. The last is the shape of the mixture.
    """
    if semivalue == "banzhaf":
        only, none = np.array([[0.5], [0.5]]), np.zeros((2, 1))
        return _rule([only], [np.inf]), _rule([none], [np.inf]), (0.0, 0.0)
    a, b = (semivalue.a, semivalue.b) if isinstance(semivalue, Beta) else (1.0, 1.0)
    for name, number in (("a", a), ("b", b)):
        check_number(f"{name} of Beta for kernels and owners", number, least=LEAST, most=MOST)
    from scipy.special import betaln

    far = [_laguerre(size, b) for size in FAR_SIZES]
    starts = [_start(*pair, a) for pair in pairwise(far)]
    rules = [_gauss(size, a, b + 1) for size in SIZES]
    limits = np.array([_limit(*pair) for pair in pairwise(rules)])
    count = int(np.argmax(limits >= starts[-1])) + 1
    for rule in rules:
        rule[1] *= b / (a + b)  # the mean of p, which is part of the masses
    for rule in far:
        rule[1] *= np.exp(rule[0] - betaln(a, b))
    return _rule(rules[:count], limits[:count]), _rule(far[:-1], starts), (a - 1.0, b + 1.0)


def _rule(rules: list[Floats], bounds: Sequence[float] | Floats) -> Rule:
    """Rules of ascending sizes, and the growths that bound them, as arrays."""
    sizes = [rule.shape[1] for rule in rules]
    nodes = np.zeros((len(rules), 2, sizes[-1]))
    for place, rule in enumerate(rules):
        nodes[place, :, : sizes[place]] = rule
    return np.array(sizes), np.array(bounds), nodes


def _laguerre(size: int, b: float) -> Floats:
    """Nodes and masses of the Gauss rule for y^b exp(-y)."""
    from scipy.special import roots_genlaguerre

    return np.array(roots_genlaguerre(size, b))


def _start(rule: Floats, finer: Floats, a: float) -> float:
    """The growth X from which a finer rule confirms this one, where y / X is the chance.

    The integrand is between exp(-X p) and (1 - p)^(X - 2), each times (1 - p)^(a - 1).
    """
    stretch = (FAR_TESTED + max(a - 1, 0))[:, None]
    means = []
    for y, mass in (rule, finer):
        with np.errstate(invalid="ignore"):  # chances beyond 1: these rules are not right
            logs = np.log1p(np.where(y < stretch, -y / stretch, np.nan))
        powers = [(a - 1 + FAR_TESTED[:, None] - less) * logs for less in (0, 2)]
        powers.append((a - 1) * logs - FAR_TESTED[:, None] * y / stretch)
        means.append([np.exp(y + power) @ mass for power in powers])
    before, found = np.array(means)
    right = (np.abs(before - found) <= AGREE * found).all(axis=0)
    return float(np.append(FAR_TESTED, np.inf)[np.flatnonzero(np.append(True, ~right))[-1]])


def _gauss(size: int, a: float, b: float) -> Floats:
    """Nodes and masses of the Gauss rule for p ~ Beta(b, a), by Golub and Welsch."""
    from scipy.linalg import eigh_tridiagonal

    n, high, both = np.arange(1.0, size), a - 1, a + b - 2
    middle = np.full(size, b / (a + b))
    middle[1:] = 0.5 + (b - 1 - high) * both / (2 * (2 * n + both) * (2 * n + both + 2))
    beside = n * (n + high) * (n + b - 1) / ((2 * n + both) ** 2 * (2 * n + both + 1))
    beside[1:] *= (n + both)[1:] / (2 * n + both - 1)[1:]
    nodes, vectors = eigh_tridiagonal(middle, np.sqrt(beside))
    return np.array([nodes, vectors[0] ** 2])


def _limit(rule: Floats, finer: Floats) -> float:
    """The growth X up to which a finer rule confirms this one.

    At growth X, the integral over log s is of the order of X^2 E[p exp(-X p)], so errors are
    compared with its earlier part.
    """
    means = [
        np.concatenate([np.exp(-np.outer(TESTED, p)), (1 - p) ** np.floor(TESTED)[:, None]]) @ mass
        for p, mass in (rule, finer)
    ]
    before, found = (each.reshape(2, -1) * TESTED**2 for each in means)
    wrong = np.abs(before - found) > AGREE * np.maximum.accumulate(found, axis=1)
    return float(np.append(TESTED[wrong.any(axis=0)], TESTED[-1])[0]) * 0.95
