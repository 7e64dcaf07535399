"""Tables and labels of every kind that a caller may hand in."""

from __future__ import annotations

import datetime
import pickle
import warnings
from collections import Counter, OrderedDict, deque

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from input_cases import BOTH, YV, V, X, Y

import thresher as th
from thresher.files import arrow_table
from thresher.inputs.checked_inputs import check_validation
from thresher.inputs.coded import Coded

WANT = th.tknn_shapley(X, Y, V, YV).values


@BOTH
@pytest.mark.parametrize(
    "convert",
    [
        lambda A: A.tolist(),
        lambda A: A.astype(np.float64),
        np.asfortranarray,
        lambda A: A.astype(">f4"),
        lambda A: pd.DataFrame(A, columns=["a", "b"]),
        lambda A: pd.DataFrame(A, columns=["a", "b"], index=range(5, 5 + len(A))),
        lambda A: pd.DataFrame(A, columns=["a", "b"]).convert_dtypes(),
        lambda A: pl.DataFrame(A, schema=["a", "b"]),
        lambda A: pa.table({"a": A[:, 0], "b": A[:, 1]}),
        lambda A: pa.record_batch({"a": A[:, 0], "b": A[:, 1]}),
    ],
)
def test_tables_of_every_kind_give_the_same_values(method, convert):
    want = method(X, Y, V, YV).values
    np.testing.assert_array_equal(method(convert(X), Y, convert(V), YV).values, want)


def test_memmaps_are_taken(tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=X.shape)
    mapped[:] = X
    np.testing.assert_array_equal(th.tknn_shapley(mapped, Y, V, YV).values, WANT)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "f2"]
)
def test_whole_numbers_are_taken_exactly(dtype):
    A, B = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[1, 0], [0, 1]])
    y, y_val = [0, 1, 0], [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", th.TwinWarning)
        want = th.tknn_shapley(A.astype(float), y, B.astype(float), y_val).values
        got = th.tknn_shapley(A.astype(dtype), y, B.astype(dtype), y_val).values
        frame = pd.DataFrame(A.astype(dtype))
        np.testing.assert_array_equal(th.tknn_shapley(frame, y, B, y_val).values, want)
    np.testing.assert_array_equal(got, want)


LABELS = [("cat", "dog"), (True, False), (1.5, -2.0), (("a", 1), ("b", 2)), (b"x", "x"), (None.__class__, 3),
          (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)), (10**30, 7)]  # fmt: skip


@BOTH
@pytest.mark.parametrize("pair", LABELS, ids=repr)
def test_labels_of_any_hashable_type(method, pair):
    want = method(X, Y, V, YV).values
    got = method(X, [pair[i] for i in Y], V, [pair[i] for i in YV])
    np.testing.assert_array_equal(got.values, want)


@pytest.mark.parametrize(
    "convert",
    [
        lambda y: np.array(["cat", "dog"])[y],
        lambda y: np.array(["cat", "dog"], object)[y],
        lambda y: pd.Series(["cat", "dog"])[y],
        lambda y: pd.Series(["cat", "dog"])[y].astype("category"),
        lambda y: pl.Series(["cat", "dog"])[y.tolist()],
        lambda y: pl.Series(["cat", "dog"])[y.tolist()].cast(pl.Categorical),
        lambda y: pa.array(np.array(["cat", "dog"])[y].tolist()),
        lambda y: pa.chunked_array([["cat", "dog"]]).take(pa.array(y)),
        lambda y: np.array(["2020-01-01", "2020-01-02"], "M8[ns]")[y],
        lambda y: y.astype(np.uint8),
        lambda y: y.astype(">i4"),
        lambda y: y.astype(bool),
        lambda y: y * 10**12 - 5,
        lambda y: y.astype(float),
        pl.Series,
        lambda y: pd.Series(y, dtype="Int64"),
        lambda y: tuple(y.tolist()),
        lambda y: [np.datetime64("2020-01-01") + np.timedelta64(int(i), "D") for i in y],
        lambda y: [np.int8(i) for i in y],
        lambda y: np.array([2**64 - 1 if i else 0 for i in y], np.uint64),
        lambda y: pd.Categorical(np.array(["cat", "dog"])[y]),
        lambda y: pd.Index(np.array(["cat", "dog"])[y]),
        lambda y: pd.CategoricalIndex(np.array(["cat", "dog"])[y]),
        lambda y: pd.MultiIndex.from_arrays([y, y + 1]),
        lambda y: deque(y.tolist()),
    ],
)
def test_label_containers_of_every_kind(convert):
    np.testing.assert_array_equal(th.tknn_shapley(X, convert(Y), V, convert(YV)).values, WANT)


MIXED = ["b", 1, ("a", 2), "b", 1, "c"]


