"""What the first pass leaves to the second: prices, and what tells whether points are the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.games.classes import ClassGame
from thresher.games.semivalues import Semivalue
from thresher.inputs import Points, Validation
from thresher.neighbors.ball import Ball, Neighbors
from thresher.passes.parts import Part
from thresher.passes.result import valuation_of
from thresher.passes.tally import Tally, add_prints
from thresher.passes.walk import value
from thresher.price_list import PriceList
from thresher.valuation import Valuation

Meaning = Mapping[Hashable, Hashable]


@dataclass(frozen=True)
class Priced:
    """What the first pass leaves to the second.

    Parameters
    ----------
    prices
        The prices, with all classes.
    tally
        The counts, and what was met on the way.
    meaning
        What the labels of the source are as classes.
    """

    prices: PriceList
    tally: Tally
    meaning: Meaning = field(default_factory=dict)

    @classmethod
    def of(
        cls, tally: Tally, validation: Validation, radius: float, semivalue: Semivalue,
        meaning: Meaning | None = None,
    ) -> Priced:  # fmt: skip
        """The prices that follow from a tally of all points."""
        counts = tally.counts[0], tally.counts[1]
        prices = PriceList.of_counts(validation, radius, counts, semivalue)
        return cls(prices, tally, meaning or {})

    @property
    def rows(self) -> int:
        """The number of points."""
        return self.tally.points

    @property
    def print(self) -> int:
        """A number that follows from all points."""
        return reduce(add_prints, self.tally.prints.values(), 0)

    def named(self, part: Part) -> Part:
        """A part with its labels as classes."""
        return named(part, self.meaning)

    def values(
        self, points: Points, divisor: float, neighbors: Neighbors = "auto"
    ) -> NDArray[np.float64]:
        """The values of some of the points, divided by `divisor`."""
        return pay(self.prices, points, divisor=divisor, neighbors=neighbors)

    def valuation(
        self, values: NDArray[np.float64], semivalue: Semivalue, *, mean: bool,
        owners: tuple[Hashable, ...] | None = None,
    ) -> Valuation:  # fmt: skip
        """The result with these values."""
        public = self.prices.validation
        utility = ClassGame.of(public).utility(self.tally.counts)
        return valuation_of(
            values, public, self.prices.radius, semivalue, utility, mean=mean, owners=owners
        )


def pay(
    prices: PriceList, points: Points, *, before: NDArray[np.float64] | None = None,
    divisor: float = 1.0, neighbors: Neighbors = "auto",
) -> NDArray[np.float64]:  # fmt: skip
    """What the validation points of a list pay to members, on top of what was paid `before`."""
    near, game = (
        Ball.around(prices.validation, prices.radius, neighbors),
        ClassGame.of(prices.validation),
    )
    return value(points, near, game, prices.member_prices, before=before, divisor=divisor)


def named(part: Part, meaning: Meaning) -> Part:
    """A part with its labels as classes."""
    if all(label == other and type(label) is type(other) for label, other in meaning.items()):
        return part
    y: list[Any] = part.y if isinstance(part.y, list) else part.y.tolist()
    return dataclasses.replace(part, y=[meaning.get(label, label) for label in y])
