"""The market without HTTP: who may do what, receipts, closing once, and pay as the library's."""

from __future__ import annotations

import json
import tempfile
import threading

import pytest
from market_cases import (  # noqa: F401
    SALT,
    cluster,
    hand_in,
    join_owners,
    made_up,
    market,
    open_task,
    terms,
)
from sqlalchemy import select

import thresher as th
from thresher.market import jobs, uploads
from thresher.market.market import Market
from thresher.market.members import add_member, authenticate, revoke, suspend
from thresher.market.receipts import check_receipt, commitment_of
from thresher.market.refusals import Refusal
from thresher.market.settlement import compute, rows_by_owner
from thresher.market.tables import Job, Line, Outcome, Task, Token, Upload
from thresher.market.tasks import close, invite, join, question_of
from thresher.market.workers import work, work_once


def test_a_token_is_known_until_it_is_revoked_and_is_not_stored(market):  # noqa: F811
    with market.database.writing() as session:
        member, text = add_member(session, "owner", "a hospital")
    with market.database.writing() as session:
        assert authenticate(session, text).id == member.id
        token = session.scalars(select(Token)).one()
        assert text.split("-")[2].encode() not in token.digest
        for wrong in (None, "", "x", text[:-1], text + "a", text.replace("-", "_"), "a-b-c"):
            with pytest.raises(Refusal, match="token is missing or not valid"):
                authenticate(session, wrong)
        suspend(session, member.id, suspended=True)
        with pytest.raises(Refusal, match="suspended"):
            authenticate(session, text)
        suspend(session, member.id, suspended=False)
        revoke(session, member, token.id)
        with pytest.raises(Refusal, match="token is missing or not valid"):
            authenticate(session, text)


def test_an_owner_who_joins_again_has_a_name(market):  # noqa: F811
    buyer, task = open_task(market)
    with market.database.writing() as session:
        owner, _ = add_member(session, "owner", "North")
        code = invite(session, buyer, task.id)
        with pytest.raises(Refusal, match="'South' cannot be used: you are 'North' already"):
            join(session, owner, code, "South")
        assert join(session, owner, code, "North")[1:] == (owner, "")


def test_rows_are_kept_with_a_receipt_and_can_be_taken_back(market):  # noqa: F811
    buyer, task = open_task(market)
    owner, other = join_owners(market, buyer, task, 2)
    content = made_up(20, 5)
    first = hand_in(market, owner, task, content)
    check_receipt(first.receipt, market.key.public_key().public_bytes_raw().hex())
    assert first.receipt["commitment"] == commitment_of(SALT, content)
    second = hand_in(market, owner, task, made_up(4, 6), replaces=first.id)
    with pytest.raises(Refusal, match="already withdrawn"):
        hand_in(market, owner, task, made_up(4, 6), replaces=first.id)
    with market.database.writing() as session:
        assert [upload.rows for upload in uploads.listed(session, owner, task.id)] == [20, 4]
        assert session.get_one(Upload, first.id).content is None
        with pytest.raises(Refusal, match="this upload does not exist"):
            uploads.withdraw(session, other, task.id, second.id)
        uploads.withdraw(session, owner, task.id, second.id)
        with pytest.raises(Refusal, match="already withdrawn"):
            uploads.withdraw(session, owner, task.id, second.id)
        with pytest.raises(Refusal, match="not joined"):
            uploads.withdraw(session, add_member(session, "owner", "late")[0], task.id, "x")
    with market.database.reading() as session:
        assert rows_by_owner(session, session.get_one(Task, task.id)) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"f0,f1,f2,diagnosis\n1,2,x,sick\n", "line 2: a feature is missing, not a number"),
        (b"f0,f1,f2,diagnosis\n1,2,3,dead\n", "its label is not a class"),
        (b"f0,f1,diagnosis\n1,2,sick\n", "does not have the columns 'f2'"),
        (b"f0,f1,f2,f3,diagnosis\n1,2,3,4,sick\n", "must not have the columns 'f3'"),
        (b"f0,f1,f2,diagnosis\n", "no rows"),
        (b"f0,f1,f2\n1,2,3\n", "diagnosis"),
        (b"", "file"),
        (b"\xff\xfe\x00", "file"),
    ],
)
def test_bad_rows_are_told_to_their_owner_and_none_is_taken(content, message):
    from thresher.market.questions import Question

    question = Question.read(terms(), made_up(50, 1), "csv")
    with pytest.raises(Refusal, match=message) as refused:
        question.rows(content, "csv")
    assert tempfile.gettempdir() not in str(refused.value)


