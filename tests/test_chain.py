"""A ledger that was changed by hand, copied, replaced or deleted is found out."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ledgers import make, raw, untie

from thresher.errors import BudgetError, InputError
from thresher.privacy.accountants import Cost
from thresher.privacy.cap import SCALE
from thresher.privacy.chain import ALL, INSERT, Entry
from thresher.privacy.ledger import Ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


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
