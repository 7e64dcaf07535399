"""A ledger that was changed by hand, copied, replaced or deleted is found out."""

from __future__ import annotations

import errno
import math
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ledgers import make, raw, untie

from thresher.errors import BudgetError, InputError
from thresher.privacy.accountants import Cost
from thresher.privacy.cap import SCALE
from thresher.privacy.chain import ALL, INSERT
from thresher.privacy.entries import Entry, _digest
from thresher.privacy.ledger import Ledger, Receipt
from thresher.privacy.witness import WitnessFile


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
    check_all_refuse(ledger, message)


def check_all_refuse(ledger, message):
    """Whatever a ledger is asked, it looks at all entries first."""
    for use in (
        ledger.verify,
        ledger.spent,
        ledger.remaining,
        ledger.entries,
        ledger.__len__,
        lambda: ledger.stored("a"),
        lambda: ledger.charge("c", Cost(epsilon=0.01), {}),
        lambda: ledger.complete("a", Receipt(1, ""), {}),
        lambda: ledger.release("a", Cost(epsilon=0.01), {}, pytest.fail),
    ):
        with pytest.raises(BudgetError, match=message):
            use()
    with pytest.raises(InputError, match=message):
        Ledger.open(ledger.path)


REDONE = {  # entries 1 to 4 are a charge and a release of "ask a", and of "ask b"
    "cost": (3, '"epsilon":300000000000000000000000', '"epsilon":1'),
    "kind": (3, "charge", "cap"),
    "request": (2, "ask a", "ask c"),
    "answer": (2, "17", "18"),
}


@pytest.mark.parametrize("change", REDONE)
@pytest.mark.parametrize("witness", [True, False], ids=["witness", "no witness"])
def test_a_changed_entry_is_found_though_its_hash_was_redone(path, change, witness):
    seq, old, new = REDONE[change]
    ledger = make(path)
    for request in ("ask a", "ask b"):
        ledger.release(request, Cost(epsilon=0.3), {}, lambda _: {"noisy": 17})
    untie(path)
    if not witness:
        Path(f"{path}.witness").unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        row = connection.execute(ALL).fetchall()[seq]
        fields = (seq, *(field.replace(old, new) for field in row[1:5]), row[5])
        assert fields != row[:-1]
        connection.execute("DELETE FROM entry WHERE seq = ?", [seq])
        connection.execute(INSERT, (*fields, _digest(fields)))
    check_all_refuse(ledger, f"entry {seq + 1} .* does not follow entry {seq}")


SCHEMAS = {
    "a trigger less": ["DROP TRIGGER no_delete"],
    "no index": ["DROP INDEX one_release"],
    "a trigger more": [
        "CREATE TRIGGER gift AFTER INSERT ON entry BEGIN UPDATE entry SET time = 'now'; END"
    ],
    "a table more": ["CREATE TABLE entries (seq)"],
    "a view": [
        "ALTER TABLE entry RENAME TO hidden",
        "CREATE VIEW entry AS SELECT * FROM hidden",
    ],
    "another check": [
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'time TEXT NOT NULL', 'time TEXT')",
    ],
}


@pytest.mark.parametrize("change", SCHEMAS)
def test_a_table_that_is_not_ours_is_found_though_its_entries_are_right(path, change):
    ledger = make(path)
    ledger.release("a", Cost(epsilon=0.3), {}, lambda _: {"noisy": 17})
    raw(path, *SCHEMAS[change])
    check_all_refuse(ledger, "the tables or triggers of .* were changed")


@pytest.mark.parametrize(
    "cost",
    [
        {"epsilon": -SCALE},
        {"epsilon": 0.5},
        {"epsilon": True},
        {"epsilon": "1"},
        {"gift": 1},
        [],
        None,
    ],
    ids=repr,
)
def test_a_cost_that_no_charge_can_have_is_found_though_its_hash_is_right(path, cost):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=0.8), {})
    forge(path, "charge", "b", {"cost": cost, "about": {}})
    for use in (ledger.verify, ledger.spent, lambda: ledger.charge("c", Cost(epsilon=0.5), {})):
        with pytest.raises(BudgetError, match="entry 2 has a cost that cannot be read"):
            use()


