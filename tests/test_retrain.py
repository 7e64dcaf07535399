"""Values by retraining against enumeration over all coalitions, and the edges of the game."""

from __future__ import annotations

import dataclasses
import functools
import warnings

import numpy as np
import pytest
from games import FromFunction, Moody, accuracy_game, eight_points, values_of
from oracles import semivalues, threshold_utility
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import thresher as th
from thresher.games.semivalues import coalition_sizes
from thresher.passes.checkpoint import Checkpoint
from thresher.ranking import agreement
from thresher.retrain.coalitions import permutation
from thresher.retrain.engine import Journal, run
from thresher.retrain.plans import LeaveOneOut, Limit, RandomSubsets, Start, Walks

METHODS = {
    "data_shapley": ("shapley", {}),
    "beta_shapley": (("beta", 4, 1), {"alpha": 4, "beta": 1}),
    "data_banzhaf": ("banzhaf", {}),
}
SAMPLED = pytest.mark.parametrize("name", METHODS)
METHOD = pytest.mark.parametrize("name", ["leave_one_out", *METHODS])


class Column(GaussianNB):
    def predict(self, X):
        return super().predict(X)[:, None]


class Wide(GaussianNB):
    def predict(self, X):
        return super().predict(X)[:1]


class Wordy(GaussianNB):
    def predict(self, X):
        return super().predict(X).astype(str)


# Estimates of 8 values are compared with enumeration by |estimate - value| / standard error. Beyond
# 4.5 is one false alarm in 18,000 for a game of 8 points (normal tails); the seeds are fixed.
MOST_ERRORS = 4.5


def assert_unbiased(valuation, want):
    scaled = np.abs(valuation.values - want) / np.maximum(valuation.standard_errors, 1e-12)
    assert scaled.max() < MOST_ERRORS, scaled


@SAMPLED
@pytest.mark.parametrize("seed", [0, 1])
def test_estimates_equal_enumeration_within_their_errors(name, seed):
    """14,000 trained coalitions: 2,000 permutations, or 14,000 subsets."""
    semivalue, arguments = METHODS[name]
    X, y, V, y_val = eight_points(seed)
    valuation = getattr(th, name)(X, y, V, y_val, evaluations=14_000, seed=seed, **arguments)
    assert_unbiased(valuation, values_of(accuracy_game(X, y, V, y_val), 8, semivalue))
    assert 0 < valuation.standard_errors.max() < 0.01


@SAMPLED
def test_three_classes_and_another_model(name):
    semivalue, arguments = METHODS[name]
    X, y, V, y_val = eight_points(5, classes=3)
    model = KNeighborsClassifier(1)
    valuation = getattr(th, name)(X, y, V, y_val, model=model, evaluations=7000, **arguments)
    assert_unbiased(valuation, values_of(accuracy_game(X, y, V, y_val, model), 8, semivalue))


def test_leave_one_out_is_exact():
    X, y, V, y_val = eight_points(2)
    valuation = th.leave_one_out(X, y, V, y_val)
    want = values_of(accuracy_game(X, y, V, y_val), 8, "leave-one-out")
    np.testing.assert_allclose(valuation.values, want, atol=1e-12)
    assert valuation.standard_errors.tolist() == [0.0] * 8


def threshold_game(rng, n=8, classes=3):
    """The threshold utility of five validation points, and its semivalues by enumeration."""
    near, match = rng.random((5, n)) < 0.6, rng.random((5, n)) < 0.5
    game = lambda s: sum(threshold_utility(s, a, b, classes) for a, b in zip(near, match))  # noqa: E731
    return game, 5 / classes, float(game(range(n)))


def estimate(plan, game, n):
    utility = FromFunction(game, n)
    journal = Journal(Checkpoint(None, {"size": 32}))
    run(utility, plan, journal, workers=1, processes=False, pace=1e-4)
    values, errors = plan.result()
    return th.Valuation(values, "estimate", {}, 0.0, 0.0, None, errors)


@pytest.mark.parametrize("beta", [(1, 1), (4, 1), (1, 4), (16, 1), (0.5, 0.5)])
def test_permutations_give_the_known_values_of_the_threshold_utility(rng, beta):
    """4,000 permutations of 8 points; the closed forms equal this enumeration (test_prices)."""
    game, none, full = threshold_game(rng)
    sizes = coalition_sizes(th.Beta(*beta), 8)
    plan = Walks(Start(8, none, full, 32, seed=1), sizes, Limit(28_000))
    assert_unbiased(estimate(plan, game, 8), semivalues(game, 8, ("beta", *beta)))
    assert plan.walks == 28_000 // plan.cost


