"""The game of classes: points carry labels, and each cell pays by who agrees with its label.

A cell is a validation point. It keeps two sums: the number of near points with its label, and of
those with another label. It pays two prices: one to a point that agrees, and one to a point that
does not. If points have weights by ring, it keeps two sums and pays two prices for each ring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.games.ring_prices import ring_prices, ring_utility
from thresher.games.semivalues import Semivalue, label_prices, member_prices, utility
from thresher.inputs.checked_inputs import Validation
from thresher.inputs.labels import Codes
from thresher.neighbors.groups import Block, Groups
from thresher.neighbors.kernel import Kernel


@dataclass(frozen=True)
class ClassGame:
    """The game in which points count by whether their labels agree with a validation point's."""

    judges: Codes  # the class of each validation point
    # how many classes there are; a point with the code behind the last one agrees with nobody
    classes: int
    semivalue: Semivalue = "shapley"  # how utility is shared out
    # the weight of each ring, the innermost first; none where all near points count alike
    weights: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, validation: Validation, semivalue: Semivalue = "shapley",
        kernel: Kernel | None = None,
    ) -> ClassGame:  # fmt: skip
        """The game of a validation set."""
        weights = () if kernel is None else kernel.weights
        return cls(validation.codes, len(validation.classes), semivalue, weights)

    @property
    def entries(self) -> int:
        """How many sums a cell keeps: with the label, ring by ring, and then without it."""
        return 2 * max(1, len(self.weights))

    def groups(self, codes: Codes) -> Groups:
        """Points sorted by class."""
        return Groups.of(codes, self.classes + 1)

    def sums(self, block: Block, groups: Groups) -> Integers:
        """Near points with the label of each cell of a block, and with another one: (same, other).

        Sums of rings have one more axis, which is flattened into the rows here.
        """
        judges = self.judges[block.columns]
        segments = groups.segments(np.unique(judges))
        counts = block.count(segments)
        same = np.zeros(counts.shape[1:], np.int64)
        for (_, _, code), row in zip(segments, counts, strict=True):
            same += np.where(judges == code, row, 0)
        return np.array([same, counts.sum(axis=0) - same]).reshape(self.entries, -1)

    def rings(self, sums: Integers) -> Integers:
        """The same sums with an axis for rings: (same or other, ring, cell)."""
        return sums.reshape(2, len(self.weights), -1)

    def prices(self, sums: Integers, columns: slice) -> Floats:  # noqa: ARG002 - all cells alike
        """What each cell pays a member that agrees with it, and one that does not."""
        if self.weights:
            table = self.all_prices(sums)
            return np.array([table[0, 0], table[1, 1]])
        same, other = sums
        return np.array(member_prices(same, other, self.classes, self.semivalue))

    def all_prices(self, sums: Integers) -> Floats:
        """Like `ring_prices`: prices for members and newcomers, under any label; for rings only."""
        same, other = self.rings(sums)
        return ring_prices(same, other, np.array(self.weights), self.classes, self.semivalue)

    def label_prices(self, sums: Integers) -> Floats:
        """The prices for members under any label; see `semivalues.label_prices`."""
        if self.weights:
            return self.all_prices(sums)[:2]
        return label_prices(sums[0], sums[1], self.classes, self.semivalue)

    def pay(self, block: Block, groups: Groups, prices: Floats, out: Floats) -> None:
        """Add what the cells of a block pay to each point in `out`, by class."""
        judges = self.judges[block.columns]
        segments = groups.segments(np.unique(judges))
        agree, differ = prices
        weights = [np.where(judges == code, agree, differ) for _, _, code in segments]
        block.add(segments, np.array(weights), out)

    def utility(self, sums: Integers) -> float:
        """The utility of all counted points."""
        if self.weights:
            same, other = self.rings(sums)
            return ring_utility(same, other, np.array(self.weights), self.classes)
        same, other = sums
        return utility(same, other, self.classes)


@dataclass(frozen=True)
class RelabelGame(ClassGame):
    """The same game, but all members are priced under one label instead of their own.

    Prices are [own, under, cell]: `own` is 0 for a point that carries the label of the cell, and 1
    for others; `under` is 0 where the cell has the label under which points are priced.
    """

    label: int = 0

    def pay(self, block: Block, groups: Groups, prices: Floats, out: Floats) -> None:
        """Add what the cells of a block pay to each point in `out`, by class."""
        asked = self.judges[block.columns] == self.label
        super().pay(block, groups, np.where(asked, prices[:, 0], prices[:, 1]), out)


@dataclass(frozen=True)
class ClassCounts:
    """Counts of near points by class, for use without prices."""

    classes: int
    rings: int = 0  # where the neighborhood has some

    @property
    def entries(self) -> int:
        """How many rows there are: one per class, or one for each class and ring."""
        return self.classes * max(1, self.rings)

    def groups(self, codes: Codes) -> Groups:
        """Points sorted by class."""
        return Groups.of(codes, self.classes)

    def sums(self, block: Block, groups: Groups) -> Integers:
        """The near points of each class, ring by ring."""
        present = np.flatnonzero(np.diff(groups.starts))
        counts = block.count(groups.segments(present))
        found = np.zeros((self.classes, *counts.shape[1:]), np.int64)
        found[present] = counts
        return found.reshape(self.entries, -1)
