"""The files of a market: who can read them, what deletions leave, and what a backup holds."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sqlalchemy")

from market_cases import hand_in, join_owners, open_task

from thresher.errors import InputError
from thresher.market import backup, database
from thresher.market.backup import back_up
from thresher.market.database import Database, sqlite_url
from thresher.market.market import Market
from thresher.market.tables import Upload
from thresher.market.tasks import close
from thresher.market.uploads import delete_rows, withdraw
from thresher.market.workers import work_once
from thresher.privacy.accountants import Cost
from thresher.privacy.ledger import Ledger


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "market"


@pytest.fixture
def no_mask():
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder):
    return {
        path.name: oct(stat.S_IMODE(path.stat().st_mode))
        for path in (folder, *folder.rglob("*"))
        if path.stat().st_mode & 0o077
    }


# --- who can read them


@pytest.mark.parametrize("before", ["nothing", "a folder", "a market"])
def test_only_the_operator_can_read_a_folder_that_was_open_to_others(folder, no_mask, before):
    if before != "nothing":
        folder.mkdir(mode=0o777)
    if before == "a market":
        old = Market.open(folder)
        with old.database.reading():  # its log and its index are there
            folder.chmod(0o777)
            for path in folder.iterdir():
                path.chmod(0o666)
            assert len(open_to_others(folder)) > 4
        old.close()
    market = Market.open(folder, epsilon=None)
    assert open_to_others(folder) == {}
    open_task(market)
    with market.database.reading(), Ledger.open(market.ledger_path) as ledger:
        ledger.charge("a", Cost(mu_squared=1e-6), {})
        ledger.charge("b", Cost(mu_squared=1e-6), {})
        names = {path.name for path in folder.iterdir()}
        assert {"market.db-wal", "market.db-shm", "ledger.db.witness", "ledger.lock"} <= names
        assert open_to_others(folder) == {}
        back_up(folder, folder / "copy")
        assert open_to_others(folder) == {}
    market.close()
    assert open_to_others(folder) == {}


def test_a_folder_that_many_users_share_is_refused(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(InputError, match="many users share it.*: name a folder of its own"):
        Market.open(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


# --- what deletions leave


def unique(rows, seed):
    """Rows as `made_up` makes them, but with all digits: no two have a number in common."""
    random = np.random.default_rng([seed, rows])
    lines = [",".join([*map(repr, row.tolist()), "sick"]) for row in random.normal(size=(rows, 3))]
    return ("\n".join(["f0,f1,f2,diagnosis", *lines]) + "\n").encode()


def traces(market, content):
    """The files of the market's folder that hold a row of this upload, as text or as numbers."""
    rows = content.splitlines()[1:]
    rows = rows[:: max(1, len(rows) // 50)]
    numbers = [float(cell) for row in rows for cell in row.split(b",")[:-1]]
    wanted = [*rows, *(struct.pack("<d", number) for number in numbers)]
    found = {}
    for path in filter(Path.is_file, market.folder.rglob("*")):
        whole = path.read_bytes()
        if held := [each for each in wanted if each in whole]:
            found[path.name] = held
    return found


@contextmanager
def users(market):
    """A second server, and readers that keep their connections: what a live market has open."""
    other = Database(sqlite_url(market.folder))
    readers = [sqlite3.connect(market.folder / "market.db") for _ in range(3)]
    for reader in readers:
        reader.execute("select count(*) from uploads").fetchone()
    with other.reading() as session:
        session.query(Upload).count()
    try:
        yield
    finally:
        for reader in readers:
            reader.close()
        other.close()


@pytest.mark.parametrize("size", [2, 30, 300], ids=["small", "usual", "large"])
def test_rows_that_are_withdrawn_replaced_or_deleted_leave_every_file(folder, size):
    market = Market.open(folder, epsilon=100.0)
    few = {
        "rows_per_owner": size,
        "owners": 3,
        "epsilon": 90.0,
        "radius": 3.0,
        "standardize": False,
    }
    buyer, task = open_task(market, **few)
    owners = join_owners(market, buyer, task, 4)
    content = {number: unique(size, number) for number in range(20)}
    with users(market):
        kept = {
            number: hand_in(market, owners[number % 4], task, each)
            for number, each in content.items()
        }
        for each in content.values():
            held = [trace for found in traces(market, each).values() for trace in found]
            assert any(b"," in trace for trace in held), "as text"
            assert any(b"," not in trace for trace in held), "as numbers"
        for number in list(range(0, 20, 3)):
            with market.database.writing() as session:
                withdraw(session, owners[number % 4], task.id, kept.pop(number).id)
            assert traces(market, content[number]) == {}, "withdrawn"
        gone, upload = kept.popitem()
        hand_in(market, owners[gone % 4], task, unique(size, 999), replaces=upload.id)
        assert traces(market, content[gone]) == {}, "replaced"
        with market.database.writing() as session:
            close(session, buyer, task.id)
        assert work_once(market, "worker")
        for place, owner in enumerate(owners):
            with market.database.writing() as session:
                assert delete_rows(session, owner, task.id) > 0
            for number in [each for each in kept if each % 4 == place]:
                assert traces(market, content[number]) == {}, "deleted"
        for each in content.values():
            assert traces(market, each) == {}
        back_up(folder, folder / "copy")
        for each in content.values():
            assert traces(market, each) == {}
    market.close()


def test_a_slow_reader_is_waited_for(folder):
    market = Market.open(folder)
    buyer, task = open_task(market)
    (owner,) = join_owners(market, buyer, task, 1)
    rows = unique(30, 5)
    upload = hand_in(market, owner, task, rows)
    with closing(sqlite3.connect(folder / "market.db", check_same_thread=False)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from uploads").fetchone()
        ending = threading.Timer(0.5, reader.rollback)
        ending.start()
        with market.database.writing() as session:
            withdraw(session, owner, task.id, upload.id)
        assert traces(market, rows) == {}
        ending.join()
    market.close()


@pytest.mark.parametrize("later", ["another change", "another server"])
def test_a_reader_that_is_too_slow_only_delays_it(folder, monkeypatch, later):
    monkeypatch.setattr(database, "LOG_WAIT", 50)
    market = Market.open(folder)
    buyer, task = open_task(market)
    (owner,) = join_owners(market, buyer, task, 1)
    rows = unique(30, 5)
    upload = hand_in(market, owner, task, rows)
    with closing(sqlite3.connect(folder / "market.db")) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from uploads").fetchone()
        started = time.monotonic()
        with market.database.writing() as session:
            withdraw(session, owner, task.id, upload.id)
        assert time.monotonic() - started < 5, "nobody waits for long"
        assert set(traces(market, rows)) & {"market.db", "market.db-wal"}
    if later == "another change":
        with market.database.writing():
            pass
    else:
        Market.open(folder).close()
    assert traces(market, rows) == {}
    market.close()


# --- what a backup holds


def test_a_charge_during_a_backup_does_not_spoil_it(folder, monkeypatch):
    market = Market.open(folder)
    ledger, copied, count = Ledger.open(market.ledger_path), backup._copied, 0

    def charge_and_copy(path, out):
        nonlocal count
        ledger.charge(f"{path.name} before", Cost(mu_squared=1e-6), {})
        made = copied(path, out)
        ledger.charge(f"{path.name} after", Cost(mu_squared=1e-6), {})
        count += 1
        return made

    monkeypatch.setattr(backup, "_copied", charge_and_copy)
    made = back_up(folder, folder.with_name("copy"))
    assert {path.name for path in made} == {"market.db", "ledger.db", "ledger.db.witness"}
    assert count >= 2
    with Ledger.open(folder.with_name("copy") / "ledger.db") as restored:
        assert restored.verify().witnessed
        assert len(restored) == len(ledger) - 1  # all but the charge after the last copy
        restored.charge("on", Cost(mu_squared=1e-6), {})
    market.close()


def test_a_market_whose_ledger_lost_its_witness_does_not_start(folder):
    Market.open(folder).close()
    (folder / "ledger.db.witness").unlink()
    with pytest.raises(InputError, match="has no witness .* may be an older copy"):
        Market.open(folder)
    Ledger.adopt(folder / "ledger.db")
    Market.open(folder).close()
