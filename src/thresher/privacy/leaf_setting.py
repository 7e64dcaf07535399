"""A private release by leaves of a public forest: what is public before points are counted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError, option
from thresher.growth import MOST_TREES
from thresher.inputs.checked_inputs import Points
from thresher.inputs.checks import check_count
from thresher.kernels.units import add_products
from thresher.neighbors.forests import Forest
from thresher.neighbors.tree_columns import TreeColumns, as_floats
from thresher.price_list import PriceList
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Setting
from thresher.privacy.public_rows import Public, as_points
from thresher.privacy.ring_setting import floored_counts
from thresher.sides.forest_side import ForestPoints, ForestSide

OWNERS, KEPT = 400, 0.75  # made-up owners, and the share of them that is not clipped
MOST_DRAWN = 200  # rows of a made-up owner; more are a multiple of them
MOST_COUNTED = 1 << 24  # points in a leaf: noise can claim more, but prices hardly move there


class LeafContributions(Contributions):
    """Private points in the leaves of a forest: a point adds one in each tree that counts it."""

    def __init__(self, points: Points, side: ForestSide, units: Units) -> None:
        self.points, self.side, self.units = points, side, units
        rows: Any = points.rows
        self.inside = ForestPoints(side.forest.rows(as_floats(rows.array)), points.codes)
        self.unit_of = units.each(np.arange(len(units)))

    def squares(self, importance: Integers | None = None) -> Integers:
        """The squared length of each unit's vector, or `LONGEST` if it is longer.

        A leaf's square counts `importance` times.
        """
        classes, leaves = self.side.shape
        weight = np.ones(leaves, np.int64) if importance is None else importance
        squares = np.zeros(len(self.units), np.int64)
        for rows, places in self._trees():
            keys, counts = np.unique(
                self.unit_of[rows] * (classes * leaves) + places, return_counts=True
            )
            owners, often = keys // (classes * leaves), weight[keys % leaves]
            add_products(owners, counts.astype(np.int64) ** 2, often, squares)
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
        """For each tree, the points that it counts and their places in the table."""
        leaves = self.side.shape[1]
        for tree, (start, _) in enumerate(pairwise(self.side.forest.starts.tolist())):
            found = self.inside.rows.leaves(tree)
            rows = np.flatnonzero(found >= 0)
            yield rows, self.points.codes[rows].astype(np.int64) * leaves + start + found[rows]


@dataclass(frozen=True)
class LeafSetting(Setting):
    """The setting whose table counts points by class and leaf.

    A point is in one leaf of each tree that counts it. So its vector has one 1 for each such tree,
    and nothing has to be clipped. T1, T2 and T9 hold unchanged.
    """

    side: ForestSide  # type: ignore[assignment]
    radius: ClassVar[None] = None

    def __post_init__(self) -> None:
        """Raise if the forest cannot be used for private points."""
        if self.side.features is None:
            raise InputError(
                "forest needs X_val and y_val here: private points cannot judge each other"
            )
        if self.side.forest.columns is None or self.side.forest.columns.texts:
            raise InputError("forest must be grown from numbers here, but it has columns of text")

    @property
    def plain_bound(self) -> int:
        """The usual bound: no point exceeds it, and three of four made-up owners do not.

        Owners are made up from rows of the validation set, so nothing private is used
        (docs/privacy.md).
        """
        size = self.points_per_owner or 1
        if size == 1:
            return self.certified_bound()
        some = min(size, MOST_DRAWN)
        drawn = np.random.default_rng(0).integers(0, len(self.validation), OWNERS * some)
        squares = self._owned(drawn, np.arange(len(drawn)) // some).squares()
        return math.ceil(float(np.quantile(squares, KEPT)) * (size / some) ** 2)

    def _owned(self, rows: Integers, owners: Integers | None = None) -> LeafContributions:
        """What units of validation rows would add to the table."""
        points = as_points(self.validation, rows)
        return LeafContributions(points, self.side, Units.of(owners, len(rows)))

    def certified_bound(self) -> int:
        """The squared length of every point: the number of trees that count it."""
        return self.side.forest.trees_each

    @property
    def mass(self) -> float | None:
        """The sum of the numbers that a unit adds to the table, if none of it is clipped."""
        return float(self.side.forest.trees_each * (self.points_per_owner or 1))

    def record(self) -> dict[str, Any]:
        """What a release says about its forest."""
        forest = self.side.forest
        return super().record() | {
            "metric": "leaves",
            "trees": forest.size,
            "leaves": self.cells,
            "forest_digest": forest.digest(),
        }

    def contributions(self, points: Points, units: Units) -> Contributions:
        """What units of points add to the table."""
        return LeafContributions(points, self.side, units)

    def public(self) -> Public | None:
        """Return None: leaves have no prior."""
        return None

    def row_worths(
        self, public: Public | None, exact: PriceList, found: PriceList
    ) -> tuple[Floats, Floats, Floats]:
        """What validation points are worth as points: by two lists, and by the free score."""
        del public  # there is none
        rows, nobody = self._owned(np.arange(len(self.validation))), np.zeros(self.side.shape)
        exactly, about = rows.values([exact, found])
        return exactly, about, self.prices(nobody).pay(rows.inside, "newcomers")

    def estimated(self, table: Floats, draws: Floats, *, prior: bool) -> PriceList:
        """The prices of an estimated table; `draws` show how certain the table is."""
        del prior  # there is none
        return self.prices(floored_counts(table, draws, self.entries))

    def entry_prices(self, prices: PriceList) -> Floats:
        """What a member is paid for adding one to each number of the table."""
        return self.side.member_prices(prices.table, self.semivalue).ravel()

    def prices(self, table: Array | tuple[Floats, Floats]) -> PriceList:
        """The prices that follow from a table, in whole points."""
        whole = np.rint(np.minimum(table, MOST_COUNTED)).astype(self.side.dtype)
        return replace(PriceList.over(self.side, whole, self.semivalue), scaled=self.knows_size)


def public_forest(X_val: Any, y_val: Any, *, trees: int = 16, leaves: int = 16) -> Forest:
    """Grow a random forest on public rows, in whose leaves private points can be counted.

    Silos can use it, too. Every tree counts every point. The same rows always give the same forest,
    because its seed is 0.

    Parameters
    ----------
    X_val, y_val
        Public rows, such as the validation set. Never grow it on private points: splits reveal
        them.
    trees, leaves
        How many trees, and how many leaves a tree has at most. Noise grows with the square root of
        the trees, and each leaf has noise of its own.

    Examples
    --------
    >>> from thresher.privacy import public_forest
    >>> public_forest([[0.0], [1.0], [2.0], [3.0]], list("aabb"), trees=4, leaves=2)
    Forest(RandomForestClassifier, 4 trees with 8 leaves, 1 feature)
    """
    from sklearn.ensemble import RandomForestClassifier

    count = check_count(option("trees"), trees, most=MOST_TREES)
    most = check_count(option("leaves"), leaves, least=2)
    columns = TreeColumns.of("X_val", X_val)
    grown = RandomForestClassifier(count, max_leaf_nodes=most, random_state=0)
    fitted = Forest.as_fitted(grown.fit(columns.encode("X_val", X_val), y_val))
    return replace(fitted, columns=columns)
