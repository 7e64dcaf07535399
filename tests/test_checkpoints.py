"""A broken run in parts goes on, with the same data and settings only."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import waits
from parted import problem, write_parts
from tabular import check_refused, put

import thresher as th
from thresher.passes import checkpoint as resume
from thresher.passes import tally as counted
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.memory import Account
from thresher.passes.parts import ArrayParts

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


BROKEN = """
import os, signal, sys
import numpy as np
import thresher as th
from thresher.passes import memory
from thresher.passes import checkpoint as resume

memory.LARGEST = 1
folder, name, times, whole = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "whole"
save, seen = resume._save, 0
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def torn(chunks):  # written, and not committed
    yield from chunks
    die()
def save_and_die(file, piece, entry, chunks):
    global seen
    seen += piece.startswith(name)
    save(file, piece, entry, torn(chunks) if seen == times and not whole else chunks)
    if seen == times:
        die()
resume._save = save_and_die
data = [np.load(f"{folder}/{part}.npy", mmap_mode="r" if part == "X" else None)
        for part in ("X", "y", "X_val", "y_val")]
if os.path.exists(f"{folder}/data"):
    data[:2] = th.Scan(f"{folder}/data"), None
found = th.tknn_shapley(*data, checkpoint=f"{folder}/run")
np.save(f"{folder}/values.npy", found.values)
"""


def save_data(folder, data):
    for name, part in zip(("X", "y", "X_val", "y_val"), data):
        np.save(folder / f"{name}.npy", part)


def broken_run(folder, name, times, whole="whole"):
    """A run that is killed after, or while, it keeps its piece number `times` of a name."""
    done = waits.run(
        [sys.executable, "-W", "ignore", "-c", BROKEN, str(folder), name, str(times), whole],
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder / "run"


@functools.cache
def checkpoint_of_killed_run(size):
    """What a run over so many points leaves that is killed after it has kept some values."""
    with tempfile.TemporaryDirectory() as folder:
        save_data(Path(folder), problem(size))
        return broken_run(Path(folder), "values", 4).read_bytes()


def broken_off(folder, size):
    path = folder / "run"
    path.write_bytes(checkpoint_of_killed_run(size))
    return path


def counting_parts(monkeypatch):
    """A list that gets the first row of every part that is read."""
    read, rows = ArrayParts.read, []

    def watched(self, start, size):
        for part in read(self, start, size):
            rows.append(part.first)
            yield part

    monkeypatch.setattr(ArrayParts, "read", watched)
    return rows


@pytest.mark.parametrize("whole", ["whole", "torn"])
@pytest.mark.parametrize(("name", "times"), [("counts", 3), ("counts", 8), ("values", 4)])
def test_a_killed_run_goes_on(tmp_path, monkeypatch, small_parts, name, times, whole):
    data = problem(2000)  # 8 parts
    save_data(tmp_path, data)
    run = broken_run(tmp_path, name, times, whole)
    assert run.is_file()
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r"), *data[1:]
    rows = counting_parts(monkeypatch)
    got = th.tknn_shapley(*mapped, checkpoint=run)
    assert got == th.tknn_shapley(*data)
    done = times - (whole == "torn")
    parts = 8 - done + 8 if name == "counts" else 8 - done
    assert len(rows) == parts
    assert not run.exists()


def test_a_killed_run_over_files_goes_on_within_a_file(tmp_path, small_parts):
    data = problem(2000)
    save_data(tmp_path, data)
    folder = write_parts(tmp_path / "data", "csv", data[0], data[1])
    for name, times in (("counts", 6), ("values", 6)):
        run = broken_run(tmp_path, name, times)
    got = th.tknn_shapley(th.Scan(folder), None, *data[2:], checkpoint=run)
    assert got == th.tknn_shapley(*data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about, data: about.update(radius=0.6), "its radius is 0.5, not 0.6"),
        (lambda about, data: about.update(metric="euclidean"), "its metric"),
        (lambda about, data: about.update(semivalue="banzhaf"), "its semivalue"),
        (lambda about, data: about.update(mean=True), "its mean"),
        (lambda about, data: about.update(classes=range(9)), "its classes"),
        (lambda about, data: data.__setitem__(0, data[0] + 1), "its points"),
        (lambda about, data: data.__setitem__(1, (data[1] + 1) % 3), "its points"),
        (lambda about, data: data.__setitem__(2, data[2] + 1), "its validation"),
        (lambda about, data: data.__setitem__(3, 1 - data[3]), "its validation"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, small_parts, change, words):
    data, run = list(problem(2000)), broken_off(tmp_path, 2000)
    about = {"radius": 0.5}
    before = run.read_bytes()
    change(about, data)
    check_refused(
        lambda: th.tknn_shapley(*data, **about, checkpoint=run), "another run", words, "new name"
    )
    assert run.read_bytes() == before


def test_points_that_change_between_passes_are_refused(tmp_path, small_parts):
    """The sample of rows may miss it; the fingerprints of all do not."""
    X, y, X_val, y_val = problem(2000)
    X = np.repeat(X, 2, axis=0)  # so that a sample takes every third row
    y = np.repeat(y, 2)
    save_data(tmp_path, (X, y, X_val, y_val))
    run = broken_run(tmp_path, "counts", 16)
    X[3001, 2] += 0.125
    check_refused(
        lambda: th.tknn_shapley(X, y, X_val, y_val, checkpoint=run), "changed while they were"
    )
    X[3001, 2] -= 0.125
    wanted = th.tknn_shapley(X, y, X_val, y_val)
    y[3001] = (y[3001] + 1) % 2
    run = broken_run(tmp_path, "counts", 16) if not run.exists() else run
    check_refused(
        lambda: th.tknn_shapley(X, y, X_val, y_val, checkpoint=run), "changed while they were"
    )
    assert wanted.values.any()


def test_files_that_change_are_refused(tmp_path, small_parts):
    data = problem(2000)
    save_data(tmp_path, data)
    folder = write_parts(tmp_path / "data", "csv", data[0], data[1])
    run = broken_run(tmp_path, "values", 2)
    os.utime(folder / "part-1.csv", ns=(1, 1))
    scan = th.Scan(folder)
    check_refused(lambda: th.tknn_shapley(scan, None, *data[2:], checkpoint=run), "its points")


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
@pytest.mark.parametrize("how", ["flip", "gone", "chunk"])
@pytest.mark.parametrize("name", ["counts", "values-0", "values-512"])
def test_a_damaged_piece_is_computed_again(tmp_path, small_parts, name, how):
    data, run = problem(2000), broken_off(tmp_path, 2000)
    with contextlib.closing(sqlite3.connect(run)) as file, file:
        (content,) = file.execute(
            "SELECT content FROM piece WHERE name = ? AND number = 1", (name,)
        ).fetchone()
        if how != "flip":
            which = {"gone": "", "chunk": "AND number = 1"}[how]
            file.execute(f"DELETE FROM piece WHERE name = ? {which}", (name,))  # noqa: S608
    if how == "flip":
        flip(run, run.read_bytes().index(content[200:260]) + 30)
    wanted = th.tknn_shapley(*data)
    if how == "gone":
        assert th.tknn_shapley(*data, checkpoint=run) == wanted
        return
    with pytest.warns(th.ThresherWarning, match=f"{name} of checkpoint .* is damaged, and is comp"):
        assert th.tknn_shapley(*data, checkpoint=run) == wanted
    assert not run.exists()


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
@pytest.mark.parametrize(
    "change",
    ["content = X'01' WHERE number = 1", "content = X'7B7D' WHERE number = 0",
     "content = 'text' WHERE number = 1", "digest = X'' WHERE number = 1", "number = 5 WHERE number = 1"],
)  # fmt: skip
def test_a_damaged_piece_is_as_if_it_were_not_there(change, tmp_path):
    with Checkpoint(tmp_path / "run", {}) as kept:
        kept.save("values-0", {"row": 7}, [b"values", np.arange(3.0)])
        entry, chunks = kept.load("values-0")
        assert entry == {"row": 7}
        assert [*chunks] == [*chunks] == [b"values", np.arange(3.0).tobytes()]
        kept._file.do(f"UPDATE piece SET {change} AND name = 'values-0'")  # noqa: S608
        with pytest.warns(th.ThresherWarning, match="damaged, and is computed again"):
            assert kept.load("values-0") is None
        if "number = 0" not in change:
            check_refused(lambda: [*chunks], "damaged")
        kept.save("values-0", {"row": 8})
        assert kept.load("values-0")[0] == {"row": 8}


@pytest.mark.parametrize("how", ["flip", "cut"])
def test_damage_anywhere_never_makes_other_values(tmp_path, small_parts, how):
    """100 places: the same values, or a refusal with the way out."""
    data, run = problem(1200), broken_off(tmp_path, 1200)
    whole, wanted = run.read_bytes(), th.tknn_shapley(*data)
    random = np.random.default_rng(0)
    outcomes = set()
    for place in random.integers(0, len(whole), 100).tolist():
        run.write_bytes(whole[:place] if how == "cut" else whole)
        if how == "flip":
            flip(run, place)
        try:
            assert th.tknn_shapley(*data, checkpoint=run) == wanted
            outcomes.add("valued")
        except th.InputError as refused:
            outcomes.add(
                re.search("damaged|another kind|another run|cannot be used|$", str(refused))[0]
            )
        run.unlink(missing_ok=True)
    assert "damaged" in outcomes
    assert "" not in outcomes


def test_a_crash_at_any_write_loses_one_part_at_most(tmp_path, monkeypatch):
    data, save = problem(2000), resume._save
    monkeypatch.setattr(Account, "rows", lambda *_: 256)  # eight parts
    wanted = th.tknn_shapley(*data)
    counting, times = counted.count, []
    monkeypatch.setattr(
        counted, "count", lambda *given, **how: times.append(1) or counting(*given, **how)
    )
    for number in range(1, 11):
        writes = []

        def failing(file, name, entry, chunks, writes=writes, number=number):
            writes.append(name)
            if len(writes) > number:
                raise KeyboardInterrupt
            save(file, name, entry, chunks)

        with monkeypatch.context() as patch:
            patch.setattr(resume, "_save", failing)
            with pytest.raises(KeyboardInterrupt):
                th.tknn_shapley(*data, checkpoint=tmp_path / "run")
        times.clear()
        assert th.tknn_shapley(*data, checkpoint=tmp_path / "run") == wanted
        assert len(times) == max(0, 8 - (number - 1))  # the first write says what the run is


AGAIN = """
import sys
import numpy as np
import thresher as th
from thresher.passes import memory

