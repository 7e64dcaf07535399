"""The cross-check: what removing the lowest tenth brings, judged by those who did not choose it.

The validation set that values the points also judges what their removal brings, which flatters. So
it is parted: one half values, the other one judges, then the other way around.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ThresherWarning
from thresher.games.semivalues import check_semivalue
from thresher.knn import knn_shapley
from thresher.labels import Codes
from thresher.report.models import predictions, scaled
from thresher.report.subject import Data, Indices, Subject
from thresher.tknn import tknn_shapley

SHARE = 0.1  # of the points that is removed
LEAST_VALIDATION = 40  # validation points that can be parted
MOST_PAIRS = 2_000_000_000  # points times validation points that are valued once more
PURPOSE = 4


@dataclass(frozen=True)
class Checked:
    """What removing the lowest tenth brings, judged by validation points that did not choose it.

    Parameters
    ----------
    share
        The share of points removed.
    before, after
        Accuracy of the logistic regression with all points and without those.
    gained, lost
        How many validation points are right only afterwards, and only before.
    """

    share: float
    before: float
    after: float
    gained: int
    lost: int

    @property
    def clear(self) -> bool:
        """Whether that is more than two standard deviations of chance."""
        return abs(self.gained - self.lost) > 2 * np.sqrt(self.gained + self.lost)


def cross_check(subject: Subject, data: Data, chosen: Indices) -> Checked | None:
    """What removing the lowest tenth brings; None where that cannot be told.

    `chosen` are the points that logistic regressions are trained on.
    """
    count = len(data.codes_val)
    again = subject.valuation.method in {"tknn-shapley", "knn-shapley"}
    if not again or count < LEAST_VALIDATION or len(subject) * count > MOST_PAIRS:
        return None
    tables = scaled(data, chosen)
    before = predictions(tables, np.arange(len(chosen))) == tables.codes_val
    after = np.zeros_like(before)
    halves = _halves(data.codes_val, subject.random(PURPOSE))
    for half, other in (halves, halves[::-1]):
        values = _values_by(subject, data, half)[chosen]
        kept = np.sort(np.argsort(values, kind="stable")[int(SHARE * len(chosen)) :])
        after[other] = (predictions(tables, kept) == tables.codes_val)[other]
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return Checked(SHARE, float(before.mean()), float(after.mean()), gained, lost)


def _halves(codes: Codes, random: np.random.Generator) -> tuple[Indices, Indices]:
    """Two halves of the validation set with about the same shares of classes."""
    shuffled = random.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    return np.sort(by_class[::2]), np.sort(by_class[1::2])


def _values_by(subject: Subject, data: Data, half: Indices) -> NDArray[np.float64]:
    """The values that a part of the validation set gives."""
    about = subject.valuation.params
    four = data.rows.array, data.codes, data.rows_val.array[half], data.codes_val[half]
    classes = list(range(len(subject.classes)))
    with warnings.catch_warnings():  # whoever made the valuation was warned
        warnings.simplefilter("ignore", ThresherWarning)
        if subject.valuation.method == "knn-shapley":
            return knn_shapley(
                *four, k=about["k"], metric=about["metric"], utility=about["utility"],
                classes=classes,
            ).values  # fmt: skip
        return tknn_shapley(
            *four, radius=about["radius"], metric=about["metric"], classes=classes,
            semivalue=check_semivalue(about["semivalue"]),
        ).values  # fmt: skip
