"""The way near pairs are found: all pairs, a tree, or, on request, a tree that may miss some.

The first two give the same bits; "auto" takes the one that is expected to be faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.checks import Metric, check_choice
from thresher.costs import SEED, tree_pays
from thresher.errors import InputError
from thresher.kernels.boxes import gaps
from thresher.metrics import Rows
from thresher.near import Block, Distances, Groups, near_blocks
from thresher.space import Space, lengths
from thresher.tree import Advance, Tree, TreeBlock, tree_blocks

Exact = Literal["auto", "all", "tree"]
Neighbors = Literal["auto", "all", "tree", "approximate"]
RECALL = 0.97  # share of near pairs of a sample that "approximate" finds: others are a bit less
RECALL_SAMPLE = 128  # validation points by which it aims, and as many by which it is measured


def check_neighbors(value: object) -> Neighbors:
    """The name of a way to find near pairs."""
    return cast("Neighbors", check_choice("neighbors", value, get_args(Neighbors)))


def check_exact(neighbors: Neighbors) -> Exact:
    """The name of a way that finds all near pairs, where points are not all there at once."""
    if neighbors == "approximate":
        raise InputError(
            "neighbors='approximate' needs all points at once: leave out memory and checkpoint and "
            "pass arrays, or take neighbors='tree', which is exact"
        )
    return neighbors


@dataclass(frozen=True)
class Search:
    """How the near pairs of these points and validation points are found."""

    points: Rows | Distances
    validation: Rows | None
    metric: Metric
    radius: float
    tree: Tree | None = None  # None: look at all pairs
    reach: float = 1.0  # the part of the radius beyond which a box is left out
    record: dict[str, Any] = field(default_factory=dict)  # what to tell where pairs were missed

    def blocks(
        self, groups: Groups, advance: Advance | None = None
    ) -> Iterator[Block] | Iterator[TreeBlock]:
        """Yield the near pairs, a block of validation points at a time."""
        if self.tree is None:
            return near_blocks(
                self.points, groups, self.validation,
                metric=self.metric, radius=self.radius, advance=advance,
            )  # fmt: skip
        assert isinstance(self.points, Rows) and self.validation is not None  # noqa: S101, PT018
        return tree_blocks(
            self.tree, self.points, groups.positions, groups.starts, self.validation,
            reach=self.reach, advance=advance,
        )  # fmt: skip


def search(
    points: Rows | Distances,
    validation: Rows | None,
    *,
    metric: Metric,
    radius: float,
    neighbors: Neighbors = "auto",
) -> Search:
    """The way asked for, or for "auto" the one that is expected to be faster."""
    every = Search(points, validation, metric, radius)
    if isinstance(points, Distances) or validation is None:
        if neighbors not in {"auto", "all"}:
            raise InputError(
                f"neighbors={neighbors!r} needs features: with metric='precomputed' the distances "
                "are there already, use neighbors='all'"
            )
        return every
    if neighbors == "all":
        return every
    if neighbors == "auto" and not tree_pays(points, validation, metric, radius):
        return every
    tree = Tree.of(points, Space.of(points, validation, metric, radius))
    if neighbors != "approximate":
        return Search(points, validation, metric, radius, tree)
    reach, record = _approximate(tree, points, validation)
    return Search(points, validation, metric, radius, tree, reach, record)


def _approximate(tree: Tree, points: Rows, validation: Rows) -> tuple[float, dict[str, Any]]:
    """A reach that finds `RECALL` of the near pairs, and the share of others that it finds."""
    which = np.random.default_rng(SEED).permutation(len(validation))[: 2 * RECALL_SAMPLE]
    aimed, measured = (
        _near_visits(tree, points, validation, part) for part in np.array_split(which, 2)
    )
    gap, pairs = aimed
    order = np.argsort(gap)
    enough = int(np.searchsorted(np.cumsum(pairs[order]), RECALL * pairs.sum()))
    reach = math.sqrt(gap[order[enough]]) if pairs.any() else 1.0
    gap, pairs = measured
    found = int(pairs[gap <= reach**2].sum())
    record = {
        "neighbors": "approximate",
        "recall": found / int(pairs.sum()) if pairs.any() else None,
        "recall_pairs": int(pairs.sum()),
        "recall_validation_points": len(which) // 2,
    }
    return reach, record


def _near_visits(
    tree: Tree, points: Rows, validation: Rows, which: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Every visit of these validation points: the box's gap, 1 at the radius, and its near pairs.

    With the whole radius the tree finds every pair that the pair rule calls near.
    """
    gap, pairs = [np.empty(0)], [np.empty(0, np.int64)]
    asked = Rows(validation.array[which], validation.squares[which])
    one_class = np.zeros(len(points), np.uint32), np.array([0, len(points)])
    for block in tree_blocks(tree, points, *one_class, asked):
        visits, Q = block.visits, tree.space.coordinates(asked, block.columns)
        limit = tree.space.limit(float(tree.norms.max()), float(lengths(Q).max()))
        out = np.empty(len(visits))
        gaps(tree.space.flat(Q), tree.low, tree.high, visits.query_of, visits.leaf_of, out)
        gap.append(out / limit)
        pairs.append(np.bitwise_count(block.words).sum(axis=1, dtype=np.int64))
    return np.concatenate(gap), np.concatenate(pairs)
