"""Points that judge each other: values without a validation set."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import (
    euclidean_squares,
    is_near,
    nearest_utility,
    semivalues,
    threshold_utility,
)

import thresher as th
from thresher.kernels.order import move_to_front

SEMIVALUES = {"shapley": "shapley", "banzhaf": "banzhaf", "leave-one-out": "leave-one-out"}
SEMIVALUES |= {("beta", 4, 1): th.Beta(4, 1), ("beta", 0.5, 2): th.Beta(0.5, 2)}
UTILITIES = ["soft-label", "jia2019"]
quiet = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


@st.composite
def rows(draw, most=6, cosine=False):
    """A few rows on a coarse grid, so that ties and copies abound, and labels."""
    cells = st.tuples(*(2 * [st.integers(-1, 2)]))
    cells = cells.filter(any) if cosine else cells
    found = draw(st.lists(st.tuples(cells, st.integers(0, 2)), min_size=2, max_size=most))
    X, y = zip(*found, strict=True)
    return np.array(X, float), np.array(y)


def whole_game(utility_for, n):
    """The utility of a coalition: the sum over judges, none of whom is a member for itself."""
    return lambda coalition: sum(utility_for(j, coalition - {j}) for j in range(n))


def threshold_game(X, y, metric, radius, classes):
    near = [[is_near(x, v, metric, radius) for x in X] for v in X]
    return whole_game(lambda j, s: threshold_utility(s, near[j], y == y[j], classes), len(X))


def nearest_game(X, y, k, version, classes):
    squares = [euclidean_squares(X, v) for v in X]
    orders = [sorted(range(len(X)), key=lambda i, s=s: s[i]) for s in squares]
    return whole_game(
        lambda j, s: nearest_utility(s, orders[j], y == y[j], k, classes, version), len(X)
    )


def one_at_a_time(function, X, y, **options):
    """The slow way: each row alone is the validation set of the others. Values and both ends."""
    values, ends = np.zeros(len(y)), np.zeros(2)
    for j in range(len(y)):
        others = np.arange(len(y)) != j
        points, judge = X[others], X[[j]]
        if options.get("metric") == "precomputed":
            points, judge = X[others][:, [j]], None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", th.ThresherWarning)
            found = function(points, y[others], judge, y[[j]], classes=[0, 1, 2], **options)
        values[others] += found.values
        ends += found.utility_all, found.utility_none
    return values, ends


def check_against_one_at_a_time(function, X, y, **options):
    found = function(X, y, classes=[0, 1, 2], **options)
    values, ends = one_at_a_time(function, X, y, **options)
    np.testing.assert_allclose(found.values, values, atol=1e-11)
    np.testing.assert_allclose([found.utility_all, found.utility_none], ends, atol=1e-11)
    return found


def table(n, width, seed=0):
    """Whole numbers with many ties and copies, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n, width)).astype(float)
    X[~X.any(axis=1)] = 1.0
    X[n // 2 : n // 2 + 5] = X[:5]
    return X, rng.integers(0, 3, n)


@quiet
@pytest.mark.parametrize("oracle", SEMIVALUES, ids=str)
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@given(data=st.data(), radius=st.sampled_from([0.0, 0.3, 1.0, 2.0]), classes=st.integers(3, 4))
@settings(max_examples=25)
def test_threshold_values_equal_enumeration(oracle, metric, data, radius, classes):
    X, y = data.draw(rows(cosine=metric == "cosine"))
    found = th.tknn_shapley(
        X, y, radius=radius, metric=metric, semivalue=SEMIVALUES[oracle], classes=range(classes)
    )
    utility = threshold_game(X, y, metric, radius, classes)
    np.testing.assert_allclose(found.values, semivalues(utility, len(X), oracle), atol=1e-12)
    assert found.utility_all == pytest.approx(float(utility(set(range(len(X))))))
    assert found.utility_none == pytest.approx(float(utility(set())))


@pytest.mark.parametrize("width", [1, 15])
@given(data=rows(), k=st.integers(1, 7), utility=st.sampled_from(UTILITIES))
@example(data=(np.zeros((4, 2)), np.array([0, 1, 0, 1])), k=2, utility="soft-label")  # all tied
@example(data=(np.zeros((2, 2)), np.array([0, 1])), k=3, utility="jia2019")
@settings(max_examples=60)
def test_nearest_values_equal_enumeration(width, data, k, utility):
    X, y = data
    found = th.knn_shapley(
        np.tile(X, width), y, k=k, metric="euclidean", utility=utility, classes=range(3)
    )
    game = nearest_game(X, y, k, utility, 3)
    np.testing.assert_allclose(found.values, semivalues(game, len(X)), atol=1e-12)
    assert found.utility_all == pytest.approx(float(game(set(range(len(X))))))
    assert abs(found.efficiency_gap()) < 1e-12


@pytest.mark.parametrize("neighbors", ["all", "tree"])
@pytest.mark.parametrize(("metric", "radius"), [("cosine", 0.4), ("euclidean", 1.5)])
def test_threshold_values_are_those_of_one_judge_at_a_time(neighbors, metric, radius):
    X, y = table(150, 3)
    options = {"metric": metric, "radius": radius, "neighbors": neighbors}
    found = check_against_one_at_a_time(th.tknn_shapley, X, y, **options)
    assert abs(found.efficiency_gap()) < 1e-11


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize(
    ("width", "error", "precision"),
    [(3, 0.0, "float64"), (30, 0.0, "float64"), (30, 0.0, "float32"), (3, 0.3, "float64"),
     (30, 0.3, "float64"), (30, 0.3, "float32")],
)  # fmt: skip
def test_nearest_values_are_those_of_one_judge_at_a_time(metric, utility, width, error, precision):
    X, y = table(120, width)
    options = {"k": 2, "metric": metric, "utility": utility, "precision": precision}
    found = check_against_one_at_a_time(th.knn_shapley, X, y, error=error, **options)
    assert found.params["neighbors_kept"] == (119 if error == 0 else 3)
    assert abs(found.efficiency_gap()) < 1e-11
    exact = th.knn_shapley(X, y, classes=[0, 1, 2], **options)
    assert np.abs(found.values - exact.values).max() <= found.params["bound"]


@pytest.mark.parametrize("function", [th.tknn_shapley, th.knn_shapley])
@pytest.mark.parametrize("diagonal", [0.0, 3.0, 1e300, np.inf])
def test_a_point_is_left_out_by_its_row_and_not_by_its_distance(function, diagonal):
    rng = np.random.default_rng(1)
    D, y = rng.integers(0, 4, size=(130, 130)).astype(float), rng.integers(0, 3, 130)
    D[3, 90] = D[90, 3] = 0.0  # as near as copies are
    np.fill_diagonal(D, diagonal)
    options = {"metric": "precomputed"} | ({"radius": 1} if function is th.tknn_shapley else {})
    found = check_against_one_at_a_time(function, D, y, **options)
    blocks = [D[:, lo : lo + 50] for lo in range(0, 130, 50)]
    assert function(blocks, y, classes=[0, 1, 2], **options) == found
    if function is th.knn_shapley:
        check_against_one_at_a_time(function, D, y, k=1, error=0.3, **options)


def test_a_point_is_left_out_where_all_others_are_infinitely_far():
    D, y = np.full((130, 130), np.inf), np.arange(130) % 3
    for error in (0.0, 0.3):
        found = check_against_one_at_a_time(
            th.knn_shapley, D, y, k=1, error=error, metric="precomputed"
        )
        assert found.params["neighbors_kept"] == (129 if error == 0 else 3)


def test_a_tree_gives_the_same_bits_in_blocks_of_any_size(monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(3000, 2)).round(1), rng.integers(0, 3, 3000)
    options = {"radius": 0.3, "metric": "euclidean"}
    found = th.tknn_shapley(X, y, neighbors="all", **options)
    assert th.tknn_shapley(X, y, neighbors="tree", **options) == found
    monkeypatch.setattr("thresher.neighbors.visits.FIRST_BLOCK", 64)
    monkeypatch.setattr("thresher.neighbors.visits.MOST_BLOCK", 64)
    assert th.tknn_shapley(X, y, neighbors="tree", **options) == found
    monkeypatch.setattr("thresher.neighbors.blocks.SMALL_BLOCK", 128)
    assert th.tknn_shapley(X, y, neighbors="all", **options) == found


def test_rows_of_every_layout_and_size_are_left_out_of_their_own_game():
    X, y = table(200, 4)
    X[7] *= 1e30  # a column of another size than most
    options = {"radius": 1.5, "metric": "euclidean"}
    found = check_against_one_at_a_time(th.tknn_shapley, X, y, **options)
    halves = np.where(np.abs(X) > 100, 5, X).astype(np.float16)
    short = th.tknn_shapley(halves, y, **options)
    assert short == th.tknn_shapley(np.asfortranarray(halves.astype(float)), y, **options)
    assert short.values[7] == found.values[7] == 0.0


@pytest.mark.parametrize("function", [th.tknn_shapley, th.knn_shapley])
def test_rows_may_come_in_any_order(function):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)
    order = rng.permutation(90)
    found, other = function(X, y), function(X[order], y[order])
    np.testing.assert_allclose(found.values[order], other.values, atol=1e-12)


