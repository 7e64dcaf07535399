"""An encoder fitted in one pass over files that exceed memory.

It is the encoder that `Encoder.fit` finds, to the last bit. A median needs a column as a whole, and
is refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from thresher.errors import InputError
from thresher.tables.cells import (
    MOST_CATEGORIES,
    distinct_categories,
    says_something,
    says_truth,
)
from thresher.tables.columns import Columns
from thresher.tables.encoding import Encoder, Feature, check_fill
from thresher.tables.moments import Moments, moments_of_shares


def check_streaming_fill(fill: object) -> float | None:
    """`fill`, if it can be known before all rows are read."""
    found = check_fill(fill)
    if isinstance(found, str):
        raise InputError(
            "--fill median needs each column as a whole, which --memory does not keep: use --fill "
            "zero or a number, or fill the gaps beforehand"
        )
    return found


def fit_encoder(
    tables: Iterator[Columns], *, fill: float | None = None, standardize: bool = False,
    source: str = "the table", whole: bool = True,
) -> Encoder:  # fmt: skip
    """The encoder of a table that comes in small ones.

    Parameters
    ----------
    tables
        All of the table; without `whole`, the first one is enough.
    fill, standardize
        As in `Encoder.fit`; `fill` is no median.
    source
        What messages call the table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> halves = [Columns((0, 1), pa.table({"x": x, "c": c}), categorical=("c",))
    ...           for x, c in (([1.0, 2.0], ["a", "b"]), ([3.0, 4.0], ["b", None]))]
    >>> encoder = fit_encoder(iter(halves), standardize=True)
    >>> encoder.names, encoder.features[0].means
    (('x', 'c=a', 'c=b', 'c='), (2.5,))
    """
    columns: dict[str, _Column] = {}
    rows = 0
    for table in tables:
        for name in table.names:
            if name not in columns:
                columns[name] = _Column(name, name in table.categorical, fill)
            columns[name].add(table, standardize=standardize)
        rows += len(table)
        if not whole:
            break
    features = tuple(each.feature(rows, standardize=standardize) for each in columns.values())
    about = {"source": source, "rows": rows if whole else None, "fill": fill}
    return Encoder(features, fitted_on=about | {"standardize": standardize})


@dataclass
class _Column:
    """What is known of one column after some tables."""

    name: str
    categorical: bool
    fill: float | None
    kind: str | None = None  # "number" or "truth", once a cell tells
    counts: dict[str | None, int] = field(default_factory=dict)
    moments: Moments = field(default_factory=Moments)

    def add(self, table: Columns, *, standardize: bool) -> None:
        if self.categorical:
            self._add_categories(table)
            return
        kind = self._kind(table)
        if kind is not None and self.kind is not None and kind != self.kind:
            raise InputError(
                f"{table.source} column {self.name!r} has cells that say true or false, and others "
                f"that do not: clean it, or leave it out by --ignore {shlex.quote(self.name)}"
            )
        self.kind = self.kind or kind
        found = Feature(self.name, self.kind or "number", self.fill).raw(table)
        if standardize:
            self.moments.add(found[:, 0])

    def _kind(self, table: Columns) -> str | None:
        """What the cells of a table are; None where all are missing."""
        if says_truth(table, self.name):
            return "truth"
        return "number" if says_something(table, self.name) else None

    def _add_categories(self, table: Columns) -> None:
        found = Feature(self.name, "categorical", categories=distinct_categories(table, self.name))
        codes = found.codes(table)
        times = np.bincount(codes, minlength=found.width).tolist()
        for entry, count in zip(found.categories, times, strict=True):
            self.counts[entry] = self.counts.get(entry, 0) + count
        if len(self.counts) > MOST_CATEGORIES:
            raise InputError(
                f"{table.source} column {self.name!r} has more than {MOST_CATEGORIES} categories: "
                f"leave it out by --ignore {shlex.quote(self.name)}, or put the rare ones together"
            )

    def feature(self, rows: int, *, standardize: bool) -> Feature:
        if not self.categorical:
            ends = self.moments.ends() if standardize else ((), ())
            return Feature(self.name, self.kind or "number", self.fill, (), *ends)
        entries = sorted(self.counts, key=lambda entry: (entry is None, entry or ""))
        if not standardize:
            return Feature(self.name, "categorical", categories=tuple(entries))
        ends = moments_of_shares([self.counts[entry] for entry in entries], rows)
        return Feature(self.name, "categorical", None, tuple(entries), *ends)
