"""Columns of cells as columns of numbers or of categories; cells that are none are named."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.checks import MAX_INTEGER, rows_text
from thresher.errors import InputError, either, option
from thresher.spelling import MISSING
from thresher.tables.columns import Columns

TRUTH = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)
INTEGER = re.compile(r"[+-]?[0-9]+")
COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
DATE = re.compile(
    r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}([./])[0-9]{1,2}\1(?:[0-9]{4}|[0-9]{2}))(?![0-9])"
)
MOST_CATEGORIES = 1000


def numbers(columns: Columns, name: str, *, truth: bool = False) -> NDArray[np.float64]:
    """A column as numbers, NaN where they are missing; with `truth`, cells say true or false."""
    column = _decoded(columns.features.column(name))
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(columns), np.nan)
    if is_text(kind):
        found = _truths(columns, name, column) if truth else _read_numbers(columns, name, column)
    elif pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        found = _floats(column.cast(pa.float64()))
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        found = _floats(column.cast(pa.float64(), safe=False))
    else:
        dates = "dates or times" if pa.types.is_temporal(kind) else f"cells of type {kind}"
        raise refused_column(columns, name, f"holds {dates}", "turn it into numbers")
    if not truth and not pa.types.is_floating(kind) and getattr(kind, "scale", 0) <= 0:
        _check_integers(columns, name, column, found)
    endless = np.flatnonzero(np.isinf(found))
    if len(endless):
        where = rows_text(columns.rows[endless])
        raise refused_column(columns, name, f"has infinite numbers in {where}", "clean it")
    return found


def categories(columns: Columns, name: str) -> pa.ChunkedArray:
    """A column as text, with which categories are told apart; missing entries stay missing."""
    column = _decoded(columns.features.column(name))
    kind = column.type
    plain = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null, is_text)
    if pa.types.is_floating(kind):
        column = _whole(columns, name, column)
    elif not any(is_plain(kind) for is_plain in plain):
        raise InputError(
            f"{columns.source} column {name!r} is of type {kind}: categories must be text or "
            "integers"
        )
    return column.cast(pa.string())


def distinct_categories(columns: Columns, name: str) -> tuple[str | None, ...]:
    """The categories of a column, sorted; None stands for missing entries and comes last."""
    found = pc.unique(categories(columns, name)).to_pylist()
    if len(found) > MOST_CATEGORIES:
        raise refused_column(
            columns, name, f"has {len(found)} categories, at most {MOST_CATEGORIES} are possible",
            "put the rare ones together",
        )  # fmt: skip
    return tuple(sorted(found, key=lambda entry: (entry is None, entry or "")))


def stated_kind(columns: Columns, name: str) -> str | None:
    """What cells say: "truth" where all of a text are true or false, in any capitals, or "number".

    It is None where all are missing.
    """
    column = _decoded(columns.features.column(name))
    if not is_text(column.type):
        return "number" if column.null_count < len(column) else None
    said = None
    for chunk in column.iterchunks():
        for cell in chunk:  # most columns are told by their first cell
            word = (cell.as_py() or "").strip().lower()
            if word not in MISSING:
                if word not in {"true", "false"}:
                    return "number"
                said = "truth"
    return said


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def plain_type(column: pa.ChunkedArray) -> Any:
    """The type of a column's entries, also where a dictionary holds them."""
    kind = column.type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(plain_type(column)) if pa.types.is_dictionary(column.type) else column


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    filled = pc.fill_null(column, float("nan"))
    return np.asarray(filled.to_numpy(), np.float64)


def _check_integers(
    columns: Columns, name: str, column: pa.ChunkedArray, found: NDArray[np.float64]
) -> None:
    """Refuse integers that no float64 holds exactly, also those that are written as text."""
    rows = []
    for row in np.flatnonzero(np.abs(found) >= MAX_INTEGER).tolist():
        entry = column[row].as_py()
        whole = not isinstance(entry, str) or INTEGER.fullmatch(entry.strip())
        if whole and (abs(found[row]) > MAX_INTEGER or abs(int(entry)) > MAX_INTEGER):
            rows.append(row)
    if rows:
        where = rows_text(columns.rows[rows])
        raise refused_column(columns, name, f"has integers beyond 2**53 in {where}", "rescale it")


def _read_numbers(columns: Columns, name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    text = column.cast(pa.string())
    try:
        return _floats(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        pass  # words for missing numbers, or spaces around numbers: the slow way
    bare = pc.utf8_trim_whitespace(text)
    said = pc.is_in(pc.utf8_lower(bare), value_set=pa.array(MISSING))
    bare = pc.if_else(said, pa.scalar(None, pa.string()), bare)
    try:
        return _floats(bare.cast(pa.float64()))
    except pa.ArrowInvalid:
        odd = [
            (row, cell)
            for row, cell in enumerate(bare.to_pylist())
            if cell is not None and not NUMBER.fullmatch(cell)
        ]
        raise _no_numbers(columns, name, odd) from None


def _truths(columns: Columns, name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    known: dict[str, float] = TRUTH | dict.fromkeys(MISSING, np.nan)
    cells = ["" if cell is None else cell.strip().lower() for cell in column.to_pylist()]
    odd = [(row, cell) for row, cell in enumerate(cells) if cell not in known]
    if odd:
        raise _no_numbers(columns, name, odd, "neither true nor false")
    return np.array([known[cell] for cell in cells], np.float64)


def _whole(columns: Columns, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats as integers, NaN as missing: what pandas makes of integers with gaps."""
    entries = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        return entries.cast(pa.int64())
    except pa.ArrowInvalid:
        raise InputError(
            f"{columns.source} column {name!r} has numbers that are not whole: categories must be "
            "text or integers"
        ) from None


def _no_numbers(
    columns: Columns, name: str, odd: list[tuple[int, str]], what: str = "no numbers"
) -> InputError:
    shown = ", ".join(f"{cell!r:.40} in row {columns.rows[row]}" for row, cell in odd[:3])
    more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
    if odd and all(DATE.match(cell) for _, cell in odd):
        said = f"holds dates or times: {shown}{more}"
        return refused_column(columns, name, said, "turn it into numbers")
    said = f"has cells that are {what}: {shown}{more}"
    if odd and all(COMMA.fullmatch(cell) for _, cell in odd):
        return refused_column(columns, name, said, "write numbers with a point, not a comma")
    way_out = either("", f"encode it by {option('categorical', [name])}, or ")
    return refused_column(columns, name, said, f"{way_out}clean it")


def refused_column(columns: Columns, name: str, said: str, way_out: str) -> InputError:
    """An error about a column of features, with two ways out."""
    return InputError(
        f"{columns.source} column {name!r} {said}: leave it out by {option('ignore', [name])}, or "
        f"{way_out}"
    )
