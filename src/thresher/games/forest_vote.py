"""The game of leaves: the soft vote of trees, in which the points in a leaf vote.

A cell is a leaf. It keeps the number of points of each class. Its judges are the validation points
in it. Without a validation set, the points themselves are the judges, and each is left out of its
own game. Utility for a judge is the share of the other points in its leaf that carry its label, as
a mean over its trees.

A price list of a forest keeps the class counts of its leaves. Prices follow from them on demand. A
member of class a that is priced under class b gets the price of a newcomer of class b to the leaf
without that member.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats, Integers
from thresher.errors import InputError
from thresher.games.semivalues import Weights, member_prices, rest_prices
from thresher.inputs.labels import Codes
from thresher.kernels.tree_leaves import add_under_labels
from thresher.neighbors.groups import Groups, Segments
from thresher.threads import cut, run


class Watch(Protocol):
    """An observer of a walk over trees."""

    def counted(self, block: Any, groups: Groups, sums: Integers) -> None:
        """Note that a tree has these sums."""

    def paid(self, block: Any, out: Floats) -> None:
        """Note what the trees before this one have paid to points, which are sorted by class."""


@dataclass(frozen=True)
class ForestVote:
    """The game in which the judges in each leaf pay its points."""

    classes: int  # how many classes there are
    # the weight of the judges of each class in each leaf of some cells, one row per class; from
    # the cells and the points in them
    judges: Callable[[slice, Integers], Floats]
    weights: Weights  # the weights of a semivalue, by the number of points in a leaf
    # where points judge each other: the weight of each as a judge, in input order, or that of
    # all of them
    own: Floats | float | None = None
    # shown each tree when it is counted, and what was paid when it is about to pay
    watch: Watch | None = None

    @property
    def entries(self) -> int:
        """How many numbers a leaf keeps."""
        return self.classes

    def groups(self, codes: Codes) -> Groups:
        """Points sorted by class."""
        return Groups.of(codes, self.classes)

    def sums(self, block: Any, groups: Groups) -> Integers:
        """The points of each class in each leaf of a tree."""
        segments = self._segments(groups)
        found = np.zeros((self.classes, block.columns.stop - block.columns.start), np.int64)
        found[[code for _, _, code in segments]] = block.count(segments)
        if self.watch is not None:
            self.watch.counted(block, groups, found)
        return found

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What a leaf pays a member of each class, and how much of that a judge of its class pays.

        A point that is also a judge does not get the second amount, because it does not pay itself.
        """
        same, other = self._others(sums)
        judges = self.judges(columns, sums)
        gain, loss = member_prices(same, other, self.classes, self.weights)
        lost = judges * loss
        return np.array([lost.sum(axis=0) - lost + judges * gain, gain])

    def pay(self, block: Any, groups: Groups, prices: Floats, out: Floats) -> None:
        """Add what the leaves of a tree pay to each point in `out`."""
        if self.watch is not None:
            self.watch.paid(block, out)
        segments = self._segments(groups)
        codes = [code for _, _, code in segments]
        block.add(segments, prices[0][codes], out)
        if self.own is not None:
            own = np.empty(len(groups.positions))
            own[groups.positions] = self.own
            block.take(segments, prices[1][codes], own, out)

    def utility(self, sums: Integers, columns: slice) -> float:
        """The utility of all points for the judges of these leaves."""
        same, other = self._others(sums)
        near = same + other
        shares = np.where(near > 0, same / np.maximum(near, 1), 1 / self.classes)
        return float((self.judges(columns, sums) * shares).sum())

    def _others(self, sums: Integers) -> tuple[Integers, Integers]:
        """For a judge of each class, how many others have its class, and how many another one."""
        other = sums.sum(axis=0) - sums
        return (sums if self.own is None else np.maximum(sums - 1, 0)), other

    def _segments(self, groups: Groups) -> Segments:
        return groups.segments(np.flatnonzero(np.diff(groups.starts)))


