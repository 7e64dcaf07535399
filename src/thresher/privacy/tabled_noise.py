"""Fast discrete Gaussians: a table of the distribution, and 128 random bits for each number.

OpenDP's sampler takes 15 microseconds for a number, which is too slow when each silo adds a share
to 10^5 entries. Here a number is looked up: the cumulative probabilities of a discrete Gaussian are
computed in whole numbers of 2^-128, and a uniform number of 128 bits from the operating system
falls between two of them. The result is within a distance of 2^-105 of the exact distribution (T12
of docs/privacy-proofs.md). A distribution that is too wide for a table is that of a sum a + m b of
two narrower ones.
"""

from __future__ import annotations

import math
import os
from decimal import Context, Decimal
from functools import lru_cache

import numpy as np

from thresher.array_types import Integers, LongWords
from thresher.privacy.noise import System

BITS = 128  # of the uniform number that picks
FINER = 256  # bits behind the point while the table is computed
TAIL = 14  # sigmas on each side: beyond them lie less than 2^-138
WIDEST = 4000.0  # sigma, at most, of one table
SPREAD = 32.0  # variance of the finer part of a sum, over the square of the step of the coarser


class TabledSystem(System):
    """Faster noise from the operating system's entropy, for shares of noise on long tables."""

    def gaussian(self, sigma: float, size: int) -> Integers:
        """Discrete Gaussians, drawn as the module says."""
        return wide_gaussian(sigma**2, size)


def wide_gaussian(variance: float, size: int) -> Integers:
    """Draw `size` discrete Gaussians: P(x) proportional to exp(-x^2 / (2 variance)).

    For a large variance v, each is a + m b, with a of variance 32 m^2 and b of variance (v - 32
    m^2) / m^2 >= 32. Every probability is exact up to a factor 1 +- 10^-68 (T12).
    """
    if variance <= WIDEST**2:
        return _looked_up(_table(variance), size)
    step = math.ceil(math.sqrt(variance) / WIDEST)
    fine = SPREAD * step**2
    coarse = (variance - fine) / step**2
    return wide_gaussian(fine, size) + step * wide_gaussian(coarse, size)


def _looked_up(table: tuple[LongWords, LongWords, int], size: int) -> Integers:
    """Numbers by inversion: each counts the cumulative probabilities up to a uniform number."""
    high, low, reach = table
    uniform = np.frombuffer(os.urandom(16 * size), np.uint64).reshape(2, size)
    first = np.searchsorted(high, uniform[0], side="left")
    last = np.searchsorted(high, uniform[0], side="right")
    for each in np.flatnonzero(first != last).tolist():  # the high words are equal: the low decide
        tied = low[first[each] : last[each]]
        first[each] += np.searchsorted(tied, uniform[1, each], side="right")
    return first.astype(np.int64) - reach


@lru_cache(maxsize=8)
def _table(variance: float) -> tuple[LongWords, LongWords, int]:
    """The cumulative probabilities but the last, in two words each, and the largest number."""
    weights = exact_weights(variance)
    reach, total = len(weights) - 1, 2 * sum(weights) - weights[0]
    high, low, below = [], [], 0
    for x in range(-reach, reach):
        below += weights[abs(x)]
        share = (below << BITS) // total
        high.append(share >> 64)
        low.append(share & ((1 << 64) - 1))
    return np.array(high, np.uint64), np.array(low, np.uint64), reach


def exact_weights(variance: float) -> list[int]:
    """exp(-x^2 / (2 variance)) for x = 0, 1, ..., in whole numbers of 2^-256.

    Each is the one before times a ratio that shrinks by a constant factor. Products are rounded
    down, so that a number is wrong by less than x^2 2^-255.
    """
    context = Context(prec=100)
    half = context.divide(Decimal(-1), context.multiply(Decimal(2), Decimal(variance)))
    ratio = _fixed(context.exp(half), context)
    shrink = _fixed(context.exp(context.multiply(half, Decimal(2))), context)
    weights, weight = [], 1 << FINER
    for _ in range(math.ceil(TAIL * math.sqrt(variance)) + 1):
        weights.append(weight)
        weight, ratio = weight * ratio >> FINER, ratio * shrink >> FINER
    return weights


def _fixed(number: Decimal, context: Context) -> int:
    return int(context.multiply(number, Decimal(1 << FINER)))
