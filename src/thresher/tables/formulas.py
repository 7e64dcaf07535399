"""Text in a .csv or .tsv file that no spreadsheet takes for a formula, and back.

A spreadsheet computes a cell that begins with `=`, `+`, `-` or `@`, and so may run what somebody
else wrote into a label. Such a cell gets an apostrophe in front, unless it is a plain number. Text
that begins with apostrophes and then such a character gets one more, so that one apostrophe fewer
is always what was meant.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thresher.errors import InputError
from thresher.tables.number_text import number_pattern

RULE = "text that begins with = + - @ and is not a number has an apostrophe in front"
START = r"[=+\-@\t\r\n＝＋－＠]"  # noqa: RUF001 - wide forms work in some spreadsheets
COMPUTED = f"^'*{START}"
HARMLESS = re.compile(f"'+{START}")
NUMBER = number_pattern()


def harmless(table: pa.Table) -> pa.Table:
    """A table as text that no spreadsheet computes; bytes are text, and durations have a unit.

    Examples
    --------
    >>> harmless(pa.table({"id": ["=1+1", "'@a", "-5", "a-b"]})).column("id").to_pylist()
    ["'=1+1", "''@a", '-5', 'a-b']
    """
    for place, field in enumerate(table.schema):
        column = _text(field.name, table.column(place))
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            table = table.set_column(place, field.with_type(column.type), _harmless(column))
    return table


def _text(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of bytes or of durations as text, any other as it is."""
    if pa.types.is_duration(column.type):
        counts = column.cast(pa.int64()).cast(pa.string())
        return pc.binary_join_element_wise(counts, column.type.unit, " ")
    if not pa.types.is_binary(column.type):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        raise InputError(
            f"the column {name!r} holds bytes that are not UTF-8, which a text file cannot hold: "
            "write a .parquet file instead"
        ) from None


def harmless_text(entry: Any) -> Any:
    """One cell; only text changes."""
    if not isinstance(entry, str):
        return entry
    computed = re.match(COMPUTED, entry) and not re.fullmatch(NUMBER, entry)
    return f"'{entry}" if computed else entry


def meant(entry: Any) -> Any:
    """The text that a cell stands for, as it was before `harmless`.

    Examples
    --------
    >>> meant("'=1+1"), meant("''@a"), meant("-5"), meant("'tis")
    ('=1+1', "'@a", '-5', "'tis")
    """
    return entry[1:] if isinstance(entry, str) and HARMLESS.match(entry) else entry


def _harmless(column: pa.ChunkedArray) -> pa.ChunkedArray:
    number = pc.match_substring_regex(column, f"^({NUMBER})$")
    computed = pc.and_not(pc.match_substring_regex(column, COMPUTED), number)
    if not pc.any(computed, min_count=0).as_py():
        return column
    sign = pa.scalar("'", column.type)
    marked = pc.binary_join_element_wise(sign, column, pa.scalar("", column.type))
    return pc.if_else(computed, marked, column)
