"""Labels, ids, owners and features of a table."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.errors import InputError, option
from thresher.inputs.checks import rows_text
from thresher.inputs.coded import Coded
from thresher.inputs.labels import is_missing
from thresher.inputs.spelling import missing, whole_number
from thresher.inputs.time_labels import arrow_entries
from thresher.tables.cell_format import CellFormat, entries_without
from thresher.tables.label_column import check_classes, check_target_cells
from thresher.tables.label_files import read_label_file
from thresher.tables.reader import Table

INDEX = re.compile(r"__index_level_\d+__")  # how pandas stores an index without a name


@dataclass(frozen=True, eq=False)
class Columns:
    """What the columns of a table are for."""

    labels: Sequence[Hashable]  # one a row, as are ids and owners
    features: pa.Table  # in order; a column of text comes last
    ids: tuple[Hashable, ...] | None = None
    owners: tuple[Hashable, ...] | None = None
    categorical: tuple[str, ...] = ()  # the features that are categories
    text: str | None = None  # the one that is text
    images: tuple[Hashable, ...] | None = None  # names of picture files
    source: str = "the table"  # what messages call it
    written: bool = False  # whether labels are from text, so that integers are only how they look
    cells: CellFormat = field(default_factory=CellFormat)  # how they say numbers and dates
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # their numbers

    def __post_init__(self) -> None:
        if not len(self.rows):
            object.__setattr__(self, "rows", np.arange(len(self.labels)))

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(self.features.column_names)

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Columns:
        """Some rows, by number or by a boolean mask; messages keep their numbers in the table."""
        wanted = np.asarray(rows)
        where = np.flatnonzero(wanted) if wanted.dtype.kind == "b" else wanted.astype(np.int64)

        def some(entries: tuple[Hashable, ...] | None) -> Any:
            return None if entries is None else tuple(entries[row] for row in where)

        return dataclasses.replace(
            self, labels=Coded.of(self.labels).take(where), features=self.features.take(where),
            ids=some(self.ids), owners=some(self.owners), images=some(self.images),
            rows=self.rows[where],
        )  # fmt: skip


def choose_columns(
    table: Table, *, label: str, features: Sequence[str] | None = None,
    id: str | None = None, owner: str | None = None,  # noqa: A002
    categorical: Sequence[str] = (), text: str | None = None, image: str | None = None,
    ignore: Sequence[str] = (), cells: CellFormat | None = None, task: str | None = None,
) -> Columns:  # fmt: skip
    """What the columns of a table are for.

    Parameters
    ----------
    table
        The table.
    label
        The column of labels. For an .npy file, a file of labels: .npy, or .csv or .txt with one
        label per line.
    features
        Names of columns, or patterns such as "x*" and "sensor_??". If not given, all columns that
        no other argument names.
    id, owner, text, image
        The columns of ids, of owners, of texts to embed, and of picture files to show.
    categorical, ignore
        Features that are categories, and columns to leave out: names or patterns.
    cells
        How cells say numbers and dates; its columns of dates are names or patterns.
    task
        "classification" if even numbers that are not whole are classes, "regression" if labels are
        numbers to predict.

    Returns
    -------
    Columns
        Labels of text are integers if all are plainly written as such. Ids of text stay text.

    Raises
    ------
    InputError
        If a column is not there, if labels or ids are missing, if ids are not distinct, or if the
        labels look like ids or numbers rather than classes.

    Examples
    --------
    >>> from pathlib import Path
    >>> data = pa.table({"x1": [0.5, 1.5], "x2": [1, 2], "note": ["a", "b"], "y": ["cat", "dog"]})
    >>> found = choose_columns(Table(data, (Path("a.csv"),), "csv"), label="y", features=["x*"])
    >>> found.labels, found.names
    (('cat', 'dog'), ('x1', 'x2'))
    """
    labels, written = _labels(table, label, task, cells or CellFormat())
    roles = {} if table.kind == "npy" else {label: "label"}
    for role, name in (("id", id), ("owner", owner), ("text", text), ("image", image)):
        if name is not None:
            column_of(table, name, role)
            _add_role(roles, name, role)
    for name in _matching(table, ignore, "ignore"):
        if name in ignore or name not in roles:  # a pattern spares what has a role
            _add_role(roles, name, "ignore")
    names = _feature_names(table, features, roles)
    kinds = _matching(table, categorical, "categorical")
    if strange := [name for name in kinds if name not in names]:
        raise InputError(f"{option('categorical')} {strange[0]!r} is not one of the features")
    chosen = [*names, *([] if text is None else [text])]
    if not chosen:
        raise InputError(
            f"{table.name} has no columns left as features: name some with {option('features')}"
        )
    return Columns(
        labels=labels,
        features=pa.table({name: column_of(table, name, "features") for name in chosen}),
        ids=None if id is None else check_ids(table, id),
        owners=None if owner is None else check_owners(table, owner),
        categorical=tuple(kinds),
        cells=_with_dates(table, cells or CellFormat(), chosen),
        text=text,
        images=None if image is None else tuple(entries_of(table, image, "image")),
        source=table.name,
        written=written,
        rows=table.numbers,
    )


def _with_dates(table: Table, cells: CellFormat, chosen: Sequence[str]) -> CellFormat:
    """The format with the names of its columns of dates in place of patterns."""
    found = {}
    for wanted, form in cells.dates.items():
        for name in _matching(table, [wanted], "date"):
            if name not in chosen:
                raise InputError(f"{option('date')} {name!r} is not one of the features")
            found[name] = form
    return cells.with_dates(found)


def same_labels(first: Columns, second: Columns) -> tuple[Columns, Columns]:
    """Two tables with labels of one kind: where one has text, the other's integers are text again.

    Labels of text are integers only if all of them look so, which may hold in one table and not in
    the other.
    """
    ours, theirs = (Coded.of(each.labels).distinct for each in (first, second))
    if ours and theirs and not set(ours) & set(theirs):
        first, second = _whole_labels(first, second)
    kinds = [{type(label) for label in Coded.of(each.labels).distinct} for each in (first, second)]
    if kinds[0] == kinds[1]:
        return first, second
    either = _unread(first) if kinds[1] == {str} else first
    return either, (_unread(second) if kinds[0] == {str} else second)


def column_of(table: Table, name: str, role: str) -> Any:
    """A column that an argument names; if there is none, an error lists similar names."""
    if name not in table.data.column_names:
        raise missing(table.name, "column", name, table.data.column_names, option(role))
    column = table.data.column(name)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as damaged:  # such as text that is not UTF-8
        raise InputError(f"{table.name} column {name!r} cannot be read: {damaged}") from None
    return column


def entries_of(table: Table, name: str, role: str) -> list[Any]:
    """The entries of a column, one per row; lists and the like are refused."""
    column = column_of(table, name, role)
    if pa.types.is_nested(column.type):
        raise InputError(
            f"{table.name} column {name!r} is of type {column.type}: it must have one entry per row"
        )
    return arrow_entries(column)


def _whole_labels(one: Columns, other: Columns) -> tuple[Columns, Columns]:
    """Labels that are whole numbers, however they are written, such as 1 and 1.0, as integers.

    pandas writes 1 as 1.0 if a label is missing. Labels that differ within one table stay apart.
    """
    labels = [Coded.of(each.labels) for each in (one, other)]
    numbers = [[whole_number(label) for label in each.distinct] for each in labels]
    if any(None in found or len(set(found)) < len(found) for found in numbers):
        return one, other
    first, second = (each.renamed(found) for each, found in zip(labels, numbers, strict=True))
    return dataclasses.replace(one, labels=first), dataclasses.replace(other, labels=second)


def _unread(columns: Columns) -> Columns:
    labels = Coded.of(columns.labels)
    whole = columns.written and all(type(label) is int for label in labels.distinct)
    texts = labels.renamed(map(str, labels.distinct))
    return dataclasses.replace(columns, labels=texts) if whole else columns


def _labels(table: Table, label: str, task: str | None, cells: CellFormat) -> tuple[Coded, bool]:
    entries: list[Any] | Coded
    if table.kind == "npy":
        found = read_label_file(label, table.name, len(table))
        entries = entries_without(found.entries, table.na)
        what, written = f"{found.path}", found.text is not None
    else:
        column = column_of(table, label, "label")
        entries = _coded(column) or entries_of(table, label, "label")
        what, written = f"{table.name} column {label!r}", table.is_text
    if task == "regression":
        return check_target_cells(what, entries, cells), False
    return check_classes(what, entries, written=written, task=task, rows=table.numbers)


def _coded(column: pa.ChunkedArray) -> Coded | None:
    """A column of text, integers or truth values that has no missing entry; None for others."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)
    if column.null_count or not len(column) or not any(fits(column.type) for fits in kinds):
        return None
    distinct = pc.unique(column)
    codes = pc.index_in(column, value_set=distinct).to_numpy()
    return Coded(codes.astype(np.int32, copy=False), tuple(distinct.to_pylist()))


