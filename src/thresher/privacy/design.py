"""A release as planned: a mechanism fitted to public data and a budget.

A design draws its noise, measures the private points (whole numbers, to which the noise is added),
and turns the sum into prices: that last step sees nothing private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_count
from thresher.errors import InputError, either, option
from thresher.games.semivalues import Semivalue
from thresher.inputs import Validation
from thresher.price_list import PriceList
from thresher.privacy.accountants import Adjacency, Budget, Cost, Filter
from thresher.privacy.contributions import Contributions
from thresher.privacy.noise import Noise

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Unit = Literal["point", "owner"]

DRAWS = 32  # price lists drawn beside the best one, for errors
UNKNOWN_SIZE = "it is not public how many points an owner has (points_per_owner)"
OWNER_SCALE = 4096  # parts of one that an owner's weight is a whole number of


@dataclass(frozen=True)
class Setting:
    """All that is public before the points are looked at."""

    validation: Validation
    radius: float
    budget: Budget
    adjacency: Adjacency
    unit: Unit
    semivalue: Semivalue = "shapley"
    points_per_owner: int | None = None
    points: int | None = None  # about how many there are, if that is public

    def prices(self, counts: tuple[Floats, Floats]) -> PriceList:
        """The price list of estimated counts."""
        prices = PriceList.of_counts(self.validation, self.radius, counts, self.semivalue)
        return replace(prices, scaled=self.knows_size)

    @property
    def knows_size(self) -> bool:
        """Whether it is public how many points a unit has: without it values are too large."""
        return self.unit == "point" or self.points_per_owner is not None


def check_points_per_owner(number: object, *, owners: bool) -> int | None:
    """`number`, if it is a count and there are owners, or None."""
    if number is None:
        return None
    if not owners:
        owners_given = either("owners=", option("owner"))
        raise InputError(f"{option('points_per_owner')} goes with {owners_given}")
    return check_count(option("points_per_owner"), number)


class Design(Protocol):
    """A mechanism fitted to a setting; what most have in common is here."""

    setting: Setting

    @property
    def untold(self) -> str:
        """Why draws of `prices` do not show how far values are from the exact ones; "" if so."""
        return ""

    @property
    def tells_error(self) -> bool:
        """Whether they do."""
        return not self.untold

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says of the mechanism."""

    def cost(self, adjacency: Adjacency, unit: Unit, filter: Filter) -> Cost:  # noqa: A002
        """What the release costs a ledger of this adjacency, unit and filter."""

    def epsilon(self, adjacency: Adjacency, unit: Unit) -> float:
        """The epsilon of the release at its delta, where data sets differ in one such unit."""

    def noise(self, source: Noise) -> Integers:
        """The noise, drawn before anything is measured."""

    def measure(self, contributions: Contributions, source: Noise) -> Integers:  # noqa: ARG002
        """The exact numbers that the noise hides: all of them, unless a mechanism samples."""
        return self.footprint(contributions)

    def footprint(self, contributions: Contributions) -> Integers:
        """What `measure` gives where no point is left out of a sample."""

    def prices(self, release: Integers) -> PriceList:
        """The price list of a release."""

    def drawn_prices(self, release: Integers) -> list[PriceList]:
        """Other price lists that the noise leaves as likely."""

    def personal_epsilon(self, contributions: Contributions) -> Floats | None:  # noqa: ARG002
        """For every unit the epsilon that holds for its actual points; None if it is the same."""
        return None


def stated_epsilons(design: Design) -> dict[str, float | None]:
    """What a record says of the epsilon, None where there is none, under both adjacencies.

    They are about one unit that is protected; for owners there are two more, about one point.
    """
    unit = design.setting.unit
    names: dict[str, Unit] = {"": unit} | ({"_point": "point"} if unit == "owner" else {})
    found = {
        f"epsilon_{adjacency.replace('-', '_')}{name}": design.epsilon(adjacency, changed)
        for name, changed in names.items()
        for adjacency in get_args(Adjacency)
    }
    return {name: each if math.isfinite(each) else None for name, each in found.items()}
