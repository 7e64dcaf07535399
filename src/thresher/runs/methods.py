"""The valuation that the settings ask for."""

from __future__ import annotations

from typing import Any

from thresher.errors import InputError
from thresher.findings import Findings, value_and_explain
from thresher.games.semivalues import check_semivalue
from thresher.knn import knn_shapley
from thresher.radius import suggest_radius
from thresher.runs.settings import AUTO, RETRAINING, Settings
from thresher.tknn import zero_budget_score
from thresher.valuation import Valuation

Data = tuple[Any, Any, Any, Any]


def value_data(
    settings: Settings, data: Data, *, owners: Any = None, progress: bool = False
) -> tuple[Valuation, Findings | None]:
    """The values of the points, by the method of the settings, and what is found about them.

    Only the method "tknn" finds more than values.
    """
    if settings.method != "tknn":
        return _values(settings, data, owners=owners, progress=progress), None
    return value_and_explain(
        *data, radius=_radius(settings, data), metric=settings.metric,
        semivalue=check_semivalue(settings.semivalue), owners=owners, mean=settings.mean,
        progress=progress,
    )  # fmt: skip


def _values(settings: Settings, data: Data, *, owners: Any, progress: bool) -> Valuation:
    if settings.method in RETRAINING:
        return _retrain(settings, data, owners=owners, progress=progress)
    common: dict[str, Any] = {"metric": settings.metric, "owners": owners, "mean": settings.mean}
    if settings.method == "knn":
        common |= {"k": settings.k, "utility": settings.utility, "error": settings.error}
        return knn_shapley(*data, progress=progress, **common)
    return zero_budget_score(*data, radius=_radius(settings, data), **common)


def _radius(settings: Settings, data: Data) -> float:
    if settings.radius != AUTO:
        return float(settings.radius)
    if len(data[3]) < 2:
        raise InputError(
            "--radius auto needs two validation points at least, there is one: hold out more rows, "
            "or give a number"
        )
    return float(suggest_radius(data[2], data[3], metric=settings.metric))


def _retrain(settings: Settings, data: Data, *, owners: Any, progress: bool) -> Valuation:
    from thresher.retrain import methods

    function = getattr(methods, settings.method.replace("-", "_"))
    sampled = {} if settings.method == "leave-one-out" else {"evaluations": settings.evaluations}
    return function(*data, owners=owners, seed=settings.seed, progress=progress, **sampled)
