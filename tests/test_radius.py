from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

import thresher as th


def leave_one_out(X, y, metric, radius, classes):
    """Accuracy and coverage by the definition, a point at a time."""
    right, covered = 0.0, 0
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        model = th.TKNNClassifier(radius=radius, metric=metric).fit(X[rest], y[rest])
        shares = np.zeros(len(classes))
        shares[np.searchsorted(classes, model.classes_)] = model.predict_proba(X[i : i + 1])[0]
        near = th.NeighborCounts(X[i : i + 1], y[i : i + 1], radius=radius, metric=metric,
                                 classes=list(classes)).add(X[rest], y[rest])  # fmt: skip
        reached = int(near.same[0] + near.other[0]) > 0
        shares = shares if reached else np.ones(len(classes))
        leads = shares == shares.max()
        right += leads[np.searchsorted(classes, y[i])] / leads.sum()
        covered += reached
    return right / len(X), covered / len(X)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_curves_are_leave_one_out_accuracy_and_coverage(metric, rng):
    X = rng.standard_normal((40, 2)) + 2
    y = (X[:, 0] + 0.3 * rng.standard_normal(40) > 2).astype(int)
    found = th.suggest_radius(X, y, metric=metric, candidates=10)
    for radius, accuracy, coverage in zip(found.radii, found.accuracy, found.coverage, strict=True):
        want = leave_one_out(X, y, metric, radius * (1 + 1e-9), np.array([0, 1]))
        np.testing.assert_allclose((accuracy, coverage), want, atol=1e-12)


def detection_at(distances, y, radius, classes):
    """By the definition: AUROC of scores of own labels against those of all others, a pair at a time."""
    scores = {True: [], False: []}
    for i in range(len(y)):
        near = [j for j in range(len(y)) if j != i and distances[i, j] <= radius]
        for label in range(classes):
            agree = sum(int(y[j]) == label for j in near)
            score = (classes * agree - len(near)) / np.sqrt(len(near) + 1)
            scores[label == int(y[i])].append(score)
    wins = [(a > b) + (a == b) / 2 for a in scores[True] for b in scores[False]]
    return float(np.mean(wins))


def test_detection_is_the_auroc_of_wrong_labels_and_the_middle_of_the_best_is_suggested(rng):
    X, y = rng.standard_normal((40, 2)), rng.integers(0, 3, 40)
    X[:, 0] += y
    found = th.suggest_radius(X, y, metric="euclidean", candidates=12)
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    want = [detection_at(distances, y, r * (1 + 1e-9), 3) for r in found.radii]
    np.testing.assert_allclose(found.detection, want, atol=1e-12)
    ranges = np.minimum(np.gradient(found.radii), np.median(found.radii))
    weights = np.exp((found.detection - max(want)) * np.sqrt(40) / 0.2) * ranges
    middle = np.exp((weights * np.log(found.radii)).sum() / weights.sum())
    apart = np.abs(np.log(found.radii / middle))
    assert found.radius == found.radii[apart.argmin()]


def test_of_many_classes_some_labels_are_tried(rng):
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 20
    X[:, 0] += y
    found = th.suggest_radius(X, y, metric="euclidean")
    assert 0.6 < found.detection.max() <= 1
    one = th.suggest_radius(X, [7] * 60, metric="euclidean")
    assert one.detection.tolist() == [0.5] * len(one.radii)


def test_points_that_are_far_out_hardly_change_the_suggestion(rng):
    X, y = rng.standard_normal((200, 2)), (rng.random(200) < 0.2).astype(int)
    X[:, 0] += 2 * y
    usual = th.suggest_radius(X, y, metric="euclidean")
    X[:5] *= 1e6
    assert usual / 1.5 < th.suggest_radius(X, y, metric="euclidean") < 1.5 * usual


