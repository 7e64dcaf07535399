"""What to do about a number, by what others say it should be.

The others are validation points within the radius, those nearest to the point, or the rows that
share its leaves. They say what target to expect, and how far targets usually are from that. With
the residual r = target - expected, and s the usual deviation:

    outlier   nothing is near, so nothing can be said
    keep      its value is not negative, or |r| is at most 2.5 s
    correct   it hurts, |r| exceeds 4 s, and with the expected target it would help
    drop      as clearly wrong, but with the expected target it would hurt, too
    inspect   it hurts, and |r| is between the two, or fewer than 5 others are near

A value is a quadratic in the target, so one target has the largest value. That target is not what
is suggested: it would make up for the errors of other points near, and so be wrong itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thresher.array_types import Floats, Integers

TARGET_SUGGESTIONS = ("keep", "correct", "inspect", "drop", "outlier")
DOUBTFUL, CLEAR = 2.5, 4.0  # usual deviations
LEAST_NEAR = 5  # others that can say clearly
POOLED = 4.0  # others that the usual deviation of all points weighs as much as
NORMAL = 1.2533  # the deviation of a normal distribution, in mean absolute deviations
WILD = 3.0  # times the median residual: larger ones count as that
NEARER = 2.0  # usual deviations: targets beyond are moved there before others are judged by them


@dataclass(frozen=True)
class TargetEvidence:
    """What others say about each point; NaN if none are near."""

    near: Floats  # how many others there are; by trees, as a mean over these
    # expected, usual: the target that they expect, and how far targets usually are from it
    expected: Floats
    usual: Floats
    # what the point would be worth with the expected target, where that is known
    best_value: Floats | None = None
    # what it is worth, if targets that are far off are left out of account
    values: Floats | None = None

    def score(self, targets: Floats) -> Floats:
        """How usual each target is: usual / (usual + |residual|); the lower, the more doubtful.

        It is 0.5 for a target that is as far off as usual, and for a point that nothing is near.
        """
        residual = np.abs(targets - self.expected)
        both = self.usual + residual
        return np.divide(self.usual, both, out=np.full(len(both), 0.5), where=both > 0)


def suggest_by_residuals(
    values: Floats, targets: Floats, found: TargetEvidence, nobody: float
) -> Integers:
    """What to do, as places in `TARGET_SUGGESTIONS`; `nobody` others or fewer say nothing."""
    residual = np.abs(targets - found.expected)
    alone = ~(found.near > nobody) | np.isnan(residual)
    fine = (values >= 0) | (residual <= DOUBTFUL * found.usual)
    clear = (residual > CLEAR * found.usual) & (found.near >= LEAST_NEAR)
    helps = np.full(len(values), True) if found.best_value is None else found.best_value > 0  # noqa: FBT003
    words = [TARGET_SUGGESTIONS.index(word) for word in ("outlier", "keep", "correct", "drop")]
    inspect = TARGET_SUGGESTIONS.index("inspect")
    return np.select([alone, fine, clear & helps, clear], words, inspect)


def pooled_deviation(near: Floats, squares: Floats) -> Floats:
    """How far a target usually is from the mean of `near` ones, from their squared deviations.

    A few of them say little, so the median over all points counts as much as four more.

    Examples
    --------
    >>> pooled_deviation(np.array([2.0, 5.0]), np.array([2.0, 4.0])).round(2).tolist()
    [1.55, 1.22]
    """
    known = near >= 2
    own = np.divide(squares, near - 1, out=np.full(len(near), np.nan), where=known)
    common = float(np.median(own[known])) if known.any() else 0.0
    freedom = np.maximum(near - 1, 0)
    variance = (np.maximum(squares, 0.0) + POOLED * common) / (freedom + POOLED)
    return np.sqrt(variance * (1 + 1 / np.maximum(near, 1)))


def tamed(residuals: Floats) -> Floats:
    """Absolute residuals, with wild ones cut back: a wrong target must not excuse other ones."""
    sizes = np.abs(residuals)
    known = sizes[~np.isnan(sizes)]
    most = WILD * float(np.median(known)) if len(known) else 0.0
    return np.where(np.isnan(sizes), most / WILD, np.minimum(sizes, most))
