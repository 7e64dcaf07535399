"""The valuation that a walk with balls and classes gives, and what it says when nobody is near."""

from __future__ import annotations

import warnings
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ReachWarning, either, option
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.inputs import Validation
from thresher.valuation import Valuation

METHOD = "tknn-shapley"


def valuation_of(
    values: NDArray[np.float64], validation: Validation, radius: float, semivalue: Semivalue,
    utility_all: float, *, mean: bool = False, owners: tuple[Hashable, ...] | None = None,
    ids: tuple[Hashable, ...] | None = None,
) -> Valuation:  # fmt: skip
    """The result of `tknn_shapley` with these values, and the sum of utilities of all points."""
    divisor = len(validation) if mean else 1
    utility_none = len(validation) / len(validation.classes)
    values.flags.writeable = False
    params = {
        "radius": radius,
        "metric": validation.metric,
        "semivalue": semivalue_name(semivalue),
        "classes": list(validation.classes.labels),
        **validation.record(),
        "mean": mean,
    }
    ends = utility_all / divisor, utility_none / divisor
    return Valuation(values, METHOD, params, *ends, owners, ids=ids)


def warn_of_reach(radius: float, *, stacklevel: int, mutual: bool = False) -> None:
    """Warn that nobody is near."""
    whom = "another" if mutual else "any validation point"
    warnings.warn(
        either(
            f"no point is within radius {radius:g} of {whom}, so every value is 0: "
            "suggest_radius finds a radius that fits the data",
            f"no point is within the radius of {whom}, so every value is 0: the "
            f"{option('radius')} is too small, or a column such as an id makes up the distances",
        ),
        ReachWarning,
        stacklevel=stacklevel,
    )