memory.LARGEST = 1
data = [np.load(f"{sys.argv[1]}/{part}.npy") for part in ("X", "y", "X_val", "y_val")]
th.tknn_shapley(*(rows[:300] for rows in data), memory="1TB")  # compiles and loads
print("ready", flush=True)
found = th.tknn_shapley(*data, checkpoint=f"{sys.argv[1]}/run")
np.save(f"{sys.argv[1]}/values.npy", found.values)
"""


def test_a_run_that_is_killed_at_random_times_goes_on_to_the_same_bits(tmp_path):
    data = problem(40_000)
    save_data(tmp_path, data)
    random, killed = np.random.default_rng(0), 0
    while not (tmp_path / "values.npy").exists():
        command = [sys.executable, "-W", "ignore", "-c", AGAIN, str(tmp_path)]
        with waits.started(command, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"ready\n"
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=random.uniform(0, 0.2) if killed < 4 else waits.LIMIT)
            killed += child.poll() is None
    assert killed
    values = np.load(tmp_path / "values.npy")
    assert values.tobytes() == th.tknn_shapley(*data).values.tobytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("run")]


def test_a_file_of_others_is_no_checkpoint(tmp_path):
    theirs = put(tmp_path / "run", "text that is longer than the head of a file of SQLite" * 3)
    check_refused(lambda: th.tknn_shapley(*problem(600), checkpoint=theirs), "another kind of file")
    assert theirs.read_text().startswith("text")
    with contextlib.closing(sqlite3.connect(tmp_path / "db")) as file, file:
        file.execute("CREATE TABLE piece (name TEXT)")
    before = (tmp_path / "db").read_bytes()
    check_refused(
        lambda: th.tknn_shapley(*problem(600), checkpoint=tmp_path / "db"), "another kind of file"
    )
    assert (tmp_path / "db").read_bytes() == before


def test_checkpoints_that_are_none_are_refused(tmp_path, small_parts):
    data = problem(600)
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=7), "path of a file")
    for none in ("", ":memory:", "./:memory:"):
        check_refused(lambda: th.tknn_shapley(*data, checkpoint=none), "path of a file")  # noqa: B023
    old = put(tmp_path / "old" / "run.json", "{}")
    check_refused(
        lambda: th.tknn_shapley(*data, checkpoint=old.parent), "got the folder", "earlier version"
    )
    assert old.read_text() == "{}"
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=tmp_path / "a" / "b"), "does not exist")
    run = tmp_path / "run"
    with Checkpoint(run, {"points": 1}) as kept:
        check_refused(lambda: Checkpoint(run, {"points": 1}), "in use by another process")
        kept._file.do("UPDATE piece SET content = X'7B7D'")
    check_refused(lambda: Checkpoint(run, {"points": 1}), "damaged", "remove it")
    labels = [(label,) for label in data[1]]
    check_refused(
        lambda: th.tknn_shapley(data[0], labels, data[2], labels[:200], checkpoint=tmp_path / "new"),
        "cannot be saved", "strings or numbers",
    )  # fmt: skip


def test_a_checkpoint_that_another_process_has_is_refused(tmp_path):
    code = "import sys; from thresher.passes.checkpoint import Checkpoint\n"
    code += "with Checkpoint(sys.argv[1], {}): print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    with waits.started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"open\n"
        check_refused(lambda: Checkpoint(tmp_path / "run", {}), "in use by another process")
        child.communicate()
    with Checkpoint(tmp_path / "run", {}) as kept:
        kept.finish()
    assert not [*tmp_path.iterdir()]


def test_progress_is_told_in_rows_of_both_passes(capfd, small_parts):
    X, y, X_val, y_val = problem(2000)
    th.tknn_shapley(X, y, X_val, y_val, memory="64GB", progress=True)
    told = capfd.readouterr().err
    assert "4.00k/4.00k" in told
    assert "rows" in told
