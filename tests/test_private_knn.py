"""Private KNN-Shapley values: sensitivity, sampling, noise."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases import X_VAL, Y_VAL, X, Y

import thresher as th
from thresher.kernels.recursion import add_sampled_values


def knn_values(distances, matches, k):
    """Jia et al. 2019 by their recursion, for one validation point."""
    rank = np.argsort(distances, kind="stable")
    n, values = len(rank), np.zeros(len(rank))
    value = matches[rank[-1]] / max(k, n)
    values[rank[-1]] = value
    for r in range(n - 1, 0, -1):
        value += (matches[rank[r - 1]] - matches[rank[r]]) / max(k, r)
        values[rank[r - 1]] = value
    return values


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_removing_a_point_moves_another_value_by_at_most_the_sensitivity(k):
    """Every pattern of labels of up to 8 points, every point removed; the bound is reached."""
    worst = 0.0
    for n in range(2, 9):
        for matches in itertools.product([0.0, 1.0], repeat=n):
            whole = knn_values(np.arange(n), np.array(matches), k)
            for gone in range(n):
                kept = [i for i in range(n) if i != gone]
                less = knn_values(np.arange(n - 1), np.array(matches)[kept], k)
                worst = max(worst, float(np.abs(whole[kept] - less).max()))
    assert worst <= 1 / (k * (k + 1)) + 1e-12
    if k < 5:
        assert worst == pytest.approx(1 / (k * (k + 1)))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_sensitivity_is_that_of_one_of_the_two_utilities(k):
    """With soft labels, a point that is removed moves another value by up to 1/4."""

    def values(matches):
        points = np.arange(1.0, len(matches) + 1)[:, None], matches, [[0.0]], [1]
        options = {"k": k, "metric": "euclidean", "classes": [0, 1], "utility": "soft-label"}
        return th.knn_shapley(*points, **options).values

    worst = 0.0
    for n in range(2, 6):
        for matches in itertools.product([0, 1], repeat=n):
            whole = values(list(matches))
            for gone in range(n):
                kept = [i for i in range(n) if i != gone]
                less = values([matches[i] for i in kept])
                worst = max(worst, float(np.abs(whole[kept] - less).max()))
    assert worst == pytest.approx(0.25)


@pytest.mark.parametrize(
    "kernel", [add_sampled_values, add_sampled_values.py_func], ids=["jit", "py"]
)
@given(
    matches=st.lists(st.integers(0, 1), min_size=1, max_size=9),
    sampled=st.lists(st.booleans(), min_size=9, max_size=9),
    k=st.integers(1, 4),
)
def test_a_point_is_valued_beside_the_sample(kernel, matches, sampled, k):
    n = len(matches)
    sampled = np.array(sampled[:n])
    keys = np.array([(i << 1) | m for i, m in enumerate(matches)], np.uint64)
    found = np.zeros(n, np.int64)
    kernel(keys, sampled, k, 1e9, found)
    for i in range(n):
        group = [j for j in range(n) if sampled[j] or j == i]
        wanted = knn_values(np.arange(len(group)), np.array(matches, float)[group], k)
        assert found[i] / 1e9 == pytest.approx(wanted[group.index(i)], abs=2e-9)


def test_private_knn_values_are_exact_ones_with_noise():
    options = {"epsilon": 90.0, "delta": 0.4, "k": 3, "seed": 1}
    found = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, **options)
    truth = th.knn_shapley(X, Y, X_VAL, Y_VAL, k=3, utility="jia2019").values
    spread = found.record["sigma"]
    assert abs((found.values - truth).std() / spread - 1) < 0.2
    assert found.price_list is None
    assert found.table is None
    assert (found.is_noise, found.why_untold) == (True, "")
    clear = th.dp_knn_shapley(X[:1], Y[:1], X_VAL, Y_VAL, **options | {"k": 1})
    assert not clear.is_noise
    with pytest.raises(th.InputError, match="the release has no owners"):
        found.values_of("anna")
    assert "no protection against collusion" in found.record["caveat"]
    assert json.loads(found.to_json()).keys() == {"format", "record"}


def test_private_knn_with_a_sample_needs_less_noise():
    pytest.importorskip("dp_accounting")
    options = {"epsilon": 0.3, "delta": 1e-4, "seed": 1}
    whole = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, **options)
    some = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, subsample=0.01, **options)
    assert some.record["sigma"] < whole.record["sigma"] / 5
    assert type(some).__name__ == "SeededKNNRelease"
    assert isinstance(some, th.SeededRelease)
    assert not isinstance(some, th.Release)


def test_private_knn_under_replacement_needs_more_noise():
    pytest.importorskip("dp_accounting")
    for subsample in (None, 0.05):
        options = {"epsilon": 1, "delta": 1e-4, "seed": 0, "subsample": subsample}
        plain = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, **options)
        other = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, adjacency="replace-one", **options)
        assert other.record["sigma"] > 1.2 * plain.record["sigma"]
        assert other.record["epsilon_replace_one"] == 1.0
        assert other.record["epsilon_add_remove"] < 1.0 < plain.record["epsilon_replace_one"]


def test_private_knn_noise_is_for_all_validation_points_together():
    found = th.dp_knn_shapley(X, Y, X_VAL, Y_VAL, epsilon=1, delta=1e-4, seed=0)
    assert found.record["sigma"] == pytest.approx(3.1857 * 100 / 30, rel=1e-3)
