from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import thresher as th
from thresher.kernels import pairs
from thresher.kernels.pairs import fingerprint, fingerprints, is_near, move_row, squared_norms
from thresher.live import folder as live_folder
from thresher.live import journal as live_journal
from thresher.panels import Panels

pytestmark = pytest.mark.filterwarnings("ignore::thresher.errors.TwinWarning")

CLASSES = [0, 1, 2]
METRICS = ["cosine", "euclidean"]
WIDTHS = [1, 3, 4, 8, 9, 15, 100, 127, 128, 129, 200]


def grid(rng, n, width, dtype=np.float64):
    """Rows on a coarse grid, where many pairs lie exactly at the radius; none is zero."""
    X = rng.integers(-2, 3, (n, width)) / 2
    X[:, 0] += np.where((X == 0).all(axis=1), 1, 0)
    return X.astype(dtype)


def validation(rng, m=70, width=3, dtype=np.float64):
    return grid(rng, m, width, dtype), rng.integers(0, 3, m)


def fresh(V, y_val, points, **options):
    X, y = np.array([row for row, _ in points.values()]), [label for _, label in points.values()]
    return th.tknn_shapley(X, y, V, y_val, classes=CLASSES, **options)


def check_same(live, points, V, y_val, **options):
    """The store holds these points, and values them as a fresh computation does."""
    assert live.ids == tuple(points)
    X, y = live.points()
    assert y.tolist() == [label for _, label in points.values()]
    live.verify()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", th.ReachWarning)
        got = live.values()
        if not points:
            assert len(got) == 0
            assert got.utility_all == got.utility_none
            return
        assert X.tolist() == [np.float64(row).tolist() for row, _ in points.values()]
        want = fresh(V, y_val, points, **options)
    assert got.values.tobytes() == want.values.tobytes()
    assert (got.utility_all, got.utility_none) == (want.utility_all, want.utility_none)
    assert got.params == want.params
    assert got.ids == tuple(points)


# one row at a time


