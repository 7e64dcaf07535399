"""Tables in Excel files: the first sheet that has cells, from its header on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.errors import InputError, require
from thresher.tables.header import about_names, numbered_names
from thresher.tables.mixed_cells import cell_table

Rows = list[tuple[Any, ...]]


def read(path: Path) -> pa.Table:
    """The table in a file.

    The header is the first row that has a cell in every column of the table: titles and merged
    cells above it are skipped. So are rows and columns without any cell.
    """
    return _read(path, path.stat().st_mtime_ns)


def schema(path: Path) -> pa.Schema:
    """The columns of a file."""
    return read(path).schema


def batches(path: Path, wanted: list[str], start: int, most: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows from row `start` on, at most `most` at a time; the whole file is read for it."""
    data = read(path).select(wanted)
    for row in range(start, len(data), most):
        yield row, data.slice(row, most)


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> pa.Table:
    book = _book(path, read_only=True)
    try:
        rows = [tuple(map(_known, row)) for row in _sheet(path, book).iter_rows(values_only=True)]
    finally:
        book.close()
    top, places = _header(rows)
    names = _names(rows[top], places)
    body = [row for row in rows[top + 1 :] if any(cell is not None for cell in row)]
    columns = [[row[place] for row in body] for place in places]
    data = cell_table({str(number): cells for number, cells in enumerate(columns)})
    return data.rename_columns(numbered_names(names)).replace_schema_metadata(about_names(names))


def write(
    path: Path, drop: set[int], label: str | None, labels: Mapping[int, Any], temporary: Path
) -> None:
    """Write a file without some rows and with other labels; other cells and sheets stay."""
    book = _book(path)
    sheet = _sheet(path, book)
    rows = [tuple(map(_known, row)) for row in sheet.iter_rows(values_only=True)]
    top, places = _header(rows)
    names = numbered_names(_names(rows[top], places))
    column = dict(zip(names, places, strict=True)).get(str(label), 0)
    there = [at for at in range(top + 1, len(rows)) if any(x is not None for x in rows[at])]
    for row, new in labels.items():
        sheet.cell(sheet.min_row + there[row], sheet.min_column + column).value = new
    for row in sorted(drop, reverse=True):
        sheet.delete_rows(sheet.min_row + there[row])
    book.save(temporary)


def _book(path: Path, *, read_only: bool = False) -> Any:
    openpyxl = require("openpyxl", purpose="an Excel file", extra="excel")
    return openpyxl.load_workbook(path, read_only=read_only, data_only=read_only)


def _sheet(path: Path, book: Any) -> Any:
    for sheet in book.worksheets:
        if any(cell is not None for row in sheet.iter_rows(values_only=True) for cell in row):
            return sheet
    raise InputError(f"{path} has no cells in any sheet")


def _known(cell: Any) -> Any:
    """A cell without spaces around it; None where nothing is left."""
    return (cell.strip() or None) if isinstance(cell, str) else cell


def _names(header: tuple[Any, ...], places: list[int]) -> list[str]:
    return ["" if header[place] is None else str(header[place]) for place in places]


def _header(rows: Rows) -> tuple[int, list[int]]:
    """The row that is the header, and the columns of the table."""
    width = max(map(len, rows))
    padded = [row + (None,) * (width - len(row)) for row in rows]
    used = [place for place in range(width) if any(row[place] is not None for row in padded)]
    first = next(n for n, row in enumerate(rows) if any(x is not None for x in row))
    for number, row in enumerate(padded):
        if all(row[place] is not None for place in used):
            above = padded[number - 1] if number else row
            named = [above[place] for place in used if isinstance(above[place], str)]
            words = all(isinstance(row[place], str) for place in used)
            return number - int(not words and 2 * len(named) > len(used)), used
    return first, used
