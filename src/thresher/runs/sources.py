"""The points and the validation set of a run: read from files, or held out of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.errors import InputError, option
from thresher.findings.advice import JUDGED_ROWS, LEAST_ROWS
from thresher.inputs.checks import MAX_MAGNITUDE, rows_text
from thresher.inputs.coded import Coded
from thresher.inputs.spelling import distinct_name, nearest
from thresher.metrics import SMALLEST_SQUARE, squared_lengths
from thresher.runs.choice import choose_method
from thresher.runs.roles import guess_record, guess_roles
from thresher.runs.settings import HELD_OUT, Settings
from thresher.runs.unlabeled import check_labeled, unlabeled_columns, with_labels
from thresher.tables.column_profile import is_id_name, profile
from thresher.tables.columns import Columns, choose_columns, same_labels
from thresher.tables.guesses import OWNER_NAMES, plain_name
from thresher.tables.holdout import find_twins, hold_out
from thresher.tables.reader import Table, input_digest, read_table, record_of, validation_inside

SHOWN = 5  # columns that are named


@dataclass(frozen=True)
class Sources:
    """Points and validation set, and where they come from, for the record."""

    points: Columns
    validation: Columns  # without rows where the points judge each other
    about: Mapping[str, Any]
    settings: Settings  # with a method
    unlabeled: Columns | None = None  # rows of the table without a label


def read_sources(settings: Settings) -> Sources:
    """The points and the validation set that the settings name."""
    table = read_table(settings.file, **settings.reading())
    settings, guesses = guess_roles(settings, table)
    points = point_columns(settings, table)
    blank = unlabeled_columns(points, settings, table)
    guessed = guess_record(
        settings, guesses, points.labels, f"{table.name} column {settings.label!r}"
    )
    settings, chosen = choose_method(settings)
    beside = validation_table(settings, table)
    settings.check_seed(judged=beside is not None)
    if beside is None:
        check_date_formats(points)
        check_enough(settings, points)
        points, validation, public = _split(settings, points)
    else:
        validation = like_points(settings, points, beside)
        check_date_formats(points, validation)
        if not settings.numbers:
            points, validation = same_labels(points, validation)
            check_shared(points.labels, validation.labels, points.source, validation.source)
        check_enough(settings, points, validation)
        public = describe_files(beside, settings.validation_label or settings.label)
        if "held_out" in (made := record_of(beside)):  # by thresher embed
            public["held_out"] = made["held_out"]
    files = describe_files(table, settings.label)
    about = {
        "input_digest": files["digest"], "points": files, "chosen": dict(chosen),
        "guessed": guessed, "validation": public,
    }  # fmt: skip
    return Sources(points, validation, about, settings, blank)


def point_columns(settings: Settings, table: Table) -> Columns:
    """What the columns of the points are for."""
    check_labeled(settings, table)
    return choose_columns(
        with_labels(settings, table, settings.label), label=settings.label,
        features=settings.features or None, id=settings.id, owner=settings.owner,
        categorical=settings.categorical, text=settings.text, image=settings.image,
        ignore=settings.ignore, cells=settings.cells(), task=settings.task,
    )  # fmt: skip


def check_lengths(columns: Columns, X: NDArray[np.float64], *, cosine: bool) -> None:
    """Refuse rows that have no distance to others; the message has their numbers in the table."""
    squares = squared_lengths(X)
    huge = np.flatnonzero(~(squares <= MAX_MAGNITUDE**2))
    if len(huge):
        raise InputError(
            f"{columns.source} has numbers beyond 1e72 in {rows_text(columns.rows[huge])}: rescale "
            f"the column, or use {option('standardize', value=True)}"
        )
    short = np.flatnonzero(squares < SMALLEST_SQUARE)
    if cosine and len(short):
        raise InputError(
            f"{columns.source} has nothing but zeros in {rows_text(columns.rows[short])}, which "
            "then have no direction and no cosine distance: drop these rows, or use "
            f"{option('metric', 'euclidean')}"
        )


def check_date_formats(*sides: Columns) -> None:
    """Refuse a format for a column of dates that is text in neither table."""
    for name, form in sides[0].cells.dates.items():
        kinds = [each.features.schema.field(name).type for each in sides]
        if form and all(map(pa.types.is_temporal, kinds)):
            raise InputError(
                f"{option('date', [f'{name}={form}'])} has a format, but {sides[0].source} stores "
                f"the column as {kinds[0]}: use {option('date', [name])}"
            )


def check_shared(
    points: Iterable[Hashable], validation: Iterable[Hashable], source: str, source_val: str
) -> None:
    """Refuse labels that no point shares with any validation point."""
    ours, theirs = (Coded.of(each).distinct for each in (points, validation))
    if not set(ours) & set(theirs):
        shown = [", ".join(map(repr, each[:5])) for each in (ours, theirs)]
        raise InputError(
            f"{source} and {source_val} have no label in common: {shown[0]} and "
            f"{shown[1]}; write them alike, or name another {option('label')}"
        )


def check_enough(settings: Settings, points: Columns, validation: Columns | None = None) -> None:
    """Refuse one or two rows that only judge each other, and labels that are all the same."""
    if validation is None and len(points) < JUDGED_ROWS:
        counted = "1 row" if len(points) == 1 else f"{len(points)} rows"
        raise InputError(
            f"{points.source} has {counted}: nothing can be said about so few; at least "
            f"{JUDGED_ROWS} are needed, and {LEAST_ROWS} before a label is called wrong"
        )
    if not settings.numbers:
        both = [points.labels, *([] if validation is None else [validation.labels])]
        check_classes_differ(settings, points.source, *both)


def check_classes_differ(settings: Settings, source: str, *labels: Iterable[Hashable]) -> None:
    """Refuse labels that are all the same."""
    distinct = {label for each in labels for label in Coded.of(each).distinct}
    if len(distinct) == 1:
        raise InputError(
            f"{source} column {settings.label!r} has one class only, {distinct.pop()!r}: nothing "
            "can be said about labels that are all the same; name a column of at least two classes "
            f"with {option('label')}"
        )


def validation_table(settings: Settings, table: Table) -> Table | None:
    """The table of validation points, if they are not to be held out."""
    if settings.validation is not None:
        found = read_table(settings.validation, **settings.reading())
        if found.kind == "npy" and settings.validation_label is None:
            raise InputError(
                f"{found.name} has no labels: name the file that has them with "
                f"{option('validation_label')}"
            )
        return found
    if settings.validation_label is not None:
        raise InputError(
            f"{option('validation_label')} needs {option('validation')}, which was not given"
        )
    return None if settings.holdout is not None else validation_inside(table, settings.label)


def _split(settings: Settings, points: Columns) -> tuple[Columns, Columns, dict[str, Any]]:
    """Rows to value, rows held out (none if points judge each other), and the record of that."""
    if settings.method == "forest" and settings.holdout is None:
        return points, points.take([]), {"rows": 0}
    share = HELD_OUT if settings.holdout is None else settings.holdout
    twins = find_twins(points)
    classes = [0] * len(points) if settings.numbers else points.labels
    out = hold_out(classes, share, settings.seed, twins=twins)
    held = {
        "held_out": share, "seed": settings.seed, "rows": int(out.sum()),
        "rows_with_copies": int(np.count_nonzero(twins)),
    }  # fmt: skip
    return points.take(~out), points.take(out), held


def read_validation(settings: Settings, points: Columns) -> tuple[Columns, dict[str, Any]]:
    """The validation set that the settings name, with the features of the points; and its files."""
    table = validation_table(settings, Table(points.features, (), ""))
    if table is None:
        raise InputError(f"{option('validation')} must name a table")
    label = settings.validation_label or settings.label
    return like_points(settings, points, table), describe_files(table, label)


def like_points(settings: Settings, points: Columns, table: Table) -> Columns:
    """The columns of a validation table that are those of the points."""
    names = [name for name in points.names if name != points.text]
    if not settings.features:
        check_same_features(points, names, table)
    cells, label = settings.cells(), settings.validation_label or settings.label
    return choose_columns(
        with_labels(settings, table, label), label=label, features=names,
        categorical=points.categorical, text=points.text, task=settings.task,
        cells=cells.with_dates(points.cells.dates),
    )  # fmt: skip


def describe_files(table: Table, label: str, rows: int | None = None) -> dict[str, Any]:
    """The files of a table and their digests, for the record; `rows` if the table was not read."""
    names, rows = [str(path) for path in table.files], len(table) if rows is None else rows
    found = {"files": names, "digest": input_digest(table.files), "rows": rows}
    if table.kind == "npy":  # labels have a file of their own
        found |= {"label_file": label, "label_digest": input_digest([Path(label)])}
    return found


def check_same_features(points: Columns, names: list[str], table: Table) -> None:
    """Refuse a validation table that lacks features of the points, and say what to do."""
    lacking = [name for name in names if name not in table.data.column_names]
    if not lacking:
        return
    renamed = {name: _like(name, table, names) for name in lacking}
    first = lacking[0]
    if len(lacking) == 1:
        near = renamed[first]
        like = f" (it has {distinct_name(near, first)})" if near else ""
        raise InputError(
            f"{table.name} has no column {first!r}{like}, which is a feature of {points.source}: "
            f"{_way_out(points, first, near)}"
        )
    shown = ", ".join(map(repr, lacking[:SHOWN]))
    more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    pairs = [
        f"{name!r} may be {distinct_name(near, name)}" for name, near in renamed.items() if near
    ]
    alike = f"; there, {', '.join(pairs[:SHOWN])}" if pairs else ""
    raise InputError(
        f"{table.name} lacks {len(lacking)} of the {len(names)} features of {points.source}: "
        f"{shown}{more}{alike}: name the columns alike, or leave them out with "
        f"{option('ignore', lacking)}"
    )


def role_of(points: Columns, name: str) -> str | None:
    """What a column that only the points have may be other than a feature: an owner or an id."""
    if points.owners is None and plain_name(name) in OWNER_NAMES:
        return "owner"
    seen = profile(name, points.features.column(name), points.cells)
    if points.ids is None and seen.kind == "id" and seen.distinct == seen.rows:
        return "id"
    return "id" if points.ids is None and is_id_name(name) else None


def _like(name: str, table: Table, features: list[str]) -> str:
    """The column of the validation table that may be it under another name."""
    near = nearest(name, [each for each in table.data.column_names if each not in features])
    return near[0] if near else ""


def _way_out(points: Columns, name: str, near: str) -> str:
    role = role_of(points, name)
    if role is not None:
        return (
            f"it seems to hold {role}s, so name it with {option(role, name)}, or leave it out with "
            f"{option('ignore', [name])}"
        )
    if near:
        return f"name both alike, or leave it out with {option('ignore', [name])}"
    return (
        f"leave it out with {option('ignore', [name])}, or name it with {option('id', name)} or "
        f"{option('owner', name)}"
    )
