"""Values of trees and forests equal enumeration over all coalitions."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from oracles import semivalues
from sklearn.ensemble import RandomForestClassifier

import thresher as th
from thresher.kernels.tree_leaves import add_from_leaves, count_in_leaves, take_from_leaves


def judge_utility(leaves, y, judges, play, classes):
    """U(S) by its definition: judges are (leaf in each tree, label, trees used, own row or None)."""

    def utility(coalition):
        total = Fraction(0)
        for where, label, trees, own in judges:
            for tree in trees:
                inside = [
                    i for i in coalition
                    if i != own and play[i][tree] and leaves[i][tree] == where[tree]
                ]  # fmt: skip
                agree = sum(y[i] == label for i in inside)
                share = Fraction(int(agree), len(inside)) if inside else Fraction(1, classes)
                total += share / len(trees)
        return total

    return utility


def small(seed):
    rng = np.random.default_rng(seed)
    n, trees, classes = int(rng.integers(1, 8)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    leaves, y = rng.integers(0, 3, (n, trees)), rng.integers(0, classes, n)
    return rng, leaves, y, classes


SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", th.Beta(4, 1)]
ORACLE = {th.Beta(4, 1): ("beta", 4, 1)}


@pytest.mark.parametrize("seed", range(40))
def test_values_with_a_validation_set_equal_enumeration(seed):
    rng, leaves, y, classes = small(seed)
    m, trees = int(rng.integers(1, 6)), leaves.shape[1]
    leaves_val, y_val = rng.integers(0, 4, (m, trees)), rng.integers(0, classes, m)
    play = rng.random(leaves.shape) < 0.8
    judges = [(leaves_val[j], y_val[j], range(trees), None) for j in range(m)]
    utility = judge_utility(leaves, y, judges, play, classes)
    kind = SEMIVALUES[seed % 4]
    found = th.leaf_shapley(
        leaves, y, leaves_val, y_val, unseen=play, semivalue=kind, classes=range(classes)
    )
    np.testing.assert_allclose(
        found.values, semivalues(utility, len(y), ORACLE.get(kind, kind)), atol=1e-13
    )
    check_ends(found, utility, len(y))


@pytest.mark.parametrize("seed", range(40))
def test_values_by_the_others_equal_enumeration(seed):
    rng, leaves, y, classes = small(seed + 100)
    play = rng.random(leaves.shape) < 0.8
    judges = [(leaves[j], y[j], np.flatnonzero(play[j]), j) for j in range(len(y)) if play[j].any()]
    utility = judge_utility(leaves, y, judges, play, classes)
    kind = SEMIVALUES[seed % 4]
    found = th.leaf_shapley(leaves, y, unseen=play, semivalue=kind, classes=range(classes))
    np.testing.assert_allclose(
        found.values, semivalues(utility, len(y), ORACLE.get(kind, kind)), atol=1e-13
    )
    check_ends(found, utility, len(y))


def check_ends(found, utility, n):
    assert found.utility_all == pytest.approx(float(utility(set(range(n)))), abs=1e-12)
    assert found.utility_none == pytest.approx(float(utility(set())), abs=1e-12)
    if found.params["semivalue"] == "shapley":
        assert abs(found.efficiency_gap()) < 1e-12


def test_the_utility_of_all_points_is_what_a_forest_predicts():
    """Without bootstrap and with all points in all trees, shares of leaves are `predict_proba`."""
    rng = np.random.default_rng(1)
    X, V = rng.normal(size=(300, 4)), rng.normal(size=(80, 4))
    y, y_val = (X[:, 0] > X[:, 1]) + 2 * (X[:, 2] > 0), rng.integers(0, 4, 80)
    forest = RandomForestClassifier(25, bootstrap=False, min_samples_leaf=5, random_state=0).fit(
        X, y
    )
    chances = forest.predict_proba(V)[np.arange(80), y_val].sum()
    assert th.leaf_shapley(forest.apply(X), y, forest.apply(V), y_val).utility_all == pytest.approx(
        chances, abs=1e-9
    )
    found = th.forest_shapley(X, y, V, y_val, forest=forest)
    assert found.utility_all == pytest.approx(chances, abs=1e-9)
    assert abs(found.efficiency_gap()) < 1e-9


def test_values_of_a_real_forest_agree_with_sampled_permutations():
    """n = 4,000 permutations, 20 points, 5.5 standard errors: a false alarm in 1 of 1e6 tests."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 2, 20)
    V, y_val = rng.normal(size=(10, 3)), rng.integers(0, 2, 10)
    forest = RandomForestClassifier(6, max_depth=2, random_state=0).fit(X, y)
    leaves, leaves_val = forest.apply(X), forest.apply(V)
    exact = th.leaf_shapley(leaves, y, leaves_val, y_val).values
    near = leaves[:, None, :] == leaves_val[None, :, :]  # points x judges x trees
    match = (y[:, None] == y_val[None, :])[..., None]
    samples = []
    for _ in range(4000):
        order = rng.permutation(20)
        count, same = np.cumsum(near[order], axis=0), np.cumsum((near & match)[order], axis=0)
        shares = np.where(count > 0, same / np.maximum(count, 1), 0.5)
        utility = np.concatenate([[10 / 2], shares.mean(axis=2).sum(axis=1)])
        gains = np.empty(20)
        gains[order] = np.diff(utility)
        samples.append(gains)
    error = np.std(samples, axis=0, ddof=1) / np.sqrt(len(samples))
    assert (abs(np.mean(samples, axis=0) - exact) <= 5.5 * error + 1e-12).all()


