"""Whatever is passed for any one argument: a result, or an `InputError` that names what was wrong."""

import inspect
import warnings
from contextlib import suppress

import numpy as np
import pytest

import thresher as th

RNG = np.random.default_rng(0)
X, X_VAL = RNG.normal(size=(30, 3)), RNG.normal(size=(8, 3))
Y, Y_VAL = (X[:, 0] > 0).astype(int), (X_VAL[:, 0] > 0).astype(int)
OWNERS = [f"owner {i % 4}" for i in range(30)]
CLASSES = {"X": X, "y": Y, "X_val": X_VAL, "y_val": Y_VAL}
NUMBERS = CLASSES | {"y": X[:, 0] * 2.5, "y_val": X_VAL[:, 0] * 2.5, "task": "regression"}
PRIVATE = {"epsilon": 1, "delta": 1e-5, "classes": [0, 1], "radius": 0.5}
LEAVES = np.arange(90).reshape(30, 3) % 4
RELEASE = th.dp_tknn_shapley(**CLASSES, **PRIVATE, owners=OWNERS, points_per_owner=8)
FUNCTIONS = {
    "tknn": (th.tknn_shapley, CLASSES),
    "tknn of numbers": (th.tknn_shapley, NUMBERS),
    "knn": (th.knn_shapley, CLASSES),
    "knn of numbers": (th.knn_shapley, NUMBERS),
    "forest": (th.forest_shapley, CLASSES | {"trees": 2}),
    "owners": (th.owner_shapley, CLASSES | {"owners": OWNERS}),
    "private": (th.dp_tknn_shapley, CLASSES | PRIVATE),
    "private knn": (th.dp_knn_shapley, CLASSES | {"epsilon": 1, "delta": 1e-5, "classes": [0, 1]}),
    "zero budget": (th.zero_budget_score, CLASSES | {"classes": [0, 1]}),
    "leaves": (
        th.leaf_shapley,
        {"leaves": LEAVES, "y": Y, "leaves_val": LEAVES[:8], "y_val": Y_VAL},
    ),
    "plan": (th.plan_release, {"X_val": X_VAL, "y_val": Y_VAL, "points": 50} | PRIVATE),
    "suggest radius": (th.suggest_radius, {"X_val": X_VAL, "y_val": Y_VAL}),
    "audit of runs": (
        th.audit_runs,
        {"inside": X[:, 0], "outside": X[:, 1], "epsilon": 1, "delta": 1e-5},
    ),
    "flip": (th.flip_labels, {"y": Y, "fraction": 0.1, "seed": 0}),
    "feature noise": (th.add_feature_noise, {"X": X, "fraction": 0.1, "seed": 0}),
    "leave one out": (th.leave_one_out, {name: part[:8] for name, part in CLASSES.items()}),
    "private pay": (th.private_payout, {"release": RELEASE, "pot": 100}),
    "explain": (th.explain, {"valuation": th.tknn_shapley(**CLASSES)} | CLASSES),
    "payout": (th.payout, {"values": {"a": 1.0, "b": 2.0}, "pot": 100}),
}
ODD = [
    None, [], [[]], 0, "x", np.nan, np.inf, -1, 1.5, True, object(), [1, 2], {"a": 1}, {1, 2}, b"x",
    10**30, "auto", (1, 2), np.datetime64("2020"), lambda x: x, [None] * 30, [np.nan] * 30,
    ["a", 1] * 15, [[1]] * 30, Y * 1e300, X.astype(complex), np.zeros((0, 3)), np.zeros((2, 2, 2)),
    np.full((30, 3), np.nan), np.full((30, 3), "a"),
]  # fmt: skip
SLOW = {"checkpoint", "ledger", "progress"}  # they write files, or to the terminal


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_odd_argument_is_used_or_refused(name):
    function, given = FUNCTIONS[name]
    names = list(inspect.signature(function).parameters)
    given = dict(zip([names[0], *list(given)[1:]], given.values(), strict=True))
    used = tried = 0
    for argument in set(names) - SLOW:
        for odd in ODD:
            with suppress(th.InputError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(**{**given, argument: odd})
                used += 1
            tried += 1
    assert used < tried / 2


HUGE = 10**5000  # more digits than Python turns into text
BALL = {"X": [[1.0], [2.0]], "y": [0, 1], "X_val": [[1.5]], "y_val": [0], "metric": "euclidean"}
NUMBERS = {**BALL, "y": [0.0, 1.0], "y_val": [0.5], "task": "regression"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: th.tknn_shapley(**BALL, radius=10**400), "radius must be a number >= 0, got an integer of 401 digits: pass infinity"),
        (lambda: th.tknn_shapley(**BALL, radius=-HUGE), "radius must be a number >= 0, got an integer of 5001 digits"),
        (lambda: th.knn_shapley(**BALL, k=HUGE), "k must be an integer <= 9007199254740992, got an integer of 5001 digits"),
        (lambda: th.knn_shapley(**BALL, k=-HUGE), "k must be an integer >= 1, got an integer of 5001 digits"),
        (lambda: th.knn_shapley(**BALL, error=HUGE), "error must be a number between 0 and 1, got an integer of 5001 digits"),
        (lambda: th.forest_shapley(BALL["X"], [0, 1], trees=HUGE), "trees must be .* got an integer of 5001 digits"),
        (lambda: th.forest_shapley(BALL["X"], [0, 1], seed=HUGE), "seed must be .* got an integer of 5001 digits"),
        (lambda: th.dp_tknn_shapley(**BALL, epsilon=HUGE, delta=0), "epsilon must be .* got an integer of 5001 digits"),
        (lambda: th.tknn_shapley(**BALL, kernel="gaussian", rings=HUGE), "rings must be at most 254, got an integer of 5001 digits"),
        (lambda: th.tknn_shapley(**BALL, rings=HUGE), "rings=an integer of 5001 digits needs kernel"),
        (lambda: th.tknn_shapley(**BALL, kernel=[(HUGE, 1)]), "kernel must be .* got a list with an integer of thousands"),
        (lambda: th.tknn_shapley(**NUMBERS, bounds=(0, HUGE)), "bounds must be two numbers.*got a tuple with an integer"),
        (lambda: th.tknn_shapley(**NUMBERS, empty=HUGE), "empty must be .* got an integer of 5001 digits"),
        (lambda: th.tknn_shapley(**BALL, memory=-HUGE), "got an integer of 5001 digits"),
        (lambda: th.Beta(HUGE, 1), "a of Beta must be .* got an integer of 5001 digits"),
        (lambda: th.suggest_radius(BALL["X"], [0, 1], candidates=HUGE), "candidates must be .* 5001 digits"),
        (lambda: th.flip_labels([0, 1], fraction=HUGE, seed=1), "fraction must be .* 5001 digits"),
    ],
)  # fmt: skip
def test_a_huge_integer_gives_a_short_message(call, message):
    with pytest.raises(th.InputError, match=message) as refused:
        call()
    assert len(str(refused.value)) < 200


