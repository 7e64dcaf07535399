"""The points and the validation set of a run: read from files, or held out of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import MAX_MAGNITUDE, rows_text
from thresher.coded import Coded
from thresher.errors import InputError, option
from thresher.metrics import SMALLEST_SQUARE, squared_lengths
from thresher.runs.choice import choose_method
from thresher.runs.settings import HELD_OUT, Settings
from thresher.spelling import nearest, told_apart
from thresher.tables.columns import Columns, choose_columns, same_labels
from thresher.tables.holdout import find_twins, hold_out
from thresher.tables.reader import Table, input_digest, read_table, record_of, validation_inside


@dataclass(frozen=True)
class Sources:
    """Both sides, and where they are from, for the record."""

    points: Columns
    validation: Columns  # without rows where the points judge each other
    about: Mapping[str, Any]
    settings: Settings  # with a method


def read_sources(settings: Settings) -> Sources:
    """The points and the validation set that the settings name."""
    table = read_table(settings.file, delimiter=settings.delimiter)
    points = choose_columns(
        table, label=settings.label, features=settings.features or None, id=settings.id,
        owner=settings.owner, categorical=settings.categorical, text=settings.text,
        image=settings.image, ignore=settings.ignore,
    )  # fmt: skip
    settings, chosen = choose_method(settings, table, points)
    beside = _validation_table(settings, table)
    if beside is None:
        return _split(settings, table, points, chosen)
    validation = _like(settings, points, beside)
    points, validation = same_labels(points, validation)
    check_shared(points, validation)
    about = describe_files(beside, settings.validation_label or settings.label)
    if "held_out" in (made := record_of(beside)):  # by thresher embed
        about["held_out"] = made["held_out"]
    return Sources(
        points, validation, _about(table, settings.label, chosen) | {"validation": about}, settings
    )


def check_lengths(columns: Columns, X: NDArray[np.float64], *, cosine: bool) -> None:
    """Refuse rows that have no distance, by their numbers in the table."""
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


def check_shared(points: Columns, validation: Columns) -> None:
    """Refuse labels that no point shares with any validation point."""
    ours, theirs = (Coded.of(each.labels).distinct for each in (points, validation))
    if not set(ours) & set(theirs):
        shown = [", ".join(map(repr, each[:5])) for each in (ours, theirs)]
        raise InputError(
            f"{points.source} and {validation.source} have no label in common: {shown[0]} and "
            f"{shown[1]}; write them alike, or name another {option('label')}"
        )


def _validation_table(settings: Settings, table: Table) -> Table | None:
    """The table of validation points, if they are not to be held out."""
    if settings.validation is not None:
        found = read_table(settings.validation, delimiter=settings.delimiter)
        if found.kind == "npy" and settings.validation_label is None:
            raise InputError(
                f"{found.name} has no labels: name the file of them by {option('validation_label')}"
            )
        return found
    if settings.validation_label is not None:
        raise InputError(
            f"{option('validation_label')} goes with {option('validation')}, which was not given"
        )
    return None if settings.holdout is not None else validation_inside(table, settings.label)


def _split(settings: Settings, table: Table, points: Columns, chosen: Mapping[str, Any]) -> Sources:
    about = _about(table, settings.label, chosen)
    if settings.method == "forest" and settings.holdout is None:
        return Sources(points, points.take([]), about | {"validation": {"rows": 0}}, settings)
    share = HELD_OUT if settings.holdout is None else settings.holdout
    twins = find_twins(points)
    out = hold_out(points.labels, share, settings.seed, twins=twins)
    held = {
        "held_out": share, "seed": settings.seed, "rows": int(out.sum()),
        "rows_with_copies": int(np.count_nonzero(twins)),
    }  # fmt: skip
    return Sources(points.take(~out), points.take(out), about | {"validation": held}, settings)


def _about(table: Table, label: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    points = describe_files(table, label)
    return {"input_digest": points["digest"], "points": points, "chosen": dict(chosen)}


def read_validation(settings: Settings, points: Columns) -> tuple[Columns, dict[str, Any]]:
    """The validation set that the settings name, with the features of the points; and its files."""
    table = _validation_table(settings, Table(points.features, (), ""))
    if table is None:
        raise InputError(f"{option('validation')} must name a table")
    label = settings.validation_label or settings.label
    return _like(settings, points, table), describe_files(table, label)


def _like(settings: Settings, points: Columns, table: Table) -> Columns:
    """The columns of a validation table that are those of the points."""
    names = [name for name in points.names if name != points.text]
    lacking = [name for name in names if name not in table.data.column_names]
    if lacking and not settings.features:
        name = lacking[0]
        near = nearest(name, table.data.column_names)
        like = f" (it has {told_apart(near[0], name)})" if near else ""
        raise InputError(
            f"{table.name} has no column {name!r}{like}, which is a feature of {points.source}: "
            f"leave it out by {option('ignore', [name])}, or name it by {option('id', name)} or "
            f"{option('owner', name)}"
        )
    return choose_columns(
        table, label=settings.validation_label or settings.label, features=names,
        categorical=points.categorical, text=points.text,
    )  # fmt: skip


def describe_files(table: Table, label: str) -> dict[str, Any]:
    """The files of a table and their digests, for the record."""
    names = [str(path) for path in table.files]
    found = {"files": names, "digest": input_digest(table.files), "rows": len(table)}
    if table.kind == "npy":  # labels have a file of their own
        found |= {"label_file": label, "label_digest": input_digest([Path(label)])}
    return found
