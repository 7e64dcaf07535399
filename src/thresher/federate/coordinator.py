"""`Coordinator`: opens a round of a task over HTTP, adds up, and publishes the release."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Self

from thresher.federate.coordinator_round import CoordinatorRound
from thresher.federate.http_server import RoundServer
from thresher.federate.keys import Key
from thresher.federate.primitives import ProtocolError
from thresher.federate.round_release import Holding, exact_prices, outcome
from thresher.federate.signed_task import Task
from thresher.inputs.checks import check_count, check_number

LINGER = 30.0  # seconds that silos have to fetch the result


class Coordinator:
    """The party that adds up what silos count and sees only the noisy sum; use it with `with`.

    Parameters
    ----------
    task
        The task, made with `key`.
    key
        The coordinator's key.
    host, port
        Where to listen. The default is on this machine only, at a free port.
    wait
        Seconds that silos have for each step; late silos are left out.
    first_wait
        Seconds that silos have to arrive.
    tell
        A function that is called with messages about the progress.

    Examples
    --------
    A coordinator listens; docs/federation.md has a whole round of three silos.

    >>> from thresher.federate import Coordinator, Key, Task
    >>> key, silos = Key.create(), {"north": Key.create().public, "south": Key.create().public}
    >>> task = Task.create(
    ...     [[1.0, 0.0], [0.0, 1.0]], ["yes", "no"], silos=silos, key=key,
    ...     epsilon=1, delta=1e-6, fewest=2,
    ... )
    >>> with Coordinator(task, key=key) as running:
    ...     running.url.rpartition(":")[0]
    'http://127.0.0.1'
    """

    def __init__(
        self, task: Task, *, key: Key, host: str = "127.0.0.1", port: int = 0, wait: float = 120.0,
        first_wait: float = 3600.0, tell: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.task = task
        self._round = CoordinatorRound(task.protocol, key.secret)
        self._server = RoundServer(
            self._round, json.dumps(task.document()).encode(), host=host,
            port=check_count("port", port, least=0),
            wait=check_number("wait", wait, least=0.01, most=1e6),
            first_wait=check_number("first_wait", first_wait, least=0.01, most=1e6), tell=tell,
        )  # fmt: skip

    @property
    def url(self) -> str:
        """Where silos join."""
        return self._server.url

    def run(self) -> Any:
        """Wait for the silos; returns the `Release`, or a price list if counts are exact.

        Raises `ProtocolError` if too few silos are left at a step. In that case, nobody has learned
        a sum, and another `Coordinator` can try again.
        """
        self._server.run()
        found = self._round
        if found.result is None:
            self._server.linger(0.5)  # so that silos learn why
            raise ProtocolError(f"the round failed: {found.failure}")
        self._server.linger(LINGER)
        if not self.task.is_private:
            return exact_prices(self.task, found.result)
        holding = Holding.none(self.task)
        return outcome(self.task, found.result, found.survivors, found.round, holding)

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
