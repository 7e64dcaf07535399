"""A page of a few tables about owners: what they are worth, or what they are paid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thresher.files import write_text
from thresher.owner_valuation import OwnerValuation
from thresher.report.page import check_target, render_page
from thresher.report.phrases import brief, count_of, short

MOST_ROWS = 1000
NUMBER = re.compile(r"(-?[\d,.]+(e[+-]?\d+)?%?)?")


@dataclass(frozen=True)
class Table:
    """A table of a page; what is left out of a long one is said in its note."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def numbers(self) -> list[bool]:
        """Which columns hold numbers, and are aligned to the right.

        Examples
        --------
        >>> Table("Pay", ("owner", "paid"), (("ann", "1,204.50"), ("bob", ""))).numbers()
        [False, True]
        """
        return [all(map(NUMBER.fullmatch, cells)) for cells in zip(*self.rows, strict=True)]

    @classmethod
    def of(cls, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
        """The same table with at most a thousand rows."""
        left = len(rows) - MOST_ROWS
        note = f"{count_of(left, 'more row')} in the table that was written." if left > 0 else ""
        return cls(title, columns, tuple(rows[:MOST_ROWS]), note)


@dataclass(frozen=True)
class StatementPage:
    """What a page shows: a sentence, cautions, tables, and the record for programs."""

    kicker: str
    title: str
    lead: str
    tables: tuple[Table, ...]
    cautions: tuple[str, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)

    def render(self) -> str:
        """One HTML document that needs nothing else."""
        return render_page("statement.html.jinja", page=self)

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write it to a file, whole or not at all."""
        check_target(path, force=force)
        write_text(path, self.render(), replace=force)


def owner_page(valuation: OwnerValuation) -> StatementPage:
    """The page of the values of owners.

    Examples
    --------
    >>> import numpy as np
    >>> found = OwnerValuation(np.array([0.5, 0.25]), "example", {}, 1.25, 0.5, ("ann", "bob"))
    >>> "2 owners raise utility from 0.5 to 1.25" in owner_page(found).render()
    True
    """
    pairs = sorted(valuation.by_owner().items(), key=lambda entry: -entry[1])
    total = sum(max(value, 0.0) for _, value in pairs) or 1.0
    rows = [
        (brief(owner), short(value), f"{100 * max(value, 0.0) / total:.2f}%")
        for owner, value in pairs
    ]
    lead = (
        f"{count_of(len(pairs), 'owner')} raise utility from {short(valuation.utility_none)} to "
        f"{short(valuation.utility_all)}. The players of the game are the owners: each is worth "
        "what it adds to coalitions of the others, with all of its points."
    )
    about = {"method": valuation.method, "params": dict(valuation.params)}
    columns = "owner", "value", "share of the positive values"
    table = Table.of("Owners by value", columns, rows)
    return StatementPage(valuation.method, "What owners are worth", lead, (table,), record=about)
