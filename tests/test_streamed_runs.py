"""`thresher value --memory`: ids, ranks, refusals, and runs that break off."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import waits
from hypothesis import given
from hypothesis import strategies as st
from peaks import WATCH
from pyarrow import csv
from streamed_cases import ALL, data, table_of  # noqa: F401
from tabular import check_refused, put, thresher

import thresher as th
from thresher.passes import checkpoint as resume
from thresher.runs import ranks
from thresher.runs.ranks import find_repeats, rank_values
from thresher.runs.settings import Settings
from thresher.runs.table_file import value_to_file

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


def test_ids_that_are_not_distinct_are_told():
    table = table_of(1500, 0)
    names = table["name"].to_pylist()
    names[1400] = names[1401] = names[7]
    table = table.set_column(table.column_names.index("name"), "name", pa.array(names))
    pq.write_table(table, "twice.parquet")
    about = {"validation": "val.parquet", "memory": "64GB", **ALL}
    done = value_to_file(Settings("twice.parquet", **about), Path("o.parquet"))
    told = [hint for hint in done.hints if "distinct" in hint]
    assert told == [
        f"column 'name' has ids that are not distinct: {names[7]!r} in rows 7, 1400, 1401"
    ]
    done = value_to_file(Settings("points", **about), Path("p.parquet"))
    assert not [hint for hint in done.hints if "distinct" in hint]


@pytest.mark.parametrize("count", [1, 5000])
def test_repeats_are_found_however_many_and_equal_prints_are_no_repeats(
    count, tmp_path, monkeypatch
):
    entries = [*range(10_000), *[str(i) for i in range(10_000)], *range(count)]
    cut = [entries[lo : lo + 999] for lo in range(0, len(entries), 999)]
    monkeypatch.setattr("thresher.runs.ranks.CHUNK", 1000)
    found = find_repeats(lambda: iter(cut), len(entries), tmp_path, room=0)
    assert 0 < len(found) <= count
    for entry, rows in found.items():
        assert rows == [entry, 20_000 + entry]
    monkeypatch.setattr("thresher.runs.ranks._print", lambda entry: len(str(entry)))
    distinct = [["a", "bb"], ["b", 1]]
    assert find_repeats(lambda: iter(distinct), 4, tmp_path) == {}


# Ranks


@given(
    values=st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e-300, np.inf, 3.0]), max_size=300),
    more=st.lists(st.floats(-10, 10), min_size=1, max_size=300),
    sizes=st.tuples(st.integers(1, 50), st.integers(1, 40)),
)
def test_ranks_are_those_of_a_sort(values, more, sizes, tmp_path):
    values = np.array([*values, *more, *values[: len(values) // 2]])
    wanted = th.Valuation(values, "test", {}, 0.0, 0.0)
    with pytest.MonkeyPatch().context() as patch:
        patch.setattr(ranks, "CHUNK", sizes[0])
        rank, below = rank_values(values, tmp_path, room=sizes[1] * ranks.ROW)
    assert rank.tolist() == wanted.ranks().tolist()
    np.testing.assert_array_equal(100.0 * below / len(values), wanted.percentiles())


# Refusals


COMMAND = ("value", "points", "--validation", "val.parquet", "--id", "name", "--owner", "from",
           "--fill", "zero", "--categorical", "kind", "--memory", "9GB")  # fmt: skip


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"validation": None}, ["--memory needs --validation", "split some off"]),
        ({"fill": "median"}, ["--fill median", "--fill zero or a number"]),
        ({"method": "knn"}, ["--memory needs --method tknn"]),
        ({"text": "name"}, ["--memory cannot be used with --text", "thresher embed"]),
        ({"memory": "much"}, ["memory must be bytes"]),
    ],
)
def test_what_needs_the_whole_table_is_refused(about, words):
    given = {"file": "points", "validation": "val.parquet", "memory": "64GB"} | about
    check_refused(lambda: Settings(**given), *words)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([*COMMAND, "--out", "v.parquet", "--report", "r.html"], "--report shows all rows"),
        (COMMAND, "--memory needs --out"),
        ([*COMMAND[:-2], "--checkpoint", "run"], "--checkpoint needs --memory"),
        ([*COMMAND[:-1], "90MB", "--out", "v.parquet"], "90MB is too little"),
    ],
)
def test_the_command_refuses_with_the_way_out(arguments, word):
    done = thresher(*arguments)
    assert done.returncode == 1
    assert word in done.stderr
    assert not Path("v.parquet").exists()
    assert not [path for path in Path().iterdir() if path.name.startswith(".thresher")]


def test_missing_ids_and_labels_without_a_partner_are_refused():
    table = table_of(600, 3)
    names = [None if row == 555 else f"p{row}" for row in range(600)]
    spoiled = table.set_column(table.column_names.index("name"), "name", pa.array(names))
    pq.write_table(spoiled, "bad.parquet")
    about = {"validation": "val.parquet", "memory": "64GB", **ALL}
    check_refused(
        lambda: value_to_file(Settings("bad.parquet", **about), Path("o.csv")),
        "bad.parquet has missing ids in row 555",
    )
    others = table.set_column(table.column_names.index("y"), "y", pa.array(["a", "b"] * 300))
    pq.write_table(others, "bad.parquet")
    check_refused(
        lambda: value_to_file(Settings("bad.parquet", **about), Path("o.csv")),
        "no label in common", "'a', 'b'",
    )  # fmt: skip
    assert not [path for path in Path().iterdir() if path.name.startswith((".thresher", "o."))]


# Breaks


BREAKING = """
import os, signal, sys
from thresher.passes import memory
from thresher.passes import checkpoint as resume
from thresher.cli import main

