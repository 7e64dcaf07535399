"""Feature: how one column of a table becomes columns of numbers, and what it is fitted on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thresher.array_types import Floats, Integers, LongWords
from thresher.errors import InputError, either, option
from thresher.inputs.checks import rows_text
from thresher.tables.cell_values import categories, numbers, refused_column, stated_kind
from thresher.tables.columns import Columns
from thresher.tables.scaling import (
    Ends,
    Moments,
    Sample,
    moments_of,
    moments_of_shares,
    percentiles,
    rank,
    trimmed,
    unrank,
)

MOST_CATEGORIES = 1000
KINDS = {"number", "truth", "categorical", "percent", "money", "date"}


@dataclass(frozen=True)
class Feature:
    """How one column becomes numbers."""

    name: str
    kind: str  # "categorical", or what `stated_kind` says: "number", "truth", "percent" and so on
    fill: float | None = None  # stands for missing numbers; None where they are refused
    categories: tuple[str | None, ...] = ()  # a column for each; None is for missing entries
    means: tuple[float, ...] = ()  # of the rows it was fitted on; empty where nothing is scaled
    deviations: tuple[float, ...] = ()
    knots: tuple[float, ...] = ()  # where ranks are scaled: see `thresher.tables.scaling.rank`

    def __post_init__(self) -> None:
        if self.kind.partition(":")[0] not in KINDS:
            raise InputError(f"column {self.name!r} is of an unknown kind, {self.kind!r}")
        if len(self.means) != len(self.deviations) or len(self.means) not in {0, self.width}:
            raise InputError(
                f"column {self.name!r} has a different number of means than of columns"
            )
        if list(self.knots) != sorted(self.knots):
            raise InputError(f"column {self.name!r} has knots that are not in order")

    @property
    def width(self) -> int:
        """How many columns of numbers it becomes."""
        return len(self.categories) if self.kind == "categorical" else 1

    def raw(self, columns: Columns) -> Floats:
        """The columns of numbers, not scaled."""
        if self.kind == "categorical":
            codes = self.codes(columns)
            out = np.zeros((len(columns), self.width))
            known = np.flatnonzero(codes >= 0)
            out[known, codes[known]] = 1.0
            return out
        found = numbers(columns, self.name, self.kind)
        empty = np.flatnonzero(np.isnan(found))
        if not len(empty):
            return found[:, None]
        if self.fill is None:
            some = len(empty) < len(found)
            fill = option("fill", "median" if some else "zero")
            fill += " (or zero, or a number)" if some else ""
            raise InputError(
                f"{columns.source} column {self.name!r} has missing numbers in "
                f"{rows_text(columns.rows[empty])}: {either('', f'fill them with {fill}, ')}leave "
                f"it out with {option('ignore', [self.name])}, or drop those rows"
            )
        return np.nan_to_num(found, nan=self.fill)[:, None]

    def codes(self, columns: Columns) -> Integers:
        """The number of the category of each row, -1 where it was not seen before."""
        known = pa.array(self.categories, pa.string())
        found = pc.fill_null(pc.index_in(categories(columns, self.name), value_set=known), -1)
        return np.asarray(found.to_numpy(), np.int64)

    def scaled(self, columns: Columns) -> Floats:
        """The columns of numbers."""
        return self.scale(self.raw(columns))

    def scale(self, found: Floats) -> Floats:
        """Raw columns of numbers on the scale of the rows it was fitted on."""
        if not self.means:
            return found
        if self.knots:
            found = rank(found, self.knots)
        spread = np.array(self.deviations)
        centered = found - np.array(self.means)
        return np.divide(centered, spread, out=np.zeros_like(found), where=spread > 0)

    def unscaled(self, column: Floats) -> Floats:
        """The numbers that were scaled to this column of numbers."""
        if self.means:
            column = column * self.deviations[0] + self.means[0]
        return unrank(column, self.knots) if self.knots else column


@dataclass
class ColumnFit:
    """What is known about one column after some parts of a table.

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
        """Take in the column of one more part, with the marks of its rows, or refuse its cells."""
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
        found = categories(table, self.name).value_counts()
        for entry, count in zip(*map(pa.Array.to_pylist, found.flatten()), strict=True):
            self.counts[entry] = self.counts.get(entry, 0) + count
        if len(found) > MOST_CATEGORIES:
            many = f"{len(found)} categories, but at most {MOST_CATEGORIES} are possible"
        elif len(self.counts) > MOST_CATEGORIES:
            many = f"more than {MOST_CATEGORIES} categories"
        else:
            return
        raise refused_column(table, self.name, f"has {many}", "combine the rare ones")

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
        """Mean and deviation of a column of numbers, or of its ranks together with their knots."""
        if self.scaling is None:
            return (), ()
        if self.scaling == "plain":
            return self.moments.ends()
        numbers = self.sample.sorted()
        if self.scaling == "robust":
            return moments_of(trimmed(numbers))
        knots = tuple(percentiles(numbers).tolist())
        return *moments_of(rank(numbers, knots)), knots


def check_fill(fill: object) -> str | float | None:
    """`fill`, if it is None, "median", "zero" or a finite number, which is returned as a float."""
    if fill is None or fill == "median":
        return fill
    if fill == "zero":
        return 0.0
    try:
        number = math.nan if isinstance(fill, bool) else float(fill)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{option('fill')} must be median, zero or a number, got {fill!r}")
    return number


def check_streaming_fill(fill: object) -> float | None:
    """`fill`, if it can be known before all rows are read."""
    found = check_fill(fill)
    if isinstance(found, str):
        raise InputError(
            f"{option('fill', 'median')} needs each column as a whole, which a run in parts or on "
            f"Dask does not keep: use {option('fill', 'zero')} or a number, or fill the gaps "
            "beforehand"
        )
    return found
