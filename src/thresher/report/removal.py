"""Accuracy as points are removed: the lowest values first, the highest first, or at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.labels import Codes
from thresher.metrics import Rows
from thresher.progress import Advance
from thresher.report.models import Scaled, fit_accuracy, scaled, training_points
from thresher.report.reach import count_near
from thresher.report.subject import Data, Indices, Subject
from thresher.threads import cut

STEP, STEPS = 0.05, 11  # 0, 5, ..., 50 percent
DRAWS = 5
LEAST_POINTS = 20  # fewer points have no twentieth
COUNTS = 20_000_000  # numbers counted at a time
PURPOSE = 2

THRESHOLD, LOGISTIC = "threshold classifier", "logistic regression"
ORDERS = ("lowest", "highest", "random")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Accuracy on the validation set, for each share of points removed.

    Parameters
    ----------
    model
        "threshold classifier" or "logistic regression".
    order
        Which points go first: "lowest", "highest" or "random" (mean of five draws).
    accuracy
        One number for each of `Removal.fractions`.
    """

    model: str
    order: str
    accuracy: tuple[float, ...]


@dataclass(frozen=True)
class Removal:
    """What is left of accuracy, or is gained, when points go.

    Parameters
    ----------
    fractions
        The shares of points that are removed.
    curves
        One for each model and order.
    logistic_points
        How many points the logistic regressions had to choose from: all, or a random subset.
    points
        How many points there are.
    """

    fractions: tuple[float, ...]
    curves: tuple[Curve, ...]
    logistic_points: int
    points: int

    def curve(self, model: str, order: str) -> Curve | None:
        """One of the curves, if it is there."""
        found = [curve for curve in self.curves if (curve.model, curve.order) == (model, order)]
        return found[0] if found else None

    @property
    def models(self) -> tuple[str, ...]:
        """The models there are curves of."""
        return tuple(dict.fromkeys(curve.model for curve in self.curves))


def fractions() -> tuple[float, ...]:
    """0, 0.05, ..., 0.5."""
    return tuple(round(STEP * step, 10) for step in range(STEPS))


def removed_counts(points: int) -> list[int]:
    """How many of so many points each fraction takes away, rounded down.

    Examples
    --------
    >>> removed_counts(100)
    [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    """
    return [math.floor(share * points + 1e-9) for share in fractions()]


def count_models(subject: Subject) -> int:
    """How many models `removal_curves` tries: thresholds by order, regressions also by step."""
    if subject.data is None or len(subject) < LEAST_POINTS:
        return 0
    return (2 + DRAWS) * (STEPS - 1 + (subject.radius is not None)) + 1


def removal_curves(subject: Subject, data: Data, advance: Advance | None = None) -> Removal:
    """The curves of both models; without a radius those of logistic regression only.

    `advance` is told of every model that was tried, `count_models` in all.
    """
    tell = advance or (lambda _: None)
    orders = _orders(subject.order, subject.random(PURPOSE))
    curves = []
    if subject.radius is not None:
        curves += _curves(THRESHOLD, [_threshold(subject, data, order, tell) for order in orders])
    chosen = training_points(subject, data)
    kept = np.zeros(len(subject), np.bool_)
    kept[chosen] = True
    tables = scaled(data, chosen)
    own = [np.searchsorted(chosen, order[kept[order]]) for order in orders]
    curves += _curves(LOGISTIC, _logistic(tables, own, tell))
    return Removal(fractions(), tuple(curves), len(chosen), len(subject))


def _orders(order: Indices, random: np.random.Generator) -> list[Indices]:
    """Who goes first: the lowest, the highest, and at random a few times."""
    return [order, order[::-1], *(random.permutation(len(order)) for _ in range(DRAWS))]


def _curves(model: str, found: list[Floats]) -> list[Curve]:
    lowest, highest, *draws = found
    together = lowest, highest, np.mean(draws, axis=0)
    return [
        Curve(model, order, tuple(curve.tolist()))
        for order, curve in zip(ORDERS, together, strict=True)
    ]


def _threshold(
    subject: Subject, data: Data, order: Indices, tell: Callable[[int], object]
) -> Floats:
    """Expected accuracy at every step, from one pass over the pairs.

    Points that go in the same step are a group; what is left after a step is what the later groups
    count.
    """
    assert subject.radius is not None  # noqa: S101 - by those who call
    codes_val, all_val = data.codes_val, data.rows_val
    classes = len(subject.classes)
    step = np.empty(len(order), np.int32)
    step[order] = np.searchsorted(removed_counts(len(order)), np.arange(len(order)), side="right")
    groups: Codes = (step - 1) * np.int32(classes) + data.codes
    right = np.zeros(STEPS)
    for part in cut(0, len(codes_val), max(1, COUNTS // (STEPS * classes))):
        some = slice(*part)
        rows_val = Rows(all_val.array[some], all_val.squares[some])
        counts = count_near(
            data.rows, groups, STEPS * classes, rows_val,
            metric=subject.metric, radius=subject.radius,
        ).reshape(STEPS, classes, -1)  # fmt: skip
        left = counts[::-1].cumsum(axis=0)[::-1]
        right += [expected_right(votes, codes_val[some]) for votes in left]
    tell(1)
    return right / len(codes_val)


def expected_right(votes: NDArray[np.int64], codes: Codes) -> float:
    """How many are right where labels that lead, all if nobody is near, are guessed evenly.

    Examples
    --------
    >>> expected_right(np.array([[2, 1, 0], [1, 1, 0]]), np.array([0, 0, 1]))
    2.0
    """
    leads = votes == votes.max(axis=0)
    return float((leads[codes, np.arange(len(codes))] / leads.sum(axis=0)).sum())


def _logistic(tables: Scaled, orders: list[Indices], tell: Callable[[int], object]) -> list[Floats]:
    def accuracy(kept: Indices) -> float:
        found = fit_accuracy(tables, kept)
        tell(1)
        return found

    every = accuracy(np.arange(len(tables.codes)))
    return [
        np.array([every, *(accuracy(order[gone:]) for gone in removed_counts(len(order))[1:])])
        for order in orders
    ]
