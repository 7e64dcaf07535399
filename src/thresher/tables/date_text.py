"""Dates and times as numbers: days since 1970, the time of day as a fraction."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

ISO = "ISO"  # 2024-01-31, with or without a time
DAY = 86_400_000_000  # microseconds
DATE = re.compile(
    r"(?:[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([./-])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2}))"
    r"(?![0-9])"
)
PARTS = re.compile(
    r"([0-9]+)([-/.])([0-9]+)[-/.]([0-9]+)(?:([ T])([0-9]{1,2}):[0-9]{2}(:[0-9]{2})?)?"
)
ZONE = re.compile(r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$")


def is_date(cell: str) -> bool:
    """Whether a cell looks like a date."""
    return DATE.match(cell) is not None


def date_formats(cells: Iterable[str]) -> list[str]:
    """The formats in which all cells are dates; two where the day or the month may come first.

    Examples
    --------
    >>> date_formats(["2024-01-31"]), date_formats(["31/01/2024"]), date_formats(["01/02/2024"])
    (['ISO'], ['%d/%m/%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    """
    some = list(cells)
    found = PARTS.match(some[0]) if some else None
    if found is None:
        return []
    first, mark, _, last, between, hours, seconds = found.groups()
    if len(first) == 4:
        orders = [ISO] if mark == "-" else [f"%Y{mark}%m{mark}%d"]
    else:
        year = "%Y" if len(last) == 4 else "%y"
        orders = [f"%d{mark}%m{mark}{year}"]
        orders += [f"%m{mark}%d{mark}{year}"] if mark != "." else []
    time = "" if hours is None else f"{between}%H:%M{':%S' if seconds else ''}"
    formats = [each if each == ISO else each + time for each in orders]
    column = pa.chunked_array([some], pa.string())
    return [each for each in formats if not np.isnan(text_days(column, each)).any()]


def text_days(cells: pa.ChunkedArray, form: str) -> NDArray[np.float64]:
    """Text as days since 1970; NaN where a cell is missing or no date of this format.

    Examples
    --------
    >>> text_days(pa.chunked_array([["1970-01-01 12:00", "soon", None]]), ISO).tolist()
    [0.5, nan, nan]
    """
    if form != ISO:
        return days(pc.strptime(cells, format=form, unit="us", error_is_null=True))
    try:
        return days(cells.cast(pa.timestamp("us")))
    except pa.ArrowInvalid:
        return np.array([_iso_days(cell) for cell in cells.to_pylist()], np.float64)


def days(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Dates, times of day and durations of Arrow as days; NaN where they are missing."""
    kind: Any = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us"))
    elif pa.types.is_time(kind):
        column = column.cast(pa.time64("us"))
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    elif pa.types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False)
    counts = pc.cast(column.cast(pa.int64()), pa.float64(), safe=False)
    return np.asarray(pc.fill_null(counts, float("nan")).to_numpy(), np.float64) / DAY


def _iso_days(cell: str | None) -> float:
    """One cell as days, the slow way: it may have a time zone, or be no date at all (NaN)."""
    try:
        zoned = cell is not None and ZONE.search(cell) is not None and len(cell) > 10
        kind = pa.timestamp("us", "UTC" if zoned else None)
        return float(days(pa.chunked_array([[cell]], pa.string()).cast(kind))[0])
    except pa.ArrowInvalid:
        return float("nan")
