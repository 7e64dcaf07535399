"""A private release by leaves of a public forest: all that is public before points are counted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError
from thresher.inputs.checked_inputs import Points
from thresher.price_list import PriceList
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Setting
from thresher.privacy.leaf_contributions import LeafContributions
from thresher.privacy.public_rows import Public
from thresher.privacy.ring_setting import floored_counts
from thresher.sides.forest_side import ForestSide

OWNERS, KEPT = 400, 0.75  # made-up owners, and the share of them that is not clipped
MOST_DRAWN = 200  # rows of a made-up owner; more are a multiple of them
MOST_COUNTED = 1 << 24  # points in a leaf: noise can claim more, but prices hardly move there


@dataclass(frozen=True)
class LeafSetting(Setting):
    """The table counts points by class and leaf.

    A point is in one leaf of each tree that it fills, so its vector has as many ones as it fills
    trees, and nothing has to be clipped. T1, T2 and T9 hold as they are.
    """

    leaves: ForestSide | None = None

    @classmethod
    def of(cls, side: ForestSide, **rest: Any) -> LeafSetting:
        """The setting of a forest and a validation set, if both are fit for private points."""
        if side.features is None:
            raise InputError(
                "forest needs X_val and y_val here: private points cannot judge each other"
            )
        if side.forest.columns is None or side.forest.columns.texts:
            raise InputError("forest must be grown from numbers here, but it has columns of text")
        return cls(side.validation, 0.0, **rest, leaves=side)

    @property
    def side(self) -> ForestSide:  # type: ignore[override]
        """The forest and its judges, as price lists have them."""
        assert self.leaves is not None  # noqa: S101 - `of` has given it
        return self.leaves

    @property
    def entries(self) -> int:
        """Numbers that a leaf has in the table: one for each class."""
        return self.side.shape[0]

    @property
    def cells(self) -> int:
        """All leaves of all trees."""
        return self.side.shape[1]

    @property
    def plain_bound(self) -> int:
        """For points what none exceeds; for owners what three of four made-up ones do not.

        Those have rows of the validation set, so nothing private is asked (docs/privacy.md).
        """
        size = self.points_per_owner or 1
        if size == 1:
            return self.certified_bound()
        some = min(size, MOST_DRAWN)
        drawn = np.random.default_rng(0).integers(0, len(self.validation), OWNERS * some)
        squares = self._owned(drawn, np.arange(len(drawn)) // some).squares()
        return math.ceil(float(np.quantile(squares, KEPT)) * (size / some) ** 2)

    def _owned(self, rows: Integers, owners: Integers | None = None) -> LeafContributions:
        """What rows of the validation set would add as points."""
        validation = self.validation
        assert validation.rows is not None  # noqa: S101 - forests have features
        points = Points(validation.rows.some(rows), validation.codes[rows])
        return LeafContributions(points, self.side, Units.of(owners, len(rows)))

    def certified_bound(self) -> int:
        """The squared length of every point: the trees that it fills."""
        return self.side.forest.trees_each

    @property
    def mass(self) -> float | None:
        """What a unit adds to the table, if none of it is clipped."""
        return float(self.side.forest.trees_each * (self.points_per_owner or 1))

    def record(self) -> dict[str, Any]:
        """What a release says of its forest; there is no radius."""
        forest = self.side.forest
        return super().record() | {
            "radius": None,
            "metric": "leaves",
            "trees": forest.size,
            "leaves": self.cells,
            "forest_digest": forest.digest(),
        }

    def contributions(self, points: Points, units: Units) -> Contributions:
        """What units of points add to the table."""
        return LeafContributions(points, self.side, units)

    def public(self) -> Public | None:
        """Leaves have no prior: the release speaks for itself."""
        return None

    def row_worths(
        self, public: Public | None, exact: PriceList, found: PriceList
    ) -> tuple[Floats, Floats, Floats]:
        """What validation points are worth as points: by two lists, and by the free score."""
        del public  # there is none
        rows, nobody = self._owned(np.arange(len(self.validation))), np.zeros(self.side.shape)
        exactly, about = rows.values([exact, found])
        return exactly, about, self.table_prices(nobody).pay(rows.inside, "newcomers")

    def estimated(self, table: Floats, draws: Floats, *, prior: bool) -> PriceList:
        """The prices of an estimated table; `draws` tell how sure it is."""
        del prior  # there is none
        return self.table_prices(floored_counts(table, draws, self.entries))

    def entry_prices(self, prices: PriceList) -> Floats:
        """What a member is paid for each number that it adds to the table."""
        return self.side.member_prices(prices.table, self.semivalue).ravel()

    def table_prices(self, table: Floats) -> PriceList:
        """The prices that follow from a table, in whole points."""
        whole = np.rint(np.minimum(table, MOST_COUNTED)).astype(self.side.dtype)
        return replace(PriceList.over(self.side, whole, self.semivalue), scaled=self.knows_size)
