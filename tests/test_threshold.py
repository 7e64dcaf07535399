from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import threshold_values
from sklearn.neighbors import NearestNeighbors, RadiusNeighborsClassifier

import thresher as th
from thresher.games.semivalues import semivalue_name

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", ("beta", 4, 1), ("beta", 0.5, 3)]
pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


def ours(name):
    return name if isinstance(name, str) else th.Beta(*name[1:])


@st.composite
def problems(draw, most=8):
    """Small integers, so that ties, twins and pairs on the radius are common."""
    classes = draw(st.integers(1, 4))
    width = draw(st.integers(1, 3))
    row = st.lists(st.integers(-1, 2), min_size=width, max_size=width).filter(any)
    points = draw(st.lists(st.tuples(row, st.integers(0, classes - 1)), min_size=1, max_size=most))
    checks = draw(st.lists(st.tuples(row, st.integers(0, classes - 1)), min_size=1, max_size=3))
    X, y = (np.array(part) for part in zip(*points, strict=True))
    X_val, y_val = (np.array(part) for part in zip(*checks, strict=True))
    return X.astype(float), y, X_val.astype(float), y_val, classes


@given(
    problem=problems(),
    metric_radius=st.sampled_from(
        [
            ("cosine", 0.0),
            ("cosine", 0.5),
            ("cosine", 1.0),
            ("euclidean", 1.0),
            ("euclidean", 0.3),
            ("euclidean", 99.0),
        ]
    ),
    name=st.sampled_from(SEMIVALUES),
)
@settings(max_examples=150)
def test_values_equal_enumeration_over_all_coalitions(problem, metric_radius, name):
    X, y, X_val, y_val, classes = problem
    metric, radius = metric_radius
    got = th.tknn_shapley(
        X, y, X_val, y_val, radius=radius, metric=metric, semivalue=ours(name),
        classes=range(classes),
    )  # fmt: skip
    want = threshold_values(
        X, y, X_val, y_val, metric=metric, radius=radius, classes=classes, semivalue=name
    )
    np.testing.assert_allclose(got.values, want, atol=1e-12)


@given(problem=problems(most=30), radius=st.sampled_from([0.2, 0.5, 1.0, 2.0]))
def test_shapley_values_add_up_to_the_gain_in_utility(problem, radius):
    X, y, X_val, y_val, classes = problem
    valuation = th.tknn_shapley(X, y, X_val, y_val, radius=radius, classes=range(classes))
    assert abs(valuation.efficiency_gap()) < 1e-11
    assert valuation.utility_none == len(y_val) / classes


@given(problem=problems(most=20), seed=st.integers(0, 100), name=st.sampled_from(SEMIVALUES))
def test_rows_may_come_in_any_order(problem, seed, name):
    X, y, X_val, y_val, classes = problem
    order = np.random.default_rng(seed).permutation(len(X))
    kept = {"semivalue": ours(name), "classes": range(classes)}
    a = th.tknn_shapley(X, y, X_val, y_val, **kept).values
    b = th.tknn_shapley(X[order], y[order], X_val, y_val, **kept).values
    assert a[order].tobytes() == b.tobytes()


@given(problem=problems(most=12), name=st.sampled_from(SEMIVALUES))
def test_equal_points_have_equal_values_and_distant_ones_none(problem, name):
    X, y, X_val, y_val, classes = problem
    X, y = np.concatenate([X, X[:1], [[1e6] * X.shape[1]]]), np.concatenate([y, y[:1], [0]])
    values = th.tknn_shapley(
        X, y, X_val, y_val, radius=2, metric="euclidean", semivalue=ours(name),
        classes=range(classes),
    ).values  # fmt: skip
    assert values[0] == values[-2]
    assert values[-1] == 0.0


@given(problem=problems(most=12))
def test_values_are_sums_over_validation_points(problem):
    X, y, X_val, y_val, classes = problem
    whole = th.tknn_shapley(X, y, X_val, y_val, classes=range(classes)).values
    parts = [
        th.tknn_shapley(X, y, X_val[v : v + 1], y_val[v : v + 1], classes=range(classes)).values
        for v in range(len(y_val))
    ]
    np.testing.assert_allclose(whole, np.sum(parts, axis=0), atol=1e-13)


