"""What is suggested, by class: how often, and which label instead of which."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ThresherWarning
from thresher.findings import SUGGESTIONS, Findings, explain
from thresher.report.subject import Data, Subject

MOST_CLASSES = 30
MOST_MOVES = 1000


@dataclass(frozen=True)
class Tally:
    """How often each suggestion was made for points of one label."""

    label: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Move:
    """So many points labeled `own` are suggested to be `other`."""

    own: str
    other: str
    points: int


@dataclass(frozen=True)
class Suggested:
    """All suggestions, counted.

    Parameters
    ----------
    total
        Of all points.
    classes
        By label; where there are many, those with the most that are not "keep".
    left_out
        How many further labels there are.
    moves
        Which label is suggested instead of which, the most frequent first.
    """

    total: dict[str, int]
    classes: tuple[Tally, ...]
    left_out: int
    moves: tuple[Move, ...]

    @property
    def suspicious(self) -> int:
        """How many points are suggested to be relabeled, dropped or inspected."""
        return sum(self.total[name] for name in ("relabel", "drop", "inspect"))


def explain_subject(subject: Subject, data: Data) -> Findings:
    """The findings that came with the subject, else those of `explain` with codes as labels."""
    if subject.findings is not None:
        return subject.findings
    params = {**subject.valuation.params, "classes": list(range(len(subject.classes)))}
    coded = dataclasses.replace(subject.valuation, params=params)
    with warnings.catch_warnings():  # whoever made the valuation was warned
        warnings.simplefilter("ignore", ThresherWarning)
        return explain(coded, data.rows.array, data.codes, data.rows_val.array, data.codes_val)


def count_suggestions(subject: Subject, data: Data, findings: Findings) -> Suggested:
    """The tally of the findings."""
    kinds = np.array([SUGGESTIONS.index(name) for name in findings.suggestion], np.int64)
    classes = len(subject.classes)
    table = np.zeros((classes, len(SUGGESTIONS)), np.int64)
    np.add.at(table, (data.codes, kinds), 1)
    present = np.flatnonzero(table.sum(axis=1))
    worst = present
    if len(present) > MOST_CLASSES:
        odd = table[present, 1:4].sum(axis=1)
        worst = np.sort(present[np.argsort(-odd, kind="stable")[:MOST_CLASSES]])
    return Suggested(
        _named(table.sum(axis=0)),
        tuple(Tally(subject.classes[code], _named(table[code])) for code in worst.tolist()),
        len(present) - len(worst),
        _moves(subject, data, findings, kinds == SUGGESTIONS.index("relabel")),
    )


def _named(counts: NDArray[np.int64]) -> dict[str, int]:
    return dict(zip(SUGGESTIONS, counts.tolist(), strict=True))


def _moves(
    subject: Subject, data: Data, findings: Findings, moved: NDArray[np.bool_]
) -> tuple[Move, ...]:
    best = findings.best_codes
    pairs, counts = np.unique(
        np.column_stack([data.codes[moved], best[moved]]), axis=0, return_counts=True
    )
    often = np.argsort(-counts, kind="stable")[:MOST_MOVES].tolist()
    return tuple(
        Move(subject.classes[pairs[i, 0]], subject.classes[pairs[i, 1]], int(counts[i]))
        for i in often
    )
