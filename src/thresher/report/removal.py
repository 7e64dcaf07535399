"""Accuracy, or R^2, as points are removed: lowest values first, highest first, or at random.

The validation set that values the points also judges the effect of their removal, which looks
better than it is. So the cross-check splits the set: one half values and the other one judges, then
the other way around.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError, ThresherWarning
from thresher.inputs.labels import Codes
from thresher.knn import knn_shapley
from thresher.logistic import Solution
from thresher.progress import Advance
from thresher.report.charts import Chart, Line, Mark, across, upward
from thresher.report.near_pairs import Halves, NearPairs
from thresher.report.phrases import fixed
from thresher.report.retraining import (
    MOST_FEATURES,
    Tables,
    explained,
    predict,
    standardize,
    training_points,
)
from thresher.report.subject import Subject
from thresher.threads import run

STEPS = 11
FRACTIONS = tuple(round(0.05 * step, 10) for step in range(STEPS))  # 0, 0.05, ..., 0.5
DRAWS = 5
LEAST_POINTS = 20  # fewer points have no twentieth
HARDLY = 0.02  # accuracy over that of guessing
SHARE = 0.1  # of the points that is removed
LEAST_VALIDATION = 40  # validation points that can be parted
MOST_PAIRS = 2_000_000_000  # points times validation points that are valued once more
PURPOSE, HALVES = 2, 4

THRESHOLD, LOGISTIC, LINEAR = "threshold classifier", "logistic regression", "linear regression"
ORDERS = {  # how each is called and drawn
    "lowest": ("lowest values first", "down"),
    "highest": ("highest values first", "square"),
    "random": ("at random", "dot"),
}

Curves = dict[tuple[str, str], tuple[float, ...]]  # by model and order


@dataclass(frozen=True)
class CrossCheck:
    """The effect of removing the lowest tenth, by validation points that did not choose it."""

    before: float  # accuracy of the logistic regression with all points
    after: float  # and without the lowest tenth
    gained: int  # validation points that are right only afterwards
    lost: int  # and only before

    @property
    def clear(self) -> bool:
        """Whether the effect is more than two standard deviations of chance."""
        return abs(self.gained - self.lost) > 2 * np.sqrt(self.gained + self.lost)


@dataclass(frozen=True)
class Removal:
    """How accuracy on the validation set changes as points are removed."""

    fractions: tuple[float, ...]  # the shares of points that are removed
    curves: Curves  # accuracy at each of them
    logistic_points: int  # that the logistic regressions had to choose from: all, or some at random
    points: int  # in all
    cross_check: CrossCheck | None
    measure: str = "accuracy"  # or R^2, of numbers
    name: ClassVar[str] = "removal"
    title: ClassVar[str] = "Removing rows"
    most_features: ClassVar[int] = MOST_FEATURES
    marks: ClassVar[list[Mark]] = [(order, shape, text) for order, (text, shape) in ORDERS.items()]

    @property
    def models(self) -> tuple[str, ...]:
        """The models that have curves."""
        return tuple(dict.fromkeys(model for model, _ in self.curves))

    def charts(self) -> list[tuple[str, Chart]]:
        """Accuracy of each model as points are removed."""
        return [(model, self._chart(model)) for model in self.models]

    def _chart(self, model: str) -> Chart:
        drawn = [
            Line(name, self.fractions, self.curves[model, order], order, shape)
            for order, (name, shape) in ORDERS.items()
        ]
        ends = [f"{line.name}: {line.y[0]:.3f} to {line.y[-1]:.3f}" for line in drawn]
        measured = self.measure.capitalize()
        label = (
            f"{measured} of the {model} as up to half of the rows are removed. {'; '.join(ends)}"
        )
        every = [number for line in drawn for number in line.y]
        x = across(0.0, self.fractions[-1], "rows removed", percent=True)
        return Chart(label, x, upward(min(every), max(every), self.measure), drawn)

    def cautions(self, subject: Subject) -> list[str]:
        """A warning if the threshold classifier hardly beats guessing."""
        threshold = self.curves.get((THRESHOLD, "lowest"))
        if threshold is None or subject.codes_val is None or len(subject.classes) < 2:
            return []
        accuracy = threshold[0]
        guess = float(np.bincount(subject.codes_val).max() / len(subject.codes_val))
        if accuracy >= guess + HARDLY:
            return []
        return [
            f"The threshold classifier is right for {fixed(accuracy)} of the "
            f"validation points, hardly more than always guessing the most frequent label "
            f"({fixed(guess)}): these features and this radius tell little about the label."
        ]


def removed_counts(points: int) -> list[int]:
    """How many of `points` points each fraction removes, rounded down.

    Examples
    --------
    >>> removed_counts(100)
    [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    """
    return [math.floor(share * points + 1e-9) for share in FRACTIONS]


def removal_orders(subject: Subject) -> list[Integers]:
    """Orders of removal: lowest first, highest first, and a few at random; none if none can go."""
    if not can_remove(subject):
        return []
    order, random = subject.order, subject.random(PURPOSE)
    return [order, order[::-1], *(random.permutation(len(order)) for _ in range(DRAWS))]


def step_of_each(order: Integers) -> Codes:
    """The step in which each point is removed; the last step keeps the rest."""
    steps = np.empty(len(order), np.int32)
    counts = removed_counts(len(order))
    steps[order] = np.searchsorted(counts, np.arange(len(order)), side="right") - 1
    return steps


def count_models(subject: Subject) -> int:
    """How many logistic regressions `removal_curves` trains, besides those of the cross-check."""
    return (2 + DRAWS) * (STEPS - 1) + 1 if can_remove(subject) else 0


def can_remove(subject: Subject) -> bool:
    """True if there are features, validation points, and enough points."""
    there = subject.given is not None and len(subject.given.codes_val) > 0
    return there and len(subject) >= LEAST_POINTS


def removal_curves(
    subject: Subject, orders: list[Integers], pairs: NearPairs | None,
    halves: Halves | None, advance: Advance | None = None,
) -> Removal:  # fmt: skip
    """The curves of all models; without a radius there are no `pairs`, and only a regression.

    `advance` gets the number of regressions just trained, of `count_models` in all.
    """
    data = subject.data
    if not len(data.codes_val):
        raise InputError(
            "the rows judged each other, so there is no validation set to measure the effect on"
        )
    if not can_remove(subject):
        raise InputError(f"there are fewer than {LEAST_POINTS} points")
    curves: Curves = {}
    if pairs is not None:
        right = [np.array([row.sum() for row in rows]) for rows in pairs.right]
        curves |= _curves_of(THRESHOLD, [each / len(data.codes_val) for each in right])
    chosen = training_points(subject)
    tables, kept = standardize(data, chosen), _among(orders, chosen)
    sizes = len(chosen), len(subject)
    if subject.targets is not None and subject.targets_val is not None:
        targets = subject.targets[chosen], subject.targets_val
        curves |= _curves_of(LINEAR, _linear(tables, *targets, kept, advance))
        return Removal(FRACTIONS, curves, *sizes, None, measure="R^2")
    every, last = predict(tables, np.arange(len(chosen)), Solution.empty())
    curves |= _curves_of(LOGISTIC, list(_logistic(tables, kept, every, last, advance)))
    checked = halves and cross_check(subject, tables, chosen, every, last, halves, pairs)
    return Removal(FRACTIONS, curves, *sizes, checked)


def _among(orders: list[Integers], chosen: Integers) -> list[Integers]:
    """The orders of the chosen points only, as places among them."""
    kept = np.zeros(len(orders[0]), np.bool_)
    kept[chosen] = True
    return [np.searchsorted(chosen, order[kept[order]]) for order in orders]


def _curves_of(model: str, found: list[Floats]) -> Curves:
    """The curves of a model by order; the curve of random orders is their mean."""
    lowest, highest, *draws = found
    together = zip(ORDERS, (lowest, highest, np.mean(draws, axis=0)), strict=True)
    return {(model, order): tuple(curve.tolist()) for order, curve in together}


def _linear(
    tables: Tables, y: Floats, y_val: Floats, orders: list[Integers], advance: Advance | None
) -> list[Floats]:
    """R^2 for each order and step."""
    found = []
    for order in orders:
        steps = [explained(tables, y, y_val, order[gone:]) for gone in removed_counts(len(order))]
        found.append(np.array(steps))
        if advance is not None:
            advance(STEPS - 1)
    return found


def _logistic(
    tables: Tables, orders: list[Integers], every: Codes, last: Solution, advance: Advance | None
) -> Floats:
    """Accuracy for each order and step; each training begins where the step before ended."""
    accuracy = np.zeros((len(orders), STEPS))
    accuracy[:, 0] = (every == tables.codes_val).mean()

    def job(place: int, order: Integers, solution: Solution) -> None:
        for step, gone in enumerate(removed_counts(len(order))[1:], 1):
            found, solution = predict(tables, order[gone:], solution)
            accuracy[place, step] = (found == tables.codes_val).mean()
            tell(1)

    tell = advance or (lambda _: None)
    tell(1)
    run(job, [(i, order, last.copy()) for i, order in enumerate(orders)], parallel=last.known)
    return accuracy


def halve_validation(subject: Subject) -> Halves | None:
    """Two halves of the validation set with about the same shares of classes.

    None if they could not value the points again, or are too small to judge.
    """
    again = subject.valuation.method in {"tknn-shapley", "knn-shapley"} and subject.targets is None
    if not again or not can_remove(subject):
        return None
    codes = subject.data.codes_val
    if len(codes) < LEAST_VALIDATION or len(subject) * len(codes) > MOST_PAIRS:
        return None
    shuffled = subject.random(HALVES).permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    return np.sort(by_class[::2]), np.sort(by_class[1::2])


def cross_check(
    subject: Subject, tables: Tables, chosen: Integers, every: Codes, last: Solution,
    halves: Halves, pairs: NearPairs | None,
) -> CrossCheck:  # fmt: skip
    """The effect of removing the lowest tenth.

    `tables` are of the `chosen` points, on which logistic regressions are trained. `every` has the
    predictions of the regression on all of them, and `last` is its solution.
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


def _knn_values(subject: Subject, half: Integers) -> Floats:
    """The values by `knn_shapley` that a half of the validation set gives."""
    about, data = subject.valuation.params, subject.data
    with warnings.catch_warnings():  # whoever made the valuation was warned
        warnings.simplefilter("ignore", ThresherWarning)
        return knn_shapley(
            data.rows.array, data.codes, data.rows_val.array[half], data.codes_val[half],
            k=about["k"], metric=about["metric"], utility=about["utility"],
            classes=list(range(len(subject.classes))),
        ).values  # fmt: skip