def test_a_good_radius_is_suggested_and_can_be_passed_on():
    data = load_iris()
    found = th.suggest_radius(data.data, data.target, metric="euclidean")
    at = found.radii == found.radius
    assert at.any()
    assert found.detection[at] > found.detection.max() - 0.01
    assert found.accuracy[at] > 0.9
    assert (np.diff(found.radii) > 0).all()
    assert (np.diff(found.coverage) >= 0).all()
    assert found.coverage[-1] == 1.0
    assert repr(found).startswith("RadiusSuggestion(")
    X, y = data.data + 0.01, data.target
    by_object = th.tknn_shapley(X, y, data.data, y, radius=found, metric="euclidean")
    by_number = th.tknn_shapley(X, y, data.data, y, radius=float(found), metric="euclidean")
    assert by_object == by_number


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("width", [2, 3, 20])
def test_pairs_at_the_suggested_radius_are_near(metric, width, rng):
    """The radius is a distance between two points, so these two must count."""
    X, y = rng.integers(1, 4, (30, width)), rng.integers(0, 2, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", th.TwinWarning)
        for seed in range(5):
            found = th.suggest_radius(X + seed, y, metric=metric, candidates=8)
            for radius, coverage in zip(found.radii, found.coverage, strict=True):
                counts = th.NeighborCounts(X + seed, y, radius=radius, metric=metric).add(
                    X + seed, y
                )
                assert np.mean(counts.same + counts.other > 1) == coverage


@pytest.mark.filterwarnings("ignore::thresher.TwinWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("width", [2, 3, 10, 200])
def test_parallel_rows_are_within_the_suggested_radius_in_spite_of_rounding(dtype, width, rng):
    y = np.arange(40) % 2
    for _ in range(5):
        directions = rng.standard_normal((2, width))
        X, V = ((directions[y] * rng.uniform(0.1, 10, (40, 1))).astype(dtype) for _ in ("X", "V"))
        found = th.suggest_radius(V, y)
        assert 0 < found < 1e-5
        counts = th.NeighborCounts(V, y, radius=found).add(X, y)
        assert (counts.same == 20).all()
        assert (counts.other == 0).all()


@pytest.mark.parametrize("kinds", ["fd", "df"], ids=["float32 points", "float64 points"])
def test_rows_of_another_precision_are_parallel_still(kinds):
    """Rounding to float32 turns this direction by nearly as much as it can turn any."""
    long, short = 1 + 1.01 * 2.0**-24, 1 + 0.99 * 2.0**-24
    y = np.arange(8) % 2
    rows = np.array([[short, long], [-long, short]])[y] * 2.0 ** np.arange(8)[:, None]
    X, V = (rows.astype(kind) for kind in kinds)
    counts = th.NeighborCounts(V, y, radius=th.suggest_radius(V, y)).add(X, y)
    assert (counts.same == 4).all()
    assert (counts.other == 0).all()


@pytest.mark.parametrize("scale", [1e-149, 1e-150, 1e-152, 1e-160, 1e-170, 1e-300])
def test_a_radius_for_tiny_numbers_is_accepted_and_reaches_what_it_covers(scale, rng):
    X, y = rng.standard_normal((30, 3)) * scale, rng.integers(0, 2, 30)
    found = th.suggest_radius(X, y, metric="euclidean")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", th.TwinWarning)
        th.tknn_shapley(X, y, X, y, radius=found, metric="euclidean")
        for radius, coverage in zip(found.radii, found.coverage, strict=True):
            counts = th.NeighborCounts(X, y, radius=radius, metric="euclidean").add(X, y)
            assert np.mean(counts.same + counts.other > 1) == coverage


def test_it_is_a_float_that_can_be_computed_with_and_pickled(rng):
    found = th.suggest_radius(rng.standard_normal((20, 2)), [0, 1] * 10)
    assert isinstance(found, float)
    assert found * 0.5 < found
    assert f"{found:.3f}" == f"{float(found):.3f}"
    again = pickle.loads(pickle.dumps(found))
    assert repr(again) == repr(found)
    np.testing.assert_array_equal(again.radii, found.radii)
    np.testing.assert_array_equal(again.detection, found.detection)
    old = th.RadiusSuggestion(1.0, np.ones(1), np.ones(1), np.ones(1))  # as version 0.1 pickled it
    assert old.detection is None


def test_large_validation_sets_are_thinned(rng):
    X, y = rng.standard_normal((300, 3)), rng.integers(0, 2, 300)
    whole, thin = (th.suggest_radius(X, y, most_points=k) for k in (300, 50))
    assert not np.array_equal(whole.accuracy, thin.accuracy)
    kept = np.linspace(0, 299, 50).round().astype(int)
    again = th.suggest_radius(X[kept], y[kept])
    np.testing.assert_array_equal(thin.accuracy, again.accuracy)


def test_equal_rows_and_two_points(rng):
    same = th.suggest_radius(np.ones((5, 2)), [0, 0, 0, 1, 1], metric="euclidean")
    assert same.radius == 0.0
    assert th.suggest_radius([[0.0], [3.0]], [0, 1], metric="euclidean").radii.tolist() == [3.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "precomputed"}, "needs the rows"),
        ({"candidates": 1}, "candidates must be an integer >= 2"),
        ({"most_points": 0}, "most_points must be an integer >= 2"),
        ({"X_val": [[1.0]], "y_val": [0]}, "X_val has one row"),
        ({"rings": 7}, "the box has no rings"),
        ({"rings": 7, "task": "regression"}, "the box has no rings"),
        ({"rings": -7, "task": "regression"}, "rings must be an integer >= 1"),
        ({"kernel": "gaussian", "task": "regression"}, "kernel cannot be used with task"),
        ({"X_val": [[1.0], [0.0]]}, "X_val has zero rows"),
    ],
)
def test_wrong_settings_are_refused(change, message):
    arguments = {"X_val": [[1.0], [2.0]], "y_val": [0, 1], **change}
    with pytest.raises(th.InputError, match=message):
        th.suggest_radius(**arguments)
