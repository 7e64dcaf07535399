"""What a semivalue needs to know about the size of coalitions if targets are numbers.

Let J of the c - 1 other near points be present. A semivalue needs the chance P0 of J = 0, and the
means A of 1/J, B of 1/(J + 1) and D of 1/(J + 1)^2, to which J = 0 adds nothing:

    Shapley        P0 = 1/c, A = (H_c - 1/c)/c, B = (H_c - 1)/c, D = (H2_c - 1)/c
    Banzhaf        P0 = 2^(1-c), A = F(c-1), B = 2 (1 - 2^-c)/c - P0, D = 2 F(c)/c - P0
    leave-one-out  P0 = 0, A = 1/(c-1), B = 1/c, D = 1/c^2; P0 = 1 alone for c = 1
    Beta(a, b)     sums over the sizes of coalitions

with H_c and H2_c the sums of 1/i and 1/i^2 up to c, and F(N) the mean of 1/J over J > 0 heads of N
fair coins: F(N) = F(N-1)/2 + (1 - 2^-N)/N, in which only the last terms matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError
from thresher.games.semivalues import Beta, Semivalue, coalition_sizes

HALVINGS = 64  # terms of F, each of half the weight of the one before


@dataclass(frozen=True)
class Moments:
    """The numbers P0, A, B and D, with one entry for each number of near points."""

    alone: Floats
    inverse: Floats
    next_inverse: Floats
    next_square: Floats


def moments(semivalue: Semivalue, near: Integers) -> Moments:
    """The moments for neighborhoods of `near` >= 1 points, the valued point included.

    Examples
    --------
    >>> moments("shapley", np.array([1, 2])).next_inverse.tolist()
    [0.0, 0.25]
    """
    if isinstance(semivalue, Beta):
        return _beta(semivalue, near)
    if semivalue not in NAMED:
        raise InputError(
            f"semivalue {semivalue!r} is for classes: it cannot be used with regression"
        )
    return Moments(*NAMED[str(semivalue)](near.astype(np.float64)))


def _shapley(c: Floats) -> tuple[Floats, ...]:
    from scipy.special import digamma, polygamma

    first = digamma(c + 1) + np.euler_gamma
    squares = np.where(c > 1, np.pi**2 / 6 - polygamma(1, c + 1) - 1, 0.0)
    return 1 / c, (first - 1 / c) / c, np.where(c > 1, first - 1, 0.0) / c, squares / c


def _banzhaf(c: Floats) -> tuple[Floats, ...]:
    alone = np.exp2(1 - c)
    inverse, with_own = _coins(c - 1), _coins(c)
    return alone, inverse, 2 * (1 - np.exp2(-c)) / c - alone, 2 * with_own / c - alone


def _coins(N: Floats) -> Floats:
    """F(N), the mean of 1/J over J > 0 heads of N fair coins."""
    k = np.arange(HALVINGS)[:, None]
    left = N - k
    terms = np.exp2(-k) * (1 - np.exp2(-np.maximum(left, 0))) / np.maximum(left, 1)
    return np.where(left > 0, terms, 0.0).sum(axis=0)


def _leave_one_out(c: Floats) -> tuple[Floats, ...]:
    some = c > 1
    inverse = np.where(some, 1 / np.maximum(c - 1, 1), 0.0)
    return (c == 1).astype(float), inverse, np.where(some, 1 / c, 0.0), np.where(some, c**-2, 0.0)


NAMED = {"shapley": _shapley, "banzhaf": _banzhaf, "leave-one-out": _leave_one_out}


def _beta(semivalue: Beta, near: Integers) -> Moments:
    known, where = np.unique(near, return_inverse=True)
    table = np.array([_sums(semivalue, int(c)) for c in known]).reshape(-1, 4)
    return Moments(*table[where.reshape(near.shape)].T)


def _sums(semivalue: Beta, c: int) -> tuple[float, ...]:
    chances = coalition_sizes(semivalue, c)
    j = np.arange(1.0, c)
    others = chances[1:]
    return (
        float(chances[0]),
        float((others / j).sum()),
        float((others / (j + 1)).sum()),
        float((others / (j + 1) ** 2).sum()),
    )
