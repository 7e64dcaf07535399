"""Forests everywhere the walk goes: counts, price lists, parts, Dask, live stores; the same bits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles import semivalues
from parted import write_parts
from pyarrow import csv
from sklearn.ensemble import RandomForestClassifier
from test_forest import ORACLE, SEMIVALUES, judge_utility

import thresher as th
from thresher.inputs.labels import Classes
from thresher.neighbors import growing
from thresher.passes import forest_passes, in_parts
from thresher.sides.forest_side import ForestSide

TREES = 10


def points(count=150, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (count, 4)) / 2.0
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) + rng.normal(size=count) > 0).astype(int) + rng.integers(
        0, classes - 1, count
    )
    return X, y


X, y = points()
X_VAL, Y_VAL = points(40, 1)
FOREST = th.grow_forest(X, y, trees=TREES)
JUDGES = {"points": (None, None), "validation": (X_VAL, Y_VAL)}
SMALL = 37  # rows of a part


@pytest.fixture(params=list(JUDGES))
def judges(request):
    return JUDGES[request.param]


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(in_parts.Run, "_plan", lambda *_: (SMALL, "auto"))
    monkeypatch.setattr(forest_passes.Account, "rows", lambda *_: SMALL)


def check_same(found, wanted):
    assert found.values.tobytes() == wanted.values.tobytes()
    assert (found.utility_all, found.utility_none) == (wanted.utility_all, wanted.utility_none)
    assert found.params == wanted.params
    assert found.method == wanted.method


@pytest.mark.parametrize("kind", SEMIVALUES)
def test_price_lists_of_counted_parts_have_the_values_of_forest_shapley(judges, kind):
    wanted = th.forest_shapley(X, y, *judges, trees=TREES, semivalue=kind)
    check_same(th.forest_shapley(X, y, *judges, forest=FOREST, semivalue=kind), wanted)
    one, other = (th.NeighborCounts(*judges, forest=FOREST) for _ in range(2))
    one.add(X[50:], y[50:])
    for row in range(50):
        other.add(X[row : row + 1], y[row : row + 1])
    prices = one.merge(other).price_list(kind)
    assert len(one) == len(X)
    assert prices.values(X, y).tobytes() == wanted.values.tobytes()
    assert one.utility() == wanted.utility_all


def test_removing_and_relabeling_leave_no_trace(judges):
    counts = th.NeighborCounts(*judges, forest=FOREST).add(X, y)
    counts.add(X[:9] + 0.25, y[:9]).remove(X[:9] + 0.25, y[:9])
    counts.relabel(X[:30], y[:30], (y[:30] + 1) % 3).remove(X[100:], y[100:])
    for row in range(20):  # one by one they go another way
        counts.relabel(X[row : row + 1], [(y[row] + 1) % 3], [y[row].item()])
    counts.relabel(X[20:30], (y[20:30] + 1) % 3, y[20:30])
    fresh = th.NeighborCounts(*judges, forest=FOREST).add(X[:100], y[:100])
    np.testing.assert_array_equal(counts.table, fresh.table)
    with pytest.raises(th.InputError, match="X has row 1 that cannot be removed"):
        counts.remove(X[[0, 120]] + [[0], [50]], y[[0, 120]])


def test_a_row_is_counted_only_in_trees_that_did_not_see_it(judges):
    table = th.NeighborCounts(*judges, forest=FOREST).add(X, y).table
    assert table.dtype == np.int32
    assert table.sum() == len(X) * TREES / 2
    leaves, unseen = FOREST.apply(X), FOREST.unseen(X)
    for tree in range(TREES):
        inside = unseen[:, tree]
        cells = leaves[inside, tree] + FOREST.starts[tree]
        wanted = np.zeros_like(table)
        np.add.at(wanted, (y[inside], cells), 1)
        columns = slice(FOREST.starts[tree], FOREST.starts[tree + 1])
        np.testing.assert_array_equal(table[:, columns], wanted[:, columns])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("judged", list(JUDGES))
def test_members_relabeled_members_and_newcomers_equal_enumeration(seed, judged):
    """Every coalition of a small game: in it, with another label, and with one point more."""
    rng = np.random.default_rng(seed)
    n, classes, kind = int(rng.integers(1, 7)), int(rng.integers(1, 4)), SEMIVALUES[seed % 4]
    rows, labels = rng.integers(0, 3, (n + 1, 2)) * 1.0, rng.integers(0, classes, n + 1)
    forest = th.grow_forest(rows, labels, trees=6, folds=3, seed=seed)
    V, y_val = rng.integers(0, 3, (3, 2)) * 1.0, rng.integers(0, classes, 3)
    judges = (None, None) if judged == "points" else (V, y_val)

    def enumerated(which, labels):
        leaves, play = forest.apply(rows[which]), forest.unseen(rows[which])
        if judged == "points":
            asked = [(leaves[j], labels[j], np.flatnonzero(play[j]), j) for j in range(len(labels))]
        else:
            asked = [(leaf, label, range(6), None) for leaf, label in zip(forest.apply(V), y_val)]
        utility = judge_utility(leaves, labels, asked, play, classes)
        return semivalues(utility, len(labels), ORACLE.get(kind, kind))

    counts = th.NeighborCounts(*judges, forest=forest, classes=range(classes))
    prices = counts.add(rows[:n], labels[:n]).price_list(kind)
    member, other = slice(n), int(rng.integers(classes))
    np.testing.assert_allclose(
        prices.values(rows[:n], labels[:n]), enumerated(member, labels[:n]), atol=1e-13
    )
    changed = np.r_[other, labels[1:n]]
    want = enumerated(member, changed)[0]
    assert prices.values(rows[:1], labels[:1], label=other)[0] == pytest.approx(want, abs=1e-13)
    assert prices.label_values(rows[:1], labels[:1])[0, other] == pytest.approx(want, abs=1e-13)
    want = enumerated(slice(n + 1), labels)[n]
    assert prices.newcomer_values(rows[n:], labels[n:])[0] == pytest.approx(want, abs=1e-13)
    assert prices.label_values(rows[n:])[0, labels[n]] == pytest.approx(want, abs=1e-13)


@pytest.mark.parametrize("kind", SEMIVALUES)
def test_label_values_are_those_after_a_change(judges, kind):
    prices = th.NeighborCounts(*judges, forest=FOREST).add(X, y).price_list(kind)
    table = prices.label_values(X, y)
    np.testing.assert_allclose(table[np.arange(len(y)), y], prices.values(X, y), atol=1e-13)
    for label in range(3):
        np.testing.assert_allclose(table[:, label], prices.values(X, y, label=label), atol=1e-13)
        changed = np.r_[label, y[1:]]
        after = th.forest_shapley(X, changed, *judges, forest=FOREST, semivalue=kind)
        assert table[0, label] == pytest.approx(after.values[0], abs=1e-12)
    new = X[:1] + 0.3
    after = th.forest_shapley(np.r_[X, new], np.r_[y, 2], *judges, forest=FOREST, semivalue=kind)
    assert prices.newcomer_values(new, 2)[0] == pytest.approx(after.values[-1], abs=1e-12)


@pytest.mark.parametrize("mean", [False, True])
def test_parts_have_the_same_bits(judges, small_parts, mean):
    wanted = th.forest_shapley(X, y, *judges, trees=TREES, mean=mean, owners=y)
    found = th.forest_shapley(X, y, *judges, trees=TREES, mean=mean, owners=y, memory="64GB")
    check_same(found, wanted)
    assert found.by_owner() == wanted.by_owner()
    check_same(th.forest_shapley(X, y, *judges, forest=FOREST, mean=mean, memory="64GB"), wanted)


@pytest.mark.parametrize("library", [None, "dask", "parts"])
def test_a_fitted_forest_is_taken_as_it_is(judges, library, small_parts):
    rows = np.nan_to_num(X)
    fitted = RandomForestClassifier(5, random_state=0).fit(rows, y)
    wanted = th.leaf_shapley(
        fitted.apply(rows), y, *(x if x is None or x.ndim == 1 else fitted.apply(x) for x in judges)
    )
    if library == "dask":
        da = pytest.importorskip("dask.array")
        found = th.forest_shapley(da.from_array(rows, (40, 4)), y, *judges, forest=fitted).compute()
    else:
        memory = None if library is None else "64GB"
        found = th.forest_shapley(rows, y, *judges, forest=fitted, memory=memory)
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-12)
    assert found.params["folds"] is None


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_have_the_same_bits(tmp_path, judges, kind, small_parts):
    rows = np.nan_to_num(X)
    scan = th.Scan(write_parts(tmp_path / "points", kind, rows, y), label="y")
    judges = judges[0] if judges[0] is None else np.nan_to_num(judges[0]), judges[1]
    check_same(
        th.forest_shapley(scan, None, *judges, trees=TREES),
        th.forest_shapley(rows, y, *judges, trees=TREES),
    )


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_cells_of_files_may_be_missing(tmp_path, judges, kind, small_parts):
    table = pa.table(
        {name: pa.array(column, from_pandas=True) for name, column in zip("abcd", X.T)}
    )
    table = table.append_column("y", pa.array(y))
    path = tmp_path / f"points.{kind}"
    (csv.write_csv if kind == "csv" else pq.write_table)(table, path)
    found = th.forest_shapley(th.Scan(path, label="y"), None, *judges, trees=TREES)
    check_same(found, th.forest_shapley(X, y, *judges, trees=TREES))


def test_labels_that_nobody_expected_are_counted_again(tmp_path, judges, small_parts):
    rows, labels = np.nan_to_num(X), np.where(np.arange(len(y)) % 7 == 0, y + 5, y)
    wanted = th.forest_shapley(rows, labels, *judges, forest=FOREST)
    assert len(wanted.params["classes"]) > 4
    check_same(th.forest_shapley(rows, labels, *judges, forest=FOREST, memory="64GB"), wanted)
    scan = th.Scan(write_parts(tmp_path / "points", "csv", rows, labels), label="y")
    check_same(th.forest_shapley(scan, None, *judges, forest=FOREST), wanted)
    words = np.array(["a", "b", "c", "d"] * 5)[labels].tolist()
    wanted = th.forest_shapley(rows, words, forest=FOREST)
    check_same(th.forest_shapley(rows, words, forest=FOREST, memory="64GB"), wanted)


def test_a_broken_run_goes_on_with_the_forest_it_has_grown(tmp_path, judges, small_parts, monkeypatch):  # fmt: skip
    wanted, path = th.forest_shapley(X, y, *judges, trees=TREES), tmp_path / "run"
    tallied, calls = in_parts.Tally.of_part, []

    def break_off(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return tallied(*arguments)

    monkeypatch.setattr(in_parts.Tally, "of_part", break_off)
    with pytest.raises(KeyboardInterrupt):
        th.forest_shapley(X, y, *judges, trees=TREES, checkpoint=path)
    monkeypatch.setattr(forest_passes.Growth, "grown", None)
    check_same(th.forest_shapley(X, y, *judges, trees=TREES, checkpoint=path), wanted)
    assert len(calls) == -(-len(X) // SMALL) + 1  # two parts were not counted again
    assert not path.exists()


@pytest.mark.parametrize("chunk", [40, 150])
def test_dask_arrays_have_the_same_bits(judges, chunk, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr("thresher.sides.forest_side.BLOCK_BYTES", 2000)
    side = ForestSide(FOREST, Classes((0, 1, 2)), None, np.zeros(0, np.int32))
    assert len(side.ranges()) > 2
    wanted = th.forest_shapley(X, y, *judges, trees=TREES, mean=True)
    cut = da.from_array(X, (chunk, 4))
    check_same(th.forest_shapley(cut, y, *judges, trees=TREES, mean=True).compute(), wanted)
    check_same(th.forest_shapley(cut, y, *judges, forest=FOREST, mean=True).compute(), wanted)


def test_frames_of_dask_may_have_categories(judges):
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=np.array(["x", "yy", "z", "q"])[y])
    frame.loc[5, "e"] = None
    V = None if judges[0] is None else frame[:40].assign(a=X_VAL[:, 0])
    wanted = th.forest_shapley(frame, y, V, judges[1], trees=TREES)
    found = th.forest_shapley(dd.from_pandas(frame, npartitions=4), y, V, judges[1], trees=TREES)
    check_same(found.compute(), wanted)
    check_same(th.forest_shapley(frame, y, V, judges[1], trees=TREES, memory="64GB"), wanted)


def test_the_sample_that_decides_the_structure_does_not_depend_on_parts(monkeypatch):
    """With many copies, and copies that carry different labels."""
    monkeypatch.setattr(growing, "GROWN_FROM", 25)
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 3, (400, 2)).astype(np.float32)
    rows[:200] += rng.random((200, 2), np.float32)
    codes = rng.integers(0, 3, 400).astype(np.int32)
    want = growing.grow(rows, codes, None, 8, 2, 3)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(400)
        sample = growing.GrowingSample(4, 2, 3)
        parts = np.array_split(order, [30, 31, 200])
        first = sample.add(rows[parts[0]], codes[parts[0]].tolist())
        for part in parts[1:]:
            more = growing.GrowingSample(4, 2, 3)
            first.merge(more.add(rows[part], codes[part].tolist()))
        assert first.rows == 400
        assert len(first.features) < 300
        known = np.array(list(first.labels), np.int32)[first.codes]
        found = growing.grow(first.features, known, None, 8, 2, 3)
        for name, array in want.nodes.items():
            np.testing.assert_array_equal(found.nodes[name], array)


def test_live_stores_have_the_same_bits(tmp_path, judges):
    with th.LiveCounts.create(tmp_path / "store", *judges, forest=FOREST) as live:
        assert len(live.values()) == 0
        live.add_many(range(100), X[:100], y[:100])
        for row in range(100, 150):
            live.add(row, X[row] if row % 2 else X[row].tolist(), int(y[row]))
        live.add("more", X[0] + 9, 1)
        live.relabel("more", 2)
        live.remove("more")
        live.relabel(3, 0)
        live.verify()
        prices = live.price_list("banzhaf")
    labels = np.r_[y[:3], 0, y[4:]]
    with th.LiveCounts.open(tmp_path / "store") as live:
        check_same(live.values(), th.forest_shapley(X, labels, *judges, forest=FOREST))
        np.testing.assert_array_equal(live.points()[0], X.astype(np.float32))
        assert live.price_list("banzhaf").table.tobytes() == prices.table.tobytes()
    wanted = th.forest_shapley(X, labels, *judges, forest=FOREST, semivalue="banzhaf")
    assert prices.values(X, labels).tobytes() == wanted.values.tobytes()


def test_live_stores_of_frames_keep_categories_by_number(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=np.array(["x", "yy", "z", "q"])[y])
    forest = th.grow_forest(frame, y, trees=TREES)
    with th.LiveCounts.create(tmp_path / "store", forest=forest) as live:
        live.add_many(range(140), frame[:140], y[:140])
        for row in range(140, 150):
            live.add(row, frame[row : row + 1], int(y[row]))
        check_same(live.values(), th.forest_shapley(frame, y, trees=TREES))
        with pytest.raises(th.InputError, match="x must be a data frame with the columns"):
            live.add("other", [0.0] * 5, 1)