def foreign(call):
    """The warnings of other libraries that a call gives, and what it returns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    return [each for each in caught if not issubclass(each.category, th.ThresherWarning)], found


def test_targets_whose_squares_are_beyond_float64_give_a_finite_utility():
    about = {"owners": OWNERS, "metric": "euclidean", "radius": 2.0, "task": "regression"}
    plain = th.owner_shapley(X, X[:, 0], X_VAL, X_VAL[:, 0], **about)
    large = 2.0**400
    said, found = foreign(
        lambda: th.owner_shapley(X, X[:, 0] * large, X_VAL, X_VAL[:, 0] * large, **about)
    )
    assert not said
    np.testing.assert_allclose(found.values, plain.values * large**2, rtol=1e-12)
    assert found.utility_all == pytest.approx(plain.utility_all * large**2, rel=1e-12)


def test_warnings_of_other_libraries_do_not_leak():
    labels = np.arange(30)
    said, model = foreign(lambda: th.TKNNClassifier(metric="euclidean").fit(X, labels))
    assert not said
    assert len(model.classes_) == 30
    for size in (1e160, 1e300):
        assert not foreign(lambda size=size: th.forest_shapley(X * size, Y, trees=4))[0]

        def noise(size=size):
            with pytest.raises(
                th.InputError, match="noise is beyond the range of float64: rescale"
            ):
                th.add_feature_noise(X * size, fraction=0.5, seed=1)

        assert not foreign(noise)[0]
