"""A broken run in parts goes on, with the same data and settings only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
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
put, seen = resume.write_whole, 0
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def put_and_die(path, write):
    global seen
    seen += path.name.startswith(name)
    torn = seen == times and not whole  # written, and not yet in its place
    put(path, (lambda temporary: (write(temporary), die())) if torn else write)
    if seen == times:
        die()
resume.write_whole = put_and_die
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
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", BROKEN, str(folder), name, str(times), whole],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder / "run"


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
    assert (run / "run.json").exists()
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
    data = list(problem(2000))
    save_data(tmp_path, data)
    run = broken_run(tmp_path, "values", 2)
    about = {"radius": 0.5}
    before = sorted(run.iterdir())
    change(about, data)
    check_refused(
        lambda: th.tknn_shapley(*data, **about, checkpoint=run), "another run", words, "new folder"
    )
    assert sorted(run.iterdir()) == before


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


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
@pytest.mark.parametrize("how", ["cut", "flip", "gone"])
@pytest.mark.parametrize("name", ["counts", "values-0", "values-512"])
def test_a_damaged_piece_is_computed_again(tmp_path, small_parts, name, how):
    data = problem(2000)
    save_data(tmp_path, data)
    run = broken_run(tmp_path, "values", 5)
    path = run / name
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[:-20])
    else:
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    wanted = th.tknn_shapley(*data)
    if how == "gone":
        assert th.tknn_shapley(*data, checkpoint=run) == wanted
        return
    with pytest.warns(th.ThresherWarning, match="damaged, and is computed again"):
        assert th.tknn_shapley(*data, checkpoint=run) == wanted


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
@pytest.mark.parametrize("name", ["values-0.arrow", "values-0.arrow.json"])
def test_a_damaged_file_is_as_if_it_were_not_there(name, tmp_path):
    with Checkpoint(tmp_path / "run", {}) as kept:
        kept.save("values-0.arrow", {"row": 7}, lambda path: path.write_text("values"))
        assert kept.load("values-0.arrow")[0] == {"row": 7}
        path = tmp_path / "run" / name
        path.write_text(path.read_text().replace("values", "valueS").replace("7", "8"))
        with pytest.warns(th.ThresherWarning, match="damaged, and is computed again"):
            assert kept.load("values-0.arrow") is None
        path.unlink()
        assert kept.load("values-0.arrow") is None


def test_a_crash_at_any_write_loses_one_part_at_most(tmp_path, monkeypatch):
    data, whole = problem(2000), resume.write_whole
    monkeypatch.setattr(Account, "rows", lambda *_: 256)  # eight parts
    wanted = th.tknn_shapley(*data)
    counting, times = counted.count, []
    monkeypatch.setattr(counted, "count", lambda *given: times.append(1) or counting(*given))
    for number in range(1, 11):
        writes = []

        def failing(path, write, writes=writes, number=number):
            writes.append(path.name)
            if len(writes) > number:
                raise KeyboardInterrupt
            whole(path, write)

        with monkeypatch.context() as patch:
            patch.setattr(resume, "write_whole", failing)
            with pytest.raises(KeyboardInterrupt):
                th.tknn_shapley(*data, checkpoint=tmp_path / "run")
        times.clear()
        assert th.tknn_shapley(*data, checkpoint=tmp_path / "run") == wanted
        assert len(times) == max(0, 8 - (number - 1))  # the first write says what the run is


def test_a_folder_of_others_is_no_checkpoint(tmp_path):
    theirs = [
        put(tmp_path / "run" / name, "text") for name in ("lock", "values.csv", "counts.xlsx")
    ]
    check_refused(
        lambda: th.tknn_shapley(*problem(600), checkpoint=tmp_path / "run"), "other files"
    )
    assert all(path.read_text() == "text" for path in theirs)


def test_checkpoints_that_are_none_are_refused(tmp_path, small_parts):
    data = problem(600)
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=7), "name of a folder")
    path = put(tmp_path / "file", "text")
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=path), "is a file")
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=tmp_path), "holds other files")
    assert path.read_text() == "text"
    check_refused(lambda: th.tknn_shapley(*data, checkpoint=tmp_path / "a" / "b"), "does not exist")
    run = tmp_path / "run"
    with Checkpoint(run, {"points": 1}):
        check_refused(lambda: Checkpoint(run, {"points": 1}), "in use by another run")
    put(run / "run.json", "{}")
    check_refused(lambda: Checkpoint(run, {"points": 1}), "damaged", "remove it")
    labels = [(label,) for label in data[1]]
    check_refused(
        lambda: th.tknn_shapley(data[0], labels, data[2], labels[:200], checkpoint=tmp_path / "new"),
        "cannot be saved", "strings or numbers",
    )  # fmt: skip


def test_progress_is_told_in_rows_of_both_passes(capfd, small_parts):
    X, y, X_val, y_val = problem(2000)
    th.tknn_shapley(X, y, X_val, y_val, memory="64GB", progress=True)
    told = capfd.readouterr().err
    assert "4.00k/4.00k" in told
    assert "rows" in told
