"""The valuation that a walk gives."""

from __future__ import annotations

from collections.abc import Hashable

from thresher.array_types import Floats
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.inputs.checked_inputs import Validation
from thresher.neighbors.kernel import Kernel
from thresher.sides.ball import BallSide, warn_of_reach
from thresher.sides.protocol import PublicSide
from thresher.valuation import Valuation

__all__ = ["side_valuation", "valuation_of", "warn_of_reach"]


def valuation_of(
    values: Floats, validation: Validation, radius: float, semivalue: Semivalue,
    utility_all: float, *, mean: bool = False, owners: tuple[Hashable, ...] | None = None,
    kernel: Kernel | None = None,
) -> Valuation:  # fmt: skip
    """The result of `tknn_shapley` with these values, and the sum of utilities of all points."""
    side = BallSide(validation, radius, kernel)
    return side_valuation(side, values, semivalue, utility_all, mean=mean, owners=owners)


def side_valuation(
    side: PublicSide, values: Floats, semivalue: Semivalue, utility_all: float, *,
    rows: int | None = None, mean: bool = False, owners: tuple[Hashable, ...] | None = None,
    ids: tuple[Hashable, ...] | None = None,
) -> Valuation:  # fmt: skip
    """The result of a walk over `rows` points, or as many as there are values."""
    judges = side.judges(len(values) if rows is None else rows)
    divisor = max(judges, 1) if mean else 1
    values.flags.writeable = False
    params = side.params(semivalue_name(semivalue), mean=mean)
    ends = utility_all / divisor, side.utility_none(judges) / divisor
    return Valuation(values, side.method, params, *ends, owners, ids=ids)
