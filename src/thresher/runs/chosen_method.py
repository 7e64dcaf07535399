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
from thresher.runs.settings import REGRESSION, RETRAINING, Data, Settings
from thresher.valuation import Valuation

FAR = 1e30  # beyond all numbers that mean something

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

    Retraining and the zero-budget score find nothing but values. "tknn" with classes also returns
    the points and the validation set that it checked. A grown `forest` is not grown again.
    """
    common: dict[str, Any] = {"owners": owners, "progress": progress}
    if settings.numbers:
        data, empty = target_data(settings, data)
        common |= {"task": REGRESSION, "empty": empty}
    if settings.method in RETRAINING:
        return _retrained(settings, data, common), None, None
    common["mean"] = settings.mean
    if settings.method == "forest":
        return *_by_forest(settings, data, common, forest), None
    if settings.method == "knn":
        return *_by_nearest(settings, data, common), None
    if settings.method == "zero-budget":
        return _zero_budget(settings, data, common), None, None
    if settings.numbers:
        return *_targets_by_radius(settings, data, common), None
    points, validation = check_pair(*data, metric=settings.metric, classes=None)
    radius = settings.radius_or(len(validation), lambda: _suggested(settings, validation))
    radius, kernel = check_kernel(settings.weighing, settings.rings, radius)
    semivalue = check_semivalue(settings.semivalue, calibrated=True)
    found = value_and_explain(
        points, validation, radius=radius, semivalue=semivalue, kernel=kernel, **common
    )
    return *found, (points, validation)


def target_data(settings: Settings, data: Data) -> tuple[Data, float]:
    """The data with targets as floats, and the prediction for a row that no point is near."""
    from thresher.passes.target_span import TargetSpan

    X, y, X_val, y_val = data
    targets = np.array(list(y), np.float64)
    judges = None if y_val is None else np.array(list(y_val), np.float64)
    empty = settings.empty
    if empty is None:
        empty = TargetSpan().see(targets).mean() if judges is None else float(judges.mean())
    return (X, targets, X_val, judges), empty


def grown(settings: Settings, data: Data, *, progress: bool) -> Any:
    """The forest by which the points are valued."""
    from thresher.growth import grow_forest

    about = settings.growth | ({"task": REGRESSION} if settings.numbers else {})
    return grow_forest(*data[:2], progress=progress, **about)


def _by_forest(
    settings: Settings, data: Data, common: dict[str, Any], forest: Any
) -> tuple[Valuation, Findings]:
    from thresher.findings.leaf_findings import forest_findings

    if data[2] is not None and not settings.numbers:
        rows, rows_val = (measure("X", _finite(each), cosine=False) for each in (data[0], data[2]))
        tell_of_twins(count_twins(rows, rows_val), len(rows_val), stacklevel=3)
    about = common | settings.growth | {"semivalue": check_semivalue(settings.semivalue)}
    return forest_findings(*data, forest=forest, **about)


def _finite(table: Any) -> Any:
    """A table of finite numbers, which have distances; equal cells stay equal."""
    return np.clip(np.nan_to_num(table, nan=-FAR), -FAR, FAR)


def _by_nearest(
    settings: Settings, data: Data, common: dict[str, Any]
) -> tuple[Valuation, Findings]:
    from thresher.findings.explanation import nearest_findings
    from thresher.knn import knn_shapley

    utility: Any = settings.utility
    if settings.numbers and utility == "jia2019":
        common["empty"] = None
    elif settings.numbers:
        utility = "mean"
    valuation = knn_shapley(
        *data, k=settings.k, metric=settings.metric, utility=utility, error=settings.error,
        semivalue=check_semivalue(settings.semivalue), **common,
    )  # fmt: skip
    with warnings.catch_warnings():  # they came with the values
        warnings.simplefilter("ignore", ThresherWarning)
        return valuation, nearest_findings(valuation, *data)


def _zero_budget(settings: Settings, data: Data, common: dict[str, Any]) -> Valuation:
    from thresher.tknn import zero_budget_score

    del common["progress"]
    radius = radius_of(settings, *data[2:])
    return zero_budget_score(*data, radius=radius, metric=settings.metric, **common)


def _targets_by_radius(
    settings: Settings, data: Data, common: dict[str, Any]
) -> tuple[Valuation, Findings]:
    from thresher.findings.target_findings import radius_target_findings

    del common["task"]
    return radius_target_findings(
        *data, radius=radius_of(settings, *data[2:]), metric=settings.metric,
        semivalue=check_semivalue(settings.semivalue), **common,
    )  # fmt: skip


def _suggested(settings: Settings, validation: Validation) -> float:
    from thresher.radius import suggest_for

    return suggest_for(validation, settings.weighing, settings.rings)


def radius_of(settings: Settings, X_val: Any, y_val: Any) -> float:
    """The radius of the settings, or the one that a validation set suggests."""

    def suggest() -> float:
        from thresher.radius import suggest_radius

        task = REGRESSION if settings.numbers else "classification"
        return suggest_radius(
            X_val, y_val, metric=settings.metric, kernel=settings.weighing, rings=settings.rings,
            task=task,
        )  # fmt: skip

    return settings.radius_or(0 if y_val is None else len(y_val), suggest)


def _retrained(settings: Settings, data: Data, common: dict[str, Any]) -> Valuation:
    """The values by a method that trains a model for every coalition."""
    from thresher.retrain import methods

    function = getattr(methods, settings.method.replace("-", "_"))
    sampled = {} if settings.method == "leave-one-out" else {"evaluations": settings.evaluations}
    return function(*data, seed=settings.seed, **sampled, **common)
