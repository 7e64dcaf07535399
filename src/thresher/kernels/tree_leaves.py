"""Drop rows through trees, and count, pay and compare points in their leaves.

Nodes are in preorder: the left child of a node is the next one, and `right` has the other. A leaf
has a negative `feature`, and its own number in `right`. Rows go left if their number is at most the
threshold, or if it is missing and the node says so. `leaf_of` has one integer for each point, which
is negative for points that are not in a tree.
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
    """Subtract from each of the points lo, ..., hi - 1 what its leaf pays, times its own weight."""
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

    Under its own class, that is own[class, leaf]; under another one, it is base[class, leaf] plus
    change[leaf, other]. Points lo, ..., hi - 1 are looked at; those whose leaf is negative are not
    in this tree.
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


@njit(cache=True, nogil=True)
def drop_rows(
    features: Array, feature: Array, threshold: Array, right: Array, missing_left: Array,
    out: Array,
) -> None:  # fmt: skip
    """Write the leaf of each row to `out`, except where `out` is negative."""
    for i in range(len(features)):
        if out[i] < 0:
            continue
        node = 0
        while feature[node] >= 0:
            number = features[i, feature[node]]
            if number <= threshold[node] or (missing_left[node] and np.isnan(number)):
                node += 1
            else:
                node = right[node]
        out[i] = right[node]


@njit(cache=True, nogil=True)
def move_in_trees(
    row: Array, inside: Array, nodes: Array, cells: Array, feature: Array, threshold: Array,
    right: Array, missing_left: Array, leave: int, enter: int, counts: Array,
) -> None:  # fmt: skip
    """Count a row out of one class and into another (-1 is none) in the trees it is `inside`.

    `nodes` and `cells` have the first node and the first leaf of each tree.
    """
    for tree in range(len(inside)):
        if not inside[tree]:
            continue
        first = nodes[tree]
        node = first
        while feature[node] >= 0:
            number = row[feature[node]]
            if number <= threshold[node] or (missing_left[node] and np.isnan(number)):
                node += 1
            else:
                node = first + right[node]
        leaf = cells[tree] + right[node]
        if leave >= 0:
            counts[leave, leaf] -= 1
        if enter >= 0:
            counts[enter, leaf] += 1
