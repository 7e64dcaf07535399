"""What the noise alone shows: how large it is, and whether some runs had far too little.

A release minus the measured numbers is noise. If the noise has the right shape, its spread gives a
lower bound on epsilon. A single run without noise shows more: it reveals everything, even if it is
one in thousands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from thresher.array_types import Floats, Integers

RARE = 0.01  # quiet runs that are expected among all


@dataclass(frozen=True)
class Shape:
    """The noise as it should be, and what a smaller scale of it would cost."""

    kind: str  # "gaussian" or "laplace"
    scale: float  # sigma, or the scale of the Laplace distribution
    epsilon: Callable[[float], float]  # of a scale
    roots: Any = 1.0  # by which the noise of a number is narrower: one for each column

    def energy(self, noise: Integers) -> Floats:
        """The energy of each run (one per row): the sum of squares, or of absolute values."""
        flat = (noise * self.roots).reshape(len(noise), -1)
        return (flat**2 if self.kind == "gaussian" else np.abs(flat)).sum(axis=1)

    def most(self, energy: Floats, numbers: int, alpha: float) -> float:
        """An upper limit of the scale, too low with probability at most alpha.

        It uses the larger of two standard errors: that of these runs, and that of the noise as it
        should be. A few runs that are quiet by chance also seem to vary little.
        """
        usual = self._deviation() * math.sqrt(numbers)
        error = max(float(energy.std(ddof=1)), usual) / math.sqrt(len(energy))
        mean = (float(energy.mean()) - float(ndtri(alpha)) * error) / numbers
        if self.kind == "gaussian":
            return math.sqrt(mean)
        p = (math.sqrt(1 + mean**2) - 1) / mean if mean > 0 else 0.0  # the mean is 2p / (1 - p^2)
        return -1 / math.log(p) if p > 0 else 0.0

    def _deviation(self) -> float:
        """The standard deviation of the energy of one number."""
        if self.kind == "gaussian":
            return math.sqrt(2) * self.scale**2
        p = math.exp(-1 / self.scale)
        return math.sqrt(2 * p / (1 - p) ** 2 - (2 * p / (1 - p**2)) ** 2)

    def quiet(self, energy: Floats, numbers: int) -> tuple[int, float]:
        """The number of runs with very little noise, and how many are expected."""
        wanted = RARE / len(energy)
        if self.kind == "gaussian":
            from scipy.stats import chi2

            level, chance = self.scale**2 * float(chi2.ppf(wanted, numbers)), wanted
        else:
            below = np.cumsum(_sums(math.exp(-1 / self.scale), numbers))
            level = max(0.0, float(np.searchsorted(below, wanted, side="right")) - 1)
            chance = float(below[int(level)])
        return int((energy <= level).sum()), chance * len(energy)


def _sums(p: float, numbers: int) -> Floats:
    """The low end of the distribution of a sum of absolute discrete Laplace numbers."""
    reach = 1 + math.ceil(numbers * p / (1 - p) + 1)
    one = 2 * (1 - p) / (1 + p) * p ** np.arange(reach)
    one[0] /= 2
    law = np.zeros(reach)
    law[0] = 1.0
    for _ in range(numbers):
        law = np.convolve(law, one)[:reach]
    return law


def too_quiet(found: int, expected: float, alpha: float) -> bool:
    """Whether this many quiet runs have a probability of at most alpha."""
    from scipy.stats import poisson

    return found > 0 and float(poisson.sf(found - 1, expected)) <= alpha
