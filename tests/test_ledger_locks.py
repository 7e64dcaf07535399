"""File systems on which locks keep nobody out: SQLite with its locks switched off, real races."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import runpy
import sqlite3
from pathlib import Path

import pytest
from ledgers import make

from thresher import drafts
from thresher.errors import InputError, ThresherError
from thresher.privacy import chain as chain_module
from thresher.privacy import witness as witness_module
from thresher.privacy.accountants import Cost
from thresher.privacy.entries import Entry
from thresher.privacy.ledger import Ledger
from thresher.privacy.witness import Witness

if os.name == "nt":
    pytest.skip("SQLite has no VFS without locks here", allow_module_level=True)

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "thresher.privacy.ledger"])
PATIENCE = 60


def connect_without_locks(path, mode):
    uri = f"{path.as_uri()}?mode={mode}&vfs=unix-none"
    return sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def no_locks(monkeypatch):
    """A function that switches locks off, for ledgers that were made with them."""
    return lambda: monkeypatch.setattr(chain_module, "_connect", connect_without_locks)


@pytest.mark.skipif(not hasattr(drafts.fcntl, "F_OFD_SETLK"), reason="Linux can tell")
def test_no_ledger_is_made_where_locks_do_not_work(path, no_locks):
    no_locks()
    with pytest.raises(InputError, match="locks do not work in this folder.*use a local disk"):
        make(path)
    assert list(path.parent.iterdir()) == []


def append(chain, request):
    """Add a charge of 0.6 in two halves: checked, and not yet written."""
    stack = contextlib.ExitStack()
    page = stack.enter_context(chain.appending())
    page.append("charge", request, {"cost": {"epsilon": 6 * 10**23}, "about": {}})
    return stack


@pytest.mark.parametrize("request_", ["another", "same"])
@pytest.mark.parametrize("first", [0, 1])
def test_of_two_who_checked_before_either_wrote_one_goes_on(path, no_locks, first, request_):
    """The loser is stopped before its noise, also if both entries say the same but for a nonce."""
    ledger = make(path)
    no_locks()
    writers = [append(ledger._chain(), request) for request in ("same", request_)]
    writers[first].close()
    with pytest.raises(ThresherError, match="older than its witness|overwritten|cannot be used"):
        writers[1 - first].close()
    before = path.read_bytes()
    for use in (ledger.spent, lambda: ledger.charge("c", Cost(epsilon=0.6), {})):
        with pytest.raises(ThresherError, match="older than its witness|does not fit|cannot be"):
            use()
    assert path.read_bytes() == before


def step(path, entries):
    return Path(f"{path}.witness.{entries}")


def unwitnessed(path, monkeypatch):
    """A ledger with two entries, of which the writer of the second did not reach the witness."""
    ledger = make(path)
    with monkeypatch.context() as crash:
        crash.setattr(chain_module.WitnessFile, "advance", lambda *_: None)
        crash.setattr(chain_module, "ATTEMPTS", 1)
        with pytest.raises(InputError, match="could not be renewed"):
            ledger.charge("a", Cost(epsilon=0.1), {})
    return ledger, Witness.of(ledger._chain().read())


def witness(path):
    return json.loads(Path(f"{path}.witness").read_text())["entries"]


@pytest.mark.parametrize(
    "content", [b"", b'{"entries": 2, "he', None], ids=["empty", "half", "whole"]
)
def test_a_step_that_a_crash_broke_off_is_finished_by_the_next_writer(path, monkeypatch, content):
    ledger, reached = unwitnessed(path, monkeypatch)
    assert witness(path) == 1
    step(path, 1).write_bytes(reached.content if content is None else content)
    ledger.charge("b", Cost(epsilon=0.1), {})
    assert witness(path) == 3
    assert {file.name for file in path.parent.iterdir()} == {"ledger.db", "ledger.db.witness"}
    assert ledger.verify().witnessed


def test_a_step_to_another_entry_stops_the_writer(path, monkeypatch):
    """Somebody else's entry 1 is not in the table: it was overwritten, and may have been drawn."""
    ledger, _ = unwitnessed(path, monkeypatch)
    step(path, 1).write_bytes(Witness(2, "f" * 64).content)
    with pytest.raises(InputError, match="two processes wrote entry 1 at the same time"):
        ledger.release("b", Cost(epsilon=0.1), {}, pytest.fail)
    assert witness(path) == 1


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_a_step_that_comes_too_late_is_not_made(path, monkeypatch, moment):
    """Of two steps from one state the second is taken back, whatever state it leads to."""
    ledger, mine = unwitnessed(path, monkeypatch)
    chain = ledger._chain()
    known, entries, create = chain.witness.load(), chain.read(), witness_module._create

    def create_late(*step, **like):
        with monkeypatch.context() as others:
            others.setattr(witness_module, "_create", create)
            chain.witness.advance(known, entries)
        create(*step, **like)

    if moment == "before":
        chain.witness.advance(known, entries)
    else:
        monkeypatch.setattr(witness_module, "_create", create_late)
    other = [entries[0], Entry.after(entries[0], "charge", "other", {})]
    chain.witness.advance(known, other)
    assert chain.witness.load() == mine
    assert not step(path, 1).exists()


def race(pipe, path, name):
    """Try to draw for 0.6 of 1; say how often noise was drawn."""
    chain_module._connect = connect_without_locks
    drawn = []

    def draw(receipt):
        drawn.append(receipt.seq)
        return {"by": name}

    pipe.send("ready")
    pipe.recv()
    with contextlib.suppress(ThresherError):
        Ledger.open(path).release(name, Cost(epsilon=0.6), {}, draw)
    pipe.send(len(drawn))


def test_races_without_locks_never_draw_twice_for_one_budget(tmp_path):
    """Twelve races of three processes for 0.6 of 1: two draws would exceed it."""
    drawn = []
    for number in range(12):
        path = tmp_path / f"{number}.db"
        make(path)
        running = [start(race, path, name) for name in "abc"]
        for _, pipe in running:
            assert pipe.poll(PATIENCE)
            assert pipe.recv() == "ready"
        for _, pipe in running:
            pipe.send("go")
        drawn.append(0)
        for process, pipe in running:
            assert pipe.poll(PATIENCE)
            drawn[-1] += pipe.recv()
            process.join(PATIENCE)
        with contextlib.suppress(ThresherError):  # what was drawn stays spent
            Ledger.open(path).charge("late", Cost(epsilon=0.6), {})
            assert drawn[-1] == 0
    assert set(drawn) <= {0, 1}


def start(target, *values):
    """A process that runs `target(pipe, *values)`, and our end of its pipe."""
    ours, theirs = PROCESSES.Pipe()
    work = {"WORK": (target.__name__, theirs, values)}
    process = PROCESSES.Process(target=runpy.run_path, args=(__file__, work, "worker"), daemon=True)
    process.start()
    theirs.close()
    return process, ours


if __name__ == "worker":  # a process that `start` began
    name, pipe, values = globals()["WORK"]
    globals()[name](pipe, *values)
