"""New labels as entries of the column that they are to stand in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.tables.cells import is_text

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
    entry = new.item() if isinstance(new, np.generic) else new
    try:
        found = _as_kind(entry, plain)
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
    if not pa.types.is_dictionary(column.type):
        return pc.replace_with_mask(column, pa.array(mask), pa.array(entries, column.type))
    whole = column.unify_dictionaries().combine_chunks()
    known = whole.dictionary.to_pylist()
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
    """A label read as a type needs it; a ValueError where it cannot be."""
    if is_text(kind):
        if isinstance(entry, str):
            return entry
        raise ValueError
    if pa.types.is_boolean(kind):
        return entry if isinstance(entry, bool) else TRUTH[str(entry).lower()]
    if isinstance(entry, bool):
        raise ValueError  # noqa: TRY004 - all that does not fit is one error
    if pa.types.is_integer(kind):
        if isinstance(entry, str) and not re.fullmatch(r"-?[0-9]+", entry):
            raise ValueError
        if int(entry) != entry and not isinstance(entry, str):
            raise ValueError
        return int(entry)
    return float(entry) if pa.types.is_floating(kind) else entry
