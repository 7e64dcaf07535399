"""Targets against what the others expect: two charts, and what is suggested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.findings.target_advice import TARGET_SUGGESTIONS
from thresher.findings.target_findings import TargetFindings
from thresher.report.charts import TALL, Chart, Mark, bars, tall_axes
from thresher.report.distribution import bar_counts, bar_edges
from thresher.report.phrases import short
from thresher.report.subject import Subject, sample
from thresher.report.suggestions import Counted

MOST_POINTS = 3000  # that are drawn, besides those with a suggestion
PURPOSE = 6
MARKS = {  # how rows with each suggestion are drawn
    "keep": ("z", "ring"),
    "outlier": ("val", "cross"),
    "inspect": ("n1", "down"),
    "drop": ("n2", "square"),
    "correct": ("n2", "down"),
}


@dataclass(frozen=True)
class TargetCharts(Counted):
    """What is suggested for numbers, by how far they are from what the others expect."""

    bands: tuple[tuple[str, dict[str, int]], ...]  # what is suggested in each band of targets
    spots: tuple[tuple[float, float, str, str], ...]  # expected, target, suggestion and story
    residuals: tuple[tuple[float, ...], tuple[int, ...]]  # edges of bars, and rows in each
    typical: float  # size of a residual
    name: ClassVar[str] = "targets"
    title: ClassVar[str] = "Targets and suggestions"
    words: ClassVar[tuple[str, ...]] = TARGET_SUGGESTIONS
    marks: ClassVar[list[Mark]] = [(style, shape, word) for word, (style, shape) in MARKS.items()]

    def scatter(self) -> Chart:
        """Targets upward against expected ones across; on the line both are the same."""
        across, up = [each[0] for each in self.spots], [each[1] for each in self.spots]
        axes = tall_axes(across, up, ("what the others expect", "target"))
        drawn = [(*MARKS[word], at, up, story) for at, up, word, story in self.spots]
        label = f"Targets of {len(self.spots):,} rows against those that others expect"
        return Chart(label, *axes, drawn, TALL)

    def histogram(self) -> Chart:
        """How far targets are from the expected ones."""
        edges, counts = self.residuals
        label = f"Residuals of {self.points:,} rows, half of them within {short(self.typical)}"
        return bars(edges, counts, label, "target less expected target")


def chart_targets(subject: Subject, findings: TargetFindings) -> TargetCharts:
    """The charts, of all rows that have a suggestion and of others at random."""
    known = np.flatnonzero(~np.isnan(findings.expected))
    said = np.array(findings.suggestion.tolist(), object)
    plain = known[said[known] == "keep"]
    drawn = plain[sample(len(plain), MOST_POINTS, subject.random(PURPOSE))]
    drawn = np.concatenate([drawn, known[said[known] != "keep"]])
    expected = findings.expected
    spots = tuple(
        (float(expected[row]), float(findings.targets[row]), str(said[row]), subject.story(
            row, f"expected {short(float(expected[row]))}", said[row]))
        for row in drawn.tolist()
    )  # fmt: skip
    residuals = (findings.targets - expected)[known]
    residuals = residuals if len(residuals) else np.zeros(1)
    edges = bar_edges(residuals)
    counts = tuple(bar_counts(residuals, edges).tolist())
    codes = np.zeros(len(said), np.int64) if subject.codes is None else subject.codes
    bands = tuple(
        (name, {word: int((said[codes == code] == word).sum()) for word in findings.words})
        for code, name in enumerate(subject.classes)
    )
    typical = float(np.median(np.abs(residuals)))
    return TargetCharts(findings.counts(), bands, spots, (tuple(edges.tolist()), counts), typical)
