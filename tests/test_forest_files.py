"""The structure of forests: trees in open arrays, files without pickles, what is refused."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
import waits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

import thresher as th
from thresher.inputs.labels import Classes
from thresher.kernels.tree_leaves import add_under_labels, drop_rows, move_in_trees
from thresher.neighbors.forests import Forest
from thresher.neighbors.tree_columns import TreeColumns
from thresher.neighbors.trees import NODE, Tree
from thresher.sides.forest_side import ForestSide

RNG = np.random.default_rng(0)
X = RNG.integers(-4, 5, (120, 3)) / 2.0
X[RNG.random(X.shape) < 0.1] = np.nan
Y = RNG.integers(0, 3, 120)
X_VAL, Y_VAL = X[:20] + 0.125, Y[:20]
FOREST = th.grow_forest(X, Y, trees=6)
FITTED = RandomForestClassifier(5, random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        RandomForestClassifier(5, max_leaf_nodes=9, random_state=0),  # grown best first
        ExtraTreesClassifier(5, random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=0),
    ],
    ids=["random", "best-first", "extra", "boosted"],
)
def test_rows_reach_the_leaves_that_scikit_learn_finds(model):
    """Thresholds are float32 rounded down, so numbers next to a threshold are what to try."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 3)).astype(np.float32)
    missing = "Boosting" not in type(model).__name__
    if missing:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    model.fit(rows, rng.integers(0, 2, 200))
    trees = [each.tree_ for each in np.ravel(model.estimators_)]
    edges = np.concatenate([each.threshold[each.feature >= 0] for each in trees])
    edges = edges[np.isfinite(edges)]  # others split off what is missing
    near = np.r_[edges, np.nextafter(edges, 9), np.nextafter(edges, -9), rng.normal(size=900)]
    probes = rng.choice(near, (5000, 3)).astype(np.float32)
    if missing:
        probes[rng.random(probes.shape) < 0.2] = np.nan
    found = Forest.as_fitted(model, TreeColumns(3)).apply(probes)
    for column, each in zip(found.T, trees, strict=True):
        numbers = np.cumsum(each.children_left < 0) - 1
        np.testing.assert_array_equal(column, numbers[each.apply(probes)])


def test_a_forest_is_the_same_after_saving(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "b": np.array(["x", "y", None])[Y]})
    for table, forest in ((X, FOREST), (frame, th.grow_forest(frame, Y, trees=4))):
        forest.save(tmp_path / "forest.npz")
        found = th.Forest.load(tmp_path / "forest.npz")
        assert repr(found) == repr(forest)
        assert found.digest() == forest.digest()
        assert (found.classes, found.columns) == (forest.classes, forest.columns)
        np.testing.assert_array_equal(found.apply(table), forest.apply(table))
        np.testing.assert_array_equal(found.unseen(table), forest.unseen(table))
        with np.load(tmp_path / "forest.npz", allow_pickle=False) as arrays:
            assert set(NODE) < set(arrays.files)


@pytest.mark.parametrize("judges", [(None, None), (X_VAL, Y_VAL)], ids=["points", "validation"])
def test_counts_and_prices_are_the_same_after_saving(tmp_path, judges):
    counts = th.NeighborCounts(*judges, forest=FOREST).add(X, Y)
    counts.save(tmp_path / "counts.npz")
    again = th.NeighborCounts.load(tmp_path / "counts.npz")
    np.testing.assert_array_equal(again.table, counts.table)
    assert repr(again) == repr(counts)
    assert len(again.remove(X[:5], Y[:5])) == len(X) - 5
    for kind in ("shapley", th.Beta(2, 3)):
        prices = counts.price_list(kind)
        prices.save(tmp_path / "prices.json")
        found = th.PriceList.load(tmp_path / "prices.json")
        assert repr(found) == repr(prices)
        for name in ("values", "newcomer_values", "label_values"):
            mine, theirs = (getattr(each, name)(X, Y) if name != "newcomer_values" else
                            each.newcomer_values(X_VAL, Y_VAL) for each in (found, prices))  # fmt: skip
            assert mine.tobytes() == theirs.tobytes()


