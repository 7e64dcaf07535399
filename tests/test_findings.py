"""Findings: what a valuation says about each row."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import thresher as th
from thresher.findings import label_findings as module
from thresher.findings.explanation import explain
from thresher.findings.label_findings import value_and_explain
from thresher.inputs.checked_inputs import check_pair

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", th.Beta(4, 1)]


def problem(seed, classes=3, points=40, validation=25):
    random = np.random.default_rng(seed)
    X, X_val = random.normal(size=(points, 2)), random.normal(size=(validation, 2))
    labels = np.array(["ant", "bee", "cat", "dog"][:classes])
    y, y_val = random.integers(classes, size=points), random.integers(classes, size=validation)
    return X, labels[y], X_val, labels[y_val]


def found(data, **options):
    options = {"radius": 0.8, "metric": "euclidean"} | options
    return explain(th.tknn_shapley(*data, **options), *data)


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
@pytest.mark.parametrize("mean", [False, True])
def test_the_best_label_is_the_one_that_relabeling_would_show(semivalue, mean):
    data = problem(0)
    X, y, X_val, y_val = data
    options = {"radius": 0.8, "metric": "euclidean", "semivalue": semivalue, "mean": mean}
    findings = explain(th.tknn_shapley(*data, **options), *data)
    for row in range(0, 40, 7):
        worth = {}
        for label in set(y_val) - {y[row]}:
            changed = y.copy()
            changed[row] = label
            worth[label] = th.tknn_shapley(X, changed, X_val, y_val, **options).values[row]
        assert findings.best_value[row] == pytest.approx(max(worth.values()), abs=1e-12)
        assert worth[findings.best_label[row]] == pytest.approx(max(worth.values()), abs=1e-12)


def test_near_and_agree_count_validation_points():
    data = problem(1)
    X, y, X_val, y_val = data
    near = np.linalg.norm(X[:, None] - X_val[None], axis=2) <= 0.8
    findings = found(data)
    assert findings.near.tolist() == near.sum(axis=1).tolist()
    agree = (near & (y[:, None] == y_val[None])).sum(axis=1)
    shares = [a / n if n else None for a, n in zip(agree, near.sum(axis=1), strict=True)]
    assert [None if np.isnan(x) else x for x in findings.agree] == shares


@pytest.mark.parametrize(("points", "radius"), [(700, 0.8), (6000, 0.02)], ids=["all", "tree"])
@pytest.mark.parametrize("mean", [False, True])
def test_one_walk_and_two_give_the_same_bits(points, radius, mean, monkeypatch):
    data = problem(2, classes=4, points=points, validation=300)
    options = {"radius": radius, "metric": "euclidean", "semivalue": "shapley", "mean": mean}
    wanted = th.tknn_shapley(*data, **options)
    checked = check_pair(*data, metric=options.pop("metric"), classes=None)
    valuation, one = value_and_explain(*checked, **options)
    assert valuation == wanted
    monkeypatch.setattr(module, "AT_ONCE", 0)
    monkeypatch.setattr(module, "NUMBERS", 4096)
    again, two = value_and_explain(*checked, **options)
    assert again == wanted
    for name, column in one.columns().items():
        other = two.columns()[name]
        same = column == other if name in {"label", "best_label", "suggestion"} else None
        assert np.array_equal(column, other, equal_nan=True) if same is None else same, name


def test_ranks_and_percentiles_with_ties():
    valuation = th.Valuation(np.array([0.0, -1.0, 0.0, 2.0]), "example", {}, 1.0, 0.0)
    assert valuation.ranks().tolist() == [2, 1, 3, 4]
    assert valuation.percentiles().tolist() == [25.0, 0.0, 25.0, 75.0]


def test_percentiles_are_the_shares_below():
    random = np.random.default_rng(0)
    values = random.integers(-3, 4, 200) * random.choice([0.1, 1.0], 200)
    values[::17], values[1::40] = np.nan, -0.0
    valuation = th.Valuation(values, "example", {}, 1.0, 0.0)
    wanted = np.searchsorted(np.sort(values), values, side="left") / 2
    assert valuation.percentiles().tolist() == wanted.tolist()
    assert valuation.suspects(200).tolist() == np.argsort(values, kind="stable").tolist()
    assert th.Valuation(np.empty(0), "example", {}, 1.0, 0.0).percentiles().tolist() == []


def one_point(label, near, far=()):
    """A point, and validation points near it and far away with these labels."""
    X = np.array([[0.0], [50.0]])
    rows = [0.1 + i / 1000 for i in range(len(near))] + [100.0 + i for i in range(len(far))]
    data = X, [label, "far"], [[x] for x in [*rows, 50.5]], [*near, *far, "far"]
    findings = explain(th.tknn_shapley(*data, radius=1, metric="euclidean"), *data)
    return findings.suggestion[0], findings.best_label[0]


@pytest.mark.parametrize(
    ("label", "near", "far", "suggestion"),
    [
        ("a", [], ["a"], "outlier"),
        ("a", ["a"] * 8, [], "keep"),
        ("a", ["a"] * 5 + ["b"] * 5, [], "keep"),
        ("a", ["b"] * 9, ["a"], "relabel"),
        ("a", ["b"] * 12 + ["a"] * 3, [], "relabel"),
        ("a", ["b"] * 11 + ["a"] * 4, [], "inspect"),  # more than one in five agree
        ("a", ["b"] * 4, ["a"], "inspect"),  # four are no more than two deviations
        ("a", ["b"] * 9, [], "inspect"),  # no validation point has its label at all
        ("c", ["a"] * 20 + ["b"] * 6, ["c"], "relabel"),
    ],
)
def test_suggestions(label, near, far, suggestion):
    found, best = one_point(label, near, far)
    assert found == suggestion
    if suggestion == "relabel":
        assert best == max(set(near), key=near.count)


def test_a_label_that_others_outnumber_is_not_suggested():
    """Twenty near ones say a, which many points have already; six say b, which would pay more."""
    X = np.vstack([np.zeros((40, 1)), [[0.0]]])
    y = [*["a"] * 40, "c"]
    X_val = [[0.1 + i / 1000] for i in range(20)] + [[-0.95 - i / 1000] for i in range(6)] + [[9.0]]
    data = X, y, X_val, [*["a"] * 20, *["b"] * 6, "c"]
    findings = explain(th.tknn_shapley(*data, radius=1, metric="euclidean"), *data)
    if findings.best_label[40] == "b":
        assert findings.suggestion[40] == "inspect"
    else:
        assert findings.suggestion[40] == "relabel"


def test_labels_that_no_file_can_hold_are_explained_too():
    X, y, X_val, y_val = problem(2)
    days = {name: datetime.date(2026, 1, day) for day, name in enumerate(("ant", "bee", "cat"), 1)}
    wanted = found((X, y, X_val, y_val))
    dated = found((X, [days[x] for x in y], X_val, [days[x] for x in y_val]))
    assert dated.suggestion == wanted.suggestion
    assert dated.best_label == tuple(days[x] for x in wanted.best_label)


def test_data_of_another_valuation_are_refused():
    X, y, X_val, y_val = problem(3)
    valuation = th.tknn_shapley(X, y, X_val, y_val, radius=0.8, metric="euclidean")
    with pytest.raises(th.InputError, match="not computed from these points in this order: rows"):
        explain(valuation, X[::-1], y[::-1], X_val, y_val)
    with pytest.raises(th.InputError, match="other labels than the valuation"):
        explain(valuation, X, ["x"] * 40, X_val, y_val)
    with pytest.raises(th.InputError, match="the valuation has 40 points"):
        explain(valuation, X[:9], y[:9], X_val, y_val)
    for name in ("forest", "unseen"):
        why = f"{name} is for a valuation by .*, but this one is by tknn-shapley: leave {name} out"
        with pytest.raises(th.InputError, match=why):
            explain(valuation, X, y, X_val, y_val, **{name: "junk"})
    score = th.zero_budget_score(X, y, X_val, y_val, radius=0.8)
    with pytest.raises(th.InputError, match="needs a valuation by tknn_shapley"):
        explain(score, X, y, X_val, y_val)


def test_data_of_another_nearest_neighbor_valuation_are_refused():
    X, y, X_val, y_val = problem(3)
    last = X[::-1], y[::-1]
    for options in ({}, {"utility": "jia2019", "mean": True}, {"error": 0.2, "k": 1}):
        valuation = th.knn_shapley(X, y, X_val, y_val, **options)
        assert len(explain(valuation, X, y, X_val, y_val)) == len(y)
        for data in ((*last, X_val, y_val), (X + 1, y, X_val, y_val), (X, y, X_val[::-1], y_val)):
            with pytest.raises(th.InputError, match="not computed from these points in this order"):
                explain(valuation, *data)
    mutual = th.knn_shapley(X, y)
    with pytest.raises(th.InputError, match="with a validation set, got knn-shapley"):
        explain(mutual, X, y)
    with pytest.raises(th.InputError, match="not computed from these points in this order"):
        explain(mutual, *last)


@pytest.mark.parametrize("utility", ["mean", "jia2019"])
def test_data_of_another_nearest_neighbor_regression_are_refused(utility):
    X, _, X_val, _ = problem(3)
    t, t_val = X[:, 0], X_val[:, 0]
    options = {"task": "regression", "utility": utility, "semivalue": "banzhaf"}
    valuation = th.knn_shapley(X, t, X_val, t_val, **options)
    assert len(explain(valuation, X, t, X_val, t_val)) == len(t)
    for data in ((X, 50 * t, X_val, t_val), (X, t, X_val[:7], t_val[:7])):
        with pytest.raises(th.InputError, match="not computed from these points in this order"):
            explain(valuation, *data)
    with pytest.raises(th.InputError, match=r"the valuation has 40 points, but X has 9 rows"):
        explain(valuation, X[:9], t[:9], X_val, t_val)
    mutual = th.knn_shapley(X, t, task="regression", empty=0.0)
    with pytest.raises(th.InputError, match="not computed from these points in this order"):
        explain(mutual, X, t, X_val, t_val)