def test_copies_judge_each_other_without_a_warning():
    valuation = th.tknn_shapley([[1.0], [1.0], [2.0]], [0, 0, 1], radius=0, metric="euclidean")
    assert valuation.values.tolist() == [0.5, 0.5, 0.0]
    nearest = th.knn_shapley([[1.0], [1.0], [9.0]], [0, 0, 1], k=1, metric="euclidean")
    assert nearest.values[0] == nearest.values[1] > 0 > nearest.values[2]


@pytest.mark.parametrize("function", [th.tknn_shapley, th.knn_shapley])
def test_params_mean_and_owners(function):
    X, y = table(40, 3)
    found = function(X, y, owners=[i % 2 for i in range(40)])
    assert (found.params["judges"], found.params["validation_points"]) == ("points", 0)
    assert "judges" not in function(X, y, X + 0.1, y).params
    mean = function(X, y, mean=True)
    np.testing.assert_allclose(mean.values * 40, found.values, atol=1e-14)
    assert mean.utility_all * 40 == pytest.approx(found.utility_all)
    assert mean.utility_none * 40 == pytest.approx(found.utility_none)
    assert found.by_owner()[0] == pytest.approx(found.values[::2].sum())


def test_a_radius_that_reaches_nobody_is_told():
    with pytest.warns(th.ReachWarning, match="within radius 0.5 of another, so every value is 0"):
        found = th.tknn_shapley([[0.0], [9.0]], [0, 1], metric="euclidean")
    assert found.values.tolist() == [0.0, 0.0]


