"""All problems of a table, each with the options that solve it.

A problem is something that the run itself would refuse. All checks are made, one after the other,
each with the fixes for the problems before it. No fix leaves out a column that has a meaning: only
those that are empty, constant, or that do nothing but name their rows.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thresher.embed import check_text_package, check_texts
from thresher.errors import ExtraError, InputError, UndecidedError, message_of
from thresher.findings.advice import JUDGED_ROWS
from thresher.inputs.coded import Coded
from thresher.inputs.labels import is_missing
from thresher.inputs.spelling import nearest
from thresher.runs.choice import ARRAYS, choose_method
from thresher.runs.hints import category_hint, label_hints
from thresher.runs.leak_hints import Leaks, leak_hints, leaks_of_table
from thresher.runs.roles import (
    find_roles,
    guess_record,
    look_at,
    name_guesses,
    no_label,
    not_naming,
    with_first_rows,
)
from thresher.runs.settings import Settings
from thresher.runs.sources import (
    check_enough,
    like_points,
    point_columns,
    role_of,
    validation_table,
)
from thresher.runs.unlabeled import unlabeled_columns
from thresher.tables.column_profile import (
    DISTINCT,
    NAMES,
    PICTURED,
    PROSE,
    REPEATED,
    Profile,
    profile,
)
from thresher.tables.columns import Columns, check_ids, check_owners, entries_of, matching
from thresher.tables.delimited import likely_delimiter
from thresher.tables.encoder import column_reader
from thresher.tables.guesses import Guess, label_candidates
from thresher.tables.packing import check_encoding, open_bytes
from thresher.tables.paths import TEXT_KINDS, find_files, kind_of
from thresher.tables.reader import Table, read_table, scan_table
from thresher.tables.text import first_line

ROLES = ("label", "id", "owner", "text", "image")  # options that name one column
NAMING = ("features", "ignore", "categorical")  # options that name several
UNKNOWN = "COLUMN"  # stands for a name that nobody can guess
MEANINGLESS = {"empty", "constant", "id"}  # kinds of columns that say nothing about labels
BYTES = 1 << 20  # of a file that its encoding is told by


@dataclass
class ProblemSearch:
    """Problems found so far, and the settings that solve them."""

    settings: Settings
    problems: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    guesses: dict[str, Guess] = field(default_factory=dict)
    known: list[Profile] = field(default_factory=list)
    rows: int = 0
    source: str = ""
    points: Columns | None = None  # once they can be read
    leaks: Leaks = field(default_factory=dict)

    def look(self) -> None:
        """Make all checks that can be made, and note fixes for what they find."""
        table = self._read()
        if table is None:
            return
        self.rows = len(table)
        self.source = f"the beginning of {table.name}" if self.settings.in_parts else table.name
        self._correct_names(table)
        self.known = look_at(self.settings, table)
        self._guess(table)
        self.points = points = self._check_roles(table)
        if points is not None:
            if not self.settings.numbers:
                self._describe_labels(table, points)
            if self.settings.validation is None and table.kind not in ARRAYS:
                with self.checking():
                    check_enough(self.settings, points)
            beside = self._check_validation(table, points)
            blank = unlabeled_columns(points, self.settings, table)
            self._check_features(points, [each for each in (blank, beside) if each is not None])

    def find_leaks(self) -> None:
        """Look for columns that repeat the label; leave them out if they plainly do."""
        if self.points is None or len(self.points) < JUDGED_ROWS:
            return
        kept = [name for name in self.points.names if name not in self.settings.ignore]
        points = dataclasses.replace(self.points, features=self.points.features.select(kept))
        self.leaks = leaks_of_table(points, self.settings)
        self.hints += leak_hints(self.leaks, self.settings, self.rows)
        plain = [name for name, leak in self.leaks.items() if leak.repeats]
        for name in plain if len(plain) < len(kept) else ():
            self.leave_out(name)

    def command(self) -> str:
        """The command that solves what was found."""
        return dataclasses.replace(self.settings, guess=()).command()

    def fix(self, **changes: Any) -> bool:
        """Change settings; return whether they go together with the others."""
        try:
            self.settings = dataclasses.replace(self.settings, **changes)
        except InputError:
            return False
        return True

    def leave_out(self, name: str) -> None:
        """Ignore a column from now on."""
        if name not in self.settings.ignore:
            self._take_out(name, ignore=(*self.settings.ignore, name))

    def _take_out(self, name: str, **changes: Any) -> None:
        """Give a column another role than that of a feature, unless it is the only one named."""
        others = not_naming(self.settings, name)
        if others["features"] or not self.settings.features:  # none would mean all columns
            self.fix(**others, **changes)

    @contextlib.contextmanager
    def checking(self) -> Iterator[list[InputError]]:
        """Note the errors inside; the list has them afterwards."""
        caught: list[InputError] = []
        try:
            yield caught
        except InputError as refused:
            self.problems.append(message_of(refused))
            caught.append(refused)

    def _read(self) -> Table | None:
        """The table; None if it cannot be read yet."""
        file, how = self.settings.file, self.settings.reading()
        try:
            if self.settings.in_parts:
                return with_first_rows(scan_table(file, **how))
            return read_table(file, **how)
        except InputError as refused:
            changes = _reading_fix(self.settings)
            if not changes:
                raise
            self.problems.append(message_of(refused))
            self.fix(**changes)
            return None

    def _correct_names(self, table: Table) -> None:
        """Take a name of no column for the nearest one that has no other role."""
        for role in (*ROLES, *NAMING):
            given = getattr(self.settings, role)
            if not given or role in self.settings.guess or (role, table.kind) == ("label", "npy"):
                continue
            names = given if isinstance(given, tuple) else (given,)
            found = tuple(self._correct(table, name, role) for name in names)
            self.fix(**{role: found if isinstance(given, tuple) else found[0]})

    def _correct(self, table: Table, name: str, role: str) -> str:
        names = table.data.column_names
        with self.checking() as wrong:
            matching(table.name, names, [name], role)
        near = nearest(name, names)[:1] if wrong else []
        taken = {getattr(self.settings, other) for other in ROLES}
        return near[0] if near and near[0] not in taken else name

    def _guess(self, table: Table) -> None:
        wanted = () if table.kind in ARRAYS else self.settings.guess
        found = find_roles(self.settings, self.known, wanted)
        self.guesses |= {**found, **name_guesses(table)}
        columns: dict[str, Any] = {role: each.column for role, each in found.items()}
        self.fix(guess=(), **columns)
        if "label" not in wanted or self.settings.label in table.data.column_names:
            return
        self.problems.append(message_of(no_label(table, self.known)))
        likely = label_candidates(self.known)
        self.fix(label=likely[-1] if likely else UNKNOWN)

    def _check_roles(self, table: Table) -> Columns | None:
        """The points, if labels, ids and owners can be used, and each feature has a name."""
        settings = self.settings
        if settings.id is not None:
            with self.checking() as wrong:
                check_ids(table, settings.id)
            if wrong and settings.id in table.data.column_names:
                self.leave_out(settings.id)
                self.fix(id=None)
        points = None
        with self.checking() as wrong:
            points = point_columns(self._without_gaps(table), table)
            guess_record(settings, {}, points.labels, f"{table.name} column {settings.label!r}")
        if wrong:
            self._fix_labels(table, wrong[0])
        return None if wrong else points

    def _without_gaps(self, table: Table) -> Settings:
        """The settings without owners of whom some are missing, to look for more problems."""
        now = self.settings
        if now.owner is None or now.players == "owners" or not _has_gaps(table, now.owner):
            return now
        with self.checking():
            check_owners(table, now.owner)
        return dataclasses.replace(now, owner=None, ignore=(*now.ignore, now.owner))

    def _describe_labels(self, table: Table, points: Columns) -> None:
        """Count labels as the run reads them: a word such as NA is a class, and no missing cell."""
        distinct = Coded.of(points.labels).distinct
        counts: dict[str, Any] = {"missing": len(table) - len(points), "distinct": len(distinct)}
        for place, each in enumerate(self.known):
            if each.name == self.settings.label:
                kind = "category" if each.kind == "empty" else each.kind
                self.known[place] = dataclasses.replace(each, kind=kind, **counts)
                self._recount_guess(f"{each.distinct} diff", f"{len(distinct)} diff")
        if self.settings.validation is None:
            self.hints += label_hints(distinct, (), keep_na=self.settings.keep_na)

    def _recount_guess(self, before: str, now: str) -> None:
        """Say of a guessed column of labels how many different ones it has for the run."""
        if guess := self.guesses.get("label"):
            self.guesses["label"] = Guess(guess.column, guess.why.replace(before, now))

    def _fix_labels(self, table: Table, wrong: InputError) -> None:
        """Fix labels that are missing or that are not classes, and columns without a name."""
        if isinstance(wrong, UndecidedError):
            self._fix_task(table)
        elif self.settings.label == UNKNOWN:
            return
        elif self.settings.unlabeled is None and _has_gaps(table, self.settings.label):
            self.fix(unlabeled="skip")
        elif "" in table.data.column_names and not self.settings.features:
            nameless = next(each for each in self.known if not each.name)
            if nameless.kind in MEANINGLESS or (nameless.whole and nameless.distinct == self.rows):
                self.leave_out("")  # such as an index that was written with the table
            else:
                self.fix(features=("*",))

    def _fix_task(self, table: Table) -> None:
        """Take numbers that may be amounts or classes for amounts if possible, else for classes."""
        before = self.settings
        for task in ("regression", "classification"):
            with contextlib.suppress(InputError):
                self.fix(task=task)
                point_columns(self.settings, table)
                return
            self.settings = before

    def _check_features(self, points: Columns, others: list[Columns]) -> None:
        """Read every feature as the run would, of the points and of the other rows."""
        settings, _ = choose_method(self.settings)
        forest = settings.method == "forest"
        known = {each.name: each for each in self.known}
        settled = {*settings.ignore, settings.id, settings.owner}
        labels = {str(label) for label in Coded.of(points.labels).distinct}
        for name in [each for each in points.names if each not in settled]:
            if name == points.text:
                self._check_texts(points)
                continue
            sides = [each for each in others if name in each.names]
            with self.checking() as wrong:
                read = column_reader(points, name, forest=forest, fill=settings.fill)
                for each in sides:
                    read(each)
            if wrong:
                seen = [profile(name, each.features.column(name), each.cells) for each in sides]
                found = next((each for each in (known[name], *seen) if each.fix), known[name])
                self._fix_feature(found, labels, forest=forest)
            elif forest and known[name].fix and name not in points.categorical:
                self.hints.append(category_hint(known[name]))
                self._read_as(known[name], labels)

    def _check_texts(self, points: Columns) -> None:
        """Whether a model can embed the column of texts."""
        with self.checking():
            texts = points.features.column(str(points.text)).to_pylist()
            check_texts(f"{points.source} column {points.text!r}", texts)
        try:
            check_text_package()
        except ExtraError as missing:
            self.problems.append(message_of(missing))

    def _read_as(self, column: Profile, labels: set[str]) -> None:
        """Read a column by the options that it needs, unless rows would lose their labels."""
        if not labels & {*column.fix.get("na", ())}:
            self.fix(**_reading_changes(self.settings, column))

    def _fix_feature(self, column: Profile, labels: set[str], *, forest: bool) -> None:
        """Read a column as what it is; leave it out only if nothing is lost with it."""
        name, settings = column.name, self.settings
        gaps = column.missing and (column.whole or column.kind == "number")
        if column.fix:
            self._read_as(column, labels)
        elif gaps and not forest and settings.fill is None:
            _ = self.fix(fill="median") or self.fix(fill="zero")  # no median is known in parts
        elif column.kind in MEANINGLESS or column.note.startswith((REPEATED, NAMES)):
            self._fix_names(column)
        elif column.kind == "text":
            self._fix_text(column)
        elif column.kind == "category" and not forest and name not in settings.categorical:
            self.fix(categorical=(*settings.categorical, name))

    def _fix_names(self, column: Profile) -> None:
        """Take a column that names its rows for their ids; leave out one that says nothing else."""
        unlike = column.kind not in {"empty", "constant"} and column.distinct == self.rows
        if unlike and self.settings.id is None:
            self._take_out(column.name, id=column.name)
            self.guesses["id"] = Guess(column.name, column.note)
        else:
            self.leave_out(column.name)

    def _fix_text(self, column: Profile) -> None:
        """Read a column of many different texts as pictures, as categories, or by a model."""
        name, settings = column.name, self.settings
        if column.note == PICTURED:
            if settings.image is None:
                self._take_out(name, image=name)
        elif not column.note and column.distinct <= DISTINCT * (column.rows - column.missing):
            self.fix(categorical=(*{**dict.fromkeys(settings.categorical), name: None},))
        elif settings.text is None and column.note in {PROSE, ""}:
            self._take_out(name, text=name)

    def _check_validation(self, table: Table, points: Columns) -> Columns | None:
        """Look for the features in the validation set; its rows, if it has all of them."""
        beside: Table | None = None
        with self.checking() as wrong:
            beside = validation_table(self.settings, table)
            if beside is not None:
                return like_points(self.settings, points, beside)
        known = {each.name: each for each in self.known}
        there = points.names if beside is None or not wrong else beside.data.column_names
        for name in [each for each in points.names if each not in there]:
            role = role_of(points, name)
            if role is not None and getattr(self.settings, role) is None:
                self._take_out(name, **{role: name})
            elif known[name].kind in MEANINGLESS:
                self.leave_out(name)
        return None


def _reading_changes(settings: Settings, column: Profile) -> dict[str, Any]:
    """The options by which a column is read; none if another column needs other ones."""
    changes: dict[str, Any] = {}
    for key, entry in column.fix.items():
        now, usual = getattr(settings, key), Settings.__dataclass_fields__[key].default
        if isinstance(now, tuple):
            changes[key] = (*now, *(each for each in entry if each not in now))
        elif now in {usual, entry}:
            changes[key] = entry
        else:
            return {}
    same = all(getattr(settings, key) == entry for key, entry in changes.items())
    return {} if same else changes


def _reading_fix(settings: Settings) -> dict[str, Any]:
    """Another encoding or delimiter, by the first bytes of a file of text."""
    path = find_files(settings.file)[0]
    if kind_of(path) not in TEXT_KINDS:
        return {}
    if settings.encoding is None and (encoding := _likely_encoding(path)):
        return {"encoding": encoding}
    likely = likely_delimiter(first_line(path, check_encoding(settings.encoding)))
    usual = settings.delimiter or TEXT_KINDS[kind_of(path)]
    if settings.delimiter is None and likely != usual:
        return {"delimiter": "tab" if likely == "\t" else likely}
    return {}


def _likely_encoding(path: Path) -> str:
    """The likely encoding of text that is not UTF-8; empty if it is UTF-8."""
    with open_bytes(path) as file:
        some = file.read(BYTES)
    if some.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252", "latin-1"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(some)
        except UnicodeDecodeError:
            continue
        return "" if encoding == "utf-8" else encoding
    return ""


def _has_gaps(table: Table, name: str) -> bool:
    if name not in table.data.column_names:
        return False
    return any(map(is_missing, entries_of(table, name, "label")))
