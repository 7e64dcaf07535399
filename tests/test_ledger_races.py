"""A ledger with many users at once, and users that are killed: real processes, real kills."""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import sys
import threading
import time
from pathlib import Path

import pytest
import waits
from ledgers import make

from thresher.errors import BudgetError, InputError
from thresher.privacy.accountants import Cost
from thresher.privacy.ledger import Ledger, Verified

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
PROCESSES = multiprocessing.get_context(METHOD)
PROCESSES.set_forkserver_preload(["hypothesis.strategies", "pytest", "thresher.privacy.ledger"])
PATIENCE = 60  # seconds; no test waits that long unless something is wrong


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def start(target, *values):
    """A process that runs `target(pipe, *values)`, and our end of its pipe."""
    ours, theirs = PROCESSES.Pipe()
    work = {"WORK": (target.__name__, theirs, values)}
    process = PROCESSES.Process(target=runpy.run_path, args=(__file__, work, "worker"), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def hear(pipe):
    assert pipe.poll(PATIENCE)
    return pipe.recv()


def hear_all(pipe):
    """What a process that is gone had said."""
    heard = []
    try:
        while pipe.poll(0):
            heard.append(pipe.recv())
    except (EOFError, OSError):  # also half a message, cut off by a kill
        pass
    return heard


def finish(process, pipe):
    process.join(PATIENCE)
    assert process.exitcode is not None
    pipe.close()
    process.close()


def kill(process):
    process.kill()
    process.join(PATIENCE)
    assert process.exitcode == -9


def test_of_eight_who_create_at_once_one_succeeds(path):
    made, refused = [], []

    def create():
        try:
            made.append(make(path))
        except InputError as error:
            refused.append(str(error))

    run_threads(8, create)
    assert len(made) == 1
    assert len(refused) == 7
    assert all("already exists" in message for message in refused)
    assert Ledger.open(path).verify().witnessed
    assert len(list(path.parent.iterdir())) == 2


def run_threads(count, target):
    waits.together(*[target] * count)


# --- many at once


def charge_often(pipe, path, name, attempts):
    """Charge 0.01 again and again; say which receipts were given."""
    with Ledger.open(path) as ledger:
        for i in range(attempts):
            try:
                receipt = ledger.charge(f"{name}-{i}", Cost(epsilon=0.01), {})
            except BudgetError:
                break
            pipe.send(receipt)
    pipe.send(None)


def test_eight_processes_at_once_spend_the_cap_exactly(path):
    """Eight processes ask 8 times each for 0.01 of 0.5: of 64, 50 fit."""
    make(path, epsilon=0.5)
    running = [start(charge_often, path, name, 8) for name in range(8)]
    receipts = []
    for process, pipe in running:
        receipts += iter(lambda pipe=pipe: hear(pipe), None)
        finish(process, pipe)
    ledger = Ledger.open(path)
    assert sorted(receipt.seq for receipt in receipts) == list(range(1, 51))
    assert ledger.spent() == Cost(epsilon=0.5)
    verified = ledger.verify()
    assert verified == Verified(51, max(receipts, key=lambda r: r.seq).head, witnessed=True)
    assert json.loads(Path(f"{path}.witness").read_text()) == {"entries": 51, "head": verified.head}


def test_eight_threads_share_one_ledger(path):
    """Eight threads ask 4 times each for 0.05 of 1: of 32, 20 fit."""
    ledger, done = make(path), []

    def ask():
        for i in range(4):
            request = f"{threading.get_ident()}-{i}"
            try:
                done.append(
                    ledger.release(request, Cost(epsilon=0.05), {}, lambda r: {"seq": r.seq})
                )
            except BudgetError:
                return

    run_threads(8, ask)
    assert len(done) == 20
    assert ledger.spent() == Cost(epsilon=1.0)
    assert ledger.verify().entries == 41


def release_slowly(pipe, path, answer):
    def draw(receipt):
        pipe.send("charged")
        hear(pipe)
        return {"answer": answer}

    with Ledger.open(path) as ledger:
        pipe.send(ledger.release("same", Cost(epsilon=0.1), {}, draw))


def test_two_processes_with_one_request_get_one_answer(path):
    ledger = make(path)
    running = [start(release_slowly, path, answer) for answer in (1, 2)]
    assert [hear(pipe) for _, pipe in running] == ["charged"] * 2
    answers = []
    for process, pipe in running:
        pipe.send("go")
        answers.append(hear(pipe))
        finish(process, pipe)
    assert answers == [({"answer": 1}, True)] * 2
    assert [entry["kind"] for entry in ledger.entries()] == ["cap", "charge", "charge", "release"]
    assert ledger.verify().entries == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_goes_on_with_an_open_ledger(path):
    ledger = make(path)
    ledger.charge("before", Cost(epsilon=0.1), {})
    child = os.fork()
    if not child:
        try:
            ledger.charge("child", Cost(epsilon=0.1), {})
            os._exit(0)
        finally:
            os._exit(1)
    ledger.charge("parent", Cost(epsilon=0.1), {})
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert {entry["request"] for entry in ledger.entries()} == {"", "before", "child", "parent"}
    assert ledger.verify().witnessed


# --- kills


@pytest.mark.skipif(METHOD == "spawn", reason="no SIGKILL here")
def test_a_process_killed_while_it_draws_has_paid(path):
    ledger = make(path)
    process, pipe = start(release_slowly, path, 1)
    assert hear(pipe) == "charged"
    kill(process)
    finish(process, pipe)
    assert ledger.spent() == Cost(epsilon=0.1)
    assert ledger.stored("same") is None
    assert ledger.release("same", Cost(epsilon=0.1), {}, lambda _: {"n": 1}) == ({"n": 1}, True)
    assert ledger.spent() == Cost(epsilon=0.2)
    assert ledger.verify().witnessed


@pytest.mark.skipif(METHOD == "spawn", reason="no SIGKILL here")
def test_kills_at_any_moment_leave_a_ledger_in_order(path, rng):
    """Twelve processes, each killed up to 30 ms after its first charge."""
    make(path, epsilon=100)
    count = 0
    for name in range(12):
        process, pipe = start(charge_often, path, name, 1000)
        receipts = [hear(pipe)]
        time.sleep(rng.uniform(0, 0.03))
        kill(process)
        receipts += filter(None, hear_all(pipe))
        finish(process, pipe)
        ledger = Ledger.open(path)
        for receipt in receipts:  # what was said to be charged is there
            assert ledger.verify(head=receipt.head).witnessed
        assert count + len(receipts) <= len(ledger) <= count + len(receipts) + 1
        count = len(ledger)
    assert Ledger.open(path).spent().epsilon == pytest.approx(0.01 * count)
    Ledger.open(path).charge("last", Cost(epsilon=0.01), {})
    left = {file.name for file in path.parent.iterdir()} - {"ledger.db.witness.new"}
    assert left == {"ledger.db", "ledger.db.witness"}


def killed_at(line, act, path):
    """Run `act` in a process that dies, as by kill -9, before this line of our code; say if so."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    left = line

    def trace(frame, event, _):
        nonlocal left
        if Path(frame.f_code.co_filename).name not in TRACED:
            return None
        left -= event == "line"
        if left <= 0:
            os._exit(9)
        return trace

    sys.settrace(trace)
    try:
        act(path)
        os._exit(0)
    finally:
        os._exit(1)


TRACED = {"chain.py", "witness.py", "files.py", "drafts.py"}
SMALL = Cost(epsilon=1e-3)
ACTS = {
    "create": make,
    "charge": lambda path: Ledger.open(path).charge("killed", SMALL, {}),
    "adopt": Ledger.adopt,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("what", ACTS)
def test_a_kill_at_any_line_leaves_a_ledger_that_can_be_charged(path, what):
    """A process dies before every third line in turn; the next one goes on, without an adoption."""
    line = done = 0
    while not done:
        line += 3
        place = path.with_name(f"{line}")
        place.mkdir()
        mine = place / "ledger.db"
        if what != "create":
            make(mine).charge("before", SMALL, {})
        if what == "adopt":
            Path(f"{mine}.witness").unlink()
        done = not killed_at(line, ACTS[what], mine)
        ledger = make(mine) if what == "create" and not mine.exists() else Ledger.open(mine)
        if what == "adopt" and not ledger.witnessed:
            ledger = Ledger.adopt(mine)
        ledger.charge("after", SMALL, {})
        found = ledger.verify()
        assert found.witnessed == (what != "adopt")
        assert found.adopted in ((1, 2) if what == "adopt" else (0,))
        assert len(ledger) in {"create": (1,), "charge": (2, 3), "adopt": (2,)}[what]
    assert line > 100, "it was killed at many lines"


def test_a_crash_before_the_witness_is_renewed_does_no_harm(path, monkeypatch):
    ledger = make(path)
    with monkeypatch.context() as crash:
        crash.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(InputError, match="cannot be used: gone"):
            ledger.release("a", Cost(epsilon=0.1), {}, pytest.fail)
    again = Ledger.open(path)
    assert again.spent() == Cost(epsilon=0.1)
    assert again.verify().witnessed
    head = again.charge("b", Cost(epsilon=0.1), {}).head
    assert json.loads(Path(f"{path}.witness").read_text()) == {"entries": 3, "head": head}


if __name__ == "worker":  # a process that `start` began; the runner may not be able to import us
    name, pipe, values = globals()["WORK"]
    globals()[name](pipe, *values)
