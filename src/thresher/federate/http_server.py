"""The coordinator's side over HTTP, on the standard library.

    GET  /task                     the task, as JSON
    GET  /stages/<stage>/<silo>    the message of a stage for a silo; 204 while there is none yet
    POST /messages                 a message of a silo

Everything that matters is signed or sealed, so an eavesdropper on plain HTTP learns no more than
the coordinator. A body must have its stated length, and cannot be longer than the longest message
of the task.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from thresher.federate.coordinator_round import DONE, STEPS, CoordinatorRound
from thresher.federate.primitives import ProtocolError

POLL_SECONDS = 5.0  # how long a question waits for its answer
SLOWEST = 30.0  # seconds that a peer may be silent while it speaks
STAGE = re.compile(r"/stages/(\d{1,2})/(\d{1,4})")


class RoundServer:
    """A round behind HTTP; `failure` and `result` are those of the round.

    Parameters
    ----------
    round
        The coordinator's state machine.
    task
        The task, as JSON.
    host, port
        Where to listen; port 0 takes a free one.
    wait, first_wait
        Seconds until a step is closed without those who have not answered; the first step, in
        which silos arrive, has its own.
    """

    def __init__(
        self, round: CoordinatorRound, task: bytes, *, host: str, port: int, wait: float,  # noqa: A002
        first_wait: float, tell: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.round, self.task = round, task
        self.change, self._tell = threading.Condition(), tell or (lambda _: None)
        self._wait, self._first_wait = wait, first_wait
        self._served: set[int] = set()
        server = self

        class Handler(_Handler):
            owner = server

        self._http = _Listener((host, port), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The URL at which silos reach it."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    def run(self) -> None:
        """Wait until the round is over; steps are closed at their deadlines."""
        with self.change:
            while not self._over():
                step = self.round.step
                left = self._first_wait if step == 0 else self._wait
                self._tell(f"waiting for {STEPS[step].name.lower()}")
                self.change.wait_for(lambda step=step: self._over() or self.round.step > step, left)  # type: ignore[misc]
                if self.round.step == step and not self._over():
                    self.round.close()
                    self.change.notify_all()

    def linger(self, seconds: float) -> None:
        """Keep serving until all survivors have fetched the result, or for this many seconds."""
        with self.change:
            self.change.wait_for(lambda: not self._unserved(), seconds)

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def receive(self, raw: bytes) -> None:
        """Take in a message."""
        with self.change:
            self.round.receive(raw)
            self.change.notify_all()

    def outgoing(self, stage: int, silo: int) -> bytes | None:
        """The message of a stage for a silo; wait a while for it."""
        if silo >= self.round.terms.silos or stage > DONE:
            raise ProtocolError(f"silo {silo} or stage {stage} does not exist")
        with self.change:
            found = self.change.wait_for(lambda: self.round.outgoing(stage, silo), POLL_SECONDS)
            if stage == DONE and found is not None:
                self._served.add(silo)
                self.change.notify_all()
            return found

    def _over(self) -> bool:
        return bool(self.round.failure) or self.round.step == DONE

    def _unserved(self) -> set[int]:
        return set(self.round.expected) - self._served


class _Listener(ThreadingHTTPServer):
    request_queue_size = 1024  # silos that arrive at the same moment
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    owner: RoundServer
    protocol_version = "HTTP/1.1"
    timeout = SLOWEST

    def do_GET(self) -> None:
        """Answer a question."""
        if self.path == "/task":
            self._answer(200, self.owner.task, "application/json")
        elif found := STAGE.fullmatch(self.path):
            self._refusing(lambda: self.owner.outgoing(int(found[1]), int(found[2])))
        else:
            self._refuse(404, f"there is nothing at {self.path!r}")

    def do_POST(self) -> None:
        """Take in a message."""
        length = self.headers.get("Content-Length", "")
        if self.path != "/messages" or not length.isascii() or not length.isdigit():
            self._refuse(404, "messages of a stated length go to /messages")
        elif int(length) > self.owner.round.terms.longest:
            self.close_connection = True
            self._refuse(413, f"a message has at most {self.owner.round.terms.longest} bytes")
        else:
            raw = self.rfile.read(int(length))
            self._refusing(lambda: self.owner.receive(raw))

    def _refusing(self, call: Callable[[], bytes | None]) -> None:
        try:
            found = call()
        except ProtocolError as refused:
            self._refuse(409, str(refused))
            return
        if found is None:
            self._answer(204)
        else:
            self._answer(200, found)

    def _refuse(self, code: int, message: str) -> None:
        body = json.dumps({"error": {"kind": "refused", "message": message}}).encode()
        self._answer(code, body, "application/json")

    def _answer(self, code: int, body: bytes = b"", kind: str = "application/octet-stream") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
