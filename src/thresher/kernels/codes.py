"""Labels to codes, and codes to a stable order by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Flags, Floats, Integers, LongWords, Words

Codes = NDArray[np.int32]
AnyIntegers = NDArray[np.integer[Any]]


@njit(cache=True, nogil=True)
def present_integers(labels: AnyIntegers, low: int, seen: Flags) -> None:
    """Mark in `seen` which of the integers `low`, `low + 1`, ... occur."""
    for i in range(labels.shape[0]):
        seen[np.int64(labels[i]) - low] = True


@njit(cache=True, nogil=True)
def codes_of_integers(labels: AnyIntegers, low: int, table: Codes, codes: Codes) -> None:
    """Look up every label in `table`, which starts at the integer `low`; -1 if it is absent."""
    size = np.uint64(table.shape[0])
    for i in range(labels.shape[0]):
        # as unsigned numbers, labels below `low` lie beyond the table too
        at = np.uint64(np.int64(labels[i]) - low)
        codes[i] = table[at] if at < size else np.int32(-1)


@njit(cache=True, nogil=True)
def class_positions(codes: Codes, starts: Integers, positions: Words) -> None:
    """Where each point goes when points are sorted by class, in input order within a class.

    `starts` has one entry more than there are classes; class c takes positions
    starts[c] to starts[c + 1].
    """
    starts[:] = 0
    for i in range(codes.shape[0]):
        starts[codes[i] + 1] += 1
    for c in range(1, starts.shape[0]):
        starts[c] += starts[c - 1]
    following = starts.copy()
    for i in range(codes.shape[0]):
        positions[i] = following[codes[i]]
        following[codes[i]] += 1


@njit(cache=True, nogil=True)
def gather(sums: Floats, positions: Words, scale: float, out: Floats) -> None:
    """Bring sums back from class order to input order, divided by `scale`."""
    for i in range(positions.shape[0]):
        out[i] = sums[positions[i]] / scale


@njit(cache=True, nogil=True)
def maybe_members(numbers: LongWords, marks: Flags, shift: np.uint64) -> Integers:
    """The indices of numbers whose mark is set; see `mark`. All marked numbers are among them."""
    found = np.empty(numbers.shape[0], np.int64)
    count = 0
    for i in range(numbers.shape[0]):
        if marks[(numbers[i] * np.uint64(0x9E3779B97F4A7C15)) >> shift]:
            found[count] = i
            count += 1
    return found[:count]


@njit(cache=True, nogil=True)
def mark(numbers: LongWords, marks: Flags, shift: np.uint64) -> None:
    """Set the mark of every number, at the place of its multiplicative hash."""
    for i in range(numbers.shape[0]):
        marks[(numbers[i] * np.uint64(0x9E3779B97F4A7C15)) >> shift] = True
