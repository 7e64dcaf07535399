"""Several servers, a full disk, a database that restarts, a caller who is slow."""

from __future__ import annotations

import asyncio
import base64
import resource
import socket
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from market_cases import (  # noqa: F401
    PROGRAMS,
    cluster,
    hand_in,
    join_owners,
    made_up,
    market,
    open_task,
    start_cluster,
)
from market_faults import PATIENCE, served, with_tokens
from market_forks import wait_until
from sqlalchemy import select

import thresher as th
from thresher.cli.serve import work
from thresher.errors import InputError
from thresher.market import workers
from thresher.market.app import create_app
from thresher.market.client import Client, MarketError
from thresher.market.guards import Limits
from thresher.market.market import Market
from thresher.market.members import add_member
from thresher.market.receipts import new_salt
from thresher.market.refusals import Refusal
from thresher.market.tables import Job, Outcome, Task, Upload
from thresher.market.tasks import close
from thresher.market.workers import work_once

MANY = Limits(rate=1e6, burst=10**6)
HEADERS = {"Content-Type": "text/csv", "X-Salt": base64.b64encode(b"s" * 32).decode()}


def kept(market, task):  # noqa: F811
    with market.database.reading() as session:
        return {each.id for each in session.scalars(select(Upload).where(Upload.task == task.id))}


def test_two_servers_on_one_database_take_all_rows_and_settle_once(market):  # noqa: F811
    url = market.database.engine.url.render_as_string(hide_password=False)
    other = Market.open(market.folder, None if url.startswith("sqlite") else url)
    buyer, task = open_task(market)
    owners = join_owners(market, buyer, task, 4)
    with ThreadPoolExecutor(8) as pool:
        asked = [(server, owner) for owner in owners for server in (market, other)]
        taken = [pool.submit(hand_in, *each, task, made_up(5, 3)) for each in asked]
        assert {each.result().id for each in taken} == kept(market, task)

        def shut(server):
            with server.database.writing() as session:
                return close(session, buyer, task.id).state

        assert set(pool.map(shut, (market, other))) == {"closing"}
        names = ("one", "other")
        assert sorted(pool.map(work_once, (market, other), names)) == [False, True]
    with market.database.reading() as session:
        assert session.get_one(Job, task.id).tries == 1
        assert len(session.scalars(select(Outcome)).all()) == 1
    with th.Ledger.open(market.ledger_path) as ledger:
        assert len(ledger) == 1
    other.close()


def test_one_name_is_given_once_though_two_ask_at_the_same_moment(market, monkeypatch):  # noqa: F811
    from thresher.market import members

    operator = {"Authorization": f"Bearer {market.first_operator()}"}
    monkeypatch.setattr(members, "check_name", lambda name: name)
    with market.database.writing() as session:
        add_member(session, "buyer", "Clinic")
    asked = members.select
    nothing = lambda column: asked(column).where(column.is_(None))  # noqa: E731
    monkeypatch.setattr(members, "select", nothing)  # as if the other had not been there yet
    with TestClient(create_app(market, limits=MANY, working=False)) as client:
        got = client.post(
            "/api/members", json={"role": "buyer", "name": "Clinic"}, headers=operator
        )
    assert (got.status_code, got.json()["error"]["code"]) == (409, "conflict")


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path):
    opened = Market.open(tmp_path / "market", epsilon=100.0)
    buyer, task = open_task(opened)
    owners = join_owners(opened, buyer, task, 1)
    ((_, token),) = with_tokens(opened, owners)
    headers = HEADERS | {"Authorization": f"Bearer {token}"}
    app = create_app(opened, limits=MANY, working=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with TestClient(app, raise_server_exceptions=False) as client:

        def send():
            path = f"/api/tasks/{task.id}/uploads"
            return client.post(path, content=made_up(400, 1), headers=headers)

        taken = {send().json()["id"]}
        size = max(path.stat().st_size for path in (tmp_path / "market").iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, hard))
        try:
            answers = [send() for _ in range(8)]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        taken |= {each.json()["id"] for each in answers if each.status_code == 201}
        refused = [each for each in answers if each.status_code != 201]
        assert refused
        assert {each.json()["error"]["code"] for each in refused} == {"unavailable"}
        taken.add(send().json()["id"])
    assert kept(opened, task) == taken
    opened.close()


def test_a_job_that_fails_is_put_off_and_then_done(market, monkeypatch):  # noqa: F811
    buyer, task = open_task(market)
    (owner,) = join_owners(market, buyer, task, 1)
    hand_in(market, owner, task, made_up(20, 5))
    with market.database.writing() as session:
        close(session, buyer, task.id)

    def full(*_):
        raise OSError(28, "No space left on device")

    settle = workers.settle
    monkeypatch.setattr(workers, "settle", full)
    with pytest.raises(OSError, match="No space"):
        work_once(market, "worker")
    monkeypatch.setattr(workers, "settle", settle)
    assert not work_once(market, "worker"), "it is put off"
    with market.database.writing() as session:
        session.get_one(Job, task.id).leased_until = None
    assert work_once(market, "worker")
    with market.database.reading() as session:
        assert session.get_one(Task, task.id).state in {"paid", "unpaid"}


