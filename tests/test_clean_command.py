"""`thresher clean`: what findings suggest, or what it is told outright."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tabular import put, thresher

import thresher as th


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# The command


def run(*arguments):
    return thresher("clean", *arguments, "--json")


LINES = ["id,x,y", "a1, 0.10,cat", "a2,0.2,dog", '"a3",3e-1,cat', "a4,0.4,dog", "a5,0.5,cat"]
LABELS = ["cat", "dog", "cat", "dog", "cat"]
WORDS_FOUND = ["keep", "drop", "relabel", "outlier", "keep"]
BEST = ["dog", "cat", "dog", "cat", "dog"]


def findings(**change):
    """What `thresher value` writes."""
    rows = range(5)
    columns = {"row": list(rows), "id": [f"a{i + 1}" for i in rows], "label": LABELS,
               "value": [0.5] * 5, "suggestion": WORDS_FOUND, "best_label": BEST}  # fmt: skip
    return pa.table(columns | change)


def with_digest(table, *paths):
    digest = hashlib.sha256(b"".join(Path(path).read_bytes() for path in paths)).hexdigest()
    return table.replace_schema_metadata({b"thresher": json.dumps({"input_digest": digest})})


@pytest.fixture
def points(folder):
    put("a.csv", "\r\n".join(LINES) + "\r\n")
    pq.write_table(with_digest(findings(), "a.csv"), "v.parquet")


def test_the_command_does_what_the_findings_suggest(points):
    done = run("a.csv", "--values", "v.parquet", "--drop", "drop,outlier", "--relabel", "relabel",
               "--label", "y", "--id", "id", "--out", "b.csv", "--log", "c.csv")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == "dropped 2 rows, relabeled 1 of 5: wrote b.csv and c.csv\n"
    kept = [LINES[0], LINES[1], '"a3",3e-1,dog', LINES[5]]
    assert Path("b.csv").read_bytes() == ("\r\n".join(kept) + "\r\n").encode()
    assert Path("c.csv").read_text().splitlines() == [
        "row,id,action,old_label,new_label", "1,a2,drop,dog,", "2,a3,relabel,cat,dog",
        "3,a4,drop,dog,",
    ]  # fmt: skip
    summary = json.loads(done.stdout)
    assert summary == {
        "out": "b.csv", "log": "c.csv", "rows": 5, "kept": 3, "dropped": 2, "relabeled": 1,
        "input": ["a.csv"], "input_digest": hashlib.sha256(Path("a.csv").read_bytes()).hexdigest(),
        "decisions": None, "values": "v.parquet", "drop": "drop,outlier", "relabel": "relabel",
        "correct": None, "label": "y",
        "id": "id", "thresher": th.__version__,
    }  # fmt: skip


def test_the_command_does_what_it_is_told_outright(points):
    done = run("a.csv", "--drop", "rows:0-1", "--relabel", "rows:4=bird", "--out", "b.csv",
               "--log", "c.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no row had the label 'bird' before" in done.stderr
    assert Path("b.csv").read_text().splitlines() == [LINES[0], *LINES[3:5], "a5,0.5,bird"]
    log = json.loads(Path("c.json").read_text())
    assert log["about"]["drop"] == "rows:0-1"
    assert log["about"]["dropped"] == 2
    assert [change["row"] for change in log["changes"]] == [0, 1, 4]


@pytest.mark.parametrize("asked", ["--drop rows:3", "--drop ids:a2 --relabel rows:4=bird"])
def test_findings_that_nothing_uses_are_refused(points, asked):
    command = ("a.csv", "--id", "id", *asked.split(), "--out", "b.csv")
    done = run(*command, "--values", "v.parquet")
    assert done.returncode == 1
    assert "--values has suggestions, but none is asked for" in done.stderr
    assert run(*command).returncode == 0


def test_findings_as_text_do_the_same(points):
    header, *rows = zip(*([name, *column] for name, column in findings().to_pydict().items()))
    with Path("v.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    done = run("a.csv", "--values", "v.csv", "--relabel", "relabel", "--out", "b.csv")
    assert done.returncode == 0, done.stderr
    assert '"a3",3e-1,dog' in Path("b.csv").read_text()


def test_rows_can_be_dropped_where_there_are_no_labels(folder):
    put("a.csv", "i,x\n1,a\n2,b\n")
    done = run("a.csv", "--id", "i", "--drop", "ids:1", "--out", "b.csv")
    assert done.returncode == 0, done.stderr
    assert Path("b.csv").read_text() == "i,x\n2,b\n"


def test_findings_of_some_rows_fit_if_their_digest_does(points):
    """Rows that were held out have no values."""
    some = findings().take([2, 4, 1]).drop_columns("id")
    pq.write_table(with_digest(some, "a.csv"), "v.parquet")
    done = run("a.csv", "--values", "v.parquet", "--drop", "drop", "--relabel", "relabel",
               "--out", "b.csv")  # fmt: skip
    assert done.returncode == 0, done.stderr
    kept = [LINES[0], LINES[1], '"a3",3e-1,dog', *LINES[4:]]
    assert Path("b.csv").read_text().splitlines() == kept


def test_findings_are_matched_by_id_before_row(points):
    turned = findings().take([4, 3, 2, 1, 0]).drop_columns("row")
    pq.write_table(turned.append_column("row", pa.array(range(5))), "v.parquet")
    done = run("a.csv", "--values", "v.parquet", "--id", "id", "--drop", "drop", "--out", "b.csv")
    assert done.returncode == 0, done.stderr
    assert Path("b.csv").read_text().splitlines() == [*LINES[:2], *LINES[3:]]


def test_labels_of_numbers_fit_however_they_are_written(folder):
    np.savez("a.npz", X=np.eye(3), y=np.array([0.0, 1.0, 0.0]))
    table = pa.table({"row": [0, 1, 2], "label": ["0", "1", "0"], "best_label": ["1", "0", "1"],
                      "suggestion": ["keep", "relabel", "drop"]})  # fmt: skip
    pq.write_table(table, "v.parquet")
    done = run("a.npz", "--values", "v.parquet", "--drop", "drop", "--relabel", "relabel",
               "--out", "b.npz")  # fmt: skip
    assert done.returncode == 0, done.stderr
    with np.load("b.npz") as stored:
        assert stored["y"].tolist() == [0.0, 0.0]
        assert stored["X"].tolist() == [[1, 0, 0], [0, 1, 0]]


V = ("--values", "v.parquet")


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        ({}, (), ["nothing to do", "--drop, --relabel or --correct"]),
        ({}, ("--drop", "drop"), ["uses the suggestions of thresher value"]),
        ({}, (*V, "--drop", "drops"), ["no suggestion 'drops': did you mean drop?", "outlier"]),
        ({}, (*V, "--drop", ","), ["--drop is empty"]),
        ({}, (*V, "--drop", "inspect", "--label", "z"), ["no column 'z' (--label)"]),
        ({}, (*V, "--drop", "relabel", "--relabel", "relabel"), ["row 2 cannot be dropped and"]),
        ({}, (*V, "--drop", "drop", "--id", "y"), ["column 'y' has ids that are not distinct"]),
        ({}, ("--values", "w.parquet", "--drop", "drop"), ["there is no file w.parquet"]),
        (
            {},
            (*V, "--drop", "drop", "--log", "b.csv"),
            ["cannot write b.csv: this run already uses that file"],
        ),
        (
            {},
            (*V, "--drop", "drop", "--log", "a.csv", "--force"),
            ["this run already uses that file"],
        ),
        ({}, (*V, "--drop", "drop", "--log", "b.txt"), ["must be a .csv or .json file, got b.txt"]),
        ({}, (*V, "--drop", "drop", "--delimiter", ";;"), ["--delimiter must be one character"]),
        ({"suggestion": None}, (*V, "--drop", "drop"), ["v.parquet has no column 'suggestion'"]),
        ({"suggestion": ["burn"] * 5}, (*V, "--drop", "drop"), ["a suggestion 'burn'"]),
        ({"row": [0, 1, 2, 3, 3]}, (*V, "--drop", "drop"), ["row 3 more than once"]),
        ({"row": [0, 1, 2, 3, 5]}, (*V, "--drop", "drop"), ["a row 5: a.csv has rows 0 to 4"]),
        ({"row": [0, 1, 2, 3, -4]}, (*V, "--drop", "drop"), ["a row -4"]),
        ({"id": list("abcde")}, (*V, "--drop", "drop", "--id", "id"), ["ids", "such as 'a'"]),
        ({"label": ["cat"] * 5}, (*V, "--drop", "drop"), ["other labels than a.csv in rows 1, 3"]),
        ({"best_label": [None] * 5}, (*V, "--relabel", "relabel"), ["no best_label for row 2"]),
    ],
)
def test_what_the_command_cannot_do_is_refused(points, change, arguments, words):
    table = findings()
    for name, entries in change.items():
        table = table.drop_columns(name)
        table = table if entries is None else table.append_column(name, pa.array(entries))
    pq.write_table(table, "v.parquet")
    done = run("a.csv", "--out", "b.csv", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    for word in words:
        assert word in done.stderr
    assert "thresher: " in done.stderr
    assert not Path("b.csv").exists()


def test_the_column_of_labels_is_asked_for_by_the_names_that_there_are(points):
    put("a.csv", Path("a.csv").read_bytes().replace(b"id,x,y", b"id,x,kind"))
    done = run("a.csv", *V, "--drop", "drop", "--out", "b.csv")
    assert done.returncode == 1
    said = "which column of a.csv holds the labels? Name it with --label; it has 'id', 'x', 'kind'"
    assert said in done.stderr
    assert run("a.csv", "--drop", "rows:0", "--out", "b.csv").returncode == 0  # needs no labels


def test_findings_of_other_data_are_refused(points):
    put("a.csv", Path("a.csv").read_bytes().replace(b"0.10", b"0.11"))
    drop = ("--drop", "drop", "--out", "b.csv")
    done = run("a.csv", *V, *drop)
    assert (
        "v.parquet was not made from the current a.csv: run thresher value on a.csv, and use its "
        "values\n" in done.stderr
    )
    pq.write_table(findings().slice(0, 4), "v.parquet")
    done = run("a.csv", *V, *drop)
    assert "v.parquet has 4 rows but a.csv has 5: match them with --id" in done.stderr
    pq.write_table(findings().replace_schema_metadata({b"thresher": b"{"}), "v.parquet")
    assert "record is not JSON" in run("a.csv", *V, *drop).stderr
    assert not Path("b.csv").exists()


def test_files_that_are_there_need_force(points):
    put("b.csv", "mine")
    drop = ("--drop", "rows:0", "--out", "b.csv")
    done = run("a.csv", *drop)
    assert "b.csv already exists: name another file, or replace it with --force" in done.stderr
    assert Path("b.csv").read_text() == "mine"
    assert run("a.csv", *drop, "--force").returncode == 0
    done = run("a.csv", "--values", "v.parquet", "--drop", "drop", "--out", "v.parquet", "--force")
    assert "v.parquet must be a file of the kind of a.csv" in done.stderr
    done = run("a.csv", "--drop", "rows:0", "--out", "a.csv", "--force")
    assert done.returncode == 0
    assert Path("a.csv").read_text().splitlines() == [LINES[0], *LINES[2:]]


def test_an_array_needs_its_labels(folder):
    np.save("X.npy", np.eye(3))
    done = run("X.npy", "--drop", "rows:0", "--out", "b.npy")
    assert "name the file that has them with --label" in done.stderr
    put("y.txt", "a\nb\na\n")
    done = run("X.npy", "--label", "y.txt", "--drop", "rows:0", "--relabel", "rows:2=b",
               "--out", "b.npy")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert Path("b-labels.txt").read_text() == "b\nb\n"


def test_help_has_examples():
    assert "Example: thresher clean" in run("--help").stdout
