"""New labels as entries of the column that they are written to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.time_labels import arrow_entries, plain_time
from thresher.tables.column_profile import is_text

TRUTH = {"true": True, "false": False}


def written_label(new: object) -> str:
    """A new label as text, for a file of text."""
    if isinstance(new, np.generic):
        new = new.item()
    if isinstance(new, str | int | float):
        return str(new)
    raise InputError(f"the new label {new!r} must be a string or a number")


def fitting_label(new: object, kind: Any, column: str) -> Any:
    """A new label as an entry of a column of this type; text is read as the type needs it.

    Examples
    --------
    >>> fitting_label("3", pa.int8(), "y"), fitting_label("cat", pa.string(), "y")
    (3, 'cat')
    >>> fitting_label("300", pa.int8(), "y")
    Traceback (most recent call last):
    thresher.errors.InputError: the new label '300' does not fit column 'y' of type int8
    """
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        found = _as_kind(_native(new), plain)
        if not pa.types.is_float16(plain):
            pa.scalar(found, plain)
    except (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError):
        raise InputError(
            f"the new label {new!r} does not fit column {column!r} of type {plain}"
        ) from None
    return found


def relabeled(column: pa.ChunkedArray, labels: Mapping[int, Any], name: str) -> pa.ChunkedArray:
    """A column with other entries in some rows, of the same type."""
    rows = sorted(labels)
    mask = np.zeros(len(column), np.bool_)
    mask[rows] = True
    entries = [labels[row] for row in rows]
    if pa.types.is_duration(column.type):  # Arrow replaces none
        counts = pa.array(entries, column.type).cast(pa.int64())
        whole = pc.replace_with_mask(column.cast(pa.int64()), pa.array(mask), counts)
        return whole.cast(column.type)
    if not pa.types.is_dictionary(column.type):
        return pc.replace_with_mask(column, pa.array(mask), pa.array(entries, column.type))
    whole = column.unify_dictionaries().combine_chunks()
    known = arrow_entries(whole.dictionary)
    known += [entry for entry in dict.fromkeys(entries) if entry not in known]
    codes = [known.index(entry) for entry in entries]
    try:
        new = pa.array(codes, column.type.index_type)
    except pa.ArrowInvalid:
        raise InputError(
            f"column {name!r} of type {column.type} has no room for more categories"
        ) from None
    indices = pc.replace_with_mask(whole.indices, pa.array(mask), new)
    values = pa.array(known, column.type.value_type)
    found = pa.DictionaryArray.from_arrays(indices, values, ordered=column.type.ordered)
    return pa.chunked_array([found])


def relabeled_array(array: NDArray[Any], labels: Mapping[int, Any], name: str) -> NDArray[Any]:
    """An array with other entries in some rows, of the same dtype."""
    out = array.copy()
    for row, label in labels.items():
        out[row] = label
        if out[row] != label:
            raise InputError(
                f"the new label {label!r} does not fit array {name!r} of dtype {array.dtype}"
            )
    return out


def _as_kind(entry: Any, kind: Any) -> Any:
    """A label read as a type needs it; a ValueError if it does not fit."""
    if is_text(kind):
        if isinstance(entry, str):
            return entry
        raise ValueError
    if pa.types.is_boolean(kind):
        return entry if isinstance(entry, bool) else TRUTH[str(entry).lower()]
    if isinstance(entry, bool):
        raise ValueError  # noqa: TRY004 - all that does not fit is one error
    if pa.types.is_integer(kind):
        return _whole(entry)
    if pa.types.is_floating(kind):
        return kind.to_pandas_dtype()(entry).item()  # as near as the type comes
    return arrow_entries(_parsed(entry, kind))[0] if isinstance(entry, str) else entry


def _whole(entry: Any) -> int:
    if isinstance(entry, str) and not re.fullmatch(r"-?[0-9]+", entry):
        raise ValueError
    if int(entry) != entry and not isinstance(entry, str):
        raise ValueError
    return int(entry)


def _parsed(text: str, kind: Any) -> Any:
    """Text as an array of one entry of a type, as a file of text has it."""
    if pa.types.is_duration(kind):
        count, unit = text.split()
        return pa.array([int(count)], pa.duration(unit)).cast(kind)
    if pa.types.is_time(kind):
        return _parsed(f"1970-01-01 {text}", pa.timestamp(kind.unit)).cast(kind)
    if not pa.types.is_timestamp(kind):
        return pa.array([text]).cast(kind)
    digits = len(re.sub("[^0-9].*", "", text.partition(".")[2]))
    unit = "s" if not digits else "ms" if digits <= 3 else "us" if digits <= 6 else "ns"
    return pa.array([text]).cast(pa.timestamp(unit, kind.tz)).cast(kind)


def _native(label: object) -> Any:
    if isinstance(label, np.datetime64 | np.timedelta64):
        return plain_time(label)
    return label.item() if isinstance(label, np.generic) else label
