"""The valuation that the settings ask for."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from thresher.errors import ThresherWarning
from thresher.findings.label_findings import Findings, value_and_explain
from thresher.games.semivalues import check_semivalue
from thresher.inputs.checked_inputs import (
    Points,
    Validation,
    check_pair,
    count_twins,
    tell_of_twins,
)
from thresher.metrics import measure
from thresher.neighbors.kernel import check_kernel
from thresher.runs.radii import radius_of
from thresher.runs.settings import RETRAINING, Settings
from thresher.valuation import Valuation

FAR = 1e30  # beyond all numbers that mean something

Data = tuple[Any, Any, Any, Any]
Checked = tuple[Points, Validation]


def value_data(
    settings: Settings,
    data: Data,
    *,
    owners: Any = None,
    progress: bool = False,
    forest: Any = None,
) -> tuple[Valuation, Findings | None, Checked | None]:
    """The values of the points, by the method of the settings, and what is found about them.

    Retraining and the zero-budget score find nothing but values; "tknn" hands on what it checked.
    A `forest` that is grown already is not grown again.
    """
    if settings.numbers:
        from thresher.runs.target_methods import value_targets

        return *value_targets(settings, data, owners=owners, progress=progress), None
    if settings.method == "forest":
        return *_forest(settings, data, owners=owners, progress=progress, forest=forest), None
    if settings.method == "knn":
        from thresher.findings.explained import explain

        valuation = _values(settings, data, owners=owners, progress=progress)
        with warnings.catch_warnings():  # they came with the values
            warnings.simplefilter("ignore", ThresherWarning)
            return valuation, explain(valuation, *data), None
    if settings.method != "tknn":
        return _values(settings, data, owners=owners, progress=progress), None, None
    semivalue = check_semivalue(settings.semivalue, calibrated=True)
    points, validation = check_pair(*data, metric=settings.metric, classes=None)
    radius = radius_of(settings, len(validation), lambda: _suggested(settings, validation))
    radius, kernel = check_kernel(settings.weighing, settings.rings, radius)
    found = value_and_explain(
        points, validation, radius=radius, semivalue=semivalue, owners=owners, mean=settings.mean,
        progress=progress, kernel=kernel,
    )  # fmt: skip
    return *found, (points, validation)


def _suggested(settings: Settings, validation: Validation) -> float:
    from thresher.radius import suggest_for

    return suggest_for(validation, settings.weighing, settings.rings)


def grown(settings: Settings, data: Data, *, progress: bool) -> Any:
    """The forest that the points are valued by."""
    from thresher.growth import grow_forest

    growth = {name: getattr(settings, name) for name in ("trees", "folds", "seed")}
    return grow_forest(*data[:2], **growth, progress=progress)


def _forest(
    settings: Settings, data: Data, *, owners: Any, progress: bool, forest: Any
) -> tuple[Valuation, Findings]:
    from thresher.findings.leaf_findings import forest_findings

    if data[2] is not None:
        rows, rows_val = (measure("X", _finite(each), cosine=False) for each in (data[0], data[2]))
        tell_of_twins(count_twins(rows, rows_val), len(rows_val), stacklevel=3)
    return forest_findings(
        *data, trees=settings.trees, folds=settings.folds, seed=settings.seed, forest=forest,
        semivalue=check_semivalue(settings.semivalue), owners=owners, mean=settings.mean,
        progress=progress,
    )  # fmt: skip


def _finite(table: Any) -> Any:
    """Numbers that have distances, the same where cells are the same."""
    return np.clip(np.nan_to_num(table, nan=-FAR), -FAR, FAR)


def _values(settings: Settings, data: Data, *, owners: Any, progress: bool) -> Valuation:
    if settings.method in RETRAINING:
        from thresher.runs.target_methods import retrained

        return retrained(settings, data, owners=owners, progress=progress)
    common: dict[str, Any] = {"metric": settings.metric, "owners": owners, "mean": settings.mean}
    if settings.method == "knn":
        from thresher.knn import knn_shapley

        common |= {"k": settings.k, "utility": settings.utility, "error": settings.error}
        return knn_shapley(*data, progress=progress, **common)
    from thresher.radius import suggest_radius
    from thresher.tknn import zero_budget_score

    radius = radius_of(
        settings, len(data[3]), lambda: suggest_radius(*data[2:], metric=settings.metric)
    )
    return zero_budget_score(*data, radius=radius, **common)
