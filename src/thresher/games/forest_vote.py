"""The game of leaves: the soft vote of trees, each of which asks the points in its leaves.

A cell is a leaf. It keeps the number of points of each class. Its judges are the validation points
in it or, without a validation set, the points themselves, each taken out of its own game. A judge
asks which share of the other points in its leaf carries its label, and all of its trees weigh the
same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats, Integers
from thresher.games.semivalues import Weights, member_prices
from thresher.inputs.labels import Codes
from thresher.neighbors.groups import Groups, Segments


class Watch(Protocol):
    """Whoever looks on while trees are walked over."""

    def counted(self, block: Any, groups: Groups, sums: Integers) -> None:
        """A tree has these sums."""

    def paid(self, block: Any, out: Floats) -> None:
        """The trees before this one have paid so much, to points laid out by class."""


@dataclass(frozen=True)
class ForestVote:
    """What the judges in each leaf pay."""

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
        """What a leaf pays a member of each class, and what a judge of its class pays it.

        The second is what a point that is a judge, too, does not get from itself.
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
        """For a judge of each class: the others of its class, and of all other classes."""
        other = sums.sum(axis=0) - sums
        return (sums if self.own is None else np.maximum(sums - 1, 0)), other

    def _segments(self, groups: Groups) -> Segments:
        return groups.segments(np.flatnonzero(np.diff(groups.starts)))


def judge_weights(
    leaves: NDArray[np.int32], codes: Codes, shape: tuple[int, int], weights: Floats | float = 1.0
) -> Floats:
    """The weight of the judges of each class (rows) in each leaf of a tree (columns).

    Judges are in these leaves, negative where one does not use the tree. Without weights they are
    counted.
    """
    inside = leaves >= 0
    places = codes[inside].astype(np.int64) * shape[1] + leaves[inside]
    each = np.broadcast_to(weights, leaves.shape)[inside]
    found = np.bincount(places, each, minlength=shape[0] * shape[1])
    return found.astype(np.float64).reshape(shape)
