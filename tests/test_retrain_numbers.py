"""Methods that retrain a regressor: their values by definition, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import semivalues
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mean_squared_error
from sklearn.tree import DecisionTreeRegressor

import thresher as th

EMPTY = 0.5


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X, V = random.normal(size=(5, 2)), random.normal(size=(6, 2))
    return X, X @ [1.0, -2.0] + random.normal(size=5), V, V @ [1.0, -2.0]


def utility_of(data, model):
    X, y, V, y_val = data

    def utility(coalition):
        rows = list(coalition)
        if not rows:
            return -float(((y_val - EMPTY) ** 2).mean())
        if len(rows) == 1:
            return -float(((y_val - y[rows[0]]) ** 2).mean())
        return -mean_squared_error(y_val, model.fit(X[rows], y[rows]).predict(V))

    return utility


@pytest.mark.parametrize("model", [None, DecisionTreeRegressor(random_state=0)])
def test_leave_one_out_is_exact(data, model):
    wanted = semivalues(utility_of(data, model or Ridge()), 5, "leave-one-out")
    about = {"model": model, "task": "regression", "empty": EMPTY, "workers": 1}
    found = th.leave_one_out(*data, **about)
    np.testing.assert_allclose(found.values, wanted, rtol=1e-12, atol=1e-12)
    summed = th.leave_one_out(*data, mean=False, **about)
    np.testing.assert_allclose(summed.values, 6 * wanted, rtol=1e-12, atol=1e-12)
    assert found.params["utility"] == "minus the mean squared error"
    assert found.params["task"] == "regression"


@pytest.mark.parametrize(
    ("function", "semivalue"),
    [(th.data_shapley, "shapley"), (th.beta_shapley, ("beta", 4, 1)), (th.data_banzhaf, "banzhaf")],
)
def test_sampled_values_are_within_their_errors_of_enumeration(data, function, semivalue):
    wanted = semivalues(utility_of(data, Ridge()), 5, semivalue)
    found = function(*data, task="regression", empty=EMPTY, evaluations=4000, workers=1)
    assert (np.abs(found.values - wanted) < 4 * found.standard_errors + 1e-9).all()
    if semivalue == "shapley":
        assert found.efficiency_gap() < 1e-9


def test_the_mean_of_validation_targets_is_predicted_for_none(data):
    found = th.data_shapley(*data, task="regression", evaluations=8, workers=1)
    assert found.params["empty"] == pytest.approx(data[3].mean())
    assert found.utility_none == pytest.approx(-data[3].var())


def test_truncation_is_a_share_of_what_all_points_gain(data):
    whole = {"task": "regression", "workers": 1, "evaluations": 400}
    short = th.data_shapley(*data, truncation=0.9, **whole)
    assert short.efficiency_gap() < 1e-9
    assert not np.array_equal(short.values, th.data_shapley(*data, **whole).values)


class Fails(RegressorMixin, BaseEstimator):
    """Fits five points only."""

    def fit(self, X, y):
        if len(X) < 5:
            raise ValueError("too few")
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_a_fit_that_fails_predicts_the_mean_target(data):
    with pytest.warns(th.FitWarning, match="predicted the mean target of their points instead"):
        found = th.leave_one_out(*data, model=Fails(), task="regression", workers=1)
    _, y, _, y_val = data
    means = np.array([np.delete(y, row).mean() for row in range(5)])
    wanted = ((y_val - means[:, None]) ** 2).mean(axis=1) - ((y_val - y.mean()) ** 2).mean()
    np.testing.assert_allclose(found.values, wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"model": LogisticRegression()}, "must be a scikit-learn regressor"),
        ({"accelerate": True}, "accelerate is for classes"),
        ({"classes": [0, 1]}, "classes cannot be used with task='regression'"),
        ({"empty": "none"}, "empty must be a finite number"),
        ({"task": "numbers"}, "task must be"),
    ],
)
def test_what_does_not_fit_numbers_is_refused(data, more, why):
    with pytest.raises(th.InputError, match=why):
        th.data_shapley(*data, **({"task": "regression"} | more))


def test_a_checkpoint_of_numbers_goes_on(data, tmp_path):
    about = {"task": "regression", "workers": 1, "checkpoint": tmp_path / "run"}
    th.data_shapley(*data, evaluations=40, **about)
    more = th.data_shapley(*data, evaluations=80, **about)
    again = th.data_shapley(*data, evaluations=80, task="regression", workers=1)
    np.testing.assert_array_equal(more.values, again.values)
    with pytest.raises(th.InputError, match="run"):
        th.data_shapley(*data, evaluations=80, empty=3.0, **about)
