"""The values of the points that are present, from counts that are known already."""

from __future__ import annotations

import numpy as np

from thresher.counts import NeighborCounts
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs import Points
from thresher.live.points import PointTable
from thresher.metrics import Rows, squared_lengths
from thresher.passes.problem import pay
from thresher.passes.result import valuation_of, warn_of_reach
from thresher.valuation import Valuation


def present_values(points: PointTable, counts: NeighborCounts, semivalue: Semivalue) -> Valuation:
    """What `tknn_shapley` finds for these points, to the last bit, with their ids.

    The prices are the same, and the order of sums; only the counting is left out, because the
    counts are there.
    """
    validation, prices = counts.validation, counts.price_list(semivalue)
    array, codes = points.table()
    values, utility = np.zeros(0), len(validation) / len(validation.classes)
    if len(points):
        values = pay(prices, Points(Rows(array, squared_lengths(array)), codes))
        utility = counts.utility()
        if not (counts.same.any() or counts.other.any()):
            warn_of_reach(counts.radius, stacklevel=4)
    semivalue = check_semivalue(semivalue)
    return valuation_of(values, validation, counts.radius, semivalue, utility, ids=points.ids)
