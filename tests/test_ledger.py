"""The ledger: real files, real processes, real kills."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import runpy
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.errors import BudgetError, InputError
from thresher.privacy import chain as chain_module
from thresher.privacy.accountants import Cost, check_filter, gaussian_delta, gaussian_mu
from thresher.privacy.cap import SCALE, Cap, Units
from thresher.privacy.chain import ALL, INSERT, Chain, Entry
from thresher.privacy.ledger import Ledger, Receipt, Verified

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
PROCESSES = multiprocessing.get_context(METHOD)
PROCESSES.set_forkserver_preload(["hypothesis.strategies", "pytest", "thresher.privacy.ledger"])
PATIENCE = 60  # seconds; no test waits that long unless something is wrong


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def make(path, epsilon=1.0, delta=0.0, **terms):
    return Ledger.create(path, epsilon=epsilon, delta=delta, **terms)


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


def raw(path, *statements, values=()):
    """Run SQL on the file, as somebody with an editor would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement, values)


def untie(path):
    raw(path, *(f"DROP TRIGGER {name}" for name in ("no_update", "no_delete", "no_replace")))


# --- terms


def test_a_new_ledger_has_its_terms_and_nothing_spent(path):
    made = Ledger.create(
        path, epsilon=1, delta=1e-6, adjacency="replace-one", unit="owner", data_set="clinic"
    )
    for ledger in (made, Ledger.open(path), Ledger.open(str(path))):
        assert (ledger.epsilon, ledger.delta) == (1.0, 1e-6)
        assert (ledger.adjacency, ledger.unit, ledger.data_set) == (
            "replace-one",
            "owner",
            "clinic",
        )
        assert ledger.path == path.resolve()
        assert ledger.spent() == Cost()
        assert ledger.remaining() == 1.0
        assert len(ledger) == 0
        assert ledger  # length 0, yet there
        assert repr(ledger) == "Ledger(ledger.db, epsilon=1, delta=1e-06, replace-one, owner)"
        with pytest.raises(AttributeError):
            ledger.epsilon = 2.0
    assert {file.name for file in path.parent.iterdir()} == {"ledger.db", "ledger.db.witness"}


@pytest.mark.parametrize(
    ("terms", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": -1e-9}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"adjacency": "both"}, "adjacency"),
        ({"unit": "row"}, "unit"),
        ({"data_set": 7}, "data_set"),
    ],
)
def test_terms_that_cannot_be_are_refused_by_name_and_leave_no_file(path, terms, name):
    with pytest.raises(InputError, match=f"{name} must be"):
        Ledger.create(path, **{"epsilon": 1.0, "delta": 1e-6, **terms})
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("wrong", ["", None, 7, b"ledger.db"])
def test_a_path_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match="path must be"):
        make(wrong)
    with pytest.raises(InputError, match="path must be"):
        Ledger.open(wrong)


def test_a_ledger_is_created_once(path):
    make(path).charge("a", Cost(epsilon=0.5), {})
    with pytest.raises(
        InputError, match=r"exists already, and a cap is fixed forever: use Ledger\.open"
    ):
        make(path, epsilon=9)
    assert Ledger.open(path).spent() == Cost(epsilon=0.5)
    with pytest.raises(InputError, match="folder does not exist"):
        make(path.parent / "nowhere" / "ledger.db")


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
    assert all("exists already" in message for message in refused)
    assert Ledger.open(path).verify().witnessed
    assert len(list(path.parent.iterdir())) == 2


