"""The values of the points in a store, and of their owners, from counts that are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.counts import NeighborCounts
from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs.labels import is_missing
from thresher.live.points import Id, PointTable
from thresher.owner_valuation import OwnerValuation
from thresher.passes.owner_sums import (
    TABLE,
    OwnedPoints,
    OwnerNames,
    OwnerSum,
    cell_bytes,
    value_owners,
)
from thresher.passes.result import side_valuation
from thresher.passes.walk import count
from thresher.sides.ball_side import BALL
from thresher.sides.protocol import PublicSide
from thresher.valuation import Valuation


def present_values(points: PointTable, counts: NeighborCounts, semivalue: Semivalue) -> Valuation:
    """The values that `tknn_shapley` finds for these points, to the last bit, with their ids.

    The prices and the order of sums are the same. Only the counting is skipped, because the counts
    are known.
    """
    side = counts.side
    semivalue = check_semivalue(semivalue, calibrated=side.kind == BALL)
    values, utility = np.zeros(0), side.utility_none(side.judges(0))
    if len(points):
        values = counts.price_list(semivalue).pay(side.stored_points(*points.table()))
        utility = counts.utility()
        if not counts.table.any():
            side.warn_of_reach(stacklevel=4)
    counted = side.with_counts(counts.table)
    return side_valuation(counted, values, semivalue, utility, ids=points.ids)


class LiveOwners:
    """What each owner adds to each cell, as of the last call, and who has left since then.

    It takes at most `most` bytes. If it would need more, all points are counted each time.
    """

    def __init__(self, side: PublicSide, most: int = TABLE) -> None:
        self._side, self._most = side, most
        self._names = OwnerNames()
        self._whose: dict[Id, Hashable] = {}
        self._left: list[tuple[Floats, int, Hashable]] = []
        self._sums = self._tables(0)
        self.counted = 0  # points, over all questions

    def leave(self, name: Id, row: Floats, code: int) -> None:
        """Take note that a point is about to leave, or to change its label."""
        if name in self._whose:
            self._left.append((row.copy(), code, self._whose.pop(name)))

    def values(
        self, points: PointTable, owners: Mapping[Any, Hashable], semivalue: Semivalue
    ) -> OwnerValuation:
        """The values that `owner_shapley` finds for these points and owners, to the last bit."""
        if not len(points):
            raise InputError("the store has no points, so it has no owners")
        missing = [name for name in points.ids if is_missing(owners.get(name))]
        if missing:
            raise InputError(
                f"owners lacks {len(missing)} of {len(points)} ids, such as {missing[0]!r}"
            )
        known = [owners[name] for name in points.ids]
        side, semivalue = self._side, check_semivalue(semivalue)
        names = OwnerNames(dict.fromkeys(known))
        if cell_bytes(side, len(names)) * side.shape[1] > self._most:
            stored = side.stored_points(*points.table())
            return value_owners(stored, side, known, semivalue, stacklevel=4)
        names.warn(side, stacklevel=4)
        total = OwnerSum(len(names), semivalue)
        total.add(side, slice(0, side.shape[1]), self._sums_of(points, known))
        if not total.reached:
            side.warn_of_reach(stacklevel=4)
        return total.valuation(side, names.known, len(points), mean=False)

    def _sums_of(self, points: PointTable, owners: Sequence[Hashable]) -> Integers:
        """What each owner adds to all cells, in order of first appearance."""
        whose = dict(zip(points.ids, owners, strict=True))
        for name, owner in whose.items():
            if self._whose.get(name, owner) != owner:
                self.leave(name, *points.get(name))
        new = [
            (*points.get(name), owner) for name, owner in whose.items() if name not in self._whose
        ]
        self._count(new, 1)
        self._count(self._left, -1)
        self._left, self._whose = [], whose
        order = [self._names.known[owner] for owner in dict.fromkeys(owners)]
        return self._sums[:, order].reshape(-1, self._side.shape[1])

    def _count(self, some: list[tuple[Floats, int, Hashable]], sign: int) -> None:
        """Count some points in, or out."""
        codes = self._names.codes([owner for *_, owner in some])
        more = len(self._names) - self._sums.shape[1]
        if more:
            self._sums = np.concatenate([self._sums, self._tables(more)], axis=1)
        if not some:
            return
        kinds: Any = np.array([code for _, code, _ in some], self._side.codes.dtype)
        points = self._side.stored_points(np.array([row for row, *_ in some]), kinds)
        owned = OwnedPoints.of(points, codes, self._side)
        game = self._side.owner_counting(len(self._names))
        self._sums += sign * count(owned, self._side.near(), game).reshape(self._sums.shape)
        self.counted += len(some)

    def _tables(self, owners: int) -> Integers:
        """Zeros, with a table of the entries of all cells for each owner."""
        tables = self._side.owner_tables
        entries = self._side.owner_counting(1).entries // tables
        return np.zeros((tables, owners, entries, self._side.shape[1]), np.int64)