def test_a_second_cap_is_found_though_its_hash_is_right(path):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=0.8), {})
    forge(path, "cap", "", {**ledger.entries()[0]["about"], "epsilon": 9.0})
    for use in (ledger.verify, ledger.spent, lambda: ledger.charge("c", Cost(epsilon=0.5), {})):
        with pytest.raises(BudgetError, match="entry 2 is neither a charge nor a first release"):
            use()


def forge(path, kind, request, content):
    """Append an entry with a right hash, past the library."""
    with closing(sqlite3.connect(path)) as connection, connection:
        last = Entry(*connection.execute(ALL).fetchall()[-1])
        entry = Entry.after(last, kind, request, {**content, "witnessed": True})
        connection.execute(INSERT, entry)


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
    raw(path, INSERT, values=stray)
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
        InputError, match="older than its witness ledger.db.witness.*restore the newest"
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


NO_WITNESS = "has no witness .*witness, so it may be an older copy, and nothing was charged"


def test_a_ledger_moved_without_its_witness_is_read_but_charged_only_after_an_adoption(path):
    ledger = make(path)
    ledger.release("a", Cost(epsilon=0.1), {}, lambda _: {"n": 1})
    assert ledger.verify().witnessed
    moved = path.with_name("moved.db")
    shutil.copy(path, moved)
    copy, before = Ledger.open(moved), moved.read_bytes()
    assert (copy.remaining(), copy.spent(), len(copy)) == (0.9, Cost(epsilon=0.1), 1)
    assert copy.release("a", Cost(epsilon=0.1), {}, pytest.fail) == ({"n": 1}, False)
    assert not copy.witnessed
    assert not copy.verify().witnessed
    for use in (
        lambda: copy.charge("b", Cost(epsilon=0.1), {}),
        lambda: copy.release("b", Cost(epsilon=0.1), {}, pytest.fail),
        lambda: copy.complete("a", Receipt(1, ""), {}),
        copy.check_witness,
    ):
        with pytest.raises(InputError, match=f"{NO_WITNESS}.*Ledger.adopt"):
            use()
    assert moved.read_bytes() == before
    adopted = Ledger.adopt(moved)
    adopted.charge("b", Cost(epsilon=0.1), {})
    copy.charge("c", Cost(epsilon=0.1), {})
    assert copy.witnessed
    found = copy.verify()
    assert (found.witnessed, found.adopted, found.entries) == (False, 1, 6)
    assert [each["kind"] for each in copy.entries()] == ["cap", "charge", "release", "adoption", "charge", "charge"]  # fmt: skip
    assert (copy.spent(), len(copy)) == (Cost(epsilon=0.3), 3)
    assert ledger.verify().witnessed
    with pytest.raises(InputError, match="has its witness: there is nothing to adopt"):
        Ledger.adopt(moved)
    with pytest.raises(InputError, match="there is no ledger"):
        Ledger.adopt(path.with_name("none.db"))


@pytest.mark.parametrize("charges", [0, 2])
def test_an_old_copy_whose_witness_was_deleted_does_not_charge_again(path, charges):
    ledger, old = make(path), path.with_name("old")
    for number in range(charges):
        ledger.charge(f"{number}", Cost(epsilon=0.1), {})
    shutil.copy(path, old)  # as it was created, too
    ledger.charge("late", Cost(epsilon=0.5), {})
    shutil.copy(old, path)
    Path(f"{path}.witness").unlink()
    with pytest.raises(InputError, match=NO_WITNESS):
        Ledger.open(path).charge("again", Cost(epsilon=0.5), {})
    assert not Path(f"{path}.witness").exists()


