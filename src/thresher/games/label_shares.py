"""Label shares: what the other rows in a point's leaves say about its label.

In each tree that a point may be in, every class has a share among the other rows in the point's
leaf, or 1/C if there are none. The means of these shares over the point's trees are the evidence
for its label and for other labels. The point itself never counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Array, Floats, Integers, Single
from thresher.kernels.tree_leaves import add_shares
from thresher.neighbors.groups import Groups
from thresher.threads import cut, run

PIECE = 1 << 14  # points of one job


@dataclass(frozen=True)
class LabelShares:
    """The label shares of points, with one entry per point."""

    # own, other: the share of the point's label, and that of the best other label
    own: Floats
    other: Floats
    # the number of that label among the classes; the point's own where there is no other class
    best: Integers
    near: Floats  # how many other rows are in its leaf, as a mean over trees

    @property
    def score(self) -> Floats:
        """The own label's share in own + other: near 0, others contradict it; at 1, nobody does."""
        both = self.own + self.other
        return np.divide(self.own, both, out=np.full(len(both), 0.5), where=both > 0)

    @classmethod
    def joined(cls, parts: Iterable[LabelShares]) -> LabelShares:
        """Join the shares of several parts of the points."""
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

    def take(self, rows: Any) -> LabelShares:
        """The shares of some of the points."""
        return LabelShares(*(column[rows] for column in vars(self).values()))


@dataclass(frozen=True)
class ShareSums:
    """Sums over trees for the points from position `lo` to `hi`, sorted by class."""

    lo: int
    hi: int
    shares: Single  # a row for each point, a column for each class
    near: Integers
    trees: NDArray[np.int32]  # that the point is in
    empty: NDArray[np.int32]  # and in which nobody else is in its leaf

    @classmethod
    def none(cls, lo: int, hi: int, classes: int) -> ShareSums:
        """The sums before the first tree."""
        rows = hi - lo
        shares, near = np.zeros((rows, classes), np.float32), np.zeros(rows, np.int64)
        return cls(lo, hi, shares, near, np.zeros(rows, np.int32), np.zeros(rows, np.int32))

    def add(self, block: Any, groups: Groups, counts: Array) -> None:
        """Add a tree, given how many rows of each class its leaves hold (a row for each class)."""
        table = np.ascontiguousarray(counts.T, np.float32)
        totals = counts.sum(axis=0).astype(np.int64)

        def job(lo: int, hi: int) -> None:
            some = slice(lo - self.lo, hi - self.lo)
            add_shares(
                block.leaf_of[lo:hi], groups.codes[lo:hi], table, totals,
                self.shares[some], self.near[some], self.trees[some], self.empty[some],
            )  # fmt: skip

        run(job, cut(self.lo, self.hi, PIECE), parallel=self.hi - self.lo > PIECE)

    def copy(self) -> ShareSums:
        """A copy of the current sums."""
        return ShareSums(self.lo, self.hi, *(each.copy() for each in self._arrays()))

    def minus(self, before: ShareSums) -> ShareSums:
        """The sums of what was added since `before`."""
        pairs = zip(self._arrays(), before._arrays(), strict=True)
        return ShareSums(self.lo, self.hi, *(now - then for now, then in pairs))

    def _arrays(self) -> tuple[Any, ...]:
        return self.shares, self.near, self.trees, self.empty

    def means(self, groups: Groups) -> LabelShares:
        """The means over the trees of each point, still sorted by class."""
        own = groups.codes[self.lo : self.hi].astype(np.int64)
        each, sums, classes = np.arange(len(own)), self.shares.copy(), self.shares.shape[1]
        trees = np.maximum(self.trees, 1)
        even = np.where(self.trees > 0, self.empty / trees, 1.0) / classes  # where nobody is near
        mine = sums[each, own] / trees + even
        if classes == 1:
            return LabelShares(mine, np.zeros(len(own)), own, self.near / trees)
        sums[each, own] = -np.inf
        best = sums.argmax(axis=1)
        return LabelShares(mine, sums[each, best] / trees + even, best, self.near / trees)


@dataclass
class ShareWatch:
    """An observer that keeps the shares during a walk over trees; see `forest_vote.Watch`."""

    sums: ShareSums  # of some points, to be added to
    # how many rows of each class are in the leaves of a tree, beside the points that fill it
    beside: Callable[[slice], Floats]
    middle: int  # the first cell of the second half of the trees
    # first, paid_first: shares, and payments to all points, after the first half
    first: ShareSums | None = None
    paid_first: Floats | None = None

    def counted(self, block: Any, groups: Groups, sums: Integers) -> None:
        """Add a tree."""
        if block.columns.start == self.middle:
            self.first = self.sums.copy()
        self.sums.add(block, groups, sums + self.beside(block.columns))

    def paid(self, block: Any, out: Floats) -> None:
        """Keep what the first half paid."""
        if block.columns.start == self.middle:
            self.paid_first = out.copy()
