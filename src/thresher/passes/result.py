"""The walk over points that are all in memory, and the valuation that results from a walk."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from thresher.array_types import Floats
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.inputs.labels import check_owners
from thresher.neighbors.ball import Neighbors
from thresher.passes.walk import count_and_value
from thresher.progress import progress_bar
from thresher.sides.ball_side import BallSide
from thresher.sides.protocol import PublicSide
from thresher.valuation import Valuation


def value_here(
    points: Any, side: BallSide, semivalue: Semivalue, *, owners: Any, mean: bool,
    neighbors: Neighbors = "auto", progress: bool = False, stacklevel: int,
    kind: Any = None, show: Callable[[Floats], None] | None = None,
) -> Valuation:  # fmt: skip
    """The values of points that a side has checked.

    Games of another `kind` pay more than values; `show` sees all payments.
    """
    known, divisor = check_owners(owners, len(points)), len(side) if mean else 1
    near, game = side.near(neighbors), side.counting(semivalue)
    if kind is not None:
        game = kind(**vars(game))
    with progress_bar(side.method, len(points) * len(side), show=progress) as advance:
        counts, values = count_and_value(
            points, near, game, divisor=divisor, advance=advance, show=show
        )
    if not counts.any():
        side.warn_of_reach(stacklevel=stacklevel + 1)
    return side_valuation(side, values, semivalue, side.utility(counts), mean=mean, owners=known)


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
