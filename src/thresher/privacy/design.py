"""A release as planned: a mechanism fitted to public data and a budget.

A design draws its noise, measures the private points (whole numbers, to which the noise is added),
and turns the sum into prices: that last step sees nothing private.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError, either, option
from thresher.games.semivalues import Semivalue
from thresher.inputs.checked_inputs import Points, Validation
from thresher.inputs.checks import MAX_INTEGER, check_count
from thresher.price_list import PriceList
from thresher.privacy.accountants import Adjacency, Budget, Cost, Filter, Unit
from thresher.privacy.certified import certified_bound
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.noise import Noise
from thresher.privacy.public_rows import LEAST_ROWS, Public, priceable, total_deviations
from thresher.sides.ball_side import BallSide

DRAWS = 32  # price lists drawn beside the best one, for errors
UNKNOWN_SIZE = "it is not public how many points an owner has (points_per_owner)"
OWNER_SCALE = 4096  # parts of one that an owner's weight is a whole number of
Change = Literal["point", "owner", "part"]  # of one unit; a part is any number of its points
MOVED: dict[tuple[Unit, Change], dict[Adjacency, float]] = {
    ("point", "point"): {"add-remove": 1, "replace-one": 2},  # T1, T2
    ("owner", "owner"): {"add-remove": 1, "replace-one": 2},
    ("owner", "point"): {"add-remove": 2, "replace-one": 6},  # T9
    ("owner", "part"): {"add-remove": 2, "replace-one": 8},  # T17
}  # what is released, what changes: the squared length that the table moves by, over B


@dataclass(frozen=True)
class Setting:
    """All that is public before the points are looked at.

    It also defines the table: its entries for each validation point, which whole number stands for
    `one`, how far a changed unit has `moved` it, and which prices follow. In this base class,
    points have classes and all near ones count alike.
    """

    side: BallSide  # who judges, and what near means
    budget: Budget
    adjacency: Adjacency
    unit: Unit
    semivalue: Semivalue = "shapley"
    points_per_owner: int | None = None
    points: int | None = None  # about how many there are, if that is public
    one: ClassVar[int] = 1
    opposed: ClassVar[float] = 0.0  # no two units have a smaller cosine than minus this
    moved: ClassVar[dict[tuple[Unit, Change], dict[Adjacency, float]]] = MOVED

    @cached_property
    def validation(self) -> Validation:
        """The validation set."""
        return self.side.validation

    @property
    def radius(self) -> float | None:
        """The radius, if near means within a radius; otherwise None."""
        return self.side.radius

    @property
    def entries(self) -> int:
        """How many numbers the table has for each cell: here two, the counts (same, other)."""
        return self.side.shape[0]

    @property
    def cells(self) -> int:
        """How many cells the table has: validation points, or leaves."""
        return self.side.shape[1]

    @property
    def plain_bound(self) -> int:
        """The squared length to clip a unit to if public rows do not suggest another."""
        return len(self.validation)

    def certified_bound(self) -> int:
        """The squared length that no possible point exceeds."""
        return certified_bound(self.validation, self.side.radius)

    @property
    def mass(self) -> float | None:
        """The sum of the numbers that a unit adds to the table; None if it differs among units."""
        return None

    def record(self) -> dict[str, Any]:
        """What a release says of classes or targets."""
        return {"classes": len(self.validation.classes)}

    def contributions(self, points: Points, units: Units) -> Contributions:
        """What units of points add to the table."""
        return Contributions(points, self.side, units)

    def public(self) -> Public | None:
        """The validation points seen as points."""
        return Public.of(self.validation, self.side.radius, LEAST_ROWS)

    def estimated(self, table: Floats, draws: Floats, *, prior: bool) -> PriceList:
        """The prices of an estimated table; `draws` show how certain the table is."""
        del prior  # is in the table
        return self.prices(priceable(table, total_deviations(draws)))

    def exact_prices(self, contributions: Contributions) -> PriceList:
        """The prices without noise or clipping."""
        whole = contributions.counts(np.ones(len(contributions.units), np.int64))
        return self.prices(whole / self.one)

    def prices(self, table: Array | tuple[Floats, Floats]) -> PriceList:
        """The prices that follow from a table as it is."""
        prices = PriceList.over(self.side, table, self.semivalue)
        return replace(prices, scaled=self.knows_size)

    def free_prices(self) -> Floats:
        """What the zero-budget score pays members: what each would be worth alone."""
        share = 1 / len(self.validation.classes)
        return np.repeat([[1 - share], [-share]], len(self.validation), axis=1)

    def row_worths(
        self, public: Public | None, exact: PriceList, found: PriceList
    ) -> tuple[Floats, Floats, Floats]:
        """What public rows are worth as points: by two lists, and by the zero-budget score."""
        assert public is not None  # noqa: S101 - by those who call
        exactly, about, free = (
            public.worth(prices)
            for prices in (exact.member_prices, found.member_prices, self.free_prices())
        )
        return exactly, about, free

    def entry_prices(self, prices: PriceList) -> Floats:
        """What a member is paid for adding one to each number of the table."""
        return prices.member_prices.ravel()

    def gain_prices(self, prices: PriceList) -> Floats:
        """`entry_prices` without negative ones: what these pay is at least what is gained."""
        return np.maximum(self.entry_prices(prices), 0.0)

    @property
    def knows_size(self) -> bool:
        """Whether it is public how many points a unit has. If it is not, values are too large."""
        return self.unit == "point" or self.points_per_owner is not None


def check_points_per_owner(number: object, *, owners: bool) -> int | None:
    """Return `number` if it is a count and there are owners, or if it is None; raise otherwise."""
    if number is None:
        return None
    if not owners:
        owners_given = either("owners=", option("owner"))
        raise InputError(f"{option('points_per_owner')} needs {owners_given}")
    return check_count(option("points_per_owner"), number, most=MAX_INTEGER)


class Design(Protocol):
    """A mechanism fitted to a setting, with the methods that most mechanisms share."""

    setting: Setting

    @property
    def untold(self) -> str:
        """Why draws of `prices` do not show how far off values are; "" if they do."""
        return ""

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says of the mechanism."""

    def cost(self, adjacency: Adjacency, unit: Unit, filter: Filter) -> Cost:  # noqa: A002
        """What the release costs a ledger of this adjacency, unit and filter."""

    def epsilon(self, adjacency: Adjacency, unit: Unit) -> float:
        """The epsilon of the release at its delta for data sets that differ in one such unit."""

    def settled(self, contributions: Contributions, source: Noise) -> Design:  # noqa: ARG002
        """The design after any noisy question that it has to ask first; most designs have none."""
        return self

    def recorded(self, record: Mapping[str, Any]) -> Design:  # noqa: ARG002
        """The design as it was settled in a release with this record."""
        return self

    @property
    def deviations(self) -> Floats:
        """The standard deviation of the noise: one for all numbers, or one for each cell."""
        return np.array(self.record["sigma"] * self.record["scale"])

    def noise(self, source: Noise) -> Integers:
        """The noise that hides what is measured."""

    def release(self, contributions: Contributions, source: Noise) -> Integers:
        """The numbers to release: the noise is drawn before anything is counted."""
        noise = self.noise(source)
        return self.measure(contributions, source) + noise

    def measure(self, contributions: Contributions, source: Noise) -> Integers:  # noqa: ARG002
        """The exact numbers that the noise hides: all of them, unless a mechanism samples."""
        return self.footprint(contributions)

    def footprint(self, contributions: Contributions) -> Integers:
        """What `measure` returns if every point is in the sample."""

    def prices(self, release: Integers) -> PriceList:
        """The price list of a release."""

    def drawn_prices(self, release: Integers) -> list[PriceList]:
        """Other price lists that are as likely, given the noise."""

    def drawn_errors(self, release: Integers, ours: Floats, drawn: Floats) -> Floats:  # noqa: ARG002
        """The relative error of member prices if drawn ones are right: for all, or for each draw.

        Public rows stand for points.
        """
        public = self.setting.public()
        assert public is not None  # noqa: S101 - by those who call
        values = public.worth(ours)
        missed = public.worth(drawn) - values
        weights = np.ones(len(values))
        power = max(values**2 @ weights, 1e-300)
        return np.sqrt([float((missed**2 @ weights).mean() / power)])

    def misfit(self, release: Integers) -> float:  # noqa: ARG002
        """How much more points and validation set differ than chance explains; 1 if unknown."""
        return 1.0

    def personal_epsilon(self, contributions: Contributions) -> Floats | None:  # noqa: ARG002
        """The epsilon that each unit's actual points are exposed to; None if all have the same."""
        return None

    @property
    def idle_epsilon(self) -> float:
        """The epsilon of a unit that counts for nothing, compared with the worst replacement.

        The other data set has any unit in its place, as if that one were added.
        """
        replaced = self.setting.adjacency == "replace-one"
        return self.epsilon("add-remove", self.setting.unit) if replaced else 0.0


def stated_epsilons(design: Design) -> dict[str, float | None]:
    """The epsilons that a record states, under both adjacencies; None where there is none.

    They are about one protected unit. For owners there are two more, about a single point.
    """
    unit = design.setting.unit
    names: dict[str, Unit] = {"": unit} | ({"_point": "point"} if unit == "owner" else {})
    found = {
        f"epsilon_{adjacency.replace('-', '_')}{name}": design.epsilon(adjacency, changed)
        for name, changed in names.items()
        for adjacency in get_args(Adjacency)
    }
    return {name: each if math.isfinite(each) else None for name, each in found.items()}
