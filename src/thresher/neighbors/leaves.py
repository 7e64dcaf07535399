"""Near = in the same leaf of a tree: one cell for each leaf, one block for each tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Flags, Floats, Integers
from thresher.kernels.target_pay import pay_leaves
from thresher.kernels.target_sums import ENTRIES, sum_leaves
from thresher.kernels.tree_leaves import add_from_leaves, count_in_leaves, take_from_leaves
from thresher.neighbors.groups import Groups, Segments, by_entry
from thresher.progress import Advance
from thresher.threads import cut, in_order, run

Places = NDArray[np.int32]
PIECE = 1 << 16  # points of one job


class LeafRows(Protocol):
    """Rows that know which leaf of each tree they are in."""

    def __len__(self) -> int:
        """How many rows there are."""

    def leaves(self, tree: int) -> Places:
        """The leaf of each row in one tree, negative where the row is not in it."""


@dataclass(frozen=True)
class LeafTable:
    """Leaves that are known: one row per point, one column per tree."""

    table: Places
    allowed: Flags | None = None  # where each row may be; everywhere if None

    def __len__(self) -> int:
        return len(self.table)

    def leaves(self, tree: int) -> Places:
        """The leaf of each row in one tree, negative where the row is not in it."""
        column = self.table[:, tree]
        return column if self.allowed is None else np.where(self.allowed[:, tree], column, -1)


@dataclass(frozen=True)
class Leaves:
    """The leaves of some trees, as cells; `starts` has the first cell of each tree, and the end."""

    starts: Integers

    @property
    def cells(self) -> int:
        """How many leaves there are."""
        return int(self.starts[-1])

    def tree(self, columns: slice) -> int:
        """The tree whose leaves these cells are."""
        return int(np.searchsorted(self.starts, columns.start, side="right")) - 1

    def blocks(
        self, rows: LeafRows, groups: Groups, advance: Advance | None = None
    ) -> Iterator[LeafBlock]:
        """Yield the trees with their points, one after the other."""
        trees = [(tree,) for tree in range(len(self.starts) - 1)]
        for (tree,), found in zip(trees, in_order(rows.leaves, trees, parallel=True), strict=True):
            leaf_of = np.empty(len(found), np.int32)
            leaf_of[groups.positions] = found
            yield LeafBlock(slice(int(self.starts[tree]), int(self.starts[tree + 1])), leaf_of)
            if advance is not None:
                advance(1)


@dataclass(frozen=True)
class LeafBlock:
    """The leaves of one tree, and the points in them, laid out by class."""

    columns: slice
    leaf_of: Places

    def count(self, segments: Segments) -> Integers:
        """How many points of each segment are in each leaf."""
        found = np.zeros((len(segments), self.columns.stop - self.columns.start), np.int64)
        for (lo, hi, _), row in zip(segments, found, strict=True):
            count_in_leaves(self.leaf_of, lo, hi, row)
        return found

    def add(self, segments: Segments, weights: Floats, out: Floats) -> None:
        """Add to each point, for the leaf that it is in, the weight of its segment there."""

        def job(lo: int, hi: int, row: Floats) -> None:
            add_from_leaves(self.leaf_of, row, lo, hi, out)

        self._run(job, segments, weights)

    def take(self, segments: Segments, weights: Floats, factors: Floats, out: Floats) -> None:
        """Subtract what `add` adds, with each point's weight multiplied by its own factor."""

        def job(lo: int, hi: int, row: Floats) -> None:
            take_from_leaves(self.leaf_of, row, factors, lo, hi, out)

        self._run(job, segments, weights)

    def sum_targets(self, targets: Floats, groups: Integers, count: int, scale: float) -> Integers:
        """Sums of the targets in each leaf, by group; see `kernels.target_sums`."""
        size = self.columns.stop - self.columns.start
        found = np.zeros((count * size, ENTRIES), np.int64)
        sum_leaves(self.leaf_of, targets, scale, groups, size, found)
        return by_entry(found, count)

    def pay_targets(self, targets: Floats, prices: Floats, out: Floats) -> None:
        """Add to each point in `out` what it is paid by its target; see `kernels.target_pay`."""
        by_leaf = np.ascontiguousarray(prices.T)

        def job(lo: int, hi: int) -> None:
            pay_leaves(self.leaf_of, lo, hi, targets, by_leaf, out)

        run(job, cut(0, len(self.leaf_of), PIECE), parallel=len(self.leaf_of) > PIECE)

    def _run(self, job: Callable[..., None], segments: Segments, weights: Floats) -> None:
        pieces = [
            (*piece, row)
            for (lo, hi, _), row in zip(segments, weights, strict=True)
            for piece in cut(lo, hi, PIECE)
        ]
        run(job, pieces, parallel=len(self.leaf_of) > PIECE)
