"""explain: what a valuation says about each point, whichever method made it."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, ThresherWarning
from thresher.findings.advice import SUGGESTIONS, Near, suggest_by_votes
from thresher.findings.label_findings import (
    Findings,
    check_fit,
    checked_data,
    explain_by_radius,
    no_features,
    stored_classes,
)
from thresher.findings.leaf_findings import explain_votes
from thresher.findings.target_findings import OTHER_FOREST, explain_targets, nearest_target_findings
from thresher.forest import FOREST, LEAVES, forest_votes
from thresher.games.semivalues import check_semivalue
from thresher.inputs.checked_inputs import Points, Validation
from thresher.inputs.coded import Coded
from thresher.knn import knn_shapley
from thresher.metrics import Rows
from thresher.neighbors.closest import closest
from thresher.neighbors.parallel_rows import tie_directions
from thresher.passes.votes import leaf_votes
from thresher.regression import REGRESSION
from thresher.valuation import Valuation

NEAREST = "knn-shapley"
VOTERS = 10  # validation points, or k if that is more


def explain(
    valuation: Valuation,
    X: Any,
    y: Any,
    X_val: Any = None,
    y_val: Any = None,
    *,
    forest: Any = None,
    unseen: Any = None,
) -> Findings:
    """What a valuation by a radius, by nearest neighbors or by trees says about each point.

    Parameters
    ----------
    valuation
        Made from the other arguments by `tknn_shapley`, `knn_shapley`, `forest_shapley` or
        `leaf_shapley`.
    X, y, X_val, y_val
        The points and the validation set, if there is one: features or embeddings, and leaves for
        `leaf_shapley`.
    forest
        As in `forest_shapley`, if it was given there.
    unseen
        As in `leaf_shapley`, if it was given there.

    Returns
    -------
    Findings
        A suggestion for each point, and the evidence for it.

    Raises
    ------
    InputError
        If the data are not those that were valued, or the method does not support it.

    Notes
    -----
    By a radius, the evidence is the validation points near a point. By nearest neighbors, it is the
    k nearest validation points, and at least ten. By trees, it is the other rows in the point's
    leaves, over the trees that did not see the point: other points, and validation points if there
    are some. The forest is grown again for that, while `forest_findings` grows it only once. For a
    valuation with task="regression", the result is a `TargetFindings`. The values are computed
    again, and data other than those that were valued are refused.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [0.1], [0.2], [9.0]], ["cat", "cat", "dog", "cat"]
    >>> X_val = [*([(i + 0.5) / 40] for i in range(8)), [20.0]]
    >>> data = X, y, X_val, [*["cat"] * 8, "dog"]
    >>> valuation = th.tknn_shapley(*data, radius=1, metric="euclidean")
    >>> found = th.explain(valuation, *data)
    >>> found.suggestion, found.best_label[2]
    (('keep', 'keep', 'relabel', 'outlier'), 'cat')
    """
    if not isinstance(valuation, Valuation):
        raise InputError(
            "valuation must be what tknn_shapley, knn_shapley, forest_shapley or leaf_shapley "
            f"returns, got {type(valuation).__name__}"
        )
    _check_unused(valuation.method, forest, unseen)
    if valuation.method == NEAREST:
        check_nearest(valuation, X, y, X_val, y_val)
        return nearest_findings(valuation, X, y, X_val, y_val)
    if valuation.params.get("task") == REGRESSION:
        return explain_targets(valuation, X, y, X_val, y_val, forest=forest, unseen=unseen)
    if valuation.method == "tknn-shapley":
        return explain_by_radius(valuation, X, y, X_val, y_val)
    if valuation.method not in {FOREST, LEAVES}:
        raise _unsupported(valuation)
    about, classes = valuation.params, stored_classes(valuation, y, y_val)
    if valuation.method == LEAVES:
        votes = leaf_votes(X, y, X_val, y_val, unseen=unseen, classes=classes)
    else:
        votes, _ = forest_votes(
            X, y, X_val, y_val, forest=forest, trees=about["trees"], folds=about["folds"] or 2,
            seed=about.get("seed", 0), classes=classes, progress=False,
        )  # fmt: skip
    again, found = explain_votes(
        votes, valuation.method, {}, check_semivalue(about["semivalue"]), mean=about["mean"]
    )
    own = valuation.method == FOREST and forest is None
    check_fit(valuation.values, again.values, OTHER_FOREST if own else "")
    return found


def _check_unused(method: str, forest: Any, unseen: Any) -> None:
    """Refuse arguments that a valuation by this method does not need."""
    for name, given, wanted in (("forest", forest, FOREST), ("unseen", unseen, LEAVES)):
        if given is not None and method != wanted:
            raise InputError(
                f"{name} is for a valuation by {wanted}, but this one is by {method}: leave {name} "
                "out"
            )


def _unsupported(valuation: Valuation) -> InputError:
    return InputError(
        "explain needs a valuation by tknn_shapley, forest_shapley or leaf_shapley, or by "
        f"knn_shapley with a validation set, got {valuation.method}"
    )


def check_nearest(valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any) -> None:
    """Refuse data for which `knn_shapley`, computed again, gives other values."""
    about = valuation.params
    known = {name: about[name] for name in ("mean", "precision", "error") if name in about}
    if about.get("task") == REGRESSION:
        known |= {"task": REGRESSION, "semivalue": check_semivalue(about["semivalue"])}
        known["empty"] = about["empty"]
    else:
        known["classes"] = stored_classes(valuation, y, y_val)
    if about["metric"] == "precomputed":
        raise no_features()
    with warnings.catch_warnings():  # they came with the values
        warnings.simplefilter("ignore", ThresherWarning)
        again = knn_shapley(
            X, y, X_val, y_val, k=about["k"], metric=about["metric"], utility=about["utility"],
            **known,
        )  # fmt: skip
    check_fit(valuation.values, again.values)


def nearest_findings(valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any) -> Findings:
    """What `explain` finds by nearest neighbors, if the values are surely those of these data."""
    about = valuation.params
    if about.get("task") == REGRESSION:
        return nearest_target_findings(
            X, y, X_val, y_val, k=about["k"], metric=about["metric"], utility=about["utility"],
            valuation=valuation,
        )[1]  # fmt: skip
    if y_val is None:
        raise _unsupported(valuation)
    return explain_by_nearest(valuation, *checked_data(valuation, X, y, X_val, y_val))


def explain_by_nearest(valuation: Valuation, points: Points, validation: Validation) -> Findings:
    """What the nearest validation points say about each point."""
    votes = count_votes(points, validation, max(int(valuation.params["k"]), VOTERS))
    each, codes = np.arange(len(points)), points.codes.astype(np.int64)
    near, own = votes.sum(axis=1), votes[each, codes].copy()
    votes[each, codes] = -1
    best = votes.argmax(axis=1) if votes.shape[1] > 1 else codes
    other = np.maximum(votes[each, best], 0)
    known = np.bincount(validation.codes, minlength=votes.shape[1]) > 0
    found = Near(near, own, valuation.values, best, other, other, np.ones(len(points)))
    labels = validation.classes.labels
    return Findings(
        Coded.numbered(codes, labels),
        valuation.values,
        valuation.ranks(),
        valuation.percentiles(),
        near,
        own / near,
        Coded.numbered(best, labels),
        None,
        Coded.numbered(suggest_by_votes(valuation.values, found, known[codes]), SUGGESTIONS),
        best,
        other / near,
        np.divide(own, own + other, out=np.full(len(own), 0.5), where=own + other > 0),
    )


def count_votes(points: Points, validation: Validation, voters: int) -> NDArray[np.int64]:
    """How many of each point's nearest validation points carry each label: one row per point."""
    classes = len(validation.classes)
    if len(validation) <= voters:
        every = np.bincount(validation.codes, minlength=classes)
        return np.tile(every, (len(points), 1))
    if validation.rows is None or not isinstance(points.rows, Rows):
        raise InputError("findings by the nearest neighbors need features, not distances")
    votes = np.zeros((len(points), classes), np.int64)
    judges = tie_directions(Points(validation.rows, validation.codes), validation.metric)
    asking = dataclasses.replace(validation, rows=points.rows, codes=points.codes)
    for row, keys in enumerate(closest(judges, asking, voters, "float64", None)):
        codes = validation.codes[(keys >> np.uint64(1)).astype(np.int64)]
        votes[row] = np.bincount(codes, minlength=classes)
    return votes