def test_a_coded_column_is_the_tuple_of_its_entries():
    column = Coded.of(MIXED)
    assert column == tuple(MIXED)
    assert tuple(MIXED) == column
    assert column != tuple(MIXED[:-1])
    assert list(column) == column.tolist() == MIXED
    assert (column[2], column[-1], column[1:3], len(column)) == (("a", 2), "c", (1, ("a", 2)), 6)
    assert column.take(np.array([5, 1, 4])).distinct == ("c", 1)
    assert column.first_rows() == {"b": 0, 1: 1, ("a", 2): 2, "c": 5}
    assert Coded.numbered(np.array([2, 0, 2]), ["x", "y", "z"]).distinct == ("z", "x")
    assert pickle.loads(pickle.dumps(column)) == column


def test_coded_labels_are_labels():
    """Classes without an order of their own are in order of appearance there, too."""
    X, X_val = [[float(i)] for i in range(6)], [[0.5], [3.5]]
    options = {"radius": 2, "metric": "euclidean"}
    wanted = th.tknn_shapley(X, MIXED, X_val, ["b", 1], **options)
    coded = th.tknn_shapley(X, Coded.of(MIXED), X_val, Coded.of(["b", 1]), **options)
    assert coded == wanted
    with pytest.raises(th.InputError, match="y has missing labels in row 1"):
        th.tknn_shapley(X[:2], Coded.of(["a", None]), X_val, ["b", 1], **options)
    with pytest.raises(th.InputError, match=r"not in classes in row 2 .*\('a', 2\)"):
        th.tknn_shapley(X, Coded.of(MIXED), X_val, ["b", 1], classes=["b", 1, "c"], **options)


@pytest.mark.parametrize("entries", [[2**63 + 5, 1, 1], ["a", "b", "a"], [True, False], [1.5, 0.5]])
def test_a_coded_column_is_saved_as_its_entries_are(entries):
    assert arrow_table({"x": Coded.of(entries)}).equals(arrow_table({"x": entries}))


def test_a_set_of_classes_is_sorted_or_refused():
    validation = check_validation([[1.0]], ["b"], metric="euclidean", classes={"c", "a", "b"})
    assert validation.classes.labels == ("a", "b", "c")
    with pytest.raises(th.InputError, match="classes must be a list, because these labels have no"):
        check_validation([[1.0]], ["b"], metric="euclidean", classes={"b", 1})


def test_the_class_list_is_given_or_read_off_both_sides():
    found = th.tknn_shapley(X, [3, 1, 3, 1], V, [1, 7]).params["classes"]
    assert found == [1, 3, 7]
    mixed = th.tknn_shapley(X, ["b", 1, "b", 1], V, [1, "a"]).params["classes"]
    assert mixed == ["b", 1, "a"]  # no common order: as they appear
    assert th.tknn_shapley(X, Y, V, YV, classes={0, 1}).params["classes"] == [0, 1]
    given = th.tknn_shapley(X, Y, V, YV, classes=[1, 0, 2])
    assert given.params["classes"] == [1, 0, 2]
    assert given.utility_none == 2 / 3


def test_a_type_that_cannot_be_hashed_is_a_type_of_labels():
    class Unhashable(type):
        __hash__ = None

    class Label(metaclass=Unhashable):
        pass

    pair = Label(), np.datetime64(1, "ns")
    got = th.tknn_shapley(X, [pair[i] for i in Y], V, [pair[i] for i in YV])
    np.testing.assert_array_equal(got.values, WANT)


UNORDERED = [
    (set, "a set has none"),
    (frozenset, "a frozenset has none"),
    (dict.fromkeys, "got dict"),
    (Counter, "got Counter"),
    (OrderedDict.fromkeys, "got OrderedDict"),
    (lambda entries: dict.fromkeys(entries).keys(), "got dict_keys"),
    (lambda entries: dict(enumerate(entries)).values(), "got dict_values"),
    (lambda entries: dict(enumerate(entries)).items(), "got dict_items"),
]


@BOTH
@pytest.mark.parametrize(("convert", "message"), UNORDERED, ids=[entry[1] for entry in UNORDERED])
def test_what_has_no_order_is_refused(method, convert, message):
    rows, names = [tuple(row) for row in X.tolist()], ["a", "b", "c", "d"]
    known = {"X": X, "y": names, "X_val": V, "y_val": names[:2]}
    for name, entries in [("X", rows), ("y", names), ("X_val", rows[:2]), ("y_val", names[:2])]:
        with pytest.raises(th.InputError, match=f"{name} must (have|be) .*{message}"):
            method(**{**known, name: convert(entries)})
    with pytest.raises(th.InputError, match=f"owners must (have|be) .*{message}"):
        method(**known, owners=convert(names))
    if "set" not in message:
        with pytest.raises(th.InputError, match=f"classes must be .*{message}"):
            method(**known, classes=convert(names))
    private = {"epsilon": 1, "delta": 1e-5, "classes": names, "seed": 0}
    for name, entries in [("X", rows), ("y", names)]:
        with pytest.raises(th.InputError, match=f"{name} must (have|be) .*{message}"):
            th.dp_tknn_shapley(**{**known, name: convert(entries)}, **private)
    for name in ("owners", "ids"):
        with pytest.raises(th.InputError, match=f"{name} must (have|be) .*{message}"):
            th.Valuation(np.zeros(4), "m", {}, 0.0, 0.0, **{name: convert(names)})
