"""A page of a few tables about owners, before it is drawn: what they are worth, or are paid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.report.phrases import count_of

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
