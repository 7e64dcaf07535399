"""What is suggested, by class; and how many labels are wrong, as far as that is known.

By a radius: the labels of the validation set are assumed to be right. Still, where classes overlap,
some of them disagree with the others near them, and so will right labels among the points. So the
rule for points is tried on the validation set itself. By a forest: see `forecast`.
"""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Integers
from thresher.errors import InputError, ThresherWarning
from thresher.findings.advice import SUGGESTIONS
from thresher.findings.explanation import explain
from thresher.findings.false_alarms import FalseAlarms, count_false_alarms
from thresher.findings.forecast import Forecast
from thresher.findings.label_findings import Findings
from thresher.findings.stability import Stability
from thresher.forest import FOREST, LEAVES
from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import check_metric
from thresher.inputs.labels import Classes, Codes
from thresher.ranking import agreement
from thresher.report.near_pairs import NearPairs
from thresher.report.phrases import count_of, percent, short
from thresher.report.subject import Subject, shortlist

MOST_CLASSES = 30
MOST_MOVES = 1000
MOST_SHOWN = 30  # moves that the page lists
MOST_LABELS = 12  # further ones make the matrix too wide
LEAST_CLEAR = 5  # validation points of another label that are clear, if nobody disagrees
STEADY = 0.7  # of the rows to relabel, those on which two halves of a forest agree
EXPLAINED = ("tknn-shapley", "knn-shapley", FOREST)
GRAVEST = ("relabel", "drop", "inspect", "outlier")


@dataclass(frozen=True)
class Tally:
    """How often each suggestion was made for points of one label."""

    label: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Move:
    """How many points that are labeled `own` should be `other`, by the suggestions."""

    own: str
    other: str
    points: int


@dataclass(frozen=True)
class Counted:
    """How often each suggestion was made."""

    total: dict[str, int]

    @property
    def points(self) -> int:
        """How many points there are."""
        return sum(self.total.values())

    @property
    def flagged(self) -> int:
        """How many points are clearly wrong."""
        return sum(self.total.get(word, 0) for word in ("relabel", "correct", "drop"))

    def tiles(self) -> list[tuple[str, str, str]]:
        """The numbers at the top of the page."""
        words = ("relabel", "correct", "drop", "inspect", "outlier")
        counts = {word: self.total[word] for word in words if word in self.total}
        return [
            (word, short(count), percent(count / self.points)) for word, count in counts.items()
        ]


@dataclass(frozen=True)
class Suggestions(Counted):
    """All suggestions about labels."""

    classes: tuple[Tally, ...] = ()  # where there are many, those with the most to look at
    left_out: int = 0  # further labels
    moves: tuple[Move, ...] = ()  # the most frequent first
    labels: tuple[str, ...] = ()  # all of them
    median_near: float = 0.0  # validation points near a point
    false_alarms: FalseAlarms | None = None
    by_shares: bool = False  # whether the rows in leaves are asked, and not validation points near
    stability: Stability | None = None
    forecast: Forecast | None = None
    judges: float | None = None  # rank correlation to expect of another validation set's values
    name: ClassVar[str] = "suggestions"
    title: ClassVar[str] = "Labels and suggestions"

    @property
    def columns(self) -> tuple[str, ...]:
        """The labels that have a column in the matrix: none if there are too many."""
        return () if len(self.labels) > MOST_LABELS else self.labels

    def heads(self) -> list[tuple[str, str]]:
        """The columns of the matrix: a suggestion, and the label to change to if there is one."""
        found = [("keep", ""), *((f"relabel to {label}", label) for label in self.columns)]
        return found + [(name, "") for name in (GRAVEST[1:] if self.columns else GRAVEST)]

    def matrix(self) -> list[tuple[str, list[tuple[int | None, int]]]]:
        """A row for each label: how many points (None if there can be none), and how dark."""
        moved = {(move.own, move.other): move.points for move in self.moves}
        rows = []
        for tally in self.classes:
            own, points = tally.label, sum(tally.counts.values())
            counts = [None if x == own else moved.get((own, x), 0) for x in self.columns]
            counts = counts or [tally.counts["relabel"]]
            counts += [tally.counts[name] for name in GRAVEST[1:]]
            cells = [(each, _heat((each or 0) / points)) for each in counts]
            rows.append((own, [(tally.counts["keep"], 0), *cells]))
        return rows

    def moves_shown(self) -> tuple[Move, ...]:
        """The moves that are listed if the matrix would be too wide."""
        return () if self.columns else self.moves[:MOST_SHOWN]

    def tiles(self) -> list[tuple[str, str, str]]:
        """The numbers at the top of the page."""
        if self.forecast is None:
            return super().tiles()
        hint = "a poor forecast" if self.forecast.poor else "as forecast"
        wrong = f"about {short(round(self.forecast.wrong))}"
        return [("wrong labels", wrong, hint), *super().tiles()]

    def forecast_text(self) -> str:
        """A sentence on how many labels are expected to be wrong."""
        if self.forecast is None:
            return ""
        wrong = count_of(round(self.forecast.wrong), "label is", "labels are")
        said = f"About {wrong} expected to be wrong, by how often rows that share leaves contradict"
        said += " each other where they are surest."
        if self.forecast.poor:
            said += (
                f" That forecast is poor: {percent(self.forecast.contradicted)} of the labels are "
                "contradicted, so classes overlap, and the number is probably too high."
            )
        return said

    def cautions(self) -> list[str]:
        """A warning if too few validation points are near for a label to be clearly wrong."""
        if self.by_shares:
            poor = self.forecast is not None and self.forecast.poor
            return [*([self.forecast_text()] if poor else []), *self._shaky()]
        if not 0 < self.median_near < LEAST_CLEAR:
            return []
        near = count_of(int(self.median_near), "validation point")
        return [
            f"A typical row has {near} near, and fewer than {LEAST_CLEAR} cannot clearly speak "
            "against a label: wrong ones may only be marked inspect. More validation points would "
            "tell more (--holdout, --validation)."
        ]

    def _shaky(self) -> list[str]:
        """A warning if other random folds and trees would find other rows."""
        drawn = self.stability
        if drawn is None or not drawn.relabel < STEADY:
            return []
        return [
            "Another draw of folds and trees would mark other rows: of those that one half of the "
            f"forest would relabel, the other half relabels {percent(drawn.relabel)}, too. More "
            "--trees would tell more, or a check by hand."
        ]

    def why_look(self) -> str:
        """Why nobody should change the marked rows without a look; empty if one may."""
        if self.forecast is not None:
            return self.forecast.why_look()
        if self.false_alarms is not None and self.flagged:
            return self.false_alarms.why_look(self.flagged, self.points)
        return ""

    def count_right(self) -> int:
        """How many of the rows marked relabel are probably right as they are."""
        relabel, alarms = self.total["relabel"], self.false_alarms
        if alarms is None or not self.flagged:
            return 0
        return relabel - round(alarms.wrong_share(self.flagged, self.points) * relabel)


