"""Features as columns that trees can split: numbers as they are, one column for all categories.

Trees ask only whether a number is larger than another. So nothing is scaled, missing cells stay
missing, and categories are numbered in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.spelling import missing
from thresher.tables.cell_values import categories, numbers, stated_kind
from thresher.tables.column_profile import is_text, plain_type
from thresher.tables.columns import Columns

FORMAT = "thresher-tree-encoder-1"
FEW = 20  # different texts are categories, however few rows there are
MOST = 0.5  # of the rows: with more different texts than that, a column is no category

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class TreeColumn:
    """How one column becomes one column of numbers."""

    name: str
    kind: str  # "categorical", or what `stated_kind` says
    categories: tuple[str, ...] = ()  # their places are their numbers
    width: ClassVar[int] = 1

    def read(self, columns: Columns) -> Numbers:
        """The column of a table; what is missing, and a category that is not known, is NaN."""
        if self.kind != "categorical":
            return numbers(columns, self.name, self.kind)
        known = pa.array(self.categories, pa.string())
        found = pc.index_in(categories(columns, self.name), value_set=known, skip_nulls=True)
        return np.asarray(pc.fill_null(found.cast(pa.float64()), np.nan).to_numpy(), np.float64)

    def unscaled(self, column: Numbers) -> Numbers:
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
        about = {"source": columns.source, "rows": len(columns)}
        return cls(tuple(_fitted(columns, name) for name in columns.names), about)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return tuple(each.name for each in self.features)

    def transform(self, columns: Columns) -> Numbers:
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


def _fitted(columns: Columns, name: str) -> TreeColumn:
    """What a column is; a text is a category if it is no number."""
    if name in columns.categorical:
        return TreeColumn(name, "categorical", _categories(columns, name))
    kind = stated_kind(columns, name) or "number"
    try:
        numbers(columns, name, kind)
    except InputError:
        if not is_text(plain_type(columns.features.column(name))):
            raise
        found = _categories(columns, name)
        if len(found) > max(FEW, MOST * len(columns)):
            raise
        return TreeColumn(name, "categorical", found)
    return TreeColumn(name, kind)


def _categories(columns: Columns, name: str) -> tuple[str, ...]:
    entries = pc.unique(categories(columns, name)).to_pylist()
    return tuple(sorted(entry for entry in entries if entry is not None))
