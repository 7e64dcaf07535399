"""Rules that turn raw tables into numbers, fitted on the public validation set of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.array_types import Floats
from thresher.errors import InputError, option
from thresher.inputs.checks import check_choice
from thresher.radius import suggest_radius
from thresher.tables.columns import choose_columns
from thresher.tables.encoder import Encoder
from thresher.tables.private_encoding import check_encoder, encode_private
from thresher.tables.reader import read_table


@dataclass(frozen=True)
class PublicEncoding:
    """An encoder, and the rows of the validation set that it was fitted on."""

    encoder: Encoder
    rows: Floats

    @property
    def record(self) -> dict[str, Any]:
        """What a price list carries."""
        return self.encoder.describe()

    def private(self, source: Path, table: Any) -> Floats:
        """Private rows as numbers; no row depends on another one."""
        if not hasattr(table, "column_names"):
            wanted = f"{option('standardize')}, {option('fill')} and {option('categorical')}"
            raise InputError(f"{wanted} need a table with named columns, got {source}")
        return encode_private(str(source), table, self.encoder)


@dataclass(frozen=True)
class Preparation:
    """How columns are to be prepared."""

    standardize: bool
    fill: str | None
    categorical: Sequence[str]

    @classmethod
    def of(
        cls, standardize: str | None, fill: str | None, categorical: Sequence[str]
    ) -> Preparation | None:
        """The preparation that these options ask for; None if they ask for nothing."""
        if standardize is not None:
            check_choice(option("standardize"), standardize, ("validation",))
        if standardize is None and fill is None and not categorical:
            return None
        return cls(standardize is not None, fill, categorical)

    def fit(
        self, validation: Path, label: str, ignore: Sequence[str], delimiter: str | None
    ) -> PublicEncoding:
        """Fit it on the public validation set, and on nothing else."""
        table = read_table(str(validation), delimiter=delimiter)
        left_out = [name for name in ignore if name in table.data.column_names]
        columns = choose_columns(table, label=label, categorical=self.categorical, ignore=left_out)
        encoder = Encoder.fit(columns, fill=self.fill, standardize=self.standardize)
        return PublicEncoding(check_encoder(encoder), encoder.transform(columns))


def read_bounds(text: str | None) -> tuple[float, float] | None:
    """Two numbers as they were typed, such as "0,100".

    Examples
    --------
    >>> read_bounds("-1.5, 4")
    (-1.5, 4.0)
    """
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        wanted = f"{option('bounds')} must be two numbers such as 0,100"
        raise InputError(f"{wanted}, got {text!r}") from None
    return low, high


def read_radius(radius: str, X_val: Any, y_val: Any, **about: Any) -> float:
    """A number as it was typed, or with "auto" what `suggest_radius` says, which uses no point.

    `about` has its other arguments.

    Examples
    --------
    >>> read_radius("0.25", None, None, metric="cosine")
    0.25
    """
    if radius == "auto":
        return float(suggest_radius(X_val, y_val, **about))
    try:
        return float(radius)
    except ValueError:
        wanted = f"{option('radius')} must be a number or auto"
        raise InputError(f"{wanted}, got {radius!r}") from None