def test_memory_does_not_hold_all_pairs():
    X, y = np.random.default_rng(4).normal(size=(6000, 2)), np.arange(6000) % 3
    for neighbors in ("all", "tree"):
        tracemalloc.start()
        th.tknn_shapley(X, y, radius=0.01, neighbors=neighbors)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6000**2 / 2, neighbors


X, Y = [[1.0], [2.0], [4.0]], ["a", "b", "a"]
BUDGET = {"epsilon": 1, "delta": 1e-6}
PUBLIC = "X_val is None: a public validation set is needed here"
NEEDED = "X_val is None: a validation set is needed here, X_val and y_val. Only tknn_shapley"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: th.dp_tknn_shapley(X, Y, None, None, **BUDGET), PUBLIC),
        (lambda: th.dp_tknn_shapley(X, Y, None, None, metric="precomputed", **BUDGET), "y_val is None: a public"),
        (lambda: th.dp_knn_shapley(X, Y, None, None, **BUDGET), PUBLIC),
        (lambda: th.plan_release(None, None, points=9, **BUDGET), PUBLIC),
        (lambda: th.zero_budget_score(X, Y, None, None), PUBLIC),
        (lambda: th.NeighborCounts(None, None), PUBLIC),
        (lambda: th.LiveCounts.create("folder", None, None, radius=1), PUBLIC),
        (lambda: th.suggest_radius(None, None), NEEDED),
        (lambda: th.leave_one_out(X, Y, None, None), NEEDED),
        (lambda: th.tknn_shapley(X, Y, X), "y_val is None: a validation set is needed"),
        (lambda: th.knn_shapley(X, Y, None, Y), NEEDED),
        (lambda: th.tknn_shapley(X[:1], Y[:1]), "X has 1 row, and no other point to judge it: pass a valid"),
        (lambda: th.knn_shapley(X, Y[:2]), "y has 2 labels"),
        (lambda: th.tknn_shapley(X, Y, metric="precomputed"), r"to 3 points \(columns\).*\(3, 1\): pass y_val if"),
        (lambda: th.tknn_shapley([np.eye(3)[:, :2]], Y, metric="precomputed"), "X has 2 columns of distances but y has 3"),
        (lambda: th.tknn_shapley(X, Y, memory="64GB"), "X_val and y_val are needed with memory"),
        (lambda: th.tknn_shapley(X, Y, checkpoint="file"), "X_val and y_val are needed with memory, checkpoint"),
        (lambda: th.tknn_shapley(np.eye(3), Y, metric="precomputed", neighbors="tree"), "needs features"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_by_the_others_is_refused(call, message):
    with pytest.raises(th.InputError, match=message):
        call()


def test_dask_and_files_need_a_validation_set(tmp_path):
    array = pytest.importorskip("dask.array")
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n")
    for points in ((array.ones((4, 2)), array.ones(4)), (th.Scan(tmp_path / "t.csv"), None)):
        with pytest.raises(th.InputError, match=r"needed with memory, checkpoint, a Scan or Dask"):
            th.tknn_shapley(*points)


def test_explain_speaks_of_the_other_points():
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(200, 2)), np.arange(200) % 2
    rows[:, 0] += 6 * labels
    labels[:6] = 1 - labels[:6]
    valuation = th.tknn_shapley(rows, labels, radius=2, metric="euclidean")
    found = th.explain(valuation, rows, labels)
    near = np.hypot(*(rows[:, None] - rows).transpose(2, 0, 1)) <= 2
    np.fill_diagonal(near, val=False)
    assert found.near.tolist() == near.sum(axis=1).tolist()
    shares = (near & (labels[:, None] == labels)).sum(axis=1) / near.sum(axis=1)
    np.testing.assert_allclose(found.agree, shares)
    assert set(found.suggestion[:6]) == {"relabel"}
    assert found.suggestion.count("relabel") == 6
    moved = np.where(np.arange(200) == 3, 1 - labels, labels)
    under = th.tknn_shapley(rows, moved, radius=2, metric="euclidean").values[3]
    assert found.best_value[3] == pytest.approx(under)


