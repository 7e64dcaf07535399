from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher as th
from thresher.files import _seal

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


def make(rng, n=60, m=25, width=3, classes=3):
    X, V = rng.standard_normal((n, width)), rng.standard_normal((m, width))
    return X, rng.integers(0, classes, n), V, rng.integers(0, classes, m)


@given(seed=st.integers(0, 50), metric=st.sampled_from(["cosine", "euclidean"]))
def test_counts_are_what_they_say(seed, metric):
    X, y, V, y_val = make(np.random.default_rng(seed))
    counts = th.NeighborCounts(V, y_val, radius=0.9, metric=metric).add(X, y)
    if metric == "cosine":
        X, V = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, V))
        near = 1 - X @ V.T <= 0.9
    else:
        near = np.sqrt(((X[:, None] - V) ** 2).sum(axis=2)) <= 0.9
    match = y[:, None] == y_val
    assert counts.same.tolist() == (near & match).sum(axis=0).tolist()
    assert counts.other.tolist() == (near & ~match).sum(axis=0).tolist()


@given(seed=st.integers(0, 50), cut=st.integers(1, 59))
def test_parts_in_any_order_and_merged_equal_the_whole(seed, cut):
    X, y, V, y_val = make(np.random.default_rng(seed))
    kept = {"radius": 0.8, "classes": [0, 1, 2]}
    whole = th.NeighborCounts(V, y_val, **kept).add(X, y)
    parts = th.NeighborCounts(V, y_val, **kept).add(X[cut:], y[cut:]).add(X[:cut], y[:cut])
    silo = th.NeighborCounts(V, y_val, **kept).add(X[:cut], y[:cut])
    merged = th.NeighborCounts(V, y_val, **kept).add(X[cut:], y[cut:]).merge(silo)
    for counts in (parts, merged):
        np.testing.assert_array_equal(counts.same, whole.same)
        np.testing.assert_array_equal(counts.other, whole.other)
        assert len(counts) == 60
        assert counts.utility() == whole.utility()


def test_removing_undoes_adding_and_values_equal_a_fresh_computation_to_the_bit(rng):
    X, y, V, y_val = make(rng, n=300, m=150)
    counts = th.NeighborCounts(V, y_val, classes=[0, 1, 2]).add(X, y)
    counts.remove(X[10:40], y[10:40]).add(X[:5], y[:5]).remove(X[:5], y[:5])
    keep = np.r_[0:10, 40:300]
    fresh = th.tknn_shapley(X[keep], y[keep], V, y_val, classes=[0, 1, 2])
    assert counts.price_list().values(X[keep], y[keep]).tobytes() == fresh.values.tobytes()
    assert counts.utility() == fresh.utility_all


@pytest.mark.parametrize("path", ["never", "twice", "label", "too often"])
def test_removing_what_was_never_added_is_an_error_and_changes_nothing(path, rng):
    X, y, V, y_val = make(rng)
    counts = th.NeighborCounts(V, y_val, classes=[0, 1, 2]).add(X, y)
    if path == "twice":
        counts.remove(X[:1], y[:1])
    before = counts.same.copy(), counts.other.copy(), len(counts)
    wrong = {
        "never": (X[:2] + np.array([[0.0], [1e-9]]), y[:2], "row 1"),
        "twice": (X[:2], y[:2], "row 0"),
        "label": (X[:2], (y[:2] + np.array([0, 1])) % 3, "row 1"),
        "too often": (X[[3, 4, 4]], y[[3, 4, 4]], "rows 1, 2"),
    }[path]
    with pytest.raises(th.InputError, match=rf"{wrong[2]} that cannot be removed"):
        counts.remove(*wrong[:2])
    np.testing.assert_array_equal(counts.same, before[0])
    np.testing.assert_array_equal(counts.other, before[1])
    assert len(counts) == before[2]


