"""The command `thresher` in processes that start at once, to be killed.

They are forks of a process that has imported everything, which runs this file: it reads lines of
JSON, the arguments of a command and its log, and prints the id of the process that runs it. When
whoever started it ends, however it ends, it and its forks end too.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

WHEN_THE_PARENT_DIES = 1  # of prctl
IMPORTED = (  # all that a server or a worker imports sooner or later
    "opendp.prelude", "pandas", "psycopg", "sklearn", "thresher.market.app", "thresher.report",
    "uvicorn.loops.auto", "uvicorn.lifespan.on", "uvicorn.protocols.http.auto",
    "sqlalchemy.dialects.postgresql.psycopg", "alembic.ddl.postgresql",
)  # fmt: skip


def wait_until(true, what, seconds=60, process=None):
    """Wait; raise with what was waited for if it takes too long, or `process` ended meanwhile.

    While this process stands still no time passes: others may have stood still, too.
    """
    waited, last = 0.0, time.monotonic()
    while not true():
        if process is not None:
            process.check()
        if waited > seconds:
            raise TimeoutError(f"{what}: not after {seconds} seconds")
        time.sleep(0.01)
        waited, last = waited + min(time.monotonic() - last, 1.0), time.monotonic()


class Process:
    """A server or a worker of the market in a folder."""

    def __init__(self, folder, url, *, port=None):
        told = ["serve", "--port", str(port)] if port else ["work"]
        told += ["--data", str(folder), *(["--database", url] if url else [])]
        self.log = Path(folder) / "process.log"
        parent = forking()
        parent.stdin.write(json.dumps([told, str(self.log)]) + "\n")
        parent.stdin.flush()
        self.id = int(parent.stdout.readline())

    @property
    def alive(self):
        try:
            os.kill(self.id, 0)
        except ProcessLookupError:
            return False
        return True

    def check(self):
        """Raise if it ended by itself, with the last that it said."""
        if not self.alive:
            raise RuntimeError(f"a process ended by itself: {self.log.read_text()[-2000:]}")

    def kill(self):
        if self.alive:
            os.kill(self.id, signal.SIGKILL)
        wait_until(lambda: not self.alive, "a killed process ends")


@functools.cache
def forking():
    """The process that forks; it ends with this one, as its input does."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def warm_up():
    """Do once what every process would do for the first time; no threads may start here."""
    from market_cases import hand_in, join_owners, made_up, open_task

    from thresher.market.app import create_app
    from thresher.market.market import Market

    with tempfile.TemporaryDirectory() as folder:
        market = Market.open(folder)
        buyer, task = open_task(market)
        (owner,) = join_owners(market, buyer, task, 1)
        hand_in(market, owner, task, made_up(8, 1))
        create_app(market)
        market.close()


def main():
    """Fork for every line."""
    for name in IMPORTED:
        with suppress(ImportError):
            import_module(name)
    warm_up()
    from thresher.cli import main as run

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that ended leave nothing behind
    for line in sys.stdin:
        arguments, log = json.loads(line)
        made = os.fork()
        if made:
            print(made, flush=True)  # noqa: T201
            continue
        ctypes.CDLL(None).prctl(WHEN_THE_PARENT_DIES, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, place in enumerate((os.open(os.devnull, os.O_RDONLY), to, to)):
            os.dup2(place, number)
        sys.argv[1:] = arguments
        return run()
    return None


if __name__ == "__main__":
    main()
