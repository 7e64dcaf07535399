"""Tables in files: found, read, their columns chosen, their features turned into numbers."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import csv, feather, ipc
from tabular import check_refused, put

import thresher as th
from thresher.tables import encoder as encoder_module
from thresher.tables.cell_values import MOST_CATEGORIES
from thresher.tables.columns import Columns, choose_columns, same_labels
from thresher.tables.delimited import Delimited
from thresher.tables.encoder import Encoder
from thresher.tables.feature import check_fill
from thresher.tables.paths import check_delimiter, find_files
from thresher.tables.reader import Table, input_digest, read_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


DATA = pa.table({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "y": ["cat", "dog", "cat"]})
X, Y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0], np.int8)


# Reading


def test_cells_of_text_stay_as_they_are_written():
    put("a.csv", 'a,"b ""c""",y\r\n 1.50,"x,\r\ny",\r\n\r\n,"",007\r\n')
    table = read_table("a.csv")
    assert table.data.to_pydict() == {
        "a": [" 1.50", None], 'b "c"': ["x,\r\ny", ""], "y": [None, "007"],
    }  # fmt: skip
    assert (table.files, table.kind, table.delimiter, len(table)) == (
        (Path("a.csv"),), "csv", ",", 2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "delimiter"),
    [
        ("a.csv", b"a,y\n1,b\n", None),
        ("a.CSV", b"a,y\n1,b", None),
        ("a.csv", b"\xef\xbb\xbfa,y\r1,b\r", None),
        ("a.csv", b'\xef\xbb\xbf"a",y\n1,b', None),
        ("a.csv", b"\n\na;y\n1;b\n", ";"),
        ("a.tsv", b"a\ty\r\n1\tb\r\n", None),
        ("a.csv", b"a\ty\n1\tb\n", "tab"),
        ("a.csv", b"a\ty\n1\tb\n", r"\t"),
        ("a.csv", b"a|y\n1|b\n", "|"),
        ("a.csv.gz", gzip.compress(b"a,y\n1,b\n", mtime=0), None),
        ("a.tsv.gz", gzip.compress(b"a\ty\n1\tb\n", mtime=0), None),
    ],
)
def test_text_is_read_in_all_its_forms(name, content, delimiter):
    put(name, content)
    assert read_table(name, delimiter=delimiter).data.to_pydict() == {"a": ["1"], "y": ["b"]}


def write_arrow(path, make):
    with make(path, DATA.schema) as writer:
        writer.write_table(DATA)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.parquet", lambda path: pq.write_table(DATA, path)),
        ("a.arrow", lambda path: write_arrow(path, ipc.new_file)),
        ("a.arrow", lambda path: write_arrow(path, ipc.new_stream)),
        ("a.feather", lambda path: feather.write_feather(DATA, path)),
        ("k=1/a.parquet", lambda path: pq.write_table(DATA, path)),
    ],
)
def test_tables_of_arrow_come_back(name, write):
    Path(name).parent.mkdir(exist_ok=True)
    write(name)
    assert read_table(name).data.equals(DATA)


def test_arrays_become_columns():
    other = {
        "w": np.array([0.5, 1, 2]),
        "more": np.zeros((3, 2)),
        "few": np.zeros(2),
        "about": "{}",
    }
    validation = {"classes": np.array(list("pqr")), "X_val": X, "y_val": np.array([9, 9, 9])}
    np.savez("a.npz", X=X.astype(">f4"), y=Y, **other, **validation)
    table = read_table("a.npz")
    assert table.data.to_pydict() == {
        "x0": [0, 2, 4], "x1": [1, 3, 5], "y": [0, 1, 0], "w": [0.5, 1, 2],
    }  # fmt: skip
    assert table.data.schema.field("x0").type == pa.float32()
    np.save("b.npy", X)
    assert read_table("b.npy").data.column_names == ["x0", "x1"]
    np.save("c.npy", Y)
    assert read_table("c.npy").data.to_pydict() == {"x0": [0, 1, 0]}


def test_folders_and_patterns_are_read_in_the_order_of_names():
    for name in ("b", "a", "c"):
        put(f"parts/{name}.csv", f"x,y\n1,{name}\n")
    put("parts/.hidden.parquet", "")
    put("parts/_SUCCESS", "")
    put("parts/README.md", "words")
    table = read_table("parts")
    assert table.data.column("y").to_pylist() == ["a", "b", "c"]
    assert [path.name for path in table.files] == ["a.csv", "b.csv", "c.csv"]
    assert table.name == os.path.join("parts", "a.csv") + " and 2 more"  # noqa: PTH118
    assert read_table("parts/[ac]*.csv").data.column("y").to_pylist() == ["a", "c"]
    assert read_table(Path("parts")).data.equals(table.data)
    digest = hashlib.sha256(b"x,y\n1,a\nx,y\n1,b\nx,y\n1,c\n").hexdigest()
    assert input_digest(table.files) == digest


