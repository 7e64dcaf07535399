"""Whether rows are plainly on another scale than a validation set.

Usually the columns of one of them were standardized and those of the other were not. Values of such
rows mean nothing. This looks for gross differences only: rows from another place or of another kind
are ordinary, and so is a row that stands out in one column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats
from thresher.inputs.checked_inputs import Validation

MOST_ROWS = 10_000  # that are judged, evenly spaced
LEAST_VALIDATION = 20  # fewer show too little of the range
TIMES = 30.0  # so many times longer than the longest, or shorter than the shortest, is too much
BEYOND = 0.5  # ranges outside of a column's range; more than half the columns of a row
FAR = 3.0  # the same for a few columns
FEW = 0.05  # of the columns, and at least two
MANY = 10  # rows: most of so many are not all exceptions


def scale_mismatch(X: NDArray[np.generic], validation: Validation) -> str:
    """What is plainly different about the scale of most rows; empty if nothing is.

    Examples
    --------
    >>> from thresher.inputs.checked_inputs import check_validation
    >>> V = np.random.default_rng(0).normal(size=(200, 3))
    >>> public = check_validation(V, V[:, 0] > 0, metric="cosine", classes=None)
    >>> scale_mismatch(V[:1] * 2, public)
    ''
    >>> scale_mismatch(V * [1, 1, 100] + [0, 0, 5000], public)
    'column 3 has values like 4998.23 where the validation set has -2.96718 to 1.9995'
    """
    if validation.rows is None or len(validation) < LEAST_VALIDATION or not X.size:
        return ""
    rows = np.asarray(X[:: -(-len(X) // MOST_ROWS)], np.float64)
    public = validation.rows.as_float64(slice(None))
    outside = _outside(rows, public)
    lengths, usual = (np.linalg.norm(each, axis=1) for each in (public, rows))
    if not _is_off(outside, lengths, usual, max(1.0, 100 / len(public))):
        return ""
    typical, length = np.median(outside, axis=0), float(np.median(usual))
    if typical.max() <= BEYOND and not lengths.min() <= length <= lengths.max():
        return f"rows have lengths {_unlike(length, lengths)}"
    column = int(np.argmax(typical if typical.any() else (outside > 0).mean(axis=0)))
    names = validation.columns
    name = f"column {column + 1}" if names is None else f"column {names[column]!r}"
    value = _usual_outside(rows[:, column], outside[:, column])
    return f"{name} has values {_unlike(value, public[:, column])}"


def _usual_outside(values: Floats, outside: Floats) -> float:
    """Of the values that lie outside, the one whose distance outside is the median."""
    beyond = np.flatnonzero(outside)
    middle = np.argsort(outside[beyond], kind="stable")[len(beyond) // 2]
    return float(values[beyond[middle]])


def _outside(rows: Floats, public: Floats) -> Floats:
    """How far each number lies outside of its column's range, in units of that range."""
    low, high = public.min(axis=0), public.max(axis=0)
    width = np.where(high > low, high - low, np.inf)  # of a constant column no scale is known
    return np.maximum(np.maximum(low - rows, rows - high), 0.0) / width


def _is_off(outside: Floats, lengths: Floats, ours: Floats, allowance: float) -> bool:
    """Whether most rows are off; `allowance` is for few rows, which show little of the range."""
    width = outside.shape[1]
    strict = allowance if len(outside) < MANY else 0.4 * allowance
    signs = (
        (outside > BEYOND * strict).mean(axis=1) > 0.5,
        (outside > FAR * allowance).sum(axis=1) >= max(FEW * width, min(2, width)),
        ours > TIMES * strict * lengths.max(),
        TIMES * strict * ours < lengths.min(),
    )
    return max(float(sign.mean()) for sign in signs) > 0.5


def _unlike(ours: float, theirs: Floats) -> str:
    between = f"{theirs.min():g} to {theirs.max():g}"
    return f"like {ours:g} where the validation set has {between}"
