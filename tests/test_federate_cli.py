"""`thresher federate` on the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import waits
from typer.testing import CliRunner

import thresher as th
from thresher.cli import app
from thresher.errors import in_options

pytest.importorskip("cryptography")
pytestmark = pytest.mark.filterwarnings("ignore:no ledger was given")

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(360, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")


def write(path, rows):
    lines = [f"{a},{b},{label}" for (a, b), label in zip(X[rows], Y[rows])]
    path.write_text("\n".join(["a,b,y", *lines]) + "\n")


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Keys, a task for three silos, and their points."""
    place = tmp_path_factory.mktemp("federate")
    public = {}
    for name in ("coordinator", "north", "south", "west"):
        made = invoke("federate", "key", place / f"{name}.key")
        public[name] = re.search(r"^[0-9a-f]{64}$", made.stdout, re.MULTILINE)[0]
    write(place / "val.csv", slice(0, 60))
    for i, name in enumerate(("north", "south", "west")):
        write(place / f"{name}.csv", slice(60 + 100 * i, 160 + 100 * i))
    roster = [("--silo", f"{name}={public[name]}") for name in ("north", "south", "west")]
    made = invoke(
        "federate", "task", "--validation", place / "val.csv", *sum(roster, ()), "--key",
        place / "coordinator.key", "--epsilon", 2, "--delta", 1e-6, "--points", 300,
        "--out", place / "task.json",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    digest = re.search(r"^[0-9a-f]{64}$", made.stdout, re.MULTILINE)[0]
    assert digest == th.federate.Task.load(place / "task.json").digest
    assert "expected relative error" in made.output
    return place, digest


def joining(place, name, url, *more):
    command = ["federate", "join", url, "--points", place / f"{name}.csv", "--key"]
    return invoke(*command, place / f"{name}.key", *more)


@pytest.fixture
def coordinator(folder):
    command = [sys.executable, "-m", "thresher", "federate", "coordinate", "--task", "task.json"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with waits.started(command, cwd=folder[0], **streams) as process:
        yield process


def test_a_round_from_keys_to_values(folder, coordinator):
    place, digest = folder
    ledger = th.Ledger.create(place / "north.db", epsilon=3, delta=1e-6)
    url = listening(coordinator)
    shown = joining(place, "north", url)
    assert shown.exit_code == 2
    assert digest in shown.output
    assert "nothing was sent" in shown.output
    assert len(ledger) == 0
    wrong = joining(place, "north", url, "--digest", "00" * 32, "--no-ledger")
    assert "this silo approved 0000" in str(wrong.exception)
    silos = [
        th.federate.Silo(X[rows], Y[rows], key=th.federate.Key.load(place / f"{name}.key"), approve=digest, ledger=None)
        for name, rows in (("south", slice(160, 260)), ("west", slice(260, 360)))
    ]  # fmt: skip
    for silo in silos:  # the columns of files have names, those of arrays have none
        silo._points = (_frame(silo._points[0]), silo._points[1], None)
    threads = [threading.Thread(target=silo.join, args=[url], daemon=True) for silo in silos]
    for thread in threads:
        thread.start()
    for words in ([], ["--ledger", place / "north.db", "--no-ledger"]):
        refused = joining(place, "north", url, "--digest", digest, *words).exception
        assert "--no-ledger" in str(refused)
    files = ["--out", place / "values.csv", "--out-prices", place / "mine.json"]
    done = joining(place, "north", url, "--digest", digest, "--ledger", place / "north.db", *files)
    assert done.exit_code == 0, done.output
    waits.join(*threads)
    out, err = coordinator.communicate(timeout=60)
    assert coordinator.returncode == 0, err
    record = json.loads(out)
    assert record["survivors"] == ["north", "south", "west"]
    assert len(ledger) == 1
    values = np.loadtxt(place / "values.csv", delimiter=",", skiprows=1)[:, 1]
    prices = th.PriceList.load(place / "prices.json")
    want = prices.values(_frame(X[60:160]), Y[60:160])
    np.testing.assert_allclose(values, want, rtol=1e-12)
    assert (place / "values.csv").stat().st_mode & 0o777 == 0o600
    assert (place / "mine.json").read_bytes() == (place / "prices.json").read_bytes()


def _frame(rows):
    import pyarrow as pa

    return pa.table({"a": rows[:, 0], "b": rows[:, 1]})


def test_a_task_says_what_is_wrong_with_its_files(folder):
    place, _ = folder
    silos = [f"--silo={name}={th.federate.Key.create().public}" for name in ("north", "south")]
    command = ["federate", "task", *silos, "--epsilon", 1, "--delta", 1e-6, "--out", place / "t"]
    rows = [f"{i + 1},{'uv'[i % 2]},{i % 2}" for i in range(40)]
    (place / "text.csv").write_text("\n".join(["a,c,y", *rows]))
    named = [*command, "--key", place / "coordinator.key", "--validation"]
    refused = invoke(*named, place / "text.csv").exception
    assert "cells in column 'c' that are missing or not numbers" in str(refused)
    assert invoke(*named, place / "text.csv", "--ignore", "c").exit_code == 0
    lost = invoke(*command, "--validation", place / "val.csv", "--key", place / "no.key")
    assert f"{place / 't'} already exists" in str(lost.exception)
    (place / "t").unlink()
    lacking = invoke(*command, "--validation", place / "val.csv", "--key", place / "no.key")
    assert in_options(lacking.exception.args[0]) == (
        f"there is no file {place / 'no.key'}: thresher federate key {place / 'no.key'} makes it"
    )


def listening(process):
    """The address that a coordinator says."""
    return next(found[1] for line in process.stderr if (found := re.search(r"at (http\S+)", line)))


def test_a_round_without_noise_from_files(folder):
    """Of text, too: a silo's values are those of all points together."""
    place, _ = folder
    roster = [
        f"--silo={name}={th.federate.Key.load(place / f'{name}.key').public}"
        for name in ("north", "south", "west")
    ]
    command = [
        "federate", "task", "--validation", place / "val.csv", *roster, "--reveal-exact-counts",
        "--key", place / "coordinator.key", "--out", place / "plain.json",
    ]  # fmt: skip
    for more in (["--epsilon", 1], ["--delta", 0], ["--unit", "owner"], ["--points", 3]):
        refused = invoke(*command, *more).exception
        assert f"{more[0]} cannot be used with --reveal-exact-counts" in str(refused)
    digest = invoke(*command).stdout.strip()
    coordinate = ["federate", "coordinate", "--task", place / "plain.json", "--key"]
    shown = invoke(*coordinate, place / "coordinator.key", "--report", place / "page.html")
    assert "--report shows a private release, but this task has no noise" in str(shown.exception)
    started = [
        sys.executable,
        "-m",
        "thresher",
        *coordinate,
        "coordinator.key",
        "--out",
        "all.json",
    ]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with waits.started([str(word) for word in started], cwd=place, **streams) as process:
        url = listening(process)
        agreed = ["--digest", digest, "--reveal-exact-counts", "--out"]

        (place / "odd.csv").write_text("a,b,y\n1,?,yes\n")
        (place / "odd.key").write_bytes((place / "west.key").read_bytes())
        odd = joining(place, "odd", url, *agreed, place / "none.csv").exception
        assert "X has NaN or infinite values in row 0" in str(odd)  # before the round

        silos = [
            th.federate.Silo(_frame(X[rows]), Y[rows], approve=digest, reveal_exact_counts=True, ledger=None,
                             key=th.federate.Key.load(place / f"{name}.key"))
            for name, rows in (("north", slice(60, 160)), ("south", slice(160, 260)))
        ]  # fmt: skip
        threads = [threading.Thread(target=silo.join, args=[url], daemon=True) for silo in silos]
        for thread in threads:
            thread.start()
        done = joining(place, "west", url, *agreed, place / "west-values.csv")
        assert done.exit_code == 0, done.output
        waits.join(*threads)
    values = np.loadtxt(place / "west-values.csv", delimiter=",", skiprows=1)[:, 1]
    want = th.tknn_shapley(X[60:], Y[60:], X[:60], Y[:60]).values[200:]
    np.testing.assert_allclose(values, want, rtol=1e-12)


def test_columns_to_ignore_are_names_or_patterns_of_columns_that_are_there(folder):
    place, _ = folder
    silos = [f"--silo={name}={th.federate.Key.create().public}" for name in ("north", "south")]
    command = ["federate", "task", *silos, "--epsilon", 1, "--delta", 1e-6, "--out", place / "i"]
    command += ["--key", place / "coordinator.key", "--validation"]
    assert invoke(*command, place / "val.csv", "--ignore", "b*,y").exit_code == 0
    assert th.federate.Task.load(place / "i").columns == ["a"]
    refused = invoke(*command, place / "val.csv", "--ignore", "c", "--force").exception
    assert "has no column 'c'" in str(refused)
    np.savez(place / "val.npz", X=X[:60], y=Y[:60])
    refused = invoke(*command, place / "val.npz", "--ignore", "x0", "--force").exception
    assert "needs tables with named columns, not arrays" in str(refused)


def test_exact_counts_need_their_name(folder):
    place, _ = folder
    public = [th.federate.Key.load(place / f"{name}.key").public for name in ("north", "south")]
    roster = ["--silo", f"north={public[0]}", "--silo", f"south={public[1]}"]
    command = [
        "federate", "task", "--validation", place / "val.csv", *roster, "--key",
        place / "coordinator.key", "--out", place / "exact.json",
    ]  # fmt: skip
    assert "needs --epsilon and --delta" in str(invoke(*command).exception)
    made = invoke(*command, "--reveal-exact-counts")
    assert made.exit_code == 0, made.output
    assert "reveals exact counts" in made.output
    refused = invoke(*command[:-2], "--silo", "west", "--out", place / "other.json")
    assert "NAME=PUBLIC-KEY" in str(refused.exception)


@pytest.mark.parametrize("verb", ["key", "task", "coordinate", "join", "demo"])
def test_every_verb_has_an_example(verb):
    assert "Example: thresher federate" in invoke("federate", verb, "--help").stdout


def test_a_task_may_count_in_the_leaves_of_a_forest(folder):
    place, _ = folder
    public = [th.federate.Key.load(place / f"{name}.key").public for name in ("north", "south")]
    command = [
        "federate", "task", "--validation", place / "val.csv", "--silo", f"north={public[0]}",
        "--silo", f"south={public[1]}", "--key", place / "coordinator.key", "--trees", 2,
        "--leaves", 4, "--epsilon", 1, "--delta", 1e-6, "--out", place / "leaves.json",
    ]  # fmt: skip
    made = invoke(*command, "--points", 300)
    assert made.exit_code == 0, made.output
    assert "near: 2 trees, 60 validation points" in made.output
    assert "expected relative error 0." in made.output
    task = th.federate.Task.load(place / "leaves.json")
    assert task.columns == ["a", "b"]
    assert task.terms["bound"] == 2