def test_a_price_list_is_used_without_scikit_learn(tmp_path):
    prices = th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST).add(X, Y).price_list()
    prices.save(tmp_path / "prices.json")
    code = (
        "import sys; sys.modules['sklearn'] = None; import thresher as th\n"
        "print(th.PriceList.load(sys.argv[1]).values([[1.0, 2.0, 0.5]], [1]).tolist())"
    )
    done = waits.run(
        [sys.executable, "-c", code, str(tmp_path / "prices.json")], check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == prices.values([[1.0, 2.0, 0.5]], [1]).tolist()


def test_a_list_says_whether_it_holds_the_points():
    public, private = (
        th.NeighborCounts(*judges, forest=FOREST).add(X, Y).price_list()
        for judges in ((X_VAL, Y_VAL), (None, None))
    )
    assert not public.holds_points
    assert private.holds_points
    assert "holds the points" in repr(private)
    assert private.document()["holds_points"] is True
    assert public.document()["holds_points"] is False
    judged = np.zeros(public.table.shape[1], bool)
    judged[(FOREST.apply(X_VAL) + FOREST.starts[:-1]).ravel()] = True
    assert not public.table[:, ~judged].any()  # leaves without judges are nobody's business
    assert private.table[:, ~judged].any()
    ball = th.NeighborCounts([[0.0]], ["a"], radius=1, metric="euclidean").price_list()
    assert not ball.holds_points


@pytest.mark.parametrize("change", ["feature", "right", "threshold", "fold", "nodes", "labels"])
def test_what_was_changed_in_a_file_is_refused(tmp_path, change):
    counts = th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST).add(X, Y)
    counts.save(tmp_path / "counts.npz")
    with np.load(tmp_path / "counts.npz") as stored:
        arrays = dict(stored)
    name = change if change == "labels" else f"forest_{change}"
    if change == "threshold":
        arrays[name] = arrays[name][:-1]
    else:
        arrays[name] = np.where(np.arange(arrays[name].size) == 0, 99, arrays[name])
    np.savez(tmp_path / "counts.npz", **arrays)
    with pytest.raises(th.InputError, match="does not hold a table of counts"):
        th.NeighborCounts.load(tmp_path / "counts.npz")
    document = counts.price_list().document()
    document["forest"]["seed"] = 1
    (tmp_path / "prices.json").write_text(json.dumps(document))
    with pytest.raises(th.InputError, match="its content was changed after it was written"):
        th.PriceList.load(tmp_path / "prices.json")


def test_a_tree_that_would_run_in_a_circle_is_refused():
    leaf = {"feature": [-1], "threshold": [0], "right": [0], "missing_left": [False]}
    good = {"feature": [0, -1, -1], "threshold": [1, 0, 0], "right": [2, 0, 1],
            "missing_left": [False] * 3}  # fmt: skip
    for wrong in ({"right": [0, 0, 1]}, {"right": [2, 0, 0]}, {"feature": [5, -1, -1]},
                  {"right": [9, 0, 1]}, {"feature": [0, 0, -1]}):  # fmt: skip
        with pytest.raises(th.InputError, match="it has a tree that is not a tree of scikit-learn"):
            tree_of(good | wrong).check(3)
    for right in (good, leaf):
        tree_of(right).check(3)


def tree_of(columns):
    return Tree(**{name: np.array(columns[name], kind) for name, kind in NODE.items()})


