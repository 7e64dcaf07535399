"""What a caller hands in and cannot be used: refused with a message that helps."""

from __future__ import annotations

import datetime
import warnings
from collections import deque
from decimal import Decimal

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from input_cases import BOTH, YV, V, X, Y

import thresher as th

NAN = float("nan")


LONG = 2**53 + 1  # the first integer that float64 does not have


LONG_ROWS = [
    [[0.5, 1], [LONG, 2], [3, 4], [5, 6]],
    [[1, 1], [-LONG, 2], [3, 4], [5, 6]],
    [(1.5, 1), (True, LONG), (3, 4), (5, 6)],
    [[NAN, 1], [LONG, 2], [3, 4], [5, 6]],
    [[2**63, 1], [-1, 2], [3, 4], [5, 6]],
    [[2**70, 1], [-1, 2], [3, 4], [5, 6]],
    [[2**70, 1.5], [-1, 2], [3, 4], [5, 6]],
    [np.array([LONG, 1]), np.array([0.5, 1]), np.array([1, 1]), [1, 1]],
    deque([[np.int64(LONG), 0.5]] * 4),
    np.array([[LONG, 1]] * 4, ">i8"),
    np.array([[LONG, 1]] * 4, np.uint64),
    pd.DataFrame({"a": [LONG, 1, 1, 1], "b": [0.5] * 4}),
    pd.DataFrame({"a": pd.array([LONG, None, 1, 1]), "b": [0.5] * 4}),
    pl.DataFrame({"a": [-LONG, 1, 1, 1], "b": [0.5] * 4}),
    pa.table({"a": [LONG, None, 1, 1], "b": [0.5] * 4}),
]


@pytest.mark.parametrize("rows", LONG_ROWS, ids=range(len(LONG_ROWS)))
def test_integers_that_no_float_holds_are_refused_wherever_they_stand(rows):
    for call in (
        lambda: th.tknn_shapley(rows, Y, V, YV),
        lambda: th.knn_shapley(X, Y, rows, Y),
        lambda: th.NeighborCounts(V, YV).add(rows, Y),
        lambda: th.tknn_shapley(rows, Y, None, YV, metric="precomputed"),
        lambda: th.tknn_shapley(Blocks(rows), Y, None, YV, metric="precomputed"),
        lambda: th.knn_shapley(Blocks(X[:, :1], rows), Y, None, [0, 1, 1], metric="precomputed"),
        lambda: th.tknn_shapley(rows, Y, V, YV, memory="64GB"),
        lambda: th.forest_shapley(rows, Y, trees=2),
    ):
        with pytest.raises(th.InputError, match=r"X.* has integers beyond 2\*\*53"):
            call()


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_so_they_are_on_disk_on_a_cluster_and_by_the_classifier(kind, tmp_path):
    mapped = np.memmap(tmp_path / "x", kind, "w+", shape=(4, 2))
    mapped[:] = [[LONG, 1], [2, 3], [4, 5], [6, 7]]
    known = th.TKNNClassifier().fit(X, Y)
    for call in (
        lambda: th.tknn_shapley(mapped, Y, V, YV),
        lambda: th.tknn_shapley(mapped, Y, V, YV, memory="64GB"),
        lambda: th.tknn_shapley(mapped, Y, None, YV, metric="precomputed", memory="64GB"),
        lambda: th.tknn_shapley(da.from_array(np.array(mapped), chunks=(2, 2)), Y, V, YV),
        lambda: th.TKNNClassifier().fit(mapped, Y),
        lambda: known.predict(pd.DataFrame(mapped).assign(b=0.5)[[0, "b"]].to_numpy(object)),
    ):
        with pytest.raises(th.InputError, match=r"X has integers beyond 2\*\*53"):
            call()


def test_integers_that_a_float_holds_and_long_floats_are_taken():
    whole = [[2**53, 0.5], [-(2**53), 1], [3, 4], [5.0, 6]]
    floats = np.array(whole, np.float64)
    want = th.tknn_shapley(floats, Y, V, YV).values
    np.testing.assert_array_equal(th.tknn_shapley(whole, Y, V, YV).values, want)
    long = [[float(2**60), 0.5], *whole[1:]]
    np.testing.assert_array_equal(
        th.tknn_shapley(long, Y, V, YV).values, th.tknn_shapley(np.array(long), Y, V, YV).values
    )
    distances = [[2**53, 0.5], [1, 2], [3, 4], [5, 6]]
    got = th.tknn_shapley(Blocks(distances), Y, None, YV, metric="precomputed", radius=2)
    whole = th.tknn_shapley(distances, Y, None, YV, metric="precomputed", radius=2)
    np.testing.assert_array_equal(got.values, whole.values)


