"""Read private features as numbers, each row on its own.

No row changes how another one is read, and no row raises or prints anything: an entry that is
missing, or not a number, becomes NaN. A table is refused only for reasons that would also apply if
it had no rows: its type, its shape, the names and types of its columns. Those are public.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.checks import Features, check_features, check_ordered, is_frame

NUMBERS = {bool, int, float, np.float32, np.float64, np.int64}
NO_ROWS = (str, bytes, bytearray, memoryview, Mapping, Set)  # though one can iterate over them
NO_NUMBERS = (str, bytes, bytearray, complex, np.complexfloating, np.datetime64, np.timedelta64)
LOOSE = {"large_string", "null", "object", "str", "string", "string_view"}
_one_at_a_time = threading.RLock()  # filters of warnings belong to the whole process


@contextmanager
def silence() -> Iterator[None]:
    """Suppress the warnings of objects of unknown types.

    Whether this is used depends on the type of a table, never on what a row holds.
    """
    with _one_at_a_time, warnings.catch_warnings(action="ignore"):
        yield


def read_features(name: str, table: Any, width: int) -> Features:
    """Read a table of private features as an array of floats, NaN where an entry cannot be read.

    In a list of rows, a row that does not have this `width` is all NaN. An array or a data frame
    may have no rows.

    Examples
    --------
    >>> read_features("X", [[1, 2], [3], ["x", 4], None], 2).tolist()
    [[1.0, 2.0], [nan, nan], [nan, 4.0], [nan, nan]]
    """
    with np.errstate(all="ignore"):
        if is_frame(table):
            return _read_frame(name, table)
        return check_features(name, _read_plain(name, table, width), exact=False)


def _read_plain(name: str, table: Any, width: int) -> NDArray[Any]:
    """An array or a sequence of rows as an array, of floats unless its type must be refused."""
    if isinstance(table, np.ndarray):
        array = _unmasked(table)
        if array.dtype.kind == "O" and array.ndim in {1, 2}:
            return _read_rows(array, width if array.ndim == 1 else array.shape[1])
        if array.dtype.kind not in "biufO":
            raise InputError(
                f"{name} must hold real numbers, got dtype {array.dtype.type.__name__}"
            )
        wide = array.dtype.kind == "f" and array.dtype.itemsize > 8
        return array.astype(np.float64) if wide else array
    if type(table).__module__.startswith("scipy.sparse"):
        raise InputError(
            f"{name} is a sparse matrix, which is not supported: use {name}.toarray(), or for "
            "distances an array with np.inf where points are far"
        )
    check_ordered(name, table)
    if isinstance(table, NO_ROWS) or not hasattr(table, "__len__"):
        raise InputError(f"{name} must be a table of rows, got {type(table).__name__}")
    return _read_rows(table, width)


def _unmasked(table: NDArray[Any]) -> NDArray[Any]:
    """An array with NaN in place of masked entries, or None if it holds objects."""
    if not isinstance(table, np.ma.MaskedArray):
        return np.asarray(table)
    array, mask = np.ma.getdata(table), np.ma.getmaskarray(table)
    if array.dtype.kind not in "biufO":
        return np.asarray(array)
    filled = array.copy() if array.dtype.kind == "O" else array.astype(np.float64)
    filled[mask] = None if array.dtype.kind == "O" else math.nan
    return np.asarray(filled)


def _read_rows(table: Any, width: int) -> NDArray[np.float64]:
    array = np.full((len(table), width), math.nan)
    with silence():
        for target, row in zip(array, table, strict=True):
            _read_row(row, target)
    return array


def _read_row(row: Any, target: NDArray[np.float64]) -> None:
    """Put the numbers of one row into `target` if the lengths agree."""
    try:
        entries = [] if isinstance(row, NO_ROWS) else list(islice(row, len(target) + 1))
        if len(entries) == len(target):
            known = NUMBERS.issuperset(map(type, entries))
            target[:] = entries if known else [read_number(entry) for entry in entries]
    except Exception:  # noqa: BLE001, S110 - whatever it is, it is no row: `target` stays NaN
        pass


def read_number(entry: Any, *, text: bool = False) -> float:
    """One entry as a number, or NaN; with `text`, text that spells a number counts, too."""
    try:
        if text and isinstance(entry, str):
            return float(entry)
        if isinstance(entry, NO_NUMBERS) or getattr(entry, "ndim", 0) != 0:
            return math.nan
        return float(entry)
    except Exception:  # noqa: BLE001 - whatever it is, it is no number
        return math.nan


def _read_frame(name: str, table: Any) -> Features:
    if type(table).__name__ == "RecordBatch":
        import pyarrow as pa

        table = pa.Table.from_batches([table])
    table = _with_numbers(table)
    try:
        return check_features(name, table, exact=False)
    except InputError:
        raise
    except Exception:  # noqa: BLE001 - an entry that a library will not cast
        return check_features(name, _by_columns(table), exact=False)


def _with_numbers(table: Any) -> Any:
    """A frame with its columns of text, of objects or of nulls turned into numbers.

    One row with text may turn a whole column into text, so text that spells a number is read as
    one.
    """
    if type(table).__name__ not in {"DataFrame", "Table"}:
        return table
    package = type(table).__module__.split(".")[0]
    if package == "pyarrow":
        from thresher.tables.number_text import numbers_or_missing

        for place, field in enumerate(table.schema):
            if _is_loose(str(field.type)):
                numbers = numbers_or_missing(table.column(place))
                table = table.set_column(place, field.name, numbers)
        return table
    if package == "polars":
        import polars as pl

        loose = [each for each in table.get_columns() if _is_loose(str(each.dtype))]
        return table.with_columns(pl.Series(c.name, _read_entries(c), pl.Float64) for c in loose)
    loose = [place for place, dtype in enumerate(table.dtypes) if _is_loose(str(dtype))]
    table = table.copy(deep=False) if loose else table
    for place in loose:
        table.isetitem(place, _read_entries(table.iloc[:, place]))
    return table


def _is_loose(dtype: str) -> bool:
    """Whether a column of this type may hold anything, judging by the type's name."""
    return dtype.lower().partition("[")[0] in LOOSE


def _read_entries(column: Any) -> NDArray[np.float64]:
    with silence():
        return np.array([read_number(entry, text=True) for entry in column], np.float64)


def _by_columns(table: Any) -> NDArray[np.float64]:
    """Read a frame column by column, or entry by entry if there is no other way."""
    import narwhals as nw

    frame: Any = nw.from_native(table, eager_only=True)
    array = np.full(frame.shape, math.nan)
    for place, name in enumerate(frame.columns):
        column = frame.get_column(name).to_numpy()
        numbers = column if column.dtype.kind in "biuf" else _read_entries(column)
        array[:, place] = numbers
    return array