def run_threads(count, target):
    threads = [threading.Thread(target=target) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def test_a_creation_that_fails_leaves_nothing(path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(chain_module, "_put", fail)
    with pytest.raises(InputError, match="cannot create .*disk full"):
        make(path)
    assert list(path.parent.iterdir()) == []


def test_a_file_system_without_links_will_do(path, monkeypatch):
    def refuse(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    make(path).charge("a", Cost(epsilon=0.5), {})
    with pytest.raises(InputError, match="exists already"):
        make(path)
    assert Ledger.open(path).verify().entries == 2


def test_what_is_no_ledger_is_not_opened_and_not_changed(path):
    with pytest.raises(InputError, match=r"there is no ledger .*: Ledger\.create makes a new one"):
        Ledger.open(path)
    for content in (b"", b"not a ledger, but long enough to be taken for a file of some kind" * 99):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not a ledger|not a database"):
            Ledger.open(path)
        assert path.read_bytes() == content
    path.unlink()
    raw(path, "PRAGMA journal_mode = WAL", "CREATE TABLE entry (seq)")
    content = path.read_bytes()
    with pytest.raises(InputError, match="is not a ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_a_ledger_of_another_format_is_not_opened(path):
    Chain.create(path, "cap", {"format": "thresher.ledger/2"})
    with pytest.raises(InputError, match="is not a ledger of the format thresher.ledger/1"):
        Ledger.open(path)


def test_a_closed_ledger_is_closed(path):
    with make(path) as ledger:
        ledger.charge("a", Cost(epsilon=0.1), {})
    with pytest.raises(InputError, match="is closed"):
        ledger.spent()
    assert repr(ledger).startswith("Ledger(ledger.db")
    ledger.close()


# --- charges and releases


def test_the_charge_is_durable_before_noise_is_drawn(path):
    ledger = make(path)

    def draw(receipt):
        other = Ledger.open(path)
        assert other.spent() == Cost(epsilon=0.25)
        assert other.stored("a") is None
        assert other.verify(head=receipt.head).head == receipt.head
        return {"seq": receipt.seq}

    assert ledger.release("a", Cost(epsilon=0.25), {"version": "1"}, draw) == ({"seq": 1}, True)


def test_a_commit_waits_for_the_disk(path):
    with make(path)._chain()._connected() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_the_same_request_gets_the_same_answer_free(path):
    ledger = make(path)
    cost, answers = Cost(epsilon=0.4), iter([{"a": (1, 2.5)}, {"a": (3, 4.5)}])
    first = ledger.release("a", cost, {}, lambda _: next(answers))
    assert first == ({"a": [1, 2.5]}, True)
    for _ in range(3):
        assert Ledger.open(path).release("a", cost, {}, lambda _: next(answers)) == (
            first[0],
            False,
        )
    assert len(ledger) == 1
    assert ledger.stored("a") == first[0]
    assert ledger.stored("b") is None
    assert ledger.release("b", cost, {}, lambda _: next(answers)) == ({"a": [3, 4.5]}, True)
    assert ledger.spent() == Cost(epsilon=0.8)


def test_what_does_not_fit_is_refused_with_the_ways_out_and_costs_nothing(path):
    ledger = make(path, data_set="clinic")
    ledger.charge("a", Cost(epsilon=0.8), {})
    before = path.read_bytes()
    drawn = []
    with pytest.raises(BudgetError) as refused:
        ledger.release("b", Cost(epsilon=0.5), {}, drawn.append)
    assert str(refused.value) == (
        "a release of epsilon=0.5 does not fit: the ledger of 'clinic' has epsilon=0.2 of 1.0 left, "
        "delta=0 of 0; ask for a smaller epsilon, or protect new data with a new ledger"
    )
    assert drawn == []
    assert path.read_bytes() == before
    ledger.charge("b", Cost(epsilon=0.2), {})
    assert ledger.remaining() == 0.0


def test_a_refusal_speaks_of_gaussian_noise_in_epsilons(path):
    ledger = make(path, delta=1e-6)
    ledger.charge("a", Cost(mu_squared=gaussian_mu(0.8, 1e-6) ** 2), {})
    left = ledger.remaining()
    with pytest.raises(
        BudgetError, match=rf"epsilon=0\.7 does not .* ledger\.db has epsilon={left} of 1\.0"
    ):
        ledger.charge("b", Cost(mu_squared=gaussian_mu(0.7, 1e-6) ** 2), {})
    with pytest.raises(BudgetError, match="sampled release does not fit .* filter='basic'"):
        ledger.charge("b", Cost(epsilon=0.5, delta=1e-6), {})
    assert len(ledger) == 1


def test_decimals_add_up_as_people_add_them(path):
    ledger = make(path, epsilon=0.3)
    for request in "abc":
        ledger.charge(request, Cost(epsilon=0.1), {})
    assert ledger.spent() == Cost(epsilon=0.3)
    with pytest.raises(BudgetError):
        ledger.charge("d", Cost(epsilon=1e-20), {})


def test_what_remains_is_rounded_down_from_the_exact_number(path):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=1e-20), {})
    assert ledger.remaining() == 0.999999999
    ledger.charge("b", Cost(epsilon=ledger.remaining()), {})


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-5, 0.1])
def test_one_gaussian_release_may_take_the_whole_cap(epsilon, delta):
    cap = Cap(epsilon, delta, "add-remove", "point", "", "gaussian")
    whole = Units.of(Cost(mu_squared=gaussian_mu(epsilon, delta) ** 2))
    assert cap.fits(whole)
    assert cap.left(Units()) == epsilon
    assert cap.left(whole) < 1e-3 * epsilon


