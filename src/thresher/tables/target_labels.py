"""Labels of a table as numbers to predict; cells that are none are named."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from thresher.errors import InputError, option
from thresher.inputs.checks import MAX_INTEGER, rows_text
from thresher.inputs.coded import Coded
from thresher.inputs.labels import is_missing
from thresher.tables.cell_format import CellFormat
from thresher.tables.number_text import plain_numbers, sign_kind


def check_target_cells(
    what: str, entries: Iterable[Any], cells: CellFormat, *, first: int = 0
) -> Coded:
    """The targets as floats, if every entry is a finite number that float64 holds.

    `first` is the number of the first row.

    Examples
    --------
    >>> check_target_cells("y", ["1.5", "2", "-3e2"], CellFormat())
    (1.5, 2.0, -300.0)
    """
    raw = Coded.of(entries)
    numbers = [float("nan")] * len(raw.distinct)
    texts = {code: each for code, each in enumerate(raw.distinct) if isinstance(each, str)}
    numbers = _read_texts(numbers, texts, cells)
    for code, each in enumerate(raw.distinct):
        if isinstance(each, int | float) and not isinstance(each, bool):
            numbers[code] = float(each) if abs(each) < 10**300 else math.inf
        elif isinstance(each, Decimal):
            numbers[code] = float(each)

    def rows(wrong: Callable[[Any, float], bool]) -> list[int]:
        pairs = zip(raw.distinct, numbers, strict=True)
        bad = {code for code, (cell, number) in enumerate(pairs) if wrong(cell, number)}
        return [row for row, code in enumerate(raw.codes.tolist(), first) if code in bad]

    def shown(bad: list[int]) -> str:
        return f", such as {raw[bad[0] - first]!r}" if bad else ""

    _refuse(what, "missing targets", "drop those rows, or fill them in", rows(_is_gap))
    odd = rows(lambda _, number: math.isnan(number))
    _refuse(
        what, f"entries that are not numbers{shown(odd)}",
        f"{option('task', 'regression')} needs numbers; name another {option('label')}", odd,
    )  # fmt: skip
    huge = rows(lambda cell, number: _is_whole(cell) and abs(number) > MAX_INTEGER)
    why = f"integers beyond 2**53, which no float64 holds{shown(huge)}"
    _refuse(what, why, "rescale them", huge)
    endless = rows(lambda _, number: math.isinf(number))
    _refuse(what, "infinite targets", "drop those rows", endless)
    return Coded.of([numbers[code] for code in raw.codes.tolist()])


def _read_texts(numbers: list[float], texts: dict[int, str], cells: CellFormat) -> list[float]:
    """Cells of text as numbers, in the notation of the table."""
    if not texts:
        return numbers
    bare = [text.strip() for text in texts.values()]
    kind = next((sign_kind(cell) for cell in bare if cell), None) or "number"
    column = pa.chunked_array([bare])
    plain, odd = plain_numbers(column, cells.decimal, cells.thousands, kind)
    triples = zip(texts, plain.to_pylist(), odd.to_pylist(), bare, strict=True)
    for code, number, no_number, cell in triples:
        if not no_number:
            numbers[code] = float(number)
        elif cell.lower().lstrip("+-") in {"inf", "infinity"}:
            numbers[code] = math.inf
    return numbers


def _is_gap(cell: Any, number: float) -> bool:
    del number
    return is_missing(cell) or (isinstance(cell, str) and cell.strip().lower() in {"", "nan", "na"})


def _is_whole(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lstrip("+-").isdigit()
    return isinstance(cell, int)


def _refuse(what: str, why: str, way_out: str, rows: list[int]) -> None:
    if rows:
        raise InputError(f"{what} has {why} in {rows_text(rows)}: {way_out}")
