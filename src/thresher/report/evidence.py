"""Evidence: everything a report shows, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from thresher.report.crosscheck import Checked
from thresher.report.doubt import Doubt
from thresher.report.payout import Payout
from thresher.report.plane import Plane
from thresher.report.private import Private
from thresher.report.reach import RadiusCurve, Reach
from thresher.report.removal import Removal
from thresher.report.spread import Spread
from thresher.report.suggested import Suggested
from thresher.report.verdict import Verdict
from thresher.report.worst import Worst


@dataclass(frozen=True)
class About:
    """What was computed, and how.

    Parameters
    ----------
    method, params
        Of the valuation, or of the release.
    points, validation_points, classes
        How many; None where that is not known, or not public.
    total, utility_all, utility_none
        The sum of all values and the utility that they share out; None where not known.
    record
        How the run was made, as it was given: command, files, digests, seed, version.
    """

    method: str
    params: Mapping[str, Any]
    points: int | None
    validation_points: int | None
    classes: tuple[str, ...]
    total: float | None = None
    utility_all: float | None = None
    utility_none: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """Everything a report shows, as plain data: numbers, texts and tuples of them.

    Parameters
    ----------
    about
        What was computed, and how.
    verdict
        In one sentence, and what to do.
    cautions
        What speaks against taking the verdict at its word.
    missing
        The parts that are left out, and why.
    spread, worst, plane, suggested, doubt, reach, radius, removal, checked, payout
        The parts; None where left out.
    private
        What may be told of a private release; None for exact values.
    """

    about: About
    verdict: Verdict
    cautions: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    spread: Spread | None = None
    worst: Worst | None = None
    plane: Plane | None = None
    suggested: Suggested | None = None
    doubt: Doubt | None = None
    reach: Reach | None = None
    radius: RadiusCurve | None = None
    removal: Removal | None = None
    checked: Checked | None = None
    payout: Payout | None = None
    private: Private | None = None
