"""Features as rows of numbers: fitted on one table, applied to another, told in a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.embed import TEXT_MODEL, check_texts, embed_texts
from thresher.errors import InputError, option
from thresher.inputs.checks import check_choice
from thresher.inputs.spelling import missing
from thresher.tables.columns import Columns
from thresher.tables.feature import ColumnFit, Feature, check_fill, check_streaming_fill
from thresher.tables.scaling import SCALINGS, Sample, row_marks, rows_kept

FORMAT = "thresher-encoder-1"
FORMAT_OF_RANKS = "thresher-encoder-2"  # earlier versions would take ranks for numbers


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
            Bring each column of numbers, but not an embedding, to one scale by what is known of it
            in this table; a column that is the same in all rows becomes 0.
        scaling
            How: "robust" brings it to mean 0 and deviation 1 after leaving out the 0.5 % smallest
            and the 0.5 % largest numbers (no rows are dropped, and if all others are equal, nothing
            is left out); "ranks" replaces numbers by their ranks first; "plain" uses all numbers as
            they are. The columns of a category weigh as much as one number together, but for
            "plain", where each of them does. In tables of many rows, quantiles are those of a fixed
            sample of rows: at least 4,096, and as many as make two million numbers in all columns.
        model
            The model that embeds the column of text.

        Raises
        ------
        InputError
            If cells are no numbers, or missing; the message names the column, the first such rows
            and the ways out.
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
        """Fit it on a table that comes in small ones: the same encoder, to the last bit.

        Parameters
        ----------
        tables
            All of the table; without `whole`, the first one is enough.
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
        for name in (*(each.name for each in self.features), self.text):
            if name is not None and name not in columns.names:
                raise missing(columns.source, "column", name, columns.names)
        parts = [np.empty((len(columns), 0)), *(each.scaled(columns) for each in self.features)]
        if self.text is not None:
            texts = columns.features.column(self.text).to_pylist()
            found = check_texts(f"{columns.source} column {self.text!r}", texts)
            rows = embed_texts(found, model=self.model or TEXT_MODEL, progress=progress)
            parts.append(rows.astype(np.float64))
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
            "columns": [
                {
                    key: list(x) if isinstance(x, tuple) else x
                    for key, x in vars(each).items()
                    if ranks or key != "knots"
                }
                for each in self.features
            ],
            "text": None if self.text is None else {"column": self.text, "model": self.model},
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
