"""decisions.csv: what a person decided in the report, applied to its table and no other."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from tabular import put, thresher

from thresher.runs.next_step import next_steps, owner_lines
from thresher.runs.settings import Settings

LINES = ["id,x,y", "a1, 0.10,cat", "a2,0.2,dog", '"a3",3e-1,=cat', "a4,0.4,dog", "a5,0.5,cat"]
COLUMNS = ["row", "id", "label", "decision", "new_label", "input_digest"]
DECIDED = [
    (0, "a1", "cat", "keep", ""),
    (1, "a2", "dog", "drop", ""),
    (2, "a3", "'=cat", "relabel", "dog"),
    (4, "a5", "cat", "skip", ""),
]


def digest(path="a.csv"):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def save(*decided, of="a.csv", columns=COLUMNS, name="decisions.csv"):
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows([columns, *((*line, digest(of)) for line in decided)])


@pytest.fixture
def points(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put("a.csv", "\r\n".join(LINES) + "\r\n")
    save(*DECIDED)


def clean(*arguments):
    return thresher("clean", "a.csv", "--decisions", "decisions.csv", "--out", "b.csv", *arguments)


def test_decisions_are_applied_and_nothing_else_changes(points):
    done = clean("--log", "c.json", "--id", "id")
    assert done.returncode == 0, done.stderr
    assert "decisions: 1 relabel, 1 drop, 1 keep, 1 skip" in done.stderr
    assert "dropped 1 row, relabeled 1 of 5" in done.stderr
    kept = [LINES[0], LINES[1], '"a3",3e-1,dog', *LINES[4:]]
    assert Path("b.csv").read_bytes() == ("\r\n".join(kept) + "\r\n").encode()
    log = json.loads(Path("c.json").read_text())
    assert log["about"]["decisions"] == "decisions.csv"
    assert [change["row"] for change in log["changes"]] == [1, 2]


def test_decisions_about_rows_with_other_ids_are_refused(points):
    save((0, "a1", "cat", "keep", ""), (1, "a4", "dog", "drop", ""), (2, "", "'=cat", "drop", ""))
    done = clean("--id", "id")
    assert done.returncode == 1
    assert "decisions.csv has other ids than a.csv in row 1: name the column" in done.stderr
    assert not Path("b.csv").exists()
    assert clean().returncode == 0


def test_the_file_works_wherever_the_same_table_lies(points):
    Path("elsewhere").mkdir()
    Path("a.csv").rename("elsewhere/moved.csv")
    done = thresher(
        "clean", "elsewhere/moved.csv", "--decisions", "decisions.csv", "--out", "b.csv"
    )
    assert done.returncode == 0, done.stderr


def test_decisions_only_to_keep_or_skip_change_nothing(points):
    save(DECIDED[0], DECIDED[3])
    assert clean().returncode == 0
    assert Path("b.csv").read_bytes() == Path("a.csv").read_bytes()


def test_decisions_about_another_table_are_refused(points):
    put("a.csv", "\r\n".join([*LINES, "a6,0.6,dog"]) + "\r\n")
    done = clean()
    assert done.returncode == 1
    assert "decisions.csv is about another table, or a.csv has changed since" in done.stderr
    assert not Path("b.csv").exists()


REFUSED = {
    "word": (
        [(0, "a1", "cat", "maybe", "")],
        "has a decision 'maybe': there are relabel, correct, drop",
    ),
    "label": ([(0, "a1", "dog", "drop", "")], "has other labels than a.csv in row 0"),
    "new label": ([(0, "a1", "cat", "relabel", "")], "relabels row 0 but has no new_label"),
    "row": ([(9, "a9", "cat", "drop", "")], "has a row '9': a.csv has rows 0 to 4"),
    "twice": ([DECIDED[0], DECIDED[0]], "has row 0 more than once"),
}


@pytest.mark.parametrize(("decided", "message"), REFUSED.values(), ids=REFUSED)
def test_decisions_that_cannot_be_are_refused(points, decided, message):
    save(*decided)
    done = clean()
    assert done.returncode == 1
    assert message in done.stderr


def test_a_file_that_does_not_say_which_table_it_is_about_is_refused(points):
    put("decisions.csv", "row,label,decision,new_label,input_digest\n0,cat,drop,,\n")
    assert "does not say which table it is about" in clean().stderr
    put("decisions.csv", "row,label,decision\n0,cat,drop\n")
    assert "has no column 'new_label': decisions are saved by the report" in clean().stderr


@pytest.mark.parametrize("option", ["--drop", "--relabel", "--values"])
def test_decisions_stand_alone(points, option):
    done = clean(option, "rows:3=cat")
    assert done.returncode == 1
    assert "--decisions says what to do about each row" in done.stderr


def test_without_a_decision_nothing_is_done(points):
    done = thresher("clean", "a.csv", "--out", "b.csv")
    assert (
        "nothing to do: say which rows with --decisions, --drop, --relabel or --correct"
        in done.stderr
    )
    assert not Path("b.csv").exists()


def test_new_labels_take_the_type_of_their_column(points):
    np.savez("a.npz", X=np.eye(3), y=np.array([0, 1, 0]))
    save((1, "", "1", "relabel", "0"), of="a.npz")
    done = thresher("clean", "a.npz", "--decisions", "decisions.csv", "--out", "b.npz")
    assert done.returncode == 0, done.stderr
    assert np.load("b.npz")["y"].tolist() == [0, 0, 0]


# What the command says next


def steps(out="v.csv", report="r.html", **counts):
    settings = Settings("a.csv", label="kind")
    record = settings.record() | {"points": {"files": ["a.csv"]}}
    suggestions = dict.fromkeys(("keep", "relabel", "inspect", "drop", "outlier"), 0) | counts
    paths = (None if path is None else Path(path) for path in (out, report))
    return next_steps(suggestions, settings, record, *paths)


def test_the_next_step_is_told_whatever_was_found():
    decide, act = steps(relabel=3)
    assert decide == (
        "to decide row by row: open r.html, save decisions.csv, then: thresher clean a.csv "
        "--decisions decisions.csv --label kind --out clean.csv"
    )
    start = "to act on it: thresher clean a.csv --values v.csv --label kind"
    assert act == f"{start} --relabel relabel --out clean.csv"
    assert steps(relabel=3, drop=1)[1] == f"{start} --drop drop --relabel relabel --out clean.csv"
    look, decide = steps(inspect=2)
    assert look == "no label is clearly wrong, but 2 rows are worth a look in r.html"
    assert decide.startswith("to decide row by row")
    assert steps(report=None, inspect=1) == [
        "no label is clearly wrong, but 1 row is worth a look in v.csv"
    ]
    assert steps(None, None, relabel=3) == [
        "to keep this and review the rows: thresher value a.csv --label kind --out values.parquet "
        "--report report.html"
    ]
    assert steps(keep=5) == ["no label stands out as wrong: nothing needs to be changed"]


def test_of_many_owners_both_ends_are_told():
    lines = owner_lines({f"o{i}": float(i) for i in range(30)})
    assert lines[0] == "o29: 29"
    assert lines[5] == "... 20 more ..."
    assert lines[-1] == "o0: 0"
    assert owner_lines(None) == []