@given(share=st.floats(0, 1), epsilon=st.floats(0.01, 20), digits=st.integers(2, 12))
@settings(max_examples=30)
def test_what_remains_fits_and_a_little_more_does_not(share, epsilon, digits):
    cap = Cap(epsilon, 10.0**-digits, "add-remove", "point", "", "gaussian")
    spent = Units.of(Cost(mu_squared=share * gaussian_mu(epsilon, cap.delta) ** 2))
    left = cap.left(spent)
    for more, fits in ((left, True), (left * (1 + 1e-6) + 2e-6, False)):
        if 0 < more < epsilon:
            asked = Units.of(Cost(mu_squared=gaussian_mu(more, cap.delta) ** 2))
            assert cap.fits(spent + asked) == fits


def test_a_basic_filter_takes_no_gaussian_costs_and_adds_up_pairs(path):
    ledger = make(path, delta=1e-6, filter="basic")
    with pytest.raises(BudgetError, match="Gaussian cost does not fit"):
        ledger.charge("a", Cost(mu_squared=1e-9), {})
    ledger.charge("a", Cost(epsilon=0.5, delta=6e-7), {})
    with pytest.raises(BudgetError, match="epsilon=0.25 and delta=6e-07 .* delta=4e-07 of 1e-06"):
        ledger.charge("b", Cost(epsilon=0.25, delta=6e-7), {})
    ledger.charge("b", Cost(epsilon=0.5, delta=4e-7), {})
    assert ledger.remaining() == 0.0


def test_the_filter_is_fixed_at_creation(path):
    assert make(path).filter == "basic"  # its delta is 0
    assert make(path.with_name("other.db"), delta=1e-6).filter == "gaussian"
    with pytest.raises(InputError, match="filter must be 'basic' where delta is 0"):
        make(path.with_name("third.db"), filter="gaussian")
    with pytest.raises(InputError, match="filter must be one of"):
        make(path.with_name("third.db"), filter="odometer")


@pytest.mark.parametrize("part", ["mu_squared", "epsilon", "delta"])
@pytest.mark.parametrize("wrong", [-1e-9, math.nan, math.inf, "1", None])
def test_costs_that_cannot_be_are_refused(path, part, wrong):
    with pytest.raises(InputError, match=rf"cost\.{part} must be a number"):
        Units.of(Cost(**{part: wrong}))


def test_arguments_that_a_ledger_cannot_hold_are_refused(path):
    ledger, cost = make(path), Cost(epsilon=0.1)
    for request in ("", None, 7):
        with pytest.raises(InputError, match="request must be a non-empty string"):
            ledger.release(request, cost, {}, dict)
    with pytest.raises(InputError, match="surrogates not allowed"):
        ledger.charge("\ud800", cost, {})
    with pytest.raises(InputError, match="cost must be a Cost, got 1"):
        ledger.charge("a", 1, {})
    for about in ({"a": math.nan}, {"a": {1}}):
        with pytest.raises(InputError, match="a ledger holds JSON only"):
            ledger.charge("a", cost, about)
    assert len(ledger) == 0


def test_a_release_is_stored_for_its_own_charge_only(path):
    ledger, cost = make(path), Cost(epsilon=0.1)
    mine, other = ledger.charge("a", cost, {}), ledger.charge("b", cost, {})
    for receipt in (other, Receipt(mine.seq, other.head), Receipt(0, mine.head), Receipt(9, "")):
        with pytest.raises(InputError, match="is not one of request 'a'"):
            ledger.complete("a", receipt, {})
    assert ledger.complete("a", mine, {"n": 1}) == {"n": 1}
    assert ledger.complete("a", mine, {"n": 2}) == {"n": 1}


