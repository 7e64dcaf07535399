"""Temporary files of killed processes: removed by the next run, never those of a living one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import waits

import thresher as th
from thresher import drafts
from thresher.drafts import draft_file, draft_folder, remove_abandoned
from thresher.files import write_whole

WRITING = """
import sys, time
from pathlib import Path
from thresher.drafts import draft_folder
from thresher.files import write_whole

def hang(path):
    path.mkdir(exist_ok=True) if path.is_dir() else path.write_text("half")
    print(path, flush=True)
    time.sleep(100)

if sys.argv[1] == "file":
    write_whole(Path("out.csv"), hang)
else:
    with draft_folder(Path.cwd()) as folder:
        (folder / "piece").write_text("half")
        hang(folder)
"""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def writer():
    """A function that starts a process that writes a draft and hangs: the process, the draft."""
    with contextlib.ExitStack() as stack:

        def start(kind):
            command = [sys.executable, "-c", WRITING, kind]
            started = waits.started(command, stdout=subprocess.PIPE, text=True)
            process = stack.enter_context(started)
            return process, Path(process.stdout.readline().strip())

        yield start


def hidden():
    return sorted(path.name for path in Path.cwd().iterdir() if path.name.startswith(".thresher-"))


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_by_the_next_write(kind, writer):
    process, draft = writer(kind)
    process.kill()
    process.wait()
    assert hidden() == [draft.name]
    drafts._swept.clear()
    write_whole("other.csv", lambda path: path.write_text("whole"))
    assert hidden() == []
    assert Path("other.csv").read_text() == "whole"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_living_process_writes_is_left_alone(kind, writer):
    _, draft = writer(kind)
    remove_abandoned(Path.cwd())
    assert hidden() == [draft.name]


def test_a_stopped_process_is_alive(writer):
    process, draft = writer("file")
    process.send_signal(signal.SIGSTOP)
    remove_abandoned(Path.cwd())
    assert hidden() == [draft.name]


def test_only_drafts_of_ours_are_removed_and_no_link_is_followed():
    here = f".thresher-{drafts._host()}-"
    elsewhere = Path("kept")
    elsewhere.mkdir()
    (elsewhere / "file").write_text("kept")
    Path(f"{here}aaaaaaaa").symlink_to(elsewhere / "file")
    Path(f"{here}bbbbbbbb").symlink_to(elsewhere)
    Path(f"{here}cccccccc").mkdir()
    Path(f"{here}cccccccc", "link").symlink_to(elsewhere)
    Path(f"{here}dddddddd").touch()
    for name in (
        ".thresher-mine",
        f"{here}short",
        f"{here}aaaaaaaa.csv",
        "thresher-00000000-aaaaaaaa",
    ):
        Path(name).touch()
    other = f".thresher-{'0' * 8}-aaaaaaaa"  # of another machine: gone only when it is old
    Path(other).touch()
    remove_abandoned(Path.cwd())
    assert hidden() == sorted(
        [
            f"{here}aaaaaaaa",
            f"{here}bbbbbbbb",
            ".thresher-mine",
            f"{here}short",
            f"{here}aaaaaaaa.csv",
            other,
        ]
    )
    assert (elsewhere / "file").read_text() == "kept"
    long_ago = time.time() - 2 * drafts.DAY
    os.utime(other, (long_ago, long_ago))
    remove_abandoned(Path.cwd())
    assert other not in hidden()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another user")
def test_drafts_of_another_user_are_left_alone():
    name = f".thresher-{drafts._host()}-aaaaaaaa"
    Path(name).touch()
    os.chown(name, 12345, 12345)
    remove_abandoned(Path.cwd())
    assert hidden() == [name]


def test_nothing_is_removed_where_locks_do_nothing(monkeypatch):
    Path(f".thresher-{drafts._host()}-aaaaaaaa").touch()
    monkeypatch.setattr(drafts.fcntl, "flock", lambda *_: None)
    drafts._swept.clear()
    with draft_file(Path.cwd()), draft_folder(Path.cwd()):
        assert len(hidden()) == 3
    assert len(hidden()) == 1


def test_a_draft_that_was_removed_before_it_was_locked_is_made_again(monkeypatch):
    flock, seen = drafts.fcntl.flock, []

    def remove_first(handle, how):
        if not seen:
            seen.extend(Path.cwd().iterdir())
            seen[0].rmdir() if seen[0].is_dir() else seen[0].unlink()
        return flock(handle, how)

    for make in (draft_file, draft_folder):
        seen.clear()
        monkeypatch.setattr(drafts.fcntl, "flock", remove_first)
        with make(Path.cwd()) as path:
            assert path.exists()
            assert path != seen[0]
        assert hidden() == []


def test_two_processes_that_write_one_file_do_not_disturb_each_other():
    code = (
        "import sys; from thresher.files import write_whole\n"
        "for _ in range(150): write_whole('out', lambda path: path.write_text(sys.argv[1] * 5000))"
    )
    one, two = (waits.started([sys.executable, "-c", code, letter]) for letter in "ab")
    with one as one, two as two:
        assert (one.wait(), two.wait()) == (0, 0)
    assert Path("out").read_text() in {"a" * 5000, "b" * 5000}
    assert hidden() == []


RUN = """
import os, signal, sys
from thresher.passes import checkpoint as resume

save = resume._save

def save_and_die(*piece):
    save(*piece)
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[1] == "die":
    resume._save = save_and_die
del sys.argv[1]
from thresher.cli import main
main()
"""


def test_the_next_run_with_memory_removes_the_folder_of_a_killed_one():
    rows = [f"{i % 7},{i % 5},{i % 2}\n" for i in range(40)]
    Path("p.csv").write_text("a,b,y\n" + "".join(rows))
    Path("v.csv").write_text("a,b,y\n" + "".join(rows[:4]))
    command = ["value", "p.csv", "--validation", "v.csv", "--radius", "1", "--metric", "euclidean",
               "--memory", "64GB", "--out", "o.csv"]  # fmt: skip

    def run(how):
        words = [sys.executable, "-c", RUN, how, *command]
        return waits.run(words)

    assert run("die").returncode == -signal.SIGKILL
    assert len(hidden()) == 1
    assert any(Path(hidden()[0]).iterdir())
    done = run("live")
    assert done.returncode == 0, done.stderr
    assert hidden() == []
    assert Path("o.csv").is_file()


def test_a_ledger_that_was_not_finished_is_removed_by_the_next():
    draft = Path(f".thresher-{drafts._host()}-aaaaaaaa")
    draft.touch()
    draft.with_name(f"{draft.name}-journal").touch()
    drafts._swept.clear()
    th.Ledger.create("l.db", epsilon=1, delta=1e-6)
    assert hidden() == []