def test_a_file_whose_name_is_a_pattern_is_that_file():
    put("a[1].csv", "x,y\n1,2\n")
    assert read_table("a[1].csv").files == (Path("a[1].csv"),)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["a.csv is empty"]),
        (b"\n\r\n\n", ["a.csv is empty"]),
        (b"\xef\xbb\xbf", ["a.csv is empty"]),
        (b"a,y\n", ["header but no rows"]),
        (b"a,y\n\n\n", ["header but no rows"]),
        (b"a,y\n1,2\n\n3\n4,5,6\n", ["header of 2 cells", "line 4 has 1, line 5 has 3"]),
        (b'a,y\n"1\n2",2\n3\n', ["line 4 has 1"]),
        (b"a,y\n" + b"1\n" * 9, ["line 2 has 1, line 3 has 1, line 4 has 1 and 6 more"]),
        (b"a;b;y\n1,5;2;0\n", ["seems to be ';', not ','", "--delimiter ';'"]),
        (b"a\tb\ty\n1\t2\t0\n", ["--delimiter tab"]),
        (b"a|y\n1|0\n", ["--delimiter '|'"]),
        (b"a;b|c;y\n1;2|3;0\n", ["--delimiter ';'"]),
        (b"caf\xe9,y\n1,2\n", ["not UTF-8", "header has the byte 0xe9", "iconv -f LATIN1"]),
        (b"a,y\n1,2\ncaf\xe9,2\n", ["not UTF-8", "line 3 has the byte 0xe9", "iconv"]),
        ("a,y\n1,2\n".encode("utf-16"), ["UTF-16", "iconv -f UTF-16"]),
        (b'a,y\n1,"x\n2,z\n3,z\n', ["quote in line 2 that is never closed"]),
        (b'a,y\n1,2\n1,"x', ["quote in line 3 that is never closed"]),
        (b'a,y\n"1,2\n', ["quote in line 2 that is never closed"]),
    ],
)
def test_text_that_is_no_table_is_refused_by_line(content, words):
    put("a.csv", content)
    check_refused(lambda: read_table("a.csv"), "a.csv", *words)


def test_a_tsv_with_commas_asks_for_a_comma():
    put("a.tsv", "a,y\n1,2\n")
    check_refused(lambda: read_table("a.tsv"), "--delimiter ','")


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "é", 3])
def test_a_delimiter_is_one_character(delimiter):
    check_refused(lambda: check_delimiter(delimiter), "--delimiter must be one character")


def half(path):
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: len(content) // 2])


def test_half_written_files_are_refused():
    pq.write_table(DATA, "a.parquet")
    write_arrow("a.arrow", ipc.new_file)
    np.savez("a.npz", X=X, y=Y)
    np.save("a.npy", X)
    put("a.csv.gz", gzip.compress(b"a,y\n" + os.urandom(99).hex().encode() + b",1\n"))
    for name in ("a.parquet", "a.arrow", "a.npz", "a.npy", "a.csv.gz"):
        half(name)
        check_refused(
            lambda name=name: read_table(name), name, "damaged, was not written to its end"
        )


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": Y}, ["no array 'X'", "it has y"]),
        ({"X": np.zeros((3, 2, 2)), "y": Y}, ["shape (3, 2, 2)", "reshape"]),
        ({"X": X.astype(complex), "y": Y}, ["'X' of dtype complex128"]),
        ({"X": X, "x1": Y}, ["several columns named 'x1'"]),
        ({"X": np.zeros((0, 2)), "y": Y[:0]}, ["no rows"]),
        ({"X": X, "y": np.array([None, 1, 2])}, ["a.npz", "holds Python objects"]),
    ],
)
def test_arrays_that_are_no_table_are_refused(arrays, words):
    np.savez("a.npz", **arrays)
    check_refused(lambda: read_table("a.npz"), "a.npz", *words)


def test_a_table_without_rows_is_refused():
    pq.write_table(DATA.slice(0, 0), "a.parquet")
    check_refused(lambda: read_table("a.parquet"), "a.parquet has columns but no rows")


def test_a_missing_file_is_named_with_the_nearest():
    put("train.csv", "a,y\n1,2\n")
    put("deep/other.parquet", "")
    check_refused(
        lambda: read_table("tran.csv"), "there is no file tran.csv: did you mean train.csv?"
    )
    check_refused(lambda: read_table("deep/x.csv"), "deep has other.parquet")
    check_refused(lambda: read_table("none/x.csv"), "the folder none does not exist")
    check_refused(lambda: read_table("*.tsv"), "no file fits the pattern *.tsv")
    put("bare/README.md", "")
    check_refused(lambda: read_table("bare"), "the folder bare holds no tables (.csv, ")
    put("notes.doc", "words")
    check_refused(lambda: read_table("notes.doc"), "notes.doc must be a .csv, ", " or .txt file")
    put("a.npz.gz", "words")
    check_refused(lambda: read_table("a.npz.gz"), "a.npz.gz must be a ", "not .npz")
    for nothing in ("", 3, None):
        check_refused(lambda nothing=nothing: find_files(nothing), "must be the name of a file")


