"""A silo's side over HTTP: fetch and answer messages until the result is there."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from thresher.errors import InputError
from thresher.federate.coordinator_round import DONE
from thresher.federate.primitives import ProtocolError
from thresher.federate.silo_round import SiloRound

PAUSE = 0.05  # seconds, doubled at each failure
LONGEST_PAUSE = 2.0
ANSWER_SECONDS = 60.0
LARGEST_TASK = 1 << 32


class Link:
    """A connection to a coordinator that retries for up to `patience` seconds without an answer.

    Messages are signed and repeats change nothing, so a request may be tried again.
    """

    def __init__(self, url: str, patience: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InputError(f"url must be like http://host:port, got {url!r}")
        self._parts, self._patience = parts, patience
        self.sent = self.received = 0  # bytes of bodies

    def get(self, path: str, most: int) -> bytes | None:
        """The body at a path, of at most `most` bytes; None if there is none yet."""
        return self._ask("GET", path, None, most)

    def post(self, path: str, body: bytes) -> None:
        """Send a body."""
        self._ask("POST", path, body, 0)
        self.sent += len(body)

    def _ask(self, verb: str, path: str, body: bytes | None, most: int) -> bytes | None:
        pause, end = PAUSE, time.monotonic() + self._patience
        while True:
            try:
                return self._once(verb, path, body, most)
            except (OSError, http.client.HTTPException) as lost:
                if time.monotonic() + pause > end:
                    raise ProtocolError(
                        f"the coordinator at {self._parts.netloc} does not answer: {lost}"
                    ) from None
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _once(self, verb: str, path: str, body: bytes | None, most: int) -> bytes | None:
        parts = self._parts
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(parts.hostname or "", parts.port, timeout=ANSWER_SECONDS)
        try:
            connection.request(verb, parts.path.rstrip("/") + path, body)
            answer = connection.getresponse()
            found = answer.read(most + 4096)
        finally:
            connection.close()
        if answer.status not in {200, 204}:
            raise ProtocolError(_reason(answer.status, found))
        if len(found) > max(most, 0):
            raise ProtocolError(f"an answer has more than {most} bytes")
        self.received += len(found)
        return found if answer.status == 200 else None


def fetch_task(link: Link) -> Any:
    """The task's document from the coordinator; nothing in it is checked."""
    found = link.get("/task", LARGEST_TASK)
    try:
        return json.loads(found or b"null")
    except (ValueError, RecursionError):
        raise ProtocolError("the coordinator did not answer with a task") from None


def play(
    link: Link, start: Callable[[bytes], SiloRound], number: int, longest: int, wait: float
) -> Iterator[SiloRound]:
    """Take part in a round, and yield after each stage; the last yield has the result.

    `wait` is how many seconds a silo waits for one stage.
    """
    opening = _stage(link, 0, number, longest, wait)
    silo = start(opening)
    link.post("/messages", silo.first)
    yield silo
    for stage in range(1, DONE + 1):
        answer = silo.receive(_stage(link, stage, number, longest, wait))
        if answer:
            link.post("/messages", answer)
        yield silo


def _stage(link: Link, stage: int, number: int, longest: int, wait: float) -> bytes:
    end = time.monotonic() + wait
    while True:
        found = link.get(f"/stages/{stage}/{number}", longest)
        if found is not None:
            return found
        if time.monotonic() > end:
            raise ProtocolError(f"the coordinator sent nothing for {wait:g} seconds")


def _reason(status: int, body: bytes) -> str:
    """The coordinator's reason for a refusal, in one short line."""
    try:
        said = str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        said = f"it answered with the status {status}"
    return f"the coordinator refused: {said[:300]}"
