"""LiveCounts: after any updates the values of a fresh computation."""

from __future__ import annotations

import functools
import shutil
import warnings

import numpy as np
import pytest
import waits
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from stores import BAD, CLASSES, METRICS, check_same, create, fill, grid, validation

import thresher as th

pytestmark = pytest.mark.filterwarnings("ignore::thresher.errors.TwinWarning")


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
            crash = self.path.with_name("crash")
            shutil.rmtree(crash, ignore_errors=True)
            shutil.copytree(self.path, crash)
            self.live.close()
            shutil.rmtree(self.path)
            crash.rename(self.path)
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
    assert (tmp_path / "store" / "live.db").exists()


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
            (lambda: live.add("p0", [1, 2, 3], 1), "'p0' already exists"),
            (lambda: live.remove("p1"), "no point with the id 'p1'"),
            (lambda: live.relabel("p1", 1), "no point with the id 'p1'"),
            (lambda: live.relabel("p0", 7), "label must be a class of this store, one of"),
            (
                lambda: live.add_many({"q"}, [[1.0, 2.0, 3.0]], [0]),
                "ids must have an order, and a set has none",
            ),
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
            (
                lambda: live.add_many(["a"], np.ones((2, 3)), [1, 1]),
                "ids must have one entry per row of X, got 1 for 2",
            ),
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
        with pytest.raises(th.InputError, match="differ from those of its points"):
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
        waits.together(*(functools.partial(work, part) for part in range(4)))
        assert set(live.ids) == {i for i in range(400) if i % 7}
        live.verify()
    with th.LiveCounts.open(tmp_path / "s") as live:
        live.verify()
        assert len(live) == 342
