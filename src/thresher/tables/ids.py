"""Which columns are ids: names of rows, which say nothing about labels."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

LEAST_IDS = 20  # rows; fewer may well have different numbers
DISTINCT = 0.95  # share of ids that are different, though rows may have copies
DENSE = 2.0  # ids of n rows are numbers from a range of at most so many times n
OWNERS_OF_IDS = "case|client|customer|item|order|patient|person|record|sample|user|[cgpsu]?"
ID_NAME = re.compile(
    rf"(?i:(?:.*[\W_])?(?:(?:{OWNERS_OF_IDS})id|ids|uuid|guid|key|idx|index|row))|.*[a-z](?:Id|ID)",
    re.DOTALL,
)
CODE = re.compile(r"[\w@.:/#+=-]{1,64}")  # one word, such as p17 or a hash


def is_id_name(name: str) -> bool:
    """Whether a column is called as ids are.

    Examples
    --------
    >>> [name for name in ("id", "patient_id", "rowId", "width", "paid") if is_id_name(name)]
    ['id', 'patient_id', 'rowId']
    """
    return ID_NAME.fullmatch(name) is not None


def why_ids(name: str, column: NDArray[np.float64]) -> str:
    """Why a column of numbers looks like ids; empty where it does not."""
    rows, whole = len(column), np.rint(column)
    if rows < LEAST_IDS or not np.allclose(column, whole, rtol=1e-13, atol=1e-6):
        return ""
    distinct = len(np.unique(whole))
    if distinct < DISTINCT * rows:
        return ""
    different = f"{'all' if distinct == rows else 'nearly all'} of them different"
    if (np.diff(whole) >= 0).all() or (np.diff(whole) <= 0).all():
        return f"whole numbers in order, {different}"
    dense = float(np.ptp(whole)) < DENSE * rows
    return f"whole numbers, {different}" if dense or is_id_name(name) else ""


def are_codes(name: str, cells: list[str]) -> bool:
    """Whether different texts look like ids: all single words, with digits or called as ids are.

    Examples
    --------
    >>> are_codes("patient", ["p1", "p2"]), are_codes("city", ["Rome", "Oslo"])
    (True, False)
    """
    words = all(CODE.fullmatch(cell) for cell in cells)
    digits = sum(any(x.isdigit() for x in cell) for cell in cells)
    return words and (is_id_name(name) or digits > DISTINCT * len(cells))
