"""Keeper: what was committed is there, whole; what was not is gone; what is damaged is refused."""

from __future__ import annotations

import functools
import sqlite3
import sys

import pytest
import waits

import thresher as th
from thresher.keeper import Keeper

SCHEMA = "CREATE TABLE cell (name TEXT); CREATE TABLE other (number INTEGER)"


def keeper(path, **options):
    return Keeper(path, SCHEMA, **{"kind": "cells/1", "what": "store of cells", **options})


def put(kept, *names):
    with kept.change():
        for name in names:
            kept.do("INSERT INTO cell VALUES (?)", name)


def names(kept):
    return [name for (name,) in kept.rows("SELECT name FROM cell")]


@pytest.fixture(params=[False, True], ids=["plain", "log"])
def log(request):
    return request.param


def test_what_was_committed_is_there_and_what_was_not_is_gone(log, tmp_path):
    with keeper(tmp_path / "c.db", log=log) as kept:
        put(kept, "a", "b")
        with pytest.raises(ZeroDivisionError):
            put(kept, *("c" for _ in range(1 // (len(names(kept)) - 2))))
        assert names(kept) == ["a", "b"]
        put(kept, "d")
        kept.begin()
        kept.do_many("INSERT INTO cell VALUES (?)", [("e",), ("f",)])
        assert names(kept) == ["a", "b", "d", "e", "f"]
    with keeper(tmp_path / "c.db", log=log) as kept:
        assert names(kept) == ["a", "b", "d"]
        put(kept, "g")
        kept.compact()
        assert names(kept) == ["a", "b", "d", "g"]
    assert [path.name for path in tmp_path.iterdir()] == ["c.db"]


def test_commits_wait_for_the_disk(log, tmp_path):
    with keeper(tmp_path / "c.db", log=log) as kept:
        assert kept.row("PRAGMA synchronous") == (2,)  # FULL
        assert kept.row("PRAGMA journal_mode") == ("wal" if log else "delete",)


def test_a_second_one_is_refused_until_the_first_is_closed(log, tmp_path):
    code = (
        "import sys; from thresher.keeper import Keeper; "
        f"Keeper(sys.argv[1], {SCHEMA!r}, kind='cells/1', what='store', log={log})"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "c.db")]
    with keeper(tmp_path / "c.db", log=log) as kept:
        with pytest.raises(th.InputError, match=r"c\.db is in use by another process, or was"):
            keeper(tmp_path / "c.db", log=log)
        done = waits.run(command)
        assert "is in use by another process" in done.stderr
        put(kept, "a")
    assert waits.run(command).returncode == 0


def test_a_shared_file_is_open_to_all_and_each_waits_for_its_turn(tmp_path):
    def work(part):
        with keeper(tmp_path / "c.db", shared=True) as kept:
            for i in range(20):
                put(kept, f"{part} {i}")

    waits.together(*(functools.partial(work, part) for part in range(4)))
    with keeper(tmp_path / "c.db", shared=True) as kept:
        assert sorted(names(kept)) == sorted(f"{part} {i}" for part in range(4) for i in range(20))


def test_files_of_other_kinds_are_refused_and_left_alone(log, tmp_path):
    path = tmp_path / "f"
    for content in (b"my thesis", b"my thesis\n" * 1000):
        path.write_bytes(content)
        with pytest.raises(th.InputError, match="store of cells .*f is another kind of file"):
            keeper(path, log=log)
        assert path.read_bytes() == content
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE cell (text)")
    other.close()
    with pytest.raises(th.InputError, match="another kind of file"):
        keeper(path, log=log)
    path.unlink()
    keeper(path, kind="cells/2", log=log).close()
    content = path.read_bytes()
    with pytest.raises(th.InputError, match="was made by another version: move it away, or choose"):
        keeper(path, log=log)
    assert path.read_bytes() == content
    for bad, words in ((tmp_path, "cannot be used"), (tmp_path / "no" / "f", "cannot be used")):
        with pytest.raises(th.InputError, match=words):
            keeper(bad, log=log)


def test_a_file_with_the_same_tables_and_no_mark_is_taken_over(tmp_path):
    other = sqlite3.connect(tmp_path / "c.db")
    for statement in SCHEMA.split(";"):
        other.execute(statement)
    other.execute("INSERT INTO cell VALUES ('old')")
    other.commit()
    other.close()
    for _ in range(2):
        with keeper(tmp_path / "c.db", shared=True) as kept:
            assert names(kept) == ["old"]


def test_a_missing_row_is_damage(tmp_path):
    with keeper(tmp_path / "c.db") as kept:
        with pytest.raises(th.InputError, match="is damaged: put back a copy of it, or remove it"):
            kept.row("SELECT * FROM cell")
        with pytest.raises(th.InputError, match="cannot be used: no such table"):
            kept.do("SELECT * FROM missing")


WANT = ["a" * 900, "b" * 900, "c" * 900]


@pytest.fixture
def crash(tmp_path):
    """The files that a killed process left after three commits, and how many of them are missed."""
    kept = keeper(tmp_path / "c.db", log=True)
    for name in WANT:
        put(kept, name)
    kept.begin()
    kept.do("INSERT INTO cell VALUES ('d')")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept.close()
    assert set(files) == {"c.db", "c.db-wal", "c.db-commits"}

    def missed(name, content):
        for path in tmp_path.iterdir():
            path.unlink()
        for each, whole in {**files, name: content}.items():
            if whole is not None:
                (tmp_path / each).write_bytes(whole)
        try:
            with keeper(tmp_path / "c.db", log=True) as kept:
                assert names(kept) == WANT
        except th.InputError as error:
            return int(str(error).split("its last ")[1].split(" commits are missing")[0])
        return 0

    return files, missed


def test_a_log_that_lost_commits_is_refused(crash):
    files, missed = crash
    wal = files["c.db-wal"]
    assert missed("c.db-wal", wal) == 0
    lost = [missed("c.db-wal", wal[:size]) for size in range(0, len(wal), 211)]
    assert lost == sorted(lost, reverse=True)
    assert set(lost) == {1, 2, 3}
    assert missed("c.db-wal", None) == 3


def test_a_flipped_bit_of_a_log_is_refused(crash):
    files, missed = crash
    wal = files["c.db-wal"]
    lost = []
    for place in range(0, len(wal), 197):
        broken = bytearray(wal)
        broken[place] ^= 4
        lost.append(missed("c.db-wal", bytes(broken)))
    assert set(lost) == {1, 2, 3}


def test_a_number_of_commits_that_is_not_whole_says_nothing(crash):
    files, missed = crash
    for content in (None, b"", bytes(12), files["c.db-commits"][:7]):
        assert missed("c.db-commits", content) == 0


FORKED = """
import os, sys
from thresher.keeper import Keeper
kept = Keeper(sys.argv[1], "CREATE TABLE cell (name TEXT)", kind="c", what="c", log=sys.argv[2] == "True")
kept.begin()
kept.do("INSERT INTO cell VALUES ('a')")
if os.fork() == 0:
    kept.close()
    del kept
    sys.exit()  # Python frees all that is left
os.wait()
kept.commit()
kept.begin()
kept.do("INSERT INTO cell VALUES ('b')")
kept.commit()
os._exit(7)  # no time to close
"""


def test_a_forked_process_ends_without_harm(log, tmp_path):
    command = [sys.executable, "-c", FORKED, str(tmp_path / "c.db"), str(log)]
    done = waits.run(command)
    assert done.returncode == 7, done.stderr
    with Keeper(
        tmp_path / "c.db", "CREATE TABLE cell (name TEXT)", kind="c", what="c", log=log
    ) as kept:
        assert names(kept) == ["a", "b"]


def test_a_full_disk_is_an_error_and_loses_nothing_that_was_committed(log, tmp_path):
    with keeper(tmp_path / "c.db", log=log) as kept:
        put(kept, "a")
        kept.do("PRAGMA max_page_count = 10")
        with pytest.raises(th.InputError, match="cannot be used: database or disk is full"):
            put(kept, *["b" * 1000] * 100)
        assert names(kept) == ["a"]
        put(kept, "c")
    with keeper(tmp_path / "c.db", log=log) as kept:
        assert names(kept) == ["a", "c"]


def test_closing_twice_does_no_harm_to_the_next(log, tmp_path):
    first = keeper(tmp_path / "c.db", log=log)
    first.close()
    with keeper(tmp_path / "c.db", log=log) as kept:
        put(kept, "a")
        there = sorted(tmp_path.iterdir())
        first.close()
        assert sorted(tmp_path.iterdir()) == there
