"""Tables as numbers that trees can split.

Categories and text become numbers in their order. Missing cells are NaN, which trees send to the
side where they do best. Numbers too large for float32 become the largest one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.checks import (
    check_columns,
    check_features,
    check_long_integers,
    check_width,
    column_names,
    is_frame,
)
from thresher.inputs.labels import is_missing

LARGEST = np.finfo(np.float32).max

Features = NDArray[np.float32]


@dataclass(frozen=True)
class TreeColumns:
    """How a table becomes rows of numbers."""

    width: int  # the number of columns
    names: tuple[str, ...] | None = None  # their names, where they have names
    # for each column, None if it holds numbers, else the texts that stand for 0, 1, ...
    categories: tuple[tuple[str, ...] | None, ...] = ()

    @classmethod
    def of(cls, name: str, table: Any) -> TreeColumns:
        """The columns of a table."""
        if not is_frame(table):
            return cls(check_features(name, table).shape[1])
        import narwhals as nw

        frame = nw.from_native(table, eager_only=True)
        numbers = [kind.is_numeric() or kind == nw.Boolean for kind in frame.schema.values()]
        categories = [
            None if plain else tuple(sorted(_texts(frame, column)))
            for column, plain in zip(frame.columns, numbers, strict=True)
        ]
        return cls(len(categories), column_names(table), tuple(categories))

    def merge(self, other: TreeColumns) -> TreeColumns:
        """The columns of two parts of a table together."""
        pairs = zip(self.categories, other.categories, strict=True)
        found = [None if one is two is None else {*(one or ()), *(two or ())} for one, two in pairs]
        categories = tuple(None if texts is None else tuple(sorted(texts)) for texts in found)
        return TreeColumns(self.width, self.names, categories)

    @property
    def texts(self) -> bool:
        """Whether some columns are categories or text."""
        return any(each is not None for each in self.categories)

    def encode(self, name: str, table: Any, wanted: str = "X") -> Features:
        """A table with the same columns, as numbers; `wanted` names the first table in messages."""
        check_columns(name, column_names(table), wanted, self.names)
        if not is_frame(table) or not self.categories:
            if self.texts:
                raise InputError(
                    f"{name} must be a data frame with the columns {list(self.names or ())[:9]}, "
                    f"some of which are categories: got {type(table).__name__}"
                )
            found = check_features(name, table)
            check_width(name, found, wanted, self.width)
            return as_floats(found)
        import narwhals as nw

        frame = nw.from_native(table, eager_only=True)
        if not self.width or not len(frame):
            raise InputError(f"{name} is empty: at least one row and one column are needed")
        check_width(name, np.empty((0, len(frame.columns))), wanted, self.width)
        check_long_integers(name, frame)
        columns = [
            _column(frame, column, texts)
            for column, texts in zip(frame.columns, self.categories, strict=True)
        ]
        return as_floats(np.stack(columns, axis=1))

    def describe(self) -> dict[str, Any]:
        """The columns as JSON can hold them."""
        return {"width": self.width, "names": self.names, "categories": self.categories}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TreeColumns:
        """What `describe` described."""
        names = None if record["names"] is None else tuple(map(str, record["names"]))
        categories = tuple(
            None if each is None else tuple(map(str, each)) for each in record["categories"]
        )
        return cls(int(record["width"]), names, categories)


def _texts(frame: Any, column: str) -> set[str]:
    return {str(entry) for entry in frame.get_column(column).to_list() if not is_missing(entry)}


def _column(frame: Any, column: str, texts: tuple[str, ...] | None) -> NDArray[np.float64]:
    """One column as numbers; missing cells and unknown categories are NaN."""
    entries = frame.get_column(column).to_list()
    if texts is None:
        return np.array([np.nan if is_missing(x) else float(x) for x in entries])
    codes = {text: float(code) for code, text in enumerate(texts)}
    return np.array([np.nan if is_missing(x) else codes.get(str(x), np.nan) for x in entries])


def as_floats(array: NDArray[Any]) -> Features:
    """Numbers as trees see them."""
    found = np.clip(array, -LARGEST, LARGEST)  # NaN stays NaN
    return np.ascontiguousarray(found, dtype=np.float32)