def test_the_order_of_points_changes_no_bit_and_copies_share_their_trees():
    rng = np.random.default_rng(3)
    X, y = np.repeat(rng.normal(size=(60, 3)), 2, axis=0), rng.integers(0, 3, 120)
    found = th.forest_shapley(X, y, trees=20).values
    order = rng.permutation(120)
    assert (
        th.forest_shapley(X[order], y[order], trees=20).values.tobytes() == found[order].tobytes()
    )
    alike = (y[::2] == y[1::2]).nonzero()[0]
    assert len(alike) > 10
    np.testing.assert_array_equal(found[::2][alike], found[1::2][alike])


class Watched(RandomForestClassifier):
    """Remembers which rows it was grown on."""

    grown_on: ClassVar[list[set[bytes]]] = []

    def fit(self, X, y):
        self.grown_on += [{row.tobytes() for row in X}] * self.n_estimators
        return super().fit(X, y)


def test_a_point_fills_only_trees_that_were_grown_without_it():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(90, 3)).astype(np.float32), rng.integers(0, 2, 90)
    Watched.grown_on.clear()
    inside = th.grow_forest(X, y, forest=Watched(), trees=12, folds=3, seed=7).unseen(X)
    assert (inside.sum(axis=1) == 4).all()  # equally many for every row
    for tree, grown_on in enumerate(Watched.grown_on):
        assert grown_on == {row.tobytes() for row in X[~inside[:, tree]]}


def test_scale_and_wild_rows_change_nothing():
    rng = np.random.default_rng(5)
    X, y = rng.integers(-8, 8, (80, 3)).astype(float), rng.integers(0, 2, 80)
    wild = X.copy()
    wild[X[:, 0] == 7, 0] = 1e300
    fitted = RandomForestClassifier(10, random_state=0).fit(X, y)
    assert len(th.forest_shapley(wild, y, trees=10)) == 80
    np.testing.assert_array_equal(
        th.forest_shapley(wild, y, forest=fitted).values,
        th.forest_shapley(X, y, forest=fitted).values,
    )


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_may_have_categories_and_missing_cells(library):
    module = pytest.importorskip(library)
    rng = np.random.default_rng(6)
    color = [None if x < 0.05 else ("red" if x < 0.5 else "blue") for x in rng.random(200)]
    y = [int(x == "red") if x else 0 for x in color]
    size = [None if x < -2 else float(x) for x in rng.normal(size=200)]
    columns = {"size": size, "color": color}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    labels, wrong = th.flip_labels(np.array(y), fraction=0.05, seed=0)
    found = th.forest_shapley(frame, labels, trees=20)
    assert wrong[found.suspects(10)].all()
    other = (
        module.table({"size": [1.0], "color": ["green"]})
        if library == "pyarrow"
        else module.DataFrame({"size": [1.0], "color": ["green"]})
    )
    assert len(th.forest_shapley(frame, labels, other, [1], trees=20)) == 200


