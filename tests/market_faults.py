"""Kill servers and workers of a market at random times, and see what is left of it.

    python tests/market_faults.py 200

kills so many processes on each database and prints what happened: servers while owners hand rows
in and while the buyer closes the task, and workers while they settle it.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from market_cases import PROGRAMS, hand_in, join_owners, made_up, open_task, start_cluster
from market_forks import Process, wait_until
from sqlalchemy import select

import thresher as th
from thresher.market.client import Client, MarketError
from thresher.market.market import Market
from thresher.market.members import add_token
from thresher.market.receipts import new_salt
from thresher.market.tables import Job, Line, Outcome, Task, Upload
from thresher.market.tasks import close
from thresher.market.times import now

OWNERS, ROWS = 12, 8
SERVERS, WORKERS = 4, 4  # killed for a task, at most so many workers
EPSILON = 12.0  # of a task: 24 charges fit, and 4 tasks have 20 if every kill wastes one
ENDS = {"paid", "unpaid", "refused"}
PATIENCE = 10.0  # seconds that a client waits for an answer


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def served(folder, url):
    """A server that answers, and its address."""
    port = free_port()
    server = Process(folder, url, port=port)
    wait_until(lambda: answers(port), "the server answers", process=server)
    return server, f"http://127.0.0.1:{port}"


class Story:
    """A task of a market, and all that was acknowledged to its owners."""

    def __init__(self, market, folder, url):
        self.market, self.folder, self.url = market, folder, url
        self.buyer, task = open_task(
            market, epsilon=EPSILON, owners=OWNERS, rows_per_owner=ROWS, radius=0.6
        )
        self.task = task.id
        owners = join_owners(market, self.buyer, task, OWNERS)
        for number, owner in enumerate(owners):  # so that the release is more than noise
            hand_in(market, owner, task, made_up(ROWS, 500 + number))
        self.tokens = with_tokens(market, [self.buyer, *owners])
        self.rows = Path(folder) / "rows.csv"
        self.rows.write_bytes(made_up(ROWS, 1))
        self.taken = set()

    def play(self):
        """Kill servers and workers until the task has ended: how many."""
        for number in range(SERVERS):
            self.kill_server(closing=number == SERVERS - 1)
        with self.market.database.writing() as session:  # where the server did not live to do it
            close(session, self.buyer, self.task)
        return SERVERS + self.kill_workers()

    def hand_in_until_killed(self, server, address):
        """Hand in rows again and again; what was acknowledged is remembered."""
        while server.alive:
            owner, token = random.choice(self.tokens[1:])  # noqa: S311
            client = Client(address, token, PATIENCE)
            with suppress(MarketError):
                made = client.upload(self.task, self.rows, salt=new_salt())
                self.taken.add((owner, made["id"]))

    def close_meanwhile(self, _, address):
        with suppress(MarketError):
            Client(address, self.tokens[0][1], PATIENCE).close(self.task)

    def kill_server(self, *, closing):
        """Kill a server while three owners hand rows in, or while the buyer closes the task.

        It is killed after a random number of acknowledgments, however slow the machine is.
        """
        server, address = served(self.folder, self.url)
        calls = [self.hand_in_until_killed] * 3 + [self.close_meanwhile] * closing
        told = server, address
        threads = [threading.Thread(target=call, args=told, daemon=True) for call in calls]
        wanted = len(self.taken) + random.randrange(1, 8)  # noqa: S311
        for thread in threads:
            thread.start()
        if not closing:
            wait_until(lambda: len(self.taken) >= wanted, "uploads are taken", process=server)
        time.sleep(random.uniform(0.0, 0.1 + 0.4 * closing))  # noqa: S311
        server.check()
        server.kill()
        for thread in threads:
            thread.join(3 * PATIENCE)
            assert not thread.is_alive(), "a client waits for a server that was killed"

    def kill_workers(self):
        """Kill workers while they settle the task, and let the last one finish; how many."""
        for killed in range(1, WORKERS + 1):
            self.expire_lease()
            before = self.job().tries
            worker = Process(self.folder, self.url)
            wait_until(
                lambda before=before: self.job().tries > before or self.ended(),
                "a worker takes the job", process=worker,
            )  # fmt: skip
            if killed == WORKERS:
                wait_until(self.ended, "a worker settles the task", process=worker)
            else:
                time.sleep(random.uniform(0.0, 1.0))  # noqa: S311
            worker.check()
            worker.kill()
            if self.ended():
                return killed
        raise AssertionError

    def job(self):
        with self.market.database.reading() as session:
            return session.get_one(Job, self.task)

    def ended(self):
        with self.market.database.reading() as session:
            return session.get_one(Task, self.task).state in ENDS

    def expire_lease(self):
        """Let the next worker take over at once, as if the lease of the dead one had run out."""
        with self.market.database.writing() as session:
            job = session.get_one(Job, self.task, with_for_update=True)
            job.leased_until = now() - timedelta(seconds=1)

    def check(self):
        """Raise unless nothing was lost, overspent, or paid twice; a line about it."""
        with self.market.database.reading() as session:
            state = session.get_one(Task, self.task).state
            made = select(Upload).where(Upload.task == self.task)
            kept = {(each.owner, each.id) for each in session.scalars(made)}
            outcome = session.get(Outcome, self.task)
            lines = session.scalars(select(Line).where(Line.task == self.task)).all()
        assert self.taken <= kept, "an acknowledged upload was lost"
        charges, releases = self.entries()
        assert (outcome is None) == (state == "refused") == (releases == [])
        assert (state == "paid") == bool(lines)
        assert len({line.owner for line in lines}) == len(lines)
        if outcome is not None:
            record = json.loads(outcome.release)["record"]
            assert record["ledger"]["entry"] in charges, "a release unpaid for"
            assert len(releases) == 1
            assert (outcome.paid or 0) == sum(line.line["cents"] for line in lines)
        return (
            f"{len(self.taken)} uploads acknowledged, none lost; {self.job().tries} tries to "
            f"settle, {len(charges)} charges, {len(releases)} releases, {state} once"
        )

    def entries(self):
        """Charges of the task, and its releases; the ledger is within its cap."""
        with th.Ledger.open(self.market.ledger_path) as ledger:
            ledger.verify()
            assert ledger.remaining() >= 0
            entries = ledger.entries()
        named = f"task {self.task}"
        charges = {
            entry["seq"]: entry["request"] for entry in entries
            if entry["kind"] == "charge" and entry["about"]["data_version"] == named
        }  # fmt: skip
        releases = [entry for entry in entries if entry["kind"] == "release"]
        return charges, [each for each in releases if each["request"] in charges.values()]


def with_tokens(market, members):
    """Members' ids, each with a token."""
    with market.database.writing() as session:
        return [(member.id, add_token(session, member).text) for member in members]


def run(folder, url, *, kills, seed):
    """One market of which so many processes are killed at least: how many, and what happened."""
    random.seed(seed)
    market = Market.open(folder, url, epsilon=100.0)
    killed, told = 0, []
    while killed < kills:
        story = Story(market, folder, url)
        killed += story.play()
        told.append(story.check())
    market.close()
    return killed, told


def main():
    """Many kills on each database; a market of its own for every 16."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        kill_many(Path(folder), "sqlite", None, kills)
        if not PROGRAMS:
            print("PostgreSQL is not installed")  # noqa: T201
            return
        cluster = Path(folder, "cluster")
        cluster.mkdir()
        url, _, stop = start_cluster(cluster)
        try:
            kill_many(Path(folder), "postgresql", url, kills)
        finally:
            stop()


def kill_many(folder, kind, url, kills):
    killed = number = 0
    while killed < kills:
        more, told = run(folder / f"{kind}-{number}", url, kills=16, seed=number)
        killed, number = killed + more, number + 1
        for line in told:
            print(f"{kind}, {killed} kills: {line}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
