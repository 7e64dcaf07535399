"""The radius of a run: given, or suggested by the validation set."""

from __future__ import annotations

from collections.abc import Callable

from thresher.errors import InputError, option
from thresher.runs.settings import AUTO, Settings


def radius_of(settings: Settings, validation_points: int, suggest: Callable[[], float]) -> float:
    """The radius of the settings, or the one that the validation set suggests."""
    if settings.radius != AUTO:
        return float(settings.radius)
    if validation_points < 2:
        more = "hold out more rows, or give" if settings.validation is None else "give more, or"
        raise InputError(
            f"{option('radius', AUTO)} needs at least two validation points, but there is one: "
            f"{more} a number"
        )
    return float(suggest())
