"""`Silo`: counts its own points at home, adds its share of the noise, and sends a masked table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import InputError, ThresherWarning, either, option
from thresher.federate.http_client import Link, fetch_task, play
from thresher.federate.keys import Key
from thresher.federate.round_release import Holding, exact_prices, exact_table, outcome
from thresher.federate.signed_task import Task
from thresher.federate.silo_round import SiloRound
from thresher.inputs.checks import check_flag
from thresher.privacy.dp_tknn import check_units
from thresher.privacy.ledger import Ledger, Receipt
from thresher.privacy.noise import Noise
from thresher.privacy.tabled_noise import TabledSystem

PATIENCE = 60.0  # seconds without an answer of the coordinator
WAIT = 3600.0  # seconds for one step
NO_LEDGER = (
    "no ledger was given: nothing adds up what is released about these points, so several rounds "
    f"together may reveal more than any of them states; pass {option('ledger')}"
)


class Silo:
    """A party with its own points, which never leave it.

    Parameters
    ----------
    X, y
        The silo's points, as in `dp_tknn_shapley`.
    key
        The silo's key, whose public part is in the task.
    approve
        The task that this silo takes part in: the `Task` itself, or its digest, which you compared
        with the other silos. Without this check, the operator of the coordinator could invent the
        other silos.
    owners
        The owner of each point, if the task protects owners.
    ledger
        A `Ledger` or its path, charged before anything leaves this silo. Without one, pass None: a
        `ThresherWarning` then says that nothing adds up what is released. A task without noise fits
        no ledger, and is refused with one.
    reveal_exact_counts
        Pass True to take part in a task without noise.
    noise
        For tests: a source of noise other than the operating system's entropy.

    Examples
    --------
    A silo checks a task before it joins a round; docs/federation.md has a whole round.

    >>> import tempfile
    >>> import thresher as th
    >>> from thresher.federate import Key, Silo, Task
    >>> key, own, other = Key.create(), Key.create(), Key.create()
    >>> task = Task.create(
    ...     [[1.0, 0.0], [0.0, 1.0]], ["yes", "no"], silos={"a": own.public, "b": other.public},
    ...     key=key, epsilon=1, delta=1e-6, fewest=2,
    ... )
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = th.Ledger.create(f"{folder.name}/ledger.db", epsilon=3, delta=1e-6)
    >>> silo = Silo([[0.9, 0.1]], ["yes"], key=own, approve=task.digest, ledger=ledger)
    >>> silo.check(task) is task
    True
    >>> folder.cleanup()
    """

    def __init__(
        self, X: Any, y: Any, *, key: Key, approve: Task | str,
        ledger: str | Path | Ledger | None, owners: Any = None, reveal_exact_counts: bool = False,
        noise: Noise | None = None,
    ) -> None:  # fmt: skip
        self._points, self._key = (X, y, owners), key
        self._approved = approve if isinstance(approve, str) else approve.digest
        self._ledger = Ledger.open(ledger) if isinstance(ledger, str | Path) else ledger
        self._noise = noise or TabledSystem()
        self._reveal = check_flag("reveal_exact_counts", reveal_exact_counts)
        self._receipt: Receipt | None = None
        self.bytes_sent = 0

    def join(self, url: str, *, patience: float = PATIENCE, wait: float = WAIT) -> Any:
        """Take part in the round at `url`; returns the release with this silo's values.

        Raises `BudgetError` if the release does not fit the ledger. Then nothing has left this silo
        except keys and sealed shares of keys. Raises `ProtocolError` if the coordinator or another
        silo does not follow the protocol, or the round fails. By then, the silo may have sent its
        masked table, and its ledger may have been charged.
        """
        link = Link(url, patience)
        task = self.check(Task.read(fetch_task(link)))
        holding = self._holding(task) if task.is_private else None
        # what cannot be counted is refused before anything is sent
        exact = exact_table(task, *self._points[:2]) if holding is None else None
        number = task.protocol.number_of(bytes.fromhex(self._key.public))

        def start(opening: bytes) -> SiloRound:
            return SiloRound(
                task.protocol, self._key.secret, opening,
                lambda name: (
                    exact if holding is None else self._contribution(task, holding, name)
                ),
            )  # fmt: skip

        *_, done = play(link, start, number, task.protocol.longest, wait)
        self.bytes_sent = link.sent
        return self._outcome(task, done, holding)

    def check(self, task: Task) -> Task:
        """Return the task if this silo approved it and can take part; raise otherwise."""
        if task.digest != self._approved:
            raise InputError(
                f"the coordinator's task has the digest {task.digest}, but this silo approved "
                f"{self._approved}: ask the other silos which digest they have"
            )
        if not task.is_private and not self._reveal:
            raise InputError(
                "the task has no noise: everyone would learn exact counts of all silos together; "
                f"pass {option('reveal_exact_counts', value=True)} if that is what you want"
            )
        if not task.is_private and self._ledger is not None:
            raise InputError(
                "a ledger cannot be used with a task without noise, which fits no budget: "
                f"{either('pass ledger=None', 'leave the ledger out')}, or take part in a task "
                "with noise"
            )
        if task.is_private and self._ledger is None:
            warnings.warn(NO_LEDGER, ThresherWarning, stacklevel=2)
        if self._ledger is not None:
            self._ledger.check_witness()  # now, rather than in a round that others wait for
        if (self._points[2] is not None) != (task.terms["unit"] == "owner"):
            owners = either("owners", option("owner"))
            raise InputError(
                f"the task protects each {task.terms['unit']}: pass {owners} if the task protects "
                "owners, and leave it out otherwise"
            )
        return task

    def _holding(self, task: Task) -> Holding:
        X, y, owners = self._points
        return Holding.of(task, X, y, owners)

    def _contribution(self, task: Task, holding: Holding, name: bytes) -> Any:
        """Charge the ledger, draw the share of the noise, and only then count."""
        self._charge(task, name)
        entries = task.protocol.entries
        noise = self._noise.gaussian(task.share_sigma, entries)
        return np.asarray(holding.table(task).ravel() + noise, np.int64)

    def _charge(self, task: Task, name: bytes) -> None:
        if self._ledger is None:
            return
        book = self._ledger
        check_units(book, task.design)
        cost = task.design.cost(book.adjacency, task.changed_by(book.unit), book.filter)
        record = task.record(task.design)
        self._receipt = book.charge(f"federated round {name.hex()}", cost, record)

    def _outcome(self, task: Task, done: SiloRound, holding: Holding | None) -> Any:
        assert done.result is not None  # noqa: S101 - by the last stage
        if holding is None:
            return exact_prices(task, done.result)
        receipt, entry = self._receipt, None
        if receipt is not None:
            entry = {"entry": receipt.seq, "head": receipt.head}
        found = outcome(task, done.result, done.survivors, done.round, holding, ledger=entry)
        if self._ledger is not None and receipt is not None:
            body = {"record": dict(found.record), "table": found.table.tolist()}
            self._ledger.complete(f"federated round {done.round.hex()}", receipt, body)
        return found
