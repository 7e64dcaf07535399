"""The game of classes: points carry labels, and each cell asks who agrees with its own.

A cell is a validation point. It keeps two sums, the near points with its label and those with
another one, and pays two prices: one to a point that agrees, one to a point that does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.games.semivalues import Semivalue, member_prices, utility
from thresher.inputs import Validation
from thresher.labels import Codes
from thresher.neighbors.groups import Block, Groups

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassGame:
    """Whose label agrees with that of a validation point.

    Parameters
    ----------
    judges
        The class of each validation point.
    classes
        How many classes there are; a point with the code behind the last one agrees with nobody.
    semivalue
        How utility is shared out.
    """

    judges: Codes
    classes: int
    semivalue: Semivalue = "shapley"
    entries: ClassVar[int] = 2

    @classmethod
    def of(cls, validation: Validation, semivalue: Semivalue = "shapley") -> ClassGame:
        """The game of a validation set."""
        return cls(validation.codes, len(validation.classes), semivalue)

    def groups(self, codes: Codes) -> Groups:
        """Points sorted by class."""
        return Groups.of(codes, self.classes + 1)

    def sums(self, block: Block, groups: Groups) -> Integers:
        """Near points with the label of each cell of a block, and with another: (same, other)."""
        judges = self.judges[block.columns]
        segments = groups.segments(np.unique(judges))
        counts = block.count(segments)
        same = np.zeros(counts.shape[1], np.int64)
        for (_, _, code), row in zip(segments, counts, strict=True):
            same += np.where(judges == code, row, 0)
        return np.array([same, counts.sum(axis=0) - same])

    def prices(self, sums: Integers, columns: slice) -> Floats:  # noqa: ARG002 - all cells alike
        """What each cell pays a member that agrees with it, and one that does not."""
        same, other = sums
        return np.array(member_prices(same, other, self.classes, self.semivalue))

    def pay(self, block: Block, groups: Groups, prices: Floats, out: Floats) -> None:
        """Add what the cells of a block pay to each point in `out`, by class."""
        judges = self.judges[block.columns]
        segments = groups.segments(np.unique(judges))
        agree, differ = prices
        weights = [np.where(judges == code, agree, differ) for _, _, code in segments]
        block.add(segments, np.array(weights), out)

    def utility(self, sums: Integers) -> float:
        """The utility of all counted points."""
        same, other = sums
        return utility(same, other, self.classes)


@dataclass(frozen=True)
class RelabelGame(ClassGame):
    """The same game for members that are priced under one label, whatever their own is.

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
    """How many points of each class are near: what is counted where nobody is paid."""

    entries: int

    def groups(self, codes: Codes) -> Groups:
        """Points sorted by class."""
        return Groups.of(codes, self.entries)

    def sums(self, block: Block, groups: Groups) -> Integers:
        """The near points of each class, one row a class."""
        present = np.flatnonzero(np.diff(groups.starts))
        found = np.zeros((self.entries, block.columns.stop - block.columns.start), np.int64)
        found[present] = block.count(groups.segments(present))
        return found
