"""The rows to look at, with all that is known about them: the review list, or the lowest values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Integers
from thresher.findings.label_findings import Findings
from thresher.findings.review_list import MOST, review_list
from thresher.findings.target_findings import TargetFindings
from thresher.report.phrases import brief, short, whole_percent
from thresher.report.subject import Subject

MOST_ROWS = 1000
LEAST_ROWS = 20  # that are shown where none is marked
COLUMNS = (  # in the order of the table, as far as they are known
    "row", "id", "target", "label", "suggestion", "best label", "expected", "score", "value",
    "standard error", "best value", "near", "agree", "best share", "usual", "percentile", "owner",
)  # fmt: skip
TEXTS = ("id", "label", "suggestion", "best label", "owner")
DECIMAL = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?")  # a number, and no code such as 007
KINDS = {"tknn-shapley": 0, "knn-shapley": 1}


WRITTEN: dict[str, Callable[[Any], str]] = {
    "row": str,
    "score": lambda score: f"{score:.2f}",
    "near": lambda count: f"{count:,.0f}",
    "agree": whole_percent,
    "best share": whole_percent,
    "percentile": lambda part: f"{part:.0f}",
}

Cell = str | int | float | None


@dataclass(frozen=True)
class Column:
    """A column of the table: its name, "text" or "number", and how a number is written."""

    name: str
    kind: str
    text: Callable[[Any], str]
    data: bool  # whether it is a column of the data


@dataclass(frozen=True)
class LowestRows:
    """A table: names of columns, and one row per point, the one to look at first on top."""

    columns: tuple[str, ...]  # "row" and "value" always, others as far as they are known
    features: int  # how many of the last columns are columns of the data
    rows: tuple[tuple[Cell, ...], ...]
    total: int  # points in all
    kind: int = 0  # by a radius, by nearest neighbors, or by a forest
    marked: int | None = None  # rows that are worth a look, if they are what is listed
    places: tuple[int, ...] = ()  # of the listed rows among all points
    scored: bool = False  # whether rows have scores
    name: ClassVar[str] = "rows"

    @property
    def title(self) -> str:
        """The title in the list of sections."""
        return "Lowest values" if self.marked is None else "Rows to review"

    def place_of_best(self) -> int | None:
        """The place of the column that says what the label or the number should be."""
        names = ("best label", "expected")
        return next((self.columns.index(name) for name in names if name in self.columns), None)

    def written_columns(self) -> list[Column]:
        """The columns, and how the page writes them."""
        first = len(self.columns) - self.features
        found = []
        for place, name in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            data = place >= first
            text = any(isinstance(cell, str) for cell in cells) if data else name in TEXTS
            write = WRITTEN[name] if name in WRITTEN and not data else writer(cells)
            found.append(Column(name, "text" if text else "number", write, data))
        return found


def lowest_rows(subject: Subject, findings: Findings | None) -> LowestRows:
    """The rows to review, if there are findings; else those with the lowest values."""
    rows, marked = subject.order[:MOST_ROWS], None
    if findings is not None:
        rows, marked = _reviewed(subject, findings)
    known = _about_values(subject, rows)
    if findings is not None:
        known |= _about_findings(subject, findings, rows)
    columns = {name: known[name] for name in COLUMNS if known.get(name) is not None}
    named = {name: _cells(entries, rows) for name, entries in subject.shown.items()}
    taken = [name if name not in columns else f"{name} (column)" for name in named]
    cells = tuple(zip(*columns.values(), *named.values(), strict=True))
    kind = KINDS.get(subject.valuation.method, 2)
    scored = findings is not None and findings.score is not None
    return LowestRows(
        (*columns, *taken), len(named), cells, len(subject), kind, marked, tuple(rows.tolist()),
        scored,
    )  # fmt: skip


def _about_values(subject: Subject, rows: Integers) -> dict[str, list[Cell] | None]:
    """The columns of any valuation; None for those that are not known."""
    values, owners, listed = subject.values, subject.valuation.owners, rows.tolist()
    below = np.searchsorted(values[subject.order], values[rows], side="left")
    labeled = subject.codes is not None and subject.targets is None
    return {
        "row": [subject.number(row) for row in listed],
        "id": None if subject.ids is None else [subject.name(row) for row in listed],
        "target": _some(subject.targets, rows),
        "label": [subject.label(row) for row in listed] if labeled else None,
        "value": _some(values, rows),
        "standard error": _some(subject.valuation.standard_errors, rows),
        "percentile": (100.0 * below / len(values)).tolist(),
        "owner": None if owners is None else [brief(owners[row]) for row in listed],
    }


def _about_findings(
    subject: Subject, findings: Findings, rows: Integers
) -> dict[str, list[Cell] | None]:
    """The columns of findings; None for those that are not known."""
    found = {
        "suggestion": [findings.suggestion[row] for row in rows],
        "score": _some(findings.score, rows),
        "best value": _some(findings.best_value, rows),
        "near": _some(findings.near, rows),
    }
    if isinstance(findings, TargetFindings):
        more = {"expected": _some(findings.expected, rows), "usual": _some(findings.usual, rows)}
        return found | more
    return found | {
        "best label": [_best_label(subject, findings, row) for row in rows.tolist()],
        "agree": _some(findings.agree, rows),
        "best share": _some(findings.best_share, rows),
    }


def _some(column: Any, rows: Integers) -> list[Cell] | None:
    return None if column is None else _cells(column, rows)


def _reviewed(subject: Subject, findings: Findings) -> tuple[Integers, int]:
    """The part of the review list that a person would read, and how long the whole list is."""
    found = review_list(findings, [] if subject.copies is None else subject.copies.conflicts())
    if len(found):
        return found[:MOST], len(found)
    doubt = findings.values if findings.score is None else findings.score
    return np.argsort(doubt, kind="stable")[:LEAST_ROWS], 0


def writer(cells: Sequence[Cell]) -> Callable[[Any], str]:
    """How the numbers of a column are written: as many decimals as the largest needs.

    Examples
    --------
    >>> write = writer([-1.83123, 0.5, None])
    >>> write(-1.83123), write(0.5), write(None), writer([1, 2000])(2000)
    ('-1.831', '0.500', '', '2,000')
    """
    numbers = [abs(cell) for cell in cells if isinstance(cell, float) and math.isfinite(cell)]
    largest = max(numbers, default=0.0)
    if not 1e-6 < largest < 1e6:
        return short
    decimals = min(max(3 - math.floor(math.log10(largest)), 0), 9)

    def write(cell: Any) -> str:
        fits = isinstance(cell, float) and math.isfinite(cell)
        return f"{cell:,.{decimals}f}" if fits else short(cell)

    return write


def _best_label(subject: Subject, findings: Findings, row: int) -> str | None:
    code = int(findings.best_codes[row])
    return subject.classes[code] if findings.near[row] and len(subject.classes) > 1 else None


def _cells(entries: Sequence[Any], rows: Integers) -> list[Cell]:
    """The cells of some rows; decimals that are text, as in a CSV file, become numbers."""
    cells = [_cell(entries[row]) for row in rows]
    texts = [cell for cell in cells if isinstance(cell, str)]
    if not any("." in text for text in texts) or not all(map(DECIMAL.fullmatch, texts)):
        return cells
    return [float(cell) if isinstance(cell, str) else cell for cell in cells]


def _cell(entry: Any) -> Cell:
    if isinstance(entry, np.generic):
        entry = entry.item()
    if entry is None or (isinstance(entry, float) and math.isnan(entry)):
        return None
    return entry if isinstance(entry, int | float) else brief(entry)