def explain_subject(subject: Subject) -> Findings:
    """The findings that came with the subject, else those of `explain` with codes as labels."""
    labels: tuple[Any, Any]
    if subject.findings is not None:
        return subject.findings
    data, method = subject.data, subject.valuation.method
    if method not in EXPLAINED:
        raise InputError(
            f"suggestions need a valuation by {' or '.join(EXPLAINED)}, got one by {method}"
        )
    if method == FOREST and not subject.valuation.params["folds"]:
        raise InputError(
            "suggestions need the fitted forest that came with the valuation: pass what explain "
            "finds with forest= to thresher.report.gather as findings="
        )
    features = data.splits if method == FOREST else (data.rows.array, data.rows_val.array)
    valuation, labels = subject.valuation, (data.codes, data.codes_val)
    if subject.targets is None:
        params = {**valuation.params, "classes": list(range(len(subject.classes)))}
        valuation = dataclasses.replace(valuation, params=params)
    else:
        labels = subject.targets, subject.targets_val
    judges = () if subject.mutual else (features[1], labels[1])
    with warnings.catch_warnings():  # whoever made the valuation was warned
        warnings.simplefilter("ignore", ThresherWarning)
        return explain(valuation, features[0], labels[0], *judges)


def count_suggestions(
    subject: Subject, findings: Findings | None, halves: NearPairs | None = None
) -> Suggestions | None:
    """The tally of the findings; `halves` have values by each half of the validation set."""
    if findings is None:
        return None
    if subject.codes is None:
        raise InputError("the report was made without y")
    kinds = np.array([SUGGESTIONS.index(name) for name in findings.suggestion], np.int64)
    table = np.zeros((len(subject.classes), len(SUGGESTIONS)), np.int64)
    np.add.at(table, (subject.codes, kinds), 1)
    moved = kinds == SUGGESTIONS.index("relabel")
    present = np.flatnonzero(table.sum(axis=1))
    shown = shortlist(present, table[present, 1:4].sum(axis=1), MOST_CLASSES)
    return Suggestions(
        _named(table.sum(axis=0)),
        tuple(Tally(subject.classes[code], _named(table[code])) for code in shown.tolist()),
        len(present) - len(shown),
        _moves(subject.codes[moved], findings.best_codes[moved], subject.classes),
        subject.classes,
        float(np.median(findings.near)),
        _count_false_alarms(subject),
        subject.valuation.method in {FOREST, LEAVES},
        findings.stability,
        findings.forecast,
        None if halves is None else agreement(*halves.half_values),
    )


def _named(counts: NDArray[np.int64]) -> dict[str, int]:
    return dict(zip(SUGGESTIONS, counts.tolist(), strict=True))


def _heat(share: float) -> int:
    """How dark a cell is: 0 to 3."""
    return sum(share >= least for least in (0.005, 0.05, 0.2))


def _moves(codes: Codes, best: Integers, names: tuple[str, ...]) -> tuple[Move, ...]:
    """How many points go from which label to which, by their codes."""
    pairs, counts = np.unique(np.column_stack([codes, best]), axis=0, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:MOST_MOVES]
    return tuple(
        Move(names[own], names[other], points)
        for (own, other), points in zip(pairs[often], counts[often].tolist(), strict=True)
    )


def _count_false_alarms(subject: Subject) -> FalseAlarms | None:
    """How many validation points would be flagged; None if that is not known."""
    if subject.valuation.method != "tknn-shapley" or subject.mutual:
        return None
    data, metric = subject.data, check_metric(subject.metric)
    validation = Validation(data.rows_val, data.codes_val, Classes(subject.classes), metric)
    return count_false_alarms(
        validation, subject.radius, seed=subject.seed, trusted=not subject.held_out
    )