@given(problem=problems(most=12))
@example(problem=(np.ones((2, 1)), np.array([0, 1]), np.ones((1, 1)), np.array([0]), 2))
def test_the_sign_says_whether_labels_agree(problem):
    X, y, X_val, y_val, classes = problem
    for v in range(len(y_val)):
        values = th.tknn_shapley(
            X, y, X_val[v : v + 1], y_val[v : v + 1], classes=range(classes + 1)
        ).values
        near = values != 0
        assert ((values[near] > 0) == (y[near] == y_val[v])).all()


def test_mean_divides_by_the_number_of_validation_points(rng):
    X, V = rng.standard_normal((50, 3)), rng.standard_normal((20, 3))
    y, y_val = rng.integers(0, 3, 50), rng.integers(0, 3, 20)
    total, mean = (th.tknn_shapley(X, y, V, y_val, mean=m) for m in (False, True))
    np.testing.assert_allclose(mean.values * 20, total.values, rtol=1e-14)
    np.testing.assert_allclose(mean.utility_all * 20, total.utility_all, rtol=1e-14)
    assert (total.params["mean"], mean.params["mean"]) == (False, True)


@pytest.mark.parametrize("width", [4, 25])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_float32_and_float64_give_the_same_bits(width, metric, rng):
    X, V = (rng.standard_normal((n, width)).astype(np.float32) for n in (400, 150))
    y, y_val = rng.integers(0, 4, 400), rng.integers(0, 4, 150)
    radius = 0.7 if metric == "cosine" else float(np.sqrt(2 * width))
    results = {
        th.tknn_shapley(a, y, b, y_val, radius=radius, metric=metric).values.tobytes()
        for a in (X, X.astype(np.float64), np.asfortranarray(X))
        for b in (V, V.astype(np.float64))
    }
    assert len(results) == 1


def test_one_point_one_class_nobody_near_and_everybody_near(rng):
    one = th.tknn_shapley([[1.0]], ["a"], [[2.0]], ["a"], classes=["a", "b"])
    assert one.values.tolist() == [0.5]
    single = th.tknn_shapley(rng.random((5, 2)) + 1, ["a"] * 5, [[1.0, 1.0]], ["a"])
    assert single.values.tolist() == [0.0] * 5  # with one class the utility is 1 whatever happens
    X, V = rng.standard_normal((30, 2)), rng.standard_normal((4, 2))
    y, y_val = rng.integers(0, 2, 30), rng.integers(0, 2, 4)
    nobody = th.tknn_shapley(X, y, V + 100, y_val, radius=0.1, metric="euclidean")
    assert not nobody.values.any()
    assert nobody.utility_all == nobody.utility_none == 2.0
    everybody = th.tknn_shapley(X, y, V, y_val, radius=np.inf, metric="euclidean")
    shares = [np.mean(y == label) for label in y_val]
    np.testing.assert_allclose(everybody.utility_all, np.sum(shares))
    assert abs(everybody.efficiency_gap()) < 1e-13


def test_more_classes_than_a_byte_holds(rng):
    """Most classes have few points, so both ways of adding up are taken."""
    n, classes = 3000, 700
    y = np.where(rng.random(n) < 0.5, 3, rng.integers(0, classes, n))
    X, V = rng.standard_normal((n, 3)), rng.standard_normal((600, 3))
    y_val = rng.integers(0, classes, 600)
    got = th.tknn_shapley(X, y, V, y_val, radius=0.6, classes=range(classes))
    near = cosine_near(X, V, 0.6)
    match = y[:, None] == y_val
    same, c = (near & match).sum(axis=0), near.sum(axis=0)
    harmonic = np.concatenate([[0], np.cumsum(1 / np.arange(1, n + 1))])
    W = (harmonic[c] - 1) / np.maximum(c, 1)
    rest = (same - match) / np.maximum(c - 1, 1)
    worth = (match - 1 / classes) / np.maximum(c, 1) + np.where(c > 1, W * (match - rest), 0)
    np.testing.assert_allclose(got.values, (near * worth).sum(axis=1), atol=1e-12)