def test_counts_of_other_forests_and_judges_do_not_merge():
    counts = th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST)
    others = {
        "forest": th.NeighborCounts(X_VAL, Y_VAL, forest=th.grow_forest(X, Y, trees=6, seed=1)),
        "validation set": th.NeighborCounts(X_VAL[1:], Y_VAL[1:], forest=FOREST),
        "classes": th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST, classes=range(5)),
        "radius": th.NeighborCounts(np.ones((20, 1)), Y_VAL),
    }
    for name, other in others.items():
        with pytest.raises(th.InputError, match=f"other cannot be merged: it differs in {name}"):
            counts.merge(other)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: th.NeighborCounts(forest=FOREST, radius=2), "radius, metric and kernel cannot be used with forest"),
        (lambda: th.NeighborCounts(forest=RandomForestClassifier()), "forest must be a Forest"),
        (lambda: th.NeighborCounts(forest=FOREST, rings=7), "the box has no rings"),
        (lambda: th.NeighborCounts(forest=FOREST, rings=-7), "rings must be an integer >= 1"),
        (lambda: th.NeighborCounts(forest=FOREST, rings=7, task="regression"),
         "the box has no rings"),
        (lambda: th.NeighborCounts(X_VAL, forest=FOREST), "X_val and y_val go together"),
        (lambda: th.NeighborCounts(forest=FOREST).add(X[:, :2], Y), "X has 2 features but the forest has 3"),
        (lambda: th.NeighborCounts(forest=FOREST).add(X, Y + 9), "y has labels not in classes"),
        (lambda: th.NeighborCounts(forest=FOREST).same, "this works only with a validation set and a radius"),
        (lambda: th.NeighborCounts(forest=FOREST).add(X, Y).price_list().gain, "not with 6 trees, judged by the points"),
        (lambda: th.grow_forest(X, Y, forest=FOREST), "forest is already grown"),
        (lambda: th.grow_forest(X, Y[:3], forest=FITTED), "y has 3 labels but there are 120 rows"),
        (lambda: th.grow_forest(X, Y, forest=FITTED, classes=[0, 1, 2]),
         "classes cannot be used with a fitted"),
        (lambda: th.grow_forest(X, Y, forest=FITTED, trees=40),
         "trees=40 cannot be used with a forest that is already"),
        (lambda: th.forest_shapley(X, Y, forest=FITTED, folds=3), "folds=3 cannot be used"),
        (lambda: th.forest_shapley(X, Y, forest=FOREST, trees=8, memory="9GB"),
         "trees=8 cannot be used"),
        (lambda: th.forest_findings(X, Y, forest=FITTED, seed=1), "seed=1 cannot be used"),
        (lambda: th.forest_findings(X, Y, forest=FOREST, seed=1), "seed=1 cannot be used"),
        (lambda: th.forest_shapley(X, Y, forest=BaggingClassifier(DummyClassifier()).fit(X, Y)),
         "must have scikit-learn's trees"),
        (lambda: th.forest_shapley(X, Y, forest=BaggingClassifier(max_features=0.5)),
         "show every tree all features"),
        (lambda: th.forest_shapley(X, Y, forest=BaggingClassifier(bootstrap_features=True)),
         "show every tree all features"),
        (lambda: th.forest_shapley(X, Y, forest=BaggingClassifier(max_features=0.5).fit(X, Y)),
         "show every tree all features"),
        (lambda: th.grow_forest(X, Y, trees=5), "trees must be a multiple of folds"),
        (lambda: th.grow_forest(X, Y[:5]), "y has 5 labels but there are 120 rows"),
        (lambda: th.forest_shapley(X[:, :2], Y, forest=FOREST), "X has 2 features but the forest has 3"),
        (lambda: th.forest_shapley(X, Y[:9], forest=FOREST, memory="9GB"), "y has 9 labels but there are 120 rows"),
        (lambda: th.forest_shapley(X, Y, trees=5, memory="9GB"), "trees must be a multiple of folds"),
        (lambda: th.forest_shapley(X, Y, X_VAL, memory="9GB"), "X_val and y_val go together"),
        (lambda: th.forest_shapley(X, Y, memory="1B"), "memory of 1B is too little"),
        (lambda: th.LiveCounts.create("folder", forest=FOREST, rings=8), "the box has no rings"),
        (lambda: th.LiveCounts.create("folder"), "radius is missing: name a distance, or pass forest="),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(call, message):
    with pytest.raises(th.InputError, match=message):
        call()


def test_columns_have_the_names_they_were_grown_with():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    forest = th.grow_forest(frame, Y, trees=4)
    counts = th.NeighborCounts(forest=forest)
    with pytest.raises(th.InputError, match="X has the columns of the forest in another order"):
        counts.add(frame[["b", "a", "c"]], Y)
    counts.add(X, Y).remove(frame, Y)  # numbers without names are taken as they come
    assert not counts.table.any()


WAYS = {
    "forest_shapley": th.forest_shapley,
    "parts": lambda X, y, **more: th.forest_shapley(X, y, memory="9GB", **more),
    "dask": lambda X, y, **more: th.forest_shapley(as_dask(X), y, **more),
    "forest_findings": th.forest_findings,
    "grow_forest": th.grow_forest,
}


def as_dask(X):
    frame = pytest.importorskip("dask.dataframe")
    if isinstance(X, pd.DataFrame):
        return frame.from_pandas(X, npartitions=2)
    return pytest.importorskip("dask.array").from_array(X, (40, X.shape[1]))


