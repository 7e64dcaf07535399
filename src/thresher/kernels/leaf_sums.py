"""Points in the leaves of one tree: counted, paid what their leaf pays, told who else is there.

`leaf_of` has one integer a point, negative for points that are not in this tree.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thresher.array_types import Array


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


@njit(cache=True, nogil=True)
def add_shares(
    leaf_of: Array, codes: Array, counts: Array, totals: Array, shares: Array, near: Array,
    trees: Array, empty: Array,
) -> None:  # fmt: skip
    """Add to each point every class's share among the others in its leaf, and how many they are.

    `counts` has a row for each leaf and a column for each class, the point itself included. `trees`
    are those that the point is in, `empty` those in which nobody else is in its leaf.
    """
    for i in range(len(leaf_of)):
        leaf = leaf_of[i]
        if leaf < 0:
            continue
        trees[i] += 1
        others = totals[leaf] - 1
        if others == 0:
            empty[i] += 1
            continue
        near[i] += others
        part, own = np.float32(1.0 / others), codes[i]
        mine = shares[i, own] + (counts[leaf, own] - np.float32(1.0)) * part
        for code in range(counts.shape[1]):
            shares[i, code] += counts[leaf, code] * part
        shares[i, own] = mine


@njit(cache=True, nogil=True)
def add_under_labels(
    leaf_of: Array, codes: Array, rows: Array, lo: int, hi: int, own: Array, base: Array,
    change: Array, out: Array,
) -> None:  # fmt: skip
    """Add to row rows[i] of `out` what the leaf of point i pays under each class.

    Under its own class that is own[class, leaf], under another one base[class, leaf] and the
    other's change[leaf, other]. Points lo, ..., hi - 1 are looked at; those whose leaf is negative
    are not in this tree.
    """
    for i in range(lo, hi):
        leaf, code = leaf_of[i], codes[i]
        if leaf < 0:
            continue
        row = rows[i]
        for other in range(change.shape[1]):
            if other == code:
                out[row, other] += own[code, leaf]
            else:
                out[row, other] += base[code, leaf] + change[leaf, other]
