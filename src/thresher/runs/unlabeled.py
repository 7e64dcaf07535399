"""Rows without a label: they are not valued, and get the label that the others suggest."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from thresher.array_types import Array, Flags, Floats
from thresher.errors import InputError, option
from thresher.inputs.checks import rows_text
from thresher.inputs.coded import Coded
from thresher.inputs.labels import is_missing
from thresher.inputs.spelling import spelled
from thresher.runs.settings import Data, Settings
from thresher.tables.columns import Columns, entries_of
from thresher.tables.reader import Table

TOTALS = ("total", "totals", "grand total", "subtotal", "sum", "summe", "gesamt", "average")
NEIGHBORS = 10  # that vote, where rows have distances


def missing_labels(settings: Settings, table: Table, label: str) -> Flags:
    """Which rows have no label, if such rows are to be skipped; otherwise none."""
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
        if settings.in_parts or settings.players == "owners":
            raise InputError(f"{where}: drop or fill those rows")
        total = _total(table, int(empty[-1]))
        raise InputError(
            f"{where}: {total}fill them in, or have them suggested with "
            f"{option('unlabeled', 'skip')}"
        )


def _total(table: Table, row: int) -> str:
    """What to do about a last row that seems to add up the others, as in spreadsheets."""
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
    """The rows without a label, with the features of the points; None if there are none."""
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
    settings: Settings, columns: Columns, X: Array, data: Data, forest: Any = None
) -> dict[str, Any]:
    """A suggested label for each row, and its share of the votes.

    Beside it are a label, which is missing, and a suggestion, so that `thresher clean` applies it.
    A `forest` is the one that values the points: the label shares in a row's leaves, over all
    trees, since none of them was grown from it.
    """
    known = Coded.of(data[1])
    if forest is not None:
        shares = _leaf_shares(forest, X, data[0], known)
    else:
        shares = _near_shares(settings, X, data[0], known)
    found: dict[str, Any] = {"row": columns.rows}
    if columns.ids is not None:
        found["id"] = list(columns.ids)
    found["label"] = [None] * len(columns)
    found["best_label"] = [known.distinct[code] for code in shares.argmax(axis=1)]
    return found | {"share": shares.max(axis=1), "suggestion": ["relabel"] * len(columns)}


def _leaf_shares(forest: Any, X: Array, points: Array, known: Coded) -> Floats:
    """The mean over the trees of the label shares of the points in the leaf of each row."""
    classes = len(known.distinct)
    rows, others = (forest.rows(forest.encode("X", x), everywhere=True) for x in (X, points))
    total = np.zeros((len(X), classes))
    for tree, size in enumerate(forest.sizes):
        cells = others.leaves(tree).astype(np.int64) * classes + known.codes
        counts = np.bincount(cells, minlength=size * classes).reshape(-1, classes)
        mine = counts[rows.leaves(tree)]
        total += mine / np.maximum(1, mine.sum(axis=1, keepdims=True))
    return total / len(forest.trees)


def _near_shares(settings: Settings, X: Array, points: Array, known: Coded) -> Floats:
    """The label shares of the nearest points."""
    from sklearn.neighbors import KNeighborsClassifier

    count = min(NEIGHBORS, len(points))
    model = KNeighborsClassifier(count, metric=settings.metric, algorithm="brute")
    found = np.zeros((len(X), len(known.distinct)))
    model.fit(points, known.codes)
    found[:, model.classes_] = model.predict_proba(X)
    return found


def unlabeled_path(out: Path) -> Path:
    """Where suggested labels go, beside the table of values.

    Examples
    --------
    >>> unlabeled_path(Path("values.csv")).name
    'values-unlabeled.csv'
    """
    return out.with_name(f"{out.stem}-unlabeled{out.suffix}")


def _rows(table: Table, which: Flags) -> Table:
    return dataclasses.replace(
        table, data=table.data.filter(which), kept=table.numbers[np.flatnonzero(which)]
    )
