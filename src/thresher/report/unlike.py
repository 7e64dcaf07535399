"""The columns in which a row is unlike the others of its label, and like those of another one.

How usual a cell is among the rows with a label depends on its kind. For a number, it is the smaller
one of the shares of these rows on either side of it. For a category, it is the share of these rows
whose category is not more frequent. A column tells something if the cell is much less usual under
the row's label than under the other one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.inputs.coded import Coded
from thresher.inputs.labels import Codes
from thresher.report.phrases import brief, short, whole_percent

MOST_SENTENCES = 3  # columns of a row
MOST_COLUMNS = 256
MOST_CATEGORIES = 1000  # of a column; more are names rather than categories
TELLING = 0.4  # how usual under the one label, as a share of how usual under the other, at most
LEAST = 0.005  # what is less usual than that is all the same
EDGE = 0.1  # share of rows on one side of a number that is called low or high

Sentence = tuple[str, str]  # the cell, and what it is like


@dataclass(frozen=True)
class Usual:
    """How usual some cells are among the rows with their label, and what to say about each."""

    usual: Floats
    describe: Callable[[int, str], str]


def unlike_columns(
    columns: Mapping[str, Any],
    codes: Codes,
    names: tuple[str, ...],
    rows: Integers,
    best: Integers,
) -> list[list[Sentence]]:
    """For each of these rows, the most telling columns: the cell, and what it is like.

    `best` are the other labels that the rows are compared with; columns are numbers (floats) or
    anything else, which are categories.
    """
    found: list[list[tuple[float, Sentence]]] = [[] for _ in rows]
    own = codes[rows].astype(np.int64)
    for name, column in list(columns.items())[:MOST_COLUMNS]:
        numeric = isinstance(column, np.ndarray) and column.dtype.kind == "f"
        measure: Callable[..., Usual] = _of_numbers if numeric else _of_categories
        cells = column if numeric else Coded.of([_category(cell) for cell in column])
        if isinstance(cells, Coded) and len(cells.distinct) > MOST_CATEGORIES:
            continue
        mine, theirs = (measure(cells, codes, rows, labels) for labels in (own, best))
        for place, row in enumerate(rows.tolist()):
            ratio = (mine.usual[place] + LEAST) / (theirs.usual[place] + LEAST)
            if not ratio < TELLING or (numeric and mine.usual[place] > EDGE):
                continue  # a number that is usual under its own label is no reason
            cell = f"{name}: {_written(column[row])}"
            both = (
                mine.describe(place, names[own[place]]),
                theirs.describe(place, names[best[place]]),
            )
            found[place].append((float(ratio), (cell, ", ".join(both))))
    return [[sentence for _, sentence in sorted(each)[:MOST_SENTENCES]] for each in found]


def _of_numbers(column: Floats, codes: Codes, rows: Integers, labels: Integers) -> Usual:
    """How usual numbers are; a missing one is neither usual nor unusual."""
    cells = column[rows]
    below, above = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for label in np.unique(labels).tolist():
        members = column[codes == label]
        ordered = np.sort(members[~np.isnan(members)])
        some = np.flatnonzero((labels == label) & ~np.isnan(cells))
        if len(ordered):
            below[some] = np.searchsorted(ordered, cells[some], side="left") / len(ordered)
            above[some] = 1 - np.searchsorted(ordered, cells[some], side="right") / len(ordered)

    def describe(place: int, label: str) -> str:
        if below[place] >= 1 - EDGE:
            return f"higher than {_most(below[place])} {label} rows"
        if above[place] >= 1 - EDGE:
            return f"lower than {_most(above[place])} {label} rows"
        return f"usual for {label}"

    return Usual(1 - np.fmax(below, above), describe)


def _of_categories(column: Coded, codes: Codes, rows: Integers, labels: Integers) -> Usual:
    cells = column.codes[rows]
    shares, usual = np.zeros(len(rows)), np.zeros(len(rows))
    for label in np.unique(labels).tolist():
        members = column.codes[codes == label]
        counts = np.bincount(members, minlength=len(column.distinct)) / max(len(members), 1)
        some = np.flatnonzero(labels == label)
        shares[some] = counts[cells[some]]
        usual[some] = (counts[None] * (counts[None] <= shares[some, None])).sum(axis=1)

    def describe(place: int, label: str) -> str:
        return f"in {whole_percent(shares[place])} of {label} rows"

    return Usual(usual, describe)


def _most(share: float) -> str:
    return "all other" if share == 1 else f"{math.floor(100 * share)}% of"


def _category(cell: Any) -> str:
    return "missing" if cell is None or cell != cell else str(cell)  # noqa: PLR0124


def _written(cell: Any) -> str:
    if isinstance(cell, float | np.floating):
        return "missing" if np.isnan(cell) else short(float(cell))
    return brief(_category(cell))
