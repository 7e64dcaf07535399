"""Columns of a table: features, labels, ids and owners are told apart."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from table_cases import X, Y, columns, encoded, table_of
from tabular import check_refused, put

from thresher.tables.columns import choose_columns, same_labels
from thresher.tables.encoder import Encoder
from thresher.tables.reader import read_table, validation_inside


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_other_columns_are_features_in_order():
    table = table_of({"i": ["p", "q"], "b": [1, 2], "y": [0, 1], "o": ["u", "u"], "a": [3, 4],
                      "t": ["s", "t"], "z": [5, 6]})  # fmt: skip
    found = choose_columns(table, label="y", id="i", owner="o", text="t", ignore=["z"])
    assert found.labels == (0, 1)
    assert found.ids == ("p", "q")
    assert found.owners == ("u", "u")
    assert found.names == ("b", "a", "t")
    assert found.features.column("a").to_pylist() == [3, 4]


@pytest.mark.parametrize(
    ("features", "names"),
    [
        (["x*"], ("x1", "x2", "x10")),
        (["x?"], ("x1", "x2")),
        (["x2", "x*"], ("x2", "x1", "x10")),
        (["z[1]", "x1"], ("z[1]", "x1")),
        (["*"], ("x1", "x2", "x10", "z[1]")),
    ],
)
def test_features_are_names_or_patterns(features, names):
    table = table_of({name: [1, 2] for name in ("x1", "x2", "y", "x10", "z[1]")})
    assert choose_columns(table, label="y", features=features).names == names


def test_an_index_that_pandas_stored_is_no_feature():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 2, 3], "y": [0, 1, 0]}).iloc[[2, 0, 1]]
    frame.to_parquet("a.parquet")
    assert "__index_level_0__" in read_table("a.parquet").data.column_names
    assert choose_columns(read_table("a.parquet"), label="y").names == ("x",)
    frame.to_csv("a.csv")
    table = read_table("a.csv")
    check_refused(lambda: choose_columns(table, label="y"), "no name for column 1", "--ignore ''")
    assert choose_columns(table, label="y", ignore=[""]).names == ("x",)


NAMED = {"x1": [1.0, 2.0], "x2": [1.0, 2.0], "who": ["a", "b"], "label": ["p", "q"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"label": "lable"}, ["no column 'lable' (--label): did you mean 'label'? It has 'x1', "]),
        ({"label": "LABEL "}, ["did you mean 'label'?"]),
        ({"label": "zzz"}, ["no column 'zzz' (--label): it has 'x1', 'x2', 'who', 'label'"]),
        ({"label": "label", "id": "whom"}, ["'whom' (--id): did you mean 'who'?"]),
        ({"label": "label", "owner": "whom"}, ["'whom' (--owner)"]),
        ({"label": "label", "text": "whom"}, ["'whom' (--text)"]),
        (
            {"label": "label", "features": ["labels"]},
            ["'labels' (--features): did you mean 'label'"],
        ),
        ({"label": "label", "features": ["q*"]}, ["no column 'q*' (--features)"]),
        ({"label": "label", "features": "x1"}, ["--features must be a list"]),
        ({"label": "label", "features": ["x1", "label"]}, ["both --label and one of --features"]),
        ({"label": "label", "features": ["who"], "id": "who"}, ["both --id and one of"]),
        ({"label": "label", "features": []}, ["no columns left as features"]),
        ({"label": "label", "ignore": ["label"]}, ["'label' is both --label and --ignore"]),
        ({"label": "label", "ignore": ["x*", "who"]}, ["no columns left as features"]),
        ({"label": "label", "ignore": ["w"]}, ["'w' (--ignore)"]),
        ({"label": "label", "id": "who", "owner": "who"}, ["both --id and --owner"]),
        ({"label": "label", "categorical": ["kind"]}, ["'kind' (--categorical)"]),
        ({"label": "label", "categorical": ["who"], "features": ["x*"]}, ["'who' is not one of"]),
    ],
)
def test_columns_that_cannot_be_are_refused(arguments, words):
    check_refused(lambda: choose_columns(table_of(NAMED), **arguments), *words)


def test_at_most_twelve_names_are_shown():
    table = table_of({f"x{i}": [1, 2] for i in range(20)})
    assert check_refused(lambda: choose_columns(table, label="y"), "and 8 more").count("'x") == 12


def test_a_pattern_spares_columns_that_have_a_role():
    table = table_of({"m_id": ["a", "b"], "m_x": [1, 2], "x": [1, 2], "y": [0, 1]})
    assert choose_columns(table, label="y", id="m_id", ignore=["m_*"]).names == ("x",)


def labels_of(entries, kind=None):
    text = any(isinstance(entry, str) for entry in entries)
    kind = kind or ("csv" if text else "parquet")
    table = table_of({"x": [1] * len(entries), "y": pa.array(entries)}, kind)
    return choose_columns(table, label="y").labels


@pytest.mark.parametrize(
    ("entries", "labels"),
    [
        (["1", "0", "-3"], (1, 0, -3)),
        (["1", "01"], ("1", "01")),
        (["1", "+1"], ("1", "+1")),
        (["-0", "1"], ("-0", "1")),
        (["1", " 1"], ("1", " 1")),
        (["1.0", "2.0"], ("1.0", "2.0")),
        (["1", "9" * 25], ("1", "9" * 25)),
        (["1", "cat"], ("1", "cat")),
        (["1.5", "cat"], ("1.5", "cat")),
        (["", "a"], ("", "a")),
    ],
)
def test_labels_of_text_are_integers_if_all_are_plainly_so(entries, labels):
    assert labels_of(entries) == labels


def test_labels_of_other_files_stay_what_they_are():
    assert labels_of(["1", "0"], "parquet") == ("1", "0")
    assert labels_of([1.0, 0.0], "npz") == (1.0, 0.0)
    assert labels_of([True, False], "parquet") == (True, False)
    words = pa.array(["b", "a"]).dictionary_encode()
    assert choose_columns(table_of({"x": [1, 2], "y": words}), label="y").labels == ("b", "a")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([None, "a", None], ["a.csv column 'y' has missing labels in rows 0, 2"]),
        ([float("nan"), 1.0], ["missing labels in row 0"]),
        ([0.0, 0.25, 0.5], ["not whole, such as 0.25 in row 1", "regression"]),
        (["1", "2.5"], ["not whole, such as '2.5' in row 1", "regression"]),
        ([float("inf"), 1.0], ["not whole", "inf"]),
        ([f"p{i}" for i in range(21)], ["21 distinct entries in 21 rows", "it looks like an id"]),
        ([*range(92), *range(8)], ["92 distinct entries in 100 rows"]),
        ([[1], [2]], ["list<", "one entry per row"]),
    ],
)
def test_labels_that_are_no_classes_are_refused(entries, words):
    check_refused(lambda: labels_of(entries), *words)


def test_a_few_rows_may_all_have_labels_of_their_own():
    assert len(labels_of([f"p{i}" for i in range(20)])) == 20
    assert len(labels_of([*range(90), *range(10)])) == 100


def test_ids_are_distinct_and_present():
    def ids(entries, kind="csv"):
        table = table_of({"i": pa.array(entries), "x": entries, "y": ["0"] * len(entries)}, kind)
        return choose_columns(table, label="y", id="i").ids

    assert ids(["7", "07"]) == ("7", "07")
    assert ids([7, 8], "parquet") == (7, 8)
    check_refused(
        lambda: ids(["a", "b", "a", "b"]), "not distinct: 'a' in rows 0, 2; 'b' in rows 1, 3"
    )
    check_refused(lambda: ids(list("aabbccdd")), "; and 1 more")
    check_refused(lambda: ids(["a", None]), "column 'i' has missing ids in row 1")


def test_owners_are_present():
    table = table_of({"o": ["u", None], "x": [1, 2], "y": [0, 1]})
    check_refused(lambda: choose_columns(table, label="y", owner="o"), "missing owners in row 1")


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("y.txt", "1\n0\n1\n", (1, 0, 1)),
        ("y.txt", 'a, b\n"c\n\nd', ("a, b", '"c', "d")),
        ("y.csv", 'label\r\n"a, b"\r\nc\r\nd\r\n', ("a, b", "c", "d")),
        ("y.csv", "a\nb\nc", ("a", "b", "c")),
    ],
)
def test_an_array_has_its_labels_in_a_file(name, content, labels):
    np.save("X.npy", X)
    put(name, content)
    assert choose_columns(read_table("X.npy"), label=name).labels == labels


def test_labels_in_an_array():
    np.save("X.npy", X)
    np.save("y.npy", Y)
    assert choose_columns(read_table("X.npy"), label="y.npy").labels == (0, 1, 0)


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        ([1, -999, 0], None),
        ([1.0, -999.0, 0.0], None),
        ([1.5, -999.0, 0.0], "regression"),
        (["a", " -999", "b"], None),
    ],
)
def test_words_for_missing_cells_count_in_files_of_labels(labels, task):
    np.save("X.npy", X)
    np.save("y.npy", labels)
    put("y.txt", "\n".join(map(str, labels)))
    for name in ("y.npy", "y.txt"):
        table = read_table("X.npy", na=["-999", "-999.0"])
        check_refused(
            lambda n=name, t=table: choose_columns(t, label=n, task=task), "missing", "row 1"
        )


def test_words_for_missing_cells_count_in_a_validation_set_inside_a_file():
    np.savez("p.npz", X=X, y=Y, X_val=np.full((3, 1), [[1.5], [-999], [2]]), y_val=["a", "b", "?"])
    inside = validation_inside(read_table("p.npz", na=["?", "-999"]), "y").data
    assert inside.to_pydict() == {"x0": [1.5, None, 2], "y": ["a", "b", None]}


@pytest.mark.parametrize(
    ("label", "content", "words"),
    [
        ("y", None, ["X.npy has no labels: --label must name a file", "no such file y"]),
        ("y.txt", None, ["no such file y.txt"]),
        ("y.txt", "a\nb\n", ["y.txt", "2 labels but X.npy has 3 rows"]),
        ("y.csv", "a\nb,c\nd\n", ["line 2 has 2 cells"]),
        ("y.csv", 'a\n""\n\n\n', ["2 labels but"]),
        ("y.npy", np.zeros((3, 1)), ["one dimension, got shape (3, 1)"]),
        ("y.npy", np.array([0.5, 1.5, 2]), ["y.npy has numbers that are not whole"]),
        ("y.npy", np.array([np.nan, 1, 2]), ["y.npy has missing labels in row 0"]),
    ],
)
def test_a_file_of_labels_that_does_not_fit_is_refused(label, content, words):
    np.save("X.npy", X)
    if isinstance(content, str):
        put(label, content)
    elif content is not None:
        np.save(label, content)
    check_refused(lambda: choose_columns(read_table("X.npy"), label=label), *words)


def test_labels_of_two_tables_are_of_one_kind():
    def of(*entries, kind="csv"):
        return choose_columns(table_of({"x": [1, 2], "y": list(entries)}, kind), label="y")

    first, second = same_labels(of("1", "2"), of("1", "?"))
    assert (first.labels, second.labels) == (("1", "2"), ("1", "?"))
    first, second = same_labels(of("1", "?"), of("1", "2"))
    assert (first.labels, second.labels) == (("1", "?"), ("1", "2"))
    first, second = same_labels(of("1", "2"), of("2", "1"))
    assert (first.labels, second.labels) == ((1, 2), (2, 1))
    first, second = same_labels(of(1, 2, kind="parquet"), of("1", "?"))
    assert (first.labels, second.labels) == ((1, 2), ("1", "?"))


def test_some_rows_are_taken_and_keep_their_numbers():
    table = table_of({"i": list("abc"), "x": ["1", "2", "?"], "y": ["p", "q", "p"]}, "csv")
    found = choose_columns(table, label="y", id="i").take([2, 0])
    assert (found.labels, found.ids, found.rows.tolist()) == (("p", "p"), ("c", "a"), [2, 0])
    assert found.features.column("x").to_pylist() == ["?", "1"]
    masked = choose_columns(table, label="y", id="i").take(np.array([False, True, True]))
    assert masked.rows.tolist() == [1, 2]
    check_refused(lambda: Encoder.fit(masked), "'?' in row 2")
    assert masked.take([1]).rows.tolist() == [2]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([1.0, float("inf")], "infinite"),
        ([1.0, None], "missing"),
        ([1, 2**60], "integers"),
        (["1", "x"], "'x'"),
    ],
)
def test_messages_name_rows_of_the_table_not_of_the_part(entries, words):
    part = choose_columns(table_of({"x": entries, "y": ["p", "q"]}), label="y").take([1])
    check_refused(lambda: Encoder.fit(part), words, "in row 1")


@pytest.mark.parametrize(
    ("entries", "numbers"),
    [
        (["1", "-2.50", "1e3"], [1, -2.5, 1000]),
        ([" 1", "2 ", "+3"], [1, 2, 3]),
        (["true", "FALSE", " True"], [1, 0, 1]),
        ([True, False, True], [1, 0, 1]),
        ([1, 2, 3], [1, 2, 3]),
        (pa.array([1, 2, 3], pa.uint8()), [1, 2, 3]),
        (pa.array([0.5, 1.5, 2.5], pa.float32()), [0.5, 1.5, 2.5]),
        (np.array([0.5, 1.5, 2.5], np.float16), [0.5, 1.5, 2.5]),
        (pa.array(["1", "2", "1"]).dictionary_encode(), [1, 2, 1]),
        (pa.array(["1", "2", "1"], pa.large_string()), [1, 2, 1]),
        (pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)), [1, 2, 3]),
        ([2**53, -(2**53), 0], [2**53, -(2**53), 0]),
        (["9007199254740992", "-9007199254740992", "0"], [2**53, -(2**53), 0]),
        (["9007199254740993.0", "1e20", "9.5e15"], [2.0**53, 1e20, 9.5e15]),
        ([2.0**60, 1e20, 0.5], [2.0**60, 1e20, 0.5]),
    ],
)
def test_numbers_of_every_kind_are_float64(entries, numbers):
    found = encoded(columns(x=entries))
    assert found.dtype == np.float64
    assert found.tolist() == [[number] for number in numbers]