def test_noise_that_could_not_be_drawn_is_paid_for(path):
    ledger = make(path)

    def fail(receipt):
        raise RuntimeError("out of entropy")

    for times in (1, 2):
        with pytest.raises(RuntimeError, match="entropy"):
            ledger.release("a", Cost(epsilon=0.3), {}, fail)
        assert len(ledger) == times
    assert ledger.release("a", Cost(epsilon=0.3), {}, lambda _: {"n": 1}) == ({"n": 1}, True)
    assert ledger.spent() == Cost(epsilon=0.9)


def test_entries_are_shown_in_order(path):
    ledger = make(path, data_set="clinic")
    ledger.release("a", Cost(epsilon=0.25, delta=0.0), {"sigma": 2}, lambda _: {"n": 1})
    cap, charge, release = ledger.entries()
    assert [entry["kind"] for entry in (cap, charge, release)] == ["cap", "charge", "release"]
    assert [entry["seq"] for entry in (cap, charge, release)] == [0, 1, 2]
    assert cap["about"]["format"] == "thresher.ledger/1"
    assert (charge["request"], charge["cost"], charge["about"]) == (
        "a",
        Cost(epsilon=0.25),
        {"sigma": 2},
    )
    assert (release["cost"], release["about"]["charge"]) == (None, 1)
    assert all(entry["time"].endswith("+00:00") for entry in (cap, charge, release))


amounts = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 1e-13, 1e-25, 5e-324, 1 / 3])
costs = st.builds(Cost, mu_squared=amounts) | st.builds(
    Cost, epsilon=amounts, delta=amounts.map(lambda d: d * 1e-6)
)


@given(cost=costs)
def test_units_are_rounded_up_and_by_less_than_one(cost):
    units = Units.of(cost)
    for part in ("mu_squared", "epsilon", "delta"):
        exact, whole = Fraction(repr(getattr(cost, part))) * SCALE, getattr(units, part)
        assert exact <= whole < exact + 1


@given(
    asked=st.lists(costs, max_size=12),
    epsilon=st.floats(0.01, 10),
    delta=st.sampled_from([0, 1e-6, 0.1]),
)
def test_whatever_is_asked_what_is_accepted_is_within_the_cap(asked, epsilon, delta):
    terms = ("add-remove", "point", "", check_filter(None, delta))
    cap, spent = Cap(epsilon, delta, *terms), Units()
    exact = np.zeros(3)
    for cost in asked:
        if cap.fits(spent + Units.of(cost)):
            spent += Units.of(cost)
            exact += [cost.mu_squared, cost.epsilon, cost.delta]
            mu = math.sqrt(spent.cost.mu_squared)
            assert gaussian_delta(epsilon - spent.cost.epsilon, mu) + spent.cost.delta <= delta
            parts = (spent.cost.mu_squared, spent.cost.epsilon, spent.cost.delta)
            assert np.all(np.array(parts) >= exact * (1 - 1e-15))


@given(asked=st.lists(costs, max_size=5))
@settings(max_examples=10)
def test_a_ledger_accepts_what_its_cap_says(asked, tmp_path_factory):
    ledger = make(tmp_path_factory.mktemp("any") / "ledger.db", epsilon=1.0, delta=1e-2)
    spent = Units()
    for i, cost in enumerate(asked):
        if ledger._cap.fits(spent + Units.of(cost)):
            ledger.charge(str(i), cost, {})
            spent += Units.of(cost)
        else:
            with pytest.raises(BudgetError, match="does not fit"):
                ledger.charge(str(i), cost, {})
    assert ledger.spent() == spent.cost
    assert ledger.remaining() == ledger._cap.left(spent)


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


