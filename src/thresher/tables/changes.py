"""Which rows to drop, to relabel or to correct: as suggested, decided or given outright.

Outright is `rows:3,17,20-29`, `ids:a7,b9`, or `@file` with one row number or id a line; a new label
follows an equals sign, `rows:3=cat`, and so does a new number, `rows:3=17.5`. Anything else is a
word that findings have in their column `suggestion`.

Decisions are what a person decided about rows, as the report saves it in decisions.csv. Each line
is one row of the table, and carries the digest of the table that was reviewed:

    row, id, label    the row number from 0, its id if there are ids, its label at that time
    decision          relabel, correct (numbers), drop, keep or skip
    new_label         for relabel and correct
    input_digest      the SHA-256 of the table's files
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.errors import InputError, option
from thresher.files import reading
from thresher.findings.advice import SUGGESTIONS
from thresher.findings.target_advice import TARGET_SUGGESTIONS
from thresher.inputs.checks import rows_text
from thresher.inputs.labels import is_missing
from thresher.inputs.spelling import distinct_name, nearest, whole_number
from thresher.tables.columns import entries_of
from thresher.tables.formulas import meant
from thresher.tables.new_labels import fitting_label
from thresher.tables.reader import Table, input_digest, record_of

SPAN = re.compile(r"([0-9]+)(?:-([0-9]+))?")
OUTRIGHT = ("rows:", "ids:", "@")
WORDS = tuple(dict.fromkeys((*SUGGESTIONS, *TARGET_SUGGESTIONS)))
DECISIONS = ("relabel", "correct", "drop", "keep", "skip")
COLUMNS = ("row", "label", "decision", "new_label", "input_digest")
BEST = {"best_target": "correct", "best_label": "relabel"}  # the column of what would be best


@dataclass(frozen=True, eq=False)
class Suggested:
    """What findings suggest for rows of a table: a word, and the label that would be best."""

    name: str
    rows: tuple[int, ...]
    words: tuple[str, ...]
    best: tuple[Any, ...]
    column: str = "best_label"

    def chosen(self, words: Sequence[str]) -> dict[int, Any]:
        """The rows with one of these suggestions, each with the label that would be best."""
        triples = zip(self.rows, self.words, self.best, strict=True)
        return {row: best for row, word, best in triples if word in words}


def rows_to_drop(
    text: str, count: int, ids: Sequence[Hashable] | None = None,
    suggested: Suggested | None = None,
) -> list[int]:  # fmt: skip
    """The rows that `text` means, of a table of `count` rows.

    Examples
    --------
    >>> rows_to_drop("rows:3,5-7", 10)
    [3, 5, 6, 7]
    >>> rows_to_drop("ids:b", 2, ids=["a", "b"])
    [1]
    """
    if text.startswith(OUTRIGHT):
        return sorted({row for rows, _ in _outright("drop", text, count, ids) for row in rows})
    return sorted(_need(suggested, "drop", text).chosen(_words("drop", text)))


def rows_to_relabel(
    text: str, count: int, ids: Sequence[Hashable] | None = None,
    suggested: Suggested | None = None, verb: str = "relabel",
) -> dict[int, Any]:  # fmt: skip
    """The new label of each row that `text` means; with `verb` "correct", the new number.

    Examples
    --------
    >>> rows_to_relabel("rows:3=cat,4=dog", 10)
    {3: 'cat', 4: 'dog'}
    """
    if not text.startswith(OUTRIGHT):
        found = _need(suggested, verb, text)
        if BEST[found.column] != verb:
            raise InputError(
                f"{found.name} has a {found.column}: use {option(BEST[found.column])} in place of "
                f"{option(verb)}"
            )
        chosen = found.chosen(_words(verb, text))
        empty = sorted(row for row, best in chosen.items() if is_missing(best))
        if empty:
            raise InputError(f"{found.name} has no {found.column} for {rows_text(empty)}")
        return chosen
    labels: dict[int, Any] = {}
    for rows, label in _outright(verb, text, count, ids):
        for row in rows:
            if labels.setdefault(row, label) != label:
                both = f"{labels[row]}, {label}"
                raise InputError(f"{option(verb)} has two labels for row {row}: {both}")
    return labels


def read_suggestions(
    findings: Table, table: Table, labels: Sequence[Any], ids: Sequence[Hashable] | None,
    kind: Any = None,
) -> Suggested:  # fmt: skip
    """What findings suggest for the rows of a table, if they were made from it.

    A digest of the input in the findings must be that of the table's files. Findings are matched by
    ids if both have them, else by row number; without a digest there must be one for each row. The
    labels must agree once they are read as `kind`, the type of the table's column of labels.
    """
    best = next((name for name in BEST if name in findings.data.column_names), "best_label")
    columns = {name: column_meant(findings, name) for name in ("row", "label", "suggestion", best)}
    proven = _check_digest(findings, table)
    if ids is not None and "id" in findings.data.column_names:
        rows = _rows_of_ids(findings, ids)
    else:
        rows = row_numbers(findings, table, columns["row"], proven=proven)
    check_rows(findings, table, rows, columns["label"], labels, kind)
    words = tuple(map(str, columns["suggestion"]))
    strange = [word for word in words if word not in WORDS]
    if strange:
        raise InputError(f"{findings.name} has a suggestion {strange[0]!r}: {_known_words()}")
    found = columns[best]
    if best == "best_target" and all(whole_number(label) is not None for label in labels):
        found = [each if is_missing(each) else round(float(each)) for each in found]
    return Suggested(findings.name, rows, words, tuple(found), best)


def check_rows(
    findings: Table, table: Table, rows: tuple[int, ...], found: list[Any], labels: Sequence[Any],
    kind: Any = None,
) -> None:  # fmt: skip
    """Refuse rows that are named twice, or have other labels than the table."""
    row, times = Counter(rows).most_common(1)[0]
    if times > 1:
        raise InputError(f"{findings.name} has row {row} more than once")
    pairs = zip(rows, _read_as(kind, found), strict=True)
    unlike = sorted(
        row for row, label in pairs if not (is_missing(label) or _alike(label, labels[row]))
    )
    if unlike:
        raise InputError(
            f"{findings.name} has other labels than {table.name} in {rows_text(unlike)}: it was "
            f"made from other data, or by another {option('label')}"
        )


def column_meant(findings: Table, name: str) -> list[Any]:
    """The entries of a column; in a file of text, as they were before it was made harmless."""
    entries = entries_of(findings, name, "values")
    return [meant(entry) for entry in entries] if findings.is_text else entries


def _check_digest(findings: Table, table: Table) -> bool:
    """Whether a digest proves that the findings are of this table; a wrong digest is refused."""
    digest = record_of(findings).get("input_digest")
    if digest is None:
        return False
    if digest != input_digest(table.files):
        raise InputError(
            f"{findings.name} was not made from the current {table.name}: run thresher value on "
            f"{table.name}, and use its values"
        )
    return True


def _rows_of_ids(findings: Table, ids: Sequence[Hashable]) -> tuple[int, ...]:
    places = _places(ids) or {}
    found = [str(entry) for entry in column_meant(findings, "id")]
    strange = [entry for entry in found if entry not in places]
    if strange:
        raise InputError(
            f"{findings.name} has ids that are not in the table, such as {strange[0]!r}"
        )
    return tuple(places[entry] for entry in found)


def row_numbers(
    findings: Table, table: Table, numbers: list[Any], *, proven: bool
) -> tuple[int, ...]:
    """The rows of the table that the findings number; numbers of no row are refused."""
    if not proven and len(numbers) != len(table):
        raise InputError(
            f"{findings.name} has {len(numbers)} rows but {table.name} has {len(table)}: match "
            f"them with {option('id')}, or use findings in a .parquet file, which know their input"
        )
    rows = []
    for number in numbers:
        if not re.fullmatch("[0-9]+", str(number)) or int(number) >= len(table):
            raise InputError(
                f"{findings.name} has a row {number!r}: {table.name} has rows 0 to {len(table) - 1}"
            )
        rows.append(int(number))
    return tuple(rows)


def _read_as(kind: Any, found: list[Any]) -> list[Any]:
    """Labels of findings as entries of a type, where they can be; None means text."""
    fitted = {label: label for label in found}
    for label in fitted if kind is not None else ():
        with contextlib.suppress(InputError):
            fitted[label] = fitting_label(label, kind, "label")
    return [fitted[label] for label in found]


def _alike(one: Any, other: Any) -> bool:
    """Whether two labels are the same, even if one is written as text and the other as a number."""
    if one == other or str(one) == str(other):
        return True
    try:
        return float(one) == float(other)
    except (TypeError, ValueError):
        return False


def _need(suggested: Suggested | None, verb: str, text: str) -> Suggested:
    if suggested is None:
        raise InputError(
            f"{option(verb, text)} uses the suggestions of thresher value: name its file with "
            f"{option('values')}, or name rows, such as {option(verb, 'rows:3,17')}"
        )
    return suggested


def _words(verb: str, text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in WORDS:
            near = nearest(word, WORDS)
            hint = f"did you mean {near[0]}? " if near else ""
            raise InputError(f"{option(verb)} has no suggestion {word!r}: {hint}{_known_words()}")
    if not words:
        raise InputError(f"{option(verb)} is empty: {_known_words()}")
    return words


def _known_words() -> str:
    return f"there are {', '.join(WORDS)}; or name rows, such as rows:3,17 or ids:a7"


def _outright(
    verb: str, text: str, count: int, ids: Sequence[Hashable] | None
) -> Iterator[tuple[Sequence[int], str]]:
    """What is given outright, entry by entry: some rows, and their new label if they get one."""
    kind, _, rest = text.partition(":")
    entries = rest.split(",")
    if text.startswith("@"):
        kind = "rows" if ids is None else "ids"
        with reading(text[1:], "list of rows") as path:
            entries = path.read_text(encoding="utf-8-sig").splitlines()
    found = [entry.strip() for entry in entries if entry.strip()]
    if not found:
        raise InputError(f"{option(verb, text)} names no rows")
    places = _places(ids)
    for entry in found:
        key, label = entry, ""
        if verb != "drop":
            key, _, label = (part.strip() for part in entry.partition("="))
            wanted, example = ("label", "cat") if verb == "relabel" else ("number", "17.5")
            if not label or (verb == "correct" and not is_number(label)):
                raise InputError(
                    f"{option(verb)} needs a new {wanted} after {entry!r}, such as {key}={example}"
                )
        rows = [_row_of_id(verb, key, places)] if kind == "ids" else _span(verb, key, count)
        yield rows, label


def is_number(text: object) -> bool:
    """Whether a new target is a finite number.

    Examples
    --------
    >>> is_number("17.5"), is_number("cat"), is_number("inf")
    (True, False, False)
    """
    try:
        return math.isfinite(float(str(text)))
    except ValueError:
        return False


def _span(verb: str, entry: str, count: int) -> Sequence[int]:
    span = SPAN.fullmatch(entry)
    if not span:
        raise InputError(f"{option(verb)} must name rows as in rows:3,17,20-29, got {entry!r}")
    first, last = int(span[1]), int(span[2] or span[1])
    if first > last:
        raise InputError(f"{option(verb)} names rows {entry}, but {entry} runs backwards")
    if last >= count:
        raise InputError(f"{option(verb)} names rows {entry}, but there are rows 0 to {count - 1}")
    return range(first, last + 1)


def _places(ids: Sequence[Hashable] | None) -> dict[str, int] | None:
    return None if ids is None else {str(entry): row for row, entry in enumerate(ids)}


def _row_of_id(verb: str, entry: str, places: Mapping[str, int] | None) -> int:
    if places is None:
        raise InputError(f"{option(verb)} names ids: name their column with {option('id')}")
    if entry not in places:
        near = nearest(entry, places)
        hint = f": did you mean {distinct_name(near[0], entry)}?" if near else ""
        raise InputError(f"{option(verb)} names the id {entry!r}, which no row has{hint}")
    return places[entry]


@dataclass(frozen=True, eq=False)
class Decisions:
    """What was decided about some rows of a table."""

    drop: list[int]  # the rows to leave out
    relabel: dict[int, Any]  # new labels by row number, new numbers among them
    counts: dict[str, int]  # how many rows got each decision
    corrected: set[int] = field(default_factory=set)  # the rows that get a new number


def read_decisions(
    file: Table, table: Table, labels: Sequence[Any], kind: Any = None,
    ids: Sequence[Hashable] | None = None,
) -> Decisions:  # fmt: skip
    """The decisions in a file, if they are about this table as it is now.

    `labels` and `ids` are those of the table, and `kind` is the type of the column of labels; None
    means text.
    """
    _check_columns(file)
    columns = {name: column_meant(file, name) for name in COLUMNS}
    _check_digests(file, table, columns["input_digest"])
    rows = row_numbers(file, table, columns["row"], proven=True)
    check_rows(file, table, rows, columns["label"], labels, kind)
    if ids is not None and "id" in file.data.column_names:
        _check_ids(file, table, rows, ids)
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


def _check_ids(file: Table, table: Table, rows: Sequence[int], ids: Sequence[Hashable]) -> None:
    """Refuse rows that have other ids than the table."""
    pairs = zip(rows, column_meant(file, "id"), strict=True)
    unlike = sorted(row for row, id_ in pairs if not (is_missing(id_) or _alike(id_, ids[row])))
    if unlike:
        raise InputError(
            f"{file.name} has other ids than {table.name} in {rows_text(unlike)}: name the column "
            f"of ids that was reviewed with {option('id')}, or leave it out"
        )


def _check_columns(file: Table) -> None:
    lacking = [name for name in COLUMNS if name not in file.data.column_names]
    if lacking:
        raise InputError(
            f"{file.name} has no column {lacking[0]!r}: decisions are saved by the report of "
            "thresher value"
        )


def _check_digests(file: Table, table: Table, digests: list[Any]) -> None:
    """Refuse decisions about another table, and those that do not name their table."""
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
