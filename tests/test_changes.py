"""Which rows to drop or to relabel, as typed, and the log of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tabular import check_refused, put

from thresher.tables.changes import rows_to_drop, rows_to_relabel
from thresher.tables.clean_copy import write_change_log, write_cleaned
from thresher.tables.new_labels import written_label
from thresher.tables.reader import read_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cleaned(name, out, **arguments):
    log = write_cleaned(read_table(name), out, **arguments)
    return Path(out).read_bytes(), log


def test_numbers_are_written_as_they_are():
    assert [written_label(x) for x in ("a", 3, np.int8(4), np.str_("b"))] == ["a", "3", "4", "b"]


# Which rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [("rows:3", [3]), ("rows: 7, 3,3-5", [3, 4, 5, 7]), ("@rows.txt", [1, 2, 8])],
)
def test_rows_are_named_by_number(text, rows):
    put("rows.txt", "\ufeff8\r\n\r\n1-2\r\n")
    assert rows_to_drop(text, 10) == rows


def test_rows_are_named_by_id():
    ids = ["a7", "b,9", 12]
    assert rows_to_drop("ids:12,a7", 3, ids) == [0, 2]
    put("ids.txt", "b,9\n")
    assert rows_to_drop("@ids.txt", 3, ids) == [1]
    assert rows_to_relabel("ids:12=cat,a7=dog=cat", 3, ids) == {2: "cat", 0: "dog=cat"}
    put("new.txt", "b,9=a, b\n")
    assert rows_to_relabel("@new.txt", 3, ids) == {1: "a, b"}
    assert rows_to_relabel("rows:0-1=cat", 3, ids) == {0: "cat", 1: "cat"}


@pytest.mark.parametrize(
    ("text", "ids", "words"),
    [
        ("rows:x", None, ["--drop must name rows as in rows:3,17,20-29, got 'x'"]),
        ("rows:-1", None, ["got '-1'"]),
        ("rows:7-5", None, ["--drop names rows 7-5, but 7-5 runs backwards"]),
        ("rows:10", None, ["--drop names rows 10, but there are rows 0 to 9"]),
        ("rows:5-3", None, ["names rows 5-3"]),
        ("rows:8-12", None, ["names rows 8-12"]),
        ("rows:", None, ["names no rows"]),
        ("ids:a", None, ["--id"]),
        ("ids:a78", ["a77", "b"], ["id 'a78', which no row has: did you mean 'a77'?"]),
        ("ids:zzz", ["a7", "b"], ["id 'zzz', which no row has"]),
        ("@none.txt", None, ["there is no file none.txt"]),
        ("drop", None, ["--drop drop uses the suggestions of thresher value", "--values"]),
    ],
)
def test_rows_that_are_not_there_are_refused(text, ids, words):
    check_refused(lambda: rows_to_drop(text, 10, ids), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rows:3", ["needs a new label after '3', such as 3=cat"]),
        ("rows:3=", ["needs a new label"]),
        ("rows:3=cat,2-4=dog", ["two labels for row 3: cat, dog"]),
        ("rows:11=cat", ["--relabel names rows 11"]),
        ("relabel", ["--relabel relabel uses the suggestions"]),
    ],
)
def test_new_labels_that_cannot_be_are_refused(text, words):
    check_refused(lambda: rows_to_relabel(text, 10), *words)


# The log


def test_the_log_is_csv_or_json():
    log = [
        {"row": 1, "id": "a,7", "action": "drop", "old_label": "x", "new_label": None},
        {"row": 2, "id": "b", "action": "relabel", "old_label": 'a "b"', "new_label": "é"},
    ]
    write_change_log("c.csv", log, {"drop": "rows:1"})
    with Path("c.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [
            {"row": "1", "id": "a,7", "action": "drop", "old_label": "x", "new_label": ""},
            {"row": "2", "id": "b", "action": "relabel", "old_label": 'a "b"', "new_label": "é"},
        ]
    write_change_log("c.json", log, {"drop": "rows:1"})
    assert json.loads(Path("c.json").read_text()) == {"about": {"drop": "rows:1"}, "changes": log}
    write_change_log("d.csv", [], {})
    assert Path("d.csv").read_text() == "row,action,old_label,new_label\n"
    check_refused(lambda: write_change_log("c.csv", log, {}), "c.csv already exists", "--force")
    write_change_log("c.csv", log[:1], {}, force=True)
    assert len(Path("c.csv").read_text().splitlines()) == 2
    check_refused(
        lambda: write_change_log("c.txt", log, {}), "must be a .csv or .json file, got c.txt"
    )


@given(rows=st.lists(st.integers(0, 99), min_size=1))
@example(rows=[0, 0, 1])
def test_rows_come_sorted_and_once(rows):
    assert rows_to_drop("rows:" + ",".join(map(str, rows)), 100) == sorted(set(rows))


def test_the_only_row_of_a_table_stays():
    put("a.csv", "x,y\n1,a\n")
    table = read_table("a.csv")
    check_refused(
        lambda: write_cleaned(table, Path("b.csv"), drop=[0], label="y"),
        "dropping the only row of a.csv would leave nothing",
    )
