"""How well scores tell members from non-members: the ROC curve and its area."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.inputs.checks import check_number


@dataclass(frozen=True, eq=False)
class Roc:
    """A receiver operating characteristic: true positives against false ones, by threshold.

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
        """From the scores of members and of non-members; a high one says "member"."""
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
    """For each of our sorted scores the share of theirs below it, ties half."""
    low, high = (np.searchsorted(theirs, ours, side=side) for side in ("left", "right"))
    return (low + high) / (2 * len(theirs))


def _variance(shares: Floats) -> float:
    return float(shares.var(ddof=1)) / len(shares) if len(shares) > 1 else 0.25
