"""Times as labels: two that differ stay two, and one time is one label in every library.

A time that Python's `datetime`, `timedelta` or `time` holds exactly becomes that object. They end
at microseconds and at the year 9999, so other times stay as they are: scalars of NumPy in the
coarsest unit that holds them, or, with a time zone, timestamps of pandas. No time is refused: on
the private path an error would reveal something about a row.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

COARSE = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us")
FINE = ("ns", "ps", "fs", "as")
FIRST, LAST = np.datetime64(datetime.min, "us"), np.datetime64(datetime.max, "us")


def plain_times(array: NDArray[Any]) -> list[Any]:
    """The entries of an array of datetime64 or timedelta64, None where there is no time.

    Examples
    --------
    >>> plain_times(np.array([2_000, 2_001], "timedelta64[ns]"))
    [datetime.timedelta(microseconds=2), np.timedelta64(2001,'ns')]
    """
    kind = array.dtype.str[1:3]
    micro = array.astype(f"{kind}[us]")
    exact = micro.astype(array.dtype) == array
    if kind == "M8":
        exact &= (micro >= FIRST) & (micro <= LAST)
    found: list[Any] = micro.tolist()
    rows = np.flatnonzero(~exact & ~np.isnat(array))
    distinct, which = np.unique(array[rows], return_inverse=True)
    kept = [_coarsest(time) for time in distinct]
    for row, place in zip(rows.tolist(), which.tolist(), strict=True):
        found[row] = kept[place]
    return found


def plain_time(label: Any) -> Any:
    """A time of Python, NumPy or pandas, in the form that all of them share.

    When clocks go back, an hour comes twice. Within one time zone `datetime` cannot tell the second
    from the first, so times in the second one are given in UTC.

    Examples
    --------
    >>> plain_time(np.datetime64("2026-05-17T12:00:00.000000", "ns"))
    datetime.datetime(2026, 5, 17, 12, 0)
    """
    if isinstance(label, np.datetime64 | np.timedelta64):
        return plain_times(np.asarray(label)[None])[0]
    if hasattr(label, "asm8"):  # a Timestamp or a Timedelta of pandas
        if getattr(label, "tzinfo", None) is None:
            return plain_time(label.asm8)
        if label.nanosecond or not FIRST <= label.asm8.astype("M8[us]") <= LAST:
            return label
        label = label.to_pydatetime()
    return label.astimezone(UTC) if label.fold and label.tzinfo is not None else label


def is_time(kind: type) -> bool:
    """Whether labels of this type are for `plain_time`; no code of the type itself is run."""
    pandas = sys.modules.get("pandas")
    theirs = (getattr(pandas, "Timestamp", None), getattr(pandas, "Timedelta", None))
    return any(kind is each for each in (np.datetime64, np.timedelta64, datetime, *theirs))


def arrow_entries(column: Any) -> list[Any]:
    """The entries of a column of Arrow; nanoseconds are kept, not cut off.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_entries(pa.array([1], pa.timestamp("ns")))
    [np.datetime64('1970-01-01T00:00:00.000000001')]
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind) and pa.types.is_temporal(kind.value_type):
        return arrow_entries(column.cast(kind.value_type))
    if not pa.types.is_temporal(kind):
        return list(column.to_pylist())
    if getattr(kind, "unit", None) != "ns":
        try:
            return list(column.to_pylist())
        except (OverflowError, ValueError):  # years that Python has no times of
            return [_entry(time) for time in column]
    time_of_day, zone = pa.types.is_time(kind), getattr(kind, "tz", None)
    if not time_of_day and zone is None:
        return plain_times(np.asarray(column))
    nanoseconds = column.cast(pa.int64()).to_pylist()
    micro = pa.time64("us") if time_of_day else pa.timestamp("us", zone)
    plain = column.cast(micro, safe=False).to_pylist()
    fine = [x and np.timedelta64(x, "ns") for x in nanoseconds] if time_of_day else _zoned(column)
    whole = [x is None or x % 1000 == 0 for x in nanoseconds]
    return [x if exact else y for x, y, exact in zip(plain, fine, whole, strict=True)]


def _entry(time: Any) -> Any:
    """One time of Arrow; if Python cannot hold it, a time of NumPy in UTC."""
    import pyarrow as pa

    try:
        return time.as_py()
    except (OverflowError, ValueError):
        kind = time.type
        bare = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
        return plain_times(np.asarray(pa.array([time.value], bare)))[0]


def _zoned(column: Any) -> list[Any]:
    """Times in a zone as pandas holds them, where it is installed; else in UTC."""
    with contextlib.suppress(ImportError):
        importlib.import_module("pandas")
        return list(column.to_pylist())
    return plain_times(np.asarray(column))


def _coarsest(time: Any) -> Any:
    """The same time in the coarsest unit that holds it."""
    kind, own = time.dtype.str[1:3], np.datetime_data(time.dtype)[0]
    units = FINE if own in FINE else COARSE
    for unit in units[: units.index(own)]:
        coarse = time.astype(f"{kind}[{unit}]")
        if coarse.astype(time.dtype) == time:
            return coarse
    return time.astype(f"{kind}[{own}]")
