"""Prices at estimated sums of targets, which need not be those of a whole number of points."""

from __future__ import annotations

import numpy as np

from thresher.array_types import Floats
from thresher.games.semivalues import Semivalue
from thresher.games.targets import residual_prices, shifted


def estimated_quadratics(
    count: Floats, mean: Floats, square: Floats, judges: Floats, empty: float,
    semivalue: Semivalue, *, newcomer: bool,
) -> Floats:  # fmt: skip
    """As `targets.quadratics`, for near targets of this mean and mean square.

    Between two whole numbers of points prices are interpolated.

    Examples
    --------
    >>> about = np.array([0.5]), np.array([0.5]), np.array([0.0]), 0.0, "shapley"
    >>> found = [
    ...     estimated_quadratics(np.array([c]), *about, newcomer=True)[0, 0] for c in (1, 1.5, 2)
    ... ]
    >>> [round(float(price), 4) for price in found]
    [0.1875, 0.1794, 0.1713]
    """
    whole = np.floor(count)
    share, found = count - whole, []
    for c in (whole, whole + 1):
        z = mean - judges, square - 2 * judges * mean + judges**2
        sums = c * z[0], c * z[1]
        found.append(
            residual_prices(c.astype(np.int64), sums, empty - judges, semivalue, newcomer=newcomer)
        )
    return shifted((1 - share) * found[0] + share * found[1], judges)