def hand_in_often(clients, task, rows, taken, stop):
    """Hand in rows until told to stop, whatever the servers answer; those acknowledged."""
    number = 0
    while not stop.is_set():
        number += 1
        try:
            taken.append(clients[number % 2].upload(task, rows, salt=new_salt())["id"])
        except MarketError as refused:
            if refused.status not in {0, 503}:
                taken.append(refused)  # which was not kept: the test fails
                return
            time.sleep(0.05)


def test_a_database_that_restarts_under_load_loses_nothing(tmp_path):
    """Two servers in processes of their own, two owners, and PostgreSQL stopped at once."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ended:
        Path(folder).chmod(0o755)
        url, start, stop = start_cluster(Path(folder))
        ended.callback(stop)
        opened = Market.open(tmp_path / "market", url, epsilon=100.0)
        ended.callback(opened.close)
        buyer, task = open_task(opened)
        tokens = [token for _, token in with_tokens(opened, join_owners(opened, buyer, task, 2))]
        rows = tmp_path / "rows.csv"
        rows.write_bytes(made_up(8, 1))
        addresses = []
        for _ in range(2):
            server, address = served(tmp_path / "market", url)
            ended.callback(server.kill)
            addresses.append(address)
        taken, enough = [], threading.Event()
        ended.callback(enough.set)
        threads = []
        for token in tokens:
            clients = [Client(address, token, PATIENCE) for address in addresses]
            told = clients, task.id, rows, taken, enough
            threads.append(threading.Thread(target=hand_in_often, args=told, daemon=True))
            threads[-1].start()
        wait_until(lambda: len(taken) >= 5, "uploads are taken")
        stop()
        start()
        before = len(taken)
        wait_until(lambda: len(taken) >= before + 5, "uploads are taken after the restart")
        enough.set()
        for thread in threads:
            thread.join(3 * PATIENCE)
            assert not thread.is_alive(), "an owner waits for an answer"
        assert set(taken) <= kept(opened, task)


def ask_slowly(app, parts, pause):
    """The answer to a request whose body comes in parts; the rest never comes."""
    sent, waiting = [], list(parts)

    async def receive():
        if not waiting:
            await asyncio.sleep(pause)
        return {"type": "http.request", "body": waiting.pop(0), "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/api/join", "query_string": b"",
        "headers": [(b"content-type", b"application/json")], "client": ("1", 1),
        "scheme": "http", "server": ("t", 80), "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_a_body_that_does_not_come_or_does_not_end_is_refused(tmp_path):
    opened = Market.open(tmp_path / "market")
    app = create_app(opened, limits=Limits(seconds=0.2, body=1000), working=False)
    assert ask_slowly(app, [b"{"], 60) == (408, b'{"error":{"code":"too_slow","message":"the '
        b'request took over 0.2 seconds to arrive: try again"}}')  # fmt: skip
    status, said = ask_slowly(app, [b"x" * 600, b"x" * 600], 60)
    assert (status, b"too_large" in said) == (413, True)
    opened.close()


def test_a_cap_is_fixed_when_the_market_is_made(tmp_path):
    Market.open(tmp_path, epsilon=3).close()
    Market.open(tmp_path, epsilon=3, delta=1e-5).close()
    Market.open(tmp_path).close()
    for asked in ({"epsilon": 2.0}, {"epsilon": 3, "delta": 1e-7}):
        with pytest.raises(InputError, match="was fixed when the market was first opened"):
            Market.open(tmp_path, **asked)
    with pytest.raises(InputError, match="no market in .*: start it first, with thresher serve"):
        work(tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_rows_of_one_who_may_not_hand_them_in_are_not_read(market, monkeypatch):  # noqa: F811
    from thresher.market.questions import Question

    buyer, task = open_task(market)
    monkeypatch.setattr(Question, "rows", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(Refusal, match="only an owner can"):
        hand_in(market, buyer, task, made_up(3, 1))


@pytest.mark.parametrize(
    ("said", "code", "message"),
    [
        (b"", (0, "no_answer"), "does not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", (0, "no_answer"), "does not answer"),
        (b"?", (0, "no_answer"), "does not answer"),
        (b"HTTP/1.1 409 No\r\nContent-Length: 9\r\n\r\nhalf", (409, "http"), "answered 409"),
    ],
)
def test_half_an_answer_is_no_answer_and_half_a_refusal_refuses(said, code, message):
    """As when a server is killed while it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            asked, _ = listening.accept()
            with asked:
                asked.recv(10_000)
                asked.sendall(said)

        listening.settimeout(PATIENCE)
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(MarketError, match=message) as refused:
            Client(address, timeout=PATIENCE).me()
        thread.join(3 * PATIENCE)
        assert not thread.is_alive()
    assert (refused.value.status, refused.value.code) == code