@pytest.mark.parametrize("kernel", [move_row, move_row.py_func], ids=["jit", "python"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", WIDTHS)
def test_one_row_is_decided_by_the_pair_rule(kernel, metric, width):
    rng = np.random.default_rng(width)
    V, y_val = validation(rng, 70, width)
    V[::2] = rng.standard_normal(V[::2].shape)
    if metric == "euclidean":
        radius = np.sqrt(((V[1] - V[3]) ** 2).sum())
    else:
        radius = 1 - V[1] @ V[3] / np.sqrt((V[1] @ V[1]) * (V[3] @ V[3]))
    counts = th.NeighborCounts(V, y_val, radius=max(radius, 0), metric=metric, classes=CLASSES)
    panels, out = Panels.of(counts.validation, counts.radius), np.zeros((2, 70), np.int64)
    near = []
    X = np.vstack([V[[1, 3]], rng.standard_normal((2, width)), -V[:1]])
    squares = np.empty(len(X))
    squared_norms(X, (), squares)
    for x, x2 in zip(X, squares):
        assert kernel(
            x, panels.numbers, panels.squares, panels.codes, metric == "cosine", counts.radius,
            panels.bounds, -1, 1, False, out,
        )  # fmt: skip
        near.append([
            is_near(x, v, x2, v2, metric == "cosine", counts.radius)
            for v, v2 in zip(V, panels.squares)
        ])  # fmt: skip
    near = np.sum(near, axis=0)
    assert 0 < near.sum() < near.size * len(X) or width == 1
    np.testing.assert_array_equal(out[0], np.where(y_val == 1, near, 0))
    np.testing.assert_array_equal(out[1], np.where(y_val == 1, 0, near))


@pytest.mark.parametrize("python", [False, True], ids=["jit", "python"])
@pytest.mark.parametrize("width", WIDTHS)
def test_sums_of_a_panel_are_those_of_the_pairs_to_the_last_bit(width, python):
    rng = np.random.default_rng(width)
    V, x = rng.standard_normal((64, width)), rng.standard_normal(width)
    panels, lanes = np.ascontiguousarray(V.T)[None], np.empty((64, 64))
    for fill, pair in [
        (pairs._panel_dots, pairs.dot),
        (pairs._panel_distances, pairs.squared_distance),
    ]:
        (fill.py_func if python else fill)(x, panels, 0, lanes)
        assert lanes[0].tolist() == [pair(x, v) for v in V]


def test_the_fingerprint_of_one_row_is_that_of_a_table():
    X = np.random.default_rng(0).standard_normal((20, 7))
    X[3, 2] = -0.0
    out = np.empty(20, np.uint64)
    fingerprints(X, np.arange(20), out)
    assert [fingerprint(x, i) for i, x in enumerate(X)] == out.tolist()
    assert fingerprint(np.array([-0.0]), 1) == fingerprint(np.array([0.0]), 1)
    assert fingerprint(np.array([1.0]), 1) != fingerprint(np.array([1.0]), 2)


@given(
    seed=st.integers(0, 10**6),
    metric=st.sampled_from(METRICS),
    width=st.sampled_from([1, 3, 17, 130]),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    radius=st.sampled_from([0.0, 0.3, 0.5, 1.0, 2.0, 5.0, np.inf]),
)
def test_rows_one_by_one_leave_what_tables_leave(seed, metric, width, dtype, radius):
    rng = np.random.default_rng(seed)
    V, y_val = validation(rng, 1 + seed % 130, width)
    X, y, new = grid(rng, 12, width, dtype), rng.integers(0, 3, 12), rng.integers(0, 3, 12)
    public = {"radius": radius, "metric": metric, "classes": CLASSES}
    single, table = (th.NeighborCounts(V, y_val, **public) for _ in range(2))
    table.add(X, y).relabel(X[4:], y[4:], new[4:]).remove(X[:6], np.r_[y[:4], new[4:6]])
    for i in range(12):
        single.add(X[i : i + 1], [y[i]] if i % 2 else y[i : i + 1])
    for i in range(4, 12):
        single.relabel(X[i : i + 1], y[i : i + 1], [new[i]])
    for i in range(6):
        single.remove(X[i : i + 1], [(y if i < 4 else new)[i]])
    np.testing.assert_array_equal(single.same, table.same)
    np.testing.assert_array_equal(single.other, table.other)
    assert single._settled() == table._settled()
    assert len(single) == len(table) == 6


BAD = {
    "nan": ([[np.nan, 1.0, 1.0]], [1], "NaN or infinite values in row 0"),
    "infinite": ([[np.inf, 1.0, 1.0]], [1], "NaN or infinite values in row 0"),
    "huge": ([[1e100, 1.0, 1.0]], [1], "beyond 1e72"),
    "zero": ([[0.0, 0.0, 0.0]], [1], "zero rows"),
    "tiny": ([[1e-200, 0.0, 0.0]], [1], "too close to zero"),
    "narrow": ([[1.0, 1.0]], [1], "2 features but X_val has 3"),
    "deep": ([[[1.0, 1.0, 1.0]]], [1], "two dimensions"),
    "flat": ([1.0, 1.0, 1.0], [1], "two dimensions"),
    "stranger": ([[1.0, 1.0, 1.0]], [7], "labels not in classes|label must be a class"),
    "missing": ([[1.0, 1.0, 1.0]], [None], "missing labels|label must be a class"),
    "unhashable": ([[1.0, 1.0, 1.0]], [[1]], "not hashable|label must be a class"),
    "none": ([[1.0, 1.0, 1.0]], None, "sequence of labels"),
    "number": ([[1.0, 1.0, 1.0]], -1, "sequence of labels"),
    "two": ([[1.0, 1.0, 1.0]], [1, 1], "2 labels but there are 1 rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_row_is_refused_as_a_table_is_and_nothing_changes(case, rng):
    rows, labels, message = BAD[case]
    V, y_val = validation(rng)
    good = np.array([[1.0, 2.0, 1.0]])
    counts = th.NeighborCounts(V, y_val, classes=CLASSES).add(good, [1])
    before = pickle.dumps((counts.same, counts.other, counts._settled(), len(counts)))
    calls = [lambda: counts.add(np.array(rows), labels), lambda: counts.remove(np.array(rows), labels),
             lambda: counts.relabel(np.array(rows), labels, [0])]  # fmt: skip
    for call in calls:
        with pytest.raises(th.InputError, match=message):
            call()
    if np.array(rows).shape == (1, 3) and message.count("label"):
        with pytest.raises(th.InputError, match=r"label"):
            counts.relabel(good, [1], labels)
    assert pickle.dumps((counts.same, counts.other, counts._settled(), len(counts))) == before


def test_relabeling_is_all_or_nothing(rng):
    V, y_val = validation(rng)
    X, y = rng.standard_normal((10, 3)), rng.integers(0, 3, 10)
    counts = th.NeighborCounts(V, y_val, classes=CLASSES).add(X, y)
    before = counts.same
    wrong = y.copy()
    wrong[[2, 5]] = (y[[2, 5]] + 1) % 3
    with pytest.raises(th.InputError, match=r"rows 2, 5 that cannot be relabeled"):
        counts.relabel(X, wrong, y)
    with pytest.raises(th.InputError, match=r"row 0 that cannot be relabeled"):
        counts.relabel(X[2:3], wrong[2:3], y[2:3])
    np.testing.assert_array_equal(counts.same, before)
    counts.relabel(X, y, wrong)
    assert not np.array_equal(counts.same, before)
    np.testing.assert_array_equal(
        counts.same, th.NeighborCounts(V, y_val, classes=CLASSES).add(X, wrong).same
    )
    assert len(counts) == 10


def test_precomputed_distances_are_relabeled_too(rng):
    D, y, y_val = rng.random((30, 8)), rng.integers(0, 3, 30), rng.integers(0, 3, 8)
    public = {"radius": 0.5, "metric": "precomputed", "classes": CLASSES}
    counts, want = (th.NeighborCounts(None, y_val, **public) for _ in range(2))
    counts.add(D, y).relabel(D[:1], y[:1], (y[:1] + 1) % 3).relabel(
        D[5:9], y[5:9], (y[5:9] + 1) % 3
    )
    y[[0, 5, 6, 7, 8]] = (y[[0, 5, 6, 7, 8]] + 1) % 3
    np.testing.assert_array_equal(counts.same, want.add(D, y).same)
    np.testing.assert_array_equal(counts.other, want.other)


def test_a_twin_is_warned_of_and_counted_also_among_rows_of_one_norm(rng):
    V, y_val = validation(rng)
    V = rng.standard_normal(V.shape).round(2)
    V[1] = V[0][::-1]  # another row of the same norm
    counts = th.NeighborCounts(V, y_val, classes=CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert counts.move_row(V[0, [1, 0, 2]], -1, 1)  # without the detour of a table
    with pytest.warns(th.TwinWarning, match="1 of 70") as caught:
        counts.add(V[0:1], [1])
    assert caught[0].filename == __file__
    assert len(counts) == 2


# the store


@pytest.fixture
def public(rng):
    return validation(rng)


def create(path, public, **options):
    return th.LiveCounts.create(path, *public, **{"radius": 0.3, "classes": CLASSES, **options})


def fill(live, n=6, seed=0):
    """Some updates; what is there after them."""
    rng, points = np.random.default_rng(seed), {}
    for i in range(n):
        points[f"p{i}"] = (rng.standard_normal(3), int(rng.integers(3)))
        live.add(f"p{i}", *points[f"p{i}"])
    live.remove("p1")
    del points["p1"]
    live.relabel("p3", 2)
    points["p3"] = (points["p3"][0], 2)
    return points


class Updates(RuleBasedStateMachine):
    """Any updates in any order, with snapshots, crashes and reopening between them."""

    metric, dtype = "cosine", "float64"
    path = None

    def __init__(self):
        super().__init__()
        shutil.rmtree(self.path, ignore_errors=True)
        self.rng = np.random.default_rng(5)
        self.public = validation(self.rng)
        self.options = {"radius": 0.5 if self.metric == "cosine" else 1.0, "metric": self.metric}
        self.live = create(self.path, self.public, dtype=self.dtype, **self.options)
        self.points, self.next = {}, 0

    def row(self):
        return grid(self.rng, 1, 3, self.rng.choice([np.float16, np.float32, np.float64]))[0]

    def new_id(self):
        self.next += 1
        return self.next if self.next % 2 else f"né {self.next}"

    @rule(label=st.sampled_from(CLASSES), as_list=st.booleans())
    def add(self, label, as_list):
        name, row = self.new_id(), self.row()
        self.live.add(name, row.tolist() if as_list else row, label)
        self.points[name] = (row, label)

    @rule(n=st.integers(1, 5))
    def add_many(self, n):
        names, X = [self.new_id() for _ in range(n)], grid(self.rng, n, 3)
        y = self.rng.integers(0, 3, n)
        self.live.add_many(names, X, y)
        self.points.update(zip(names, zip(X, y.tolist())))

    @precondition(lambda self: self.points)
    @rule(data=st.data())
    def remove(self, data):
        name = data.draw(st.sampled_from(list(self.points)))
        self.live.remove(name)
        del self.points[name]

    @precondition(lambda self: self.points)
    @rule(data=st.data(), label=st.sampled_from(CLASSES))
    def relabel(self, data, label):
        name = data.draw(st.sampled_from(list(self.points)))
        self.live.relabel(name, label)
        self.points[name] = (self.points[name][0], label)

    @rule()
    def snapshot(self):
        self.live.snapshot()
        assert self.live.journaled == 0

    @rule(closed=st.booleans())
    def reopen(self, closed):
        if closed:
            self.live.close()
        else:  # committed, then the process died
            self.live.commit()
            self.live._journal.close()
            self.live._file_lock.close()
        self.live = th.LiveCounts.open(self.path)

    @invariant()
    def is_as_if_computed_afresh(self):
        check_same(self.live, self.points, *self.public, **self.options)

    def teardown(self):
        self.live.close()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", METRICS)
def test_after_any_updates_values_equal_a_fresh_computation_to_the_last_bit(
    metric, dtype, tmp_path
):
    made = {"metric": metric, "dtype": dtype, "path": tmp_path / "store"}
    case = type("Case", (Updates,), made).TestCase
    case.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
    case().runTest()
    assert (tmp_path / "store" / "journal").exists()


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", th.Beta(4, 1)])
def test_values_over_several_blocks_are_those_of_a_fresh_computation(semivalue, rng, tmp_path):
    X, y = rng.standard_normal((3000, 4)).astype(np.float32), rng.integers(0, 3, 3000)
    V, y_val = rng.standard_normal((1300, 4)), rng.integers(0, 3, 1300)
    with create(tmp_path / "s", (V, y_val), radius=0.2) as live:
        live.add_many(range(3000), X, y)
        for i in range(0, 3000, 7):
            live.remove(i)
        for i in range(1, 3000, 7):
            live.relabel(i, (y[i] + 1) % 3)
        for i in range(0, 3000, 21):
            live.add(i, X[i], y[i])
        got, (rows, labels) = live.values(semivalue), live.points()
        prices = live.price_list(semivalue)
    want = th.tknn_shapley(rows, labels, V, y_val, radius=0.2, classes=CLASSES, semivalue=semivalue)
    assert got.values.tobytes() == want.values.tobytes()
    assert got.utility_all == want.utility_all
    assert got.params == want.params
    assert prices.values(rows, labels).tobytes() == want.values.tobytes()
    assert got.ids[-1] == 2982  # added again, so the last
    assert got.ids[:3] == (1, 2, 3)


def test_what_is_refused_changes_nothing(public, tmp_path):
    with create(tmp_path / "s", public) as live:
        points = fill(live)
        size = live.journaled
        for case, (rows, labels, message) in BAD.items():
            if case not in {"deep", "flat", "none", "number", "two"}:
                with pytest.raises(th.InputError, match=message):
                    live.add("new", rows[0], labels[0])
                with pytest.raises(th.InputError, match=message):
                    live.add("new", np.array(rows[0]), labels[0])
        for call, message in [
            (lambda: live.add("p0", [1, 2, 3], 1), "'p0' is there already"),
            (lambda: live.remove("p1"), "no point with the id 'p1'"),
            (lambda: live.relabel("p1", 1), "no point with the id 'p1'"),
            (lambda: live.relabel("p0", 7), "label must be a class of this store, one of"),
            (lambda: live.add_many({"q"}, [[1.0, 2.0, 3.0]], [0]), "a set has none"),
            (lambda: live.relabel("p0", None), "missing labels|label must be a class"),
            (lambda: live.add(True, [1, 2, 3], 1), "id must be a string or an integer"),
            (lambda: live.add(1.0, [1, 2, 3], 1), "id must be a string or an integer"),
            (lambda: live.add(2**63, [1, 2, 3], 1), "id must be a string or an integer"),
            (lambda: live.add("\ud800", [1, 2, 3], 1), "id must be a string or an integer"),
            (lambda: live.add("new", [[1, 2, 3]], 1), "two dimensions"),
            (lambda: live.add("new", 3, 1), "two dimensions"),
            (lambda: live.add_many(["a", "a"], np.ones((2, 3)), [1, 1]), "distinct, got 'a'"),
            (lambda: live.add_many(["a", "p0"], np.ones((2, 3)), [1, 1]), "distinct, got 'p0'"),
            (lambda: live.add_many("ab", np.ones((2, 3)), [1, 1]), "ids must be a sequence"),
            (lambda: live.add_many(["a"], np.ones((2, 3)), [1, 1]), "1 ids for 2 points"),
            (lambda: live.add_many(["a", "b"], [[1, 2, 3], [0, 0, 0]], [1, 1]), "zero rows"),
        ]:
            with pytest.raises(th.InputError, match=message):
                call()
        assert live.journaled == size
        assert "new" not in live
        assert "p0" in live
        assert None not in live
        check_same(live, points, *public, radius=0.3)


def test_a_warning_made_an_error_changes_nothing_either(public, tmp_path):
    with create(tmp_path / "s", public) as live:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for call in (lambda: live.add("twin", public[0][0], 1),
                         lambda: live.add_many(["twin"], public[0][:1], [1])):  # fmt: skip
                with pytest.raises(th.TwinWarning):
                    call()
        assert len(live) == 0
        with pytest.warns(th.TwinWarning) as caught:
            live.add("twin", public[0][0], 1)
        assert caught[0].filename == __file__
        check_same(live, {"twin": (public[0][0], 1)}, *public, radius=0.3)


def test_a_float32_store_rounds_nothing(public, tmp_path):
    with create(tmp_path / "s", public, dtype="float32") as live:
        live.add("a", [0.5, 0.25, 1.0], 1)
        for row in ([0.1, 0.25, 1.0], [1e60, 1.0, 1.0]):
            with pytest.raises(th.InputError, match="float32 cannot hold exactly"):
                live.add("b", row, 1)
        with pytest.raises(th.InputError, match="NaN"):
            live.add("b", [np.nan, 1.0, 1.0], 1)
        assert live.points()[0].dtype == np.float32
        assert live.ids == ("a",)


def test_counts_are_a_copy_that_stays_as_it_is(public, tmp_path):
    with create(tmp_path / "s", public) as live:
        fill(live)
        counts = live.counts
        before = counts.same
        live.remove("p0")
        np.testing.assert_array_equal(counts.same, before)
        assert len(counts) == 5
        X, y = live.points()
        counts.remove(X, y)
        assert (len(counts), len(live)) == (1, 4)
        live.verify()
        live._counts._counts[0, 0] += 1
        with pytest.raises(th.InputError, match="are not those of its points"):
            live.verify()


def test_threads_may_share_a_store(public, tmp_path):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 3))

    def work(part):
        for i in range(part, 400, 4):
            live.add(i, X[i], i % 3)
            if i % 5 == 0:
                live.relabel(i, 0)
            if i % 7 == 0:
                live.remove(i)

    with create(tmp_path / "s", public) as live:
        threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(live.ids) == {i for i in range(400) if i % 7}
        live.verify()
    with th.LiveCounts.open(tmp_path / "s") as live:
        live.verify()
        assert len(live) == 342


# files


def test_a_store_says_what_it_is_and_opens_again(public, tmp_path):
    with create(tmp_path / "shop", public) as live:
        points = fill(live)
        assert repr(live) == "LiveCounts(shop, 5 points, 70 validation points, cosine radius 0.3)"
        assert live.folder == tmp_path / "shop"
    live.close()
    for call in (live.commit, live.snapshot, lambda: live.add("x", [1, 2, 3], 1)):
        with pytest.raises(th.InputError, match="is closed: use LiveCounts.open"):
            call()
    with th.LiveCounts.open(str(tmp_path / "shop")) as live:
        check_same(live, points, *public, radius=0.3)
    assert sorted(p.name for p in (tmp_path / "shop").iterdir()) == [
        "journal",
        "lock",
        "snapshot.npz",
    ]


def test_only_a_free_folder_is_taken_and_only_a_store_opened(public, tmp_path):
    V, _ = public
    create(tmp_path / "s", public).close()
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("")
    for call, message in [
        (lambda: create(tmp_path / "s", public), "holds a store already"),
        (lambda: create(tmp_path / "file", public), "got the file"),
        (lambda: create(tmp_path / "full", public), "not empty"),
        (lambda: create(tmp_path / "no" / "folder", public), "cannot create"),
        (lambda: create("", public), "must be the name of a folder"),
        (lambda: create(tmp_path / "n", public, metric="precomputed"), "metric must be one of"),
        (lambda: create(tmp_path / "n", public, dtype="float16"), "dtype must be one of"),
        (lambda: create(tmp_path / "n", public, radius=-1), "radius must be"),
        (lambda: th.LiveCounts.create(tmp_path / "n", V[:2], [("a",), ("b",)], radius=1), "cannot be saved"),
        (lambda: th.LiveCounts.open(tmp_path / "n"), "there is no store in"),
        (lambda: th.LiveCounts.open(tmp_path / "full"), "there is no store in"),
    ]:  # fmt: skip
        with pytest.raises(th.InputError, match=message):
            call()
    create(tmp_path / "n", public).close()  # what was broken off is no hindrance
    (tmp_path / "n" / "journal").unlink()
    with pytest.raises(th.InputError, match="journal is missing"):
        th.LiveCounts.open(tmp_path / "n")


def test_a_second_writer_is_refused(public, tmp_path):
    code = "import sys, thresher as th; th.LiveCounts.open(sys.argv[1])"
    with create(tmp_path / "s", public) as live:
        with pytest.raises(th.InputError, match="is in use"):
            th.LiveCounts.open(tmp_path / "s")
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, str(tmp_path / "s")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert "is in use: only one may write to it at a time" in done.stderr
        points = fill(live)
    with th.LiveCounts.open(tmp_path / "s") as live:
        assert live.ids == tuple(points)


def history(folder, public):
    """A store with updates one by one, committed after the fourth; the states, and where they end."""
    states, ends = [()], [live_journal.START]
    live = create(folder, public)
    steps = [
        lambda: live.add("a", [1.0, 2.0, 3.0], 1),
        lambda: live.add(7, [1.5, 2.0, 3.0], 2),
        lambda: live.relabel("a", 0),
        lambda: live.add("c", [1.0, -2.0, 3.0], 1),
        live.commit,
        lambda: live.remove(7),
        lambda: live.add("dé", [0.0, -2.0, 3.0], 1),
        lambda: live.relabel("c", 2),
    ]
    for step in steps:
        step()
        live._journal._write()
        states.append(state_of(live))
        ends.append((folder / "journal").stat().st_size)
    live._journal.close()
    live._file_lock.close()
    return states, ends


def state_of(live):
    X, y = live.points()
    return tuple(zip(live.ids, map(tuple, X.tolist()), y.tolist()))


def opened(folder):
    """The state after opening, and whether something was said to be cut off."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with th.LiveCounts.open(folder) as live:
            live.verify()
            state = state_of(live)
    cuts = [w for w in caught if "a crash cut off" in str(w.message)]
    assert all(w.filename == __file__ for w in cuts)
    return state, bool(cuts)


def test_a_torn_end_is_cut_off_at_whatever_byte_and_said(public, tmp_path):
    states, ends = history(tmp_path / "s", public)
    whole = (tmp_path / "s" / "journal").read_bytes()
    assert ends[-1] == len(whole)
    for size in range(live_journal.START, len(whole) + 1):
        for tail in (b"", bytes(9), b"\x0e\x00\x00\x00"):
            torn = whole[:size] + tail
            (tmp_path / "s" / "journal").write_bytes(torn)
            same = [ours == theirs for ours, theirs in zip(torn, whole)]
            agreed = len(same) if all(same) else same.index(False)  # zeros may be what was to come
            done = max(k for k, end in enumerate(ends) if end <= agreed)
            assert opened(tmp_path / "s") == (states[done], len(torn) > ends[done])
            again = opened(tmp_path / "s")  # cut once and for all
            assert again == (states[done], False)
            if size % 9:
                break
    for size in range(live_journal.START):
        (tmp_path / "s" / "journal").write_bytes(whole[:size])
        with pytest.raises(th.InputError, match="damaged at its beginning"):
            th.LiveCounts.open(tmp_path / "s")


@pytest.mark.parametrize("bit", [0, 5])
def test_a_flipped_bit_is_refused_where_it_was_committed_and_cut_off_where_not(
    bit, public, tmp_path
):
    states, ends = history(tmp_path / "s", public)
    whole = (tmp_path / "s" / "journal").read_bytes()
    committed = ends[5]  # the mark of the commit ends here
    refused = 0
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 1 << bit
        (tmp_path / "s" / "journal").write_bytes(broken)
        if place < ends[4]:  # before the mark
            with pytest.raises(th.InputError, match=r"damaged|not the journal of this store"):
                th.LiveCounts.open(tmp_path / "s")
            refused += 1
            assert (tmp_path / "s" / "journal").read_bytes() == broken  # left alone
        else:
            done = max(k for k, end in enumerate(ends) if end <= place)
            assert opened(tmp_path / "s") == (states[done], True)
    assert refused == ends[4] < committed < len(whole)


def test_a_damaged_snapshot_is_refused(public, tmp_path):
    with create(tmp_path / "s", public) as live:
        fill(live)
        live.snapshot()
        want = state_of(live)
    path = tmp_path / "s" / "snapshot.npz"
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 13):
        broken = bytearray(whole)
        broken[place] ^= 16
        path.write_bytes(broken)
        try:
            assert opened(tmp_path / "s") == (want, False)  # nothing but a date in the file
        except th.InputError:
            refused += 1
    assert refused > 0.6 * len(whole) / 13
    path.write_bytes(whole[:-100])
    with pytest.raises(th.InputError, match="snapshot of live counts"):
        th.LiveCounts.open(tmp_path / "s")


def test_what_counts_is_on_the_disk_before_anything_relies_on_it(public, tmp_path, monkeypatch):
    folder, events = tmp_path / "s", []
    live = create(folder, public)
    fill(live)
    journal = folder / "journal"
    for module, name in [(live_journal, "sync"), (live_folder, "sync"), (live_journal, "sync_folder"),
                         (live_folder, "sync_folder")]:  # fmt: skip
        real = getattr(module, name)

        def noted(what, name=name, real=real):
            size = journal.stat().st_size
            events.append((name, size, sorted(path.name[:5] for path in folder.iterdir())))
            real(what)

        monkeypatch.setattr(module, name, noted)
    live.commit()
    [(name, size, _)] = events
    assert name == "sync"  # once, after all records and before the mark
    assert journal.stat().st_size == size + live_journal.LEAD.size + live_journal.BODY.size
    size = journal.stat().st_size
    live.commit()
    assert len(events) == 1  # there was nothing to commit
    events.clear()
    live.snapshot()
    there = ["journ", "lock", "snaps"]
    assert events == [
        ("sync", size, [".thre", *there]),  # the draft of the snapshot
        ("sync_folder", size, there),
        ("sync", size, [".thre", *there]),  # the draft of the new journal
        ("sync_folder", live_journal.START, there),
    ]
    live.close()


def test_files_of_different_stores_or_times_do_not_go_together(public, tmp_path):
    for name in "st":
        with create(tmp_path / name, public) as live:
            fill(live)
            shutil.copytree(tmp_path / name, tmp_path / f"{name} before")
            live.snapshot()
            live.add("later", [1.0, 2.0, 1.0], 1)
    journal = (tmp_path / "s" / "journal").read_bytes()
    (tmp_path / "t" / "journal").write_bytes(journal)
    with pytest.raises(th.InputError, match="not the journal of this store"):
        th.LiveCounts.open(tmp_path / "t")
    (tmp_path / "s before" / "journal").write_bytes(journal)
    with pytest.raises(th.InputError, match="newer than the snapshot"):
        th.LiveCounts.open(tmp_path / "s before")


@pytest.mark.parametrize("lost", [0, 1, 22])  # bytes of the mark that a power cut may take along
def test_a_crash_between_snapshot_and_journal_loses_and_doubles_nothing(lost, public, tmp_path):
    folder = tmp_path / "s"
    with create(folder, public) as live:
        points = fill(live)
        live.commit()
        old = (folder / "journal").read_bytes()
        live.snapshot()
    (folder / "journal").write_bytes(old[: len(old) - lost])
    (folder / ".thresher-draft").write_bytes(b"half a snapshot")
    with th.LiveCounts.open(folder) as live:
        check_same(live, points, *public, radius=0.3)
        live.add("more", [1.0, 2.0, 1.0], 1)
        points["more"] = ([1.0, 2.0, 1.0], 1)
    assert not (folder / ".thresher-draft").exists()
    with th.LiveCounts.open(folder) as live:
        check_same(live, points, *public, radius=0.3)


@pytest.mark.parametrize("where", ["before", "snapshot", "journal"])
def test_a_snapshot_that_breaks_off_anywhere_leaves_the_store_whole(
    where, public, tmp_path, monkeypatch
):
    folder = tmp_path / "s"
    live = create(folder, public)
    points = fill(live)

    def dies(*_, **__):
        raise KeyboardInterrupt

    module, name = {
        "before": (live_folder.np, "savez"),
        "snapshot": (live_folder, "sync_folder"),
        "journal": (live_journal, "write_whole"),
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(module, name, dies)
        with pytest.raises(KeyboardInterrupt):
            live.snapshot()
    live.close()
    with th.LiveCounts.open(folder) as live:
        check_same(live, points, *public, radius=0.3)
        live.add("more", [1.0, 2.0, 1.0], 1)
    with th.LiveCounts.open(folder) as live:
        assert live.ids == (*points, "more")
        live.verify()


def test_after_a_failed_write_only_opening_anew_goes_on(public, tmp_path, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    live = create(tmp_path / "s", public)
    points = fill(live)
    live.commit()
    live.add("lost", [1.0, 2.0, 1.0], 1)
    live._journal.close()
    monkeypatch.setattr(live._journal, "_file", Full())
    with pytest.raises(th.InputError, match="cannot be written: No space left on device"):
        live.commit()
    with pytest.raises(th.InputError, match="because an update broke off: use LiveCounts.open"):
        live.remove("p0")
    for read in (lambda: live.ids, lambda: live.counts, live.points, live.values, live.price_list):
        with pytest.raises(th.InputError, match="broke off"):
            read()
    live.close()
    with th.LiveCounts.open(tmp_path / "s") as live:
        check_same(live, points, *public, radius=0.3)


def test_an_interrupted_update_is_no_half_update(public, tmp_path, monkeypatch):
    live = create(tmp_path / "s", public)
    points = fill(live)
    live.commit()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(live._points, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        live.add("half", [1.0, 2.0, 1.0], 1)
    with pytest.raises(th.InputError, match="broke off"):
        live.relabel("p0", 1)
    live.close()
    with th.LiveCounts.open(tmp_path / "s") as live:
        check_same(live, points, *public, radius=0.3)


FORKED = """
import os, sys
import thresher as th
live = th.LiveCounts.create(sys.argv[1], [[0.0], [4.0]], ["a", "b"], radius=1, metric="euclidean")
live.add("first", [0.5], "a")
live.commit()
held, free = os.pipe()
child = os.fork()
if child == 0:
    refused = 0
    for update in (live.snapshot, live.commit, lambda: live.add("x", [0.5], "a")):
        try:
            update()
        except th.InputError as error:
            refused += "belongs to the process that opened it" in str(error)
    if sys.argv[2] == "close":
        live.close()
    os.read(held, 1)  # alive until the parent is through
    os._exit(refused)
live.add("second", [0.6], "a")
live.commit()
if sys.argv[2] == "close":
    os.write(free, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
try:
    th.LiveCounts.open(sys.argv[1])
except th.InputError as error:
    assert "is in use" in str(error), error  # the child has not let go of what is not its own
else:
    sys.exit("opened twice")
live.close()
with th.LiveCounts.open(sys.argv[1]) as live:
    assert live.ids == ("first", "second")
os.write(free, b"!")
"""


@pytest.mark.parametrize("child", ["close", "stay"])
def test_a_forked_process_changes_nothing(child, tmp_path):
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", FORKED, tmp_path / "s", child],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_commit_after_opening_waits_for_what_was_never_on_the_disk(public, tmp_path, monkeypatch):
    live = create(tmp_path / "s", public)
    points = fill(live)
    live._journal._write()  # by the system, not on the disk: as a killed process leaves it
    live._journal.close()
    live._file_lock.close()
    synced = []
    monkeypatch.setattr(live_journal, "sync", synced.append)
    again = th.LiveCounts.open(tmp_path / "s")
    assert again.ids == tuple(points)
    again.commit()
    again.commit()
    assert len(synced) == 1
    again.close()
    with th.LiveCounts.open(tmp_path / "s") as once_more:
        once_more.commit()
    assert len(synced) == 1


@pytest.mark.parametrize("error", [errno.EIO, errno.EINVAL])
def test_a_folder_that_the_disk_refuses_is_no_folder(error, public, tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr("thresher.files.os.fsync", refuse)
    monkeypatch.setattr("thresher.live.folder.sync", lambda _: None)
    monkeypatch.setattr(live_journal, "sync", lambda _: None)
    if error == errno.EINVAL:  # a system that cannot
        create(tmp_path / "s", public).close()
        return
    with pytest.raises(th.InputError, match="Input/output error"):
        create(tmp_path / "s", public)


UPDATES = '''
import json, os, random, signal, sys, time
import numpy as np
import thresher as th
from thresher.live import journal

def updates():
    """The same updates every time: the names there are after each, with their labels."""
    rng, points, k = random.Random(7), {}, 0
    while True:
        k += 1
        kind = rng.choice(["add", "add", "remove", "relabel"]) if points else "add"
        name = f"p{k}" if kind == "add" else rng.choice(list(points))
        label = rng.randrange(3)
        if kind == "remove":
            del points[name]
        else:
            points[name] = label
        yield kind, name, label, points

def row(name):
    return np.random.default_rng(int(name[1:])).standard_normal(5)

def work(folder, pipe, every, buffer):
    journal.BUFFER = buffer
    V = np.random.default_rng(0).standard_normal((50, 5))
    live = th.LiveCounts.create(folder, V, np.arange(50) % 3, radius=0.5)
    os.write(pipe, b"0\\n")
    for k, (kind, name, label, _) in enumerate(updates(), 1):
        if kind == "add":
            live.add(name, row(name), label)
        elif kind == "remove":
            live.remove(name)
        else:
            live.relabel(name, label)
        if k % every == 0:
            live.snapshot() if k % (6 * every) == 0 else live.commit()
            os.write(pipe, b"%d\\n" % k)

def killed(folder, rng):
    """How many updates were committed before the worker was killed."""
    ours, theirs = os.pipe()
    every, buffer, target = rng.choice([3, 40]), rng.choice([100, 1 << 18]), rng.randrange(60)
    child = os.fork()
    if child == 0:
        try:
            work(folder, theirs, every, buffer)
        finally:
            os._exit(1)
    os.close(theirs)
    said = b""
    while not said.endswith(b"\\n") or int(said.split()[-1]) < target:
        part = os.read(ours, 1 << 16)
        if not part:
            sys.exit("the worker ended by itself")
        said += part
    time.sleep(rng.choice([0.0, rng.uniform(0, 0.003), rng.uniform(0, 0.03)]))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(ours, 1 << 16):
        said += part
    return int(said.split(b"\\n")[-2])

if __name__ == "__main__":
    live = th.LiveCounts.create(sys.argv[1] + "/warm", [[1.0] * 5], [0], radius=0.5)
    live.add("p", np.ones(5), 0)
    live.remove("p")
    live.close()
    rng = random.Random(0)
    told = {f"{sys.argv[1]}/{i}": None for i in range(int(sys.argv[2]))}
    for folder in told:
        told[folder] = killed(folder, rng)
    print(json.dumps(told))
'''


@pytest.mark.filterwarnings("ignore::thresher.errors.ThresherWarning")
def test_killed_processes_leave_a_prefix_with_all_that_was_committed(tmp_path):
    (tmp_path / "updates.py").write_text(UPDATES)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", str(tmp_path / "updates.py"), str(tmp_path), "30"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    names = {"__name__": "updates"}
    exec(compile(UPDATES, "updates", "exec"), names)  # noqa: S102
    states, updates = [{}], names["updates"]()
    while len(states) < max(told.values()) + 2000:
        states.append(dict(next(updates)[3]))
    row = names["row"]
    for folder, committed in told.items():
        with th.LiveCounts.open(folder) as live:
            X, y = live.points()
            found = dict(zip(live.ids, y.tolist()))
            live.verify()
        assert any(list(found.items()) == list(state.items()) for state in states[committed:]), (
            folder
        )
        np.testing.assert_array_equal(
            X.reshape(-1, 5), np.array([row(name) for name in found]).reshape(-1, 5)
        )
    assert max(told.values()) > 18  # snapshots were among it
    assert len(set(told.values())) > 5
