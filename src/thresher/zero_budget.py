"""The zero-budget score of points with targets: what each would be worth alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.labels import check_owners
from thresher.passes.walk import value
from thresher.sides.targets import target_side
from thresher.valuation import Valuation


def score_targets(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, owners: Any,
    mean: bool, empty: Any, bounds: Any,
) -> Valuation:  # fmt: skip
    """`zero_budget_score` with numbers as targets: the sum over near judges of z0^2 - z^2."""
    side = target_side(X_val, y_val, radius=radius, metric=metric, empty=empty, bounds=bounds)
    points = side.check_points(X, y)
    known_owners, divisor = check_owners(owners, len(points)), len(side) if mean else 1
    prices = side.alone_prices()
    values = value(points, side.near(), side.counting(), prices, divisor=divisor)
    params = side.params("shapley", mean=mean)
    del params["semivalue"]
    ends = np.nan, side.utility_none(len(side)) / divisor
    return Valuation(values, "zero-budget-score", params, *ends, known_owners)
