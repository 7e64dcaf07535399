"""A tree of boxes over rows: built by halving, walked to find the leaves that a ball may touch.

Leaf j holds the rows j * size to (j + 1) * size of the tree's order. Node m of level q spans the
leaves m * 2^q to (m + 1) * 2^q, so its children are the nodes 2m and 2m + 1 of the level below.
Nothing here decides who is near: a box that is too large costs time, but loses no pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.array_types import Floats, Integers, Single, Words

PROBES = 64  # rows of a node that say in which direction it is longest


@njit(cache=True, nogil=True)
def split_nodes(C: Single, order: Words, keys: Single, first: int, last: int, span: int) -> None:
    """Halve the nodes first <= m < last of `span` rows each, across their longest direction.

    Afterwards the smaller half of the node's coordinates comes first in `order`.
    """
    for m in range(first, last):
        lo = m * span
        hi = min(order.shape[0], lo + span)
        middle = lo + span // 2
        if middle < hi:
            k = _longest(C, order, lo, hi)
            for i in range(lo, hi):
                keys[i] = C[order[i], k]
            _select(keys, order, lo, hi, middle)


@njit(cache=True, nogil=True)
def _longest(C: Single, order: Words, lo: int, hi: int) -> int:
    step = max(1, (hi - lo) // PROBES)
    best = 0
    length = np.float32(-1)
    for k in range(C.shape[1]):
        low = high = C[order[lo], k]
        for i in range(lo, hi, step):
            low = min(low, C[order[i], k])
            high = max(high, C[order[i], k])
        if high - low > length:
            best = k
            length = high - low
    return best


@njit(cache=True, nogil=True)
def _select(keys: Single, order: Words, lo: int, hi: int, middle: int) -> None:
    """Move the smallest keys of lo..hi before `middle`, and `order` with them."""
    left = lo
    right = hi - 1
    while left < right:
        a, b, c = keys[left], keys[(left + right) >> 1], keys[right]
        pivot = max(min(a, b), min(max(a, b), c))
        i = left
        j = right
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@njit(cache=True, nogil=True)
def fill_leaves(
    C: Single, order: Words, first: int, last: int, columns: Single, low: Single, high: Single
) -> None:
    """The rows of the leaves first <= j < last as columns, padded by zeros, and their boxes."""
    size = columns.shape[2]
    for j in range(first, last):
        lo = j * size
        count = min(order.shape[0], lo + size) - lo
        low[j, :] = np.inf
        high[j, :] = -np.inf
        columns[j, :, count:] = 0.0
        for i in range(count):
            x = C[order[lo + i]]
            for k in range(C.shape[1]):
                columns[j, k, i] = x[k]
                low[j, k] = min(low[j, k], x[k])
                high[j, k] = max(high[j, k], x[k])


@njit(cache=True, nogil=True)
def fill_parents(low: Single, high: Single, offsets: Integers) -> None:
    """The boxes of all levels above the leaves; level q begins at offsets[q]."""
    for q in range(1, offsets.shape[0] - 1):
        below = offsets[q] - offsets[q - 1]
        for m in range(offsets[q + 1] - offsets[q]):
            left = offsets[q - 1] + 2 * m
            right = min(left + 1, offsets[q - 1] + below - 1)
            for k in range(low.shape[1]):
                low[offsets[q] + m, k] = min(low[left, k], low[right, k])
                high[offsets[q] + m, k] = max(high[left, k], high[right, k])


@njit(inline="always", nogil=True)
def _gap(Q: Floats, q: int, low: Single, high: Single, box: int) -> float:
    """The squared distance of a query from a box, 0 inside."""
    gap = 0.0
    for k in range(Q.shape[1]):
        x = Q[q, k]
        t = max(0.0, np.float64(low[box, k]) - x, x - np.float64(high[box, k]))
        gap += t * t
    return gap


@njit(cache=True, nogil=True)
def gaps(
    Q: Floats, low: Single, high: Single, queries: NDArray[np.integer[Any]],
    boxes: NDArray[np.integer[Any]], out: Floats,
) -> None:  # fmt: skip
    """The squared distance of each entry of `queries` from the box in the same place of `boxes`."""
    for t in range(queries.shape[0]):
        out[t] = _gap(Q, queries[t], low, high, boxes[t])


@njit(cache=True, nogil=True)
def touch(
    Q: Floats, first: int, low: Single, high: Single, offsets: Integers, limit: float,
    leaves: Words, queries: Words,
) -> tuple[int, int]:  # fmt: skip
    """Write the leaves whose boxes are within sqrt(limit) of each query, from query `first` on.

    Stop before a query for which there may be no room. Return the first query that is not done, and
    the number of pairs (leaf, query) written.
    """
    top = offsets.shape[0] - 2
    width = offsets[1]
    levels = np.empty(2 * top + 4, np.int64)
    nodes = np.empty(2 * top + 4, np.int64)
    used = 0
    q = first
    while q < Q.shape[0] and used + width <= leaves.shape[0]:
        levels[0] = top
        nodes[0] = 0
        held = 1
        while held > 0:
            held -= 1
            level = levels[held]
            node = nodes[held]
            box = offsets[level] + node
            if _gap(Q, q, low, high, box) > limit:
                continue
            if level == 0:
                leaves[used] = node
                queries[used] = q
                used += 1
                continue
            for child in range(2 * node, 2 * node + 2):
                if offsets[level - 1] + child < offsets[level]:
                    levels[held] = level - 1
                    nodes[held] = child
                    held += 1
        q += 1
    return q, used


@njit(cache=True, nogil=True)
def group_by_leaf(
    leaves: Words, queries: Words, starts: Integers, leaf_of: Words, query_of: Words
) -> None:
    """Sort pairs (leaf, query) by leaf, with the queries of each leaf in their order."""
    starts[:] = 0
    for t in range(leaves.shape[0]):
        starts[leaves[t] + 1] += 1
    for j in range(1, starts.shape[0]):
        starts[j] += starts[j - 1]
    place = starts[:-1].copy()
    for t in range(leaves.shape[0]):
        at = place[leaves[t]]
        place[leaves[t]] += 1
        leaf_of[at] = leaves[t]
        query_of[at] = queries[t]
