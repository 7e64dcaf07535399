"""The values of the points that are present, from counts that are known already."""

from __future__ import annotations

import numpy as np

from thresher.counts import NeighborCounts
from thresher.games.classes import ClassGame
from thresher.games.semivalues import Semivalue, check_semivalue, semivalue_name, utility
from thresher.inputs import Points
from thresher.live.points import PointTable
from thresher.metrics import Rows, squared_lengths
from thresher.neighbors.ball import Ball
from thresher.passes.result import METHOD, settings, warn_of_reach
from thresher.passes.walk import value
from thresher.valuation import Valuation


def present_values(points: PointTable, counts: NeighborCounts, semivalue: Semivalue) -> Valuation:
    """What `tknn_shapley` finds for these points, to the last bit, with their ids.

    The prices are the same, and the order of sums; only the counting is left out, because the
    counts are there.
    """
    name = semivalue_name(check_semivalue(semivalue))
    validation, prices = counts.validation, counts.price_list(semivalue)
    same, other, classes = counts.same, counts.other, len(validation.classes)
    array, codes = points.table()
    utility_none = len(validation) / classes
    if not len(points):
        params = settings(validation, counts.radius, name)
        return Valuation(np.zeros(0), METHOD, params, utility_none, utility_none, ids=())
    members = Points(Rows(array, squared_lengths(array)), codes)
    near = Ball.around(validation, counts.radius)
    values = value(members, near, ClassGame.of(validation), prices.member_prices)
    if not (same.any() or other.any()):
        warn_of_reach(counts.radius, stacklevel=4)
    values.flags.writeable = False
    params = settings(validation, counts.radius, name)
    utility_all = utility(same, other, classes)
    return Valuation(values, METHOD, params, utility_all, utility_none, ids=points.ids)
