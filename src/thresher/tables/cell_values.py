"""Columns of cells as numbers or as categories; errors name the cells that are neither."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thresher.array_types import Floats
from thresher.errors import InputError, either, option
from thresher.inputs.checks import MAX_INTEGER, rows_text
from thresher.inputs.spelling import MISSING
from thresher.tables.column_profile import (
    REPEATED,
    SEVERAL,
    bare_cells,
    decoded,
    is_prose,
    is_text,
    profile,
)
from thresher.tables.columns import Columns
from thresher.tables.date_text import ISO, date_formats, days, is_date, text_days
from thresher.tables.number_text import number_pattern, plain_numbers, sign_kind

WANTED = {"percent": "not percents", "money": "not money in one currency"}
TRUTH = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
NUMBER = re.compile(rf"{number_pattern()}|[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
INTEGER = re.compile(r"[+-]?[0-9]+")
LONGEST = 40  # characters of a cell that a message quotes


def numbers(columns: Columns, name: str, said: str = "number") -> Floats:
    """A column as numbers, NaN where they are missing; `said` is what `stated_kind` says of it."""
    column = decoded(columns.features.column(name))
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(columns), np.nan)
    if pa.types.is_temporal(kind):
        return _typed_dates(columns, name, column)
    if is_text(kind):
        found = _text_numbers(columns, name, column, said)
    elif pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        found = _floats(column.cast(pa.float64()))
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        found = _floats(column.cast(pa.float64(), safe=False))
    else:
        said = f"holds cells of type {kind}"
        raise refused_column(columns, name, said, "turn it into numbers")
    if said == "number" and not pa.types.is_floating(kind) and getattr(kind, "scale", 0) <= 0:
        _check_integers(columns, name, column, found)
    endless = np.flatnonzero(np.isinf(found))
    if len(endless):
        where = rows_text(columns.rows[endless])
        raise refused_column(
            columns, name, f"has infinite numbers in {where}", _number_advice(columns, name)
        )
    return found


def categories(columns: Columns, name: str) -> pa.ChunkedArray:
    """A column of categories as text; missing entries stay missing."""
    column = decoded(columns.features.column(name))
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


def stated_kind(columns: Columns, name: str) -> str | None:
    """What cells say: "number", or "truth" if all are the text true or false, in any capitals.

    It is "percent" or "money:" and the currency if the first one has such a sign, "date:" and the
    format for a column of dates, and None if all are missing.
    """
    column = decoded(columns.features.column(name))
    if column.null_count == len(column):
        return None
    if name in columns.cells.dates:
        return _date_kind(columns, name, column)
    if not is_text(column.type):
        return "number"
    said = None
    for chunk in column.iterchunks():
        for cell in chunk:  # most columns are told by their first cell
            word = (cell.as_py() or "").strip()
            if word.lower() not in MISSING:
                if word.lower() not in {"true", "false"}:
                    return (said is None and sign_kind(word)) or "number"
                said = "truth"
    return said


def _floats(column: pa.ChunkedArray) -> Floats:
    filled = pc.fill_null(column, float("nan"))
    return np.asarray(filled.to_numpy(), np.float64)


def _check_integers(columns: Columns, name: str, column: pa.ChunkedArray, found: Floats) -> None:
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


def _text_numbers(columns: Columns, name: str, column: pa.ChunkedArray, said: str) -> Floats:
    """Text as numbers of the kind `said`."""
    if said == "truth":
        return _truths(columns, name, column)
    text = column.cast(pa.string())
    if said.startswith("date:"):
        return _dates(columns, name, bare_cells(text), said.removeprefix("date:"))
    if columns.cells.is_plain and said == "number":
        with contextlib.suppress(pa.ArrowInvalid):  # else words for missing numbers, or spaces
            return _floats(text.cast(pa.float64()))
    bare = bare_cells(text)
    if columns.cells.is_plain and said == "number":
        with contextlib.suppress(pa.ArrowInvalid):
            return _floats(bare.cast(pa.float64()))
        odd = pa.chunked_array(
            [[cell is not None and not NUMBER.fullmatch(cell) for cell in bare.to_pylist()]]
        )
    else:
        marks = columns.cells.decimal, columns.cells.thousands
        plain, odd = plain_numbers(bare, *marks, said)
        if not pc.any(odd).as_py():
            return _floats(plain.cast(pa.float64()))
    raise _no_numbers(columns, name, _odd_cells(bare, odd), WANTED.get(said.partition(":")[0], ""))


def _odd_cells(bare: pa.ChunkedArray, odd: pa.ChunkedArray) -> list[tuple[int, str]]:
    where = np.flatnonzero(np.asarray(pc.fill_null(odd, False).to_numpy(), np.bool_))  # noqa: FBT003
    return [(int(row), bare[int(row)].as_py()) for row in where]


def _date_kind(columns: Columns, name: str, column: pa.ChunkedArray) -> str:
    """The kind of a column of dates, with the format that was given or that all cells have."""
    form = columns.cells.dates[name]
    if form or not is_text(column.type):
        return f"date:{form or ISO}"
    cells = bare_cells(column.cast(pa.string())).drop_null()
    if not len(cells):
        return f"date:{ISO}"
    formats = date_formats(pc.unique(cells).to_pylist())
    if len(formats) == 1:
        return f"date:{formats[0]}"
    if not formats:
        odd = [(row, cell) for row, cell in enumerate(column.to_pylist()) if cell]
        raise _no_numbers(columns, name, odd, "not dates in one format")
    one, other = (f"{name}={each}" for each in formats)
    raise InputError(
        f"{columns.source} column {name!r} has dates such as {cells[0].as_py()!r}, in which the "
        f"day or the month may come first: say which with {option('date', [one])} or "
        f"{option('date', [other])}"
    )


def _typed_dates(columns: Columns, name: str, column: pa.ChunkedArray) -> Floats:
    if name not in columns.cells.dates:
        raise refused_column(columns, name, "holds dates or times", _date_advice(name))
    return days(column)


def _dates(columns: Columns, name: str, bare: pa.ChunkedArray, form: str) -> Floats:
    found = text_days(bare, form)
    odd = pc.and_(pa.chunked_array([np.isnan(found)]), pc.is_valid(bare))
    if pc.any(odd).as_py():
        what = "no dates" if form == ISO else f"not dates of the format {form}"
        raise _no_numbers(columns, name, _odd_cells(bare, odd), what)
    return found


def _truths(columns: Columns, name: str, column: pa.ChunkedArray) -> Floats:
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
    columns: Columns, name: str, odd: list[tuple[int, str]], what: str = ""
) -> InputError:
    shown = ", ".join(f"{_cut(repr(cell))} in row {columns.rows[row]}" for row, cell in odd[:3])
    more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
    if odd and all(is_date(cell) for _, cell in odd) and name not in columns.cells.dates:
        said = f"holds dates or times: {shown}{more}"
        seen = profile(name, columns.features.column(name), columns.cells)
        alike = "write its dates in one format, and " if seen.note == SEVERAL else ""
        return refused_column(columns, name, said, f"{alike}{_date_advice(name)}")
    said = f"has cells that are {what or 'not numbers'}: {shown}{more}"
    return refused_column(columns, name, said, _number_advice(columns, name))


def _cut(text: str) -> str:
    """A quoted cell, cut where it is long, with its quotes."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}…{text[-1]}"


def _date_advice(name: str) -> str:
    return f"turn it into numbers with {option('date', [name])}"


def _number_advice(columns: Columns, name: str) -> str:
    """What to do about a column that is not numbers, by what it looks like."""
    seen = profile(name, columns.features.column(name), columns.cells)
    if seen.fix:
        return f"read it with {' '.join(option(key, entry) for key, entry in seen.fix.items())}"
    if seen.kind == "id":
        return either("turn it into a feature", f"name it with {option('id', name)}")
    if seen.note.startswith(REPEATED):
        named = f"give each row a code of its own, and name it with {option('id', name)}"
        return either("turn it into a feature", named)
    if seen.kind == "text" and is_prose(seen):
        return either("embed its texts first", f"embed its texts with {option('text', name)}")
    way_out = either("", f"encode it with {option('categorical', [name])}, or ")
    return f"{way_out}clean it"


def refused_column(columns: Columns, name: str, said: str, way_out: str) -> InputError:
    """An error about a column of features, with ways to solve it: first the one that keeps it."""
    others = len(columns.names) > 1
    without = f", or leave it out with {option('ignore', [name])}" if others else ""
    return InputError(f"{columns.source} column {name!r} {said}: {way_out}{without}")