memory.LARGEST = 1
name, times, sign, *sys.argv = sys.argv[1:]
save, seen = resume._save, 0
def save_and_break(file, piece, entry, chunks):
    global seen
    save(file, piece, entry, chunks)
    seen += piece.startswith(name)
    if seen == int(times):
        os.kill(os.getpid(), int(sign))
resume._save = save_and_break
main()
"""


def broken(name, times, sign, *arguments):
    command = [sys.executable, "-c", BREAKING, name, times, sign, "thresher", *arguments]
    return waits.run(list(map(str, command)))


def test_a_broken_run_goes_on_to_the_same_bytes():
    whole = broken("never", 1, 9, *COMMAND, "--checkpoint", "a", "--out", "v.parquet")
    assert whole.returncode == 0, whole.stderr
    assert "to act on it: thresher clean points --values v.parquet --id name" in whole.stderr
    wanted = Path("v.parquet").read_bytes()
    Path("v.parquet").unlink()
    steps = [("encoder", 1, signal.SIGKILL), ("counts", 3, signal.SIGKILL),
             ("values", 2, signal.SIGINT), ("values", 2, signal.SIGKILL)]  # fmt: skip
    for name, times, sign in steps:
        done = broken(name, times, int(sign), *COMMAND, "--checkpoint", "run", "--out", "v.parquet")
        assert done.returncode == (130 if sign == signal.SIGINT else -sign), done.stderr
        assert not Path("v.parquet").exists()
        with contextlib.closing(sqlite3.connect("run")) as file:
            assert file.execute("SELECT 1 FROM piece WHERE name = 'encoder'").fetchone()
    other = [*COMMAND, "--mean"]
    done = thresher(*other, "--checkpoint", "run", "--out", "v.parquet")
    assert done.returncode == 1
    assert "belongs to another run: its settings mean is False, not True" in done.stderr
    done = thresher(*COMMAND, "--checkpoint", "run", "--out", "v.parquet")
    assert done.returncode == 0, done.stderr
    assert Path("v.parquet").read_bytes() == wanted
    assert not [path for path in Path().iterdir() if path.name.startswith(("run", ".thresher"))]


def test_a_run_that_is_ended_leaves_nothing_behind():
    before = sorted(Path.cwd().iterdir())
    done = broken("values", 2, int(signal.SIGTERM), *COMMAND, "--out", "v.parquet")
    assert done.returncode == 143, done.stderr
    assert "interrupted; no file was left half written" in done.stderr
    assert sorted(Path.cwd().iterdir()) == before


@pytest.mark.parametrize("checkpoint", ["v.csv", "./v.csv.record.json"])
def test_a_run_removes_its_own_file_only(checkpoint):
    done = thresher(*COMMAND, "--checkpoint", checkpoint, "--out", "v.csv")
    assert done.returncode == 1
    assert f"would write to --checkpoint {checkpoint}" in done.stderr
    before = Path("points.csv").read_bytes()
    done = thresher(*COMMAND, "--checkpoint", "points.csv", "--out", "v.csv")
    assert done.returncode == 1
    assert "another kind of file" in done.stderr
    assert Path("points.csv").read_bytes() == before
    with resume.Checkpoint("run", {"radius": 1}) as kept:
        kept.save("counts", {}, [np.zeros(2)])
        theirs = [put(name, "text") for name in ("run.csv", "run-0", "runs/run")]
        kept.finish()
    assert not Path("run").exists()
    assert all(path.read_text() == "text" for path in theirs)


PEAK = (
    WATCH
    + """