def test_explain_cannot_tell_what_no_other_point_carries():
    rows, labels = [[i / 40] for i in range(20)], ["a"] * 19 + ["b"]
    valuation = th.tknn_shapley(rows, labels, radius=1, metric="euclidean")
    assert th.explain(valuation, rows, labels).suggestion[19] == "inspect"


def test_explain_wants_the_judges_that_the_valuation_had():
    by_others = th.tknn_shapley(X, Y, radius=1, metric="euclidean")
    with pytest.raises(
        th.InputError, match="0 validation points, but y has 3 labels and y_val has 3"
    ):
        th.explain(by_others, X, Y, [[0.5], [1.5], [2.5]], Y)
    by_rows = th.tknn_shapley(X, Y, [[0.5]], ["a"], radius=1, metric="euclidean")
    with pytest.raises(
        th.InputError, match="1 validation points, but y has 3 labels and y_val has 0"
    ):
        th.explain(by_rows, X, Y)


@pytest.mark.parametrize("kernel", [move_to_front, move_to_front.py_func], ids=["jit", "python"])
def test_a_key_moves_to_the_front_and_the_others_keep_their_order(kernel):
    points = np.array([4, 2, 0, 3, 1], np.uint64)
    for point in range(5):
        keys = (np.arange(5, dtype=np.uint64) << np.uint64(32)) | points << np.uint64(1) | 1
        before = keys.tolist()
        kernel(keys, point)
        own = before.pop(points.tolist().index(point))
        assert keys.tolist() == [own, *before]
