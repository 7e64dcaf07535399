"""What two passes over points solve, wherever they run: count, set prices, value.

The first pass counts, and leaves prices to the second. Labels of text are counted as they are
written. What they mean is known only at the end of that pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.games.classes import ClassGame
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.inputs import Points, Validation, check_validation, tell_of_twins, warn_of_labels
from thresher.labels import Classes, check_labels, class_list
from thresher.neighbors.ball import Ball, Neighbors
from thresher.passes.parts import Labels, Part
from thresher.passes.result import valuation_of, warn_of_reach
from thresher.passes.tally import Tally, add_prints
from thresher.passes.walk import value
from thresher.price_list import PriceList
from thresher.valuation import Valuation

FIRST, AGAIN = "counts", "counts-again"  # names of the first pass, and of another one after it
Meaning = Mapping[Hashable, Hashable]
Count = Callable[[str, Validation, Meaning], Tally]


@dataclass(frozen=True)
class Problem:
    """What points are valued by.

    Parameters
    ----------
    validation, labels
        The validation set, and its labels.
    radius, semivalue, mean, neighbors
        As in `tknn_shapley`.
    classes
        All classes, if they were given: other labels are refused then.
    """

    validation: Validation
    labels: list[Hashable]
    radius: float
    semivalue: Semivalue
    classes: object = None
    mean: bool = False
    neighbors: Neighbors = "auto"

    @classmethod
    def check(
        cls, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
        classes: Any = None, mean: bool = False, neighbors: Neighbors = "auto",
    ) -> Problem:  # fmt: skip
        """With a validation set that was not checked yet."""
        validation = check_validation(X_val, y_val, metric=metric, classes=classes)
        found = check_labels("y_val", y_val)
        labels = found if isinstance(found, list) else found.tolist()
        return cls(validation, labels, radius, semivalue, classes, mean, neighbors)

    @property
    def divisor(self) -> float:
        """What values are divided by."""
        return float(len(self.validation)) if self.mean else 1.0

    def identity(self) -> dict[str, Any]:
        """What tells it from other problems, in a few numbers and words."""
        given = None if self.classes is None else repr(self.validation.classes.labels)
        return {
            "radius": self.radius, "metric": self.validation.metric,
            "semivalue": semivalue_name(self.semivalue), "mean": self.mean, "classes": given,
            "validation": self.validation.digest(),
        }  # fmt: skip

    def price(self, source: Labels, count: Count) -> Priced:
        """The prices that follow from what `count` finds in the points of a source.

        In the rare case that labels which were counted as different turn out to be equal, such as 1
        and 1.0, all is counted again.
        """
        public = self.as_read(source)
        tally = count(FIRST, public, {})
        if not tally.points:
            raise InputError("X is empty: at least one row is needed")
        given = self._given()
        meaning, labels = source.settle(tally.first_rows(), [*self.labels, *given], tally.points)
        labels, given = labels[: len(self.labels)], labels[len(self.labels) :]
        final = self._with(class_list(given or None, list(meaning.values()), labels), labels)
        again = not _same_classes(public, final, meaning)
        tally = count(AGAIN, final, meaning) if again else tally
        return Priced(self, self.prices(tally, final), tally, meaning, again)

    def prices(self, tally: Tally, public: Validation) -> PriceList:
        """The prices that follow from a tally of all points."""
        counts = tally.counts[0], tally.counts[1]
        return PriceList.of_counts(public, self.radius, counts, self.semivalue)

    def as_read(self, source: Labels) -> Validation:
        """The validation set as the first pass sees it, with classes as the source writes them."""
        labels, given = (source.keyed(each) for each in (self.labels, self._given()))
        return self._with(class_list(given or None, labels), labels)

    def _given(self) -> list[Hashable]:
        """The classes that were given, if any."""
        return [] if self.classes is None else list(class_list(self.classes).labels)

    def _with(self, classes: Classes, labels: list[Hashable]) -> Validation:
        codes = classes.encode("y_val", labels)
        return dataclasses.replace(self.validation, classes=classes, codes=codes)


@dataclass(frozen=True)
class Priced:
    """What the first pass leaves to the second.

    Parameters
    ----------
    problem
        What was asked.
    prices
        The prices, with all classes.
    tally
        The counts, and what was met on the way.
    meaning
        What the labels of the source are as classes.
    again
        Whether all points were counted twice.
    """

    problem: Problem
    prices: PriceList
    tally: Tally
    meaning: Meaning
    again: bool

    @property
    def rows(self) -> int:
        """The number of points."""
        return self.tally.points

    @property
    def print(self) -> int:
        """A number that follows from all points."""
        return reduce(add_prints, self.tally.prints.values(), 0)

    @property
    def public_labels(self) -> list[Hashable]:
        """The distinct labels of the validation set."""
        final = self.prices.validation
        return [final.classes.labels[code] for code in dict.fromkeys(final.codes.tolist())]

    def values(self, points: Points, neighbors: Neighbors) -> NDArray[np.float64]:
        """The values of some of the points."""
        return pay(self.prices, points, divisor=self.problem.divisor, neighbors=neighbors)

    def valuation(
        self, values: NDArray[np.float64] | None = None, owners: tuple[Hashable, ...] | None = None
    ) -> Valuation:
        """The result with these values, or with none."""
        problem, final = self.problem, self.prices.validation
        utility = ClassGame.of(final).utility(self.tally.counts)
        return valuation_of(
            np.zeros(0) if values is None else values, final, problem.radius, problem.semivalue,
            utility, mean=problem.mean, owners=owners,
        )  # fmt: skip

    def warn(self, *, labels: bool = True) -> None:
        """Warn the caller of `tknn_shapley`; warnings about `labels` may be left out."""
        if labels and self.problem.classes is None:
            warn_of_labels(list(self.meaning.values()), self.public_labels, stacklevel=5)
        tell_of_twins(int(self.tally.twins.sum()), self.problem.validation, stacklevel=5)
        if not self.tally.counts.any():
            warn_of_reach(self.problem.radius, stacklevel=5)


def pay(
    prices: PriceList, points: Points, *, before: NDArray[np.float64] | None = None,
    divisor: float = 1.0, neighbors: Neighbors = "auto",
) -> NDArray[np.float64]:  # fmt: skip
    """What the validation points of a list pay to members, on top of what was paid `before`."""
    near = Ball.around(prices.validation, prices.radius, neighbors)
    game = ClassGame.of(prices.validation)
    return value(points, near, game, prices.member_prices, before=before, divisor=divisor)


def named(part: Part, meaning: Meaning) -> Part:
    """A part with its labels as classes."""
    if all(label == other and type(label) is type(other) for label, other in meaning.items()):
        return part
    y: list[Any] = part.y if isinstance(part.y, list) else part.y.tolist()
    return dataclasses.replace(part, y=[meaning.get(label, label) for label in y])


def _same_classes(public: Validation, final: Validation, meaning: Meaning) -> bool:
    """Whether labels that agree now did so when they were counted, and no others did."""
    before = public.classes.known_codes(list(meaning))
    after = final.classes.known_codes(list(meaning.values()))
    pairs = set(zip(public.codes.tolist(), final.codes.tolist(), strict=True))
    carried, counted_as = {b for _, b in pairs}, {a for a, _ in pairs}
    if not len(counted_as) == len(carried) == len(pairs):
        return False
    found = zip(before.tolist(), after.tolist(), strict=True)
    return all(
        pair in pairs or (pair[0] not in counted_as and pair[1] not in carried) for pair in found
    )
