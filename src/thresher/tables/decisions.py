"""Decisions: what a person decided about rows, as the report saves it in decisions.csv.

Each line is one row of the table, and carries the digest of the table that was reviewed:

    row, id, label    the row number from 0, its id if there are ids, its label at that time
    decision          relabel, correct (numbers), drop, keep or skip
    new_label         for relabel and correct
    input_digest      the SHA-256 of the table's files
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.errors import InputError
from thresher.inputs.labels import is_missing
from thresher.tables.changes import check_rows, column_meant, is_number, row_numbers
from thresher.tables.reader import Table, input_digest

DECISIONS = ("relabel", "correct", "drop", "keep", "skip")
COLUMNS = ("row", "label", "decision", "new_label", "input_digest")


@dataclass(frozen=True, eq=False)
class Decisions:
    """What was decided about some rows of a table."""

    drop: list[int]  # the rows to leave out
    relabel: dict[int, Any]  # new labels by row number, new numbers among them
    counts: dict[str, int]  # how many rows got each decision
    corrected: set[int] = field(default_factory=set)  # the rows that get a new number


def read_decisions(file: Table, table: Table, labels: Sequence[Any], kind: Any = None) -> Decisions:
    """The decisions in a file, if they are about this table as it is now.

    `labels` are those of the table, and `kind` is the type of their column; None is for text.
    """
    _check_columns(file)
    columns = {name: column_meant(file, name) for name in COLUMNS}
    _check_digests(file, table, columns["input_digest"])
    rows = row_numbers(file, table, columns["row"], proven=True)
    check_rows(file, table, rows, columns["label"], labels, kind)
    words = [str(word) for word in columns["decision"]]
    strange = [word for word in words if word not in DECISIONS]
    if strange:
        raise InputError(
            f"{file.name} has a decision {strange[0]!r}: there are {', '.join(DECISIONS)}"
        )
    decided = list(zip(rows, words, columns["new_label"], strict=True))
    relabel = {row: new for row, word, new in decided if word in {"relabel", "correct"}}
    empty = [row for row, new in relabel.items() if is_missing(new)]
    if empty:
        raise InputError(f"{file.name} relabels row {empty[0]} but has no new_label for it")
    odd = [row for row, word, new in decided if word == "correct" and not is_number(new)]
    if odd:
        raise InputError(
            f"{file.name} corrects row {odd[0]} to {relabel[odd[0]]!r}, which is not a number"
        )
    drop = sorted(row for row, word, _ in decided if word == "drop")
    counts = {word: Counter(words)[word] for word in DECISIONS}
    unused = "correct" if not counts["correct"] else "" if counts["relabel"] else "relabel"
    counts.pop(unused, None)
    corrected = {row for row, word, _ in decided if word == "correct"}
    return Decisions(drop, relabel, counts, corrected)


def _check_columns(file: Table) -> None:
    lacking = [name for name in COLUMNS if name not in file.data.column_names]
    if lacking:
        raise InputError(
            f"{file.name} has no column {lacking[0]!r}: decisions are saved by the report of "
            "thresher value"
        )


def _check_digests(file: Table, table: Table, digests: list[Any]) -> None:
    """Refuse decisions about another table, and those that do not say about which."""
    if any(is_missing(digest) for digest in digests):
        raise InputError(
            f"{file.name} does not say which table it is about: save decisions from a report "
            "that thresher value made"
        )
    if {*map(str, digests)} != {input_digest(table.files)}:
        raise InputError(
            f"{file.name} is about another table, or {table.name} has changed since: value it "
            "again, and review the new report"
        )
