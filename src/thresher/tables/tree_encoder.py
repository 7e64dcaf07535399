"""Features as columns that trees can split: numbers as they are, one column for all categories.

Trees ask only whether a number is larger than another. So nothing is scaled, missing cells stay
missing, and categories are numbered in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.inputs.spelling import missing
from thresher.tables.cell_values import categories, numbers, stated_kind
from thresher.tables.column_profile import is_text, plain_type
from thresher.tables.columns import Columns

FORMAT = "thresher-tree-encoder-1"
FEW = 20  # different texts are categories, however few rows there are
MOST = 0.5  # of the rows: with more different texts than that, a column is no category

NUMBERS = 1 << 16  # different texts, all numbers up to then: the column is one of numbers


@dataclass(frozen=True)
class TreeColumn:
    """How one column becomes one column of numbers."""

    name: str
    kind: str  # "categorical", or what `stated_kind` says
    categories: tuple[str, ...] = ()  # their places are their numbers
    width: ClassVar[int] = 1

    def read(self, columns: Columns) -> Floats:
        """The column of a table; what is missing, and a category that is not known, is NaN."""
        if self.kind != "categorical":
            return numbers(columns, self.name, self.kind)
        known = pa.array(self.categories, pa.string())
        found = pc.index_in(categories(columns, self.name), value_set=known, skip_nulls=True)
        return np.asarray(pc.fill_null(found.cast(pa.float64()), np.nan).to_numpy(), np.float64)

    def unscaled(self, column: Floats) -> Floats:
        """The column as it is: trees need no scaling."""
        return column


@dataclass(frozen=True)
class TreeEncoder:
    """How features become columns of numbers for trees.

    Examples
    --------
    >>> data = pa.table({"size": [1.5, None, 3.0], "color": ["red", "blue", None]})
    >>> columns = Columns(("cat", "dog", "cat"), data)
    >>> encoder = TreeEncoder.fit(columns)
    >>> encoder.names, encoder.transform(columns).tolist()
    (('size', 'color'), [[1.5, 1.0], [nan, 0.0], [3.0, nan]])
    """

    features: tuple[TreeColumn, ...]
    fitted_on: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(cls, columns: Columns) -> TreeEncoder:
        """Fit it on a table: texts that are no numbers are categories, unless nearly all differ."""
        return cls.fit_parts([columns], columns.source, whole=True)

    @classmethod
    def fit_parts(
        cls, tables: Iterable[Columns], source: str, *, whole: bool = False
    ) -> TreeEncoder:
        """Fit it on a table that comes in parts, as on all of it, or is the first as a `whole`."""
        fits: dict[str, TreeColumnFit] = {}
        rows = 0
        for table in tables:
            rows += len(table)
            for name in table.names:
                fits.setdefault(name, TreeColumnFit(name, whole)).add(table)
        columns = tuple(fit.column(rows) for fit in fits.values())
        return cls(columns, {"source": source, "rows": rows})

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TreeEncoder:
        """The encoder that `describe` described."""
        columns = [
            TreeColumn(each["name"], each["kind"], tuple(each["categories"]))
            for each in record["columns"]
        ]
        return cls(tuple(columns), dict(record["fitted_on"]))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return tuple(each.name for each in self.features)

    def transform(self, columns: Columns) -> Floats:
        """A table as columns of numbers, with NaN where they are missing."""
        for name in self.names:
            if name not in columns.names:
                raise missing(columns.source, "column", name, columns.names)
        return np.stack([each.read(columns) for each in self.features], axis=1)

    def unseen(self, columns: Columns) -> dict[str, int]:
        """For each column of categories, how many rows have one not seen before, if any."""
        found = {}
        for each in self.features:
            if each.kind == "categorical":
                empty = categories(columns, each.name).null_count
                found[each.name] = int(np.isnan(each.read(columns)).sum()) - empty
        return {name: count for name, count in found.items() if count}

    def describe(self) -> dict[str, Any]:
        """A record of plain lists and strings."""
        return {
            "format": FORMAT,
            "fitted_on": dict(self.fitted_on),
            "columns": [
                {"name": each.name, "kind": each.kind, "categories": list(each.categories)}
                for each in self.features
            ],
        }


@dataclass
class TreeColumnFit:
    """What is known of one column after some tables."""

    name: str
    whole: bool  # whether there is one table
    kind: str | None = None  # once a cell tells
    texts: set[str] | None = field(default_factory=set)  # None once there are too many
    refused: InputError | None = None  # why it does not hold numbers

    def add(self, columns: Columns) -> None:
        """Take in the column of one more table."""
        if self.name in columns.categorical:
            self.kind = "categorical"
        elif self.refused is None:
            self._add_numbers(columns)
        known = self.kind == "categorical" or self.refused is not None
        text = is_text(plain_type(columns.features.column(self.name)))  # cells to come may be words
        if self.texts is not None and (known or (text and not self.whole)):
            found = pc.unique(categories(columns, self.name)).to_pylist()
            self.texts |= {entry for entry in found if entry is not None}
            self.texts = self.texts if known or len(self.texts) <= NUMBERS else None

    def _add_numbers(self, columns: Columns) -> None:
        kind = stated_kind(columns, self.name)
        self.kind = self.kind or kind
        try:
            numbers(columns, self.name, self.kind or "number")
        except InputError as refused:
            self.refused = refused
            if not is_text(plain_type(columns.features.column(self.name))):
                raise

    def column(self, rows: int) -> TreeColumn:
        """What a column of so many rows is; a text is a category if it is no number."""
        if self.kind == "categorical" or self.refused is not None:
            texts = tuple(sorted(self.texts or ()))
            many = self.texts is None or len(texts) > max(FEW, MOST * rows)
            if self.refused is not None and many:
                raise self.refused
            return TreeColumn(self.name, "categorical", texts)
        return TreeColumn(self.name, self.kind or "number")
