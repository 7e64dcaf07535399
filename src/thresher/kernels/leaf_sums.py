"""Points in the leaves of one tree: counted, and paid what their leaf pays.

`leaf_of` has one integer a point, negative for points that are not in this tree.
"""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(cache=True, nogil=True)
def count_in_leaves(leaf_of: Array, lo: int, hi: int, out: Array) -> None:
    """Add to each leaf the number of points lo, ..., hi - 1 that are in it."""
    for i in range(lo, hi):
        leaf = leaf_of[i]
        if leaf >= 0:
            out[leaf] += 1


@njit(cache=True, nogil=True)
def add_from_leaves(leaf_of: Array, prices: Array, lo: int, hi: int, out: Array) -> None:
    """Add to each of the points lo, ..., hi - 1 what its leaf pays."""
    for i in range(lo, hi):
        leaf = leaf_of[i]
        if leaf >= 0:
            out[i] += prices[leaf]


@njit(cache=True, nogil=True)
def take_from_leaves(
    leaf_of: Array, prices: Array, weights: Array, lo: int, hi: int, out: Array
) -> None:
    """Take from each of the points lo, ..., hi - 1 what its leaf pays, times its own weight."""
    for i in range(lo, hi):
        leaf = leaf_of[i]
        if leaf >= 0:
            out[i] -= prices[leaf] * weights[i]
