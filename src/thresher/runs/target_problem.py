"""What the points of files are valued by, where labels are numbers and are read in parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.games.semivalues import check_semivalue
from thresher.neighbors.tree_columns import TreeColumns
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.forest_growth import TargetGrowth
from thresher.passes.forest_passes import forest_problem
from thresher.passes.memory import check_memory
from thresher.passes.problem import Problem
from thresher.passes.target_span import span_of_parts, with_bounds
from thresher.radius import suggest_radius
from thresher.runs.radii import radius_of
from thresher.runs.settings import REGRESSION, Settings
from thresher.runs.sources import check_lengths
from thresher.tables.columns import Columns
from thresher.tables.file_parts import FileParts


def target_problem(
    settings: Settings, source: FileParts, validation: Columns | None, encoder: Any,
    kept: Checkpoint,
) -> Problem:  # fmt: skip
    """The ball or the forest that the settings ask for; without a validation set, the forest."""
    memory = None if settings.memory is None else check_memory(settings.memory)
    X_val, y_val = None, None
    if validation is not None:
        X_val, y_val = encoder.transform(validation), np.array(validation.labels, np.float64)
    if settings.method == "forest":
        growth = _growth(settings, X_val, y_val)
        return forest_problem(growth, source, TreeColumns(source.width), kept, memory)
    assert validation is not None  # noqa: S101 - the settings need one
    assert X_val is not None  # noqa: S101
    check_lengths(validation, X_val, cosine=settings.metric == "cosine")
    radius = radius_of(
        settings, len(X_val),
        lambda: suggest_radius(X_val, y_val, metric=settings.metric, task=REGRESSION),
    )  # fmt: skip
    given = {"empty": settings.empty, "bounds": None}
    targets = with_bounds(given, y_val, lambda: span_of_parts(source, memory))
    return Problem.check(
        X_val, y_val, radius=radius, metric=settings.metric, mean=settings.mean,
        semivalue=check_semivalue(settings.semivalue), targets=targets,
    )  # fmt: skip


def _growth(settings: Settings, X_val: Any, y_val: Any) -> TargetGrowth:
    """How the forest comes about."""
    empty = settings.empty
    if empty is None and y_val is not None:
        empty = float(y_val.mean())
    return TargetGrowth(
        None, (settings.trees, settings.folds, settings.seed), X_val, y_val,
        check_semivalue(settings.semivalue), None, settings.mean, empty=empty,
    )  # fmt: skip