def test_subsets_give_the_known_values_of_the_threshold_utility(rng):
    """20,000 random subsets of 8 points."""
    game, none, full = threshold_game(rng)
    plan = RandomSubsets(Start(8, none, full, 32, seed=2), Limit(20_000))
    assert_unbiased(estimate(plan, game, 8), semivalues(game, 8, "banzhaf"))


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out"])
def test_estimators_meet_the_closed_forms_of_tknn_shapley(rng, semivalue):
    """30 points, where enumeration is out of reach; 60,000 evaluations."""
    n = 30
    X, V = rng.normal(size=(n, 2)), rng.normal(size=(4, 2))
    y, y_val = rng.integers(0, 2, n), rng.integers(0, 2, 4)
    exact = th.tknn_shapley(X, y, V, y_val, radius=1.2, metric="euclidean", semivalue=semivalue)
    near = ((V[:, None] - X) ** 2).sum(axis=2) <= 1.2**2
    match = y_val[:, None] == y
    game = lambda s: float(sum(threshold_utility(s, a, b, 2) for a, b in zip(near, match)))  # noqa: E731
    full = game(range(n))
    start, limit = Start(n, 2.0, full, 32, seed=0), Limit(60_000)
    plan = {
        "shapley": Walks(start, np.full(n, 1 / n), limit),
        "banzhaf": RandomSubsets(start, limit),
        "leave-one-out": LeaveOneOut(dataclasses.replace(start, size=7)),
    }[semivalue]
    found = estimate(plan, game, n)
    if semivalue == "leave-one-out":
        np.testing.assert_allclose(found.values, exact.values, atol=1e-12)
    else:  # 30 values: one false alarm in 5,000
        assert_unbiased(found, exact.values)


@pytest.mark.parametrize("name", ["walks", "subsets"])
def test_standard_errors_are_the_spread_of_repetitions(rng, name):
    """300 repetitions of 40 walks or 280 subsets: the spread of an estimate has a relative deviation
    of 4 %, that of its mean over 8 points less; beyond 0.8 to 1.2 is a false alarm in 10^6."""
    game, none, full = threshold_game(rng)
    known = {}
    lookup = lambda s: known.setdefault(tuple(s), game(s))  # noqa: E731
    found = []
    for seed in range(300):
        start, limit = Start(8, none, full, 32, seed), Limit(280)
        if name == "walks":
            plan = Walks(start, np.full(8, 1 / 8), limit)
        else:
            plan = RandomSubsets(start, limit)
        found.append(estimate(plan, lookup, 8))
    spread = np.std([v.values for v in found], axis=0, ddof=1)
    told = np.sqrt(np.mean([v.standard_errors**2 for v in found], axis=0))
    assert 0.8 < (spread / told).mean() < 1.2


@pytest.mark.parametrize(("name", "samples"), [("shapley", 5), ("beta", 5), ("banzhaf", 10)])
def test_two_standard_errors_hold_the_value_after_few_samples(name, samples):
    """400 repetitions with a classifier that is trained: the share of the 8 values within two
    standard errors has a deviation of at most 0.1 between repetitions, so that of its mean is below
    0.005. It is at least 0.938; below 0.915 is a false alarm in 10^5. The spread of a point's own
    samples alone gives 0.79 to 0.89."""
    X, y, V, y_val = eight_points(3)
    game = accuracy_game(X, y, V, y_val)
    semivalue = ("beta", 4, 1) if name == "beta" else name
    want = values_of(game, 8, semivalue)
    sizes = coalition_sizes(th.Beta(4, 1) if name == "beta" else th.Beta(1, 1), 8)
    ends, held = (game([]), game(range(8))), []
    for seed in range(400):
        start = Start(8, *ends, 32, seed)
        if name == "banzhaf":
            plan = RandomSubsets(start, Limit(samples))
        else:
            plan = Walks(start, sizes, Limit(7 * samples))
        found = estimate(plan, game, 8)
        known = np.isfinite(found.standard_errors)
        gap = np.abs(found.values - want)[known]
        held.append((gap <= 2 * found.standard_errors[known] + 1e-12).mean())
    assert np.mean(held) > 0.915


