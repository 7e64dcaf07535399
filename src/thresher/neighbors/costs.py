"""What it costs to find all near pairs, by looking at every pair and by a tree.

The constants are nanoseconds of one core, fitted by `benchmarks/neighbors.py --fit`. How many boxes
a ball touches and how many pairs are near depends on the data, and is measured on a small sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.inputs.checks import Metric
from thresher.kernels.boxes import gaps
from thresher.metrics import DIRECT_WIDTH, Rows
from thresher.neighbors.coordinates import Space, lengths
from thresher.neighbors.tree import LEAF, BoxTree
from thresher.threads import one_blas_thread


@dataclass(frozen=True)
class Costs:
    """The constants, in nanoseconds of one core."""

    all_pair: float  # a pair, where every pair is looked at
    all_feature: float  # and each of its features
    build_level: float  # a point on each level of the tree
    build_feature: float  # and each of its features
    row_feature: float  # a feature of a point or validation point, whatever is near
    visit: float  # a leaf that a ball touches
    pair_feature: float  # a feature of a pair with a point of such a leaf
    near: float  # a near pair


NARROW = Costs(0.172, 0.060, 26, 4, 60, 47, 0.0555, 17)  # up to DIRECT_WIDTH features
WIDE = Costs(0.47, 0.0275, 30, 3.3, 16, 530, 0.0275, 17)

WORTH_ASKING = 5e7  # nanoseconds of looking at all pairs below which no sample is drawn
MARGIN = 0.9  # a tree must be expected to take at most this share of the time
ASKING = 600.0  # nanoseconds that a point of the sample takes; 64 of them are in a leaf
ASKING_FEATURE = 16.0  # and each of its features
ASKING_SHARE = 0.03  # of the time of all pairs that asking may take
POINTS = 1 << 14  # of the sample at most
SAMPLE = 16 << 20  # bytes of it at most
SMALL_LEAF = 64
QUERIES = 256  # validation points of the sample
SEED = 9


@dataclass(frozen=True)
class Expected:
    """What a sample says about a tree: leaves that a validation point touches, and near pairs."""

    visits: float  # for each validation point
    near: float  # share of all pairs


def costs_of(width: int) -> Costs:
    """The constants for rows with `width` features."""
    return NARROW if width <= DIRECT_WIDTH else WIDE


def tree_cost(points: int, validation: int, width: int, expected: Expected) -> float:
    """Nanoseconds to build a tree over the points and to find all near pairs by it."""
    costs = costs_of(width)
    levels = max(0.0, math.log2(points / LEAF))
    build = points * (costs.build_level * levels + costs.build_feature * width)
    visit = costs.visit + costs.pair_feature * LEAF * width
    near = costs.near * expected.near * points
    rows = costs.row_feature * width * (points + validation)
    return build + rows + validation * (expected.visits * visit + near)


def tree_pays(points: Rows, validation: Rows, metric: Metric, radius: float) -> bool:
    """Whether a tree is expected to be faster than looking at every pair."""
    sizes = len(points), len(validation), points.width
    costs = costs_of(points.width)
    every = sizes[0] * sizes[1] * (costs.all_pair + costs.all_feature * points.width)
    if every < WORTH_ASKING or tree_cost(*sizes, Expected(1, 0)) > MARGIN * every:
        return False
    most_near = every / (costs.near * len(points) * len(validation))
    asking = ASKING + ASKING_FEATURE * points.width
    most = min(POINTS, SAMPLE // (points.array.itemsize * points.width))
    count = max(SMALL_LEAF, min(most, int(ASKING_SHARE * every / asking)))
    found = expect(points, validation, metric, radius, most_near, count)
    return found is not None and tree_cost(*sizes, found) <= MARGIN * every


def expect(
    points: Rows, validation: Rows, metric: Metric, radius: float, most_near: float = 1.0,
    count: int = POINTS,
) -> Expected | None:  # fmt: skip
    """What `count` points say about a tree over all; None if more than `most_near` are near.

    The tree over a sample has fewer levels. Its last two levels show by how much the share of boxes
    that are touched falls from one level to the next; the same is assumed down to the leaves.
    """
    space = Space.of(points, validation, metric, radius)
    some, asked = _sample(points, count), _sample(validation, QUERIES)
    Q = space.coordinates(asked, slice(None))
    near = _near_share(space, space.coordinates(some, slice(0, 2 * QUERIES)), Q)
    if near > most_near:
        return None
    tree = BoxTree.of(some, space, SMALL_LEAF)
    limit = space.limit(float(tree.norms.max()), float(lengths(Q).max()))
    touched = [_touched(tree, space.flat(Q), level, limit) for level in (0, 1)]
    rate = max(0.5, touched[0] / touched[1]) if touched[1] else 0.5
    leaves = -(-len(points) // LEAF)
    further = math.log2(leaves / len(tree.columns))
    share = min(1.0, touched[0] * rate**further) if further > 0 else touched[0]
    return Expected(max(1.0, leaves * max(share, 2 * near)), near)


def _sample(rows: Rows, count: int) -> Rows:
    if len(rows) <= count:
        return rows
    which = np.random.default_rng(SEED).choice(len(rows), count, replace=False, shuffle=False)
    return rows.some(which)


def _near_share(space: Space, C: NDArray[np.float64], Q: NDArray[np.float64]) -> float:
    """The share of near pairs, roughly: what rounding decides does not matter here."""
    with one_blas_thread():
        product = C @ Q.T
    if space.metric == "cosine":
        return float((1 - product <= space.radius).mean())
    squares = lengths(C)[:, None] ** 2 + lengths(Q) ** 2 - 2 * product
    reach = space.radius * space.scale
    return float((squares <= reach * reach).mean())


def _touched(tree: BoxTree, Q: NDArray[np.float64], level: int, limit: float) -> float:
    """The share of the boxes of one level that a query touches."""
    level = min(level, len(tree.offsets) - 2)
    boxes = np.arange(tree.offsets[level], tree.offsets[level + 1])
    out = np.empty(len(Q) * len(boxes))
    queries = np.repeat(np.arange(len(Q)), len(boxes))
    gaps(Q, tree.low, tree.high, queries, np.tile(boxes, len(Q)), out)
    return float((out <= limit).mean())