# --- changes by hand


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET body = '{}' WHERE seq = 1",
        "UPDATE OR REPLACE entry SET seq = 1 WHERE seq = 2",
        "DELETE FROM entry",
        "INSERT OR REPLACE INTO entry SELECT * FROM entry WHERE seq = 1",
        "INSERT OR REPLACE INTO entry SELECT 3, kind, time, request, '{}', previous, hash FROM entry WHERE seq = 2",
        "INSERT INTO entry SELECT 9, kind, time, 'b', body, previous, hash FROM entry WHERE seq = 1",
        "INSERT INTO entry SELECT 3, 'gift', time, 'b', body, previous, hash FROM entry WHERE seq = 1",
    ],
)
def test_the_file_itself_refuses_changes(path, statement):
    ledger = make(path)
    ledger.release("a", Cost(epsilon=0.5), {}, lambda _: {"n": 1})
    with pytest.raises(sqlite3.IntegrityError, match="append-only|CHECK"):
        raw(path, statement)
    assert ledger.verify().entries == 3


CHANGES = {
    "cap": (
        "UPDATE entry SET body = replace(body, '\"epsilon\":1.0', '\"epsilon\":9.0') WHERE seq = 0",
        "entry 0 .* was changed",
    ),
    "cost": (
        "UPDATE entry SET body = replace(body, '\"epsilon\":3', '\"epsilon\":1') WHERE seq = 1",
        "entry 1 .* was changed",
    ),
    "answer": (
        "UPDATE entry SET body = replace(body, '17', '18') WHERE seq = 2",
        "entry 2 .* was changed",
    ),
    "bytes": ("UPDATE entry SET body = CAST(body AS BLOB) WHERE seq = 2", "entry 2 .* was changed"),
    "time": ("UPDATE entry SET time = '2020-01-01' WHERE seq = 3", "entry 3 .* was changed"),
    "hash": ("UPDATE entry SET hash = '0' WHERE seq = 4", "entry 4 .* was changed"),
    "first": ("DELETE FROM entry WHERE seq = 0", "entry 0 .* is missing"),
    "middle": ("DELETE FROM entry WHERE seq = 3", "entry 3 .* is missing"),
    "last": ("DELETE FROM entry WHERE seq = 4", "older than its witness"),
    "all": ("DELETE FROM entry", "entry 0 .* is missing"),
    "closed gap": (
        "DELETE FROM entry WHERE seq = 1; UPDATE entry SET seq = seq - 1 WHERE seq > 1",
        "entry 1 .* was changed",
    ),
    "swapped": (
        "UPDATE entry SET seq = 99 WHERE seq = 1; UPDATE entry SET seq = 1 WHERE seq = 3; UPDATE entry SET seq = 3 WHERE seq = 99",
        "entry 1 .* was changed",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_behind_its_back_are_found(path, change):
    statements, message = CHANGES[change]
    ledger = make(path)
    for request in "ab":
        ledger.release(request, Cost(epsilon=0.3), {}, lambda _: {"noisy": 17})
    untie(path)
    raw(path, *statements.split(";"))
    with pytest.raises(BudgetError, match=message):
        ledger.verify()
    if change not in {"answer", "bytes"}:  # an answer that was changed has no part in a charge
        with pytest.raises(BudgetError):
            ledger.charge("c", Cost(epsilon=0.1), {})


def forge(path, kind, request, content):
    """Append an entry with a right hash, past the library."""
    with closing(sqlite3.connect(path)) as connection, connection:
        last = Entry(*connection.execute(ALL).fetchall()[-1])
        entry = Entry.after(last, kind, request, {**content, "witnessed": True})
        connection.execute(INSERT, entry.fields)


def test_entries_that_break_the_rules_are_found_though_their_hashes_are_right(path):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=0.8), {})
    forge(path, "release", "b", {"charge": 1, "body": {}})
    with pytest.raises(BudgetError, match="entry 2 is a release that no charge paid for"):
        ledger.verify()
    other = make(path.with_name("other.db"))
    other.charge("a", Cost(epsilon=0.8), {})
    forge(other.path, "charge", "b", {"cost": {"epsilon": SCALE // 2}, "about": {}})
    with pytest.raises(BudgetError, match="exceed its cap"):
        other.verify()
    assert other.remaining() == 0.0


def test_an_entry_that_follows_another_chain_is_found(path):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=0.1), {})
    untie(path)
    stray = Entry.after(Entry(0, "cap", "", "", "{}", "", "f" * 64), "charge", "a", {})
    raw(path, "DELETE FROM entry WHERE seq = 1")
    raw(path, INSERT, values=stray.fields)
    with pytest.raises(BudgetError, match="entry 1 .* does not follow entry 0"):
        ledger.verify()


# --- copies, and files that are gone


def test_an_older_copy_is_refused_until_the_newest_is_back(path):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=0.1), {})
    old, new = path.with_name("old"), path.with_name("new")
    shutil.copy(path, old)
    ledger.charge("b", Cost(epsilon=0.9), {})
    shutil.copy(path, new)
    shutil.copy(old, path)
    with pytest.raises(
        InputError, match="older than its witness ledger.db.witness.*put back the newest"
    ):
        Ledger.open(path)
    for use in (ledger.verify, ledger.spent, lambda: ledger.charge("c", Cost(), {})):
        with pytest.raises(BudgetError, match="older than its witness"):
            use()
    assert path.read_bytes() == old.read_bytes()
    shutil.copy(new, path)
    assert Ledger.open(path).verify().entries == 3