def test_shapley_values_add_up_in_every_run():
    X, y, V, y_val = eight_points()
    for truncation in (0.0, 0.1):
        valuation = th.data_shapley(X, y, V, y_val, evaluations=70, truncation=truncation)
        assert abs(valuation.efficiency_gap()) < 1e-12


def test_truncation_saves_fits(rng):
    X, V = rng.normal(size=(60, 2)), rng.normal(size=(50, 2))
    y, y_val = X[:, 0] > 0, V[:, 0] > 0
    arguments = {"evaluations": 59 * 4, "accelerate": True}
    whole = th.data_shapley(X, y, V, y_val, **arguments)
    cut = th.data_shapley(X, y, V, y_val, truncation=0.1, **arguments)
    assert whole.params["evaluations"] == 59 * 4
    assert cut.params["evaluations"] <= 59 * 4
    assert cut.standard_errors.mean() < whole.standard_errors.mean()  # more permutations fit


def test_positions_without_weight_are_not_trained_for():
    sizes = coalition_sizes(th.Beta(16, 1), 2000)
    plan = Walks(Start(2000, 0.0, 1.0, 64, seed=0), sizes, Limit(None))
    assert plan.cost < 1700
    assert plan.weights.sum() == pytest.approx(2000)


def test_the_ranking_becomes_stable():
    X, y, V, y_val = eight_points()
    loose = th.data_shapley(X, y, V, y_val, stability=0.8)
    strict = th.data_shapley(X, y, V, y_val, stability=0.99)
    assert loose.params["evaluations"] <= strict.params["evaluations"]
    assert strict.params["stability"] >= 0.99
    for method in (th.data_shapley, th.beta_shapley, th.data_banzhaf):
        with pytest.warns(th.FitWarning, match="stability=1 was not reached with 21 evaluations"):
            found = method(X, y, V, y_val, stability=1, evaluations=21)
        assert (found.params["evaluations"], "stability" in found.params) == (21, True)
    one = th.data_shapley([[0.0]], ["a"], [[1.0]], ["a"], stability=0.9, evaluations=9)
    assert len(one) == 1, "nothing is random, so nobody is warned"
    assert th.data_banzhaf(X, y, V, y_val, stability=0.9).params["stability"] >= 0.9


def test_stability_is_the_agreement_with_a_repetition(rng):
    """Normal values with as much noise as signal; 2,000 points, so that 0.05 is three deviations."""
    truth = rng.normal(size=2000)
    one, other, third, fourth = (truth + 2**0.5 * rng.normal(size=2000) for _ in range(4))
    both, again = (one + other) / 2, (third + fourth) / 2
    ranks = [np.argsort(np.argsort(values)) for values in (both, again)]
    assert agreement(one, other) == pytest.approx(np.corrcoef(ranks)[0, 1], abs=0.05)
    assert np.isnan(agreement(np.zeros(3), np.zeros(3)))
    assert agreement(np.zeros(3), np.arange(3.0)) == 0
    assert agreement(np.arange(3.0), -np.arange(3.0)) == 0


@METHOD
def test_every_coalition_has_a_utility(name):
    """A model that fails on fewer than four points counts as their most frequent class."""
    X, y, V, y_val = eight_points()
    y[:] = [0, 0, 0, 1, 1, 1, 0, 1]
    method = getattr(th, name)
    more = {} if name == "leave_one_out" else {"evaluations": 140}
    if name == "leave_one_out":
        assert np.isfinite(method(X, y, V, y_val, model=Moody(), **more).values).all()
        return
    with pytest.warns(th.FitWarning, match="failed.*RuntimeError: too few points"):
        valuation = method(X, y, V, y_val, model=Moody(), **more)
    assert np.isfinite(valuation.values).all()
    assert valuation.params["failed_fits"] > 0


def test_the_utility_of_a_failed_fit_is_that_of_the_most_frequent_class():
    X, y, V, y_val = eight_points()
    y[:] = [0, 1, 1, 0, 0, 0, 1, 1]

    def utility(coalition):
        members = sorted(coalition)
        if len(members) >= 4 and len(set(y[members])) == 2:
            return float(np.mean(Moody().fit(X[members], y[members]).predict(V) == y_val))
        counts = np.bincount(y[members], minlength=2)
        return float(np.mean(y_val == counts.argmax())) if members else 0.5

    with pytest.warns(th.FitWarning):
        valuation = th.data_shapley(X, y, V, y_val, model=Moody(), evaluations=14_000)
    assert_unbiased(valuation, semivalues(utility, 8, "shapley"))


