"""Prices at estimated sums of targets, which need not be those of a whole number of points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.games.semivalues import Semivalue
from thresher.games.targets import residual_changes, residual_prices, shifted


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
    z = mean - judges, square - 2 * judges * mean + judges**2

    def prices(c: Integers) -> Floats:
        sums = c * z[0], c * z[1]
        return residual_prices(c, sums, empty - judges, semivalue, newcomer=newcomer)

    return shifted(_between(count, prices), judges)


def estimated_changes(count: Floats, mean: Floats, judges: Floats, semivalue: Semivalue) -> Floats:
    """As `targets.changes`, for near targets of this mean."""
    return _between(count, lambda c: residual_changes(c, c * (mean - judges), judges, semivalue))


def _between(count: Floats, prices: Callable[[Integers], Floats]) -> Floats:
    """Prices at any number of points, from those at the whole numbers below and above."""
    whole = np.floor(count).astype(np.int64)
    share = count - whole
    return (1 - share) * prices(whole) + share * prices(whole + 1)
