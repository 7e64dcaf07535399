"""What two passes over points solve, wherever they run: count, set prices, value.

The first pass counts, and leaves prices for the second. Labels of text are counted as they are
written. What they mean is known only at the end of the first pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.inputs.checked_inputs import (
    Validation,
    check_validation,
    tell_of_twins,
    warn_of_labels,
)
from thresher.inputs.labels import check_labels, class_list
from thresher.neighbors.ball import Neighbors
from thresher.neighbors.kernel import Kernel
from thresher.passes.parts import Labels, Part
from thresher.passes.result import side_valuation
from thresher.passes.tally import Tally, add_prints
from thresher.price_list import PriceList
from thresher.sides.ball_side import BallSide
from thresher.sides.label_kinds import NumberSide
from thresher.sides.protocol import PublicSide, SidePoints
from thresher.sides.target_side import target_side
from thresher.valuation import Valuation

FIRST, AGAIN = "counts", "counts-again"  # names of the first pass, and of another one after it
Meaning = Mapping[Hashable, Hashable]
Count = Callable[[str, PublicSide, Meaning], Tally]


@dataclass(frozen=True)
class Problem:
    """What points are valued by.

    Parameters
    ----------
    side, labels
        The public side, and the labels of its validation points.
    semivalue, mean, neighbors
        As in `tknn_shapley`.
    classes
        All classes, if they were given: other labels are refused then.
    expected
        More classes that points are likely to have. Any others cost one more pass.
    """

    side: Any
    labels: list[Hashable]
    semivalue: Semivalue
    classes: object = None
    mean: bool = False
    neighbors: Neighbors = "auto"
    expected: tuple[Hashable, ...] = ()

    @classmethod
    def check(
        cls, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
        classes: Any = None, mean: bool = False, neighbors: Neighbors = "auto",
        kernel: Kernel | None = None, targets: Mapping[str, Any] | None = None,
    ) -> Problem:  # fmt: skip
        """The problem of balls around a validation set that was not checked yet.

        `targets` has `empty` and `bounds` if labels are numbers to predict.
        """
        if targets is not None:
            about: Any = {"radius": radius, "metric": metric, "kernel": kernel, **targets}
            return cls.by_numbers(
                target_side(X_val, y_val, **about), semivalue, mean=mean, neighbors=neighbors
            )
        validation = check_validation(X_val, y_val, metric=metric, classes=classes)
        found = check_labels("y_val", y_val)
        labels = found if isinstance(found, list) else found.tolist()
        side = BallSide(validation, radius, kernel)
        return cls(side, labels, semivalue, classes, mean, neighbors)

    @classmethod
    def by_numbers(
        cls, side: PublicSide, semivalue: Semivalue, *, mean: bool = False,
        neighbors: Neighbors = "auto",
    ) -> Problem:  # fmt: skip
        """What points are valued by if labels are numbers, which mean what they are."""
        return cls(side, [], semivalue, list(side.classes.labels), mean, neighbors)

    @property
    def numbers(self) -> bool:
        """Whether labels are numbers to predict."""
        return isinstance(self.side, NumberSide)

    @property
    def validation(self) -> Validation:
        """The validation set of a ball."""
        return self.side.validation

    @property
    def divisor(self) -> float:
        """The number that values by a validation set are divided by."""
        return float(len(self.side)) if self.mean else 1.0

    def identity(self) -> dict[str, Any]:
        """What tells it from other problems, in a few numbers and words."""
        given = None if self.classes is None else repr(self.side.classes.labels)
        about = self.side.identity()
        validation = about.pop("validation")  # the last: what else differs makes it differ, too
        return {
            **about, "semivalue": semivalue_name(self.semivalue), "mean": self.mean,
            "classes": given, "validation": validation,
        }  # fmt: skip

    def price(self, source: Labels, count: Count) -> Priced:
        """The prices that follow from what `count` finds in the points of a source.

        Labels that were counted as different may turn out to be equal, such as 1 and 1.0. In this
        rare case all points are counted again.
        """
        public = self.as_read(source)
        tally = count(FIRST, public, {})
        if not tally.points:
            raise InputError("X is empty: at least one row is needed")
        final, meaning = self.settle(source, tally)
        counts = final.settled(tally.counts, public, meaning)
        again = counts is None
        tally = count(AGAIN, final, meaning) if again else dataclasses.replace(tally, counts=counts)
        prices = PriceList.over(final.with_counts(tally.counts), tally.counts, self.semivalue)
        return Priced(self, prices, tally, meaning, again)

    def settle(self, source: Labels, tally: Tally) -> tuple[Any, Meaning]:
        """The public side with all classes, and the class that each label stands for."""
        if self.numbers:
            return self.side, {}
        given = self._given()
        meaning, labels = source.settle(tally.first_rows(), [*self.labels, *given], tally.points)
        labels, given = labels[: len(self.labels)], labels[len(self.labels) :]
        classes = class_list(given or None, list(meaning.values()), labels)
        return self.side.with_classes(classes, labels), meaning

    def as_read(self, source: Labels) -> PublicSide:
        """The public side as the first pass sees it, with classes as the source writes them."""
        if self.numbers:
            return cast("PublicSide", self.side)
        labels, given, likely = (
            source.keyed(each) for each in (self.labels, self._given(), list(self.expected))
        )
        classes = class_list(given or None, [*labels, *likely])
        return self.side.with_classes(classes, labels, strangers=not given)

    def _given(self) -> list[Hashable]:
        """The classes that were given, if any."""
        return [] if self.classes is None else list(class_list(self.classes).labels)

    def warn(
        self, side: PublicSide, tally: Tally, meaning: Meaning, *, reached: bool,
        labels: bool = True, stacklevel: int,
    ) -> None:  # fmt: skip
        """Warn of what was found in the points; warnings about labels only if `labels`."""
        if labels and self.classes is None and len(side):
            warn_of_labels(list(meaning.values()), labels_of(side), stacklevel=stacklevel + 1)
        tell_of_twins(int(tally.twins.sum()), len(side), stacklevel=stacklevel + 1)
        if not reached:
            side.warn_of_reach(stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class Priced:
    """What the first pass leaves to the second."""

    problem: Problem  # what was asked
    prices: PriceList  # the prices, with all classes
    tally: Tally  # the counts, and what was met on the way
    meaning: Meaning  # what the labels of the source are as classes
    again: bool  # whether all points were counted twice

    @property
    def side(self) -> PublicSide:
        """The public side, with all classes."""
        return self.prices.side

    @property
    def numbers(self) -> bool:
        """Whether labels are numbers to predict."""
        return self.problem.numbers

    @property
    def rows(self) -> int:
        """The number of points."""
        return self.tally.points

    @property
    def print(self) -> int:
        """A number that follows from all points."""
        return reduce(add_prints, self.tally.prints.values(), 0)

    @property
    def divisor(self) -> float:
        """The number that values are divided by."""
        return float(self.side.judges(self.rows)) if self.problem.mean else 1.0

    @property
    def public_labels(self) -> list[Hashable]:
        """The distinct labels of the validation set."""
        return labels_of(self.side)

    def values(self, points: SidePoints, neighbors: Neighbors) -> NDArray[np.float64]:
        """The values of some of the points."""
        return self.prices.pay(points, divisor=self.divisor, neighbors=neighbors)

    def valuation(
        self, values: NDArray[np.float64] | None = None, owners: tuple[Hashable, ...] | None = None
    ) -> Valuation:
        """The result with these values, or without values."""
        utility = self.side.utility(self.tally.counts)
        return side_valuation(
            self.side, np.zeros(0) if values is None else values, self.problem.semivalue, utility,
            rows=self.rows, mean=self.problem.mean, owners=owners,
        )  # fmt: skip

    def warn(self, *, labels: bool = True) -> None:
        """Warn the caller of `tknn_shapley`; about labels only if `labels`."""
        self.problem.warn(
            self.side, self.tally, self.meaning, reached=bool(self.tally.counts.any()),
            labels=labels, stacklevel=6,
        )  # fmt: skip


def labels_of(side: PublicSide) -> list[Hashable]:
    """The distinct labels of a validation set."""
    return [side.classes.labels[code] for code in dict.fromkeys(side.codes.tolist())]


def named(part: Part, meaning: Meaning) -> Part:
    """A part with its labels as classes."""
    if all(label == other and type(label) is type(other) for label, other in meaning.items()):
        return part
    y: list[Any] = part.y if isinstance(part.y, list) else part.y.tolist()
    return dataclasses.replace(part, y=[meaning.get(label, label) for label in y])
