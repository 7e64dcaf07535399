"""Features as rows of numbers: fitted on one table, applied to another, kept in a record.

`TreeEncoder` makes columns that trees can split. Trees only ask whether a number is larger than
another, so nothing is scaled, missing cells stay missing, and categories are numbered in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thresher.array_types import Floats
from thresher.embed import TEXT_MODEL, check_texts, embed_texts
from thresher.errors import InputError, option
from thresher.inputs.checks import check_choice
from thresher.inputs.spelling import missing
from thresher.tables.cell_values import categories, numbers, stated_kind
from thresher.tables.column_profile import is_text, plain_type
from thresher.tables.columns import Columns
from thresher.tables.feature import ColumnFit, Feature, check_fill, check_streaming_fill
from thresher.tables.scaling import SCALINGS, Sample, row_marks, rows_kept

FORMAT = "thresher-encoder-1"
FORMAT_OF_RANKS = "thresher-encoder-2"  # earlier versions would take ranks for numbers
FORMAT_OF_TREES = "thresher-tree-encoder-1"
FEW = 20  # different texts are categories, however few rows there are
MOST = 0.5  # of the rows: with more different texts than that, a column is no category
NUMBERS = 1 << 16  # different texts, all numbers up to then: the column is one of numbers


@dataclass(frozen=True)
class Encoder:
    """How features become rows of numbers.

    Numbers, and one column of zeros and ones for each category, come in the order of the columns of
    the table; the embedding of a column of text comes last, as the model gives it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> data = pa.table({"size": [1, 2, 3], "color": ["red", "blue", "red"]})
    >>> columns = Columns(("cat", "dog", "cat"), data, categorical=("color",))
    >>> encoder = Encoder.fit(columns)
    >>> encoder.names, encoder.transform(columns)[0].tolist()
    (('size', 'color=blue', 'color=red'), [1.0, 0.0, 1.0])
    >>> Encoder.from_record(encoder.describe()) == encoder
    True
    """

    features: tuple[Feature, ...]
    text: str | None = None
    model: str | None = None
    fitted_on: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(
        cls, columns: Columns, *, fill: str | float | None = None, standardize: bool = False,
        scaling: str = "robust", model: str = TEXT_MODEL,
    ) -> Encoder:  # fmt: skip
        """Fit it on a table.

        Parameters
        ----------
        columns
            The table; nothing else is learned from.
        fill
            What stands for missing numbers: "median" of the column in this table, "zero", or a
            number. Without it they are refused.
        standardize
            Bring each column of numbers, but not an embedding, to one scale, fitted on this table;
            a column that is the same in all rows becomes 0.
        scaling
            How: "robust" brings it to mean 0 and deviation 1 after leaving out the 0.5 % smallest
            and the 0.5 % largest numbers (no rows are dropped, and if all others are equal, nothing
            is left out); "ranks" replaces numbers by their ranks first; "plain" uses all numbers as
            they are. All columns of a category together weigh as much as one number, except with
            "plain", where each of them does. In tables of many rows, quantiles are those of a fixed
            sample of rows: at least 4,096, and as many as make two million numbers in all columns.
        model
            The model that embeds the column of text.

        Raises
        ------
        InputError
            If cells are missing or are not numbers; the message names the column and the first
            such rows, and says what to do.
        """
        how = _scaling(scaling, standardize=standardize)
        features, rows = _fitted([columns], check_fill(fill), how)
        about = {"source": columns.source, "rows": rows, "fill": fill}
        about |= {"standardize": standardize, "scaling": how}
        return cls(features, columns.text, model if columns.text is not None else None, about)

    @classmethod
    def fit_parts(
        cls, tables: Iterable[Columns], *, fill: str | float | None = None,
        standardize: bool = False, scaling: str = "robust", source: str = "the table",
        whole: bool = True,
    ) -> Encoder:  # fmt: skip
        """Fit it on a table that comes in parts: the result is the same as from the whole table.

        Parameters
        ----------
        tables
            The parts of the table, in order. With `whole` false, only the first one is read.
        fill, standardize, scaling
            As in `fit`. A median needs a column as a whole, and is refused.
        source
            What messages call the table.

        Examples
        --------
        >>> import pyarrow as pa
        >>> halves = [Columns((0, 1), pa.table({"x": x, "c": c}), categorical=("c",))
        ...           for x, c in (([1.0, 2.0], ["a", "b"]), ([3.0, 4.0], ["b", None]))]
        >>> encoder = Encoder.fit_parts(halves, standardize=True)
        >>> encoder.names, encoder.features[0].means
        (('x', 'c=a', 'c=b', 'c='), (2.5,))
        """
        number = check_streaming_fill(fill)
        some = tables if whole else islice(tables, 1)
        how = _scaling(scaling, standardize=standardize)
        features, rows = _fitted(some, number, how)
        about = {"source": source, "rows": rows if whole else None, "fill": fill}
        return cls(features, fitted_on=about | {"standardize": standardize, "scaling": how})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of numbers, without those of an embedding."""
        return tuple(
            name
            for each in self.features
            for name in (
                [f"{each.name}={'' if entry is None else entry}" for entry in each.categories]
                if each.kind == "categorical"
                else [each.name]
            )
        )

    def transform(self, columns: Columns, *, progress: bool = False) -> Floats:
        """A table as rows of numbers; a category that was not seen before is all zeros."""
        _check_names(columns, [each.name for each in self.features])
        parts = [each.scaled(columns) for each in self.features]
        parts.append(_embedded(columns, self.text, self.model, progress=progress))
        return np.concatenate(parts, axis=1)

    def unseen(self, columns: Columns) -> dict[str, int]:
        """For each column of categories, how many rows have one not seen before, if any."""
        counts = {
            each.name: int(np.count_nonzero(each.codes(columns) < 0))
            for each in self.features
            if each.kind == "categorical"
        }
        return {name: count for name, count in counts.items() if count}

    def describe(self) -> dict[str, Any]:
        """A record of plain lists, numbers and strings, from which `from_record` makes it again."""
        ranks = any(each.knots for each in self.features)
        return {
            "format": FORMAT_OF_RANKS if ranks else FORMAT,
            "fitted_on": dict(self.fitted_on),
            "columns": [_record(each, *([] if ranks else ["knots"])) for each in self.features],
            "text": _text_record(self.text, self.model),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Encoder:
        """The encoder that `describe` described."""
        formats = FORMAT, FORMAT_OF_RANKS
        if not isinstance(record, Mapping) or record.get("format") not in formats:
            raise InputError(f"this is not an encoder's record: its format is not {formats[-1]}")
        try:
            features = tuple(
                Feature(
                    str(each["name"]),
                    str(each["kind"]),
                    None if each["fill"] is None else float(each["fill"]),
                    tuple(None if entry is None else str(entry) for entry in each["categories"]),
                    tuple(map(float, each["means"])),
                    tuple(map(float, each["deviations"])),
                    tuple(map(float, each.get("knots", ()))),
                )
                for each in record["columns"]
            )
            text = record["text"] or {"column": None, "model": None}
            return cls(features, text["column"], text["model"], dict(record["fitted_on"]))
        except (InputError, LookupError, TypeError, ValueError) as wrong:
            raise InputError(f"this is not an encoder's record: {wrong}") from None


def _scaling(scaling: str, *, standardize: bool) -> str | None:
    check_choice(option("scaling"), scaling, SCALINGS)
    return scaling if standardize else None


def _fitted(
    tables: Iterable[Columns], fill: str | float | None, scaling: str | None
) -> tuple[tuple[Feature, ...], int]:
    """The features of tables, and the number of their rows."""
    columns: dict[str, ColumnFit] = {}
    rows = 0
    for table in tables:
        most = rows_kept(len(table.names) - len(table.categorical))
        marks = row_marks(rows, len(table))
        for name in table.names:
            if name == table.text:
                continue
            if name not in columns:
                categorical = name in table.categorical
                columns[name] = ColumnFit(name, categorical, fill, scaling, Sample(most))
            columns[name].add(table, marks)
        rows += len(table)
    return tuple(each.feature(rows) for each in columns.values()), rows


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
    text: str | None = None  # the column that a model embeds; its numbers come last
    model: str | None = None

    @classmethod
    def fit(cls, columns: Columns, *, model: str = TEXT_MODEL) -> TreeEncoder:
        """Fit it on a table: other text than numbers is a category, unless nearly all differ."""
        fitted = cls.fit_parts([columns], columns.source, whole=True)
        named = columns.text is not None
        return replace(fitted, text=columns.text, model=model if named else None)

    @classmethod
    def fit_parts(
        cls, tables: Iterable[Columns], source: str, *, whole: bool = False
    ) -> TreeEncoder:
        """Fit it on a table that comes in parts, or, with `whole`, in a single one."""
        fits: dict[str, TreeColumnFit] = {}
        rows = 0
        for table in tables:
            rows += len(table)
            for name in table.names:
                if name != table.text:
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

    def transform(self, columns: Columns, *, progress: bool = False) -> Floats:
        """A table as columns of numbers, with NaN where they are missing."""
        _check_names(columns, self.names)
        parts = [each.read(columns)[:, None] for each in self.features]
        parts.append(_embedded(columns, self.text, self.model, progress=progress))
        return np.concatenate(parts, axis=1)

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
            "format": FORMAT_OF_TREES,
            "fitted_on": dict(self.fitted_on),
            "columns": list(map(_record, self.features)),
            "text": _text_record(self.text, self.model),
        }


