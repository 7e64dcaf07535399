"""Public sides in files: what kind of side it is follows from the format of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from thresher.errors import InputError
from thresher.files import check_sealed
from thresher.sides.ball import BallSide, stored_ball
from thresher.sides.forest import ForestSide, stored_forest
from thresher.sides.protocol import PublicSide

READERS: dict[str, Callable[[Any, Mapping[str, Any]], PublicSide]] = {
    BallSide.kind: stored_ball,
    ForestSide.kind: stored_forest,
}


def stored_kind(about: Any, formats: Mapping[str, str], *parts: bytes) -> str:
    """The kind of side in a file, one of `formats`; an error where the seal is broken."""
    named = about.get("format") if isinstance(about, dict) else None
    known = [kind for kind, name in formats.items() if name == named]
    if not known:
        raise InputError(f"its format is not {' or '.join(formats.values())}")
    check_sealed(about, formats[known[0]], *parts)
    return known[0]


def stored_side(kind: str, about: Any, arrays: Mapping[str, Any]) -> PublicSide:
    """The side that a file describes."""
    return READERS[kind](about, arrays)
