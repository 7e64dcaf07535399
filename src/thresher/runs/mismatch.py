"""Columns that points and validation set do not share, explained."""

from __future__ import annotations

from thresher.errors import InputError, option
from thresher.inputs.spelling import nearest, told_apart
from thresher.tables.column_profile import is_id_name, profile
from thresher.tables.columns import Columns
from thresher.tables.guesses import OWNER_NAMES, plain_name
from thresher.tables.reader import Table

SHOWN = 5  # columns that are named


def check_same_features(points: Columns, names: list[str], table: Table) -> None:
    """Refuse a validation table that lacks features of the points; the way out is named."""
    lacking = [name for name in names if name not in table.data.column_names]
    if not lacking:
        return
    renamed = {name: _like(name, table, names) for name in lacking}
    first = lacking[0]
    if len(lacking) == 1:
        near = renamed[first]
        like = f" (it has {told_apart(near, first)})" if near else ""
        raise InputError(
            f"{table.name} has no column {first!r}{like}, which is a feature of {points.source}: "
            f"{_way_out(points, first, near)}"
        )
    shown = ", ".join(map(repr, lacking[:SHOWN]))
    more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    pairs = [f"{name!r} may be {told_apart(near, name)}" for name, near in renamed.items() if near]
    alike = f"; there, {', '.join(pairs[:SHOWN])}" if pairs else ""
    raise InputError(
        f"{table.name} lacks {len(lacking)} of the {len(names)} features of {points.source}: "
        f"{shown}{more}{alike}: name the columns alike, or leave them out with "
        f"{option('ignore', lacking)}"
    )


def role_of(points: Columns, name: str) -> str | None:
    """What a column that only the points have may be, if no feature: an owner, or an id."""
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
