"""A feature fitted on a column that comes in parts, the same to the last bit however it is cut."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thresher.array_types import LongWords
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
from thresher.tables.scaling import (
    Ends,
    Moments,
    Sample,
    moments_of,
    moments_of_shares,
    percentiles,
    rank,
    trimmed,
)


@dataclass
class ColumnFit:
    """What is known of one column after some tables.

    A `fill` of "median" is that of the first table, which then must be all of it.
    """

    name: str
    categorical: bool
    fill: str | float | None
    scaling: str | None  # see `thresher.tables.scaling`
    sample: Sample
    kind: str | None = None  # "number" or "truth", once a cell tells
    counts: dict[str | None, int] = field(default_factory=dict)
    moments: Moments = field(default_factory=Moments)

    def add(self, table: Columns, marks: LongWords) -> None:
        """Take in the column of one more table, with the marks of its rows, or refuse its cells."""
        if self.categorical:
            self._add_categories(table)
            return
        kind = stated_kind(table, self.name)
        if kind is not None and self.kind is not None and kind != self.kind:
            said = {kind.partition(":")[0], self.kind.partition(":")[0]} - {"number"}
            what = "true or false" if "truth" in said else " or ".join(sorted(said))
            raise InputError(
                f"{table.source} column {self.name!r} has cells that say {what}, and others "
                f"that do not: clean it, or leave it out with {option('ignore', [self.name])}"
            )
        self.kind = self.kind or kind
        if isinstance(self.fill, str):
            self.fill = self._median(table)
        found = Feature(self.name, self.kind or "number", self.fill).raw(table)
        if self.scaling == "plain":
            self.moments.add(found[:, 0])
        elif self.scaling is not None:
            self.sample.add(found[:, 0], marks)

    def _add_categories(self, table: Columns) -> None:
        found = Feature(self.name, "categorical", categories=distinct_categories(table, self.name))
        codes = found.codes(table)
        times = np.bincount(codes, minlength=found.width).tolist()
        for entry, count in zip(found.categories, times, strict=True):
            self.counts[entry] = self.counts.get(entry, 0) + count
        if len(self.counts) > MOST_CATEGORIES:
            said = f"has more than {MOST_CATEGORIES} categories"
            raise refused_column(table, self.name, said, "combine the rare ones")

    def _median(self, table: Columns) -> float:
        found = numbers(table, self.name, self.kind or "number")
        if np.isnan(found).all():
            raise InputError(
                f"{table.source} column {self.name!r} has no numbers, so it has no median: "
                f"leave it out with {option('ignore', [self.name])}"
            )
        return float(np.nanmedian(found))

    def feature(self, rows: int) -> Feature:
        """How the column becomes numbers, once all rows were added."""
        if not self.categorical:
            fill = None if isinstance(self.fill, str) else self.fill
            return Feature(self.name, self.kind or "number", fill, (), *self._ends())
        entries = sorted(self.counts, key=lambda entry: (entry is None, entry or ""))
        ends: Ends = ((), ())
        if self.scaling is not None:
            times = [self.counts[entry] for entry in entries]
            ends = moments_of_shares(times, rows, together=self.scaling != "plain")
        return Feature(self.name, "categorical", None, tuple(entries), *ends)

    def _ends(self) -> tuple[tuple[float, ...], ...]:
        """Mean and deviation of a column of numbers; of its ranks with their knots."""
        if self.scaling is None:
            return (), ()
        if self.scaling == "plain":
            return self.moments.ends()
        numbers = self.sample.sorted()
        if self.scaling == "robust":
            return moments_of(trimmed(numbers))
        knots = tuple(percentiles(numbers).tolist())
        return *moments_of(rank(numbers, knots)), knots
