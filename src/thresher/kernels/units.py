"""What each unit of privacy, a point or an owner with all its points, moves in the table.

The bits of a block are laid out sorted by class; `rows[starts[u]:starts[u + 1]]` are the rows of
unit u. For a row of class c, `masks[c]` marks the validation points that carry its label.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Integers, Words

U32 = np.uint32
ONE = U32(1)
LONGEST = np.int64(2**63 - 1)  # a squared length that stands for all longer ones
LARGEST = 1 << 30  # a sum whose square surely fits


@njit(cache=True, nogil=True)
def add_squares(
    words: Words, masks: Words, codes: NDArray[np.int32], rows: Integers, starts: Integers,
    importance: Integers, squares: Integers,
) -> None:  # fmt: skip
    """Add to squares[u] the squared length of unit u's counts in this block.

    A count of v adds importance[v] times its square. A sum beyond `LONGEST` stays `LONGEST`.
    Nothing wraps: a unit has fewer than 2^31 points, and each of them is in one of the two counts
    of v, so that their squares add up to less than 2^62.
    """
    lanes = words.shape[1] * 32
    counts = np.zeros((2, lanes), np.int64)
    for u in range(starts.shape[0] - 1):
        if starts[u + 1] - starts[u] == 1:  # a point: at most one of the two counts moves, by one
            squares[u] += _weight_of_ones(words[rows[starts[u]]], importance)
            continue
        counts[:] = 0
        for r in range(starts[u], starts[u + 1]):
            _add_row(words[rows[r]], masks[codes[rows[r]]], 1, counts)
        for v in range(lanes):
            more = counts[0, v] * counts[0, v] + counts[1, v] * counts[1, v]
            squares[u] = _longer(squares[u], more, importance[v])


@njit(cache=True, nogil=True)
def add_counts(
    words: Words, masks: Words, codes: NDArray[np.int32], rows: Integers, starts: Integers,
    weights: Integers, counts: Integers,
) -> None:  # fmt: skip
    """Add weights[u] for every bit of unit u's rows, to counts[0] for the same label, else [1]."""
    for u in range(starts.shape[0] - 1):
        for r in range(starts[u], starts[u + 1]):
            _add_row(words[rows[r]], masks[codes[rows[r]]], weights[u], counts)


@njit(cache=True, nogil=True)
def add_sum_squares(
    words: Words, adds: Integers, rows: Integers, starts: Integers, importance: Integers,
    squares: Integers,
) -> None:  # fmt: skip
    """Add to squares[u] the squared length of what the rows of unit u add in this block.

    A row adds adds[:, row] to every validation point v whose bit is set, and the square of a sum
    counts importance[v] times. A sum beyond `LONGEST` stays `LONGEST`, and so does one with an
    entry beyond `LARGEST`. Nothing wraps: a unit has fewer than 2^31 rows, and each adds less than
    2^31.
    """
    lanes, entries = words.shape[1] * 32, adds.shape[0]
    sums = np.zeros((entries, lanes), np.int64)
    for u in range(starts.shape[0] - 1):
        sums[:] = 0
        for r in range(starts[u], starts[u + 1]):
            row = rows[r]
            for w in range(words.shape[1]):
                x = words[row, w]
                v = w * 32
                while x:
                    if x & U32(1):
                        for e in range(entries):
                            sums[e, v] += adds[e, row]
                    x = U32(x >> U32(1))
                    v += 1
        for v in range(lanes):
            for e in range(entries):
                part = abs(sums[e, v])
                if part > LARGEST:
                    squares[u] = LONGEST
                else:
                    squares[u] = _longer(squares[u], part * part, importance[v])


@njit(cache=True, nogil=True)
def add_products(units: Integers, squares: Integers, times: Integers, found: Integers) -> None:
    """Add squares[i] * times[i] to found[units[i]]. A sum beyond `LONGEST` stays `LONGEST`."""
    for i in range(units.shape[0]):
        found[units[i]] = _longer(found[units[i]], squares[i], times[i])


@njit(cache=True, nogil=True)
def _add_row(row: Words, mask: Words, weight: int, counts: Integers) -> None:
    for w in range(row.shape[0]):
        same = U32(row[w] & mask[w])
        other = U32(row[w] & ~mask[w])
        first = w * 32
        for j in range(32):
            counts[0, first + j] += weight * np.int64(U32(same >> U32(j)) & ONE)
            counts[1, first + j] += weight * np.int64(U32(other >> U32(j)) & ONE)


@njit(cache=True, nogil=True)
def _weight_of_ones(row: Words, importance: Integers) -> np.int64:
    """The sum of the importance of all bits that are set."""
    total = np.int64(0)
    for w in range(row.shape[0]):
        for j in range(32):
            total += importance[w * 32 + j] * np.int64(U32(row[w] >> U32(j)) & ONE)
    return total


@njit(cache=True, nogil=True)
def _longer(square: np.int64, more: np.int64, times: np.int64) -> np.int64:
    """Return square + times * more, or `LONGEST` if that is less; times is not negative."""
    if times > 0 and more > (LONGEST - square) // times:
        return LONGEST
    return np.int64(square + times * more)
