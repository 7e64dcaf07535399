"""What the leaves of trees say about labels: shares by their definition, suggestions, stability."""

from __future__ import annotations

import numpy as np
import pytest

import thresher as th
from thresher.errors import InputError
from thresher.findings import leaf_findings
from thresher.findings.advice import SUGGESTIONS
from thresher.findings.stability import Stability
from thresher.forest import forest_votes
from thresher.kernels.tree_leaves import add_shares


def shares_by_definition(leaves, y, play, classes, leaves_val, y_val):
    """For each point: the mean share of each class among the others, and how many they are."""
    shares, near = np.zeros((len(y), classes)), np.zeros(len(y))
    for i in range(len(y)):
        trees = np.flatnonzero(play[i])
        for tree in trees:
            others = [
                y[j] for j in range(len(y))
                if j != i and play[j][tree] and leaves[j][tree] == leaves[i][tree]
            ]  # fmt: skip
            others += [
                y_val[v] for v in range(len(y_val)) if leaves_val[v][tree] == leaves[i][tree]
            ]
            votes = np.bincount(others, minlength=classes)
            shares[i] += votes / len(others) if others else np.full(classes, 1 / classes)
            near[i] += len(others)
        shares[i] = shares[i] / len(trees) if len(trees) else 1 / classes
        near[i] /= max(len(trees), 1)
    return shares, near


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("validated", [False, True])
def test_shares_are_those_of_the_others_in_trees_that_did_not_see_the_point(seed, validated):
    rng = np.random.default_rng(seed)
    n, trees, classes = int(rng.integers(1, 12)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    leaves, y = rng.integers(0, 3, (n, trees)), rng.integers(0, classes, n)
    play = rng.random(leaves.shape) < 0.7
    m = 5 if validated else 0
    leaves_val, y_val = rng.integers(0, 4, (m, trees)), rng.integers(0, classes, m)
    judges = (leaves_val, y_val) if validated else (None, None)
    valuation = th.leaf_shapley(leaves, y, *judges, unseen=play, classes=range(classes))
    found = th.explain(valuation, leaves, y, *judges, unseen=play)
    shares, near = shares_by_definition(leaves, y, play, classes, leaves_val, y_val)
    own = shares[np.arange(n), y]
    np.testing.assert_allclose(found.agree, own, atol=1e-6)
    np.testing.assert_allclose(found.near, near, atol=1e-12)
    shares[np.arange(n), y] = -1
    best = shares.max(axis=1) if classes > 1 else np.zeros(n)
    np.testing.assert_allclose(found.best_share, best, atol=1e-6)
    np.testing.assert_allclose(found.score, own / np.maximum(own + best, 1e-300), atol=1e-5)
    if classes > 1:
        np.testing.assert_allclose(shares[np.arange(n), found.best_codes], best, atol=1e-6)
    assert found.values.tobytes() == valuation.values.tobytes()


def table(rows=300, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    labels = np.argmax(X[:, :classes] + 0.3 * rng.normal(size=(rows, classes)), axis=1)
    y, wrong = th.flip_labels(labels, fraction=0.1, seed=seed)
    return X, y, wrong


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_one_walk_finds_what_values_and_explain_find(validated, mean):
    X, y, _ = table()
    data = (X[:200], y[:200], X[200:], y[200:]) if validated else (X[:200], y[:200])
    options = {"trees": 20, "seed": 3, "mean": mean, "semivalue": "banzhaf"}
    valuation, found = th.forest_findings(*data, **options)
    apart = th.forest_shapley(*data, **options)
    assert valuation.values.tobytes() == apart.values.tobytes()
    assert valuation.params == apart.params
    again = th.explain(apart, *data)
    for name, column in found.columns().items():
        assert list(column) == list(again.columns()[name]), name
    assert found.stability == again.stability


def test_many_classes_take_several_walks_and_give_the_same_bits(monkeypatch):
    X, y, _ = table()
    _, whole = th.forest_findings(X, y, trees=20)
    monkeypatch.setattr(leaf_findings, "NUMBERS", 250)  # 83 points of three classes at a time
    _, parts = th.forest_findings(X, y, trees=20)
    for name, column in whole.columns().items():
        assert list(column) == list(parts.columns()[name]), name
    assert whole.stability == parts.stability


def test_the_order_of_rows_does_not_matter():
    X, y, _ = table()
    order = np.random.default_rng(5).permutation(len(y))
    _, found = th.forest_findings(X, y, trees=20)
    _, moved = th.forest_findings(X[order], y[order], trees=20)
    assert list(found.suggestion.take(order)) == list(moved.suggestion)
    np.testing.assert_allclose(found.score[order], moved.score, atol=1e-6)


def test_wrong_labels_have_low_scores_and_their_right_label_is_named():
    X, y, wrong = table(rows=900)
    right = np.argmax(X[:, :3], axis=1)
    _, found = th.forest_findings(X, y, trees=100)
    lowest = np.argsort(found.score)[: int(wrong.sum())]
    assert wrong[lowest].mean() > 0.75
    relabeled = np.array(found.suggestion) == "relabel"
    assert (wrong & relabeled).sum() > 0.75 * wrong.sum()
    assert (np.array(found.best_label)[wrong & relabeled] == right[wrong & relabeled]).mean() > 0.9


def test_another_valuation_or_other_data_are_refused():
    X, y, _ = table(60)
    valuation = th.forest_shapley(X, y, trees=8)
    with pytest.raises(InputError, match="not computed from these points"):
        th.explain(valuation, X[::-1], y)
    with pytest.raises(InputError, match="60 points and 0 validation points"):
        th.explain(valuation, X, y, X[:5], y[:5])
    with pytest.raises(InputError, match="unseen is for a valuation by leaf-shapley, but this"):
        th.explain(valuation, X, y, unseen="junk")
    leaves = (X[:, :2] > 0).astype(int)
    with pytest.raises(InputError, match="forest is for a valuation by forest-shapley, but this"):
        th.explain(th.leaf_shapley(leaves, y), leaves, y, forest="junk")
    score = th.zero_budget_score(X[:30], y[:30], X[30:], y[30:], radius=1)
    with pytest.raises(InputError, match="got zero-budget-score"):
        th.explain(score, X[:30], y[:30], X[30:], y[30:])


@pytest.mark.parametrize("kernel", [add_shares, add_shares.py_func], ids=["jit", "python"])
def test_the_kernel_leaves_the_point_itself_out(kernel):
    leaf_of, codes = np.array([0, 0, -1, 1], np.int32), np.array([0, 1, 1, 1], np.int32)
    counts = np.array([[2, 1], [0, 1]], np.float32)  # leaf 0: two of class 0, one of class 1
    shares, near = np.zeros((4, 2), np.float32), np.zeros(4, np.int64)
    trees, empty = np.zeros(4, np.int32), np.zeros(4, np.int32)
    kernel(leaf_of, codes, counts, np.array([3, 1]), shares, near, trees, empty)
    assert shares.tolist() == [[0.5, 0.5], [1, 0], [0, 0], [0, 0]]
    assert near.tolist() == [2, 2, 0, 0]
    assert (trees.tolist(), empty.tolist()) == ([1, 1, 0, 1], [0, 0, 0, 1])


def test_stability_compares_two_halves():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    relabel, inspect = SUGGESTIONS.index("relabel"), SUGGESTIONS.index("inspect")
    advice = np.array([relabel, relabel, inspect, 0]), np.array([1, 1, 1, 1])
    other = np.array([relabel, relabel, 0, 0]), np.array([1, 2, 1, 1])
    same = Stability.of((values, 2 * values), (advice, advice))
    assert (round(same.values, 9), same.relabel, same.marked) == (1.0, 1.0, 1.0)
    unlike = Stability.of((values, -values), (advice, other))
    assert (unlike.values, unlike.relabel, unlike.marked) == (0.0, 0.5, 0.8)
    nothing = np.zeros(4, np.int64), np.zeros(4, np.int64)
    assert np.isnan(Stability.of((values, values), (nothing, nothing)).relabel)


def test_a_table_of_noise_is_less_stable_than_one_with_structure():
    X, y, _ = table(600)
    _, found = th.forest_findings(X, y, trees=40)
    _, noise = th.forest_findings(X, np.random.default_rng(1).permutation(y), trees=40)
    assert found.stability.values > noise.stability.values + 0.1
    assert found.stability.relabel > noise.stability.relabel + 0.1


def test_the_others_are_all_rows_in_the_leaf_those_that_grew_the_tree_too():
    """Dropped through the trees by hand; a class that only the validation set has comes first."""
    X, y, _ = table(120)
    names = np.array(["b", "c", "d"])
    votes, _ = forest_votes(
        X, names[y], X[:4], ["a", "a", "b", "c"], forest=None, trees=8, folds=2, seed=1,
        classes=None, progress=False,
    )  # fmt: skip
    _, found = leaf_findings.explain_votes(votes, "forest-shapley", {}, "shapley")
    leaves, play = votes.forest.apply(X), votes.forest.unseen(X)
    for row in (0, 7, 55):
        shares = []
        for tree in np.flatnonzero(play[row]):
            others = leaves[:, tree] == leaves[row, tree]
            others[row] = False
            labels = [
                *(y[others] + 1),
                *(np.array([0, 0, 1, 2])[leaves[:4, tree] == leaves[row, tree]]),
            ]
            shares.append(np.bincount(labels, minlength=4) / len(labels) if labels else [0.25] * 4)
        want = np.mean(shares, axis=0)
        assert found.agree[row] == pytest.approx(want[y[row] + 1], abs=1e-6)
        want[y[row] + 1] = -1
        assert found.best_share[row] == pytest.approx(want.max(), abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "told"),
    [(["a"], False), (["a", "b"], False), (["a"] * 30, False), (["a", "b", "a"], False),
     (["a", "b"] * 5, True)],
)  # fmt: skip
def test_one_class_or_a_few_rows_have_no_forecast(labels, told):
    X = np.arange(len(labels), dtype=float)[:, None]
    _, found = th.forest_findings(X, labels, trees=20)
    assert (found.forecast is not None) == told
    nothing = len(labels) < 3 or len(set(labels)) == 1
    assert (found.counts()["outlier"] == len(labels)) == nothing
