"""Private rows in data frames: an odd entry changes no other row, and types are not told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from odd_rows import (
    FEW,
    Nothing,
    check_same,
    with_label,
)

from thresher.errors import InputError
from thresher.privacy.rows import read_features


def frames(column):
    """Data frames of the points with a row more, whose second entry is what `column` makes."""
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    rows = np.insert(FEW, 3, [1, 1, 1], axis=0)
    return column(pandas, polars, arrow, rows[:, 1].tolist(), rows[:, [0, 2]])


def _pandas(dtype, odd, convert=float):
    def column(pandas, polars, arrow, middle, sides):
        middle = [convert(x) for x in middle]
        middle[3] = odd() if odd is Nothing else odd
        second = pandas.Series(middle, dtype=dtype)
        return pandas.DataFrame({"a": sides[:, 0], "b": second, "c": sides[:, 1]})

    return column


def _polars(dtype, odd, convert=float):
    def column(pandas, polars, arrow, middle, sides):
        middle = [convert(x) for x in middle]
        middle[3] = odd() if odd is Nothing else odd
        second = polars.Series(middle, dtype=getattr(polars, dtype), strict=False)
        return polars.DataFrame({"a": sides[:, 0], "b": second, "c": sides[:, 1]})

    return column


def _arrow(dtype, odd, convert=float):
    def column(pandas, polars, arrow, middle, sides):
        middle = [convert(x) for x in middle]
        middle[3] = odd() if odd is Nothing else odd
        second = arrow.array(middle, getattr(arrow, dtype)())
        return arrow.table({"a": sides[:, 0], "b": second, "c": sides[:, 1]})

    return column


@pytest.mark.parametrize(
    "column",
    [_pandas(object, "x"), _pandas(object, Nothing), _pandas("str", "x", repr),
     _pandas("string", None, repr), _pandas("Float64", None), _pandas("float64", math.inf),
     _polars("Object", Nothing), _polars("String", "1.0.0", repr), _polars("Float64", None),
     _arrow("string", "x", repr), _arrow("large_string", None, repr), _arrow("float64", None)],
    ids=["object", "Nothing", "str", "string", "NA", "inf", "pl Object", "pl String", "pl null",
         "pa string", "pa large", "pa null"],
)  # fmt: skip
def test_an_odd_entry_of_a_frame_changes_nothing(column):
    check_same(frames(column), with_label("up"))


@pytest.mark.parametrize("kind", ["pyarrow", "pandas"])
def test_an_integer_that_no_float_holds_is_rounded_in_a_frame(kind):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": [1, 2, 2**60 + 1], "b": [3, None, 2**53]})
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        table = table.to_pandas(types_mapper=pandas.ArrowDtype)
    found = read_features("X", table, 2)
    assert found[0].tolist() == [1, 3]
    assert found[2].tolist() == [2.0**60, 2.0**53]
    assert math.isnan(found[1, 1])


def test_a_column_of_nothing_is_one_of_missing_numbers():
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    for table in (
        arrow.table({"a": [None], "b": [1.0]}),
        polars.DataFrame({"a": [None], "b": [1.0]}),
    ):
        assert np.isnan(read_features("X", table, 2)[0, 0])


@pytest.mark.parametrize("empty", [True, False])
def test_types_are_refused_with_and_without_rows_and_categories_are_not_told(empty):
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rows = slice(0) if empty else slice(1)
    secret = polars.Series("p", ["secret"], dtype=polars.Enum(["secret"]))[rows]
    with pytest.raises(InputError, match=r"non-numeric columns: 'p' \(Enum\); drop"):
        read_features("X", polars.DataFrame([secret]), 1)
    struct = arrow.array([{"a": 1}], arrow.struct({"a": arrow.int64()}))[rows]
    with pytest.raises(InputError, match=r"non-numeric columns: 'p' \(Struct\)"):
        read_features("X", arrow.table({"p": struct}), 1)
    with pytest.raises(InputError, match=r"got dtype str_$"):
        read_features("X", np.array([["secret text"]])[rows], 1)
    with pytest.raises(InputError, match="X must have two dimensions"):
        read_features("X", np.ones((1, 2, 2))[rows], 2)
    with pytest.raises(InputError, match="X must be a list or an array, got dict"):
        read_features("X", {} if empty else {"a": [1]}, 1)
    with pytest.raises(InputError, match="X must be a table of rows, got generator"):
        read_features("X", (row for row in []), 1)
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InputError, match="sparse matrix"):
        read_features("X", sparse.csr_matrix(np.ones((1, 1)))[rows], 1)
