"""Rows dropped through trees.

Nodes lie in preorder: the left child of a node is the next one, `right` has the other. A leaf has a
negative `feature`, and its own number in `right`. Rows go left where their number is at most the
threshold, and where it is missing if the node says so.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thresher.array_types import Array


@njit(cache=True, nogil=True)
def drop_rows(
    features: Array, feature: Array, threshold: Array, right: Array, missing_left: Array,
    out: Array,
) -> None:  # fmt: skip
    """Write the leaf of each row to `out`, where that is not negative."""
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
def move_row(
    row: Array, inside: Array, nodes: Array, cells: Array, feature: Array, threshold: Array,
    right: Array, missing_left: Array, leave: int, enter: int, counts: Array,
) -> None:  # fmt: skip
    """Count a row out of one class and into another, where -1 is none, in trees it is `inside`.

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
