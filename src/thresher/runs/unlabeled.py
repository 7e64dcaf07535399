"""Rows without a label: they are not valued, and get the label that the others suggest."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import rows_text
from thresher.coded import Coded
from thresher.errors import InputError, option
from thresher.labels import is_missing
from thresher.runs.settings import Settings
from thresher.spelling import spelled
from thresher.tables.columns import Columns, entries_of
from thresher.tables.reader import Table

TOTALS = ("total", "totals", "grand total", "subtotal", "sum", "summe", "gesamt", "average")
NEIGHBORS = 10  # that vote, where rows have distances

Mask = NDArray[np.bool_]


def missing_labels(settings: Settings, table: Table, label: str) -> Mask:
    """Which rows have no label, where these are to be skipped; else none."""
    found = np.zeros(len(table), np.bool_)
    if settings.unlabeled is not None and label in table.data.column_names:
        found[:] = [is_missing(entry) for entry in entries_of(table, label, "label")]
    return found


def check_labeled(settings: Settings, table: Table) -> None:
    """Refuse labels that are missing, unless these rows are to be skipped."""
    label = settings.label
    if settings.unlabeled is not None or label not in table.data.column_names:
        return
    empty = np.flatnonzero(table.data.column(label).is_null().to_numpy())
    if len(empty) and not settings.numbers:  # numbers say it in their own words
        where = f"{table.name} column {label!r} has missing labels in {rows_text(empty)}"
        if settings.in_parts:
            raise InputError(f"{where}: drop or fill those rows")
        total = _total(table, int(empty[-1]))
        raise InputError(
            f"{where}: {total}fill them in, or get them suggested by {option('unlabeled', 'skip')}"
        )


def _total(table: Table, row: int) -> str:
    """What to do about the last row where it adds up the others, as spreadsheets have it."""
    cells = table.data.slice(row, 1).to_pylist()[0].values()
    words = [cell for cell in cells if isinstance(cell, str) and spelled(cell).strip(":") in TOTALS]
    if row < len(table) - 1 or not words:
        return ""
    return f"row {row} ({words[0]!r}) seems to add up the others, delete it; otherwise "


def with_labels(settings: Settings, table: Table, label: str) -> Table:
    """A table without the rows that are to be skipped."""
    blank = missing_labels(settings, table, label)
    return table if not blank.any() else _rows(table, ~blank)


def unlabeled_columns(points: Columns, settings: Settings, table: Table) -> Columns | None:
    """The rows without a label, with the features of the points; None without any."""
    blank = missing_labels(settings, table, settings.label)
    if not blank.any():
        return None
    some = _rows(table, blank)
    ids = None if settings.id is None else tuple(entries_of(some, settings.id, "id"))
    return dataclasses.replace(
        points, labels=tuple(range(len(some))), features=some.data.select(list(points.names)),
        ids=ids, owners=None, rows=np.flatnonzero(blank),
    )  # fmt: skip


def suggest_labels(
    settings: Settings, columns: Columns, X: NDArray[Any], points: NDArray[Any], labels: Any
) -> dict[str, Any]:
    """The rows with a suggested label each, and the share of the votes that it has."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neighbors import KNeighborsClassifier

    known = Coded.of(labels)
    if settings.method == "forest":
        model = RandomForestClassifier(settings.trees, random_state=settings.seed)
    else:
        count = min(NEIGHBORS, len(points))
        model = KNeighborsClassifier(count, metric=settings.metric, algorithm="brute")
    shares = model.fit(points, known.codes).predict_proba(X)
    best = model.classes_[shares.argmax(axis=1)]
    found: dict[str, Any] = {"row": columns.rows}
    if columns.ids is not None:
        found["id"] = list(columns.ids)
    found["best_label"] = [known.distinct[code] for code in best]
    return found | {"share": shares.max(axis=1)}


def unlabeled_path(out: Path) -> Path:
    """Where suggested labels go, beside the table of values.

    Examples
    --------
    >>> unlabeled_path(Path("values.csv")).name
    'values-unlabeled.csv'
    """
    return out.with_name(f"{out.stem}-unlabeled{out.suffix}")


def _rows(table: Table, which: Mask) -> Table:
    return dataclasses.replace(table, data=table.data.filter(which))