def cosine_near(X, V, radius):
    unit = [A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, V)]
    return 1 - unit[0] @ unit[1].T <= radius


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbors_agree_with_scikit_learn(metric, rng):
    X, V = rng.standard_normal((500, 6)), rng.standard_normal((90, 6))
    y, y_val = rng.integers(0, 2, 500), rng.integers(0, 2, 90)
    radius = 0.4 if metric == "cosine" else 2.0
    model = NearestNeighbors(radius=radius, metric=metric, algorithm="brute").fit(X)
    theirs = model.radius_neighbors(V, return_distance=False)
    counts = th.NeighborCounts(V, y_val, radius=radius, metric=metric).add(X, y)
    same = [int((y[found] == label).sum()) for found, label in zip(theirs, y_val, strict=True)]
    assert counts.same.tolist() == same
    assert (counts.same + counts.other).tolist() == [len(found) for found in theirs]


def test_utility_is_the_soft_accuracy_of_scikit_learns_radius_classifier(rng):
    X, V = rng.standard_normal((300, 4)), rng.standard_normal((80, 4))
    y, y_val = rng.integers(0, 3, 300), rng.integers(0, 3, 80)
    model = RadiusNeighborsClassifier(radius=3.0).fit(X, y)
    shares = model.predict_proba(V)[np.arange(80), y_val]
    valuation = th.tknn_shapley(X, y, V, y_val, radius=3.0, metric="euclidean")
    np.testing.assert_allclose(valuation.utility_all, shares.sum(), rtol=1e-12)


@pytest.mark.parametrize("name", SEMIVALUES)
def test_precomputed_distances_give_the_same_values_whole_and_in_blocks(name, rng):
    X, V = rng.integers(0, 4, (40, 3)).astype(float), rng.integers(0, 4, (30, 3)).astype(float)
    y, y_val = rng.integers(0, 3, 40), rng.integers(0, 3, 30)
    D = np.sqrt(((X[:, None] - V) ** 2).sum(axis=2))
    kept = {"radius": 2.0, "semivalue": ours(name)}
    want = th.tknn_shapley(X, y, V, y_val, metric="euclidean", **kept)
    for source in (D, [D[:, :7], D[:, 7:]], (D[:, lo : lo + 11] for lo in range(0, 30, 11))):
        got = th.tknn_shapley(source, y, None, y_val, metric="precomputed", **kept)
        np.testing.assert_allclose(got.values, want.values, atol=1e-13)


@given(problem=problems(most=10), radius=st.sampled_from([0.3, 0.5, 1.0]))
def test_the_zero_budget_score_is_the_value_of_the_point_alone(problem, radius):
    X, y, X_val, y_val, classes = problem
    score = th.zero_budget_score(X, y, X_val, y_val, radius=radius, classes=range(classes))
    alone = [
        th.tknn_shapley(
            X[i : i + 1], y[i : i + 1], X_val, y_val, radius=radius, classes=range(classes)
        ).values[0]
        for i in range(len(X))
    ]
    np.testing.assert_allclose(score.values, alone, atol=1e-13)
    assert np.isnan(score.utility_all)


def test_the_record_says_what_was_computed(rng):
    X, V = rng.standard_normal((9, 2)), rng.standard_normal((4, 2))
    valuation = th.tknn_shapley(X, list("aabbaabba"), V, list("abab"), semivalue=th.Beta(2, 1))
    assert valuation.method == "tknn-shapley"
    assert dict(valuation.params) == {
        "radius": 0.5, "metric": "cosine", "semivalue": semivalue_name(th.Beta(2, 1)),
        "classes": ["a", "b"], "validation_points": 4, "mean": False,
    }  # fmt: skip


def test_a_progress_bar_goes_to_standard_error(rng, capsys):
    X, V = rng.standard_normal((90, 2)), rng.standard_normal((40, 2))
    th.tknn_shapley(X, rng.integers(0, 2, 90), V, rng.integers(0, 2, 40), progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "tknn-shapley: 100%" in captured.err


def test_the_zero_budget_score_takes_its_classes_from_the_validation_set():
    X, X_val = [[1.1], [1.2], [1.3]], [[1.0], [0.9]]
    few = th.zero_budget_score(X, ["a", "b", "c"], X_val, ["a", "b"], metric="euclidean").values
    assert few.tolist() == [0.0, 0.0, -1.0]  # C = 2, whatever labels the points have
    with pytest.raises(th.InputError, match="labels not in classes"):
        th.zero_budget_score(
            X, ["a", "b", "c"], X_val, ["a", "b"], metric="euclidean", classes=["a", "b"]
        )