def check_ids(table: Table, name: str) -> tuple[Hashable, ...]:
    """A column of ids, if none is missing and all are distinct."""
    entries = _present(table, name, "ids")
    rows: dict[Hashable, list[int]] = {}
    for row, entry in enumerate(entries):
        rows.setdefault(entry, []).append(row)
    twice = {entry: where for entry, where in rows.items() if len(where) > 1}
    if twice:
        some = [(entry, rows_text(table.numbers[twice[entry]])) for entry in list(twice)[:3]]
        shown = "; ".join(f"{entry!r} in {where}" for entry, where in some)
        more = f"; and {len(twice) - 3} more" if len(twice) > 3 else ""
        raise InputError(
            f"{table.name} column {name!r} has ids that are not distinct: {shown}{more}: give each "
            f"row its own, or leave {option('id')} out"
        )
    return tuple(entries)


def check_owners(table: Table, name: str) -> tuple[Hashable, ...]:
    """A column of owners, if none is missing."""
    return tuple(_present(table, name, "owners"))


def _present(table: Table, name: str, word: str) -> list[Any]:
    entries = entries_of(table, name, word[:-1])
    empty = [row for row, entry in enumerate(entries) if is_missing(entry)]
    if empty:
        where = rows_text(table.numbers[empty])
        raise InputError(
            f"{table.name} column {name!r} has missing {word} in {where}: drop or fill those rows"
        )
    return entries


