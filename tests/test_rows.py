"""NeighborCounts one row at a time: the bits and the refusals of tables."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import BAD, CLASSES, METRICS, WIDTHS, grid, validation

import thresher as th
from thresher.kernels import pairs
from thresher.kernels.pairs import fingerprint, fingerprints, is_near, move_row, squared_norms
from thresher.neighbors.single_rows import Panels

pytestmark = pytest.mark.filterwarnings("ignore::thresher.errors.TwinWarning")


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
            x, panels.numbers, panels.squares, panels.codes, metric == "cosine",
            np.array([counts.radius]), panels.bounds, -1, 1, False, out,
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
    panel, lanes = np.ascontiguousarray(V.T), np.empty((64, 64))
    fill = pairs._panel_sums.py_func if python else pairs._panel_sums
    for cosine, pair in [(True, pairs.dot), (False, pairs.squared_distance)]:
        fill(x, panel, cosine, lanes)
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
