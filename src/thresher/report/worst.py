"""The rows with the lowest values, with all that is known of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.findings import Findings
from thresher.report.subject import Subject
from thresher.report.words import brief

MOST_ROWS = 1000

Cell = str | int | float | None


@dataclass(frozen=True)
class Worst:
    """A table: names of columns, and one row a point, that of lowest value first.

    Parameters
    ----------
    columns
        "row" (where it comes from, from 0) and "value" always, others as far as they are known.
    features
        How many of the last columns are columns of the data.
    rows
        The cells; None where there is nothing to say.
    total
        How many points there are in all.
    """

    columns: tuple[str, ...]
    features: int
    rows: tuple[tuple[Cell, ...], ...]
    total: int


def worst_rows(subject: Subject, findings: Findings | None, most: int = MOST_ROWS) -> Worst:
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
        columns["best value"] = findings.best_value[rows].tolist()
        columns["near"] = findings.near[rows].tolist()
        columns["agree"] = [None if np.isnan(x) else float(x) for x in findings.agree[rows]]
    columns["percentile"] = (100.0 * below / len(values)).tolist()
    if subject.valuation.owners is not None:
        columns["owner"] = [brief(subject.valuation.owners[row]) for row in rows]
    named = {name: [_cell(entries[row]) for row in rows] for name, entries in subject.shown.items()}
    taken = [name if name not in columns else f"{name} (column)" for name in named]
    return Worst(
        (*columns, *taken),
        len(named),
        tuple(zip(*columns.values(), *named.values(), strict=True)),
        len(values),
    )


def _best_label(subject: Subject, findings: Findings, row: int) -> str | None:
    code = int(findings.best_codes[row])
    return subject.classes[code] if findings.near[row] and len(subject.classes) > 1 else None


def _cell(entry: Any) -> Cell:
    if isinstance(entry, np.generic):
        entry = entry.item()
    return entry if entry is None or isinstance(entry, int | float) else brief(entry)
