"""`thresher serve` and `thresher work`: a market that runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from thresher.cli.options import given
from thresher.cli.words import say
from thresher.errors import InputError, option, require

SHUTDOWN = 10  # seconds for requests that are under way when a server stops
Data = Annotated[
    Path, given("The market's folder: its ledger, and its database unless you name one.")
]
Url = Annotated[
    str | None, given("The database: postgresql://user@host/name; SQLite if not given.")
]


def serve(
    data: Data = Path("market"),
    database: Url = None,
    host: Annotated[str, given("The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, given("The port to listen on; 0 takes a free one.")] = 8000,
    workers: Annotated[int, given("How many processes answer requests.")] = 1,
    cap_epsilon: Annotated[
        float | None,
        given(
            "The most epsilon that all tasks may cost an owner together; fixed at the first start, "
            "at 10 if not given."
        ),
    ] = None,
    cap_delta: Annotated[float | None, given("The same for delta; 1e-5 if not given.")] = None,
) -> None:
    """Run a market: buyers publish tasks, and owners submit rows and are paid privately.

    The first start makes the folder and prints a token for the operator, once. The owners' rows
    are stored on this machine: anyone who runs it can read them. By default the market can be
    reached from this machine only. To let others in, put it behind a proxy that speaks https.

    Example: thresher serve --data market
    """
    require_market()
    import os

    import uvicorn

    from thresher.market.market import Market

    market = Market.open(data, database, epsilon=cap_epsilon, delta=cap_delta)
    token = market.first_operator()
    market.close()
    if token is not None:
        say(f"the operator's token, shown only once: {token}")
    say(f"the market in {data} is at http://{host}:{port}; press Ctrl-C to stop")
    os.environ["THRESHER_MARKET_DATA"] = str(data.resolve())
    if database is not None:
        os.environ["THRESHER_MARKET_DATABASE"] = database
    uvicorn.run(
        "thresher.market.app:served", factory=True, host=host, port=port, workers=workers,
        log_level="warning", server_header=False, timeout_keep_alive=5,
        timeout_graceful_shutdown=SHUTDOWN,
    )  # fmt: skip


@contextmanager
def running(data: Path, port: int) -> Iterator[tuple[str, str]]:
    """A market that runs in a thread of this process: its address, and the operator's token."""
    require_market()
    import threading

    import uvicorn

    from thresher.market.app import create_app
    from thresher.market.market import Market

    market = Market.open(data)
    token = market.first_operator() or ""
    config = uvicorn.Config(
        create_app(market), port=port, log_level="warning", timeout_graceful_shutdown=SHUTDOWN
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.05)
        if not thread.is_alive():
            raise InputError(f"port {port} cannot be used: name another one with {option('port')}")
        yield f"http://127.0.0.1:{port}", token
    finally:
        server.should_exit = True
        thread.join(2 * SHUTDOWN)
        market.close()


def require_market() -> None:
    """Raise an `ExtraError` if a package that a market needs is missing."""
    for package in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "cryptography"):
        require(package, purpose="a market", extra="serve")


def work(data: Data = Path("market"), database: Url = None) -> None:
    """Settle closed tasks of a market, next to its servers, until interrupted.

    Example: thresher work --data market
    """
    require_market()
    import threading

    from thresher.market.market import Market
    from thresher.market.workers import work as work_on

    if not (data / "ledger.db").is_file():
        raise InputError(f"there is no market in {data}: start it first, with thresher serve")
    market = Market.open(data, database)
    say(f"working on the market in {data}; press Ctrl-C to stop")
    work_on(market, threading.Event())
