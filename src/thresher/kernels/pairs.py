"""The pair rule: float64 numbers of one row or one pair of rows, in a fixed order of operations.

Everything here is a function, bit for bit, of the rows it is given: no other row, no block, no
thread and no dtype of a matrix product enters. Sums run in eight lanes (lane j takes the features
j, j + 8, ...; the lanes are added in a fixed tree), which is as fixed an order as one lane, and
faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Row = NDArray[np.floating[Any]]

EUCLIDEAN = 0
COSINE = 1


@njit(cache=True, nogil=True)
def dot(x: Row, v: Row) -> float:
    """sum_k x_k v_k in float64."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    n = x.shape[0]
    whole = n - n % 8
    for k in range(0, whole, 8):
        a0 += np.float64(x[k]) * np.float64(v[k])
        a1 += np.float64(x[k + 1]) * np.float64(v[k + 1])
        a2 += np.float64(x[k + 2]) * np.float64(v[k + 2])
        a3 += np.float64(x[k + 3]) * np.float64(v[k + 3])
        a4 += np.float64(x[k + 4]) * np.float64(v[k + 4])
        a5 += np.float64(x[k + 5]) * np.float64(v[k + 5])
        a6 += np.float64(x[k + 6]) * np.float64(v[k + 6])
        a7 += np.float64(x[k + 7]) * np.float64(v[k + 7])
    for k in range(whole, n):
        a0 += np.float64(x[k]) * np.float64(v[k])
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@njit(cache=True, nogil=True)
def squared_distance(x: Row, v: Row) -> float:
    """sum_k (x_k - v_k)^2 in float64; exactly 0 for equal rows."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    n = x.shape[0]
    whole = n - n % 8
    for k in range(0, whole, 8):
        t0 = np.float64(x[k]) - np.float64(v[k])
        t1 = np.float64(x[k + 1]) - np.float64(v[k + 1])
        t2 = np.float64(x[k + 2]) - np.float64(v[k + 2])
        t3 = np.float64(x[k + 3]) - np.float64(v[k + 3])
        t4 = np.float64(x[k + 4]) - np.float64(v[k + 4])
        t5 = np.float64(x[k + 5]) - np.float64(v[k + 5])
        t6 = np.float64(x[k + 6]) - np.float64(v[k + 6])
        t7 = np.float64(x[k + 7]) - np.float64(v[k + 7])
        a0 += t0 * t0
        a1 += t1 * t1
        a2 += t2 * t2
        a3 += t3 * t3
        a4 += t4 * t4
        a5 += t5 * t5
        a6 += t6 * t6
        a7 += t7 * t7
    for k in range(whole, n):
        t0 = np.float64(x[k]) - np.float64(v[k])
        a0 += t0 * t0
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@njit(cache=True, nogil=True)
def squared_norms(X: NDArray[np.floating[Any]], out: NDArray[np.float64]) -> None:
    """|x|^2 of every row; NaN or infinite where the row holds such a number."""
    for i in range(X.shape[0]):
        out[i] = dot(X[i], X[i])


@njit(cache=True, nogil=True)
def is_near(x: Row, v: Row, x2: float, v2: float, metric: int, radius: float) -> bool:
    """Whether the distance of the pair is at most `radius`; x2 and v2 are the squared norms.

    Euclidean compares squares. Cosine compares x.v with (1 - radius) |x| |v|, both squared, so that
    pairs exactly on the radius (integer data, say) count: no square root is rounded on the way.
    """
    if metric == EUCLIDEAN:
        return squared_distance(x, v) <= radius * radius
    least = 1.0 - radius  # the least cosine similarity of a near pair
    if least <= -1.0:
        return True
    product = dot(x, v)
    if least > 0.0:
        return product > 0.0 and product * product >= least * least * (x2 * v2)
    return product >= 0.0 or product * product <= least * least * (x2 * v2)


@njit(cache=True, nogil=True)
def distance(x: Row, v: Row, x2: float, v2: float, metric: int) -> float:
    """The number that orders points by distance: squared euclidean, or 1 - cosine similarity."""
    if metric == EUCLIDEAN:
        return squared_distance(x, v)
    return 1.0 - dot(x, v) / (np.sqrt(x2) * np.sqrt(v2))


@njit(cache=True, nogil=True)
def fingerprints(X: NDArray[np.float64], salt: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
    """A 64-bit number for each row and its integer of `salt`: equal for equal rows, else not.

    Rows are compared as float64 numbers (so -0.0 is 0.0), whatever dtype they came in. Two
    different rows agree with probability 2^-64; this is no defense against rows made to agree.
    """
    bits = (X + 0.0).view(np.uint64)
    multiplier = np.uint64(0x9E3779B97F4A7C15)
    shift = np.uint64(29)
    for i in range(X.shape[0]):
        h = np.uint64(salt[i]) * multiplier + np.uint64(0x243F6A8885A308D3)
        for k in range(X.shape[1]):
            h = (h ^ bits[i, k]) * multiplier
            h ^= h >> shift
        out[i] = h