@pytest.mark.parametrize(
    ("X", "y"), [([[1.0]], ["a"]), ([[1.0]] * 5, list("aabba")), ([[1.0], [2.0]], ["a", "a"])]
)
def test_the_smallest_tables_have_values(X, y):
    found = th.forest_shapley(X, y, trees=4)
    assert np.isfinite(found.values).all()
    assert abs(found.efficiency_gap()) < 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], ["a", "b"]), "leaves must have two dimensions"),
        (([[0.5]], ["a"]), "leaves must hold whole numbers"),
        (([["x"]], ["a"]), "leaves must hold whole numbers, got dtype"),
        ((np.zeros((0, 3), int), []), "leaves is empty"),
        (([[0], [1]], ["a"]), "y has 1 labels but there are 2 rows"),
        (([[0], [1]], ["a", "b"], [[0, 1]], ["a"]), r"leaves_val has 2 trees \(columns\) but leaves has 1"),
        (([[0], [1]], ["a", "b"], [[0]]), "leaves_val and y_val go together"),
        (([[0], [1]], ["a", None]), "y has missing labels"),
    ],
)  # fmt: skip
def test_leaves_that_cannot_be_used_are_refused(arguments, message):
    with pytest.raises(th.InputError, match=message):
        th.leaf_shapley(*arguments)


def test_other_arguments_that_cannot_be_used_are_refused():
    leaves, y = [[0], [1]], ["a", "b"]
    with pytest.raises(th.InputError, match=r"unseen has shape \(1, 1\) but leaves has \(2, 1\)"):
        th.leaf_shapley(leaves, y, unseen=[[True]])
    with pytest.raises(th.InputError, match="unseen must hold True and False"):
        th.leaf_shapley(leaves, y, unseen=[[2], [0]])
    with pytest.raises(th.InputError, match="trees must be a multiple of folds, got 5 and 2"):
        th.forest_shapley(leaves, y, trees=5)
    with pytest.raises(th.InputError, match="X_val and y_val go together"):
        th.forest_shapley(leaves, y, [[0]])
    with pytest.raises(th.InputError, match="folds must be an integer >= 2"):
        th.forest_shapley(leaves, y, folds=1)
    frame = pytest.importorskip("pandas").DataFrame({"a": ["p", "q"]})
    with pytest.raises(th.InputError, match=r"X_val must be a data frame.* got list"):
        th.forest_shapley(frame, y, leaves, y)


def test_owners_and_means():
    leaves, y = [[0], [0], [1]], ["a", "b", "b"]
    found = th.leaf_shapley(leaves, y, owners=["x", "y", "x"], mean=True)
    sums = th.leaf_shapley(leaves, y)
    np.testing.assert_allclose(found.values * 3, sums.values)
    assert found.by_owner()["y"] == found.values[1]


@pytest.mark.parametrize("seed", range(5))
def test_kernels_run_as_plain_python(seed):
    rng = np.random.default_rng(seed)
    leaf_of, weights, prices = rng.integers(-1, 4, 30), rng.random(30), rng.random(4)
    counts, sums, taken = np.zeros(4, np.int64), np.zeros(30), np.zeros(30)
    count_in_leaves.py_func(leaf_of, 3, 25, counts)
    add_from_leaves.py_func(leaf_of, prices, 3, 25, sums)
    take_from_leaves.py_func(leaf_of, prices, weights, 3, 25, taken)
    inside = np.flatnonzero((leaf_of >= 0) & (np.arange(30) >= 3) & (np.arange(30) < 25))
    np.testing.assert_array_equal(counts, np.bincount(leaf_of[inside], minlength=4))
    want = np.zeros(30)
    want[inside] = prices[leaf_of[inside]]
    np.testing.assert_array_equal(sums, want)
    np.testing.assert_array_equal(taken, -want * weights)
