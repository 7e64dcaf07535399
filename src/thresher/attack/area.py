"""How well scores separate members from non-members: the ROC curve, and the area under it.

One threshold uses only a part of the runs; the area uses all of them. Several canaries may be
scored in the same release, and many releases may come from the same data set. So scores of one
`group` need not be independent of each other, but groups must be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from thresher.array_types import Flags, Floats, Integers
from thresher.attack.bounds import LARGEST, ceiling
from thresher.errors import InputError
from thresher.inputs.checks import check_number
from thresher.privacy.accountants import last_that_holds


@dataclass(frozen=True, eq=False)
class Roc:
    """A receiver operating characteristic: rates of true and false positives, by threshold.

    Its area is the probability that a member's score is above a non-member's, ties counted half.

    Examples
    --------
    >>> Roc.of(np.array([2.0, 3.0, 1.0]), np.array([0.0, 1.0, 1.5]))
    Roc(auroc=0.833 +- 0.192, 3 members, 3 non-members)
    """

    fpr: Floats  # false- and true-positive rates, both ascending from 0 to 1
    tpr: Floats
    auroc: float
    standard_error: float  # of the area, from the spread of scores (DeLong et al. 1988)
    members: int
    nonmembers: int

    @classmethod
    def of(cls, members: Floats, nonmembers: Floats) -> Roc:
        """The curve for the scores of members and non-members; a high score means "member"."""
        inside, outside = np.sort(members), np.sort(nonmembers)
        if not len(inside) or not len(outside) or not np.isfinite([*inside, *outside]).all():
            raise InputError("scores must be finite numbers, both for members and for non-members")
        levels = np.unique(np.concatenate([inside, outside]))[::-1]
        tpr, fpr = ((len(s) - np.searchsorted(s, levels)) / len(s) for s in (inside, outside))
        above, below = (wins(one, other) for one, other in ((inside, outside), (outside, inside)))
        error = math.sqrt(_variance(above) + _variance(below))
        fpr, tpr = (np.concatenate([[0.0], rate]) for rate in (fpr, tpr))
        return cls(fpr, tpr, float(above.mean()), error, len(inside), len(outside))

    def tpr_at(self, fpr: float) -> float:
        """The largest true-positive rate with no more than this rate of false positives."""
        wanted = check_number("fpr", fpr, least=0, most=1)
        return float(self.tpr[np.searchsorted(self.fpr, wanted, side="right") - 1])

    def __repr__(self) -> str:
        area = f"auroc={self.auroc:.3f} +- {self.standard_error:.3f}"
        return f"Roc({area}, {self.members} members, {self.nonmembers} non-members)"


def wins(ours: Floats, theirs: Floats) -> Floats:
    """For each of our sorted scores, the share of theirs below it; ties count half."""
    low, high = (np.searchsorted(theirs, ours, side=side) for side in ("left", "right"))
    return (low + high) / (2 * len(theirs))


def _variance(shares: Floats) -> float:
    return float(shares.var(ddof=1)) / len(shares) if len(shares) > 1 else 0.25


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
    """An estimate of P(score inside > score outside) and its standard error; ties count half."""

    value: float
    error: float
    groups: int

    @classmethod
    def of(cls, found: Scores) -> Area:
        """The area, with its error by groups: up to second order, it is a mean (DeLong)."""
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

        The limit uses Student's distribution for this number of groups. If nearly all scores are
        told apart, even groups without a mistake are compatible with log(1 / alpha) mistakes.
        """
        normal = -float(stdtrit(self.groups - 1, alpha)) * self.error
        return self.value - max(normal, -math.log(alpha) / self.groups)


def mu_from_area(area: float) -> float:
    """The mu below which a mechanism with such an attack cannot be mu-GDP.

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
