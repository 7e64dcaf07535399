"""Whether the rows are those that were valued, for methods without suggestions to check that."""

from __future__ import annotations

import warnings
from typing import Any

from thresher.errors import InputError, ThresherWarning
from thresher.findings.explanation import explain
from thresher.findings.label_findings import UnfitError, check_fit
from thresher.inputs.labels import check_labels, class_list
from thresher.regression import REGRESSION
from thresher.report.subject import STRANGERS, judged_by_points
from thresher.tknn import zero_budget_score
from thresher.valuation import Valuation


def check_rows(valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any) -> None:
    """Refuse rows other than those that judged each other, or that have the zero-budget scores."""
    mutual = valuation.method in {"tknn-shapley", "knn-shapley"} and judged_by_points(valuation)
    if X is None or not (mutual or valuation.method == STRANGERS):
        return
    with warnings.catch_warnings():  # whoever made the valuation was warned
        warnings.simplefilter("ignore", ThresherWarning)
        try:
            if mutual:
                explain(valuation, X, y)
            else:
                check_fit(valuation.values, _scores(valuation, X, y, X_val, y_val).values)
        except UnfitError:
            raise
        except InputError:  # the page says what is missing, and why
            return


def _scores(valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any) -> Valuation:
    about: dict[str, Any] = {name: valuation.params[name] for name in ("radius", "metric", "mean")}
    if valuation.params.get("task") == REGRESSION:
        about |= {name: valuation.params[name] for name in ("task", "empty", "bounds")}
    elif len(class_list(None, check_labels("y_val", y_val))) < len(valuation.params["classes"]):
        about["classes"] = valuation.params["classes"]
    return zero_budget_score(X, y, X_val, y_val, **about)
