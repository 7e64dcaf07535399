"""The values of the points that are present, from counts that are known already."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from thresher.counts import NeighborCounts
from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs.labels import is_missing
from thresher.live.owner_cache import LiveOwners
from thresher.live.points import PointTable
from thresher.owner_valuation import OwnerValuation
from thresher.passes.owner_sums import OwnerNames, OwnerSum, value_owners
from thresher.passes.result import side_valuation
from thresher.sides.ball_side import BALL
from thresher.valuation import Valuation


def present_values(points: PointTable, counts: NeighborCounts, semivalue: Semivalue) -> Valuation:
    """What `tknn_shapley` finds for these points, to the last bit, with their ids.

    The prices are the same, and the order of sums; only the counting is left out, because the
    counts are there.
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


def present_owner_values(
    points: PointTable, counts: NeighborCounts, owners: Mapping[Any, Hashable],
    semivalue: Semivalue, kept: LiveOwners,
) -> OwnerValuation:  # fmt: skip
    """What `owner_shapley` finds for these points, to the last bit, if ids have these owners.

    Points that `kept` has counted before are not counted again.
    """
    if not len(points):
        raise InputError("the store has no points, so it has no owners")
    missing = [name for name in points.ids if is_missing(owners.get(name))]
    if missing:
        raise InputError(
            f"owners lacks {len(missing)} of {len(points)} ids, such as {missing[0]!r}"
        )
    known = [owners[name] for name in points.ids]
    side, semivalue = counts.side, check_semivalue(semivalue)
    names = OwnerNames(dict.fromkeys(known))
    if not kept.fit(len(names)):
        stored = side.stored_points(*points.table())
        return value_owners(stored, side, known, semivalue, stacklevel=4)
    names.warn(side, stacklevel=4)
    total = OwnerSum(len(names), semivalue)
    total.add(side, slice(0, side.shape[1]), kept.sums(points, known))
    if not total.reached:
        side.warn_of_reach(stacklevel=4)
    return total.valuation(side, names.known, len(points), mean=False)
