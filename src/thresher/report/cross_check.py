"""The cross-check: what removing the lowest tenth brings, judged by those who did not choose it.

The validation set that values the points also judges what their removal brings, which flatters. So
it is parted: one half values, the other one judges, then the other way around.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from thresher.errors import ThresherWarning
from thresher.knn import knn_shapley
from thresher.labels import Codes
from thresher.report.near_pairs import Halves, NearPairs
from thresher.report.regression import Tables, predict
from thresher.report.subject import Floats, Indices, Subject
from thresher.retrain.logistic import Solution

SHARE = 0.1  # of the points that is removed
LEAST_VALIDATION = 40  # validation points that can be parted
MOST_PAIRS = 2_000_000_000  # points times validation points that are valued once more
PURPOSE = 4


@dataclass(frozen=True)
class CrossCheck:
    """What removing the lowest tenth brings, judged by validation points that did not choose it."""

    before: float  # accuracy of the logistic regression with all points
    after: float  # and without the lowest tenth
    gained: int  # validation points that are right only afterwards
    lost: int  # and only before

    @property
    def clear(self) -> bool:
        """Whether that is more than two standard deviations of chance."""
        return abs(self.gained - self.lost) > 2 * np.sqrt(self.gained + self.lost)


def halve_validation(subject: Subject) -> Halves | None:
    """Two halves of the validation set with about the same shares of classes.

    None where they could not value the points again, or are too small to judge.
    """
    codes = subject.data.codes_val
    again = subject.valuation.method in {"tknn-shapley", "knn-shapley"}
    if not again or len(codes) < LEAST_VALIDATION or len(subject) * len(codes) > MOST_PAIRS:
        return None
    shuffled = subject.random(PURPOSE).permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    return np.sort(by_class[::2]), np.sort(by_class[1::2])


def cross_check(
    subject: Subject, tables: Tables, chosen: Indices, every: Codes, last: Solution,
    halves: Halves, pairs: NearPairs | None,
) -> CrossCheck:  # fmt: skip
    """What removing the lowest tenth brings.

    `tables` are of the `chosen` points, on which logistic regressions are trained; `every` is what
    that on all of them predicts, and `last` its solution.
    """
    before = every == tables.codes_val
    after = np.zeros_like(before)
    for place, other in enumerate(halves[::-1]):
        values = _knn_values(subject, halves[place]) if pairs is None else pairs.half_values[place]
        lowest_first = np.argsort(values[chosen], kind="stable")
        kept = np.sort(lowest_first[int(SHARE * len(chosen)) :])
        after[other] = (predict(tables, kept, last.copy())[0] == tables.codes_val)[other]
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return CrossCheck(float(before.mean()), float(after.mean()), gained, lost)


def _knn_values(subject: Subject, half: Indices) -> Floats:
    """The values by `knn_shapley` that a half of the validation set gives."""
    about, data = subject.valuation.params, subject.data
    with warnings.catch_warnings():  # whoever made the valuation was warned
        warnings.simplefilter("ignore", ThresherWarning)
        return knn_shapley(
            data.rows.array, data.codes, data.rows_val.array[half], data.codes_val[half],
            k=about["k"], metric=about["metric"], utility=about["utility"],
            classes=list(range(len(subject.classes))),
        ).values  # fmt: skip
