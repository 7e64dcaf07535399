"""What a caller hands in, turned into arrays and numbers that a kernel may trust.

Every check names its argument, says what was wanted and what came, and returns the clean
value. Nothing is repaired in silence: no clipping, no dropping, no lossy cast.
"""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Iterable, Mapping, MappingView, Sequence, Set
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, option, quoted

Metric = Literal["cosine", "euclidean", "precomputed"]
Features = NDArray[Any]  # two-dimensional; float16, float32 or float64; any strides

MAX_MAGNITUDE = 2.0**240  # squares of such numbers, and products of two squares, stay finite
SMALLEST_RADIUS = 1e-150  # shorter distances have squares that float64 cannot hold
MOST_FILLED = 8 << 30  # bytes of a sparse matrix with its zeros
MAX_INTEGER = 2**53  # integers up to here are float64 numbers exactly


def rows_text(rows: Sequence[int] | NDArray[np.integer[Any]], most: int = 5) -> str:
    """Return offending rows as words: `row 3`, `rows 3, 7` or `rows 3, 7, 9, 11, 12 and 40 more`.

    Examples
    --------
    >>> rows_text([3, 7])
    'rows 3, 7'
    """
    shown = ", ".join(str(int(row)) for row in rows[:most])
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """`value`, if it is one of `choices`."""
    if isinstance(value, str) and value in choices:
        return value
    wanted = ", ".join(repr(choice) for choice in choices)
    raise InputError(f"{name} must be one of {wanted}, got {quoted(value)}")


def check_metric(metric: object) -> Metric:
    """`metric`, if this library knows it."""
    return check_choice("metric", metric, get_args(Metric))  # type: ignore[return-value]


def check_count(name: str, value: object, *, least: int = 1, most: int | None = None) -> int:
    """`value` as an int, if it is a whole number of at least `least`, and at most `most`."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:  # type: ignore[call-overload]
        raise InputError(f"{name} must be an integer >= {least}, got {quoted(value)}")
    if most is not None and int(value) > most:  # type: ignore[call-overload]
        raise InputError(f"{name} must be an integer <= {most}, got {quoted(value)}")
    return int(value)  # type: ignore[call-overload]


def check_radius(radius: object) -> float:
    """`radius` as a float, if it is a number >= 0 (infinity takes in every point)."""
    number = math.nan
    if hasattr(radius, "__float__") and not isinstance(radius, bool | str | bytes):
        with contextlib.suppress(OverflowError, TypeError, ValueError):
            number = float(radius)
    if not number >= 0:
        long = isinstance(radius, int) and radius > 1
        way_out = ": pass infinity for all points" if long else ""
        raise InputError(f"{option('radius')} must be a number >= 0, got {quoted(radius)}{way_out}")
    if 0 < number < SMALLEST_RADIUS:
        raise InputError(
            f"{option('radius')} must be 0 or at least {SMALLEST_RADIUS:g}, got {quoted(radius)}"
        )
    return number


def check_flag(name: str, value: object) -> bool:
    """`value` as a bool, if it is True or False."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InputError(f"{name} must be True or False, got {quoted(value)}")


def check_text(name: str, text: object, *, empty: bool = True) -> str:
    """`text`, if it is a string; an empty string is refused unless `empty` allows it."""
    if isinstance(text, str) and (text or empty):
        return text
    raise InputError(f"{name} must be a {'' if empty else 'non-empty '}string, got {quoted(text)}")


def check_ordered(name: str, entries: object) -> None:
    """Raise if `entries` are a set, which has no order, or a mapping, which is not a list.

    Examples
    --------
    >>> check_ordered("owners", {"ann", "bob"})
    Traceback (most recent call last):
    thresher.errors.InputError: owners must have an order, and a set has none: use a list
    """
    kind = type(entries).__name__
    if isinstance(entries, Mapping | MappingView):
        raise InputError(f"{name} must be a list or an array, got {kind}: use a list of entries")
    if isinstance(entries, Set):
        raise InputError(f"{name} must have an order, and a {kind} has none: use a list")


class DaskCollection(Protocol):
    """An array or a frame of Dask, for type checkers: what `is_dask` finds."""

    def __dask_graph__(self) -> Any: ...


def is_dask(table: Any) -> bool:
    """Whether a table is a collection of Dask; Dask is not imported to find out.

    Examples
    --------
    >>> is_dask(np.zeros((2, 2)))
    False
    """
    return type(table).__module__.split(".")[0] == "dask" and hasattr(table, "__dask_graph__")


def check_no_limits(memory: object, checkpoint: object) -> None:
    """Raise if a run on Dask is given `memory` or `checkpoint`, which work in this process only."""
    if not (memory is None and checkpoint is None):
        raise InputError(
            "memory and checkpoint cannot be used with Dask: workers manage their own memory, "
            "and when one is lost, Dask repeats its work"
        )


