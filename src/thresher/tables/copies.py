"""Copies: rows that have the same features as others, or nearly the same.

Two rows are exact copies if all of their features are equal. They are near copies if every number
falls into the same cell of a fine grid, a hundredth of the column's usual spread wide, and the rest
is equal. There are two grids, the second shifted by half a cell, so that two numbers that are close
together seldom lie apart in both. Rows may also share a cell by chance, and would do so just as
often if each column were shuffled. So near copies are reported only if there are more than that.

The time grows in proportion to the cells of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from thresher.array_types import Array, Floats, Integers, LongWords
from thresher.errors import InputError
from thresher.inputs.coded import Coded
from thresher.tables.cell_values import categories, numbers, stated_kind
from thresher.tables.column_profile import is_text, plain_type
from thresher.tables.columns import Columns

ODD = np.uint64(0x9E3779B97F4A7C15)
STEP = 0.01  # of a column's spread: the width of a cell
WITHIN = (0.05, 0.95)  # quantiles between which lies the usual spread
MOST_COLUMNS = 64  # of tables in which near copies are looked for
BEYOND = 3.0  # times as many near copies as in a shuffled table


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows are copies of each other."""

    # exact, near: for each row the first row of its group: of exact copies, and of exact or
    # near ones. A row without copies is a group of its own.
    exact: Integers
    near: Integers
    codes: Integers  # the number of each row's label

    @classmethod
    def of(cls, columns: Columns, *, near: bool = True) -> Copies:
        """The copies in a table; near ones are looked for among at most 64 columns.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"x": [1.0, 2.0, 1.0, 5.0], "c": ["a", "b", "a", "a"]})
        >>> found = Copies.of(Columns(("cat", "dog", "dog", "cat"), table))
        >>> found.counts.tolist(), found.copy_of.tolist(), found.conflicts()
        ([1, 0, 1, 0], [-1, -1, 0, -1], [[0, 2]])
        """
        codes = Coded.of(columns.labels).codes.astype(np.int64)
        if not near or len(columns.names) > MOST_COLUMNS:
            exact = _first_rows([row_marks(columns)])
            return cls(exact, exact, codes)
        random, rows = np.random.default_rng(0), len(columns)
        same, cells, shuffled = Mix(rows), [Mix(rows), Mix(rows)], [Mix(rows), Mix(rows)]
        for name in columns.names:
            values, order = column_numbers(columns, name), random.permutation(rows)
            same.add(column := _marks(columns, name, values))
            width = 0.0 if values is None else _cell_width(values)
            for shift, cell, chance in zip((0.0, 0.5), cells, shuffled, strict=True):
                if values is not None and width > 0:
                    column = _number_marks(np.floor(values / width + shift))
                cell.add(column)
                chance.add(column[order])
        exact = _first_rows([same.marks])
        both = _first_rows([same.marks, *(cell.marks for cell in cells)])
        by_chance = _first_rows([each.marks for each in shuffled])
        found, chances, alike = (int((_sizes(each) > 1).sum()) for each in (both, by_chance, exact))
        return cls(exact, both if found - alike > BEYOND * chances else exact, codes)

    @cached_property
    def counts(self) -> Integers:
        """How many other rows are exact copies of each row."""
        return _sizes(self.exact) - 1

    @cached_property
    def copy_of(self) -> Integers:
        """The first row that a row is an exact or near copy of; -1 if it is not a copy."""
        itself = np.arange(len(self.near))
        return np.where(self.near == itself, -1, self.near)

    @property
    def exact_rows(self) -> int:
        """How many rows have exact copies."""
        return int((self.counts > 0).sum())

    @property
    def near_rows(self) -> int:
        """How many rows have near copies, but no exact ones."""
        return int(((_sizes(self.near) > 1) & (self.counts == 0)).sum())

    def conflicts(self) -> list[list[int]]:
        """Groups of exact copies that do not all carry the same label."""
        return self._apart(self.exact)

    def near_conflicts(self) -> list[list[int]]:
        """Groups of near copies that do not all carry the same label; not those of exact ones."""
        found = self._apart(self.near)
        return [group for group in found if len(set(self.exact[group].tolist())) > 1]

    def _apart(self, group: Integers) -> list[list[int]]:
        apart = np.zeros(len(group), np.bool_)
        apart[group[self.codes != self.codes[group]]] = True
        rows = np.flatnonzero(apart[group])
        order = rows[np.argsort(group[rows], kind="stable")]
        ends = np.flatnonzero(np.diff(group[order])) + 1
        return [each.tolist() for each in np.split(order, ends)] if len(order) else []


def row_marks(columns: Columns) -> LongWords:
    """A number for each row, the same where all features are the same.

    Numbers are compared as numbers, so 1 and 1.0 are the same; missing ones are all alike.
    """
    found = Mix(len(columns))
    for name in columns.names:
        found.add(_marks(columns, name, column_numbers(columns, name)))
    return found.marks


class Mix:
    """A number for each row that depends on every bit of every column."""

    def __init__(self, rows: int) -> None:
        self.marks: LongWords = np.zeros(rows, np.uint64)

    def add(self, column: LongWords) -> None:
        """Take in a column."""
        marks = self.marks * ODD + column
        marks ^= marks >> np.uint64(32)
        marks *= ODD
        marks ^= marks >> np.uint64(29)
        self.marks = marks


def _first_rows(marks: list[LongWords]) -> Integers:
    """For each row, the first row that it is connected to by equal marks of any kind."""
    first = []
    for each in marks:
        _, rows, group = np.unique(each, return_index=True, return_inverse=True)
        first.append(rows[group])
    if len(first) == 1:
        return first[0]
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    rows, n = np.arange(len(first[0])), len(first[0])
    edges = np.tile(rows, len(first)), np.concatenate(first)
    graph = coo_matrix((np.ones(len(edges[0]), np.bool_), edges), shape=(n, n))
    _, group = connected_components(graph, directed=False)
    _, leader = np.unique(group, return_index=True)
    return leader[group]


def _sizes(first: Integers) -> Integers:
    """How many rows each row's group has."""
    return np.bincount(first, minlength=len(first))[first]


def _cell_width(values: Floats) -> float:
    """How wide the cells of a column's grid are; 0 where most numbers are the same."""
    known = values[~np.isnan(values)]
    low, high = np.quantile(known, WITHIN) if len(known) else (0.0, 0.0)
    return STEP * float(high - low)


def _marks(columns: Columns, name: str, values: Floats | None) -> LongWords:
    """For each row a number, the same where the entries are the same."""
    return _text_marks(columns, name) if values is None else _number_marks(values)


def column_numbers(columns: Columns, name: str) -> Floats | None:
    """A column as numbers; None if it holds categories or text."""
    if name in columns.categorical or name == columns.text:
        return None
    try:
        return numbers(columns, name, stated_kind(columns, name) or "number")
    except InputError:
        if is_text(plain_type(columns.features.column(name))):
            return None
        raise


def _number_marks(values: Array) -> LongWords:
    found = values + 0.0  # no -0
    found[np.isnan(found)] = np.nan
    return found.view(np.uint64)


def _text_marks(columns: Columns, name: str) -> LongWords:
    entries = categories(columns, name)
    codes = pc.fill_null(pc.index_in(entries, value_set=pc.unique(entries)), 0)
    return np.asarray(codes.to_numpy(), np.uint64)
