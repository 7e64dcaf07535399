"""`Payout`: who is paid what, with everything that is needed to compute it again."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa
from pyarrow import csv

from thresher.errors import InputError, plain_text, require
from thresher.files import (
    check_free,
    check_sealed,
    portable_column,
    read_table,
    reading,
    record_path,
    sealed,
    write_table,
    write_text,
    write_whole,
)
from thresher.hooks import write_page
from thresher.inputs.checks import check_choice
from thresher.payouts.shared_rows import SharedRows, shared_table
from thresher.payouts.shares import Terms, integer_weights, money, whole_cents
from thresher.report.phrases import brief, count_of, short
from thresher.statement_page import StatementPage, Table
from thresher.tables.formulas import harmless
from thresher.version import __version__

FORMAT = "thresher.payout/1"
TIES = "largest remainder; equal remainders in order of the owners"
SUFFIXES = (".csv", ".parquet", ".json")
RULES = {
    "points": "the sum of the values of an owner's points",
    "owners": "the game among owners",
    "given": "values that were given",
}


@dataclass(frozen=True, eq=False)
class Payout:
    """A statement of what each owner is paid, in whole cents.

    Parameters
    ----------
    owners, values
        The owners, and the value that each is paid by.
    terms
        Pot, floor, minimum and cap.
    about
        Where the values come from: the rule, and the method and settings that made them.
    shared
        Rows that several owners have, for the operator; empty unless `rows` was passed to `payout`.

    Examples
    --------
    >>> import thresher as th
    >>> found = th.payout({"ann": 2.0, "bob": 1.0, "eve": -1.0}, pot=100)
    >>> found
    Payout(100 of 100 cents to 3 owners)
    >>> dict(found.cents)
    {'ann': 67, 'bob': 33, 'eve': 0}
    """

    owners: tuple[Hashable, ...]
    values: tuple[float, ...]
    terms: Terms
    about: Mapping[str, Any]
    shared: tuple[SharedRows, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "about", MappingProxyType(dict(self.about)))

    @cached_property
    def cents(self) -> Mapping[Any, int]:
        """Whole cents of each owner."""
        paid = whole_cents(integer_weights(self.values), self.terms)
        return MappingProxyType(dict(zip(self.owners, paid, strict=True)))

    @property
    def paid(self) -> int:
        """The cents that all owners get together."""
        return sum(self.cents.values())

    @property
    def unpaid(self) -> int:
        """The cents of the pot that nobody gets because of caps."""
        return self.terms.pot - self.paid

    @property
    def rule(self) -> str:
        """What owners are paid by, in words."""
        return RULES[self.about["rule"]]

    def __repr__(self) -> str:
        return f"Payout({self.paid} of {self.terms.pot} cents to {len(self.owners)} owners)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Payout):
            return NotImplemented
        return self.record() == other.record()

    __hash__ = None  # type: ignore[assignment]

    def status(self) -> tuple[str, ...]:
        """For each owner, why the pay does not follow from the value alone, or an empty string."""
        terms, found = self.terms, []
        for value, cents in zip(self.values, self.cents.values(), strict=True):
            if terms.floor and cents == terms.floor:
                found.append("floor")
            elif cents == terms.cap:
                found.append("cap")
            elif value <= 0:
                found.append("negative value" if value < 0 else "no value")
            else:
                found.append("below the minimum" if not cents and terms.minimum else "")
        return tuple(found)

    def record(self) -> dict[str, Any]:
        """Everything that is needed to compute the statement again, as a document for JSON."""
        return {
            "format": FORMAT,
            "thresher": __version__,
            "about": dict(self.about),
            "terms": asdict(self.terms),
            "rounding": TIES,
            "owners": portable_column("owner", self.owners),
            "values": list(self.values),
            "cents": list(self.cents.values()),
            "unpaid": self.unpaid,
            "shared": [asdict(each) for each in self.shared],
        }

    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A data frame: owner, value, cents and status."""
        found = self._table()
        if check_choice("library", library, ("pandas", "polars")) == "pandas":
            return found.to_pandas()
        return require("polars", purpose="a polars frame", extra="polars").from_arrow(found)

    def save(self, path: str | Path, *, force: bool = False) -> list[Path]:
        """Write the statement, completely or not at all; return the files that were written.

        A .json or .parquet file holds all of it. A .csv file has owner, value, cents and status,
        and its record is a .json file next to it. Both are complete before either gets its name.
        The record has a digest of the table, so `load` refuses one without the other.
        """
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in SUFFIXES:
            raise InputError(f"a payout must be a .csv, .parquet or .json file, got {path}")
        beside = record_path(target)
        for each in (target, beside) if kind == ".csv" else (target,):
            check_free(each, force=force)
        about, table = sealed(self.record()), self._table()
        text = json.dumps(about, indent=1) + "\n"
        if kind == ".parquet":
            columns = {name: table.column(name) for name in table.column_names}
            write_table(target, columns, about, replace=force)
            return [target]
        if kind == ".json":
            write_text(target, text, replace=force)
            return [target]

        def write(draft: Path) -> None:
            csv.write_csv(harmless(table), str(draft))
            with_digest = sealed({**self.record(), "table": _digest(draft)})
            write_text(beside, json.dumps(with_digest, indent=1) + "\n", replace=force)

        write_whole(target, write, replace=force)
        return [target, beside]

    @classmethod
    def load(cls, path: str | Path) -> Payout:
        """Load the statement that `save` wrote, and compute it again; raise if anything differs."""
        with reading(path, "payout") as file:
            if file.suffix.lower() == ".parquet":
                _, about = read_table(file)
            else:
                found = record_path(file) if file.suffix.lower() == ".csv" else file
                about = json.loads(found.read_text(encoding="utf-8"))
            check_sealed(about, FORMAT)
            if file.suffix.lower() == ".csv" and about.get("table") != _digest(file):
                raise InputError(
                    f"it does not match {found.name}: a run was interrupted, or one of the two "
                    "files was changed. Write the payout again"
                )
            terms = Terms(**about["terms"])
            shared = tuple(SharedRows(**each) for each in about["shared"])
            lists = tuple(about["owners"]), tuple(about["values"])
            payout = cls(*lists, terms, about["about"], shared)
            if list(payout.cents.values()) != about["cents"]:
                raise InputError("its cents do not follow from its values and terms")
            return payout

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Write a page that shows the statement: one HTML file, for any browser."""
        write_page(self.page(), path, force=force)

    def page(self) -> StatementPage:
        """What the page shows: payments, and rows that several owners have."""
        lines = sorted(
            zip(self.owners, self.values, self.cents.values(), self.status(), strict=True),
            key=lambda line: -line[2],
        )
        rows = [
            (brief(owner), short(value), money(cents), status)
            for owner, value, cents, status in lines
        ]
        tables = [Table.of("Payments", ("owner", "value", "paid", "note"), rows)]
        if self.shared:
            tables.append(shared_table(self.shared, self.cents))
        unpaid = ""
        if self.unpaid:
            unpaid = f" {money(self.unpaid)} stay unpaid, because every owner is paid the cap."
        lead = (
            f"{money(self.paid)} of {money(self.terms.pot)} go to "
            f"{count_of(sum(map(bool, self.cents.values())), 'owner')} of {len(self.owners)}, in "
            f"proportion to {self.rule}.{unpaid}"
        )
        return StatementPage(
            "payout", "Who is paid what", lead, tuple(tables), self.cautions(), self.record()
        )

    def cautions(self) -> tuple[str, ...]:
        """What the operator should know before paying."""
        found = []
        lost = sum(value < 0 for value in self.values)
        if lost and self.about.get("flooring") == "owner":
            who = "owner with a negative value gets", "owners with a negative value get"
            found.append(
                f"{count_of(lost, *who)} nothing. An owner with good and poor rows can gain by "
                "submitting them under two names, unless names are verified or flooring is by "
                "point."
            )
        if self.about["rule"] == "owners":
            found.append(
                "The game among owners rewards owners who split their rows among several names."
            )
        elif self.about["rule"] == "points":
            found.append("The sum of points' values rewards owners who submit copies.")
        if self.shared:
            pairs = count_of(len(self.shared), "pair of owners has", "pairs of owners have")
            found.append(f"{pairs} rows in common.")
        return tuple(found)

    def _table(self) -> pa.Table:
        return pa.table(
            {
                "owner": portable_column("owner", self.owners),
                "value": pa.array(self.values, pa.float64()),
                "cents": pa.array(list(self.cents.values()), pa.int64()),
                "status": list(self.status()),
            }
        )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def finite_values(values: Mapping[Hashable, Any]) -> tuple[float, ...]:
    """The values of owners as floats; an error names the first one that is not a number."""
    found = []
    for owner, value in values.items():
        number = math.nan
        if hasattr(value, "__float__") and not isinstance(value, bool | str | bytes):
            number = float(value)
        if not math.isfinite(number):
            shown = plain_text(f"owner {owner!r} has the value {value!r}")
            raise InputError(f"values must be finite numbers, and {shown}")
        found.append(number)
    return tuple(found)
