"""The values of the points that are present, from counts that are known already."""

from __future__ import annotations

import numpy as np

from thresher.counts import NeighborCounts
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.live.points import PointTable
from thresher.passes.result import side_valuation
from thresher.valuation import Valuation


def present_values(points: PointTable, counts: NeighborCounts, semivalue: Semivalue) -> Valuation:
    """What `tknn_shapley` finds for these points, to the last bit, with their ids.

    The prices are the same, and the order of sums; only the counting is left out, because the
    counts are there.
    """
    side, semivalue = counts.side, check_semivalue(semivalue)
    values, utility = np.zeros(0), side.judges(0) / len(side.classes)
    if len(points):
        values = counts.price_list(semivalue).pay(side.stored_points(*points.table()))
        utility = counts.utility()
        if not counts.table.any():
            side.warn_of_reach(stacklevel=4)
    return side_valuation(side, values, semivalue, utility, ids=points.ids)
