"""How well scores tell canaries, over all thresholds at once: the area under the ROC curve.

One threshold looks at a part of the runs; the area uses all of them. Several canaries may be
scored in the same release, and many releases may come from the same data set: scores of one
`group` need not be independent, groups are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from thresher.array_types import Flags, Floats, Integers
from thresher.attack.bounds import ceiling
from thresher.attack.roc import wins
from thresher.privacy.accountants import last_that_holds

LARGEST = 100.0  # epsilon that is ever proven


@dataclass(frozen=True)
class Scores:
    """Scores of canaries, whether each was in, and which group of runs each comes from."""

    scores: Floats
    inside: Flags
    groups: Integers

    @classmethod
    def of(cls, inside: Floats, outside: Floats) -> Scores:
        """Scores of independent runs, with and without the canary."""
        scores = np.concatenate([inside, outside])
        truth = np.arange(len(scores)) < len(inside)
        return cls(scores, truth, np.arange(len(scores)))


@dataclass(frozen=True)
class Area:
    """An estimate of P(score inside > score outside), ties half, and its standard error."""

    value: float
    error: float
    groups: int

    @classmethod
    def of(cls, found: Scores) -> Area:
        """By groups: the area is a mean over scores, up to a term of second order (DeLong)."""
        inside, outside = found.scores[found.inside], found.scores[~found.inside]
        above = wins(inside, np.sort(outside))
        below = 1 - wins(outside, np.sort(inside))
        value, parts = float(above.mean()), np.empty(len(found.scores))
        parts[found.inside] = (above - value) / len(inside)
        parts[~found.inside] = (below - value) / len(outside)
        sums = np.bincount(found.groups, parts)
        count = len(np.unique(found.groups))
        error = math.sqrt(float((sums**2).sum()) * count / max(count - 1, 1))
        return cls(value, error, count)

    def least(self, alpha: float) -> float:
        """A lower limit of the true area, too high with probability at most alpha.

        By Student's law of so many groups; where nearly all scores are told apart, that many
        groups without a mistake allow for log(1 / alpha) of them.
        """
        normal = -float(stdtrit(self.groups - 1, alpha)) * self.error
        return self.value - max(normal, -math.log(alpha) / self.groups)


def mu_from_area(area: float) -> float:
    """The mu below which a mechanism with such an attack is not mu-GDP, whatever it is.

    Under mu-GDP no area exceeds Phi(mu / sqrt 2) (`gaussian_ceiling`).

    Examples
    --------
    >>> round(mu_from_area(0.588), 2)
    0.31
    """
    return max(0.0, math.sqrt(2) * float(ndtri(min(max(area, 0.0), 1.0))))


def epsilon_from_area(area: float, delta: float) -> float:
    """The epsilon below which a mechanism with such an attack is not (epsilon, delta)-DP.

    Examples
    --------
    >>> round(epsilon_from_area(0.75, 0.0), 4)  # log 3
    1.0986
    """
    if area <= ceiling(0.0, delta):
        return 0.0
    return last_that_holds(lambda e: ceiling(e, delta) < area, 0.0, LARGEST, tolerance=1e-9)