def test_a_witness_that_vanishes_while_a_charge_is_written_is_missed(path, monkeypatch):
    ledger = make(path)
    check = WitnessFile.check_step

    def vanish(self):
        check(self)
        self.path.unlink()

    monkeypatch.setattr(WitnessFile, "check_step", vanish)
    with pytest.raises(InputError, match=NO_WITNESS):
        ledger.release("a", Cost(epsilon=0.1), {}, pytest.fail)


def test_a_rollback_of_both_files_is_found_by_a_recorded_hash_alone(path):
    """What docs/privacy.md says of it: nothing on the disk is left to tell."""
    ledger = make(path)
    early = ledger.charge("a", Cost(epsilon=0.1), {})
    both = (path, Path(f"{path}.witness"))
    for file in both:
        shutil.copy(file, file.with_name(f"old-{file.name}"))
    late = ledger.charge("b", Cost(epsilon=0.9), {})
    for file in both:
        shutil.copy(file.with_name(f"old-{file.name}"), file)
    rolled = Ledger.open(path)
    assert rolled.verify(head=early.head).witnessed
    with pytest.raises(BudgetError, match="replaced by another ledger or by an older copy"):
        rolled.verify(head=late.head)
    rolled.charge("b again", Cost(epsilon=0.9), {})
    with pytest.raises(BudgetError, match="replaced by another ledger or by an older copy"):
        rolled.verify(head=late.head)


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


# --- what could go wrong after a charge is tried before it


def test_a_step_that_was_left_behind_is_not_taken_for_one_of_a_new_ledger(path):
    left = path.with_name(f"{path.name}.witness.1")
    left.write_text("{}")
    with pytest.raises(InputError, match=rf"{left.name} says that there was a ledger here"):
        make(path)
    left.unlink()
    make(path).charge("a", Cost(epsilon=0.1), {})


def test_a_name_that_leaves_no_room_for_steps_is_refused_before_there_is_a_ledger(tmp_path):
    path = tmp_path / ("l" * 240)
    with pytest.raises(InputError, match="shorter name"):
        make(path)
    assert not list(tmp_path.iterdir())


def test_a_witness_that_cannot_be_renewed_costs_nothing(path, monkeypatch):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=0.1), {})

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "touch", full)
        with pytest.raises(InputError, match="nothing was spent"):
            ledger.charge("b", Cost(epsilon=0.1), {})
    assert ledger.spent().epsilon == 0.1
    ledger.charge("b", Cost(epsilon=0.1), {})


def test_a_ledger_may_be_read_by_those_who_may_read_other_new_files(path):
    mask = os.umask(0o022)
    try:
        make(path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("kind", "cost", "wanted"),
    [("gaussian", Cost(mu_squared=0.1), Cost(mu_squared=0.3)),
     ("basic", Cost(epsilon=0.1, delta=1e-6), Cost(epsilon=0.2, delta=(1 + math.exp(0.1)) * 1e-6))],
)  # fmt: skip
def test_charges_of_owners_that_were_too_low_count_for_what_is_proved(path, kind, cost, wanted):
    terms = {"delta": 1e-4, "epsilon": 3.0, "adjacency": "replace-one", "filter": kind}
    ledger = make(path, **terms)
    about = {"unit": "owner", "mechanism": "table"}
    ledger.charge("old", cost, about)
    spent = ledger.spent()
    for name in ("mu_squared", "epsilon", "delta"):
        assert getattr(spent, name) == pytest.approx(getattr(wanted, name), rel=1e-9)
        assert getattr(spent, name) >= getattr(wanted, name) * (1 - 1e-15)
    ledger.charge("new", cost, about | {"epsilon_replace_one_point": 1.0})
    ledger.charge("points", cost, {"unit": "point", "mechanism": "table"})
    more = ledger.spent()
    for name in ("mu_squared", "epsilon", "delta"):
        assert getattr(more, name) - getattr(spent, name) == pytest.approx(2 * getattr(cost, name))
