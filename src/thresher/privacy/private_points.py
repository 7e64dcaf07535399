"""Private points: whatever a row holds, only that row is affected.

An error that names a bad row, or a class list taken from the labels, would reveal something about
the data. Here a row that cannot be used (a number that is missing, infinite or beyond 1e72; no
direction under the cosine metric; a label that is not in the class list; no owner) counts for
nothing and is worth nothing, and nothing else changes. Only shapes and types are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.checked_inputs import MOST_POINTS, Points, Validation
from thresher.inputs.checks import MAX_MAGNITUDE, check_columns, check_width, column_names
from thresher.inputs.labels import Classes, Codes
from thresher.inputs.precomputed import Distances
from thresher.metrics import SMALLEST_SQUARE, Rows, squared_lengths
from thresher.privacy.names import declared_kind, is_plain, read_labels
from thresher.privacy.rows import read_features, read_number, silence
from thresher.sides.target_side import TargetClasses

TEXT, NUMBERS = ("U", "S"), ("b", "i", "u", "f")  # kinds of NumPy
LABEL = "its label is not a class"
TARGET = "its target is missing, infinite or not a number"
FEATURES = "a feature is missing, not a number or out of range"
DIRECTION = "it has no direction: all features are zero or nearly so"
OWNER = "it has no owner"


@dataclass(frozen=True)
class PrivatePoints:
    """The usable points, their places in the input, and which input rows pass which test."""

    points: Points
    where: NDArray[np.int64]
    passed: Mapping[str, NDArray[np.bool_]]  # by what is wrong with the others

    def __len__(self) -> int:
        return len(self.where)

    @property
    def total(self) -> int:
        """The number of rows of the input."""
        return len(self.passed[FEATURES])

    def in_input_order(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers for the usable points, spread over all rows of the input; 0 for the others."""
        out = np.zeros(self.total)
        out[self.where] = values
        return out

    def unusable(self) -> dict[int, str]:
        """The rows that count for nothing, and why: only for the holder of the points."""
        fine = reduce(np.logical_and, self.passed.values())
        return {
            row: "; ".join(why for why, passed in self.passed.items() if not passed[row])
            for row in np.flatnonzero(~fine).tolist()
        }


def read_points(
    X: Any, y: Any, validation: Validation, owned: NDArray[np.bool_] | None = None
) -> PrivatePoints:
    """Read the points that can be used; raise only for wrong shapes and types.

    If `owned` is given, a point that is not owned cannot be used either.
    """
    labels = read_labels("y", y)
    width = len(validation) if validation.rows is None else validation.rows.width
    array = read_features("X", X, width)
    check_width("X", array, "X_val" if validation.rows is not None else "y_val", width)
    if validation.rows is not None:
        check_columns("X", column_names(X), "X_val", validation.columns)
    if len(labels) != len(array):
        raise InputError(f"y has {len(labels)} labels but X has {len(array)} rows")
    if len(labels) >= MOST_POINTS:
        raise InputError(f"X has {len(labels)} rows, but at most {MOST_POINTS - 1} are possible")
    if owned is not None and len(owned) != len(labels):
        raise InputError(f"owners has {len(owned)} entries but there are {len(labels)} points")
    codes, passed = _read_codes(labels, declared_kind(y), validation.classes)
    passed |= {} if owned is None else {OWNER: owned}
    if validation.rows is None:
        passed[FEATURES] = ~np.isnan(array).any(axis=1)
        where = np.flatnonzero(reduce(np.logical_and, passed.values()))
        some = _some(array, where)
        rows: Rows | Distances = Distances(some, len(some), len(validation))
    else:
        squares = squared_lengths(array)
        passed[FEATURES] = squares <= MAX_MAGNITUDE**2
        if validation.metric == "cosine":
            passed[DIRECTION] = ~(squares < SMALLEST_SQUARE)
        where = np.flatnonzero(reduce(np.logical_and, passed.values()))
        rows = Rows(_some(array, where), _some(squares, where))
    return PrivatePoints(Points(rows, _some(codes, where)), where, passed)


def _read_codes(labels: Any, kind: str, classes: Classes) -> tuple[Any, dict[str, Any]]:
    """The codes of labels or the grid steps of targets, and which rows have them."""
    if isinstance(classes, TargetClasses):
        if kind in TEXT:
            raise InputError(
                "y holds text, judging by its type, but targets must be numbers: convert them"
            )
        targets = _targets(labels)
        fine = np.isfinite(targets)  # others are clipped to the bounds, without a word
        codes: Any = classes.grid.codes(np.clip(np.where(fine, targets, 0.0), *classes.bounds))
        return codes, {TARGET: fine}
    _check_kind(kind, classes)
    codes = _codes(labels, classes)
    return codes, {LABEL: codes >= 0}


def _targets(labels: Any) -> NDArray[np.float64]:
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iubf":
        return labels.astype(np.float64)
    with silence():
        return np.array([read_number(entry) for entry in labels], np.float64)


def _some(array: NDArray[Any], where: NDArray[np.int64]) -> NDArray[Any]:
    return array if len(where) == len(array) else array[where]


def _codes(labels: Any, classes: Classes) -> Codes:
    """Class codes; -1 for everything that is not one of the classes."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub":
        return classes.known_codes(labels)
    entries = labels.tolist() if isinstance(labels, np.ndarray) else labels
    known: dict[Any, int] = {None: -1}
    codes = np.empty(len(entries), np.int32)
    with silence():
        for row, label in enumerate(entries):
            plain = is_plain(label)
            code = known.get(label) if plain else None
            if code is None:
                code = _code(label, classes)
                if plain:
                    known[label] = code
            codes[row] = code
    return codes


def _code(label: Any, classes: Classes) -> int:
    try:
        return int(classes.known_codes([label])[0])
    except Exception:  # noqa: BLE001 - whatever it is, it is no class
        return -1


def _check_kind(kind: str, classes: Classes) -> None:
    """Raise if the labels' type is text and no class is text, or the reverse."""
    text = [isinstance(label, str | bytes) for label in classes.labels]
    if (kind in TEXT and not any(text)) or (kind in NUMBERS and all(text)):
        ours = "text" if kind in TEXT else "numbers"
        raise InputError(
            f"y holds {ours}, judging by its type, but classes are like {classes.labels[0]!r}: "
            "use one kind for both"
        )
