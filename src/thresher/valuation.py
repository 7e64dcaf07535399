"""The result: one value per point, in input order, with what is needed to explain and repeat it."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import ExtraError, InputError, plain_text, require
from thresher.files import check_sealed, portable_column, read_table, reading, sealed, write_table
from thresher.hooks import write_page
from thresher.inputs.checks import check_choice, check_count, check_number, check_ordered

OTHER_KINDS = (".csv", ".tsv", ".json", ".xlsx", ".npz", ".html")  # names of what is not Parquet


@dataclass(frozen=True, eq=False)
class Valuation:
    """What each point is worth.

    Parameters
    ----------
    values
        One number per point, in input order. Sums over the validation set, unless `params["mean"]`.
    method
        The name of the method, such as "tknn-shapley".
    params
        The settings that produced it: plain numbers, strings and lists, so that they can be stored.
    utility_all, utility_none
        The utility of all points and of none. Shapley values add up to the difference.
    owners
        The owner of each point, if owners were given.
    standard_errors
        The standard error of each value if coalitions were sampled; otherwise None.
    ids
        The id of each point, if points have ids.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> valuation = th.Valuation(np.array([0.5, -0.25, 0.0]), "example", {}, 0.75, 0.5)
    >>> valuation
    Valuation(example, 3 points, sum=0.25)
    >>> valuation.suspects(1).tolist()
    [1]
    """

    values: Floats
    method: str
    params: Mapping[str, Any]
    utility_all: float
    utility_none: float
    owners: tuple[Hashable, ...] | None = None
    standard_errors: Floats | None = None
    ids: tuple[Hashable, ...] | None = None
    file_format: ClassVar[str] = "thresher.valuation/1"
    players: ClassVar[str] = "points"

    def __post_init__(self) -> None:
        values = _frozen("values", self.values)
        for name, entries in (("owners", self.owners), ("ids", self.ids)):
            if entries is not None:
                check_ordered(name, entries)
                if len(entries) != len(values):
                    raise InputError(f"there are {len(entries)} {name} for {len(values)} values")
                object.__setattr__(self, name, tuple(entries))
        object.__setattr__(self, "values", values)
        for name in ("utility_all", "utility_none"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.standard_errors is not None:
            errors = _frozen("standard_errors", self.standard_errors)
            if len(errors) != len(values):
                raise InputError(f"there are {len(errors)} errors for {len(values)} values")
            object.__setattr__(self, "standard_errors", errors)
        object.__setattr__(self, "params", MappingProxyType(_plain(dict(self.params))))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return plain_text(
            f"{type(self).__name__}({self.method}, {len(self)} {self.players}, "
            f"sum={self.values.sum():.4g})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        ends = (self.utility_all, self.utility_none), (other.utility_all, other.utility_none)
        return (
            np.array_equal(self.values, other.values, equal_nan=True)
            and _same_errors(self.standard_errors, other.standard_errors)
            and (self.method, dict(self.params), self.owners, self.ids)
            == (other.method, dict(other.params), other.owners, other.ids)
            and all(x == y or (math.isnan(x) and math.isnan(y)) for x, y in zip(*ends, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        ends = self.utility_all, self.utility_none
        rest = self.owners, self.standard_errors, self.ids
        return type(self), (self.values, self.method, dict(self.params), *ends, *rest)

    def efficiency_gap(self) -> float:
        """Sum of the values minus the gain in utility: rounding error for Shapley values.

        Other semivalues do not add up to the gain, and for them this says by how much.
        """
        return float(math.fsum(self.values) - (self.utility_all - self.utility_none))

    def suspects(self, n: float | None = None, *, fraction: float | None = None) -> Integers:
        """The rows with the lowest values, lowest first; equal values are ordered by position.

        Parameters
        ----------
        n
            How many; a float between 0 and 1 is taken as a fraction.
        fraction
            The share of all points, rounded up; instead of `n`.
        """
        if (n is None) == (fraction is None):
            raise InputError(
                f"suspects takes either n or fraction, got {'neither' if n is None else 'both'}"
            )
        if isinstance(n, float | np.floating):
            if not 0 <= n <= 1:
                raise InputError(
                    f"n must be an integer >= 0 or a share between 0 and 1, got {float(n)}"
                )
            fraction = float(n)
        if fraction is not None:
            fraction = check_number("fraction", fraction, least=0, most=1)
            rows = math.ceil(fraction * len(self) - 1e-9)  # 0.07 * 100 is 7.000000000000001
            n = max(rows, int(fraction > 0))
        count = check_count("n", n, least=0)
        return self._order[:count].copy()

    def by_owner(self) -> dict[Any, float]:
        """The value of each owner, the sum of its points' values, in order of appearance.

        This pays for points one by one. It is not the Shapley value of a game whose players are the
        owners (see `owner_shapley`). An owner who brings more points, even copies, may earn more.
        """
        if self.owners is None:
            raise InputError("this valuation has no owners: value the points with owners=")
        index = {owner: position for position, owner in enumerate(dict.fromkeys(self.owners))}
        places = np.array([index[owner] for owner in self.owners], np.int64)
        sums = np.bincount(places, weights=self.values, minlength=len(index))
        return dict(zip(index, sums.tolist(), strict=True))

    def to_frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """A data frame: row, id, value, rank (1 is the lowest value), standard_error and owner.

        Without `library` it is a pandas frame, or a polars frame if pandas is not installed.
        """
        if library is None:
            try:
                return self.to_frame("pandas")
            except ExtraError:
                library = "polars"
        name = check_choice("library", library, ("pandas", "polars"))
        module = require(name, purpose=f"a {name} frame", extra=name)
        columns = self._columns()
        for column, entries in (("owner", self.owners), ("id", self.ids)):
            if name == "polars" and len({type(entry) for entry in entries or ()}) > 1:
                columns[column] = module.Series(columns[column], dtype=module.Object)
        return module.DataFrame(columns)

    def save(
        self,
        path: str | Path,
        *,
        columns: Mapping[str, Any] | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        """Write one Parquet file, the parameters in its metadata; an existing file is replaced.

        Owners and ids must be strings or numbers, all of one type, so that they load unchanged.

        Parameters
        ----------
        path
            Where to write it.
        columns
            More columns for readers of the file, with one entry per point. Their names must differ
            from those of the file's own columns.
        record
            More about how it was made, as JSON data, stored next to the parameters, under names of
            its own.
        """
        if str(path).lower().endswith(OTHER_KINDS):
            raise InputError(f"path must end in .parquet, got {path}")
        columns, record = columns or {}, record or {}
        own = {"value", "owner", "standard_error"} | ({"id"} if self.ids is not None else set())
        _check_free("columns", columns, own)
        _check_free("record", record, {*self.about({}), "seal"})
        write_table(path, *self.stored(columns, record))

    def stored(
        self, columns: Mapping[str, Any], record: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What `save` writes: the columns, and the metadata with a digest of both."""
        about = self.about(record)
        about.pop("ids", None)
        found = {**columns, "value": self.values}
        owners = None if self.owners is None else portable_column("owner", self.owners)
        ids = None if self.ids is None else portable_column("id", self.ids)
        for name, entries in (("owner", owners), ("standard_error", self.standard_errors)):
            if entries is not None:
                found[name] = entries
            elif name in columns:
                _check_free("columns", columns, {name})
        if ids is not None:  # told apart from an `id` among the caller's columns
            found["id"] = ids
            about["ids"] = True
        return found, sealed(about, *_parts(self.values, owners, self.standard_errors, ids))

    def about(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """What `save` writes besides the values: how they were computed, as JSON data."""
        return {
            **record,
            "format": self.file_format,
            "method": self.method,
            "params": dict(self.params),
            "utility_all": self.utility_all,
            "utility_none": self.utility_none,
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load the valuation that `save` wrote, equal to the last bit."""
        with reading(path, "valuation") as file:
            columns, about = read_table(file)
            values = columns["value"].to_numpy()
            owners = tuple(columns["owner"].to_pylist()) if "owner" in columns else None
            errors = columns["standard_error"].to_numpy() if "standard_error" in columns else None
            ends = about["utility_all"], about["utility_none"]
            ids = tuple(columns["id"].to_pylist()) if about.get("ids") else None
            found = cls(values, about["method"], about["params"], *ends, owners, errors, ids)
            check_sealed(
                about, cls.file_format, *_parts(found.values, owners, found.standard_errors, ids)
            )
            return found

    def ranks(self) -> Integers:
        """The rank of each point: 1 is the lowest value; equal values are ordered by position."""
        rank = np.empty(len(self), np.int64)
        rank[self._order] = np.arange(1, len(self) + 1)
        return rank

    def percentiles(self) -> Floats:
        """For each point, the share of points with a lower value, in percent."""
        ascending, share = self.values[self._order], np.empty(len(self))
        first = np.concatenate([[True], ascending[1:] != ascending[:-1]])[: len(self)]
        first[1:] &= ~np.isnan(ascending[:-1])  # these come last, and count as equal
        below = np.maximum.accumulate(np.where(first, np.arange(len(self)), 0))
        share[self._order] = 100.0 * below / max(len(self), 1)
        return share

    @cached_property
    def _order(self) -> Integers:
        """The points from the lowest value to the highest; equal values by position."""
        order = np.argsort(self.values)  # several times as fast as a stable sort
        ascending, unknown = self.values[order], np.isnan(self.values[order])
        apart = (ascending[1:] != ascending[:-1]) & ~(unknown[1:] & unknown[:-1])
        place = np.concatenate([[0], np.cumsum(apart)])[: len(self)]  # the same for equal values
        return np.sort(place * len(self) + order) % max(len(self), 1)

    def report(
        self,
        path: str | Path,
        X: Any = None,
        y: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        ids: Any = None,
        held_out: bool = False,
        force: bool = False,
    ) -> None:
        """Write a page that shows what was found and what to do: one HTML file, for any browser.

        Parameters
        ----------
        path
            Where to write it.
        X, y, X_val, y_val
            What was valued; without them, the page shows only the values. Other rows are refused,
            unless the values cannot be computed again: those of retrained models, of leaves, of a
            fitted forest, and of precomputed distances.
        ids
            A name for each point, shown next to its row number. The default is the valuation's own
            ids.
        held_out
            True if the validation rows were split off the same table, and nobody checked their
            labels.
        force
            Replace an existing file.
        """
        data = X, y, X_val, y_val
        ids = self.ids if ids is None else ids
        write_page(self, path, *data, ids=ids, held_out=held_out, force=force)

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"row": np.arange(len(self))}
        if self.ids is not None:
            columns["id"] = list(self.ids)
        columns |= {"value": self.values, "rank": self.ranks()}
        if self.standard_errors is not None:
            columns["standard_error"] = self.standard_errors
        if self.owners is not None:
            columns["owner"] = list(self.owners)
        return columns

    def _repr_html_(self) -> str:
        """What a notebook shows: the method, its settings, and the lowest and highest values."""
        ends = [("lowest", self._order[:5]), ("highest", self._order[::-1][:5])]
        rows = "".join(
            f"<tr><th>{title}</th>"
            + "".join(f"<td>row {row}<br>{self.values[row]:.4g}</td>" for row in places)
            + "</tr>"
            for title, places in ends
        )
        settings = plain_text(", ".join(f"{key}={entry}" for key, entry in self.params.items()))
        return (
            f"<div><b>{html.escape(plain_text(self.method))}</b>: {len(self)} {self.players}, "
            f"sum {self.values.sum():.4g}, utility {self.utility_none:.4g} without and "
            f"{self.utility_all:.4g} with all of them<br><small>{html.escape(settings)}</small>"
            f"<table>{rows}</table></div>"
        )


def _check_free(what: str, names: Mapping[str, Any], own: Collection[str]) -> None:
    """Raise for names that the file itself uses."""
    for name in names:
        if name in own:
            raise InputError(
                f"{what} must not include {name!r}, a name that is reserved: use another one"
            )


def _frozen(name: str, numbers: Any) -> Floats:
    """A read-only array."""
    array = np.asarray(numbers, np.float64)
    if array.flags.writeable or array.base is not None:  # somebody else may write to it
        array = array.copy()
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got {array.ndim}")
    array.flags.writeable = False
    return array


def _parts(
    values: Floats,
    owners: Sequence[Hashable] | None,
    errors: Floats | None,
    ids: Sequence[Hashable] | None,
) -> tuple[bytes, ...]:
    """The data that a seal covers."""
    named = repr(None if owners is None else tuple(owners)).encode()
    more = () if errors is None else (errors.astype("<f8").tobytes(),)
    more = more if ids is None else (*more, repr(tuple(ids)).encode())
    return values.astype("<f8").tobytes(), named, *more


def _same_errors(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.tobytes() == other.tobytes()


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    """`params` as JSON returns them, so that a loaded valuation equals the saved one."""
    return json.loads(json.dumps(params, default=_plain_entry))


def _plain_entry(entry: Any) -> Any:
    plain = isinstance(entry, np.generic) and entry.dtype.kind not in "mM"
    return entry.item() if plain else repr(entry)
