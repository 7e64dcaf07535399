"""False alarms: how many points whose labels are right would be called wrong by a radius.

The labels of the validation set are assumed to be right. Still, where classes overlap, some of them
disagree with the others near them, and so will right labels among the points. So the rule for
points is tried on the validation set itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresher.findings.advice import CLEAR, FEW
from thresher.findings.forecast import LEAST_RIGHT
from thresher.games.classes import ClassCounts
from thresher.inputs.checked_inputs import Points, Validation
from thresher.neighbors.ball import Ball
from thresher.passes.walk import count

MOST_POINTS = 4000  # validation points that are judged
MOST_COUNTS = 50_000_000  # classes times validation points
PURPOSE = 5
UNCHECKED = "nobody checked the rows that judge them, either"


@dataclass(frozen=True)
class FalseAlarms:
    """How many validation points the others would call mislabeled, and how many there are.

    Labels are not `trusted` if nobody checked them: then they may really be wrong.
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
        >>> FalseAlarms(10, 200).exceeded(100, 2000), FalseAlarms(10, 200).exceeded(250, 2000)
        (False, True)
        """
        trusted = (self.flagged + 1) / (self.validation_points + 2)  # never 0: 200 points are few
        spread = trusted * (1 - trusted) * (1 / points + 1 / self.validation_points)
        return flagged / points - trusted > 2 * math.sqrt(spread)

    def wrong_share(self, flagged: int, points: int) -> float:
        """The share of the flagged points that are wrong, if labels are trusted.

        If w labels are wrong and a share s of right ones looks wrong, w + s (points - w) are
        flagged.
        """
        wrong = (flagged - self.share * points) / max(1 - self.share, 1e-9)
        return min(1.0, max(0.0, wrong) / max(flagged, 1))

    def why_look(self, flagged: int, points: int) -> str:
        """Why nobody should change the flagged points without a look; empty if one may."""
        if not self.trusted:
            return UNCHECKED
        right = self.wrong_share(flagged, points)
        if right >= LEAST_RIGHT:
            return ""
        share = f"{100 * right:.0f} %"
        return f"by the validation points, only about {share} of the marked rows are wrong"


def count_false_alarms(
    validation: Validation, radius: float, *, seed: int, trusted: bool
) -> FalseAlarms | None:
    """How many validation points would be flagged; None if there are too many or too few."""
    cells, classes, rows = len(validation), len(validation.classes), validation.rows
    if rows is None or cells < 2 or cells * classes > MOST_COUNTS:
        return None
    judged = np.arange(cells)
    if cells > MOST_POINTS:
        random = np.random.default_rng([seed, PURPOSE])
        judged = np.sort(random.choice(cells, MOST_POINTS, replace=False))
    near = Ball(rows.some(judged), len(judged), validation.metric, radius)
    votes = count(Points(rows, validation.codes), near, ClassCounts(classes))
    codes, each = validation.codes[judged], np.arange(len(judged))
    votes[codes, each] -= 1  # itself
    own, voters = votes[codes, each].copy(), votes.sum(axis=0)
    votes[codes, each] = -1
    others = np.maximum(votes.max(axis=0), 0)
    clear = (others - own > CLEAR * np.sqrt(others + own)) & (own <= FEW * (others + own))
    flagged = int((clear & (2 * own < voters)).sum())
    return FalseAlarms(flagged, len(judged), trusted=trusted)
