"""What the columns of a table are for, if the user does not say: guessed, shown, and recorded."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from thresher.errors import InputError, option
from thresher.inputs.coded import Coded
from thresher.inputs.spelling import first_names
from thresher.runs.choice import ARRAYS
from thresher.runs.settings import Settings
from thresher.tables.column_profile import Profile, profile
from thresher.tables.columns import check_ids
from thresher.tables.guesses import Guess, guess_id, guess_label, guess_owner, label_candidates
from thresher.tables.header import looks_like_data
from thresher.tables.label_column import infer_task
from thresher.tables.reader import Table, read_batches

LOOKED = 2_000  # rows that guesses are made by
USUAL = "y"  # the column of labels, where there is one of that name
NAMING = ("features", "ignore", "categorical", "date")

Guesses = Mapping[str, Guess]


def guess_roles(settings: Settings, table: Table) -> tuple[Settings, Guesses]:
    """The settings with columns for labels, ids and owners, and which of these were guessed."""
    wanted = settings.guess
    if not wanted or table.kind in ARRAYS:
        return dataclasses.replace(settings, guess=()), name_guesses(table)
    known = look_at(settings, table, LOOKED)
    found = find_roles(settings, known, wanted)
    if "id" in found and not _are_distinct(table, found["id"].column):
        del found["id"]
    if "label" in wanted and "label" not in found and USUAL not in table.data.column_names:
        raise no_label(table, known)
    columns: dict[str, Any] = {role: guess.column for role, guess in found.items()}
    return dataclasses.replace(settings, guess=(), **columns), {**found, **name_guesses(table)}


def with_first_rows(table: Table) -> Table:
    """A table that was scanned, with some rows to guess by."""
    _, some = next(read_batches(table, table.files[0], table.data.column_names))
    return dataclasses.replace(table, data=some)


def name_guesses(table: Table) -> dict[str, Guess]:
    """New names of columns, if the header repeats names or looks like a row of data."""
    twice, names = table.repeated, table.data.column_names
    if not twice:
        if table.kind not in ARRAYS and looks_like_data(names):
            said = "the first line, which looks like data: if it is, put a line of names above it"
            return {"columns": Guess(", ".join(names[:6]), said)}
        return {}
    form = re.compile(rf"({'|'.join(map(re.escape, twice))})(\.\d+)?")
    named = [name for name in names if form.fullmatch(name)]
    said = f"the header has {', '.join(map(repr, twice))} more than once"
    return {"columns": Guess(", ".join(named), said)}


def look_at(settings: Settings, table: Table, rows: int | None = None) -> list[Profile]:
    """What the columns are, judged by the first `rows` rows, or by all."""
    some = table.data.slice(0, rows)
    cells = settings.cells()
    dates = {name: form for name, form in cells.dates.items() if name in some.column_names}
    cells = cells.with_dates(dates)
    return [profile(name, some.column(name), cells) for name in some.column_names]


def find_roles(
    settings: Settings, known: list[Profile], wanted: tuple[str, ...]
) -> dict[str, Guess]:
    """A guess for each wanted role, all of different columns."""
    patterns = [entry.partition("=%")[0] for key in NAMING for entry in getattr(settings, key)]
    named = settings.text, settings.image, settings.id, settings.owner
    others = {*named, "label" in wanted or settings.label}
    free = [
        each
        for each in known
        if each.name not in others and not any(fnmatchcase(each.name, x) for x in patterns)
    ]
    found: dict[str, Guess] = {}
    ways = (("id", guess_id), ("owner", guess_owner), ("label", guess_label))
    for role, way in ways:
        usual = role == "label" and any(each.name == USUAL for each in free)
        guess = None if role not in wanted or usual else way(free)
        if guess is not None:
            found[role] = guess
            free = [each for each in free if each.name != guess.column]
    return {role: found[role] for role in ("label", "id", "owner") if role in found}


def guess_record(
    settings: Settings, guesses: Guesses, labels: Any, what: str, rows: int | None = None
) -> dict[str, Any]:
    """The guesses for the record, the task among them; labels that may be amounts are refused."""
    found = role_record(guesses)
    if settings.task is not None:
        return found
    why = infer_task(what, Coded.of(labels).distinct, rows or len(labels))
    return {**found, "task": {"task": "classification", "why": why}}


def role_record(guesses: Guesses) -> dict[str, Any]:
    """The columns that were guessed, for the record."""
    return {role: {"column": each.column, "why": each.why} for role, each in guesses.items()}


def guesses_in_words(guessed: Mapping[str, Any]) -> str:
    """One line about guesses; empty if there are none.

    Examples
    --------
    >>> guesses_in_words({"label": {"column": "kind", "why": "by its name"}})
    'label kind (by its name)'
    """
    roles = [role for role in ("label", "id", "owner", "columns") if role in guessed]
    said = [
        f"{role} {guessed[role]['column'] or repr('')} ({guessed[role]['why']})" for role in roles
    ]
    task = guessed.get("task")
    if task is not None and (roles or not task["why"].endswith("text")):
        said.append(f"task {task['task']} ({task['why']})")
    return ", ".join(said)


def _are_distinct(table: Table, name: str) -> bool:
    if len(table) <= LOOKED:
        return True
    try:
        check_ids(table, name)
    except InputError:
        return False
    return True


def no_label(table: Table, known: list[Profile]) -> InputError:
    """An error that says which columns the labels may be in."""
    likely = label_candidates(known)
    names = likely or [each.name for each in known]
    what = f"; {'it may be one of' if likely else 'the columns are'} {first_names(names)}"
    return InputError(
        f"{table.name} has no column {USUAL!r}, and none that is plainly the labels: name it with "
        f"{option('label')}{what}"
    )


def not_naming(settings: Settings, name: str) -> dict[str, tuple[str, ...]]:
    """The columns that settings name as features, categories and dates, without this one."""
    named = {key: getattr(settings, key) for key in ("features", "categorical", "date")}
    return {
        key: tuple(each for each in entries if each.partition("=%")[0] != name)
        for key, entries in named.items()
    }
