"""Features, labels and owners from a file: of public rows, and of private ones, each by itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import InputError, option
from thresher.files import BROKEN, reading
from thresher.inputs.arrays import load_arrays
from thresher.inputs.checks import check_count, check_features
from thresher.inputs.labels import check_labels
from thresher.inputs.time_labels import arrow_entries
from thresher.metrics import measure
from thresher.tables.columns import matching
from thresher.tables.delimited import check_names
from thresher.tables.number_text import numbers_or_missing
from thresher.tables.packing import is_gzip, is_zip
from thresher.tables.paths import delimiter_of, kind_of
from thresher.tables.reader import read_columns
from thresher.tables.text import read as read_text
from thresher.tables.text import read_lines

BINARY = {"parquet", "arrow"}
KINDS = ".csv, .tsv (also .gz), .parquet, .arrow, .feather or .npz"


@dataclass(frozen=True, eq=False)
class PrivateTable:
    """Private rows of a file, as they were read: features, labels and owners."""

    X: Any
    y: Any
    owners: Any = None
    lines: list[int] | None = None  # of text, the line of each row, from 1, if they were asked for
    unread: Mapping[int, str] = field(default_factory=dict)  # other lines of text, and why

    def unusable(self, rows: Mapping[int, str]) -> tuple[str, dict[int, str]]:
        """Which rows count for nothing: the word "line" or "row", and the reason by its number.

        `rows` are those that were read but could not be used, counted from 0.
        """
        if self.lines is None:
            return "row", dict(rows)
        found = {self.lines[row]: why for row, why in rows.items()} | dict(self.unread)
        return "line", dict(sorted(found.items()))


def read_private(
    path: Path,
    label: str,
    owner: str | None = None,
    *,
    delimiter: str | None = None,
    numbered: bool = False,
) -> PrivateTable:
    """Private features, labels and owners: arrays of an .npz, or columns of a table.

    In a table, all other columns are features. What a row holds changes no other row, raises
    nothing and is in no message; a file that is damaged as a whole is refused without a reason.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    kind, lines = _kind(path), None
    try:
        if kind == "npz":
            return PrivateTable(*_arrays(path, label, owner))
        between = delimiter_of(kind, delimiter)
        if between is not None:
            lines = read_lines(path, between, numbered=numbered)
        table = read_columns(path, kind) if lines is None else lines.table
    except InputError:
        raise
    except BROKEN:
        objects = ", or holds Python objects" if kind == "npz" else ""
        raise InputError(f"{path} is damaged, or is not a .{kind} file{objects}") from None
    check_names(path, table.column_names)
    X, y, owners = _apart(path, table, label, owner)
    if lines is None or not numbered:
        return PrivateTable(X, y, owners)
    return PrivateTable(X, y, owners, lines.numbers, lines.unread)


def read_labeled(
    path: Path, label: str, *, delimiter: str | None = None
) -> tuple[Any, list[Any] | Any]:
    """Features and labels of public rows: arrays of an .npz, or columns of a table.

    In a table, all other columns are features. In a text file, labels are text, and a feature that
    is not a number is missing.
    """
    with reading(path, "table") as found:
        kind = _kind(found)
        if kind == "npz":
            return _arrays(found, label, None)[:2]
        between = delimiter_of(kind, delimiter)
        table = read_text(found, between) if between else read_columns(found, kind)
    X, y, _ = _apart(path, table, label, None)
    if between:  # numbers, cell by cell
        X = type(X).from_pydict(
            {name: numbers_or_missing(X.column(name)) for name in X.column_names}
        )
    return X, arrow_entries(y)


def read_complete(path: Path, label: str) -> tuple[Any, list[Any] | Any]:
    """What `read_labeled` reads, if every cell of a feature is a number; others are refused."""
    X, y = read_labeled(path, label)
    for name in getattr(X, "column_names", ()):
        if X.column(name).null_count:
            raise InputError(
                f"{path} has cells in column {name!r} that are missing or not numbers: fill or "
                "encode them, or remove the column"
            )
    return X, y


def private_targets(y: Any) -> Any:
    """Private targets: text becomes numbers, cell by cell; other cells become missing."""
    kind = str(getattr(y, "type", ""))  # of Arrow; arrays have none
    return numbers_or_missing(y) if kind in {"string", "large_string"} else y


