"""The valuation that the settings ask for, where labels are numbers to predict."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.findings.target_findings import (
    TargetFindings,
    forest_target_findings,
    nearest_target_findings,
    radius_target_findings,
)
from thresher.games.semivalues import check_semivalue
from thresher.passes.target_span import TargetSpan
from thresher.radius import suggest_radius
from thresher.runs.radii import radius_of
from thresher.runs.settings import REGRESSION, RETRAINING, Settings
from thresher.valuation import Valuation


def target_data(
    settings: Settings, data: tuple[Any, Any, Any, Any]
) -> tuple[tuple[Any, Any, Any, Any], float]:
    """The same with targets as floats, and the prediction where nobody is near."""
    X, y, X_val, y_val = data
    targets = np.array(list(y), np.float64)
    judges = None if y_val is None else np.array(list(y_val), np.float64)
    empty = settings.empty
    if empty is None:
        empty = TargetSpan().see(targets).mean() if judges is None else float(judges.mean())
    return (X, targets, X_val, judges), empty


def value_targets(
    settings: Settings, data: tuple[Any, Any, Any, Any], *, owners: Any = None,
    progress: bool = False,
) -> tuple[Valuation, TargetFindings | None]:  # fmt: skip
    """The values of the points, and what is found about them; nothing by retraining."""
    (X, targets, X_val, judges), empty = target_data(settings, data)
    common: dict[str, Any] = {"owners": owners, "mean": settings.mean, "progress": progress}
    common["empty"] = empty
    if settings.method in RETRAINING:
        del common["mean"]
        numbers = X, targets, X_val, judges
        return retrained(settings, numbers, task=REGRESSION, **common), None
    if settings.method == "forest":
        return forest_target_findings(
            X, targets, X_val, judges, trees=settings.trees, folds=settings.folds,
            seed=settings.seed, semivalue=check_semivalue(settings.semivalue), **common,
        )  # fmt: skip
    if settings.method == "knn":
        utility = "jia2019" if settings.utility == "jia2019" else "mean"
        common["empty"] = None if utility == "jia2019" else empty
        common["semivalue"] = check_semivalue(settings.semivalue)
        return nearest_target_findings(
            X, targets, X_val, judges, k=settings.k, metric=settings.metric, utility=utility,
            **common,
        )  # fmt: skip
    judged = 0 if judges is None else len(judges)
    radius = radius_of(
        settings, judged,
        lambda: suggest_radius(X_val, judges, metric=settings.metric, task=REGRESSION),
    )  # fmt: skip
    return radius_target_findings(
        X, targets, X_val, judges, radius=radius, metric=settings.metric,
        semivalue=check_semivalue(settings.semivalue), **common,
    )  # fmt: skip


def retrained(settings: Settings, data: tuple[Any, ...], **more: Any) -> Valuation:
    """The values by a method that trains a model for every coalition."""
    from thresher.retrain import methods

    function = getattr(methods, settings.method.replace("-", "_"))
    sampled = {} if settings.method == "leave-one-out" else {"evaluations": settings.evaluations}
    return function(*data, seed=settings.seed, **sampled, **more)
