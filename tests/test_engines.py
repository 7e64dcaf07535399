"""Points larger than memory: in parts, the same bits as in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parted import problem
from tabular import check_refused

import thresher as th
from thresher.passes.memory import Account
from thresher.passes.parts import ArrayParts, Place

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


# The same bits


@given(
    count=st.integers(1, 1500),
    points=st.integers(1, 150),
    dtype=st.sampled_from(["f2", "f4", "f8", ">f4", "i2", "i8", "?"]),
    metric_radius=st.sampled_from([("cosine", 0.5), ("euclidean", 2.0), ("euclidean", 1e9)]),
    semivalue=st.sampled_from(["shapley", "banzhaf", "leave-one-out", th.Beta(4, 1)]),
    names=st.sampled_from([None, "abc"]),
    mean=st.booleans(),
    rows=st.integers(1, 700),
)
@settings(max_examples=25)
def test_parts_give_the_same_bits(
    count, points, dtype, metric_radius, semivalue, names, mean, rows
):
    X, y, X_val, y_val = problem(count, seed=count, points=points)
    X = (2 * X + 0.5 + 8 * (dtype in {"i2", "i8"})).astype(dtype)
    X[:, 0] = 1  # no zero rows
    if names:
        y, y_val = ([names[label] for label in labels] for labels in (y, y_val))
    metric, radius = metric_radius
    about = {"radius": radius, "metric": metric, "semivalue": semivalue, "mean": mean}
    wanted = th.tknn_shapley(X, y, X_val, y_val, **about)
    patch = pytest.MonkeyPatch()
    with patch.context() as within:
        within.setattr(Account, "rows", lambda *_: rows)
        got = th.tknn_shapley(X, y, X_val, y_val, memory="1TB", **about)
    assert got == wanted
    assert got.values.tobytes() == wanted.values.tobytes()
    assert got.utility_all == wanted.utility_all


def test_a_memmap_is_valued_as_the_array_is(tmp_path, small_parts):
    X, y, X_val, y_val = problem(2000)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    owners = y % 2
    wanted = th.tknn_shapley(X, y, X_val, y_val, owners=owners)
    assert th.tknn_shapley(mapped, y, X_val, y_val, owners=owners, memory="64GB") == wanted
    assert len(list(ArrayParts(mapped, y).read(Place(), 256))) == 8
    fortran = np.asfortranarray(X)
    assert th.tknn_shapley(fortran, y, X_val, y_val, owners=owners, memory="64GB") == wanted


def test_distances_come_in_parts_too(tmp_path, small_parts):
    random = np.random.default_rng(3)
    D, y, y_val = random.random((1000, 90)), random.integers(0, 2, 1000), random.integers(0, 2, 90)
    np.save(tmp_path / "d.npy", D)
    mapped = np.load(tmp_path / "d.npy", mmap_mode="r")
    wanted = th.tknn_shapley(D, y, None, y_val, metric="precomputed", radius=0.2)
    got = th.tknn_shapley(mapped, y, None, y_val, metric="precomputed", radius=0.2, memory="64GB")
    assert got == wanted
    D[700, 3] = np.nan
    refused = {"metric": "precomputed", "memory": "64GB"}
    check_refused(lambda: th.tknn_shapley(D, y, None, y_val, **refused), "row 700, column 3")
    columns = iter([D])
    check_refused(lambda: th.tknn_shapley(columns, y, None, y_val, **refused), "one array")


def test_frames_and_lists_are_taken_with_a_budget(small_parts):
    import pandas as pd

    X, y, X_val, y_val = problem(600)
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    assert th.tknn_shapley(X.tolist(), list(y), X_val, y_val, memory="64GB") == wanted
    frame, frame_val = (pd.DataFrame(rows, columns=list("abcdef")) for rows in (X, X_val))
    assert th.tknn_shapley(frame, pd.Series(y), frame_val, y_val, memory="64GB") == wanted
    check_refused(
        lambda: th.tknn_shapley(frame[list("fedcba")], y, frame_val, y_val, memory="64GB"),
        "in another order",
    )


def test_labels_that_come_last_count(small_parts):
    """The number of classes is known at the end of the first pass only."""
    X, y, X_val, y_val = problem(1500)
    y = y.astype(object)
    y[-1] = 77
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    got = th.tknn_shapley(X, y, X_val, y_val, memory="64GB")
    assert got == wanted
    assert got.params["classes"] == [0, 1, 2, 77]
    assert got.utility_none == len(y_val) / 4


def test_given_classes_refuse_others_by_their_row(small_parts):
    X, y, X_val, y_val = problem(1500)
    y[1111] = 9
    about = {"classes": [0, 1, 2], "memory": "64GB"}
    check_refused(lambda: th.tknn_shapley(X, y, X_val, y_val, **about), "row 1111", "is 9")
    y[1111] = 0
    wanted = th.tknn_shapley(X, y, X_val, y_val, classes=range(7))
    assert th.tknn_shapley(X, y, X_val, y_val, classes=range(7), memory="64GB") == wanted


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
def test_warnings_are_those_of_all_points(small_parts):
    X, y, X_val, y_val = problem(1500)
    X_val[3], X_val[5] = X[20], X[1400]
    X_val[6:] += 0.01
    with pytest.warns(th.TwinWarning, match="^2 of 200") as caught:
        th.tknn_shapley(X, y, X_val, y_val, memory="64GB")
    assert caught[0].filename == __file__
    with pytest.warns(th.LabelWarning, match="no label in common"):
        th.tknn_shapley(X, y, X_val[6:], [str(label) for label in y_val[6:]], memory="64GB")
    with pytest.warns(th.ReachWarning):
        th.tknn_shapley(X, y, X_val[6:] + 99, y_val[6:], metric="euclidean", memory="64GB")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda X, y: X.__setitem__((1700, 2), np.nan), ["NaN", "row 1700"]),
        (lambda X, y: X.__setitem__((1700, 2), 1e99), ["1e72", "row 1700"]),
        (lambda X, y: X.__setitem__(1700, 0), ["zero rows", "row 1700"]),
        (lambda X, y: y.__setitem__(1700, None), ["missing labels", "row 1700"]),
        (lambda X, y: y.__setitem__(1700, []), ["not hashable", "row 1700"]),
    ],
)
def test_errors_name_the_row_among_all(spoil, words, small_parts):
    X, y, X_val, y_val = problem(2000)
    y = y.astype(object)
    spoil(X, y)
    check_refused(lambda: th.tknn_shapley(X, y, X_val, y_val, memory="64GB"), *words)
