"""The rows with the lowest values, with all that is known of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.findings import Findings
from thresher.report.phrases import brief, percent, short
from thresher.report.subject import Subject

MOST_ROWS = 1000
TEXTS = ("id", "label", "suggestion", "best label", "owner")
HINTS = {
    "near": "validation points within the radius",
    "agree": "share of the near validation points with the row's label",
    "best label": "the other label under which the row would be worth most",
    "best value": "what the row would be worth under that label",
    "percentile": "share of rows with a lower value",
    "standard error": "how far the value may be off because coalitions were sampled",
}
WRITTEN: dict[str, Callable[[Any], str]] = {
    "row": str,
    "near": str,
    "agree": lambda share: "" if share is None else percent(share),
    "percentile": lambda part: f"{part:.2f}",
}

Cell = str | int | float | None


@dataclass(frozen=True)
class Column:
    """A column of the table: its name, "text" or "number", and how a number is written."""

    name: str
    kind: str
    hint: str
    text: Callable[[Any], str]


@dataclass(frozen=True)
class LowestRows:
    """A table: names of columns, and one row a point, that of lowest value first."""

    columns: tuple[str, ...]  # "row" and "value" always, others as far as they are known
    features: int  # how many of the last columns are columns of the data
    rows: tuple[tuple[Cell, ...], ...]
    total: int  # points in all
    name: ClassVar[str] = "rows"
    title: ClassVar[str] = "Lowest values"

    def written_columns(self) -> list[Column]:
        """The columns, and how the page writes them."""
        first = len(self.columns) - self.features
        found = []
        for place, name in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            data = place >= first
            text = any(isinstance(cell, str) for cell in cells) if data else name in TEXTS
            write = WRITTEN[name] if name in WRITTEN and not data else writer(cells)
            hint = "" if data else HINTS.get(name, "")
            found.append(Column(name, "text" if text else "number", hint, write))
        return found


def lowest_rows(subject: Subject, findings: Findings | None, most: int = MOST_ROWS) -> LowestRows:
    """The `most` rows of lowest value."""
    rows = subject.order[:most]
    values = subject.values
    below = np.searchsorted(values[subject.order], values[rows], side="left")
    columns: dict[str, list[Any]] = {"row": [subject.number(row) for row in rows.tolist()]}
    if subject.ids is not None:
        columns["id"] = [subject.name(row) for row in rows.tolist()]
    if subject.codes is not None:
        columns["label"] = [subject.label(row) for row in rows.tolist()]
    if findings is not None:
        columns["suggestion"] = [findings.suggestion[row] for row in rows]
        columns["best label"] = [_best_label(subject, findings, row) for row in rows.tolist()]
    columns["value"] = values[rows].tolist()
    errors = subject.valuation.standard_errors
    if errors is not None:
        columns["standard error"] = errors[rows].tolist()
    if findings is not None:
        if findings.best_value is not None:
            columns["best value"] = findings.best_value[rows].tolist()
        columns["near"] = findings.near[rows].tolist()
        columns["agree"] = [None if np.isnan(x) else float(x) for x in findings.agree[rows]]
    columns["percentile"] = (100.0 * below / len(values)).tolist()
    if subject.valuation.owners is not None:
        columns["owner"] = [brief(subject.valuation.owners[row]) for row in rows]
    named = {name: [_cell(entries[row]) for row in rows] for name, entries in subject.shown.items()}
    taken = [name if name not in columns else f"{name} (column)" for name in named]
    cells = tuple(zip(*columns.values(), *named.values(), strict=True))
    return LowestRows((*columns, *taken), len(named), cells, len(values))


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
        return f"{cell:.{decimals}f}" if fits else short(cell)

    return write


def _best_label(subject: Subject, findings: Findings, row: int) -> str | None:
    code = int(findings.best_codes[row])
    return subject.classes[code] if findings.near[row] and len(subject.classes) > 1 else None


def _cell(entry: Any) -> Cell:
    if isinstance(entry, np.generic):
        entry = entry.item()
    return entry if entry is None or isinstance(entry, int | float) else brief(entry)
