from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import nearest_utility, nearest_values, semivalues

import thresher as th
from thresher import knn as nearest
from thresher.games.truncation import Truncation, error_bound, neighbors_kept

UTILITIES = ["soft-label", "jia2019"]
ROUNDING = 1e-12
pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    """However few points there are, only the nearest are sorted."""
    monkeypatch.setattr(nearest, "FULL_SORT", 1)


def keeping(kept, *data, **options):
    """The values of a run that keeps so many neighbors of every validation point."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "neighbors_kept", lambda n, k, error: kept)
        return th.knn_shapley(*data, metric="euclidean", **options)


def by_rank(match):
    """Points on a line, nearest first; label 1 is that of the validation point."""
    return np.arange(len(match), dtype=float)[:, None], np.array(match), [[-1.0]], [1]


@given(
    match=st.lists(st.integers(0, 1), min_size=2, max_size=6),
    k=st.integers(1, 5),
    more=st.integers(0, 4),
    utility=st.sampled_from(UTILITIES),
)
@example([1, 0, 1, 0, 1, 0], 1, 0, "soft-label")
@example([0, 1, 1, 0, 0, 1], 2, 1, "jia2019")
@example([1, 1, 1], 1, 1, "jia2019")  # one far point
@settings(max_examples=40)
def test_values_are_means_over_all_orders_of_the_far_points(match, k, more, utility):
    n = len(match)
    k = min(k, n - 1)
    kept = min(k + more, n - 1)
    want = np.zeros(n)
    orders = list(permutations(range(kept, n)))
    for tail in orders:
        order = [*range(kept), *tail]
        want += semivalues(lambda s, o=order: nearest_utility(s, o, match, k, 3, utility), n)
    got = keeping(kept, *by_rank(match), k=k, utility=utility, classes=[0, 1, 2])
    np.testing.assert_allclose(got.values, want / len(orders), atol=ROUNDING)
    assert abs(got.efficiency_gap()) < ROUNDING


@given(
    entries=st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2)), min_size=2, max_size=7),
    check=st.tuples(st.integers(-2, 2), st.integers(0, 2)),
    k=st.integers(1, 8),
    error=st.sampled_from([0.5, 0.3, 0.2, 0.1, 0.03]),
    utility=st.sampled_from(UTILITIES),
    width=st.sampled_from([1, 30]),
)
@settings(max_examples=100)
def test_enumerated_values_are_within_the_bound(entries, check, k, error, utility, width):
    X, y = (np.array(part) for part in zip(*entries, strict=True))
    exact = nearest_values(X[:, None], y, [[check[0]]], [check[1]], k=k, classes=3, version=utility)
    X, V = np.tile(X[:, None], width).astype(float), np.full((1, width), float(check[0]))
    got = th.knn_shapley(
        X, y, V, [check[1]], k=k, error=error, metric="euclidean", utility=utility, classes=range(3)
    )
    assert got.params["bound"] <= error
    assert abs(got.values - exact).max() <= got.params["bound"] + ROUNDING
    assert abs(got.efficiency_gap()) < ROUNDING


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 120),
    k=st.integers(1, 12),
    error=st.floats(0.002, 0.6),
    classes=st.integers(1, 5),
    utility=st.sampled_from(UTILITIES),
    metric=st.sampled_from(["euclidean", "cosine"]),
    width=st.sampled_from([2, 27]),
    grid=st.booleans(),
)
@settings(max_examples=150)
def test_every_value_of_every_validation_point_is_within_the_bound(
    seed, n, k, error, classes, utility, metric, width, grid
):
    rng = np.random.default_rng(seed)
    X, V = (rng.integers(1, 4, (m, width)) * 1.0 for m in (n, 5))
    if not grid:
        X, V = X + rng.random(X.shape), V + rng.random(V.shape)
    y = np.sort(rng.integers(0, classes, n)) if seed % 2 else rng.integers(0, classes, n)
    w = rng.integers(0, classes, 5)
    options = {"k": k, "utility": utility, "metric": metric, "classes": range(classes)}
    for v in range(5):
        data = X, y, V[v : v + 1], w[v : v + 1]
        exact = th.knn_shapley(*data, **options)
        short = th.knn_shapley(*data, **options, error=error)
        assert short.params["bound"] <= error
        assert abs(short.values - exact.values).max() <= short.params["bound"] + ROUNDING
        assert short.utility_all == exact.utility_all
        assert abs(short.efficiency_gap()) < ROUNDING
    for mean in (False, True):
        exact = th.knn_shapley(X, y, V, w, **options, mean=mean)
        short = th.knn_shapley(X, y, V, w, **options, mean=mean, error=error)
        assert short.params["bound"] <= error * (1 if mean else 5) * (1 + 1e-12)
        assert abs(short.values - exact.values).max() <= short.params["bound"] + ROUNDING


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize(
    ("n", "kept", "share"), [(1000, 9, 0.96), (1000, 2, 0.99), (50, 7, 0.75), (30, 20, 0.5)]
)
def test_the_bound_is_nearly_reached(utility, n, kept, share):
    """A search over so many matches right behind the first of the far points, or at the end."""
    worst = 0.0
    for count in [*range(1, min(50, n - kept)), *range(50, n - kept, 10)]:
        for first in (kept, kept + 1, n - count):
            match = np.zeros(n, int)
            match[first : first + count] = 1
            data = by_rank(match)
            exact = th.knn_shapley(*data, k=1, metric="euclidean", utility=utility)
            short = keeping(kept, *data, k=1, utility=utility)
            worst = max(worst, abs(short.values - exact.values).max())
    assert share * error_bound(n, kept) < worst <= error_bound(n, kept) + ROUNDING


def test_differences_among_kept_points_are_exact(rng):
    X, y = rng.standard_normal((200, 3)), rng.integers(0, 2, 200)
    V = rng.standard_normal((1, 3))
    exact = th.knn_shapley(X, y, V, [1], metric="euclidean").values
    short = keeping(20, X, y, V, [1]).values
    nearest_first = np.argsort(((X - V) ** 2).sum(axis=1))
    gap = (short - exact)[nearest_first]
    assert np.ptp(gap[:20]) < ROUNDING
    assert np.ptp(gap) > 1e-3
    for label in (0, 1):  # far points of one label are not told apart
        far = nearest_first[20:][y[nearest_first[20:]] == label]
        assert np.ptp(short[far]) == 0.0


@pytest.mark.parametrize("utility", UTILITIES)
def test_exact_values_where_no_error_is_allowed_or_none_is_made(utility, rng):
    X, y = rng.standard_normal((50, 3)), rng.integers(0, 3, 50)
    data = X, y, rng.standard_normal((9, 3)), rng.integers(0, 3, 9)
    want = th.knn_shapley(*data, utility=utility)
    assert want.params["neighbors_kept"] == 50
    assert want.params["bound"] == want.params["error"] == 0.0
    for error in (0, 0.0, 1e-12):
        got = th.knn_shapley(*data, utility=utility, error=error)
        assert got.values.tobytes() == want.values.tobytes()
        assert got.params["bound"] == 0.0
    got = th.knn_shapley(*data, utility=utility, k=60, error=0.9)
    want = th.knn_shapley(*data, utility=utility, k=60)
    assert got.values.tobytes() == want.values.tobytes()
    # one neighbor less: the order of a single far point is known, so nothing is lost but rounding
    got = keeping(49, *data, utility=utility)
    np.testing.assert_allclose(got.values, th.knn_shapley(*data, metric="euclidean",
                               utility=utility).values, atol=ROUNDING)  # fmt: skip


def test_all_are_sorted_where_more_than_one_in_32_would_be_kept(rng, monkeypatch):
    monkeypatch.undo()
    X, y = rng.standard_normal((3300, 3)), rng.integers(0, 2, 3300)
    data = X, y, X[:2] + 1, [0, 1]
    assert th.knn_shapley(*data, error=0.01).params["neighbors_kept"] == 97
    more = th.knn_shapley(*data, error=0.009)
    assert more.params["neighbors_kept"] == 3300
    assert more.values.tobytes() == th.knn_shapley(*data).values.tobytes()


@given(n=st.integers(2, 10**7), k=st.integers(1, 50), error=st.floats(1e-6, 2))
@example(10**6, 5, 0.01)
def test_as_few_neighbors_are_kept_as_the_bound_allows(n, k, error):
    kept = neighbors_kept(n, k, error)
    assert error_bound(n, kept) <= error
    assert kept == n or kept >= k
    assert kept <= max(k, np.ceil(1 / error))
    if k < kept < n:
        assert error_bound(n, kept - 1) > error * (1 - 1e-9)


def test_far_values_by_hand():
    """Four points, one kept: far ranks 2, 3, 4, one of them a match, in three orders."""
    plan = Truncation.of(np.array([3, 1]), 1, 1, excess=0.0, empty=0.0)
    match = (1 / 2 + 1 / 3 + 1 / 4) / 3
    other = -(1 / 6 + 2 / 12) / 6  # behind rank 2: rank 3 or 4; behind rank 3: rank 4
    np.testing.assert_allclose(plan.far(1, 1), [other, match])


@pytest.mark.parametrize("error", [-0.1, 1.5, float("nan"), "much", None, True])
def test_an_error_that_is_none_is_refused(error):
    with pytest.raises(th.InputError, match="error must be a number between 0 and 1"):
        th.knn_shapley([[0.0], [1.0]], [0, 1], [[0.0]], [0], metric="euclidean", error=error)