def test_the_same_point_in_another_dtype_is_the_same_point(rng):
    X, y, V, y_val = make(rng)
    X = X.astype(np.float16)
    counts = th.NeighborCounts(V, y_val, classes=[0, 1, 2]).add(X, y)
    counts.remove(X.astype(np.float64), y.astype(np.uint8))
    assert len(counts) == 0
    assert not counts.same.any()


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"], [True, False, 2.5]])
def test_saved_counts_come_back_and_go_on(labels, rng, tmp_path):
    X, y, V, y_val = make(rng)
    y, y_val = [labels[i] for i in y], [labels[i] for i in y_val]
    counts = th.NeighborCounts(V, y_val, radius=0.7, classes=labels).add(X, y)
    counts.save(tmp_path / "counts.npz")
    again = th.NeighborCounts.load(tmp_path / "counts.npz")
    np.testing.assert_array_equal(again.same, counts.same)
    assert repr(again) == repr(counts)
    again.remove(X[:20], y[:20])
    want = th.NeighborCounts(V, y_val, radius=0.7, classes=labels).add(X[20:], y[20:])
    np.testing.assert_array_equal(again.other, want.other)
    again.merge(want)
    assert len(again) == 80
    with pytest.raises(th.InputError, match="cannot be removed"):
        again.remove(X[:1], y[:1])
    assert [path.name for path in tmp_path.iterdir()] == ["counts.npz"]  # no temporary file is left