def test_several_files_must_be_alike():
    put("kinds/a.csv", "x,y\n1,2\n")
    pq.write_table(DATA, "kinds/b.parquet")
    check_refused(lambda: read_table("kinds"), "different kinds", "a.csv, b.parquet", "'*.csv'")
    put("order/a.csv", "x,y\n1,2\n")
    put("order/b.csv", "y,x\n1,2\n")
    check_refused(lambda: read_table("order"), "b.csv has the columns of", "another order")
    put("names/a.csv", "x,y\n1,2\n")
    put("names/b.csv", "x,z\n1,2\n")
    check_refused(lambda: read_table("names"), "a.csv ['y']", "b.csv ['z']")
    Path("types").mkdir()
    for name, entry in (("a", 1), ("b", "one")):
        pq.write_table(pa.table({"x": [entry]}), f"types/{name}.parquet")
    check_refused(lambda: read_table("types"), "column 'x' has type string in", "but int64 in")
    put("empty/a.csv", "x,y\n1,2\n")
    put("empty/b.csv", "")
    check_refused(lambda: read_table("empty"), "b.csv is empty")


cells = st.text(st.sampled_from('ab ,;"\r\n\té'), max_size=6)


def written(rows, newline, delimiter=","):
    def cell(text):
        special = any(mark in text for mark in f'{delimiter}"\r\n')
        return '"' + text.replace('"', '""') + '"' if special else text

    return "".join(delimiter.join(map(cell, row)) + newline for row in rows)


@given(
    rows=st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=6),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    delimiter=st.sampled_from([",", ";", "\t"]),
    mark=st.booleans(),
    end=st.booleans(),
)
@example(rows=[("", "a\n", "")], newline="\n", delimiter=",", mark=False, end=False)
def test_what_python_writes_is_read_back(folder, rows, newline, delimiter, mark, end):
    text = written([("p", "q", "r"), *rows], newline, delimiter)
    text = text if end else text.removesuffix(newline)
    put("a.csv", (b"\xef\xbb\xbf" if mark else b"") + text.encode())
    found = read_table("a.csv", delimiter=delimiter).data
    wanted = [tuple(cell or None for cell in row) for row in rows]
    assert [tuple(row.values()) for row in found.to_pylist()] == wanted


@given(raw=st.text(st.sampled_from('a1 ,"\r\n'), min_size=1, max_size=24))
@example(raw='"",')
@example(raw='"a"b,"c""\r\n"\r')
def test_arrow_sees_the_records_and_cells_that_we_see(folder, raw):
    """Bytes are copied by our grammar and read by Arrow's: they must agree on any bytes."""
    put("a.csv", "p,q\n" + raw)
    source = Delimited(Path("a.csv").read_bytes(), ",")
    records = [source.cells(record) for record in source.records()]
    if {len(record) for record in records} != {2} or any(
        source.is_open(cell) for record in records for cell in record
    ):
        with pytest.raises(th.InputError):
            read_table("a.csv")
    else:
        ours = [tuple(map(source.text, record)) for record in records[1:]]
        theirs = read_table("a.csv").data.to_pylist() if ours else []
        assert [tuple(row.values()) for row in theirs] == ours


def test_line_ends_in_quotes_survive_in_long_files():
    """Arrow drops a line feed in quotes where a block of it begins."""
    rows = [("x" * (i % 7), "\r\n") for i in range(300_000)]
    put("a.csv", written([("p", "q"), *rows], "\n"))
    assert set(read_table("a.csv").data.column("q").to_pylist()) == {"\r\n"}


# Columns


def table_of(columns, kind="parquet", name="a"):
    return Table(pa.table(columns), (Path(f"{name}.{kind}"),), kind, "," if kind == "csv" else None)


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
        ([[1], [2]], ["list<", "one entry a row"]),
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


# Encoding


def columns(categorical=(), text=None, source="a.csv", **entries):
    data = pa.table(entries)
    labels = tuple(i % 2 for i in range(len(data)))
    return Columns(labels, data, categorical=categorical, text=text, source=source)


def encoded(found, **arguments):
    return Encoder.fit(found, **arguments).transform(found)


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
    check_refused(lambda: Encoder.fit(columns(x=entries)), "a.csv column 'x'", *words)


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
    words = ("has 1001 categories, at most 1000", "--ignore c")
    check_refused(lambda: Encoder.fit(columns(categorical=("c",), c=many)), *words)


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


entries = st.one_of(
    st.floats(-1e6, 1e6).map(repr),
    st.integers(-99, 99).map(str),
    st.sampled_from(["", "NA", " 3 "]),
)


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