def column_reader(
    columns: Columns, name: str, *, forest: bool, fill: str | float | None = None
) -> Callable[[Columns], Floats]:
    """How one column becomes numbers, fitted on a table; raise if it cannot."""
    if forest:
        grown = TreeColumnFit(name, whole=True)
        grown.add(columns)
        return grown.column(len(columns)).read
    fit = ColumnFit(name, name in columns.categorical, check_fill(fill), None, Sample(0))
    fit.add(columns, row_marks(0, len(columns)))
    return fit.feature(len(columns)).scaled


@dataclass
class TreeColumnFit:
    """What is known about one column after some parts of a table."""

    name: str
    whole: bool  # whether there is one table
    kind: str | None = None  # once a cell tells
    texts: set[str] | None = field(default_factory=set)  # None once there are too many
    refused: InputError | None = None  # why it does not hold numbers

    def add(self, columns: Columns) -> None:
        """Take in the column of one more part."""
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
        """How a column of `rows` rows becomes numbers; text that is not a number is a category."""
        if self.kind == "categorical" or self.refused is not None:
            texts = tuple(sorted(self.texts or ()))
            many = self.texts is None or len(texts) > max(FEW, MOST * rows)
            if self.refused is not None and many:
                raise self.refused
            return TreeColumn(self.name, "categorical", texts)
        return TreeColumn(self.name, self.kind or "number")


def _embedded(columns: Columns, name: str | None, model: str | None, *, progress: bool) -> Floats:
    """The column of text as the model gives it; no columns if there is none."""
    if name is None:
        return np.empty((columns.features.num_rows, 0))
    _check_names(columns, [name])
    texts = columns.features.column(name).to_pylist()
    found = check_texts(f"{columns.source} column {name!r}", texts)
    return embed_texts(found, model=model or TEXT_MODEL, progress=progress).astype(np.float64)


def _text_record(name: str | None, model: str | None) -> dict[str, Any] | None:
    return None if name is None else {"column": name, "model": model}


def _check_names(columns: Columns, wanted: Iterable[str]) -> None:
    for name in wanted:
        if name not in columns.names:
            raise missing(columns.source, "column", name, columns.names)


def _record(column: Feature | TreeColumn, *without: str) -> dict[str, Any]:
    """What a column is, as plain lists, numbers and strings."""
    return {
        key: list(entry) if isinstance(entry, tuple) else entry
        for key, entry in vars(column).items()
        if key not in without
    }
