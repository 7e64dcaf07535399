"""The protocol between processes, over HTTP on loopback; some of them are killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import os
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from federation import (
    COORDINATOR_SECRET,
    SECRETS,
    Play,
    make_terms,
    run_coordinator,
    run_silo,
    serve,
    some_table,
    some_tables,
)

from thresher.errors import InputError
from thresher.federate.coordinator_round import CoordinatorRound
from thresher.federate.http_client import Link, fetch_task, play
from thresher.federate.http_server import RoundServer
from thresher.federate.primitives import ProtocolError
from thresher.federate.silo_round import SiloRound

NUMBERS = (5, 4, 1, 40)  # silos, fewest, colluding, entries


@pytest.fixture(scope="module")
def processes():
    """Processes that start fast: forked from one that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["federation"])
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), before])
    yield context
    os.environ["PYTHONPATH"] = before


def start(processes, url, numbers=NUMBERS, dying=None, patience=20.0):
    """All silos as processes; `dying` maps some to the stage after which they are killed."""
    silos = [
        processes.Process(
            target=run_silo, args=(url, i, *numbers, (dying or {}).get(i), patience), daemon=True
        )
        for i in range(numbers[0])
    ]
    for silo in silos:
        silo.start()
    return silos


def ends(silos):
    deadline = time.monotonic() + 120
    for silo in silos:
        silo.join(max(0.0, deadline - time.monotonic()))
    return [silo.exitcode for silo in silos]


@contextlib.contextmanager
def serving(numbers=NUMBERS):
    coordinator = CoordinatorRound(make_terms(*numbers), COORDINATOR_SECRET)
    server = serve(coordinator)
    running = threading.Thread(target=server.run, daemon=True)
    running.start()
    try:
        yield coordinator, server
        running.join(120)
    finally:
        server.close()


def close_step_without(server, dead):
    """As a deadline does, but not before all others have answered."""
    coordinator = server.round
    with server.change:
        server.change.wait_for(
            lambda: coordinator.failure or coordinator.answered
            == [each for each in coordinator.expected if each not in dead],
            120,
        )  # fmt: skip
        coordinator.close()
        server.change.notify_all()


def test_processes_add_up(processes):
    with serving() as (coordinator, server):
        assert ends(start(processes, server.url)) == [0] * 5
    np.testing.assert_array_equal(coordinator.result, some_tables(5, 40).sum(axis=0))


def test_fifty_processes_add_up_a_large_table_without_those_that_are_killed(processes):
    """50 silos x 100,000 entries; two are killed after their shares, before they upload."""
    numbers, gone = (50, 38, 1, 100_000), {7, 31}
    with serving(numbers) as (coordinator, server):
        silos = start(processes, server.url, numbers, dict.fromkeys(gone, 1), patience=60.0)
        for number in gone:
            silos[number].join(60)
        close_step_without(server, gone)
        assert ends(silos) == [-9 if i in gone else 0 for i in range(50)]
    left = [i for i in range(50) if i not in gone]
    assert coordinator.survivors == left
    want = sum(some_table(i, 100_000) for i in left)
    np.testing.assert_array_equal(coordinator.result, want)


@pytest.mark.parametrize("stage", range(6))
def test_a_silo_killed_after_any_stage_does_not_stop_the_others(processes, stage):
    with serving() as (coordinator, server):
        silos = start(processes, server.url, dying={2: stage})
        silos[2].join(60)
        if stage < 4:
            close_step_without(server, {2})
        assert ends(silos) == [0, 0, -9, 0, 0]
    survivors = [0, 1, 3, 4] if stage < 2 else [0, 1, 2, 3, 4]
    assert coordinator.survivors == survivors
    np.testing.assert_array_equal(coordinator.result, some_tables(5, 40)[survivors].sum(axis=0))


def test_with_too_many_killed_the_round_fails_and_says_so(processes):
    with serving() as (coordinator, server):
        silos = start(processes, server.url, dying={0: 1, 1: 1})
        silos[0].join(60), silos[1].join(60)
        close_step_without(server, {0, 1})
        assert ends(silos) == [-9, -9, 1, 1, 1]
    assert (
        "3 of 5 silos were left (upload), but 4 are needed; nobody has learned a sum"
        in coordinator.failure
    )
    assert coordinator.result is None


