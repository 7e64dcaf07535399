from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import RadiusNeighborsClassifier
from sklearn.utils.estimator_checks import check_estimator

import thresher as th


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    "classifier",
    [th.TKNNClassifier(), th.TKNNClassifier(radius=1.0, metric="euclidean")],
    ids=["cosine", "euclidean"],
)
def test_it_is_a_scikit_learn_classifier(classifier):
    results = check_estimator(classifier, on_fail=None)
    assert len(results) > 40
    assert [r["check_name"] for r in results if r["status"] not in {"passed", "skipped"}] == []


@pytest.mark.parametrize("width", [3, 30])
def test_shares_equal_those_of_scikit_learn(width, rng):
    X, Q = rng.standard_normal((300, width)), rng.standard_normal((600, width))
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    radius = float(np.sqrt(2 * width)) * 0.9
    ours = th.TKNNClassifier(radius=radius, metric="euclidean").fit(X, y)
    theirs = RadiusNeighborsClassifier(radius=radius, outlier_label="a").fit(X, y)
    near = [len(found) for found in theirs.radius_neighbors(Q, return_distance=False)]
    assert 0 < np.mean(np.array(near) > 0) <= 1
    covered = np.array(near) > 0
    np.testing.assert_allclose(ours.predict_proba(Q)[covered], theirs.predict_proba(Q)[covered])
    np.testing.assert_allclose(ours.predict_proba(Q)[~covered], 1 / 3)


def test_its_soft_accuracy_is_the_utility(rng):
    X, V = rng.standard_normal((200, 4)), rng.standard_normal((70, 4))
    y, y_val = rng.integers(0, 3, 200), rng.integers(0, 3, 70)
    shares = th.TKNNClassifier(radius=0.3).fit(X, y).predict_proba(V)
    valuation = th.tknn_shapley(X, y, V, y_val, radius=0.3)
    np.testing.assert_allclose(shares[np.arange(70), y_val].sum(), valuation.utility_all)


def test_zero_rows_are_at_cosine_distance_one_as_in_scikit_learn():
    X, y = [[1.0, 0.0], [0.0, 0.0], [-1.0, 0.1]], [0, 1, 2]
    near = th.TKNNClassifier(radius=0.9).fit(X, y)
    assert near.predict_proba([[1.0, 0.0], [0.0, 0.0]]).tolist() == [[1, 0, 0], [1 / 3] * 3]
    wide = th.TKNNClassifier(radius=1.0).fit(X, y)
    assert wide.predict_proba([[1.0, 0.0], [0.0, 0.0]]).tolist() == [[0.5, 0.5, 0], [1 / 3] * 3]


def test_rows_too_short_for_a_direction_are_refused_under_cosine():
    with pytest.raises(th.InputError, match="rows too close to zero.*row 1"):
        th.TKNNClassifier().fit([[1.0, 0.0], [1e-100, 0.0], [0.0, 0.0]], [0, 1, 1])
    th.TKNNClassifier(metric="euclidean").fit([[1.0, 0.0], [1e-100, 0.0]], [0, 1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"radius": -1}, "radius"), ({"metric": "precomputed"}, "'cosine' or 'euclidean'"), ({"metric": "x"}, "metric")],
)  # fmt: skip
def test_wrong_settings_are_refused_when_fitted(settings, message):
    with pytest.raises(th.InputError, match=message):
        th.TKNNClassifier(**settings).fit([[1.0], [2.0]], [0, 1])