def bad(**changes):
    """Arguments with one thing wrong."""
    return {"X": X, "y": Y, "X_val": V, "y_val": YV, **changes}


class Blocks:
    """Yields blocks, as often as asked."""

    def __init__(self, *blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


def with_row(array, row, column, number):
    changed = array.astype(np.float64)
    changed[row, column] = number
    return changed


WRONG = [
    (bad(X=with_row(X, 2, 0, NAN)), "X has NaN or infinite values in row 2"),
    (bad(X=with_row(with_row(X, 0, 0, np.inf), 3, 1, -np.inf)), "X has NaN or infinite values in rows 0, 3"),
    (bad(X_val=with_row(V, 1, 0, NAN)), "X_val has NaN or infinite values in row 1"),
    (bad(X=[*X.tolist()[:3], [None, 1.0]]), "X is an object array"),
    (bad(X=X.astype(object)), "X is an object array.*astype"),
    (bad(X=np.array([[LONG, 1]] * 4, object)), r"X has integers beyond 2\*\*53"),
    (bad(X=[["a", "b"]] * 4), "X must hold real numbers, got dtype <U1"),
    (bad(X=X.astype(complex)), "X must hold real numbers, got dtype complex"),
    (bad(X=X.astype(np.longdouble)), "X must hold real numbers"),
    (bad(X=X[:, 0]), r"X must have two dimensions .*reshape\(-1, 1\)"),
    (bad(X=[[1.0, 2.0], [1.0]]), "X is not a rectangular table"),
    (bad(X=X[:0], y=Y[:0]), "X is empty"),
    (bad(X_val=V[:0], y_val=YV[:0]), "X_val is empty"),
    (bad(X=X[:, :0]), "X has no columns"),
    (bad(X=X[:, :1]), "X has 1 feature but X_val has 2"),
    (bad(X=scipy.sparse.csr_array((10**6, 10**5))), r"X is a sparse matrix that takes 800 GB"),
    (bad(X=np.ma.masked_array(X, X > 1)), "X is a masked array with masked entries"),
    (bad(X=pd.Series([1.0] * 4)), "X is one column"),
    (bad(X=pl.DataFrame({"a": [1] * 4, "b": [2] * 4}).lazy()), r"X is lazy: use X.collect\(\)"),
    (bad(X=pl.DataFrame({"a": [2**53 + 1] * 4, "b": [2] * 4}, schema_overrides={"a": pl.Int128})), "beyond 2"),
    (bad(y=Y.astype(np.longdouble)), "use float64 or integers as labels"),
    (bad(y=[Decimal("NaN"), 1, 0, 1]), "y has missing labels in row 0"),
    (bad(y=[complex("nan"), 1, 0, 1]), "y has missing labels in row 0"),
    (bad(X_val=None, metric="precomputed", X=Blocks(np.ma.masked_array(X, X > 1))), "masked entries"),
    (bad(X=with_row(X, 1, 0, 1e100)), "X has values beyond 1e72 in row 1: rescale"),
    (bad(X=np.full((4, 2), 2**60)), r"X has integers beyond 2\*\*53"),
    (bad(X=pd.DataFrame({"a": [1, 2, 3, 4], "name": list("abcd")})), "X has non-numeric columns: 'name'"),
    (bad(X=pl.DataFrame({"a": [1, 2, 3, 4], "d": [datetime.date(2020, 1, 1)] * 4})), "non-numeric columns: 'd'"),
    (bad(X=pl.DataFrame({"a": [1, 2, None, 4], "b": [1.0] * 4})), "X has NaN or infinite values in row 2"),
    (bad(X=pd.DataFrame({"a": pd.array([1, 2, None, 4], "Int64"), "b": 1.0})), "NaN or infinite values in row 2"),
    (bad(X=pd.DataFrame(X, columns=["a", "a"])), "X cannot be read as a table"),
    (bad(X=pa.table({"a": [2**60] * 4, "b": [1] * 4})), r"X column 'a' has integers beyond 2\*\*53"),
    (bad(X=np.zeros((4, 2))), "X has zero rows, which have no direction.*rows 0, 1, 2, 3"),
    (bad(X=with_row(with_row(X, 1, 0, 0), 1, 1, 0)), "no cosine distance: row 1; drop them or use metric='euclidean'"),
    (bad(X=with_row(with_row(X, 1, 0, 1e-200), 1, 1, 0)), "X has rows too close to zero"),
    (bad(X_val=with_row(with_row(V, 0, 0, 0), 0, 1, 0)), "X_val has zero rows.*row 0"),
    (bad(y=Y[:3]), "y has 3 labels but there are 4 rows"),
    (bad(y_val=[0, 1, 0]), "y_val has 3 labels but there are 2 rows"),
    (bad(y=[0, None, 0, 1]), "y has missing labels in row 1"),
    (bad(y=[0.0, NAN, NAN, 1.0]), "y has missing labels in rows 1, 2"),
    (bad(y=pd.Series([0, None, 1, 1])), "y has missing labels in row 1"),
    (bad(y=pd.Series([0, None, 1, 1], dtype="Int64")), "y has missing labels in row 1"),
    (bad(y=pl.Series([0, None, 1, 1])), "y has missing labels in row 1"),
    (bad(y=pa.array(["a", None, "b", "b"])), "y has missing labels in row 1"),
    (bad(y=np.array(["2020-01-01", "NaT", "2020-01-01", "2020-01-01"], "M8[D]")), "y has missing labels in row 1"),
    (bad(y=np.ma.masked_array(Y, [0, 0, 1, 0])), "y has missing labels in row 2"),
    (bad(y=[[0], {}, 0, 1]), "y has labels that are not hashable in rows 0, 1 .*list"),
    (bad(y=Y.reshape(-1, 1)), r"y must have one dimension, got shape \(4, 1\): use y.ravel\(\)"),
    (bad(y=pd.DataFrame({"y": Y})), "y is a table: pass one column"),
    (bad(y="abab"), "y must be a sequence of labels, got str"),
    (bad(y=3), "y must be a sequence of labels, got int"),
    (bad(y=iter([0, 1])), "y must be a sequence of labels, got list_iterator: use a list"),
    (bad(y=[0, 1, 5, 6], classes=[0, 1]), r"y has labels not in classes in rows 2, 3 \(the first is 5\)"),
    (bad(y=np.array([0, 1, -9, 6]), classes=[0, 1]), r"y has labels not in classes in rows 2, 3 \(the first is -9\)"),
    (bad(y_val=["x", "y"], y=["x"] * 4, classes=["x"]), r"y_val has labels not in classes in row 1 .*'y'"),
    (bad(classes=[0, 1, 0]), "classes must be distinct"),
    (bad(classes=[]), "classes is empty"),
    (bad(classes="ab"), "classes must be a list of labels"),
    (bad(metric="manhattan"), "metric must be one of 'cosine', 'euclidean', 'precomputed', got 'manhattan'"),
    (bad(metric=None), "metric must be one of"),
    (bad(metric="precomputed"), "X_val must be None with metric='precomputed'"),
    (bad(X_val=None, metric="precomputed", y_val=[0, 1, 0]), r"distances of 4 points .* 3 validation points"),
    (bad(X_val=None, metric="precomputed", X=with_row(X, 1, 0, NAN)), "NaN as the distance in row 1, column 0"),
    (bad(X_val=None, metric="precomputed", X=Blocks(X, X)), "at least 4 columns of distances but y_val has 2"),
    (bad(X_val=None, metric="precomputed", X=Blocks(X[:, :1])), "X has 1 columns of distances but y_val has 2"),
    (bad(X_val=None, metric="precomputed", X=Blocks(X[:3])), "X block 0 has 3 rows of distances but y has 4"),
    (bad(X_val=None, metric="precomputed", X=Blocks(X[0])), "X block 0 must be a two-dimensional array"),
    (bad(X_val=None, metric="precomputed", X=Blocks(X.astype(np.longdouble))), "array of distances, got (float|long)"),
    (bad(owners=["a"]), "owners has 1 entries but there are 4 points"),
    (bad(owners=["a", None, "b", "c"]), "owners has missing owners in row 1"),
    (bad(owners=["a", [], "b", "c"]), "owners has owners that are not hashable in row 1"),
    (bad(mean=1), "mean must be True or False, got 1"),
    (bad(progress="yes"), "progress must be True or False"),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[entry[1][:50] for entry in WRONG])
def test_bad_input_is_refused_by_name_and_row(method, arguments, message):
    with pytest.raises(th.InputError, match=message):
        method(**arguments)


@pytest.mark.parametrize("radius", [-0.1, NAN, "0.5", None, True, [0.5, 1], 1j, "wide", 10**400])
def test_a_radius_that_is_no_distance_is_refused(radius):
    for call in (
        lambda: th.tknn_shapley(X, Y, V, YV, radius=radius),
        lambda: th.zero_budget_score(X, Y, V, YV, radius=radius),
        lambda: th.NeighborCounts(V, YV, radius=radius),
    ):
        with pytest.raises(th.InputError, match="radius must be a number >= 0, got"):
            call()


def test_a_radius_too_small_to_square_is_refused():
    with pytest.raises(th.InputError, match="radius must be 0 or at least 1e-150, got 1e-200"):
        th.tknn_shapley(X, Y, V, YV, radius=1e-200)
    with pytest.warns(th.ReachWarning):
        th.tknn_shapley(X * 0, Y, V, YV, radius=1e-150, metric="euclidean")


@pytest.mark.parametrize("k", [0, -1, 1.5, "5", None, True, 10**400])
def test_a_k_below_one_is_refused(k):
    with pytest.raises(th.InputError, match="k must be"):
        th.knn_shapley(X, Y, V, YV, k=k)


def test_other_wrong_choices_are_refused():
    with pytest.raises(
        th.InputError, match="utility must be one of 'soft-label', 'jia2019', got 'hard'"
    ):
        th.knn_shapley(X, Y, V, YV, utility="hard")
    with pytest.raises(
        th.InputError, match="precision must be one of 'float64', 'float32', got 'half'"
    ):
        th.knn_shapley(X, Y, V, YV, precision="half")
    with pytest.raises(th.InputError, match="semivalue must be"):
        th.tknn_shapley(X, Y, V, YV, semivalue="core")
    with pytest.raises(th.InputError, match="labels not in classes in row 0"):
        th.NeighborCounts(V, YV).add([[1.0, 1.0]], [5])


@BOTH
def test_labels_without_a_match_and_points_out_of_reach_are_warned_of(method):
    with pytest.warns(
        th.LabelWarning, match=r"no label in common \(the first are '0' and 0\)"
    ) as caught:
        method(X, Y.astype(str), V, YV)
    assert caught[0].filename == __file__
    method(X, Y + 2, V, YV, classes=range(4))  # meant: no warning
    with pytest.warns(
        th.ReachWarning, match="no point is within radius 0.1 .* suggest_radius"
    ) as caught:
        th.tknn_shapley(X, Y, V + 100, YV, radius=0.1, metric="euclidean")
    assert caught[0].filename == __file__


@BOTH
def test_columns_in_another_order_or_of_other_names_are_refused(method):
    frame, val = (pd.DataFrame(A, columns=["a", "b"]) for A in (X, V))
    for other in (val[["b", "a"]], pl.DataFrame(val[["b", "a"]]), pa.table(val[["b", "a"]])):
        with pytest.raises(th.InputError, match="X has the columns of X_val in another order"):
            method(frame, Y, other, YV)
    with pytest.raises(th.InputError, match=r"only in X_val \['c'\], only in X \['b'\]"):
        method(frame, Y, val.rename(columns={"b": "c"}), YV)
    want = method(X, Y, V, YV).values
    for other in (V, pd.DataFrame(V), pl.DataFrame(val), pa.table(val)):  # nameless, or the same
        np.testing.assert_array_equal(method(frame, Y, other, YV).values, want)


@BOTH
@pytest.mark.parametrize("width", [2, 30])
def test_twins_are_a_leak_and_said_to_be_one(method, width, rng):
    A, B = rng.standard_normal((50, width)), rng.standard_normal((20, width))
    y, y_val = rng.integers(0, 2, 50), rng.integers(0, 2, 20)
    B[4], B[5], B[6] = A[10], A[10], A[11]
    with pytest.warns(th.TwinWarning, match="3 of 20 validation rows are exact copies") as caught:
        method(A, y, B, y_val)
    assert caught[0].filename == __file__
    # the same norm, or parallel under cosine, is no twin
    B[4], B[5], B[6] = A[10][::-1], 2 * A[10], -A[11]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method(A, y, B, y_val)


def test_twins_are_found_among_rows_of_one_length(rng):
    A = rng.integers(0, 2, (2000, 12)) * 2.0 - 1
    A[:, 0] = 1
    B = rng.integers(0, 2, (50, 12)) * 2.0 - 1
    B[:25, 0] = -1  # none of these occurs in A
    B[25:] = A[:25]
    with pytest.warns(th.TwinWarning, match="25 of 50"):
        th.tknn_shapley(A.astype(np.float32), [0, 1] * 1000, B, [0, 1] * 25)


def test_the_input_is_never_changed(rng):
    A, B = rng.standard_normal((40, 3)), rng.standard_normal((9, 3))
    y, y_val = rng.integers(0, 2, 40), rng.integers(0, 2, 9)
    copies = [part.copy() for part in (A, y, B, y_val)]
    for part in (A, y, B, y_val):
        part.flags.writeable = False
    th.tknn_shapley(A, y, B, y_val)
    th.knn_shapley(A, y, B, y_val)
    for part, copy in zip((A, y, B, y_val), copies, strict=True):
        np.testing.assert_array_equal(part, copy)
