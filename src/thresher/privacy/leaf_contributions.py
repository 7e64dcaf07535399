"""What each unit of privacy adds to a table of points by class and leaf of a public forest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.inputs.checked_inputs import Points
from thresher.neighbors.tree_columns import as_floats
from thresher.price_list import PriceList
from thresher.privacy.contributions import Contributions, Units
from thresher.sides.forest_side import ForestPoints, ForestSide


class LeafContributions(Contributions):
    """Private points in the leaves of a forest: a point adds one in each tree that it fills."""

    def __init__(self, points: Points, side: ForestSide, units: Units) -> None:
        self.points, self.side, self.units = points, side, units
        rows: Any = points.rows
        self.inside = ForestPoints(side.forest.rows(as_floats(rows.array)), points.codes)
        self.unit_of = np.empty(len(points), np.int64)
        self.unit_of[units.order] = np.repeat(np.arange(len(units)), np.diff(units.starts))

    def squares(self, importance: Integers | None = None) -> Integers:
        """The squared length of each unit's vector; a leaf counts as its `importance` says."""
        classes, leaves = self.side.shape
        weight = np.ones(leaves, np.int64) if importance is None else importance
        squares = np.zeros(len(self.units), np.int64)
        for rows, places in self._trees():
            keys, counts = np.unique(
                self.unit_of[rows] * (classes * leaves) + places, return_counts=True
            )
            more = counts.astype(np.int64) ** 2 * weight[keys % leaves]
            np.add.at(squares, keys // (classes * leaves), more)
        return squares

    def counts(self, weights: Integers) -> Integers:
        """The table of classes x leaves with every unit's vector times its whole weight."""
        table = np.zeros(self.side.shape, np.int64)
        for rows, places in self._trees():
            np.add.at(table.reshape(-1), places, weights[self.unit_of[rows]])
        return table

    def values(self, lists: list[PriceList]) -> Floats:
        """What each point is worth under each price list: one row per list."""
        return np.array([each.pay(self.inside) for each in lists])

    def _trees(self) -> Iterator[tuple[Integers, Integers]]:
        """The points that fill each tree, and their places in the table."""
        leaves = self.side.shape[1]
        for tree, (start, _) in enumerate(pairwise(self.side.forest.starts.tolist())):
            found = self.inside.rows.leaves(tree)
            rows = np.flatnonzero(found >= 0)
            yield rows, self.points.codes[rows].astype(np.int64) * leaves + start + found[rows]
