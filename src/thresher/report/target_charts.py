"""Targets against what the others expect: two charts, what is suggested, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.findings.target_advice import TARGET_SUGGESTIONS
from thresher.findings.target_findings import TargetFindings
from thresher.report.charts import (
    LEFT,
    RIGHT,
    TALL,
    TOP,
    WIDTH,
    Mark,
    bars,
    frame,
    roomy,
    spot,
    svg,
)
from thresher.report.distribution import bar_counts, bar_edges
from thresher.report.headline import MANY, Headline, calm_state, review_number, rows_to_look_at
from thresher.report.lowest_rows import LowestRows
from thresher.report.phrases import count_of, none_of, of_all, short, whole_percent
from thresher.report.removal import Removal
from thresher.report.subject import Subject, sample
from thresher.report.suggestions import Counted
from thresher.report.verdict import Verdict, steps_for

MOST_POINTS = 3000  # that are drawn, besides those with a suggestion
PURPOSE = 6
MARKS = {  # how rows with each suggestion are drawn
    "keep": ("z", "ring"),
    "outlier": ("val", "cross"),
    "inspect": ("n1", "down"),
    "drop": ("n2", "square"),
    "correct": ("n2", "down"),
}
MEANINGS = {
    "correct": "hurts, and is more than four usual deviations from the expected target, with which "
    "it would help",
    "drop": "is as far off, but would hurt with the expected target, too",
    "inspect": "hurts, and is more than two and a half usual deviations off",
    "keep": "does not hurt, or is about where it is expected",
    "outlier": "nobody is near, so nothing can be said",
}
FOUND = {  # of one row, and of several
    "correct": ("is far from what the others expect", "are far from what the others expect"),
    "drop": ("fits no number", "fit no number"),
    "inspect": ("is worth a look", "are worth a look"),
}
STEPS = {
    "correct": "Look at the {rows} marked correct, and accept the number that the others expect, "
    "write another one, or drop the row.",
    "drop": "Look at the {rows} marked drop.",
    "inspect": "If there is time, look at the {rows} marked inspect.",
    "outlier": "Do not judge the {rows} marked outlier by this: nothing near could tell.",
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
    meanings: ClassVar[dict[str, str]] = MEANINGS
    marks: ClassVar[list[Mark]] = [(style, shape, word) for word, (style, shape) in MARKS.items()]

    def scatter(self) -> str:
        """Targets upward, expected ones across; on the line both are the same."""
        x = roomy((at for at, _, _, _ in self.spots), LEFT, WIDTH - RIGHT, "what the others expect")
        y = roomy((at for _, at, _, _ in self.spots), TALL - 40, TOP, "target")
        low, high = max(x.low, y.low), min(x.high, y.high)
        same = f"M{x(low):.1f} {y(low):.1f}L{x(high):.1f} {y(high):.1f}"
        drawn = [
            spot(f"spot {MARKS[word][0]}", MARKS[word][1], x(a), y(b), 2.2, story)
            for a, b, word, story in self.spots
        ]
        label = f"Targets of {len(self.spots):,} rows against those that others expect"
        line = f'<path class="zero" d="{same}"/>' if low < high else ""
        return svg(frame(x, y, height=TALL) + line + "".join(drawn), label, height=TALL)

    def histogram(self) -> str:
        """How far targets are from the expected ones."""
        edges, counts = self.residuals
        label = f"Residuals of {self.points:,} rows, half of them within {short(self.typical)}"
        return bars(edges, counts, label, "target less expected target")


def chart_targets(subject: Subject, findings: TargetFindings) -> TargetCharts:
    """The charts, of all rows that have a suggestion and of others at random."""
    known = np.flatnonzero(~np.isnan(findings.expected))
    said = np.array(findings.suggestion.tolist(), dtype=object)
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


def target_headline(charts: TargetCharts, lowest: LowestRows) -> Headline:
    """The headline on numbers."""
    rows, wrong = charts.points, charts.flagged
    numbers = (
        ("targets", short(rows), ""),
        ("look wrong", short(wrong), f"{whole_percent(wrong / rows)} of all" if wrong else ""),
        review_number(lowest.marked or 0, charts.total),
    )
    if not wrong:
        doubtful = rows_to_look_at(lowest, wrong=False)
        sentence = f"No target of {count_of(rows, 'row')} is clearly wrong.{doubtful}"
        return Headline(sentence, calm_state(lowest.marked or 0), numbers)
    look = "looks" if wrong == 1 else "look"
    state = "many numbers" if wrong >= MANY * rows else "numbers"
    sentence = f"{wrong:,} of {rows:,} targets {look} wrong.{rows_to_look_at(lowest, wrong=True)}"
    return Headline(sentence, state, numbers)


def judge_targets(charts: TargetCharts, removal: Removal | None) -> Verdict:
    """What it comes to."""
    parts = [
        f"{of_all(charts.total[word], charts.points, one, many)} (suggestion: {word})"
        for word, (one, many) in FOUND.items()
        if charts.total[word]
    ]
    nothing = f"Nothing stands out: {none_of(charts.points, 'suggested for a look')}"
    gain = "" if removal is None else _gain(removal)
    return Verdict(f"{'; '.join(parts) or nothing}{gain}.", steps_for(charts.total, STEPS))


def _gain(removal: Removal) -> str:
    curve = removal.curves[removal.models[0], "lowest"]
    place = removal.fractions.index(0.1)
    return (
        f"; without the lowest tenth, R^2 of a {removal.models[0]} goes from {curve[0]:.3f} to "
        f"{curve[place]:.3f} on the validation set, which also chose them"
    )