@pytest.mark.parametrize("step", range(5))
def test_a_coordinator_killed_at_any_step_opens_nothing_and_another_one_can_try(processes, step):
    ours, theirs = processes.Pipe()
    dying = processes.Process(target=run_coordinator, args=(theirs, *NUMBERS, step), daemon=True)
    dying.start()
    assert ours.poll(60)
    silos = start(processes, ours.recv(), patience=0.3)
    dying.join(60)
    assert dying.exitcode == -9
    assert set(ends(silos)) <= ({0, 1} if step == 4 else {1})  # some may have fetched the result
    if step == 0:  # once is enough: the second try knows nothing of the first
        with serving() as (coordinator, server):
            assert ends(start(processes, server.url)) == [0] * 5
        np.testing.assert_array_equal(coordinator.result, some_tables(5, 40).sum(axis=0))


def ask(url, verb, path, body=None, headers=None):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request(verb, path, body, headers or {})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_slow_garbled_oversized_and_foreign_requests_are_refused_and_disturb_nobody(processes):
    with serving() as (coordinator, server):
        slow = socket.create_connection(urlsplit(server.url).netloc.split(":"), timeout=20)
        slow.sendall(b"POST /messages HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\nhalf of it")
        foreign = Play(make_terms(*NUMBERS), some_tables(5, 40), seed="foreign").silos[0].first
        refusals = {
            "garbled": ask(server.url, "POST", "/messages", b"x" * 300),
            "of another round": ask(server.url, "POST", "/messages", foreign),
            "oversized": ask(server.url, "POST", "/messages", b"x" * 10_000),
            "without a length": ask(server.url, "POST", "/messages", iter([b"x"])),
            "elsewhere": ask(server.url, "GET", "/../etc/passwd"),
            "no stage": ask(server.url, "GET", "/stages/7/0"),
            "no silo": ask(server.url, "GET", "/stages/0/9"),
        }
        silos = start(processes, server.url)
        assert ends(silos) == [0] * 5
        slow.close()
    assert [status for status, _ in refusals.values()] == [409, 409, 413, 404, 404, 409, 409]
    assert all(json.loads(body)["error"]["message"] for _, body in refusals.values())
    np.testing.assert_array_equal(coordinator.result, some_tables(5, 40).sum(axis=0))


def test_a_late_silo_is_told_so():
    coordinator = CoordinatorRound(make_terms(5, 4, 1, 4), COORDINATOR_SECRET)
    server = serve(coordinator)
    played = Play(make_terms(5, 4, 1, 4), some_tables(5, 4))
    try:
        for i in range(4):
            coordinator.receive(
                SiloRound(played.terms, SECRETS[i], coordinator.opening, lambda _: None).first
            )
        coordinator.close()
        terms, link = played.terms, Link(server.url, 1.0)
        with pytest.raises(ProtocolError, match="refused: a message of kind KEYS is out of order"):
            list(play(link, lambda o: SiloRound(terms, SECRETS[4], o, None), 4, 10**4, 1.0))
    finally:
        server.close()


def test_what_is_no_task_is_refused():
    coordinator = CoordinatorRound(make_terms(), COORDINATOR_SECRET)
    server = RoundServer(
        coordinator, b"{nothing", host="127.0.0.1", port=0, wait=1.0, first_wait=1.0
    )
    try:
        with pytest.raises(ProtocolError, match="did not answer with a task"):
            fetch_task(Link(server.url, 1.0))
    finally:
        server.close()


def test_an_answer_that_is_too_long_is_refused_and_a_bad_address_too():
    server = serve(CoordinatorRound(make_terms(), COORDINATOR_SECRET))
    try:
        with pytest.raises(ProtocolError, match="more than 10 bytes"):
            Link(server.url, 1.0).get("/stages/0/0", 10)
    finally:
        server.close()
    with pytest.raises(ProtocolError, match="does not answer"):
        Link(server.url, 0.05).get("/stages/0/0", 10)
    with pytest.raises(InputError, match="url must be like"):
        Link("ftp://x", 1.0)
