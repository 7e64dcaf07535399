"""Gauss rules over the chance p with which each other player is present.

Semivalues are mixtures over p: Shapley takes p uniform, Beta(a, b) takes p ~ Beta(b, a), Banzhaf
p = 1/2. The integrands of ratio games are polynomials in p that stay below exp(X |p|) times a
constant, where X says how many players matter. A small rule is right for a small X.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.checks import check_number
from thresher.games.semivalues import Beta, Semivalue

TAIL = 1e-17  # what is left out, relative to the whole
AGREE = 3e-14  # how well a finer rule confirms one
SIZES = (2, 4, 8, 16, 28, 40, 64, 128, 256, 512)  # nodes of rules over p
STEEP = 8.0  # from this b on chances near 0 do not matter
FAR = 1900.0  # nearly the largest growth that rules are tried with
NO_SHAPE = (0.0, 0.0, 0.0)
TESTED = np.geomspace(1e-4, 2048, 200)  # growths that rules are tried with
LEAST, MOST = 0.01, 64.0  # of the a and b of Beta


@dataclass(frozen=True)
class Chances:
    """Gauss rules over the chance p of a semivalue; as the kernels want them."""

    sizes: Integers
    limits: Floats
    nodes: Floats
    cut: Floats
    shape: tuple[float, float, float]


@lru_cache(maxsize=16)
def chances(semivalue: Semivalue) -> Chances:
    """The rules of a semivalue that is a mixture over p in (0, 1)."""
    if semivalue == "banzhaf":
        only = np.array([[[0.5], [0.5]]])
        return Chances(np.array([1]), np.array([np.inf]), only, np.zeros((2, 1)), NO_SHAPE)
    a, b = (semivalue.a, semivalue.b) if isinstance(semivalue, Beta) else (1.0, 1.0)
    for name, number in (("a", a), ("b", b)):
        check_number(f"{name} of Beta of this game", number, least=LEAST, most=MOST)
    from scipy.special import betaln, gammainccinv

    reach = float(gammainccinv(b + 1, TAIL))
    wanted = reach if a == 1.0 else 2 * reach + a  # there p is cut at 1, or before 1/2
    rules = [_gauss(size, a, b + 1) for size in SIZES]
    limits = np.array([_limit(*pair) for pair in pairwise(rules)])
    count = int(np.argmax(limits >= (wanted if b <= STEEP else FAR))) + 1
    nodes = np.zeros((count, 2, SIZES[count - 1]))
    for place, rule in enumerate(rules[:count]):
        nodes[place, :, : SIZES[place]] = rule
    nodes[:, 1] *= b / (a + b)  # the mean of p, which is part of the masses
    if b > STEEP:  # larger growths add nothing
        limits[count - 1] = np.inf
        return Chances(np.array(SIZES[:count]), limits[:count], nodes, np.zeros((2, 1)), NO_SHAPE)
    rest = _cut_rule(reach, b)
    rest[1] *= np.exp(-np.log(b + 1) - betaln(a, b))
    shape = (reach, a - 1.0, b + 1.0)
    return Chances(np.array(SIZES[:count]), limits[:count], nodes, rest, shape)


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
    """The growth X up to which a finer rule confirms one.

    At growth X the integral over log s is in the order of X^2 E[p exp(-X p)], so that an error is
    measured by what lies before.
    """
    means = [
        np.concatenate([np.exp(-np.outer(TESTED, p)), (1 - p) ** np.floor(TESTED)[:, None]]) @ mass
        for p, mass in (rule, finer)
    ]
    before, found = (each.reshape(2, -1) * TESTED**2 for each in means)
    wrong = np.abs(before - found) > AGREE * np.maximum.accumulate(found, axis=1)
    return float(np.append(TESTED[wrong.any(axis=0)], TESTED[-1])[0]) * 0.95


def _cut_rule(reach: float, b: float) -> Floats:
    """A rule on [0, 1] for y^b exp(-reach y), as small as it may be."""
    from scipy.special import gammainc, gammaln

    exact = gammaln(b + 1) + np.log(gammainc(b + 1, reach) * (b + 1)) - (b + 1) * np.log(reach)
    for size in SIZES:
        rule = _gauss(size, 1.0, b + 1)
        if abs(np.log(np.exp(-reach * rule[0]) @ rule[1]) - exact) < AGREE:
            break
    return rule
