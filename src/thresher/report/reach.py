"""Coverage: who has how many near, on both sides; and the radius among others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_metric
from thresher.games.classes import ClassCounts
from thresher.inputs import Points
from thresher.labels import Codes
from thresher.metrics import Rows
from thresher.neighbors.ball import Ball
from thresher.neighbors.groups import Block, Groups
from thresher.passes.walk import count, visit
from thresher.radius import judge_radius, suggest_radius
from thresher.report.subject import Data, Subject

FEW = 5  # points near from which on a validation point says something reliable
MOST_CLASSES = 30
MOST_POINTS = 4000  # validation points from which the radius curve is computed

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Covered:
    """How many validation points of one class have no point near, a few, or enough."""

    label: str
    none: int
    few: int
    enough: int
    missing: int  # points of the class that are near no validation point
    points: int


@dataclass(frozen=True)
class Reach:
    """Coverage of the validation set by the points, and of the points by the validation set.

    Parameters
    ----------
    classes
        Of each class; where there are many, of those with the least coverage.
    left_out
        How many further classes there are.
    total
        Of all classes.
    median_near
        How many points a validation point has near, in the median.
    """

    classes: tuple[Covered, ...]
    left_out: int
    total: Covered
    median_near: float

    @property
    def share(self) -> float:
        """The share of validation points that have a point near."""
        covered = self.total.few + self.total.enough
        return covered / (covered + self.total.none)


@dataclass(frozen=True)
class RadiusCurve:
    """Leave-one-out accuracy and coverage of the validation set over radii.

    Parameters
    ----------
    radii, accuracy, coverage
        The curve.
    used, accuracy_used, coverage_used
        The radius of the valuation, and the curve there.
    suggested, accuracy_suggested
        The best radius on the curve.
    validation_points
        How many validation points the curve was computed from.
    """

    radii: tuple[float, ...]
    accuracy: tuple[float, ...]
    coverage: tuple[float, ...]
    used: float
    accuracy_used: float
    coverage_used: float
    suggested: float
    accuracy_suggested: float
    validation_points: int


def count_near(
    rows: Rows, codes: Codes, classes: int, rows_val: Rows, *, metric: str, radius: float
) -> Integers:
    """How many points of each class are near each validation point: one row for each class."""
    near = Ball(rows_val, len(rows_val), check_metric(metric), radius)
    return count(Points(rows, codes), near, ClassCounts(classes))


def measure_reach(subject: Subject, data: Data) -> Reach:
    """Coverage on both sides."""
    near, totals = _near(subject, data)
    classes = len(subject.classes)
    levels = (totals >= 1).astype(np.int64) + (totals >= FEW)
    table = np.zeros((classes, 5), np.int64)
    for level in range(3):
        table[:, level] = np.bincount(data.codes_val[levels == level], minlength=classes)
    table[:, 3] = np.bincount(data.codes[near == 0], minlength=classes)
    table[:, 4] = np.bincount(data.codes, minlength=classes)
    present = np.flatnonzero(table.sum(axis=1))
    worst = present
    if len(present) > MOST_CLASSES:
        short = table[present, 0] / np.maximum(table[present, :3].sum(axis=1), 1)
        worst = np.sort(present[np.argsort(-short, kind="stable")[:MOST_CLASSES]])
    return Reach(
        tuple(Covered(subject.classes[code], *table[code].tolist()) for code in worst.tolist()),
        len(present) - len(worst),
        Covered("all", *table.sum(axis=0).tolist()),
        float(np.median(totals)),
    )


def _near(subject: Subject, data: Data) -> tuple[Integers, Integers]:
    """How many validation points each point is near, and the other way around."""
    assert subject.radius is not None  # noqa: S101 - by those who call
    groups = Groups.of(np.zeros(len(data.codes), np.int32), 1)
    near, totals = np.zeros(len(data.codes)), np.zeros(len(data.codes_val), np.int64)
    segments = groups.segments(np.zeros(1, np.int64))
    ball = Ball(data.rows_val, len(totals), check_metric(subject.metric), subject.radius)

    def add(block: Block) -> None:
        totals[block.columns] = block.count(segments)[0]
        block.add(segments, np.ones((1, block.columns.stop - block.columns.start)), near)

    visit(Points(data.rows, data.codes), ball, groups, add)
    return groups.in_input_order(near).astype(np.int64), totals


def radius_curve(subject: Subject, data: Data) -> RadiusCurve:
    """The curve that `suggest_radius` draws, with the radius of the valuation on it."""
    assert subject.radius is not None  # noqa: S101 - by those who call
    sides = data.rows_val.array, data.codes_val
    common: dict[str, Any] = {"metric": subject.metric, "most_points": MOST_POINTS}
    common["classes"] = list(range(len(subject.classes)))
    found = suggest_radius(*sides, **common)
    accuracy, coverage = judge_radius(*sides, subject.radius, **common)
    best = int(np.flatnonzero(found.radii == float(found))[0])
    return RadiusCurve(
        tuple(found.radii.tolist()),
        tuple(found.accuracy.tolist()),
        tuple(found.coverage.tolist()),
        subject.radius,
        accuracy,
        coverage,
        float(found),
        float(found.accuracy[best]),
        min(len(data.codes_val), MOST_POINTS),
    )