def test_a_task_closes_once_and_pays_what_the_library_pays(market, monkeypatch):  # noqa: F811
    from thresher.privacy import dp_tknn

    source = dp_tknn.noise_source
    monkeypatch.setattr(dp_tknn, "noise_source", lambda seed: source(7))
    buyer, task = open_task(market, epsilon=30.0, owners=20, rows_per_owner=8, radius=0.6)
    owners = join_owners(market, buyer, task, 20)
    for number, owner in enumerate(owners[:-1]):
        hand_in(market, owner, task, made_up(8, 100 + number))
    with market.database.writing() as session:
        assert close(session, buyer, task.id).state == "closing"
        close(session, buyer, task.id)
        with pytest.raises(Refusal, match="the task is closed"):
            uploads.withdraw(session, owners[0], task.id, "x")
        assert len(session.scalars(select(Job)).all()) == 1
    assert work_once(market, "worker 1")
    assert not work_once(market, "worker 2")
    with market.database.reading() as session:
        ended = session.get_one(Task, task.id)
        owned = rows_by_owner(session, ended)
        outcome = session.get_one(Outcome, task.id)
        lines = {line.owner: line.line for line in session.scalars(select(Line))}
    assert ended.state == "paid", ended.reason
    again = compute(None, question_of(ended), task.id, owned, seed=7)
    expected = {line.owner: line.cents for line in again.payout.lines}
    assert {owner: line["cents"] for owner, line in lines.items()} == expected | {owners[-1].id: 0}
    assert outcome.paid == sum(expected.values()) > 0
    assert again.release.table.tolist() == json.loads(outcome.release)["table"]
    with th.Ledger.open(market.ledger_path) as ledger:
        assert len(ledger) == 1


def test_deleted_rows_are_not_left_in_the_file(tmp_path):
    opened = Market.open(tmp_path / "market", epsilon=100.0)
    buyer, task = open_task(opened)
    (owner,) = join_owners(opened, buyer, task, 1)
    content = made_up(2000, 5)
    first, _ = (hand_in(opened, owner, task, content) for _ in range(2))

    def is_there():
        with opened.database.engine.connect() as connection:  # what is in the log gets to the file
            connection.exec_driver_sql("pragma wal_checkpoint(truncate)")
        files = b"".join(path.read_bytes() for path in (tmp_path / "market").glob("market.db*"))
        return [line in files for line in content.splitlines()[1::500]]

    assert all(is_there())
    with opened.database.writing() as session:
        uploads.withdraw(session, owner, task.id, first.id)
        close(session, buyer, task.id)
    assert work_once(opened, "worker")
    assert all(is_there()), "the other upload is kept"
    with opened.database.writing() as session:
        assert uploads.delete_rows(session, owner, task.id) == 1
    assert not any(is_there())
    opened.close()


def test_a_job_that_fails_does_not_end_the_worker(market, monkeypatch, caplog):  # noqa: F811
    stop, tries = threading.Event(), []

    def fail(*_):
        tries.append(1)
        if len(tries) == 2:
            stop.set()
        raise OSError("private row 17 did not fit on the disk")

    monkeypatch.setattr("thresher.market.workers.work_once", fail)
    work(market, stop, pause=0.001)
    assert len(tries) == 2
    assert "OSError" in caplog.text
    assert "row 17" not in caplog.text


def test_a_dead_workers_job_is_taken_up_and_costs_nothing_more(market):  # noqa: F811
    buyer, task = open_task(market)
    (owner,) = join_owners(market, buyer, task, 1)
    hand_in(market, owner, task, made_up(20, 5))
    with market.database.writing() as session:
        close(session, buyer, task.id)
    with market.database.writing() as session:
        assert jobs.take(session, "dead", lease=-jobs.LEASE) == task.id
    with market.database.reading() as session:  # it died after the release, before the pay
        owned = rows_by_owner(session, session.get_one(Task, task.id))
    compute(market.ledger_path, question_of(task), task.id, owned)
    assert work_once(market, "alive")
    with th.Ledger.open(market.ledger_path) as ledger:
        assert len(ledger) == 1
    with market.database.writing() as session:
        assert session.get_one(Job, task.id).tries == 2
        with pytest.raises(jobs.LeaseLost):
            jobs.hold(session, "dead", task.id)


@pytest.mark.parametrize(("deaths", "releases"), [(4, 1), (5, 0)])
def test_workers_that_die_between_charge_and_release_waste_their_charges(
    deaths, releases, tmp_path, monkeypatch
):
    """Five charges fit the cap, so a task whose workers died five times is refused."""
    opened = Market.open(tmp_path / "market", epsilon=100.0)
    buyer, task = open_task(opened, epsilon=30.0)
    (owner,) = join_owners(opened, buyer, task, 1)
    hand_in(opened, owner, task, made_up(20, 5))
    with opened.database.writing() as session:
        close(session, buyer, task.id)

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(th.Ledger, "complete", die)
        for _ in range(deaths):
            with pytest.raises(KeyboardInterrupt):
                work_once(opened, "dead")
            with opened.database.writing() as session:
                session.get_one(Job, task.id).leased_until = None
    assert work_once(opened, "alive")
    with opened.database.reading() as session:
        state = session.get_one(Task, task.id).state
        outcomes = session.scalars(select(Outcome)).all()
    assert (state == "refused", len(outcomes)) == (releases == 0, releases)
    with th.Ledger.open(opened.ledger_path) as ledger:
        assert len(ledger) == 5
        assert [entry["kind"] for entry in ledger.entries()].count("release") == releases
    opened.close()