def test_warnings_of_fits_are_told_once():
    X, y, V, y_val = eight_points()
    with pytest.warns(th.FitWarning, match="8 of 8 fits warned.*I am not happy") as heard:
        th.leave_one_out(X, y, V, y_val, model=Moody(warn=True))
    assert len(heard) == 1


@METHOD
def test_one_point_and_one_class(name):
    method = getattr(th, name)
    alone = method([[0.0, 1.0]], ["a"], [[1.0, 0.0]] * 4, ["a", "a", "a", "b"])
    assert alone.values == pytest.approx([0.25])
    assert alone.utility_none == 0.5
    same = method(np.eye(3), ["a"] * 3, np.ones((2, 3)), ["a", "a"])
    assert same.values.tolist() == [0, 0, 0]


@METHOD
def test_labels_of_any_kind_and_owners(name):
    X, y, V, y_val = eight_points()
    more = {} if name == "leave_one_out" else {"evaluations": 700}
    method = functools.partial(getattr(th, name), **more)
    plain = method(X, y, V, y_val)
    for labels in (["no", "yes"], [(0, 1), (1, 0)], [False, True]):
        named = method(X, [labels[c] for c in y], V, [labels[c] for c in y_val])
        assert named.values.tolist() == plain.values.tolist()
    owned = method(X, y, V, y_val, owners=list("aabbccdd"))
    assert sum(owned.by_owner().values()) == pytest.approx(plain.values.sum())
    sums = method(X, y, V, y_val, mean=False)
    np.testing.assert_allclose(sums.values, 40 * plain.values)
    np.testing.assert_allclose(sums.standard_errors, 40 * plain.standard_errors)
    assert sums.utility_none == 20


def test_random_models_get_the_seed():
    X, y, V, y_val = eight_points()
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_features=1))
    first, again = (th.data_banzhaf(X, y, V, y_val, model=model, evaluations=64) for _ in range(2))
    assert first == again
    assert model.get_params()["decisiontreeclassifier__random_state"] is None  # ours is a copy


def test_results_are_kept_with_their_errors(tmp_path):
    X, y, V, y_val = eight_points()
    valuation = th.data_shapley(X, y, V, y_val, evaluations=70)
    valuation.save(tmp_path / "values.parquet")
    assert th.Valuation.load(tmp_path / "values.parquet") == valuation
    frame = valuation.to_frame("pandas")
    assert frame["standard_error"].tolist() == valuation.standard_errors.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": LogisticRegression}, "model must be a scikit-learn classifier.*parentheses"),
        ({"model": LinearRegression()}, "model must be a scikit-learn classifier.*LinearRegr"),
        ({"model": "logistic"}, "model must be a scikit-learn classifier.*'logistic'"),
        ({"model": LogisticRegression(C=-1)}, "model cannot be fitted on all points.*'C' parameter"),
        ({"model": Moody(least=99)}, "model cannot be fitted on all points.*RuntimeError: too few"),
        ({"evaluations": 5}, "evaluations must be at least 14 for two permutations of 8 points"),
        ({"evaluations": 0}, "evaluations must be an integer >= 1, got 0"),
        ({"stability": 2}, "stability must be a number between 0 and 1, got 2"),
        ({"truncation": -1}, "truncation must be a number between 0 and 1, got -1"),
        ({"workers": -1}, "workers must be an integer >= 1, got -1: leave it out for all cores"),
        ({"workers": 1.5}, "workers must be an integer >= 1, got 1.5"),
        ({"stability": 1}, "stability=1 may never be reached: pass evaluations"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"accelerate": 1}, "accelerate must be True or False, got 1"),
        ({"checkpoint": "/nowhere/at/all"}, "the folder /nowhere/at does not exist"),
        ({"checkpoint": 3}, "checkpoint must be the path of a file, got 3"),
        ({"checkpoint": ":memory:"}, "checkpoint must be the path of a file, got ':memory:'"),
        ({"checkpoint": "/proc/checkpoint"}, "checkpoint /proc/checkpoint cannot be used"),
        ({"checkpoint": "x", "model": make_pipeline(FunctionTransformer(lambda X: X), GaussianNB())},
         "checkpoint needs a model whose settings can be stored: use functions of a module instead of lambdas"),
        ({"model": Wide()}, "model cannot be fitted.*predict returned shape"),
        ({"model": Wordy()}, "model cannot be fitted.*predict returned '0', but labels are like 0"),
        ({"accelerate": True, "model": LogisticRegression(C=None)}, "accelerate=True.*C=None"),
        ({"accelerate": True, "model": Moody()}, "accelerate=True needs a LogisticRegression.*Moody"),
        (
            {"accelerate": True, "model": LogisticRegression(class_weight="balanced")},
            "accelerate=True needs.*class_weight='balanced': leave accelerate out",
        ),
        (
            {"accelerate": True, "model": LogisticRegression(solver="liblinear")},
            "accelerate=True needs.*solver='liblinear'",
        ),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(arguments, message):
    X, y, V, y_val = eight_points()
    with pytest.raises(th.InputError, match=message):
        th.data_shapley(X, y, V, y_val, **arguments)


