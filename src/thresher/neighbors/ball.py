"""All points within a radius: found by looking at all pairs, or by a tree.

Both ways give the same bits; "auto" takes the one that is expected to be faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from thresher.array_types import Array
from thresher.errors import InputError
from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import Metric, check_choice
from thresher.inputs.precomputed import Distances
from thresher.metrics import Rows
from thresher.neighbors.blocks import near_blocks
from thresher.neighbors.coordinates import Space
from thresher.neighbors.costs import tree_pays
from thresher.neighbors.groups import Groups
from thresher.neighbors.rings import RingTask, RingVisitTask
from thresher.neighbors.tree import BoxTree
from thresher.neighbors.visits import tree_blocks
from thresher.progress import Advance

Neighbors = Literal["auto", "all", "tree"]


def check_neighbors(value: object) -> Neighbors:
    """The name of a way to find near pairs."""
    return cast("Neighbors", check_choice("neighbors", value, get_args(Neighbors)))


@dataclass(frozen=True)
class Ball:
    """All points within a radius of each validation row, which are its cells."""

    rows: Rows | None  # the validation rows; None where distances are precomputed
    cells: int  # how many there are
    # metric, radius: what near means
    metric: Metric
    radius: float
    neighbors: Neighbors = "auto"  # how near pairs are found
    # whether the rows are the points themselves. Then no point is in its own cell, whatever its
    # distance to itself.
    mutual: bool = False
    # the outer edges of rings, ascending up to the radius. Without them a pair is near or not,
    # and blocks are bits; with them blocks know the ring of each pair.
    edges: tuple[float, ...] = ()

    @classmethod
    def around(
        cls, validation: Validation, radius: float, neighbors: Neighbors = "auto",
        edges: tuple[float, ...] = (),
    ) -> Ball:  # fmt: skip
        """The points within a radius of each validation point."""
        about = validation.metric, radius, neighbors, validation.mutual, edges
        return cls(validation.rows, len(validation), *about)

    def tree(self, points: Rows | Distances) -> BoxTree | None:
        """The tree by which near points are found; None if all pairs are looked at."""
        if isinstance(points, Distances) or self.rows is None:
            if self.neighbors not in {"auto", "all"}:
                raise InputError(
                    f"neighbors={self.neighbors!r} needs features: with metric='precomputed', use "
                    "neighbors='all'"
                )
            if isinstance(points, Distances):
                points.check_reach(self.radius)
            return None
        sides = points, self.rows, self.metric, self.radius
        if self.neighbors == "all" or (self.neighbors == "auto" and not tree_pays(*sides)):
            return None
        return BoxTree.of(points, Space.of(*sides))

    def blocks(
        self, points: Rows | Distances, groups: Groups, advance: Advance | None = None
    ) -> Iterator[Any]:
        """Yield the near pairs, a block of validation rows at a time."""
        tree = self.tree(points)
        how: dict[str, Any] = {"advance": advance}
        if self.edges:
            how |= {"edges": self.edges, "task": RingTask if tree is None else RingVisitTask}
        if tree is None:
            pairs = near_blocks(
                points, groups, self.rows, metric=self.metric, radius=self.radius, **how
            )
            return _without_own(pairs, groups.positions) if self.mutual else pairs
        assert isinstance(points, Rows) and self.rows is not None  # noqa: S101, PT018
        if self.edges:  # a byte a pair, not a bit
            tree = replace(tree, most=max(1, tree.most // 8))
        visits = tree_blocks(tree, points, groups.positions, groups.starts, self.rows, **how)
        return _without_own(visits, tree.place_of()) if self.mutual else visits


def _without_own(blocks: Iterator[Any], own: Array) -> Iterator[Any]:
    """The same blocks, with each point taken out of its own cell."""
    for block in blocks:
        block.take_out(own[block.columns])
        yield block
