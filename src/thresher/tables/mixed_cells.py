"""Columns of Python's own values, as spreadsheets and JSON have them, as columns of Arrow."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

TIMES = (datetime.date, datetime.time, datetime.timedelta)


def cell_table(columns: Mapping[str, list[Any]]) -> pa.Table:
    """A table of columns; one whose cells are of several types is text.

    Examples
    --------
    >>> cell_table({"x": [1, 2.5, None], "mixed": [1, "a", True]}).to_pydict()
    {'x': [1.0, 2.5, None], 'mixed': ['1', 'a', 'true']}
    """
    return pa.table({name: _column(cells) for name, cells in columns.items()})


def _column(cells: list[Any]) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int, float}:
        return pa.array([None if cell is None else float(cell) for cell in cells])
    if len(kinds) <= 1 or kinds == {datetime.date, datetime.datetime}:
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
