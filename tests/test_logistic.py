"""The logistic kernel against scikit-learn, trained until nothing moves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import thresher as th
from thresher.kernels import logistic
from thresher.retrain.newton import Newton
from thresher.retrain.utility import Game, Refit


def make_game(rng, n=60, width=3, classes=2, scale=1.0):
    X, V = (scale * rng.normal(size=(size, width)) for size in (n, 80))
    slopes = rng.normal(size=(width, classes))
    codes, val_codes = ((A @ slopes / scale + rng.gumbel(size=(len(A), classes))).argmax(axis=1)
                        for A in (X, V))  # fmt: skip
    codes[:classes] = range(classes)
    return Game(X, codes, V, val_codes, np.arange(classes))


def coalitions(rng, n, count=40):
    """Prefixes of a permutation, then random halves: near each other, then far."""
    order = rng.permutation(n)
    prefixes = [np.isin(np.arange(n), order[:size]) for size in range(1, n, 3)]
    return prefixes + list(rng.integers(0, 2, (count, n), dtype=bool))


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("settings", [{}, {"C": 0.01}, {"C": 100.0}, {"fit_intercept": False}])
def test_utilities_are_those_of_the_optimum(rng, classes, settings):
    game = make_game(rng, classes=classes)
    masks = coalitions(rng, 60)
    model = LogisticRegression(tol=1e-10, max_iter=10_000, **settings)
    found = Newton.of(game, LogisticRegression(**settings)).evaluate(masks)
    want = Refit(game, model).evaluate(masks)
    assert found.utilities == want.utilities
    assert found.warned == 0  # every one by the kernel


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("scale", [1e-2, 1e2, 1e4])
def test_features_of_any_scale(rng, scale, classes):
    """Large features hardly feel the penalty: as the same ones of scale 1 with none to speak of."""
    game = make_game(rng, classes=classes)
    masks = coalitions(rng, 60)
    scaled = Game(scale * game.X, game.codes, scale * game.V, game.val_codes, game.labels)
    found = Newton.of(scaled, LogisticRegression()).evaluate(masks)
    same = Newton.of(game, LogisticRegression(C=scale**2)).evaluate(masks)
    np.testing.assert_allclose(found.utilities, same.utilities, atol=1.5 / 80)
    assert found.warned < len(masks) / 10


@pytest.mark.parametrize("classes", [2, 3])
def test_columns_far_from_zero_are_no_obstacle(rng, classes):
    """A column of timestamps: an intercept undoes any shift."""
    game = make_game(rng, classes=classes)
    shift = np.array([1.7e9, 0, 0])
    moved = Game(game.X + shift, game.codes, game.V + shift, game.val_codes, game.labels)
    masks = coalitions(rng, 60)
    found = Newton.of(moved, LogisticRegression()).evaluate(masks)
    assert found.warned == 0
    want = Newton.of(game, LogisticRegression()).evaluate(masks).utilities
    np.testing.assert_allclose(found.utilities, want, atol=1.5 / 80)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("train", [logistic.train, logistic.train.py_func], ids=["jit", "python"])
def test_weights_are_the_minimum(rng, classes, train):
    game = make_game(rng, classes=classes)
    table = np.vstack([game.X.T, np.ones(60)])
    rows = 1 if classes == 2 else classes
    weights, factor = np.zeros((rows, 4)), np.zeros((4 * rows, 4 * rows))
    assert train(table, game.codes, np.arange(60), np.ones(3), weights, factor, False)
    model = LogisticRegression(tol=1e-12, max_iter=10_000).fit(game.X, game.codes)
    scores, want = (weights @ table).T, model.decision_function(game.X).reshape(60, -1)
    if rows > 1:  # told up to a constant
        want = want - want.mean(axis=1, keepdims=True)
        scores = scores - scores.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(scores, want, atol=1e-5)


def test_the_gradient_is_zero_where_the_kernel_stops(rng):
    game = make_game(rng, classes=3)
    table = np.vstack([game.X.T, np.ones(60)])
    weights, factor = np.zeros((3, 4)), np.zeros((12, 12))
    penalties = np.array([0.5, 0.5, 0.5])
    assert logistic.train(table, game.codes, np.arange(60), penalties, weights, factor, False)
    scores = weights @ table
    share = np.exp(scores) / np.exp(scores).sum(axis=0)
    gradient = (share - np.eye(3)[:, game.codes]) @ table.T
    gradient[:, :3] += 0.5 * weights[:, :3]
    assert abs(gradient).max() < 1e-7


@pytest.mark.parametrize("kernel", [logistic.exponentials, logistic.exponentials.py_func])
def test_exponentials(kernel):
    x = np.concatenate([np.linspace(-700, 700, 997), np.linspace(-1, 1, 101), [0.0]])
    out = np.empty_like(x)
    kernel(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-15)


def test_a_table_that_defeats_the_kernel_goes_to_scikit_learn(rng):
    game = make_game(rng)
    stuck = Newton.of(game, LogisticRegression())
    stuck.table[:] = np.nan
    masks = coalitions(rng, 60)[10:15]
    want = Refit(game, LogisticRegression()).evaluate(masks).utilities
    found = stuck.evaluate(masks)
    assert found.utilities == want
    assert found.warned == 5
    assert "not accelerated" in found.complaint


def test_collinear_and_constant_columns(rng):
    game = make_game(rng)
    X, V = (np.column_stack([A, A[:, 0], np.ones(len(A))]) for A in (game.X, game.V))
    wide = Game(X, game.codes, V, game.val_codes, game.labels)
    masks = coalitions(rng, 60)
    model = LogisticRegression(tol=1e-10, max_iter=10_000)
    want = Refit(wide, model).evaluate(masks).utilities
    assert Newton.of(wide, LogisticRegression()).evaluate(masks).utilities == want


def test_the_accelerated_values_are_the_plain_ones(rng):
    game = make_game(rng, n=40)
    data = game.X, game.codes, game.V, game.val_codes
    exact = LogisticRegression(tol=1e-10, max_iter=10_000)
    for method in (th.leave_one_out, th.data_shapley, th.beta_shapley, th.data_banzhaf):
        more = {} if method is th.leave_one_out else {"evaluations": 200}
        plain = method(*data, model=exact, **more)
        fast = method(*data, accelerate=True, **more)
        assert fast.values.tolist() == plain.values.tolist()
        assert fast.standard_errors.tolist() == plain.standard_errors.tolist()