def check_features(name: str, table: object, *, exact: bool = True) -> Features:
    """A table of numbers as a two-dimensional float array, without a copy where possible.

    NumPy arrays and memmaps, sparse matrices of SciPy, pandas and polars frames, Arrow tables and
    nested lists are accepted.
    float16, float32 and float64 stay what they are; booleans and short integers become float32,
    long integers float64, always exactly. NaN and infinity are found later, in the one pass over
    the rows that computes their norms (`metrics.measure`).

    With `exact` false, no row is refused for what it holds (long integers are rounded), and a table
    without rows is accepted.
    """
    check_ordered(name, table)
    if is_frame(table):
        array = _frame_to_array(name, table, exact=exact)
    else:
        array = _plain_array(name, table, exact=exact)
    if array.ndim != 2:
        hint = f"; for one feature use {name}.reshape(-1, 1)" if array.ndim == 1 else ""
        raise InputError(
            f"{name} must have two dimensions (rows, features), got {array.ndim}{hint}"
        )
    if array.shape[0] == 0 and exact:
        raise InputError(f"{name} is empty: at least one row is needed")
    if array.shape[1] == 0:
        raise InputError(f"{name} has no columns: at least one feature is needed")
    return _as_floats(name, array, exact=exact)


def check_width(name: str, array: Features, reference: str, width: int) -> None:
    """Raise unless `array` has `width` columns, as `reference` has."""
    if array.shape[1] != width:
        mine = f"{array.shape[1]} feature{'' if array.shape[1] == 1 else 's'}"
        raise InputError(
            f"{name} has {mine} but {reference} has {width}: both must have the same columns"
        )


def check_both(rows: object, labels: object, name: str = "X_val") -> None:
    """Raise unless both parts of the validation set are there, or neither."""
    if (rows is None) != (labels is None):
        raise InputError(f"{name} and y_val go together: pass both, or neither")


def column_names(table: object) -> tuple[str, ...] | None:
    """The names of a data frame's columns; None for arrays, and for frames that number them."""
    if not is_frame(table) or type(table).__name__ == "LazyFrame":
        return None
    arrow = getattr(getattr(table, "schema", None), "names", None)
    names = getattr(table, "columns", ()) if callable(arrow) or arrow is None else arrow
    named = len(names) > 0 and all(isinstance(name, str) for name in names)
    return tuple(names) if named else None


def check_columns(
    name: str, names: tuple[str, ...] | None, reference: str, wanted: tuple[str, ...] | None
) -> None:
    """Raise where both tables name their columns and the names differ."""
    if names is None or wanted is None or names == wanted:
        return
    if sorted(names) == sorted(wanted):
        raise InputError(
            f"{name} has the columns of {reference} in another order: put them in the same order"
        )
    missing = [column for column in wanted if column not in names]
    extra = [column for column in names if column not in wanted]
    raise InputError(
        f"{name} and {reference} have different columns: only in {reference} {missing[:5]}, "
        f"only in {name} {extra[:5]}"
    )


def check_number(name: str, value: object, *, least: float, most: float = math.inf) -> float:
    """`value` as a float, if it is a number from `least` to `most`."""
    number = float("nan")
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not least <= number <= most:
        wanted = f">= {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
        raise InputError(f"{name} must be a number {wanted}, got {quoted(value)}")
    return number


def is_frame(table: object) -> bool:
    """Whether `table` is a data frame (pandas, polars, Arrow), judged without importing one."""
    package = type(table).__module__.split(".")[0]
    return package in {"pandas", "polars", "pyarrow", "modin", "cudf"}


def is_sparse(table: object) -> bool:
    """Whether `table` is a sparse matrix of SciPy, judged without importing it."""
    return type(table).__module__.startswith("scipy.sparse")


def row_count(table: Any) -> int | None:
    """The number of rows, if a table says it; sparse arrays of SciPy have no length."""
    if is_sparse(table):
        return int(table.shape[0])
    return len(table) if hasattr(table, "__len__") else None


def _plain_array(name: str, table: object, *, exact: bool) -> NDArray[Any]:
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        raise InputError(f"{name} is a masked array with masked entries: fill or drop them first")
    if is_sparse(table):
        table = _filled(name, table)
    try:
        array = np.asarray(table)
    except ValueError as ragged:
        raise InputError(f"{name} is not a rectangular table of numbers: {ragged}") from ragged
    if exact:
        _check_mixed(name, table, array)
    return array


