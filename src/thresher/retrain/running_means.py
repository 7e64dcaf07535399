"""Running estimates of values, with standard errors, and whether their ranking is stable."""

from __future__ import annotations

import numpy as np

from thresher.array_types import Flags, Floats

FIRM = 20  # samples from which a point's own spread counts as much as the spread of all points


class Moments:
    """Mean and variance of vectors in one pass, without storing them (Welford; Chan et al.).

    Examples
    --------
    >>> moments = Moments(2)
    >>> for sample in ([0.0, 1.0], [1.0, 1.0], [2.0, 1.0]):
    ...     moments.add(np.array(sample))
    >>> moments.values().tolist(), moments.errors().round(4).tolist()
    ([1.0, 1.0], [0.5774, 0.3892])
    """

    def __init__(self, size: int) -> None:
        self.count = 0
        self.mean, self.squares = np.zeros(size), np.zeros(size)

    def add(self, sample: Floats) -> None:
        """Add one more vector."""
        self.count += 1
        change = sample - self.mean
        self.mean += change / self.count
        self.squares += change * (sample - self.mean)

    def values(self) -> Floats:
        """The mean."""
        return self.mean.copy()

    def errors(self) -> Floats:
        """The standard error of the mean."""
        if self.count < 2:
            return np.full(len(self.mean), np.nan)
        own = self.squares / (self.count - 1)
        return np.sqrt(_firm(own, own.mean(), self.count - 1) / self.count)

    def __add__(self, other: Moments) -> Moments:
        both = Moments(len(self.mean))
        both.count = self.count + other.count
        change = other.mean - self.mean
        share = other.count / max(both.count, 1)
        both.mean = self.mean + change * share
        both.squares = self.squares + other.squares + change**2 * (self.count * share)
        return both


class InAndOut:
    """Mean utility of coalitions with a point minus that of coalitions without it.

    Every coalition informs every value (maximum sample reuse). Utilities are taken relative to
    `center`.
    """

    def __init__(self, size: int, center: float) -> None:
        self.center = center
        self.inside = np.zeros((3, size))  # number, sum and sum of squares of utilities
        self.outside = np.zeros((3, size))

    def add(self, mask: Flags, utility: float) -> None:
        """Add one coalition; one at a time, so that no sum depends on how blocks were cut."""
        shifted = utility - self.center
        powers = np.array([[1.0], [shifted], [shifted**2]])
        self.inside += powers * mask
        self.outside += powers * ~mask

    def values(self) -> Floats:
        """The differences of the means; NaN for a point that was never in, or never out."""
        with np.errstate(invalid="ignore"):
            return self.inside[1] / self.inside[0] - self.outside[1] / self.outside[0]

    def errors(self) -> Floats:
        """The standard errors: the variances of the two means add up."""
        both = self.inside + self.outside
        with np.errstate(invalid="ignore", divide="ignore"):
            own = _variance(*self.inside) / self.inside[0]
            own += _variance(*self.outside) / self.outside[0]
            common = _variance(*both) * (1 / self.inside[0] + 1 / self.outside[0])
        return np.sqrt(_firm(own, common, both[0]))

    def __add__(self, other: InAndOut) -> InAndOut:
        both = InAndOut(self.inside.shape[1], self.center)
        both.inside, both.outside = self.inside + other.inside, self.outside + other.outside
        return both


def _variance(number: Floats, total: Floats, squares: Floats) -> Floats:
    """The variance of `number` numbers; NaN for fewer than two."""
    spread = np.maximum(squares - total**2 / number, 0.0) / (number - 1)
    return np.where(number > 1, spread, np.nan)


def _firm(own: Floats, common: Floats | float, count: Floats | int) -> Floats:
    """Variances of `count` samples each, drawn toward what all points have in `common`.

    A point usually adds nothing, and sometimes much. With few samples, a point that has not added
    much yet seems both worth less and more certain than it is. Other points have already added
    much, so their variances help. No variance becomes smaller than that of the point's own samples.
    """
    return np.maximum(own, (count * own + FIRM * common) / (count + FIRM))