def test_a_ledger_that_was_deleted_is_missed(path):
    ledger = make(path)
    path.unlink()
    for use in (ledger.verify, lambda: Ledger.open(path)):
        with pytest.raises(
            InputError, match="witness ledger.db.witness says that there was one: put it back"
        ):
            use()
    with pytest.raises(InputError, match="ledger.db.witness says that there was a ledger here"):
        make(path)
    Path(f"{path}.witness").rename(f"{path}-journal")
    with pytest.raises(InputError, match="ledger.db-journal says that there was a ledger here"):
        make(path)


def test_a_ledger_moved_without_its_witness_works_and_says_so_forever(path):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=0.1), {})
    assert ledger.verify().witnessed
    moved = path.with_name("moved.db")
    shutil.copy(path, moved)
    copy = Ledger.open(moved)
    assert not copy.verify().witnessed
    copy.charge("b", Cost(epsilon=0.1), {})
    copy.charge("c", Cost(epsilon=0.1), {})
    assert moved.with_name("moved.db.witness").exists()
    assert not copy.verify().witnessed
    assert ledger.verify().witnessed


def test_a_recorded_hash_tells_an_older_copy_even_without_a_witness(path):
    ledger = make(path)
    early = ledger.charge("a", Cost(epsilon=0.1), {})
    old = path.with_name("old.db")
    shutil.copy(path, old)
    late = ledger.charge("b", Cost(epsilon=0.1), {})
    for receipt in (early, late):
        assert ledger.verify(head=receipt.head).head == late.head
    assert Ledger.open(old).verify(head=early.head).head == early.head
    with pytest.raises(BudgetError, match="replaced by another ledger or by an older copy"):
        Ledger.open(old).verify(head=late.head)


def test_a_ledger_put_in_the_place_of_an_open_one_is_noticed(path):
    ledger = make(path)
    other = make(path.with_name("other.db"), epsilon=9)
    Path(f"{path}.witness").unlink()
    other.path.replace(path)
    with pytest.raises(BudgetError, match="replaced by another ledger after it was opened"):
        ledger.charge("a", Cost(epsilon=0.1), {})
    assert Ledger.open(path).epsilon == 9


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"entries": null, "head": ""}', b"\xff"])
def test_a_damaged_witness_is_not_taken_for_none(path, content):
    ledger = make(path)
    Path(f"{path}.witness").write_bytes(content)
    with pytest.raises(InputError, match="ledger.db.witness is damaged: put back a copy of it"):
        ledger.charge("a", Cost(epsilon=0.1), {})


def test_a_link_and_its_file_are_one_ledger(path):
    make(path)
    link = path.with_name("link.db")
    link.symlink_to(path)
    Ledger.open(link).charge("a", Cost(epsilon=0.1), {})
    assert Ledger.open(path).verify() == Ledger.open(link).verify()
    assert Ledger.open(path).verify().witnessed


if __name__ == "worker":  # a process that `start` began; the runner may not be able to import us
    name, pipe, values = globals()["WORK"]
    globals()[name](pipe, *values)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "no/folder/ledger.db"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="cannot create|path must be"):
        make(str(tmp_path / name))