def public_targets(path: Path, y: Any) -> Any:
    """The targets of public rows; a target that is not a number is refused."""
    entries = np.atleast_1d(y) if isinstance(y, np.ndarray) else y
    targets = np.empty(len(entries))
    for row, entry in enumerate(entries):
        try:
            targets[row] = float(entry)
        except (TypeError, ValueError):
            found = "" if entry is None else str(entry)
            raise InputError(
                f"{path} has a target in row {row} that is not a number, {found!r}: correct it, or "
                f"name another {option('label')}"
            ) from None
    return targets


def columns_left_out(
    ignore: Sequence[str], *tables: Any, roles: Collection[str | None] = ()
) -> list[str]:
    """The columns that names or patterns mean, in any of these tables.

    Columns that have one of the `roles` may be named, too.
    """
    if not ignore:
        return []
    if not all(hasattr(table, "column_names") for table in tables):
        raise InputError(f"{option('ignore')} needs tables with named columns, not arrays")
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    return matching("the table", [*names, *filter(None, roles)], ignore, "ignore")


def same_columns(X: Any, X_val: Any, ignore: list[str]) -> tuple[Any, Any]:
    """Points and validation set with the same columns in the same order, without those ignored.

    Names of columns are public, and so is the validation set; cells of points are not looked at.
    """
    if not hasattr(X, "column_names") or not hasattr(X_val, "column_names"):
        return X, X_val
    X, X_val = (
        each.drop_columns([name for name in ignore if name in each.column_names])
        for each in (X, X_val)
    )
    more, less = (
        [name for name in ours.column_names if name not in theirs.column_names]
        for ours, theirs in ((X, X_val), (X_val, X))
    )
    if more or less:
        where, names = ("points have", more) if more else ("validation set has", less)
        what, them = ("column", "it") if len(names) == 1 else ("columns", "them")
        listed, rest = ", ".join(map(repr, names[:5])), "" if len(names) <= 5 else ",..."
        raise InputError(
            f"only the {where} the {what} {listed}{rest}: leave {them} out with "
            f"{option('ignore', names[:5])}{rest}"
        )
    for name in X_val.column_names:
        if X_val.column(name).null_count:
            raise InputError(
                f"the validation set has cells in column {name!r} that are missing or not numbers: "
                f"leave it out with {option('ignore', [name])}, or clean it; thresher release can "
                f"also use {option('fill')} or {option('categorical', [name])}"
            )
    return X.select(X_val.column_names), X_val


def split_rows(X: Any, y: Any, held_out: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Points and validation rows, drawn at random from one table: X, y, X_val, y_val."""
    rows = measure("the table", check_features("the table", X), cosine=False).array
    labels = np.asarray(check_labels("y", y, len(rows)))
    held_out = check_count(option("held_out"), held_out)
    seed = check_count(option("seed"), seed, least=0)
    if held_out >= len(rows):
        raise InputError(
            f"{option('held_out')} must be less than the {len(rows)} rows of the table, got "
            f"{held_out}"
        )
    order = np.random.default_rng([seed, held_out]).permutation(len(rows))
    out, kept = order[:held_out], order[held_out:]
    return rows[kept], labels[kept], rows[out], labels[out]


def _kind(path: Path) -> str:
    kind = kind_of(path)
    if kind == "npy":
        raise InputError(f"{path} has no labels: use a {KINDS} file")
    if kind in {"xlsx", "jsonl", "txt"} or is_zip(path) or (is_gzip(path) and kind in BINARY):
        raise InputError(f"{path} cannot be read here: use a {KINDS} file")
    return kind


def _arrays(path: Path, label: str, owner: str | None) -> tuple[Any, Any, Any]:
    roles = {"X": "", label: f" ({option('label')})", owner or "X": f" ({option('owner')})"}
    stored = load_arrays(path, roles)
    for name, role in roles.items():
        if name not in stored:
            raise InputError(f"{path} has no array {name!r}{role}")
    return stored["X"], stored[label], None if owner is None else stored[owner]


def _apart(path: Path, table: Any, label: str, owner: str | None) -> tuple[Any, Any, Any]:
    """Features, labels and owners."""
    for role, name in (("label", label), ("owner", owner)):
        if name is not None and name not in table.column_names:
            names = ", ".join(table.column_names)
            raise InputError(f"{path} has no column {name!r} ({option(role)}): it has {names}")
    owners = None if owner is None else table.column(owner)
    features = table.drop_columns([name for name in (label, owner) if name is not None])
    return features, table.column(label), owners
