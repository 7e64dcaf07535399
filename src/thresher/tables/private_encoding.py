"""Private rows as numbers, by an encoder that was fitted on public ones, each row by itself.

What one row holds changes nothing in how another one is read, and it raises nothing: a cell that
cannot be read is NaN, and its row counts for nothing. Names and types of columns are public.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from thresher.array_types import Floats
from thresher.errors import InputError, option
from thresher.inputs.spelling import MISSING, missing
from thresher.privacy.rows import read_features
from thresher.tables.encoder import Encoder
from thresher.tables.feature import Feature


def check_encoder(encoder: Encoder) -> Encoder:
    """`encoder`, if private rows can be read by it: numbers and categories."""
    for feature in encoder.features:
        if feature.kind not in {"number", "categorical"}:
            kind = feature.kind.partition(":")[0]
            raise InputError(
                f"column {feature.name!r} of the validation set holds {kind}, which cannot be "
                f"read from private rows: leave it out with {option('ignore', [feature.name])}, "
                f"or treat it as categories with {option('categorical', [feature.name])}"
            )
    return encoder


def encode_private(source: str, table: pa.Table, encoder: Encoder) -> Floats:
    """The rows of a private table as numbers, NaN where a cell cannot be read.

    As in the public encoder, missing numbers are filled, and a category that was not seen is all
    zeros.
    """
    for feature in encoder.features:
        if feature.name not in table.column_names:
            raise missing(source, "column", feature.name, table.column_names)
    parts = [np.empty((len(table), 0))]
    for feature in encoder.features:
        column = table.column(feature.name)
        read = _categories if feature.kind == "categorical" else _numbers
        parts.append(feature.scale(read(feature, column)))
    return np.concatenate(parts, axis=1)


def _numbers(feature: Feature, column: pa.ChunkedArray) -> Floats:
    found = np.array(read_features("X", pa.table({feature.name: column}), 1), np.float64)
    if feature.fill is not None:
        gaps = np.fromiter((_is_missing(cell) for cell in column.to_pylist()), bool, len(column))
        found[gaps] = feature.fill
    return found


def _categories(feature: Feature, column: pa.ChunkedArray) -> Floats:
    places = {entry: place for place, entry in enumerate(feature.categories)}
    out = np.zeros((len(column), feature.width))
    for row, cell in enumerate(column.to_pylist()):
        place = places.get(_category(cell))
        if place is not None:
            out[row, place] = 1.0
    return out


def _category(cell: Any) -> str | None:
    """A cell as text that tells its category from others; None if it is missing."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))