def judge_weights(
    leaves: NDArray[np.int32], codes: Codes, shape: tuple[int, int], weights: Floats | float = 1.0
) -> Floats:
    """The weight of the judges of each class (rows) in each leaf of a tree (columns).

    `leaves` has the leaf of each judge, negative if the judge does not use the tree. By default,
    every judge has weight 1.
    """
    inside = leaves >= 0
    places = codes[inside].astype(np.int64) * shape[1] + leaves[inside]
    each = np.broadcast_to(weights, leaves.shape)[inside]
    found = np.bincount(places, each, minlength=shape[0] * shape[1])
    return found.astype(np.float64).reshape(shape)


PIECE = 1 << 14  # points of one job


@dataclass(frozen=True)
class MemberVote(ForestVote):
    """The same game, but the payments are computed from class counts instead of prices."""

    def pay(self, block: Any, groups: Groups, prices: Any, out: Floats) -> None:
        """Add what the leaves of a tree pay to each point in `out`; `prices` are class counts."""
        found = self.prices(prices.astype(np.int64), block.columns)
        super().pay(block, groups, found, out)


@dataclass(frozen=True)
class OtherVote(ForestVote):
    """The game that pays members, or newcomers, under their own label or another one."""

    member: bool = False
    label: int | None = None

    def pay(self, block: Any, groups: Groups, prices: Any, out: Floats) -> None:
        """Add what the leaves of a tree pay to each point in `out`; `prices` are class counts."""
        own, base, change = label_prices(self, prices.astype(np.int64), block.columns)
        if self.label is not None:
            own = np.where(
                np.arange(self.classes)[:, None] == self.label, own, base + change[self.label]
            )
        segments = self._segments(groups)
        block.add(segments, own[[code for _, _, code in segments]], out)


@dataclass(frozen=True)
class LabelVote(OtherVote):
    """The same game for all labels at once: one column of sums for each class."""

    def pay(
        self, block: Any, groups: Groups, prices: Any, values: Floats,
        counts: NDArray[np.int32] | None = None,
    ) -> None:  # fmt: skip
        """Add to values[i, c] what point i is worth under class c, in input order."""
        if counts is not None:
            raise InputError(
                "a forest has no counts of near validation points: ask for values only"
            )
        own, base, change = label_prices(self, prices.astype(np.int64), block.columns)
        changes = np.ascontiguousarray(change.T)

        def job(lo: int, hi: int) -> None:
            add_under_labels(
                block.leaf_of, groups.codes, groups.rows, lo, hi, own, base, changes, values
            )

        points = len(groups.positions)
        run(job, cut(0, points, PIECE), parallel=points > PIECE)


def label_prices(
    vote: OtherVote, counts: Integers, columns: slice
) -> tuple[Floats, Floats, Floats]:
    """What a leaf pays a point of each class (rows), under its own class and under another one.

    The second price has two terms: one for the point's class, and one for the class it is priced
    under.
    """
    judges, total = vote.judges(columns, counts), counts.sum(axis=0)
    weight = 0.0 if vote.own is None else float(vote.own)

    def pay(members: Integers, others: Any, weights: Floats) -> tuple[Floats, Floats]:
        """What judges of each class pay one more member that has, or does not have, their class."""
        same = members if vote.own is None else np.maximum(members - 1, 0)
        gain, loss = rest_prices(same, np.maximum(others, 0), vote.classes, vote.weights)
        return weights * gain, weights * loss

    if not vote.member:
        gain, loss = pay(counts, total - counts, judges)
        base = np.broadcast_to(loss.sum(axis=0), loss.shape)
        return base + (gain - loss), base.copy(), gain - loss
    left = np.maximum(counts - 1, 0)
    carried = pay(left, total - counts, np.maximum(judges - weight, 0.0))
    lacked = pay(counts, total - 1 - counts, judges)
    rest = lacked[1].sum(axis=0) - lacked[1]  # of judges of all other classes
    return rest + carried[0], rest + carried[1], lacked[0] - lacked[1]