def _add_role(roles: dict[str, str], name: str, role: str) -> None:
    if name in roles:
        both = f"{option(roles[name])} and {option(role)}"
        raise InputError(f"column {name!r} is both {both}: choose one")
    roles[name] = role


def _feature_names(
    table: Table, features: Sequence[str] | None, roles: dict[str, str]
) -> list[str]:
    if features is None:
        about = json.loads((table.data.schema.metadata or {}).get(b"pandas", b"{}"))
        stored = [name for name in about.get("index_columns", ()) if isinstance(name, str)]
        others = {*roles, *filter(INDEX.fullmatch, stored)}
        names = [name for name in table.data.column_names if name not in others]
        if "" in names:
            place = table.data.column_names.index("") + 1
            raise InputError(
                f"{table.name} has no name for column {place}, maybe an index that was written "
                f"with it: name the {option('features')}, or leave it out with "
                f"{option('ignore', [''])}"
            )
        return names
    for name in features:
        if name in roles:
            both = f"{option(roles[name])} and one of {option('features')}"
            raise InputError(f"column {name!r} is both {both}: choose one")
    return [name for name in _matching(table, features, "features") if name not in roles]


def _matching(table: Table, wanted: Sequence[str], role: str) -> list[str]:
    return matching(table.name, table.data.column_names, wanted, role)


def matching(where: str, names: Sequence[str], wanted: Sequence[str], role: str) -> list[str]:
    """The columns that names or patterns mean, each once."""
    if isinstance(wanted, str):
        raise InputError(f"{option(role)} must be a list of names, got the string {wanted!r}")
    found: dict[str, None] = {}
    for name in wanted:
        fits = [name] if name in names else [x for x in names if fnmatch.fnmatchcase(x, name)]
        if not fits:
            raise missing(where, "column", name, names, option(role))
        found.update(dict.fromkeys(fits))
    return list(found)
