"""A feature fitted on a column that comes in parts, the same to the last bit however it is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, option
from thresher.tables.cell_values import (
    MOST_CATEGORIES,
    distinct_categories,
    numbers,
    refused_column,
    stated_kind,
)
from thresher.tables.columns import Columns
from thresher.tables.feature import Feature

STEP = 1 << 12  # numbers that are summed together, wherever they come from
Wide = np.longdouble  # its range has room for squares of any float64

Ends = tuple[tuple[float, ...], tuple[float, ...]]


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
    waiting: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def add(self, numbers: NDArray[np.float64]) -> None:
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

    def _join(self, numbers: NDArray[np.float64]) -> None:
        count, wide = len(numbers), numbers.astype(Wide)
        mean = wide.mean()
        apart, both = mean - self.mean, self.count + count
        self.squares += ((wide - mean) ** 2).sum() + apart**2 * (self.count * Wide(count) / both)
        self.mean += apart * (Wide(count) / both)
        self.count = both

    def ends(self) -> Ends:
        """Mean and deviation, once all numbers are there; the latter is 0 where all are equal."""
        if self.low == self.high:
            return (self.low,), (0.0,)
        if len(self.waiting):
            self._join(self.waiting)
            self.waiting = np.empty(0)
        return (float(self.mean),), (float(np.sqrt(self.squares / self.count)),)


def moments_of_shares(times: Sequence[int], rows: int) -> Ends:
    """Means and deviations of columns of 0 and 1 that are 1 so many times.

    Examples
    --------
    >>> moments_of_shares([1, 3], 4)
    ((0.25, 0.75), (0.4330127018922193, 0.4330127018922193))
    """
    shares = tuple(count / rows for count in times)
    return shares, tuple(float(np.sqrt(share * (1 - share))) for share in shares)


@dataclass
class ColumnFit:
    """What is known of one column after some tables.

    A `fill` of "median" is that of the first table, which then must be all of it.
    """

    name: str
    categorical: bool
    fill: str | float | None
    standardize: bool
    kind: str | None = None  # "number" or "truth", once a cell tells
    counts: dict[str | None, int] = field(default_factory=dict)
    moments: Moments = field(default_factory=Moments)

    def add(self, table: Columns) -> None:
        """Take in the column of one more table, or refuse its cells."""
        if self.categorical:
            self._add_categories(table)
            return
        kind = stated_kind(table, self.name)
        if kind is not None and self.kind is not None and kind != self.kind:
            raise InputError(
                f"{table.source} column {self.name!r} has cells that say true or false, and others "
                f"that do not: clean it, or leave it out by {option('ignore', [self.name])}"
            )
        self.kind = self.kind or kind
        if isinstance(self.fill, str):
            self.fill = self._median(table)
        found = Feature(self.name, self.kind or "number", self.fill).raw(table)
        if self.standardize:
            self.moments.add(found[:, 0])

    def _add_categories(self, table: Columns) -> None:
        found = Feature(self.name, "categorical", categories=distinct_categories(table, self.name))
        codes = found.codes(table)
        times = np.bincount(codes, minlength=found.width).tolist()
        for entry, count in zip(found.categories, times, strict=True):
            self.counts[entry] = self.counts.get(entry, 0) + count
        if len(self.counts) > MOST_CATEGORIES:
            said = f"has more than {MOST_CATEGORIES} categories"
            raise refused_column(table, self.name, said, "put the rare ones together")

    def _median(self, table: Columns) -> float:
        found = numbers(table, self.name, truth=self.kind == "truth")
        if np.isnan(found).all():
            raise InputError(
                f"{table.source} column {self.name!r} has no numbers, and so no median: leave it "
                f"out by {option('ignore', [self.name])}"
            )
        return float(np.nanmedian(found))

    def feature(self, rows: int) -> Feature:
        """How the column becomes numbers, once all rows were added."""
        ends: Ends = ((), ())
        if not self.categorical:
            if self.standardize:
                ends = self.moments.ends()
            fill = None if isinstance(self.fill, str) else self.fill
            return Feature(self.name, self.kind or "number", fill, (), *ends)
        entries = sorted(self.counts, key=lambda entry: (entry is None, entry or ""))
        if self.standardize:
            ends = moments_of_shares([self.counts[entry] for entry in entries], rows)
        return Feature(self.name, "categorical", None, tuple(entries), *ends)
