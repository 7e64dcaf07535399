"""Tables in files: found and read, or refused."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import feather, ipc
from table_cases import X, Y
from tabular import check_refused, put, thresher

import thresher as th
from thresher.tables.delimited import Delimited
from thresher.tables.paths import check_delimiter, find_files
from thresher.tables.reader import input_digest, read_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


DATA = pa.table({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "y": ["cat", "dog", "cat"]})


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
        (b"a,y\n1,2\n\n3\n4,5,6\n", ["2 cells in its header", "line 4 has 1, line 5 has 3"]),
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


@pytest.mark.parametrize(
    "command",
    [
        "value p.parquet --encoding latin-1",
        "value p.parquet --validation p.parquet --delimiter ;",
        "value p.npz --encoding utf-16",
        "value p.jsonl --encoding latin-1",
        "inspect p.parquet --delimiter |",
        "clean p.parquet --drop rows:1 --out o.parquet --encoding latin-1",
        "appraise p.parquet --prices none.json --delimiter ;",
        "plan --validation p.parquet --points 9 --delimiter ;",
        "release p.parquet --validation p.npz --epsilon 1 --delta 0 --ledger l --out-prices o "
        "--delimiter ;",
        "federate task --validation p.npz --silo a=1f --out t.json --delimiter ;",
        "federate join http://localhost:1 --points p.npz --key k --delimiter ;",
    ],
)
def test_options_about_text_are_refused_where_no_file_is_text(command):
    table = pa.table({"x": [1.5, 2.5], "y": ["a", "b"]})
    pq.write_table(table, "p.parquet")
    np.savez("p.npz", X=np.ones((2, 1)), y=["a", "b"])
    put("p.jsonl", '{"x": 1.5, "y": "a"}\n')
    done = thresher(*command.split())
    assert done.returncode == 1
    assert "is for .csv, .tsv and .txt files, which p." in done.stderr
    assert ("JSON lines are always UTF-8" in done.stderr) == ("jsonl" in command)


@pytest.mark.parametrize("more", ["", "--memory 64GB --out o.csv"])
def test_a_format_of_dates_is_refused_where_all_are_stored_as_dates(more):
    when = pa.array([0, 9, 80, 90], pa.date32())
    pq.write_table(pa.table({"when": when, "x": [1, 2, 4, 5], "y": list("aabb")}), "p.parquet")
    put("v.csv", "when,x,y\n03/01/1970,1,a\n05/03/1970,4,b\n")
    start = f"value p.parquet --radius 9 --metric euclidean {more} --date".split()
    form = "when=%d/%m/%Y"
    refused = thresher(*start, form, "--validation", "p.parquet")
    assert refused.returncode == 1
    assert (
        f"--date {form} has a format, but p.parquet stores the column as date32" in refused.stderr
    )
    assert "use --date when" in refused.stderr
    for fitting in (["when", "--validation", "p.parquet"], [form, "--validation", "v.csv"]):
        done = thresher(*start, *fitting, "--force")
        assert done.returncode == 0, done.stderr


def test_options_about_text_hold_for_the_validation_set_alone_too():
    put("v.csv", "x;y\n1;a\n4;b\n")
    pq.write_table(pa.table({"x": [1, 2, 4, 5], "y": list("aabb")}), "p.parquet")
    near = ("--radius", 1, "--metric", "euclidean")
    done = thresher("value", "p.parquet", "--validation", "v.csv", *near, "--delimiter", ";")
    assert done.returncode == 0, done.stderr


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
    check_refused(lambda: read_table("*.tsv"), "no file matches the pattern *.tsv")
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