def test_models_may_work_in_place():
    X, y, V, y_val = eight_points()
    before = V.copy()
    found = [
        th.leave_one_out(
            X, y, V, y_val, model=make_pipeline(StandardScaler(copy=copy), GaussianNB())
        )
        for copy in (True, False)
    ]
    assert found[0].values.tolist() == found[1].values.tolist()
    assert V.tolist() == before.tolist()


def test_columns_of_predictions_count_as_predictions():
    X, y, V, y_val = eight_points()
    plain, column = (th.leave_one_out(X, y, V, y_val, model=m) for m in (GaussianNB(), Column()))
    assert column.values.tolist() == plain.values.tolist()


def test_too_many_weights_are_not_accelerated():
    X, y, V, y_val = eight_points()
    wide = [np.tile(A, (1, 300)) for A in (X, V)]
    with pytest.raises(th.InputError, match="up to 512 weights.*got 600"):
        th.leave_one_out(wide[0], y, wide[1], y_val, accelerate=True)


def test_a_model_that_takes_an_interruption_for_the_end_is_stopped():
    X, y, V, y_val = eight_points()
    with pytest.raises(KeyboardInterrupt):
        th.leave_one_out(X, y, V, y_val, model=Moody(warn="Training interrupted by user."))


def test_bad_weights_are_named():
    X, y, V, y_val = eight_points()
    with pytest.raises(th.InputError, match="alpha must be a number"):
        th.beta_shapley(X, y, V, y_val, alpha=0)
    with pytest.raises(th.InputError, match="X has NaN"):
        th.leave_one_out(np.full((8, 2), np.nan), y, V, y_val)


def test_agrees_with_pydvl():
    """Exactly, where both are exact; a tree, as pyDVL fits coalitions of one class too."""
    pytest.importorskip("pydvl", reason="pyDVL is installed by the test group")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pydvl.valuation import (
            Dataset,
            DeterministicUniformSampler,
            LOOValuation,
            ModelUtility,
            NoStopping,
            ShapleyValuation,
            SupervisedScorer,
        )

        X, y, V, y_val = eight_points(3)
        model = DecisionTreeClassifier(max_depth=2, random_state=0)
        scorer = SupervisedScorer("accuracy", Dataset(V, y_val), default=0.5)
        utility = ModelUtility(model, scorer, show_warnings=False)
        sampler = DeterministicUniformSampler(batch_size=32)
        theirs = [
            LOOValuation(utility).fit(Dataset(X, y)).result,
            ShapleyValuation(utility, sampler, NoStopping(sampler)).fit(Dataset(X, y)).result,
        ]
    loo, shapley = (result.values[np.argsort(result.indices)] for result in theirs)
    np.testing.assert_allclose(th.leave_one_out(X, y, V, y_val, model=model).values, loo, atol=1e-9)
    assert_unbiased(th.data_shapley(X, y, V, y_val, model=model, evaluations=7000), shapley)


def test_the_seed_of_a_corruption_draws_independent_coalitions():
    """With 200 of 2000 labels flipped, the first 200 points of a walk hold 20 of them, give or
    take 4.0 (hypergeometric): 20 walks together 400 +- 18; beyond 5 deviations once in 2 million."""
    held = 0
    for seed in range(20):
        _, flipped = th.flip_labels(np.arange(2000) % 2, fraction=0.1, seed=seed)
        held += int(flipped[permutation(2000, seed, 0)[:200]].sum())
    assert 310 < held < 490
