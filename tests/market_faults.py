"""Kill servers and workers of a market at random times, and see what is left of it.

    python tests/market_faults.py 200

kills so many processes on each database and prints what happened: servers while owners hand rows
in, and workers while they settle a task.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from sqlalchemy import select

import thresher as th
from thresher.market.client import Client, MarketError
from thresher.market.market import Market
from thresher.market.receipts import new_salt
from thresher.market.tables import Job, Line, Outcome, Task, Upload
from thresher.market.times import now

ROOT = Path(__file__).resolve().parent


class Process:
    """A server or a worker in a process of its own, to be killed."""

    def __init__(self, folder, url, *, port=None):
        told = ["serve", "--port", str(port)] if port else ["work"]
        database = ["--database", url] if url else []
        self.running = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "thresher", *told, "--data", str(folder), *database],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def kill(self):
        self.running.send_signal(signal.SIGKILL)
        self.running.wait()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def await_answer(port):
    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("the server does not answer")


def hand_in_until_killed(clients, task, rows, taken, lock):
    """Hand in rows again and again; what was acknowledged is remembered."""
    while True:
        owner, client = random.choice(clients)  # noqa: S311
        try:
            made = client.upload(task, rows, salt=new_salt())
        except (MarketError, OSError):
            return
        with lock:
            taken.add((owner, made["id"]))


def await_uploads(taken, count):
    """Wait until so many uploads are acknowledged, for at most half a minute."""
    end = time.monotonic() + 30
    while len(taken) < count and time.monotonic() < end:
        time.sleep(0.005)


def kill_servers(folder, url, clients, task, rows, rounds):
    """Kill a server `rounds` times while four owners hand rows in: the uploads acknowledged.

    It is killed after a random number of acknowledgments, however slow the machine is.
    """
    taken, lock = set(), threading.Lock()
    for _ in range(rounds):
        port = free_port()
        server = Process(folder, url, port=port)
        await_answer(port)
        here = [(owner, Client(f"http://127.0.0.1:{port}", token)) for owner, token in clients]
        threads = [
            threading.Thread(target=hand_in_until_killed, args=(here, task, rows, taken, lock))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        await_uploads(taken, len(taken) + random.randrange(8))  # noqa: S311
        time.sleep(random.uniform(0.0, 0.1))  # noqa: S311
        server.kill()
        for thread in threads:
            thread.join()
    return taken


def kill_workers(folder, url, market, task, rounds):
    """Kill workers while they settle the task, then let one finish it; how many were killed."""
    for killed in range(rounds):
        worker, before = Process(folder, url), tries(market, task)
        while tries(market, task) == before and not ended(market, task):
            time.sleep(0.01)
        time.sleep(random.uniform(0.0, 1.0))  # noqa: S311
        worker.kill()
        if ended(market, task):
            return killed + 1
        expire_lease(market)
    worker = Process(folder, url)
    while not ended(market, task):
        time.sleep(0.1)
    worker.kill()
    return rounds + 1


def tries(market, task):
    """How often a worker took up the job."""
    with market.database.reading() as session:
        return session.get_one(Job, task).tries


def ended(market, task):
    with market.database.reading() as session:
        return session.get_one(Task, task).state in {"paid", "unpaid", "refused"}


def expire_lease(market):
    """Let the next worker take over at once, as if the lease of the dead one had run out."""
    with market.database.writing() as session:
        for job in session.scalars(select(Job).where(Job.done.is_(None))):
            job.leased_until = now()


def check(market, task, taken):
    """Raise unless nothing was lost, overspent, or paid twice; a line about it."""
    with market.database.reading() as session:
        kept = {
            (each.owner, each.id)
            for each in session.scalars(select(Upload).where(Upload.task == task))
        }
        outcome = session.get_one(Outcome, task)
        lines = session.scalars(select(Line).where(Line.task == task)).all()
        done = session.get_one(Job, task)
    assert taken, "no server lived to acknowledge an upload"
    assert taken <= kept, "an acknowledged upload was lost"
    with th.Ledger.open(market.ledger_path) as ledger:
        ledger.verify()
        entries = ledger.entries()
        left = ledger.remaining()
    charges = [entry for entry in entries if entry["kind"] == "charge"]
    releases = [entry for entry in entries if entry["kind"] == "release"]
    named = [entry for entry in charges if entry["about"]["data_version"] == f"task {task}"]
    record = json.loads(outcome.release)["record"]
    assert record["ledger"]["entry"] in {entry["seq"] for entry in named}, "a release unpaid for"
    assert sum(entry["request"] == named[0]["request"] for entry in releases) == 1
    assert left >= 0
    assert (outcome.paid or 0) == sum(line.line["cents"] for line in lines)
    assert len({line.owner for line in lines}) == len(lines)
    return (
        f"{len(taken)} uploads acknowledged, {len(kept)} kept; {done.tries} tries to settle, "
        f"{len(named)} charges, 1 release, paid once"
    )


def run(folder, url, *, servers, workers, seed):
    """One market, its servers and workers killed; how many were, and what happened."""
    from market_cases import join_owners, made_up, open_task

    random.seed(seed)
    market = Market.open(folder, url, epsilon=100.0)
    given = {"epsilon": 30.0, "owners": 40, "rows_per_owner": 8, "radius": 0.6}
    buyer, task = open_task(market, **given)
    owners = join_owners(market, buyer, task, 40)
    rows = Path(folder) / "rows.csv"
    rows.write_bytes(made_up(8, seed))
    clients = with_tokens(market, owners)
    taken = kill_servers(folder, url, clients, task.id, rows, servers)
    fill(market, owners, task)
    close_now(market, buyer, task)
    killed = servers + kill_workers(folder, url, market, task.id, workers)
    told = check(market, task.id, taken)
    market.close()
    return killed, told


def with_tokens(market, owners):
    from thresher.market.members import add_token

    with market.database.writing() as session:
        return [(owner.id, add_token(session, owner).text) for owner in owners]


def fill(market, owners, task):
    """Give every owner rows, so that the release is more than noise."""
    from market_cases import made_up

    from thresher.market import uploads

    for number, owner in enumerate(owners):
        uploads.hand_in(
            market, owner, task.id, content=made_up(8, 500 + number), kind="csv", salt=new_salt()
        )


def close_now(market, buyer, task):
    from thresher.market.tasks import close

    with market.database.writing() as session:
        close(session, buyer, task.id)


def main():
    """Many rounds on each database."""
    import tempfile

    from market_cases import PROGRAMS, start_cluster

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: S103, PTH101
        url, stop = None, lambda: None
        for kind in ("sqlite", "postgresql"):
            if kind == "postgresql":
                if not PROGRAMS:
                    print("PostgreSQL is not installed")  # noqa: T201
                    break
                cluster = Path(folder, "cluster")
                cluster.mkdir()
                url, stop = start_cluster(cluster)
            killed = number = 0
            while killed < rounds:
                market = Path(folder, f"{kind}-{number}")
                market.mkdir()
                more, told = run(market, url, servers=12, workers=8, seed=number)
                killed, number = killed + more, number + 1
                print(f"{kind}, {more} kills: {told}", flush=True)  # noqa: T201
        stop()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
