"""The command as a user runs it: exit codes, streams, files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import waits
from tabular import thresher, with_last
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.privacy.accountants import Cost
from thresher.tables.labeled import read_labeled


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    rows = np.column_stack([X, X[:, 0] > 0])
    for name, part in (("val", rows[:60]), ("points", rows[60:])):
        np.savetxt(tmp_path / f"{name}.csv", part, delimiter=",", header="a,b,c,y", comments="")
    np.savez(tmp_path / "points.npz", X=X[60:], y=(X[60:, 0] > 0).astype(float))
    return tmp_path


RELEASE = ("--validation", "val.csv", "--delta", "1e-6", "--ledger", "l.db")


def test_labels_of_arrays_and_columns_to_ignore_are_those_that_were_named(folder, monkeypatch):
    """A release of other labels, or of a column that was to be left out, costs budget for good."""
    pytest.importorskip("opendp")
    monkeypatch.chdir(folder)
    th.Ledger.create("l.db", epsilon=3, delta=1e-6).close()
    X, signs = np.load("points.npz")["X"], np.load("points.npz")["y"]
    for name, rows in (("v", slice(0, 60)), ("p", slice(60, 240))):
        np.savez(f"{name}.npz", X=X[rows], y=signs[rows], other=np.where(signs[rows] > 0, "a", "b"))

    def release(points, validation, *more):
        command = [
            "release", points, "--validation", validation, "--delta", "1e-6", "--ledger", "l.db",
            "--epsilon", "0.2", "--out-prices", "p.json", "--force",
        ]  # fmt: skip
        done = CliRunner().invoke(app, [*command, *more])
        return done if done.exit_code == 0 else str(done.exception)

    assert "p.npz has no array 'nosuch' (label)" in release("p.npz", "v.npz", "--label", "nosuch")
    release("p.npz", "v.npz", "--label", "other")
    assert th.PriceList.load("p.json").classes == ["a", "b"]
    release("points.csv", "val.csv", "--ignore", "b*,y")
    assert json.loads(Path("p.json").read_text())["columns"] == ["a", "c"]
    assert "no column 'd'" in release("points.csv", "val.csv", "--ignore", "d")
    assert "no column 'd'" in release(
        "points.csv", "val.csv", "--ignore", "d", "--standardize", "validation"
    )
    assert "not arrays" in release("p.npz", "v.npz", "--ignore", "x0")
    planned = ["plan", "--validation", "v.npz", "--points", "500", "--label", "nosuch"]
    assert "no array 'nosuch'" in str(CliRunner().invoke(app, planned).exception)
    with th.Ledger.open("l.db") as ledger:
        assert len(ledger) == 2


def test_a_budget_is_created_spent_refused_and_verified(folder):
    pytest.importorskip("opendp")
    made = thresher("ledger", "create", "l.db", "--epsilon", 1, "--delta", 1e-6, cwd=folder)
    assert (made.returncode, made.stdout) == (0, "")
    assert "created Ledger(l.db" in made.stderr
    done = thresher(
        "release", "points.csv", *RELEASE, "--epsilon", 0.8, "--out-prices", "p.json", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["ledger"]["entry"] == 1
    prices = th.PriceList.load(folder / "p.json")
    assert len(prices.values(np.ones((1, 3)), [prices.classes[0]])) == 1
    again = thresher(
        "release", "points.csv", *RELEASE, "--epsilon", 0.9, "--out-prices", "q.json", cwd=folder
    )
    assert again.returncode == 3
    assert "epsilon=0.9 does not fit" in again.stderr
    assert "left" in again.stderr
    assert not (folder / "q.json").exists()
    head = record["ledger"]["head"]
    repeated = thresher(
        "release", "points.csv", *RELEASE, "--epsilon", 0.8, "--out-prices", "r.json", cwd=folder
    )
    assert "nothing was charged" in repeated.stderr
    assert (folder / "r.json").read_bytes() == (folder / "p.json").read_bytes()
    verified = thresher("ledger", "verify", "l.db", "--head", head, cwd=folder)
    assert (verified.returncode, verified.stdout) == (0, "")
    assert "3 entries in order" in verified.stderr
    verified = thresher("ledger", "verify", "l.db", "--head", head, "--json", cwd=folder)
    assert json.loads(verified.stdout)["entries"] == 3
    wrong = thresher("ledger", "verify", "l.db", "--head", "0" * 64, cwd=folder)
    assert (wrong.returncode, wrong.stdout) == (4, "")  # as an audit that fails, not as a budget
    assert "does not hold the entry" in wrong.stderr
    shown = json.loads(thresher("ledger", "show", "l.db", "--json", cwd=folder).stdout)
    assert [entry["kind"] for entry in shown["entries"]] == ["cap", "charge", "release"]
    assert shown["witnessed"] is True


def test_a_ledger_without_its_witness_is_charged_only_after_an_adoption(folder):
    pytest.importorskip("opendp")
    ledger = th.Ledger.create(folder / "l.db", epsilon=1, delta=1e-6)
    early = ledger.charge("early", Cost(mu_squared=1e-4), {}).head
    (folder / "old.db").write_bytes((folder / "l.db").read_bytes())
    late = ledger.charge("late", Cost(mu_squared=1e-4), {}).head
    (folder / "l.db.witness").unlink()
    asked = ("release", "points.csv", *RELEASE, "--epsilon", 0.2, "--out-prices", "p.json")
    refused = thresher(*asked, cwd=folder)
    assert refused.returncode == 1
    assert "l.db has no witness l.db.witness, so it may be an older copy" in refused.stderr
    assert "thresher ledger verify --adopt" in refused.stderr
    assert not (folder / "p.json").exists()
    shown = thresher("ledger", "show", "l.db", cwd=folder)
    assert "witness    missing: nothing can be charged until you put it back" in shown.stdout
    verified = thresher("ledger", "verify", "l.db", cwd=folder)
    assert (verified.returncode, len(ledger)) == (0, 2)
    assert "its witness file is missing, so it may be an older copy" in verified.stderr
    older = thresher("ledger", "verify", "old.db", "--adopt", "--head", late, cwd=folder)
    assert older.returncode != 0
    assert not (folder / "old.db.witness").exists()
    adopted = thresher("ledger", "verify", "l.db", "--adopt", "--head", early, "--json", cwd=folder)
    assert adopted.returncode == 0
    assert "its witness file was missing and it was adopted 1 time: it may be" in adopted.stderr
    found = json.loads(adopted.stdout)
    assert (found["entries"], found["witnessed"], found["adopted"]) == (4, False, 1)
    again = thresher("ledger", "verify", "l.db", "--adopt", cwd=folder)
    assert again.returncode == 1
    assert "there is nothing to adopt" in again.stderr
    assert thresher(*asked, cwd=folder).returncode == 0
    assert "adoption" in thresher("ledger", "show", "l.db", cwd=folder).stdout


def test_one_odd_row_changes_no_other(folder):
    """A label that is no class, a feature that is no number: labels and features are read alone."""
    whole = read_labeled(folder / "points.csv", "y")
    text = (folder / "points.csv").read_text()
    (folder / "odd.csv").write_text(text + "1,2,3,unknown\n1,oops,3,0\n")
    odd = read_labeled(folder / "odd.csv", "y")
    assert odd[1][:-2] == whole[1]
    assert odd[0].slice(0, len(whole[1])).equals(whole[0])
    assert odd[0].column("b").to_pylist()[-1] is None


def test_owners_come_from_a_column(folder):
    pytest.importorskip("opendp")
    header, *rows = (folder / "points.csv").read_text().splitlines()
    owned = [f"{row},o{i // 3}" for i, row in enumerate(rows)]
    (folder / "owned.csv").write_text("\n".join([header + ",who", *owned]) + "\n")
    thresher(
        "ledger", "create", "l.db", "--epsilon", 1, "--delta", 1e-6, "--unit", "owner", cwd=folder
    )
    done = thresher(
        "release", "owned.csv", *RELEASE, "--epsilon", 0.5, "--out-prices", "p.json",
        "--owner", "who", "--points-per-owner", 3, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["unit"] == "owner"
    nameless = thresher(
        "release", "owned.csv", *RELEASE, "--epsilon", 0.2, "--out-prices", "q.json",
        "--owner", "who", cwd=folder,
    )  # fmt: skip
    assert (nameless.returncode, nameless.stdout) == (2, "")
    assert "--points-per-owner" in nameless.stderr
    assert not (folder / "q.json").exists()
    assert len(th.Ledger.open(folder / "l.db")) == 1  # nothing was charged
    missing = thresher(
        "release", "owned.csv", *RELEASE, "--epsilon", 0.5, "--out-prices", "no/p.json", cwd=folder
    )
    assert missing.returncode == 1
    assert "nothing was charged" in missing.stderr


def test_a_ledger_is_shown_to_people_in_lines_and_to_programs_as_json(folder):
    ledger = th.Ledger.create(folder / "l.db", epsilon=1, delta=0, data_set="clinic\x1b[31m")
    ledger.release("r" * 64, th.privacy.accountants.Cost(epsilon=0.25), {}, lambda _: {"n": 1})
    shown = thresher("ledger", "show", "l.db", cwd=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert shown.stdout.isascii()
    assert "\x1b" not in shown.stdout
    assert lines[0] == ["data", "set", "clinic?[31m"]
    assert lines[1][:3] == ["cap", "epsilon=1,", "delta=0"]
    assert lines[2] == ["spent", "epsilon=0.25,", "delta=0"]
    assert lines[3][:2] == ["remaining", "epsilon=0.75"]
    assert lines[4] == ["entries", "3"]
    entries = ledger.entries()
    assert [(line[0], line[1], line[2]) for line in lines[-3:]] == [
        (str(entry["seq"]), entry["kind"], entry["time"]) for entry in entries
    ]
    assert lines[-2][3:] == ["rrrrrrrrrrrrr...", "epsilon=0.25,", "delta=0"]
    document = json.loads(thresher("ledger", "show", "l.db", "--json", cwd=folder).stdout)
    assert document["remaining"] == 0.75
    assert document["entries"] == [
        entry | {"cost": entry["cost"] and vars(entry["cost"])} for entry in entries
    ]


def test_the_command_refuses_what_points_foretell_to_be_noise(folder):
    pytest.importorskip("opendp")
    ledger = th.Ledger.create(folder / "l.db", epsilon=1, delta=1e-6)
    noise = ("release", "points.csv", *RELEASE, "--epsilon", 0.01, "--out-prices", "p.json")
    refused = thresher(*noise, "--points", 3, cwd=folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "would be noise: 3 points" in refused.stderr
    assert "--anyway" in refused.stderr
    assert len(ledger) == 0
    assert not (folder / "p.json").exists()
    assert thresher(*noise, "--points", 3, "--anyway", cwd=folder).returncode == 0
    assert len(ledger) == 1


def test_a_ledger_that_was_tampered_with_is_refused(folder):
    import sqlite3

    th.Ledger.create(folder / "l.db", epsilon=1, delta=0).charge(
        "a", th.privacy.accountants.Cost(epsilon=0.5), {}
    )
    with sqlite3.connect(folder / "l.db") as base:
        for (name,) in base.execute(
            "SELECT name FROM sqlite_master WHERE type='trigger'"
        ).fetchall():
            base.execute(f"DROP TRIGGER {name}")
        base.execute("UPDATE entry SET body = replace(body, '5', '1') WHERE kind = 'charge'")
    base.close()
    found = thresher("ledger", "verify", "l.db", cwd=folder)
    assert found.returncode == 1
    assert "entry 1" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("ledger", "verify", "none.db"), 1, "there is no ledger"),
        (("ledger", "create", "l.db", "--epsilon", "-1", "--delta", "0"), 1, "epsilon must be"),
        (("ledger", "create", "l.db", "--epsilon", "much", "--delta", "0"), 2, "Usage"),
        (("release", "points.csv", *RELEASE, "--epsilon", "1", "--out-prices", "p", "--label", "z"),
         1, "no column 'z'"),
        (("release", "points.txt", *RELEASE, "--epsilon", "1", "--out-prices", "p"), 1, "points.txt"),
        (("nothing",), 2, "Usage"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_has_its_exit_code(folder, arguments, code, words):
    found = thresher(*arguments, cwd=folder)
    assert found.returncode == code
    assert words in found.stderr
    assert found.stdout == ""


COMMANDS = {
    "release": ("release", "points.csv", *RELEASE, "--epsilon", 1, "--out-prices", "p.json"),
    "plan": ("plan", "--validation", "val.csv", "--points", 200),
    "task": ("federate", "task", "--validation", "val.csv", "--silo", "north=1f", "--epsilon", 1,
             "--delta", 1e-6, "--out", "task.json"),
}  # fmt: skip
KERNEL = "needs a --kernel other than box; without that, leave --rings out"


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        *(
            (command, *case)
            for command in COMMANDS
            for case in [
                ("--leaves 16", "--leaves 16 needs --trees; without that, leave --leaves out"),
                ("--rings 4", f"--rings 4 {KERNEL}"),
                ("--trees 2 --rings 16", f"--rings 16 {KERNEL}"),
            ]
        ),
        ("plan", "--mechanisms paper,cells --counted", "--counted needs --mechanisms table"),
        ("plan", "--trees 2 --mechanisms cells --counted", "--counted needs --mechanisms table"),
    ],
)
def test_options_that_nothing_would_use_are_refused(folder, command, options, words):
    found = thresher(*COMMANDS[command], *options.split(), cwd=folder)
    assert found.returncode == 1, found.stderr
    assert words in found.stderr
    assert found.stdout == ""


def test_the_command_speaks_of_options_not_of_arguments(folder):
    for name, terms in (("l.db", ()), ("o.db", ("--unit", "owner"))):
        made = ("ledger", "create", name, "--epsilon", "1", "--delta", "1e-6", *terms)
        assert thresher(*made, cwd=folder).returncode == 0
    points = (folder / "points.csv").read_text().splitlines()
    clinic = [points[0] + ",clinic", *(f"{line},1" for line in points[1:])]
    (folder / "clinics.csv").write_text("\n".join(clinic) + "\n")
    start = ("points.csv", *RELEASE, "--epsilon", "1", "--out-prices", "p.json")
    owned = ("clinics.csv", *start[1:], "--owner", "clinic")
    cases = [
        ((*start, "--ledger", "none.db"), 1, "thresher ledger create makes a new one"),
        ((*start, "--ledger", "o.db"), 1, "the ledger protects owners: pass --owner"),
        ((*start, "--points-per-owner", "4"), 1, "--points-per-owner needs --owner"),
        ((*start, "--anyway"), 1, "--anyway needs --points: "),
        ((*start, "--points", "2"), 1, "or release it anyway (--anyway)"),
        ((*start, "--delta", "0"), 1, "got 0: use --mechanism cells"),
        (("clinics.csv", *start[1:]), 1,
         "only the points have the column 'clinic': leave it out with --ignore clinic"),
        (owned, 2, "Missing --points-per-owner: with --owner, say roughly how many"),
        ((*start[:-1], "-"), 1, "--out-prices must be a file, got -; nothing was charged"),
        ((*start, "--report", "-"), 1, "--report must be a file, got -"),
        ((*start, "--unusable", "-"), 1, "--unusable must be a file, got -"),
        ((*start, "--mechanism", "cells"), 3, "a release of epsilon=1 does not fit: a release "
         "without delta, of --mechanism cells, counts as more in a ledger with --filter gaussian: "
         "use one with --filter basic; so it counts as epsilon=6.2073, and the ledger of l.db has "
         "epsilon=1.0 of 1.0 left at delta=1e-06; ask for a smaller epsilon, or protect new data"),
        ((*owned, "--points-per-owner", "4"), 3, "; so it counts as epsilon=1.4547, and the ledger "
         "of l.db has"),
        ((*owned, "--points-per-owner", "4"), 3, "(T9 of docs/privacy-proofs.md): use one with --un"),
    ]  # fmt: skip
    for arguments, code, words in cases:
        found = thresher("release", *with_last(*arguments), cwd=folder)
        assert words in found.stderr, found.stderr
        assert (found.returncode, found.stdout) == (code, "")
    assert th.Ledger.open(folder / "l.db").remaining() == 1  # nothing was charged
    assert not {"-", "p.json"} & {path.name for path in folder.iterdir()}
    again = thresher("ledger", "create", "l.db", "--epsilon", "1", "--delta", "0", cwd=folder)
    assert "can never change: use it with --ledger, or another path for other data" in again.stderr


def test_the_command_says_what_was_charged_where_more_was(folder):
    pytest.importorskip("opendp")
    th.Ledger.create(folder / "l.db", epsilon=9, delta=1e-6).close()
    start = ("release", "points.csv", *RELEASE, "--epsilon", "1", "--out-prices")
    cells = thresher(*start, "p.json", "--mechanism", "cells", cwd=folder)
    assert "charged epsilon=6.2073, delta=1e-06: epsilon=1 was asked for; " in cells.stderr
    unused = "the release has delta 0: --mechanism cells makes no use of --delta 1e-06\n"
    assert unused in cells.stderr
    again = (*start, "r.json", "--mechanism", "cells", "--delta")
    said = thresher(*with_last(*again, 0.1), cwd=folder).stderr
    assert unused.replace("1e-06", "0.1") in said
    said = thresher(*with_last(*again, 0), "--force", cwd=folder).stderr
    assert "the release has delta" not in said
    usual = thresher(*start, "q.json", cwd=folder)
    assert (usual.returncode, "charged" in usual.stderr) == (0, False)


FULL = """
import thresher.price_list
from thresher.errors import InputError
def save(self, path):
    raise InputError(f"cannot write {path}: No space left on device")
thresher.price_list.PriceList.save = save
from thresher.cli import main
main()
"""


def test_a_disk_that_fills_up_after_the_charge_loses_no_budget(folder):
    pytest.importorskip("opendp")
    th.Ledger.create(folder / "l.db", epsilon=1, delta=1e-6).close()
    words = ["release", "points.csv", *RELEASE, "--epsilon", "1", "--out-prices", "p.json"]
    command = [sys.executable, "-c", FULL, *words]
    full = waits.run(command, cwd=folder)
    assert (full.returncode, full.stdout, full.stderr.count("\n")) == (1, "", 1)
    assert "No space left on device; the ledger keeps the answer: to write it" in full.stderr
    again = thresher(*words, cwd=folder)
    assert (again.returncode, (folder / "p.json").exists()) == (0, True)
    assert "nothing was charged" in again.stderr


def test_help_has_examples(folder):
    for command in (("release",), ("ledger", "create"), ("ledger", "verify")):
        assert "Example: thresher" in thresher(*command, "--help", cwd=folder).stdout
