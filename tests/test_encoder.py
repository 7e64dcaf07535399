"""Features of a table turned into numbers."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, feather
from table_cases import columns, encoded, entries, table_of
from tabular import check_refused

import thresher as th
from thresher.tables import encoder as encoder_module
from thresher.tables.columns import choose_columns
from thresher.tables.encoder import Encoder
from thresher.tables.feature import MOST_CATEGORIES, check_fill
from thresher.tables.reader import read_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["1", "abc", "2", "?"], ["'abc' in row 1, '?' in row 3", "--categorical x", "--ignore x"]),
        (["1", *"abcde"], ["'a' in row 1, 'b' in row 2, 'c' in row 3 and 2 more"]),
        (["1_000", "0x10", "1,5"], ["'1_000' in row 0", "'0x10'", "'1,5'"]),
        (["1", "True"], ["'True' in row 1"]),
        (["2024-01-31", "2024-02-01T10:00"], ["holds dates or times: '2024-01-31' in row 0"]),
        (["31.1.2024", "1/2/24"], ["holds dates or times"]),
        (np.array(["2024-01-31"], "M8[D]"), ["holds dates or times", "--ignore x"]),
        (np.array([3], "m8[s]"), ["holds dates or times"]),
        ([[1, 2], [3, 4]], ["cells of type list<"]),
        ([b"1", b"2"], ["cells of type binary"]),
        ([1.0, float("inf")], ["infinite numbers in row 1"]),
        (["1e999", "1"], ["infinite numbers in row 0"]),
        ([2**53 + 2, 1], ["integers beyond 2**53 in row 0"]),
        ([1, 2**53 + 1, None], ["integers beyond 2**53 in row 1"]),
        ([-(2**53) - 1, 1], ["integers beyond 2**53 in row 0"]),
        (np.array([1, 2**64 - 1], np.uint64), ["integers beyond 2**53 in row 1"]),
        ([Decimal(1), Decimal(2**53 + 1)], ["integers beyond 2**53 in row 1"]),
        (["1", "9007199254740993", ""], ["integers beyond 2**53 in row 1"]),
        (["0.5", " -9007199254740993 ", "NA"], ["integers beyond 2**53 in row 1"]),
        (["1" + "0" * 400, "1"], ["integers beyond 2**53 in row 0"]),
        (["1", None, "2"], ["missing numbers in row 1", "--fill median", "--ignore x"]),
        ([1.0, None, float("nan")], ["missing numbers in rows 1, 2"]),
        (["1", "NA", "n/a", "NaN", "null", "None", "", " "], ["missing numbers in rows 1, 2, 3"]),
        (["true", None], ["missing numbers in row 1"]),
        ([None, None], ["missing numbers in rows 0, 1"]),
    ],
)
def test_cells_that_are_no_numbers_are_refused(entries, words):
    found = columns(x=entries, z=[0.5] * len(entries))
    check_refused(lambda: Encoder.fit(found), "a.csv column 'x'", *words)


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.arrow"])
def test_files_have_one_rule_for_long_integers(name, tmp_path):
    """Whole or in parts: 2**53 + 1 is refused before it is rounded to a number that would pass."""
    table = pa.table({"a": [2**53 + 1, 2, 3], "b": [0.5] * 3, "y": ["u", "v", "u"]})
    path = tmp_path / name
    {"p.csv": csv.write_csv, "p.parquet": pq.write_table, "p.arrow": feather.write_feather}[name](
        table, path
    )
    whole = choose_columns(read_table(path), label="y")
    check_refused(lambda: Encoder.fit(whole), "column 'a' has integers beyond 2**53 in row 0")
    with pytest.raises(th.InputError, match=r"column 'a' has integers beyond 2\*\*53 in row 0"):
        th.tknn_shapley(th.Scan(path, label="y"), None, [[1.0, 2.0]], ["u"])


def test_what_is_true_must_stay_so():
    encoder = Encoder.fit(columns(x=["True", "False"]))
    assert encoder.transform(columns(x=["0", "true", "FALSE"])).tolist() == [[0], [1], [0]]
    other = columns(x=["yes", "True"], source="b.csv")
    check_refused(
        lambda: encoder.transform(other), "b.csv column 'x'", "neither true nor false: 'yes' in"
    )


@pytest.mark.parametrize(
    ("fill", "first", "second"),
    [("median", 2.0, 2.0), ("zero", 0.0, 0.0), (7, 7.0, 7.0), ("-1.5", -1.5, -1.5)],
)
def test_missing_numbers_are_filled_by_what_was_fitted(fill, first, second):
    train = columns(x=["1", "2", None, "NA", "9"])
    encoder = Encoder.fit(train, fill=fill)
    assert encoder.transform(train)[:, 0].tolist() == [1, 2, first, first, 9]
    assert encoder.transform(columns(x=[100.0, None]))[:, 0].tolist() == [100, second]


def test_a_fill_that_cannot_be_is_refused():
    for fill in ("mean", float("nan"), float("inf"), True, [1]):
        check_refused(lambda fill=fill: check_fill(fill), "--fill must be median, zero or a number")
    check_refused(
        lambda: Encoder.fit(columns(x=[None, None]), fill="median"), "no median", "--ignore x"
    )


def test_categories_become_columns_of_zeros_and_ones():
    train = columns(categorical=("c", "d"), a=[1, 2, 3], c=["q", None, "p"], d=[10, 9, 10])
    encoder = Encoder.fit(train)
    assert encoder.names == ("a", "c=p", "c=q", "c=", "d=10", "d=9")
    assert encoder.transform(train).tolist() == [
        [1, 0, 1, 0, 1, 0], [2, 0, 0, 1, 0, 1], [3, 1, 0, 0, 1, 0],
    ]  # fmt: skip
    other = columns(a=[4, 5], c=["new", "p"], d=["9", "10.0"])
    assert encoder.transform(other).tolist() == [[4, 0, 0, 0, 0, 1], [5, 1, 0, 0, 0, 0]]
    assert encoder.unseen(other) == {"c": 1, "d": 1}
    assert encoder.unseen(train) == {}


def test_whole_floats_are_categories_and_broken_ones_are_not():
    gaps = columns(categorical=("c",), c=[1.0, float("nan"), None])
    assert Encoder.fit(gaps).names == ("c=1", "c=")
    broken = columns(categorical=("c",), c=[1.0, 1.5])
    check_refused(lambda: Encoder.fit(broken), "column 'c'", "not whole", "text or integers")
    dates = columns(categorical=("c",), c=np.array(["2024-01-31"], "M8[D]"))
    check_refused(lambda: Encoder.fit(dates), "column 'c' is of type date32", "text or integers")


def test_there_are_at_most_a_thousand_categories():
    many = [str(i) for i in range(MOST_CATEGORIES + 1)]
    assert len(Encoder.fit(columns(categorical=("c",), c=many[:-1])).names) == MOST_CATEGORIES
    words = ("has 1001 categories, but at most 1000", "--ignore c")
    found = columns(categorical=("c",), c=many, z=[0.5] * len(many))
    check_refused(lambda: Encoder.fit(found), *words)


def test_the_only_feature_is_never_to_be_left_out():
    for cells in (["abc", "1"], [1.0, float("inf")], [[1], [2]]):
        said = check_refused(lambda cells=cells: Encoder.fit(columns(x=cells)), "column 'x'")
        assert "leave it out" not in said


def test_standardizing_uses_the_fitted_rows_only():
    train = columns(categorical=("c",), x=[1.0, 2.0, 6.0], c=["p", "p", "q"], k=[0.1, 0.1, 0.1])
    encoder = Encoder.fit(train, standardize=True, scaling="plain")
    found = encoder.transform(train)
    np.testing.assert_allclose(found[:, :3].mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(found[:, :3].std(axis=0), 1)
    assert found[:, 3].tolist() == [0, 0, 0]
    other = encoder.transform(columns(x=[3.0], c=["q"], k=[9.0]))
    deviation = np.std([1.0, 2.0, 6.0])
    np.testing.assert_allclose(other, [[0.0, -2 / 3 / np.sqrt(2 / 9), 2 / 3 / np.sqrt(2 / 9), 0.0]],
                               atol=1e-15)  # fmt: skip
    assert encoder.features[0].means == (3.0,)
    np.testing.assert_allclose(encoder.features[0].deviations, [deviation])


def test_standardizing_does_not_overflow():
    for scaling in ("robust", "plain", "ranks"):
        numbers = columns(x=[1e300, -1e300, 1e300, -1e300])
        found = encoded(numbers, standardize=True, scaling=scaling)
        np.testing.assert_allclose(found[:, 0], [1, -1, 1, -1])


def test_points_decide_and_the_validation_set_follows():
    train = columns(categorical=("c",), x=["1", None, "3"], c=["p", "q", "p"])
    validation = columns(categorical=("c",), x=["5", None], c=["q", "r"], source="v.csv")
    encoder = Encoder.fit(train, fill="median", standardize=True)
    X, X_val = encoder.transform(train), encoder.transform(validation)
    spread = np.sqrt(2 / 3)
    np.testing.assert_allclose(X[:, 0], [-1 / spread, 0, 1 / spread])
    np.testing.assert_allclose(X_val[:, 0], [3 / spread, 0])
    about = {"source": "a.csv", "rows": 3, "fill": "median", "standardize": True}
    assert encoder.describe()["fitted_on"] == about | {"scaling": "robust"}
    odd = columns(x=["5", "?"], c=["q", "r"], source="v.csv")
    fitted = Encoder.fit(train, fill=0)
    check_refused(lambda: fitted.transform(odd), "v.csv column 'x'", "'?' in row 1")


def test_a_table_without_the_columns_is_refused():
    encoder = Encoder.fit(columns(size=[1, 2]))
    check_refused(
        lambda: encoder.transform(columns(sise=[1, 2])), "no column 'size': did you mean 'sise'"
    )


@pytest.fixture
def lengths(monkeypatch):
    """A model that tells the length of a text."""
    calls = []

    def embed_texts(texts, *, model, progress=False):
        calls.append(model)
        return np.array([[len(text), -1] for text in texts], np.float32)

    monkeypatch.setattr(encoder_module, "embed_texts", embed_texts)
    return calls


def test_a_column_of_text_is_embedded_after_all_others(lengths):
    table = table_of({"t": ["aa", "b"], "x": [1.0, 3.0], "y": [0, 1]})
    found = choose_columns(table, label="y", text="t")
    encoder = Encoder.fit(found, standardize=True, model="m")
    assert encoder.transform(found).tolist() == [[-1, 2, -1], [1, 1, -1]]
    assert lengths == ["m"]
    again = Encoder.from_record(json.loads(json.dumps(encoder.describe())))
    assert again.transform(found).tolist() == [[-1, 2, -1], [1, 1, -1]]
    alone = choose_columns(table_of({"t": ["aa", "b"], "y": [0, 1]}), label="y", text="t")
    assert encoded(alone).tolist() == [[2, -1], [1, -1]]
    odd = columns(text="t", t=["a", None])
    check_refused(lambda: encoded(odd), "a.csv column 't' must hold strings, got None in row 1")


@given(
    rows=st.lists(
        st.tuples(entries, st.sampled_from(["p", "q", None]), st.integers(-5, 5)),
        min_size=1, max_size=8,
    ),
    fill=st.sampled_from(["zero", 2.5]),
    scaling=st.sampled_from([None, "robust", "plain", "ranks"]),
)  # fmt: skip
def test_a_record_does_the_same_again(rows, fill, scaling):
    x, c, i = (list(column) for column in zip(*rows))
    found = columns(categorical=("c",), x=x, c=pa.array(c, pa.string()), i=i)
    how = {"standardize": scaling is not None, "scaling": scaling or "robust"}
    encoder = Encoder.fit(found, fill=fill, **how)
    again = Encoder.from_record(json.loads(json.dumps(encoder.describe())))
    assert again == encoder
    assert again.transform(found).tobytes() == encoder.transform(found).tobytes()
    plain = [2.5 * (fill != "zero") if e.strip() in {"", "NA"} else float(e) for e in x]
    np.testing.assert_array_equal(Encoder.fit(found, fill=fill).transform(found)[:, 0], plain)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"columns": None},
        {"columns": [{"name": "x"}]},
        {"columns": [{"name": "x", "kind": "odd", "fill": None, "categories": [], "means": [],
                      "deviations": []}]},
        {"columns": [{"name": "x", "kind": "number", "fill": None, "categories": [],
                      "means": [1, 2], "deviations": [1, 2]}]},
        {"columns": [{"name": "x", "kind": "number", "fill": "much", "categories": [],
                      "means": [], "deviations": []}]},
        {"text": {"column": "t"}},
    ],
)  # fmt: skip
def test_a_broken_record_is_refused(change):
    record = Encoder.fit(columns(x=[1, 2])).describe()
    check_refused(lambda: Encoder.from_record(record | change), "not an encoder's record")
    check_refused(lambda: Encoder.from_record([]), "not an encoder's record")
