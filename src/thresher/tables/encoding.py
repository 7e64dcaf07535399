"""Features as rows of numbers: fitted on one table, applied to another, told in a record."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.checks import rows_text
from thresher.embed import TEXT_MODEL, check_texts, embed_texts
from thresher.errors import InputError
from thresher.tables.cells import categories, distinct_categories, numbers, says_truth
from thresher.tables.columns import Columns
from thresher.tables.finding import missing
from thresher.tables.moments import Moments, moments_of_shares
from thresher.threads import cut, in_order, run

FORMAT = "thresher-encoder-1"
PARALLEL = 1 << 15  # rows beyond which columns are read by several threads
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Feature:
    """How one column becomes numbers.

    Parameters
    ----------
    name, kind
        The column; "number", "truth" (text that says true or false) or "categorical".
    fill
        The number that stands for missing ones; None where they are refused.
    categories
        The categories, each a column of its own; None stands for missing entries.
    means, deviations
        Of the columns made of it, over the rows it was fitted on; empty where nothing is scaled.
    """

    name: str
    kind: str
    fill: float | None = None
    categories: tuple[str | None, ...] = ()
    means: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in {"number", "truth", "categorical"}:
            raise InputError(f"column {self.name!r} is of an unknown kind, {self.kind!r}")
        if len(self.means) != len(self.deviations) or len(self.means) not in {0, self.width}:
            raise InputError(f"column {self.name!r} has another number of means than columns")

    @property
    def width(self) -> int:
        """How many columns of numbers it becomes."""
        return len(self.categories) if self.kind == "categorical" else 1

    def raw(self, columns: Columns) -> Numbers:
        """The columns of numbers, not scaled."""
        if self.kind == "categorical":
            codes = self.codes(columns)
            out = np.zeros((len(columns), self.width))
            known = np.flatnonzero(codes >= 0)
            out[known, codes[known]] = 1.0
            return out
        found = numbers(columns, self.name, truth=self.kind == "truth")
        empty = np.flatnonzero(np.isnan(found))
        if not len(empty):
            return found[:, None]
        if self.fill is None:
            fill = "median (or zero, or a number)" if len(empty) < len(found) else "zero"
            raise InputError(
                f"{columns.source} column {self.name!r} has missing numbers in "
                f"{rows_text(columns.rows[empty])}: fill them by --fill {fill}, leave it out by "
                f"--ignore {shlex.quote(self.name)}, or drop those rows"
            )
        return np.nan_to_num(found, nan=self.fill)[:, None]

    def codes(self, columns: Columns) -> NDArray[np.int64]:
        """The number of the category of each row, -1 where it was not seen before."""
        known = pa.array(self.categories, pa.string())
        found = pc.fill_null(pc.index_in(categories(columns, self.name), value_set=known), -1)
        return np.asarray(found.to_numpy(), np.int64)

    def scaled(self, found: Numbers) -> Numbers:
        """What `raw` gave, scaled."""
        if not self.means:
            return found
        spread = np.array(self.deviations)
        centered = found - np.array(self.means)
        return np.divide(centered, spread, out=np.zeros_like(found), where=spread > 0)


@dataclass(frozen=True)
class Encoder:
    """How features become rows of numbers.

    Numbers, and one column of zeros and ones for each category, come in the order of the columns of
    the table; the embedding of a column of text comes last, as the model gives it.

    Examples
    --------
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
        model: str = TEXT_MODEL,
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
            Bring each column of numbers, but not an embedding, to mean 0 and deviation 1 over this
            table; a column that is the same in all rows becomes 0.
        model
            The model that embeds the column of text.

        Raises
        ------
        InputError
            If cells are no numbers, or missing; the message names the column, the first such rows
            and the ways out.
        """
        return _fitted(columns, fill, model, standardize=standardize)[0]

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

    def transform(self, columns: Columns, *, progress: bool = False) -> Numbers:
        """A table as rows of numbers; a category that was not seen before is all zeros."""
        for name in (*(each.name for each in self.features), self.text):
            if name is not None and name not in columns.names:
                raise missing(columns.source, "column", name, columns.names)
        return self.join(columns, [each.raw(columns) for each in self.features], progress=progress)

    def join(self, columns: Columns, raw: list[Numbers], *, progress: bool = False) -> Numbers:
        """What each feature became, side by side, and the embedding."""
        scaled = (each.scaled(found) for each, found in zip(self.features, raw, strict=True))
        parts = [np.empty((len(columns), 0)), *scaled]
        if self.text is not None:
            texts = columns.features.column(self.text).to_pylist()
            found = check_texts(f"{columns.source} column {self.text!r}", texts)
            rows = embed_texts(found, model=self.model or TEXT_MODEL, progress=progress)
            parts.append(rows.astype(np.float64))
        out = np.empty((len(columns), sum(part.shape[1] for part in parts)))
        pieces = cut(0, len(out), PARALLEL)
        run(
            lambda lo, hi: np.concatenate([part[lo:hi] for part in parts], axis=1, out=out[lo:hi]),
            pieces, parallel=len(pieces) > 1,
        )  # fmt: skip
        return out

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
        return {
            "format": FORMAT,
            "fitted_on": dict(self.fitted_on),
            "columns": [
                {key: list(x) if isinstance(x, tuple) else x for key, x in vars(each).items()}
                for each in self.features
            ],
            "text": None if self.text is None else {"column": self.text, "model": self.model},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Encoder:
        """The encoder that `describe` described."""
        if not isinstance(record, Mapping) or record.get("format") != FORMAT:
            raise InputError(f"this is no record of an encoder: its format is not {FORMAT}")
        try:
            features = tuple(
                Feature(
                    str(each["name"]),
                    str(each["kind"]),
                    None if each["fill"] is None else float(each["fill"]),
                    tuple(None if entry is None else str(entry) for entry in each["categories"]),
                    tuple(map(float, each["means"])),
                    tuple(map(float, each["deviations"])),
                )
                for each in record["columns"]
            )
            text = record["text"] or {"column": None, "model": None}
            return cls(features, text["column"], text["model"], dict(record["fitted_on"]))
        except (InputError, LookupError, TypeError, ValueError) as wrong:
            raise InputError(f"this is no record of an encoder: {wrong}") from None


def encode(
    points: Columns, validation: Columns, *, fill: str | float | None = None,
    standardize: bool = False, model: str = TEXT_MODEL, progress: bool = False,
) -> tuple[Numbers, Numbers, Encoder]:  # fmt: skip
    """Points and validation set as rows of numbers, and the encoder, fitted on the points."""
    encoder, raw = _fitted(points, fill, model, standardize=standardize)
    X_val = encoder.transform(validation, progress=progress)
    return encoder.join(points, raw, progress=progress), X_val, encoder


def check_fill(fill: object) -> str | float | None:
    """`fill`, if it is None, "median", "zero" or a finite number, as a number where it is one."""
    if fill is None or fill == "median":
        return fill
    if fill == "zero":
        return 0.0
    try:
        number = math.nan if isinstance(fill, bool) else float(fill)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"--fill must be median, zero or a number, got {fill!r}")
    return number


def _fitted(
    columns: Columns, fill: object, model: str, *, standardize: bool
) -> tuple[Encoder, list[Numbers]]:
    """An encoder fitted on a table, and what each feature of it becomes, not scaled."""
    wanted = check_fill(fill)
    names = [(name,) for name in columns.names if name != columns.text]
    features, raw = [], []
    for feature, block in in_order(
        lambda name: _fit(columns, name, wanted, standardize=standardize), names,
        parallel=len(columns) > PARALLEL,
    ):  # fmt: skip
        features.append(feature)
        raw.append(block)
    about = {"source": columns.source, "rows": len(columns), "fill": fill}
    about |= {"standardize": standardize}
    text = columns.text
    return Encoder(tuple(features), text, None if text is None else model, about), raw


def _fit(
    columns: Columns, name: str, fill: str | float | None, *, standardize: bool
) -> tuple[Feature, Numbers]:
    if name in columns.categorical:
        found = Feature(name, "categorical", categories=distinct_categories(columns, name))
    else:
        truth = says_truth(columns, name)
        number = _median(columns, name, truth=truth) if isinstance(fill, str) else fill
        found = Feature(name, "truth" if truth else "number", number)
    block = found.raw(columns)  # refuses what cannot be used, now
    if not standardize:
        return found, block
    if name in columns.categorical:
        times = np.bincount(found.codes(columns), minlength=found.width).tolist()
        means, spread = moments_of_shares(times, len(columns))
    else:
        moments = Moments()
        moments.add(block[:, 0])
        means, spread = moments.ends()
    return dataclasses.replace(found, means=means, deviations=spread), block


def _median(columns: Columns, name: str, *, truth: bool) -> float:
    found = numbers(columns, name, truth=truth)
    if np.isnan(found).all():
        raise InputError(
            f"{columns.source} column {name!r} has no numbers, and so no median: leave it out by "
            f"--ignore {shlex.quote(name)}"
        )
    return float(np.nanmedian(found))
