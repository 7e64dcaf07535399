"""All points within a radius: found by looking at all pairs, or by a tree.

Both give the same bits; "auto" takes the one that is expected to be faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast, get_args

from thresher.checks import Metric, check_choice
from thresher.errors import InputError
from thresher.inputs import Validation
from thresher.metrics import Rows
from thresher.neighbors.blocks import Block, near_blocks
from thresher.neighbors.coordinates import Space
from thresher.neighbors.costs import tree_pays
from thresher.neighbors.groups import Groups
from thresher.neighbors.tree import Advance, Tree, TreeBlock, tree_blocks
from thresher.precomputed import Distances

Neighbors = Literal["auto", "all", "tree"]


def check_neighbors(value: object) -> Neighbors:
    """The name of a way to find near pairs."""
    return cast("Neighbors", check_choice("neighbors", value, get_args(Neighbors)))


@dataclass(frozen=True)
class Ball:
    """All points within a radius of each validation row, which are its cells.

    Parameters
    ----------
    rows
        The validation rows; None where distances are precomputed.
    cells
        How many there are.
    metric, radius
        What near means.
    neighbors
        How near pairs are found.
    """

    rows: Rows | None
    cells: int
    metric: Metric
    radius: float
    neighbors: Neighbors = "auto"

    @classmethod
    def around(cls, validation: Validation, radius: float, neighbors: Neighbors = "auto") -> Ball:
        """The points within a radius of each validation point."""
        return cls(validation.rows, len(validation), validation.metric, radius, neighbors)

    def search(self, points: Rows | Distances) -> Search:
        """The way in which the points near each validation row are found."""
        return search(
            points, self.rows, metric=self.metric, radius=self.radius, neighbors=self.neighbors
        )

    def blocks(
        self, points: Rows | Distances, groups: Groups, advance: Advance | None = None
    ) -> Iterator[Block] | Iterator[TreeBlock]:
        """Yield the near pairs, a block of validation rows at a time."""
        return self.search(points).blocks(groups, advance)


@dataclass(frozen=True)
class Search:
    """How the near pairs of these points and validation points are found."""

    points: Rows | Distances
    validation: Rows | None
    metric: Metric
    radius: float
    tree: Tree | None = None  # None: look at all pairs

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
            advance=advance,
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
    return Search(points, validation, metric, radius, tree)
