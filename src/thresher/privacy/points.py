"""Private points: whatever a row holds, only that row is affected.

An error that names a bad row, or a class list read off the labels, would say something about the
data. Here a row that cannot be used (a number that is missing, infinite or beyond 1e72; no
direction under the cosine metric; a label that is not in the class list) counts for nothing and is
worth nothing, and nothing else changes. Only shapes and types are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import (
    MAX_MAGNITUDE,
    check_columns,
    check_features,
    check_width,
    column_names,
)
from thresher.errors import InputError
from thresher.inputs import MOST_POINTS, Points, Validation
from thresher.labels import Classes, Codes, is_missing, raw_labels
from thresher.metrics import SMALLEST_SQUARE, Rows, squared_lengths
from thresher.near import Distances


@dataclass(frozen=True)
class PrivatePoints:
    """The usable points, where they stand in the input, and how many rows that has."""

    points: Points
    where: NDArray[np.int64]
    total: int

    def __len__(self) -> int:
        return len(self.where)

    def in_input_order(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers for the usable points as numbers for all rows, 0 for the others."""
        out = np.zeros(self.total)
        out[self.where] = values
        return out


def read_points(
    X: Any, y: Any, validation: Validation, owned: NDArray[np.bool_] | None = None
) -> PrivatePoints:
    """The points that can be used; refuses only what is wrong with shapes and types.

    A point that is not `owned`, where that matters, cannot be used either.
    """
    labels = _labels(y)
    width = len(validation) if validation.rows is None else validation.rows.width
    array = np.empty((0, width)) if _is_empty(X) else check_features("X", X, width=width)
    check_width("X", array, "X_val" if validation.rows is not None else "y_val", width)
    if validation.rows is not None:
        check_columns("X", column_names(X), "X_val", validation.columns)
    if len(labels) != len(array):
        raise InputError(f"y has {len(labels)} labels but X has {len(array)} rows")
    if len(labels) >= MOST_POINTS:
        raise InputError(f"X has {len(labels)} rows, at most {MOST_POINTS - 1} are possible")
    if owned is not None and len(owned) != len(labels):
        raise InputError(f"owners has {len(owned)} entries but there are {len(labels)} points")
    codes = _codes(labels, validation.classes)
    if owned is not None:
        codes = np.where(owned, codes, np.int32(-1))
    if validation.rows is None:
        where = np.flatnonzero((codes >= 0) & ~np.isnan(array).any(axis=1))
        some = _some(array, where)
        rows: Rows | Distances = Distances(some, len(some), len(validation))
    else:
        squares = squared_lengths(array)
        least = SMALLEST_SQUARE if validation.metric == "cosine" else 0.0
        usable = (squares <= MAX_MAGNITUDE**2) & (squares >= least)
        where = np.flatnonzero((codes >= 0) & usable)
        rows = Rows(_some(array, where), _some(squares, where))
    return PrivatePoints(Points(rows, _some(codes, where)), where, len(labels))


def read_owners(owners: Any) -> tuple[Any, ...] | None:
    """The owner of each point, None where it is missing or could not be told from others."""
    if owners is None:
        return None
    raw = list(_labels(owners, "owners"))
    return tuple(None if is_missing(owner) or not _hashable(owner) else owner for owner in raw)


def _labels(labels: Any, name: str = "y") -> Any:
    """Labels as a sequence; masked ones are None."""
    if isinstance(labels, np.ma.MaskedArray):
        return np.ma.filled(labels.astype(object), None).tolist()
    return raw_labels(name, labels)


def _hashable(label: Any) -> bool:
    try:
        hash(label)
    except Exception:  # noqa: BLE001 - whatever it is, it is not a name
        return False
    return True


def _is_empty(X: Any) -> bool:
    return hasattr(X, "__len__") and len(X) == 0


def _some(array: NDArray[Any], where: NDArray[np.int64]) -> NDArray[Any]:
    return array if len(where) == len(array) else array[where]


def _codes(labels: Any, classes: Classes) -> Codes:
    """Class codes, -1 for what is not a class, not even something that could be one."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind != "O":
        _check_kind(labels.dtype, classes)
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub":
        return classes.known_codes(labels)
    usable = [label if _hashable(label) else None for label in labels]
    return np.array([-1 if x is None else classes.known_codes([x])[0] for x in usable], np.int32)


def _check_kind(dtype: np.dtype[Any], classes: Classes) -> None:
    """Refuse an array of text where no class is text, and the reverse: a type, not a value."""
    text = [isinstance(label, str | bytes) for label in classes.labels]
    if (dtype.kind in "US" and not any(text)) or (dtype.kind in "iufb" and all(text)):
        first = classes.labels[0]
        raise InputError(
            f"y has dtype {dtype} but classes are like {first!r}: use one kind for both"
        )
