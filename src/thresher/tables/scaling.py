"""Scaling columns to one scale, the same to the last bit however the rows are cut.

"plain" takes the mean and the deviation of all rows. "robust" leaves out the extreme rows of each
column, and "ranks" takes ranks instead of the numbers; both need quantiles. These are exact up to
`rows_kept` rows. For a longer table they come from a fixed sample: a hash of its place in the table
decides whether a row is in it, so that one pass is enough and the parts do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thresher.array_types import Floats, LongWords

Ends = tuple[tuple[float, ...], tuple[float, ...]]

SCALINGS = ("robust", "plain", "ranks")
STEP = 1 << 12  # numbers that are summed together, wherever they come from
TRIMMED = 0.005  # of the rows, on each side of a column
KNOTS = 101  # percentiles, between which ranks are interpolated
MOST_NUMBERS = 1 << 21  # of all columns together, that are kept for quantiles
LEAST_ROWS = 1 << 12  # that are kept, however many columns there are
Wide = np.longdouble  # its range has room for squares of any float64


@dataclass
class Moments:
    """Mean and squared deviations of numbers that come in parts (Chan, Golub, LeVeque 1979).

    Numbers are joined in steps of a fixed size, so that no bit depends on the parts.

    Examples
    --------
    >>> moments = Moments()
    >>> for part in ([1.0, 2.0], [3.0], [4.0]):
    ...     moments.add(np.array(part))
    >>> moments.ends()
    ((2.5,), (1.118033988749895,))
    """

    count: int = 0
    mean: Any = 0.0
    squares: Any = 0.0
    low: float = np.inf
    high: float = -np.inf
    waiting: Floats = field(default_factory=lambda: np.empty(0))

    def add(self, numbers: Floats) -> None:
        """Join more numbers."""
        self.low = min(self.low, float(numbers.min(initial=np.inf)))
        self.high = max(self.high, float(numbers.max(initial=-np.inf)))
        first = STEP - len(self.waiting)
        if len(numbers) < first:
            self.waiting = np.concatenate([self.waiting, numbers])
            return
        self._join(np.concatenate([self.waiting, numbers[:first]]))
        for lo in range(first, len(numbers) - STEP + 1, STEP):
            self._join(numbers[lo : lo + STEP])
        self.waiting = numbers[len(numbers) - (len(numbers) - first) % STEP :].copy()

    def _join(self, numbers: Floats) -> None:
        count, wide = len(numbers), numbers.astype(Wide)
        mean = wide.mean()
        apart, both = mean - self.mean, self.count + count
        self.squares += ((wide - mean) ** 2).sum() + apart**2 * (self.count * Wide(count) / both)
        self.mean += apart * (Wide(count) / both)
        self.count = both

    def ends(self) -> Ends:
        """Mean and deviation, once all numbers were added; the deviation is 0 if all are equal."""
        if self.low == self.high:
            return (self.low,), (0.0,)
        if len(self.waiting):
            self._join(self.waiting)
            self.waiting = np.empty(0)
        return (float(self.mean),), (float(np.sqrt(self.squares / self.count)),)


@dataclass
class Sample:
    """The numbers of at most `most` rows, chosen by the marks of the rows.

    Examples
    --------
    >>> one, other = Sample(most=3), Sample(most=3)
    >>> one.add(np.arange(9.0), row_marks(0, 9))
    >>> for row in range(9):
    ...     other.add(np.array([row]), row_marks(row, 1))
    >>> one.sorted(), other.sorted()
    (array([2., 4.]), array([2., 4.]))
    """

    most: int
    limit: int = 2**64 - 1  # rows are kept whose mark does not exceed it
    count: int = 0
    parts: list[tuple[Floats, LongWords]] = field(default_factory=list)

    def add(self, numbers: Floats, marks: LongWords) -> None:
        """Take in the numbers of more rows."""
        self._keep(numbers, marks)
        while self.count > self.most:
            self.limit //= 2
            parts, self.parts, self.count = self.parts, [], 0
            for part in parts:
                self._keep(*part)

    def _keep(self, numbers: Floats, marks: LongWords) -> None:
        kept = marks <= np.uint64(self.limit)
        self.parts.append((numbers[kept], marks[kept]))
        self.count += int(kept.sum())

    def sorted(self) -> Floats:
        """The numbers that are kept, ascending."""
        return np.sort(np.concatenate([np.empty(0), *(numbers for numbers, _ in self.parts)]))


def rows_kept(columns: int) -> int:
    """The most rows that a sample has, for a table with this many columns of numbers."""
    return max(LEAST_ROWS, MOST_NUMBERS // max(1, columns))


def row_marks(first: int, count: int) -> LongWords:
    """A mark for each row from `first` on: it looks random and depends on the row's place alone.

    The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
    """
    mixed = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def trimmed(numbers: Floats) -> Floats:
    """Numbers in order without the extremes; all of them if the rest would all be equal.

    Examples
    --------
    >>> len(trimmed(np.arange(1000.0))), len(trimmed(np.arange(100.0)))
    (990, 100)
    """
    cut = int(TRIMMED * len(numbers))
    rest = numbers[cut : len(numbers) - cut]
    return rest if len(rest) and rest[0] < rest[-1] else numbers


def percentiles(numbers: Floats) -> Floats:
    """The knots of numbers in order, between which `rank` interpolates."""
    return numbers[np.linspace(0, len(numbers) - 1, KNOTS).round().astype(np.int64)]


def rank(numbers: Floats, knots: Sequence[float]) -> Floats:
    """Between which knots numbers lie: 0 up to the first one, the last place from there on.

    Equal knots share the middle of their places.

    Examples
    --------
    >>> rank(np.array([-9.0, 1.0, 2.0, 2.5, 99.0]), [0.0, 2.0, 2.0, 3.0])
    array([0.  , 0.75, 1.5 , 2.25, 3.  ])
    """
    return np.interp(numbers, *_stairs(knots))


def unrank(ranks: Floats, knots: Sequence[float]) -> Floats:
    """The numbers that have these ranks."""
    places, levels = _stairs(knots)
    return np.interp(ranks, levels, places)


def _stairs(knots: Sequence[float]) -> tuple[Floats, Floats]:
    """The distinct knots, and the middle of the places of each."""
    different, first, times = np.unique(knots, return_index=True, return_counts=True)
    return different, first + (times - 1) / 2


def moments_of(numbers: Floats) -> Ends:
    """Mean and deviation of numbers that are in memory."""
    moments = Moments()
    moments.add(numbers)
    return moments.ends()


def moments_of_shares(times: Sequence[int], rows: int, *, together: bool) -> Ends:
    """Means and deviations of columns of 0 and 1; each is 1 in as many rows as `times` says.

    With `together`, all columns weigh as much as one number: their deviations are equal, and once
    the columns are divided by them, the variances add up to 1.

    Examples
    --------
    >>> moments_of_shares([1, 3], 4, together=False)
    ((0.25, 0.75), (0.4330127018922193, 0.4330127018922193))
    >>> moments_of_shares([1, 3], 4, together=True)
    ((0.25, 0.75), (0.6123724356957945, 0.6123724356957945))
    """
    shares = tuple(count / rows for count in times)
    variances = [share * (1 - share) for share in shares]
    if together:
        variances = [sum(variances)] * len(variances)
    return shares, tuple(float(np.sqrt(variance)) for variance in variances)
