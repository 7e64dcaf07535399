"""Which rows point in the same direction up to rounding, among rows whose projections agree."""

from __future__ import annotations

import numpy as np
from numba import njit

from thresher.array_types import Flags, Floats, Integers, Numbers

SPLIT = 2.0**27 + 1.0


@njit(cache=True, nogil=True)
def mark_candidates(lines: Floats, bound: float, marks: Flags) -> None:
    """Mark rows of `lines`, sorted by the first column, that have another one within `bound`."""
    for i in range(lines.shape[0]):
        j = i + 1
        while j < lines.shape[0] and lines[j, 0] - lines[i, 0] <= bound:
            if _agree(lines[i], lines[j], bound):
                marks[i] = marks[j] = True
                break
            j += 1


@njit(cache=True, nogil=True)
def find_leaders(
    X: Numbers, rows: Integers, turn: Integers, lines: Floats, bound: float, tolerance: float,
    largest: float, most: int, leaders: Integers,
) -> None:  # fmt: skip
    """Give each row the first one, by position, that points in its direction and has no other.

    X[rows[i]] is the row that line i is about, and `leaders` is the number of a line. Lines take
    turns in the order of `turn`. Each looks both ways until the first projection is too far, or
    until `most` rows had its projections but not its direction.
    """
    for i in turn:
        if leaders[i] >= 0:
            continue
        leaders[i] = i
        for way in (-1, 1):
            j = i + way
            misses = 0
            while 0 <= j < lines.shape[0] and misses < most:
                if abs(lines[j, 0] - lines[i, 0]) > bound:
                    break
                if leaders[j] < 0 and _agree(lines[i], lines[j], bound):
                    if same_direction(X[rows[i]], X[rows[j]], tolerance, largest):
                        leaders[j] = i
                    else:
                        misses += 1
                j += way


@njit(cache=True, nogil=True)
def _agree(x: Floats, v: Floats, bound: float) -> bool:
    apart = 0
    for p in range(x.shape[0]):
        apart += int(abs(x[p] - v[p]) > bound)
    return apart == 0


@njit(cache=True, nogil=True)
def same_direction(x: Numbers, v: Numbers, tolerance: float, largest: float) -> bool:
    """Whether v is a positive multiple of x, each feature within a relative tolerance.

    If both are rows of whole numbers up to `largest`, v must be an exact multiple.
    """
    main = 0
    whole = True
    for k in range(x.shape[0]):
        a, b = np.float64(x[k]), np.float64(v[k])
        if abs(a) > abs(np.float64(x[main])):
            main = k
        whole &= a == np.floor(a) and b == np.floor(b)
        whole &= abs(a) <= largest and abs(b) <= largest
    a, b = np.float64(x[main]), np.float64(v[main])
    if not (a > 0.0 and b > 0.0) and not (a < 0.0 and b < 0.0):
        return False
    ratio = b / a
    for k in range(x.shape[0]):
        c, d = np.float64(x[k]), np.float64(v[k])
        if abs(d - ratio * c) > tolerance * abs(d):
            return False
        if whole and (a * d != b * c or _rest(a, d) != _rest(b, c)):
            return False
    return True


@njit(cache=True, nogil=True)
def _rest(x: float, v: float) -> float:
    """What rounding takes from x * v, exactly (Dekker 1971, Veltkamp's splitting)."""
    t = SPLIT * x
    x1 = t - (t - x)
    x2 = x - x1
    t = SPLIT * v
    v1 = t - (t - v)
    v2 = v - v1
    product = x * v
    return ((x1 * v1 - product) + x1 * v2 + x2 * v1) + x2 * v2