@pytest.mark.parametrize("model", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_fitted_forest_takes_only_the_columns_that_it_was_fitted_on(way, model):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = model(5, random_state=0).fit(frame, Y)
    about = {"forest": fitted}
    if model is RandomForestRegressor:
        about |= {"task": "regression"} | ({} if way is th.grow_forest else {"empty": 0.0})
    for rows, why in (
        (X[:, :2], "X has 2 features but the forest has 3"),
        (np.c_[X, X], "X has 6 features but the forest has 3"),
        (frame[["c", "b", "a"]], "X has the columns of the forest in another order"),
        (frame[["a", "b"]], r"X and the forest have different columns: only in the forest \['c'"),
        (frame.astype({"b": "category"}), "X has columns of text or categories"),
    ):
        with pytest.raises(th.InputError, match=why):
            way(rows, Y, **about)


def test_a_forest_fitted_on_names_keeps_them_for_rows_without_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = RandomForestClassifier(5, random_state=0).fit(frame, Y)
    with pytest.raises(th.InputError, match="X_val has the columns of the forest in another order"):
        th.forest_shapley(X, Y, frame[["c", "b", "a"]], Y, forest=fitted)
    wanted = th.forest_shapley(X, Y, forest=fitted)
    for way in (WAYS["forest_shapley"], WAYS["parts"]):
        assert (way(frame, Y, forest=fitted).values == wanted.values).all()
    both = {"trees": 5, "folds": 2, "seed": 0}  # its own number, and the defaults
    assert th.forest_shapley(X, Y, forest=fitted, **both) == wanted


def test_no_more_than_a_leaf_holds_is_kept_of_points():
    side = ForestSide(FOREST, Classes((0, 1, 2)), None, np.zeros(0, np.int32))
    assert side.shape == (3, sum(FOREST.sizes))
    with pytest.raises(th.InputError, match="table must hold 3 x"):
        th.PriceList(side, "shapley", np.zeros((2, 5), np.int32))
    prices = th.NeighborCounts(forest=FOREST).add(X, Y).price_list()
    points = prices.side.check_points(X, Y)
    with pytest.raises(th.InputError, match="a forest has no counts of near validation points"):
        prices.add_label_values(points, np.zeros((120, 3)), np.zeros((120, 3), np.int32))


@pytest.mark.parametrize("seed", range(3))
def test_kernels_run_as_plain_python(seed):
    rng = np.random.default_rng(seed)
    rows, nodes = X[:30].astype(np.float32), [FOREST.nodes[name] for name in NODE]
    leaves, unseen = FOREST.apply(X[:30]), FOREST.unseen(X[:30])
    tree = FOREST.trees[seed]
    out = np.where(unseen[:, seed], 0, -1).astype(np.int32)
    drop_rows.py_func(rows, *tree.nodes, out)
    np.testing.assert_array_equal(out, np.where(unseen[:, seed], leaves[:, seed], -1))
    first = np.r_[0, np.cumsum(FOREST.nodes["nodes"])[:-1]]
    counts = np.zeros((3, FOREST.starts[-1]), np.int32)
    for row, inside in zip(rows, unseen, strict=True):
        move_in_trees.py_func(row, inside, first, FOREST.starts[:-1], *nodes, -1, 1, counts)
        move_in_trees.py_func(row, inside, first, FOREST.starts[:-1], *nodes, 1, 2, counts)
    want = th.NeighborCounts(forest=FOREST).add(X[:30], [2] * 30).table
    np.testing.assert_array_equal(counts, want)
    leaf_of, codes, order = rng.integers(-1, 4, 20), rng.integers(0, 3, 20), rng.permutation(20)
    own, base, change = rng.random((3, 4)), rng.random((3, 4)), rng.random((4, 3))
    values = np.zeros((20, 3))
    add_under_labels.py_func(leaf_of, codes, order, 2, 18, own, base, change, values)
    for i in range(20):
        for label in range(3):
            paid = 2 <= i < 18 and leaf_of[i] >= 0
            mine = own[codes[i], leaf_of[i]] if label == codes[i] else (
                base[codes[i], leaf_of[i]] + change[leaf_of[i], label]
            )  # fmt: skip
            assert values[order[i], label] == (mine if paid else 0)
