"""Errors that releases state, next to the true ones."""

import numpy as np
import pytest

import thresher as th
from thresher.privacy.clipped_units import ClippedPoints
from thresher.privacy.entry_weights import Clipping, EntryWeights
from thresher.privacy.public_rows import Public

OWNED = 10


def problem(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(20_100, 5))
    y = (X[:, 0] + X[:, 1] + 0.5 * random.normal(size=len(X)) > 0) * 1
    return X[100:], y[100:], X[:100], y[:100]


def errors(data, epsilon):
    """The true error of a release of owners, the stated one, and the share of values in their intervals."""
    points = len(data[1])
    found = th.dp_tknn_shapley(
        *data, epsilon=epsilon, delta=1e-4, seed=0, owners=np.arange(points) // OWNED,
        points_per_owner=OWNED, points=points,
    )  # fmt: skip
    exact = th.tknn_shapley(*data).values
    true = np.sqrt(((found.values - exact) ** 2).mean() / (exact**2).mean())
    inside = ((found.error.low <= exact) & (exact <= found.error.high)).mean()
    return true, found.error.relative, inside


def test_releases_of_owners_state_their_error_within_a_factor():
    """With small noise they once stated three times too much."""
    true, stated, inside = np.mean([errors(problem(seed), 10) for seed in range(3)], axis=0)
    assert true / 1.5 < stated < 1.5 * true
    assert 0.85 < inside < 0.97


def test_points_longer_than_all_public_rows_are_reckoned_with():
    random = np.random.default_rng(0)
    near = random.random((40, 40)) < random.uniform(0.2, 0.8, 40)[:, None]
    public = Public(np.arange(40), np.zeros(40, np.int32), near)
    entries = EntryWeights.alike(40)
    longest = int(near.sum(axis=1).max())
    raw = np.concatenate([near.sum(axis=0) / 39, np.zeros(40)])
    tight, wide = (
        ClippedPoints(public, Clipping(bound, 64, entries), raw, slice(None))
        for bound in (longest, 3 * longest)
    )
    np.testing.assert_allclose(tight.kept, 1)
    assert (tight.factors(8, random) > 1).any()  # some points may be clipped after all
    assert (wide.factors(8, random) == 1).all()


def letters(shift, seed=0):
    """300 points of 26 classes, and validation rows that lie `shift` deviations away."""
    random = np.random.default_rng(seed)
    groups, which = 1.5 * random.normal(size=(52, 8)), random.integers(0, 52, 500)
    X = groups[which] + random.normal(size=(500, 8))
    X_val = X[:200] + shift * X[:200].std(axis=0)
    center, scale = X_val.mean(axis=0), X_val.std(axis=0)
    y, _ = th.flip_labels(which[200:] % 26, fraction=0.1, seed=seed)
    return (X[200:] - center) / scale, y, (X_val - center) / scale, which[:200] % 26


@pytest.mark.parametrize("epsilon", [1, 10])
@pytest.mark.parametrize("mechanism", ["table", "cells"])
def test_points_unlike_the_validation_set_state_no_error(mechanism, epsilon):
    options = {"epsilon": epsilon, "delta": 1e-4, "seed": 0, "mechanism": mechanism}
    alike = th.dp_tknn_shapley(*letters(0), **options).error
    assert alike.relative is not None
    shifted = th.dp_tknn_shapley(*letters(1), **options).error
    assert shifted.relative is None
    assert "differ from the validation set" in shifted.why
    assert np.isnan(shifted.low).all()


def test_cells_of_many_classes_state_their_error_within_a_factor():
    """With few public rows of each class in a cell, they once stated half of it."""
    found = []
    for seed in range(4):
        data = letters(0, seed)
        exact = th.tknn_shapley(*data).values
        release = th.dp_tknn_shapley(*data, epsilon=10, delta=0, mechanism="cells", seed=seed)
        true = np.sqrt(((release.values - exact) ** 2).mean() / (exact**2).mean())
        inside = (release.error.low <= exact) & (exact <= release.error.high)
        found.append((true, release.error.relative, inside.mean()))
    true, stated, inside = np.mean(found, axis=0)
    assert true / 1.5 < stated < 1.5 * true
    assert 0.8 < inside < 0.97


def test_other_shares_of_classes_are_no_misfit():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 5))
    y = (X[:, 0] + 0.5 * random.normal(size=3000) > 0) * 1
    rare = (y == 1) | (np.arange(3000) % 6 == 0)  # one in six points of class 0 is left
    rare[:200] = True
    data = X[rare][200:], y[rare][200:], X[:200], y[:200]
    for mechanism in ("table", "cells"):
        options = {"epsilon": 4, "delta": 1e-4, "seed": 0, "mechanism": mechanism}
        assert th.dp_tknn_shapley(*data, **options).error.relative is not None


def test_numbers_state_their_error_within_a_factor():
    """Clipping shortens sums of targets as it shortens counts. The error was once stated triple."""
    random = np.random.default_rng(0)
    X = random.random((3200, 2))
    y = np.floor(4 * X[:, 0]) + (X[:, 1] > 0.5) + 0.1 * random.normal(size=3200)
    data = X[200:], y[200:], X[:200], y[:200]
    about = {"metric": "euclidean", "radius": 0.12, "task": "regression", "bounds": (-0.5, 4.5)}
    exact = th.tknn_shapley(*data, **about).values
    found = th.dp_tknn_shapley(*data, epsilon=3, delta=1e-5, seed=0, **about)
    true = np.sqrt(((found.values - exact) ** 2).mean() / (exact**2).mean())
    assert true / 1.5 < found.error.relative < 1.5 * true
