"""The command as a user runs it: exit codes, streams, files."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import thresher as th
from thresher.tables import read_labeled


def thresher(*arguments, cwd):
    command = [sys.executable, "-m", "thresher", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)  # noqa: S603


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
    assert verified.returncode == 0
    assert json.loads(verified.stdout)["entries"] == 3
    shown = json.loads(thresher("ledger", "show", "l.db", cwd=folder).stdout)
    assert [entry["kind"] for entry in shown["entries"]] == ["cap", "charge", "release"]


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
    missing = thresher(
        "release", "owned.csv", *RELEASE, "--epsilon", 0.5, "--out-prices", "no/p.json", cwd=folder
    )
    assert missing.returncode == 1
    assert "nothing was charged" in missing.stderr


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


def test_help_has_examples(folder):
    for command in (("release",), ("ledger", "create"), ("ledger", "verify")):
        assert "Example: thresher" in thresher(*command, "--help", cwd=folder).stdout
