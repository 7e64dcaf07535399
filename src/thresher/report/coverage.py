"""Coverage: how many rows and validation points have others near, and how good the radius is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import check_metric
from thresher.inputs.labels import Classes
from thresher.radius import RadiusSuggestion, judge_radius
from thresher.report.charts import Chart, Line, Mark, across, upward
from thresher.report.near_pairs import NearPairs
from thresher.report.phrases import percent
from thresher.report.subject import Subject, shortlist

FEW = 5  # points near from which on a validation point says something reliable
MOST_CLASSES = 30
MOST_POINTS = 2000  # validation points from which the radius curve is computed
WIDE = 3.0  # how many times the radius a chart goes
LOW_COVERAGE = 0.8
MANY_OUTLIERS = 0.2
OFF_RADIUS = 0.05  # accuracy that another radius would bring


@dataclass(frozen=True)
class RadiusCurve:
    """Leave-one-out accuracy and coverage of the validation set over radii."""

    found: RadiusSuggestion  # the curves, and the radius they suggest
    used: float  # the radius of the valuation, and the curves there:
    accuracy_used: float
    coverage_used: float
    validation_points: int  # from which the curves were computed
    marks: ClassVar[list[Mark]] = [
        ("highest", "none", "accuracy"), ("random", "none", "coverage"),
        ("used", "none", "the radius used"),
    ]  # fmt: skip

    @property
    def suggested(self) -> float:
        """The radius that the curves suggest."""
        return self.found.radius

    @property
    def accuracy_suggested(self) -> float:
        """The accuracy at the suggested radius."""
        return float(self.found.accuracy[self.found.radii == self.suggested][0])

    def chart(self) -> Chart:
        """Accuracy and coverage of the validation set over the radius."""
        radii = self.found.radii.tolist()
        drawn = [
            Line("accuracy", radii, self.found.accuracy.tolist(), "highest"),
            Line("coverage", radii, self.found.coverage.tolist(), "random"),
        ]
        label = (
            f"Accuracy and coverage of the validation set over the radius. At {self.used:.4g}, the "
            f"radius used, accuracy {self.accuracy_used:.3f} and coverage {self.coverage_used:.3f}"
        )
        far = WIDE * max(self.suggested, self.used if math.isfinite(self.used) else 0.0)
        x = across(0.0, min(radii[-1], far) or 1.0, "radius")
        return Chart(label, x, upward(0.0, 1.0, "share", percent=True), drawn, used=self.used)

    def cautions(self) -> list[str]:
        """A warning if another radius would do better."""
        if self.accuracy_used >= self.accuracy_suggested - OFF_RADIUS:
            return []
        return [
            f"The radius {self.used:.4g} does not fit well: among the validation points it is "
            f"right for {percent(self.accuracy_used)}, and {self.suggested:.4g} would be for "
            f"{percent(self.accuracy_suggested)}."
        ]


@dataclass(frozen=True)
class ClassCoverage:
    """How many validation points of one class have no point near, a few, or enough."""

    label: str
    none: int
    few: int
    enough: int
    missing: int  # points of the class that are near no validation point
    points: int


@dataclass(frozen=True)
class Coverage:
    """Coverage of the validation set by the points, and of the points by the validation set."""

    classes: tuple[ClassCoverage, ...]  # where there are many, those with the least coverage
    left_out: int  # further classes
    total: ClassCoverage
    median_near: float  # points near a validation point
    radius: RadiusCurve | None = None
    name: ClassVar[str] = "coverage"
    title: ClassVar[str] = "Coverage and radius"

    @property
    def share(self) -> float:
        """The share of validation points that have a point near."""
        covered = self.total.few + self.total.enough
        return covered / (covered + self.total.none)

    @property
    def low(self) -> bool:
        """Whether too few validation points have a point near."""
        return self.share < LOW_COVERAGE

    def tiles(self) -> list[tuple[str, str, str]]:
        """The number at the top of the page."""
        return [("covered", percent(self.share), "of the validation points")]

    def cautions(self) -> list[str]:
        """Warnings if too few points or validation points have others near."""
        found, better, curve = [], "", self.radius
        if curve is not None and curve.suggested > curve.used:
            better = (
                f"; suggest_radius would take {curve.suggested:.4g} instead of {curve.used:.4g}"
            )
        if self.low:
            found.append(
                f"Only {percent(self.share)} of the validation points have a row within the "
                f"radius, so much of the validation set has no say{better}."
            )
        outliers = self.total.missing / self.total.points
        if outliers > MANY_OUTLIERS and self.share > 0:
            found.append(
                f"{percent(outliers)} of the rows are near no validation point: their value is 0, "
                f"and nothing is known about them{better}."
            )
        if self.median_near > self.total.points / 2 and self.total.points > 20:
            found.append(
                "A typical validation point has more than half of all rows near: the radius is too "
                "large to tell one region from another."
            )
        return found


def measure_coverage(subject: Subject, pairs: NearPairs, radius: RadiusCurve | None) -> Coverage:
    """Coverage on both sides."""
    data, classes, near = subject.data, len(subject.classes), pairs.points
    levels = (near >= 1).astype(np.int64) + (near >= FEW)
    judged = [data.codes_val[levels == level] for level in range(3)]
    columns = [*judged, data.codes[pairs.validation == 0], data.codes]
    table = np.array([np.bincount(codes, minlength=classes) for codes in columns]).T
    present = np.flatnonzero(table.sum(axis=1))
    short = table[present, 0] / np.maximum(table[present, :3].sum(axis=1), 1)
    shown = shortlist(present, short, MOST_CLASSES)
    return Coverage(
        tuple(ClassCoverage(subject.classes[code], *table[code].tolist()) for code in shown),
        len(present) - len(shown),
        ClassCoverage("all", *table.sum(axis=0).tolist()),
        float(np.median(near)),
        radius,
    )


def radius_curve(subject: Subject) -> RadiusCurve:
    """The curve that `suggest_radius` draws, with the radius of the valuation on it."""
    data, radius, metric = subject.data, subject.radius, check_metric(subject.metric)
    classes = Classes(tuple(range(len(subject.classes))))
    validation = Validation(data.rows_val, data.codes_val, classes, metric)
    kernel = subject.kernel
    about: dict[str, Any] = {}
    if kernel is not None and kernel.name:  # a radius is suggested for named kernels alone
        about = {"kernel": kernel.name, "rings": len(kernel.edges)}
    found = judge_radius(validation, radius, most_points=MOST_POINTS, **about)
    return RadiusCurve(found[0], radius, *found[1:], min(len(validation), MOST_POINTS))
