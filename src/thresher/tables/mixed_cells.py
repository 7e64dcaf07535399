"""Columns of Python's own values, as spreadsheets and JSON have them, as columns of Arrow."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

TIMES = (datetime.date, datetime.time, datetime.timedelta)


def cell_table(columns: Mapping[str, list[Any]], known: pa.Schema | None = None) -> pa.Table:
    """A table of columns; one whose cells are of several types is text.

    For a part of a table, `known` has the types.

    Examples
    --------
    >>> cell_table({"x": [1, 2.5, None], "mixed": [1, "a", True]}).to_pydict()
    {'x': [1.0, 2.5, None], 'mixed': ['1', 'a', 'true']}
    """
    kinds = {} if known is None else {field.name: field.type for field in known}
    return pa.table({name: _column(cells, kinds.get(name)) for name, cells in columns.items()})


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type of a column whose parts have these: text if they do not go together.

    Examples
    --------
    >>> common_type([pa.int64(), pa.null(), pa.float64()])
    DataType(double)
    >>> common_type([pa.int64(), pa.bool_()])
    DataType(string)
    """
    found = {kind for kind in kinds if kind != pa.null()}
    if found == {pa.int64(), pa.float64()}:
        return pa.float64()
    return found.pop() if len(found) == 1 else pa.null() if not found else pa.string()


def _column(cells: list[Any], known: pa.DataType | None = None) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell is not None}
    if known not in {None, pa.string(), pa.float64()}:
        return pa.array(cells, known)
    if kinds == {int, float} or known == pa.float64():
        return pa.array([None if cell is None else float(cell) for cell in cells])
    if known is None and (len(kinds) <= 1 or kinds == {datetime.date, datetime.datetime}):
        try:
            return pa.array(cells)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            pass  # such as integers beyond 64 bits, or lists of several types
    return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, TIMES):
        return cell.isoformat(" ") if isinstance(cell, datetime.datetime) else str(cell)
    return json.dumps(cell, ensure_ascii=False, default=str)
