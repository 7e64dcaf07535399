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
