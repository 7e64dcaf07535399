"""How much a market takes on one machine: requests, rows, and the time from closing to statements.

    python benchmarks/market.py [--clients 50] [--seconds 5] [--owners 1000] [--rows 1000]

Clients and server share the machine and talk over loopback. Each figure is a ratio: to a bare
FastAPI route that takes and gives the same bytes and does nothing, asked by the same clients, or to
the library alone on the same rows. The market's database is SQLite.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import multiprocessing
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response
from provenance import store

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
from market_cases import join_owners, made_up, open_task  # noqa: E402

from thresher.market import uploads  # noqa: E402
from thresher.market.app import create_app  # noqa: E402
from thresher.market.guards import Limits  # noqa: E402
from thresher.market.market import Market  # noqa: E402
from thresher.market.members import add_token  # noqa: E402
from thresher.market.receipts import new_salt  # noqa: E402
from thresher.market.settlement import compute, rows_by_owner  # noqa: E402
from thresher.market.tables import Task  # noqa: E402
from thresher.market.tasks import close, question_of  # noqa: E402
from thresher.market.workers import work_once  # noqa: E402

SMALL, LARGE = 10, 10_000  # rows of an upload


def bare(size):
    """An application that reads a body and gives so many bytes."""
    app, content = FastAPI(), b"x" * size

    @app.get("/")
    def read():
        return Response(content)

    @app.post("/")
    async def upload(request: Request):
        await request.body()
        return Response(content)

    return app


def serve(port, folder, size):
    """Run the market in the folder, or without one the bare application."""
    limits = Limits(rate=1e9, burst=10**9)
    app = bare(size) if folder is None else create_app(
        Market.open(folder), limits=limits, working=False
    )  # fmt: skip
    uvicorn.run(app, port=port, log_level="error")


class Server:
    """A server in a process of its own."""

    def __init__(self, folder=None, size=0):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=serve, args=(self.port, folder, size), daemon=True)
        self.process.start()

    def __enter__(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return self
        raise TimeoutError("the server does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()


def load(port, asked, seconds):
    """Answers a second, and the 99th percentile of their milliseconds; a client for each of asked.

    `asked` has method, path, body and headers of each client.
    """
    times, ready = [], threading.Barrier(len(asked), timeout=60)

    def client(method, path, body, headers):
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

        def ask():
            start = time.monotonic()
            link.request(method, path, body, headers)
            answer = link.getresponse()
            answer.read()
            if answer.status not in {200, 201}:
                raise RuntimeError(answer.status)
            return time.monotonic() - start

        ask()  # not counted
        ready.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            times.append(ask())  # which threads may do at once

    threads = [threading.Thread(target=client, args=each) for each in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"rate": len(times) / seconds, "p99": 1000 * float(np.percentile(times, 99))}


def requests(folder, clients, seconds):
    """Reads and uploads of many clients, of the market and of a bare route."""
    market = Market.open(folder, epsilon=100.0)
    buyer, task = open_task(market)
    owners = join_owners(market, buyer, task, clients)
    with market.database.writing() as session:
        tokens = [add_token(session, owner).text for owner in owners]
    market.close()
    headers = [
        {"Authorization": f"Bearer {token}", "Content-Type": "text/csv",
         "X-Salt": base64.b64encode(new_salt()).decode()}
        for token in tokens
    ]  # fmt: skip
    path, rows, found = f"/api/tasks/{task.id}", made_up(SMALL, 1), {}
    with Server(folder) as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port)
        link.request("GET", path, headers=headers[0])
        size = len(link.getresponse().read())
        asked = [("GET", path, None, each) for each in headers]
        found["reads"] = load(server.port, asked, seconds)
        asked = [("POST", f"{path}/uploads", rows, each) for each in headers]
        found["uploads"] = load(server.port, asked, seconds)
    for name, method, body, size_ in (("reads", "GET", None, size), ("uploads", "POST", rows, 600)):
        with Server(size=size_) as server:
            asked = [(method, "/", body, each) for each in headers]
            found[f"bare {name}"] = load(server.port, asked, seconds)
    return found


def ingested(folder, files=10):
    """Rows a second by large uploads, one after the other, and as the library alone reads them."""
    market = Market.open(folder, epsilon=100.0)
    buyer, task = open_task(market, most_rows=10**7)
    (owner,) = join_owners(market, buyer, task, 1)
    content, question = made_up(LARGE, 1), question_of(task)
    with market.database.writing() as session:
        token = add_token(session, owner).text
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/csv",
               "X-Salt": base64.b64encode(new_salt()).decode()}  # fmt: skip
    with Server(folder) as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

        def send():
            link.request("POST", f"/api/tasks/{task.id}/uploads", content, headers)
            link.getresponse().read()

        theirs = per_call(send, files)
    alone = per_call(lambda: question.rows(content, "csv"), files)
    market.close()
    return {"market": LARGE / theirs, "alone": LARGE / alone}


def per_call(call, times):
    """Seconds of a call, after a first one that is not counted."""
    call()
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def settled(folder, owners, rows):
    """Seconds from closing to all statements, and of the library alone on the same rows."""
    market = Market.open(folder, epsilon=100.0)
    buyer, task = open_task(market, owners=owners, rows_per_owner=rows, epsilon=2.0)
    for number, owner in enumerate(join_owners(market, buyer, task, owners)):
        uploads.hand_in(
            market, owner, task.id, content=made_up(rows, number), kind="csv", salt=new_salt()
        )
    with market.database.reading() as session:
        owned = rows_by_owner(session, session.get_one(Task, task.id))
    question = question_of(task)
    compute(None, question, "warm", dict(list(owned.items())[:10]))
    start = time.perf_counter()
    state = compute(None, question, "alone", owned).state
    alone = time.perf_counter() - start
    start = time.perf_counter()
    with market.database.writing() as session:
        close(session, buyer, task.id)
    work_once(market, "worker")
    found = {"market": time.perf_counter() - start, "alone": alone, "state": state}
    market.close()
    return found


def render(result):
    """A Markdown page."""
    made = result["requests"]
    lines = [
        "# How much load a market takes",
        "",
        f"The market kept its data in SQLite, and {result['clients']} clients ran on the same machine. The "
        "last columns compare with a bare FastAPI route that takes and gives the same bytes.",
        "",
        "| | a second | of a bare route | 99th percentile, ms | of a bare route |",
        "|---|---|---|---|---|",
    ]
    for name, said in (("reads", "reads of a task"), ("uploads", f"uploads of {SMALL} rows")):
        ours, theirs = made[name], made[f"bare {name}"]
        lines.append(
            f"| {said} | {ours['rate']:,.0f} | {ours['rate'] / theirs['rate']:.2f} "
            f"| {ours['p99']:,.0f} | {ours['p99'] / theirs['p99']:.1f} |"
        )
    rows, end = result["rows"], result["settled"]
    lines += [
        "",
        f"With uploads of {LARGE:,} rows, one after the other, the market takes {rows['market']:,.0f} rows "
        f"a second. That is {rows['market'] / rows['alone']:.2f} of what the library alone reads and checks.",
        "",
        f"From closing a task to the statements of {result['owners']:,} owners with {result['each']:,} "
        f"rows each, {end['market']:.1f} s pass. That is {end['market'] / end['alone']:.1f} times as long as "
        "the library alone takes for release and pay.",
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--owners", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = {
            "clients": options.clients, "owners": options.owners, "each": options.rows,
            "requests": requests(Path(folder, "requests"), options.clients, options.seconds),
            "rows": ingested(Path(folder, "rows")),
            "settled": settled(Path(folder, "settled"), options.owners, options.rows),
        }  # fmt: skip
    store("market", result, render(result))
    print(render(result))


if __name__ == "__main__":
    main()