def test_labels_that_a_file_cannot_hold_are_refused_before_anything_is_written(rng, tmp_path):
    _, _, V, _ = make(rng, m=2)
    counts = th.NeighborCounts(V, [("a", 1), ("b", 2)])
    for thing in (counts, counts.price_list()):
        with pytest.raises(th.InputError, match=r"label \('a', 1\) of type tuple cannot be saved"):
            thing.save(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a file of ours", b"PK\x03\x04 broken"])
def test_a_file_of_another_kind_is_refused(content, tmp_path):
    path = tmp_path / "other"
    path.write_bytes(content)
    for cls in (th.NeighborCounts, th.PriceList, th.Valuation):
        with pytest.raises(th.InputError, match="other"):
            cls.load(path)
        with pytest.raises(th.InputError, match="there is no file"):
            cls.load(tmp_path / "missing")
    np.savez(tmp_path / "strange.npz", a=np.ones(2))
    with pytest.raises(th.InputError, match="does not hold a table of counts"):
        th.NeighborCounts.load(tmp_path / "strange.npz")
    path.write_text(json.dumps([1]))
    with pytest.raises(th.InputError, match="does not hold a price list"):
        th.PriceList.load(path)


def test_only_counts_over_the_same_public_side_are_merged(rng):
    _, _, V, y_val = make(rng)
    counts = th.NeighborCounts(V, y_val)
    different = [
        th.NeighborCounts(V, y_val, radius=0.4),
        th.NeighborCounts(V, y_val, metric="euclidean"),
        th.NeighborCounts(V[:-1], y_val[:-1]),
        th.NeighborCounts(V, (y_val + 1) % 3),
        th.NeighborCounts(V, y_val, classes=[0, 1, 2, 3]),
    ]
    for other in different:
        with pytest.raises(th.InputError, match="other cannot be merged: it differs in "):
            counts.merge(other)
    with pytest.raises(th.InputError, match="with themselves"):
        counts.merge(counts)
    with pytest.raises(th.InputError, match="must be a NeighborCounts, got dict"):
        counts.merge({})
    counts.merge(th.NeighborCounts(V.astype(np.float64), list(y_val)))


def test_the_validation_set_is_our_own_copy(rng):
    X, y, V, y_val = make(rng)
    want = th.NeighborCounts(V.copy(), y_val).add(X, y)
    counts = th.NeighborCounts(V, y_val)
    V += 1
    np.testing.assert_array_equal(counts.add(X, y).same, want.same)


def test_copies_and_snapshots_stand_alone(rng):
    X, y, V, y_val = make(rng)
    counts = th.NeighborCounts(V, y_val).add(X, y)
    before = counts.same
    for other in (copy.copy(counts), copy.deepcopy(counts), pickle.loads(pickle.dumps(counts))):
        other.remove(X[:30], y[:30])
        assert len(other) == 30
    assert len(counts) == 60
    counts.remove(X[:30], y[:30])
    assert not np.array_equal(before, counts.same)
    for name in ("radius", "validation", "same"):
        with pytest.raises(AttributeError):
            setattr(counts, name, 1)
    assert counts.classes == counts.price_list().classes == [0, 1, 2]


def test_parts_may_be_empty_and_twins_are_warned_of(rng):
    X, y, V, y_val = make(rng)
    counts = th.NeighborCounts(V, y_val)
    assert len(counts.add(X[:0], y[:0])) == 0
    with pytest.warns(th.TwinWarning, match="25 of 25") as caught:
        counts.add(V, y_val)
    assert caught[0].filename == __file__


def test_columns_are_compared_by_name(rng, tmp_path):
    X, y, V, y_val = make(rng)
    frame, val = (pd.DataFrame(A, columns=["a", "b", "c"]) for A in (X, V))
    counts = th.NeighborCounts(val, y_val).add(frame, y).add(X, y)
    counts.save(tmp_path / "counts")
    prices = counts.price_list()
    prices.save(tmp_path / "prices")
    again = th.NeighborCounts.load(tmp_path / "counts"), th.PriceList.load(tmp_path / "prices")
    for call in (counts.add, again[0].add, prices.values, again[1].newcomer_values):
        with pytest.raises(th.InputError, match="has the columns of X_val in another order"):
            call(frame[["c", "b", "a"]], y)


@pytest.mark.parametrize(
    "change",
    [
        {"radius": -1},
        {"metric": "foo"},
        {"labels": [-1]},
        {"prices": []},
        {"classes": []},
        {"semivalue": "x"},
        {"format": 1},
    ],
)
def test_an_edited_price_list_is_refused_with_or_without_its_seal(change, rng, tmp_path):
    _, _, V, y_val = make(rng)
    path = tmp_path / "prices.json"
    th.NeighborCounts(V, y_val).price_list().save(path)
    document = json.loads(path.read_text()) | change
    for text in (document, {**document, "seal": _seal(document, ())}):
        path.write_text(json.dumps(text))
        with pytest.raises(th.InputError, match="prices.json does not hold a price list"):
            th.PriceList.load(path)


def test_counts_cannot_be_written_to_from_outside(rng):
    _, _, V, y_val = make(rng)
    counts = th.NeighborCounts(V, y_val)
    with pytest.raises(ValueError, match="read-only"):
        counts.same[0] = 1


def test_precomputed_distances_count_too(rng):
    D, y, y_val = rng.random((30, 8)), rng.integers(0, 2, 30), rng.integers(0, 2, 8)
    counts = th.NeighborCounts(None, y_val, radius=0.5, metric="precomputed", classes=[0, 1])
    counts.add(D, y)
    assert (counts.same + counts.other).tolist() == (D <= 0.5).sum(axis=0).tolist()
    counts.remove(D[:10], y[:10])
    assert (counts.same + counts.other).tolist() == (D[10:] <= 0.5).sum(axis=0).tolist()
    with pytest.raises(th.InputError, match="one array of distances"):
        counts.add((D for _ in range(1)), y)


LARGEST = {
    "ball": 2**53,
    "forest": 2**30 - 1,  # the type of its table has 31 bits
    "targets": 2**53,
}


def one_point(kind):
    """Counts of one point, and the point."""
    X, y = [[0.5]], ["a"]
    if kind == "ball":
        return (
            th.NeighborCounts([[0.0], [4.0]], ["a", "b"], radius=1, metric="euclidean").add(X, y),
            X,
            y,
        )
    if kind == "forest":
        forest = th.grow_forest([[0.0], [1.0], [2.0], [3.0]], list("aabb"), trees=4)
        return th.NeighborCounts([[0.0], [4.0]], ["a", "b"], forest=forest).add(X, y), X, y
    about = {"radius": 1, "metric": "euclidean", "task": "regression"}
    return th.NeighborCounts([[0.0], [4.0]], [1.0, 2.0], **about).add(X, [2.5]), X, [2.5]  # fmt: skip


@pytest.mark.parametrize("kind", LARGEST)
def test_counts_that_would_overflow_are_refused_and_stay_as_they_are(kind, tmp_path):
    counts, X, y = one_point(kind)
    start, doubled = counts.table.astype(object), 0
    while doubled < 70:
        before, points = counts.table.tolist(), len(counts)
        assert before == (start * 2**doubled).tolist()
        try:
            counts.merge(copy.copy(counts))
        except th.InputError:
            break
        doubled += 1
    with pytest.raises(th.InputError, match=f"other cannot be added: with {points} more points"):
        counts.merge(copy.copy(counts))
    assert 28 < doubled < 54
    assert 2**doubled <= LARGEST[kind]
    assert (counts.table.tolist(), len(counts)) == (before, points)
    counts.save(tmp_path / "counts.npz")
    assert th.NeighborCounts.load(tmp_path / "counts.npz").table.tolist() == before
    counts.remove(X, y).add(X, y)
    assert (counts.table.tolist(), len(counts)) == (before, points)


def test_a_refused_change_of_label_changes_nothing():
    counts = one_point("ball")[0]
    with pytest.raises(th.InputError, match="cannot be relabeled"):
        counts.relabel(np.asfortranarray([[0.7]] * 2), ["a", "a"], ["b", "b"])
    assert (counts.same.tolist(), len(counts)) == ([1, 0], 1)
