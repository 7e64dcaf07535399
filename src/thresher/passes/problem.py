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
from thresher.sides.ball import BallSide
from thresher.sides.protocol import PublicSide, SidePoints
from thresher.sides.targets import target_side
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
        Classes that points are likely to have besides. Others cost one more pass.
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
        kernel: Kernel | None = None,
    ) -> Problem:  # fmt: skip
        """The ball around a validation set that was not checked yet."""
        validation = check_validation(X_val, y_val, metric=metric, classes=classes)
        found = check_labels("y_val", y_val)
        labels = found if isinstance(found, list) else found.tolist()
        side = BallSide(validation, radius, kernel)
        return cls(side, labels, semivalue, classes, mean, neighbors)

    @property
    def validation(self) -> Validation:
        """The validation set of a ball."""
        return self.side.validation

    @property
    def radius(self) -> float:
        """The radius of a ball."""
        return float(self.side.radius)

    @property
    def divisor(self) -> float:
        """What values by a validation set are divided by."""
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

        In the rare case that labels which were counted as different turn out to be equal, such as 1
        and 1.0, all is counted again.
        """
        public = self.as_read(source)
        tally = count(FIRST, public, {})
        if not tally.points:
            raise InputError("X is empty: at least one row is needed")
        final, meaning = self.settle(source, tally)
        counts = final.settled(tally.counts, public, meaning)
        again = counts is None
        tally = count(AGAIN, final, meaning) if again else dataclasses.replace(tally, counts=counts)
        prices = PriceList.over(final, tally.counts, self.semivalue)
        return Priced(self, prices, tally, meaning, again)

    def settle(self, source: Labels, tally: Tally) -> tuple[Any, Meaning]:
        """The public side with all classes, and what the labels that were read are as classes."""
        given = self._given()
        meaning, labels = source.settle(tally.first_rows(), [*self.labels, *given], tally.points)
        labels, given = labels[: len(self.labels)], labels[len(self.labels) :]
        classes = class_list(given or None, list(meaning.values()), labels)
        return self.side.with_classes(classes, labels), meaning

    def as_read(self, source: Labels) -> PublicSide:
        """The public side as the first pass sees it, with classes as the source writes them."""
        labels, given, likely = (
            source.keyed(each) for each in (self.labels, self._given(), list(self.expected))
        )
        classes = class_list(given or None, [*labels, *likely])
        return self.side.with_classes(classes, labels, strangers=not given)

    def _given(self) -> list[Hashable]:
        """The classes that were given, if any."""
        return [] if self.classes is None else list(class_list(self.classes).labels)


@dataclass(frozen=True)
class TargetProblem(Problem):
    """The same with numbers as targets, which mean what they are."""

    @classmethod
    def of(
        cls, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
        empty: Any, bounds: Any, mean: bool = False, neighbors: Neighbors = "auto",
        kernel: Kernel | None = None,
    ) -> TargetProblem:  # fmt: skip
        """The ball around a validation set that was not checked yet."""
        about: Any = {"radius": radius, "metric": metric, "empty": empty, "bounds": bounds}
        side = target_side(X_val, y_val, kernel=kernel, **about)
        return cls.over(side, semivalue, mean=mean, neighbors=neighbors)

    @classmethod
    def over(
        cls, side: PublicSide, semivalue: Semivalue, *, mean: bool = False,
        neighbors: Neighbors = "auto",
    ) -> TargetProblem:  # fmt: skip
        """What points are valued by a side that was checked before."""
        return cls(side, [], semivalue, list(side.classes.labels), mean, neighbors)

    def price(self, source: Labels, count: Count) -> Priced:
        """The prices that follow from what `count` finds in the points of a source."""
        del source
        tally = count(FIRST, self.side, {})
        if not tally.points:
            raise InputError("X is empty: at least one row is needed")
        side = self.side.with_counts(tally.counts)
        prices = PriceList.over(side, tally.counts, self.semivalue)
        return Priced(self, prices, tally, {}, again=False)

    def settle(self, source: Labels, tally: Tally) -> tuple[Any, Meaning]:
        """The public side; there are no labels that could mean anything else."""
        del source, tally
        return self.side, {}

    def as_read(self, source: Labels) -> PublicSide:
        """The public side, which nothing changes."""
        del source
        return self.side


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
        return isinstance(self.problem, TargetProblem)

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
        """What values are divided by."""
        return float(self.side.judges(self.rows)) if self.problem.mean else 1.0

    @property
    def public_labels(self) -> list[Hashable]:
        """The distinct labels of the validation set."""
        codes = dict.fromkeys(self.side.codes.tolist())
        return [self.side.classes.labels[code] for code in codes]

    def values(self, points: SidePoints, neighbors: Neighbors) -> NDArray[np.float64]:
        """The values of some of the points."""
        return self.prices.pay(points, divisor=self.divisor, neighbors=neighbors)

    def valuation(
        self, values: NDArray[np.float64] | None = None, owners: tuple[Hashable, ...] | None = None
    ) -> Valuation:
        """The result with these values, or with none."""
        utility = self.side.utility(self.tally.counts)
        return side_valuation(
            self.side, np.zeros(0) if values is None else values, self.problem.semivalue, utility,
            rows=self.rows, mean=self.problem.mean, owners=owners,
        )  # fmt: skip

    def warn(self, *, labels: bool = True) -> None:
        """Warn the caller of `tknn_shapley`; warnings about `labels` may be left out."""
        if labels and self.problem.classes is None and self.public_labels:
            warn_of_labels(list(self.meaning.values()), self.public_labels, stacklevel=6)
        tell_of_twins(int(self.tally.twins.sum()), len(self.side), stacklevel=6)
        if not self.tally.counts.any():
            self.side.warn_of_reach(stacklevel=6)


def named(part: Part, meaning: Meaning) -> Part:
    """A part with its labels as classes."""
    if all(label == other and type(label) is type(other) for label, other in meaning.items()):
        return part
    y: list[Any] = part.y if isinstance(part.y, list) else part.y.tolist()
    return dataclasses.replace(part, y=[meaning.get(label, label) for label in y])
