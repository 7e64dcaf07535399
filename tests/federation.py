"""A round played in memory, with every message in the open: for tests of the protocol."""

from __future__ import annotations

import hashlib
import itertools
import os
import signal
import sys

import numpy as np
import pytest

pytest.importorskip("cryptography")

from thresher.federate import primitives
from thresher.federate.coordinator_round import CoordinatorRound
from thresher.federate.http_client import Link, play
from thresher.federate.http_server import RoundServer
from thresher.federate.primitives import ProtocolError
from thresher.federate.round_terms import Terms
from thresher.federate.silo_round import SiloRound

ENTRIES = 7
RESULT = 5  # the stage of the result


def tape(seed):
    """Entropy that a seed repeats."""
    counter = itertools.count()

    def draw(size):
        blocks = -(-size // 64)
        parts = (hashlib.sha512(f"{seed}/{next(counter)}".encode()).digest() for _ in range(blocks))
        return b"".join(parts)[:size]

    return draw


SECRETS = [tape(f"secret {i}")(32) for i in range(50)]
COORDINATOR_SECRET = tape("coordinator")(32)


def make_terms(n=5, k=4, t=1, entries=ENTRIES, task=b"t" * 32):
    keys = tuple(map(primitives.public_signing_key, SECRETS[:n]))
    public = primitives.public_signing_key(COORDINATOR_SECRET)
    return Terms(task, public, tuple(f"silo {i}" for i in range(n)), keys, k, t, entries)


def some_table(number, entries=ENTRIES, seed=0):
    return np.random.default_rng([seed, number]).integers(-(2**40), 2**40, entries)


def some_tables(n=5, entries=ENTRIES, seed=0):
    return np.array([some_table(number, entries, seed) for number in range(n)])


class Play:
    """A coordinator and silos, stage by stage; `sent` has every message of every silo."""

    def __init__(self, terms, tables, *, seed="play", stream=primitives.stream):
        self.terms, self.tables, self.contributed = terms, tables, []
        self.coordinator = CoordinatorRound(
            terms, COORDINATOR_SECRET, entropy=tape((seed, "c")), stream=stream
        )
        self.silos = [
            SiloRound(
                terms, SECRETS[i], self.coordinator.opening, lambda _, i=i: self._contribute(i),
                entropy=tape((seed, i)), stream=stream,
            )
            for i in range(terms.silos)
        ]  # fmt: skip
        self.alive = list(range(terms.silos))
        self.stage = 0
        self.sent = []

    def _contribute(self, i):
        self.contributed.append(i)
        return self.tables[i]

    def answers(self):
        """What silos that are alive send now, by number."""
        if self.stage == 0:
            return {i: self.silos[i].first for i in self.alive}
        got = {i: self.coordinator.outgoing(self.stage, i) for i in self.alive}
        return {i: self.silos[i].receive(raw) for i, raw in got.items()}

    def step(self, lost=(), late=()):
        """One stage, at which some silos are `lost`, and some answer after it was closed."""
        self.alive = [i for i in self.alive if i not in lost]
        answers = self.answers()
        self.sent += answers.values()
        self.stage += 1
        for i in self.alive:
            if answers[i] and i not in late:
                self.coordinator.receive(answers[i])
        if self.coordinator.step < self.stage <= RESULT and not self.coordinator.failure:
            self.coordinator.close()
        self.alive = [i for i in self.alive if i not in late]
        return answers

    def run(self, until=RESULT):
        while self.stage <= until:
            self.step()
        return self


# Processes of their own, for tests over HTTP.


def run_silo(url, number, n, k, t, entries, last, patience):
    """A silo that dies, as by kill -9, after it has answered stage `last`; None if it does not."""
    terms = make_terms(n, k, t, entries)

    def start(opening):
        return SiloRound(terms, SECRETS[number], opening, lambda _: some_table(number, entries))

    try:
        played = play(Link(url, patience), start, number, terms.longest, 120.0)
        for stage in range(RESULT + 1):
            silo = next(played)
            if stage == last:
                os.kill(os.getpid(), signal.SIGKILL)
        assert (silo.result == sum(some_table(i, entries) for i in silo.survivors)).all()
    except ProtocolError as refused:
        sys.exit(f"refused: {refused}")


def run_coordinator(pipe, n, k, t, entries, last):
    """A coordinator that dies, as by kill -9, when step `last` is over."""
    coordinator = CoordinatorRound(make_terms(n, k, t, entries), COORDINATOR_SECRET)
    server = serve(coordinator)
    pipe.send(server.url)
    with server.change:
        server.change.wait_for(lambda: coordinator.step > last)
        os.kill(os.getpid(), signal.SIGKILL)


def serve(coordinator, wait=60.0):
    return RoundServer(coordinator, b"{}", host="127.0.0.1", port=0, wait=wait, first_wait=wait)
