"""How often a right label looks wrong: the rule for points, tried on the validation set itself.

The labels of the validation set are taken to be right. Where classes overlap some of them disagree
with the others near them all the same, and so will right labels among the points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresher.findings import CLEAR, FEW
from thresher.report.reach import count_near
from thresher.report.subject import Data, Subject

MOST_POINTS = 4000  # validation points that are judged
MOST_COUNTS = 50_000_000  # classes times validation points
PURPOSE = 5


@dataclass(frozen=True)
class Doubt:
    """Of so many validation points, so many would be called mislabeled by the others.

    Not `trusted` are labels that nobody checked: then those may be wrong indeed.
    """

    flagged: int
    validation_points: int
    trusted: bool = True

    @property
    def share(self) -> float:
        """The share of right labels that look wrong, where labels are trusted."""
        return self.flagged / self.validation_points

    def exceeded(self, flagged: int, points: int) -> bool:
        """Whether more points are flagged than right labels would be, beyond chance.

        Two shares are compared: more than two standard deviations apart is beyond chance.

        Examples
        --------
        >>> Doubt(10, 200).exceeded(100, 2000), Doubt(10, 200).exceeded(250, 2000)
        (False, True)
        """
        trusted = (self.flagged + 1) / (self.validation_points + 2)  # never 0: 200 points are few
        spread = trusted * (1 - trusted) * (1 / points + 1 / self.validation_points)
        return flagged / points - trusted > 2 * math.sqrt(spread)


def measure_doubt(subject: Subject, data: Data) -> Doubt | None:
    """How many validation points would be flagged; None where they are too many or too few."""
    count, classes = len(data.codes_val), len(subject.classes)
    assert subject.radius is not None  # noqa: S101 - by those who call
    if count < 2 or count * classes > MOST_COUNTS:
        return None
    judged = np.arange(count)
    if count > MOST_POINTS:
        judged = np.sort(subject.random(PURPOSE).choice(count, MOST_POINTS, replace=False))
    votes = count_near(
        data.rows_val, data.codes_val, classes, data.rows_val,
        metric=subject.metric, radius=subject.radius,
    )[:, judged]  # fmt: skip
    codes, each = data.codes_val[judged], np.arange(len(judged))
    votes[codes, each] -= 1  # itself
    own, near = votes[codes, each].copy(), votes.sum(axis=0)
    votes[codes, each] = -1
    others = np.maximum(votes.max(axis=0), 0)
    clear = (others - own > CLEAR * np.sqrt(others + own)) & (own <= FEW * (others + own))
    flagged = int((clear & (2 * own < near)).sum())
    return Doubt(flagged, len(judged), trusted=not subject.held_out)