from thresher.cli import main
try:
    main()
except SystemExit as stopped:
    sys.stderr.write(f"\\npeak {most} {stopped.code}\\n")
"""
)


def peak_of(*arguments):
    """The peak of a run of the command, in bytes."""
    done = waits.run([sys.executable, "-c", PEAK, *arguments])
    *_, told = done.stderr.strip().splitlines()
    _, peak, code = told.split()
    assert code in {"None", "0"}, done.stderr
    return int(peak)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux only")
def test_long_ids_are_reckoned_with():
    random, rows = np.random.default_rng(0), 20_000
    table = pa.table({"a": random.normal(size=rows), "b": random.normal(size=rows),
                      "y": np.arange(rows) % 2, "id": [f"{i:05000d}" for i in range(rows)]})  # fmt: skip
    pq.write_table(table, "long.parquet", row_group_size=500)
    pq.write_table(table.slice(0, 50).drop_columns("id"), "v.parquet")
    arguments = ["value", "long.parquet", "--validation", "v.parquet", "--id", "id", "--radius",
                 "0.5", "--memory", "300MB", "--out", "o.parquet"]  # fmt: skip
    peak = peak_of(*arguments)
    assert peak <= 300 * 10**6, f"{peak / 1e6:.0f} MB"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux only")
@pytest.mark.parametrize(("kind", "files"), [("parquet", 14), ("csv", 6)])
def test_the_command_stays_within_its_memory(kind, files):
    """More than 320 MB within 300 MB, interpreter and packages among these."""
    random = np.random.default_rng(0)
    block = random.normal(size=(60_000, 50))
    Path("large").mkdir()
    for number in range(files):
        rows = block + number / 20
        table = pa.table(
            {f"x{j}": rows[:, j] for j in range(50)}
            | {"y": number % 2 + 0 * rows[:, 0].astype(int)}
        )
        path = f"large/{number:02}.{kind}"
        if kind == "csv":
            csv.write_csv(table, path)
        else:
            pq.write_table(table, path, row_group_size=20_000)
    assert sum(path.stat().st_size for path in Path("large").iterdir()) > 320e6
    small = random.normal(size=(40, 50))
    pq.write_table(
        pa.table({f"x{j}": small[:, j] for j in range(50)} | {"y": [0, 1] * 20}), "v.parquet"
    )
    arguments = ["value", "large", "--validation", "v.parquet", "--radius", "0.9", "--memory",
                 "300MB", "--out", "o.parquet"]  # fmt: skip
    peak = peak_of(*arguments)
    assert peak <= 300 * 10**6, f"{peak / 1e6:.0f} MB"
    assert pq.read_metadata("o.parquet").num_rows == 60_000 * files