def _filled(name: str, table: Any) -> NDArray[Any]:
    """A sparse matrix filled in with zeros; one that would not fit is refused, with advice."""
    size = math.prod(table.shape) * table.dtype.itemsize
    if size > MOST_FILLED:
        raise InputError(
            f"{name} is a sparse matrix that takes {size / 1e9:.0f} GB when it is filled in, and "
            f"{MOST_FILLED / 1e9:.0f} GB is the limit: use fewer columns, for example with "
            f"sklearn.decomposition.TruncatedSVD(256).fit_transform({name})"
        )
    return np.asarray(table.toarray())


def _frame_to_array(name: str, table: object, *, exact: bool) -> NDArray[Any]:
    import narwhals as nw

    if type(table).__name__ in {"Series", "Array", "ChunkedArray", "Index"}:
        raise InputError(f"{name} is one column: pass a table, such as a data frame of this column")
    if type(table).__name__ == "LazyFrame":
        raise InputError(f"{name} is lazy: use {name}.collect()")
    if type(table).__name__ == "RecordBatch":
        import pyarrow as pa

        table = pa.Table.from_batches([table])
    try:
        frame: Any = nw.from_native(table, eager_only=True)
    except (TypeError, ValueError, nw.exceptions.NarwhalsError) as unfit:
        raise InputError(f"{name} cannot be read as a table: {unfit}") from None
    _check_numeric(name, frame, nw.Boolean)
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        return np.empty(frame.shape, np.float32)
    single = {nw.Float32, nw.Boolean, nw.Int8, nw.UInt8, nw.Int16, nw.UInt16}
    if exact:
        check_long_integers(name, frame)
    target = nw.Float32 if all(dtype in single for dtype in frame.schema.values()) else nw.Float64
    array = frame.select(nw.all().cast(target)).to_numpy()
    if array.dtype.kind == "O":  # nullable columns: missing entries become NaN, found later
        array = np.array([[math.nan if _is_na(x) else x for x in row] for row in array], np.float64)
    return np.asarray(array)


def _check_numeric(name: str, frame: Any, boolean: Any) -> None:
    wrong = [
        f"{column!r} ({str(dtype).partition('(')[0]})"  # categories may be what rows hold
        for column, dtype in frame.schema.items()
        if not (dtype.is_numeric() or dtype == boolean) or dtype.is_decimal()
    ]
    if wrong:
        shown = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise InputError(
            f"{name} has non-numeric columns: {shown}; drop them or encode them as numbers"
        )


def check_long_integers(name: str, frame: Any) -> None:
    """Raise if a frame of narwhals has an integer that no float64 holds exactly."""
    for column, dtype in frame.schema.items():
        if dtype.is_integer():
            entries = frame.get_column(column)
            ends = [end for end in (entries.min(), entries.max()) if not _is_na(end)]
            if any(abs(int(end)) > MAX_INTEGER for end in ends):
                raise InputError(_too_long(f"{name} column {column!r}"))


def check_integers(name: str, array: NDArray[Any]) -> None:
    """Raise if an array of integers has one that no float64 holds exactly."""
    long = array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size > 0
    if long and (int(array.max()) > MAX_INTEGER or int(array.min()) < -MAX_INTEGER):
        raise InputError(_too_long(name))


def _check_mixed(name: str, table: Any, array: NDArray[Any]) -> None:
    """Raise if a list of floats and integers became floats, and an integer lost digits by that."""
    listed = isinstance(table, Iterable) and not hasattr(table, "dtype")
    if array.dtype != np.float64 or array.ndim != 2 or not listed:
        return
    large = (np.abs(array) >= MAX_INTEGER).any(axis=1)
    for row, entries in enumerate(table) if large.any() else ():
        if large[row] and any(_is_long(entry) for entry in entries):
            raise InputError(_too_long(f"{name} row {row}"))


def _is_long(entry: Any) -> bool:
    return isinstance(entry, int | np.integer) and abs(int(entry)) > MAX_INTEGER


def _too_long(what: str) -> str:
    return f"{what} has integers beyond 2**53, which no float holds exactly: rescale or drop them"


def _is_na(entry: object) -> bool:
    return entry is None or type(entry).__name__ in {"NAType", "NaTType"}


def _as_floats(name: str, array: NDArray[Any], *, exact: bool) -> Features:
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size in {2, 4, 8}:
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if kind == "b" or (kind in "iu" and size <= 2):
        return array.astype(np.float32)
    if kind in "iu":
        if exact:
            check_integers(name, array)
        return array.astype(np.float64)
    if kind == "O":
        if exact and any(_is_long(entry) for entry in array.flat):
            raise InputError(_too_long(name))
        raise InputError(
            f"{name} is an object array, whose entries may be anything: "
            f"use {name}.astype(float) if they are numbers"
        )
    raise InputError(f"{name} must hold real numbers, got dtype {array.dtype}")
