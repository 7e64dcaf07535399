"""The ledger: a cap on all releases about one data set, and a record of all that was spent.

Every release is charged before its noise is drawn. Checking and charging are one transaction. A
crash can waste budget but cannot leak data: a charge without a release stays spent. Every operation
reads and checks all entries before it uses any of them (`chain`).

A charge fits if the new total is within the cap, even if each release was chosen after seeing the
ones before (`cap`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, get_args

from thresher.errors import BudgetError, InputError, option, plain_text
from thresher.files import resolved
from thresher.inputs.checks import check_choice, check_text
from thresher.privacy.accountants import (
    Adjacency,
    Budget,
    Cost,
    Filter,
    Unit,
    check_adjacency,
    check_filter,
)
from thresher.privacy.cap import Cap, Terms, Units
from thresher.privacy.chain import Chain
from thresher.privacy.entries import Balance, Entry

FORMAT = "thresher.ledger/1"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of a charge: its number in the ledger, and the ledger's last hash after it."""

    seq: int
    head: str


@dataclass(frozen=True, slots=True)
class Verified:
    """A ledger that passed its check: its length, last hash, and whether it kept its witness.

    `adopted` is how often it went on although its witness was missing.
    """

    entries: int
    head: str
    witnessed: bool
    adopted: int = 0


class Ledger(Terms):
    """A file that holds a privacy budget for one data set and refuses what does not fit.

    `Ledger.create` makes the file once. Then any number of processes and threads can use it at the
    same time through `Ledger.open`. Never delete or replace the file: what was released cannot be
    taken back.

    Attributes
    ----------
    epsilon, delta, adjacency, unit, data_set, filter
        As in `create`; they never change.

    Examples
    --------
    >>> import tempfile
    >>> import thresher as th
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = th.Ledger.create(f"{folder.name}/ledger.db", epsilon=1, delta=0)
    >>> data = [[0.1], [0.8]], ["cat", "dog"], [[0.0], [1.0]], ["cat", "dog"]
    >>> about = {"radius": 0.3, "metric": "euclidean", "mechanism": "cells"}
    >>> first = th.dp_tknn_shapley(*data, epsilon=0.4, delta=0, **about, ledger=ledger)
    >>> ledger.remaining()
    0.6
    >>> again = th.dp_tknn_shapley(*data, epsilon=0.4, delta=0, **about, ledger=ledger)
    >>> again.values.tolist() == first.values.tolist(), ledger.remaining()  # not charged again
    (True, 0.6)
    >>> folder.cleanup()
    """

    def __init__(self, chain: Chain) -> None:
        if not isinstance(chain, Chain):
            raise InputError(
                f"Ledger cannot be called, got {chain!r}: Ledger.open(path) opens an existing "
                "ledger, and Ledger.create(path, epsilon=, delta=) makes a new one"
            )
        self._kept: Chain | None = chain
        self._path = chain.path
        self._cap = _read_cap(chain)
        super().__init__(**asdict(self._cap))

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        epsilon: float,
        delta: float,
        adjacency: Adjacency = "add-remove",
        unit: Unit = "point",
        data_set: str = "",
        filter: Filter | None = None,  # noqa: A002 - the word of the field
    ) -> Ledger:
        """A new ledger, whose terms are fixed forever.

        Parameters
        ----------
        path
            A new file on a local disk: processes can take turns only where locks work. A witness
            file appears next to it; keep both.
        epsilon, delta
            The cap: all releases together are (epsilon, delta)-DP.
        adjacency
            How adjacent data sets differ: `"add-remove"` adds or removes one unit, and
            `"replace-one"` replaces one.
        unit
            The unit: `"point"`, or `"owner"` with all points of that owner.
        data_set
            What the ledger protects, in words. Data sets that share people share a ledger.
        filter
            How costs add up. "gaussian" (the default for delta > 0) accepts the mechanisms "table"
            and "cells", and is the tightest for many releases. "basic" accepts all mechanisms, and
            adds up epsilons and deltas.

        Raises
        ------
        InputError
            If an argument cannot be used, there is or was a ledger at `path`, or locks do not
            work there.
        """
        cap = _check_terms(epsilon, delta, adjacency, unit, data_set, filter)
        terms = {"format": FORMAT, "id": secrets.token_hex(16), **asdict(cap)}
        return cls(Chain.create(_check_path(path), "cap", terms))

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """The ledger in an existing file that is not older than its witness.

        If the witness is missing, the ledger can be read, but not charged (`Ledger.adopt`).
        """
        return cls(Chain.open(_check_path(path)))

    @classmethod
    def adopt(cls, path: str | Path) -> Ledger:
        """Open a ledger whose witness is lost, and make a new witness.

        Without its witness, nothing shows whether a ledger is the newest copy. If it is older, then
        all that was released since is forgotten, and its budget can be spent again. So do this only
        if you know that the file is the newest one. The ledger records it forever: `verify` and
        `entries` show it. To check first that the ledger has the hash of your last release, use
        `verify(head=...)`.

        Raises
        ------
        InputError
            If the ledger has its witness, or cannot be used.
        """
        ledger = cls.open(path)
        with ledger._chain().appending(adopt=True) as page:
            nothing = {"cost": asdict(Units()), "about": {}, "adopted": True}
            page.append("charge", "adoption", nothing)  # a kind that older versions can read
        return ledger

    @property
    def witnessed(self) -> bool:
        """Whether the witness is there now; without it, nothing can be charged."""
        return self._chain().witness.load() is not None

    def check_witness(self) -> None:
        """Raise unless the ledger has its witness, as every charge does."""
        with self._chain().appending():
            pass

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def spent(self) -> Cost:
        """The total of all charges."""
        return self._balance().total.cost

    def remaining(self) -> float:
        """The largest epsilon of one more release; 0.0 if none fits. Rounded down.

        With the Gaussian filter, a Gaussian release of this epsilon at the ledger's delta still
        fits. With the basic filter, this is what is left of epsilon.
        """
        return self._cap.left(self._balance().total)

    def entries(self) -> list[dict[str, Any]]:
        """All entries, oldest first, for display: kind, seq, time, request, cost, about."""
        return [_shown(entry) for entry in self._balance().entries]

    def verify(self, *, head: str | None = None) -> Verified:
        """Raise unless every entry is as it was written and the charges are within the cap.

        A `BudgetError` names the first broken entry, or says that the ledger is older than its
        witness, or lacks `head`: a hash recorded earlier, such as a `Receipt` holds.

        `witnessed` is False if the witness file is missing now, or was at any earlier entry. Then
        the ledger cannot show that it is the newest copy. `adopted` counts the times that somebody
        made a new witness (`Ledger.adopt`).
        """
        entries, witnessed = self._chain().verify(head)
        balance = Balance.of(entries)
        for request in balance.releases:
            balance.answer(request)
        if not self._cap.fits(balance.total):
            raise BudgetError(f"the charges in {self.path} exceed its cap")
        always = all(entry.content.get("witnessed") is True for entry in entries[1:])
        adopted = sum(entry.is_adoption for entry in entries)
        return Verified(len(entries), entries[-1].hash, witnessed and always, adopted)

    def charge(self, request: str, cost: Cost, about: Mapping[str, Any]) -> Receipt:
        """Record `cost` as spent, on disk, before any noise is drawn.

        `request` identifies the release: equal requests get one answer. `about` has its public
        facts, as JSON. A `BudgetError` means that the release does not fit or that the ledger is
        damaged, and that nothing was spent. So does an `InputError`, such as for a ledger that has
        no witness.
        """
        check_text("request", request, empty=False)
        asked = Units.of(cost)
        with self._chain().appending() as page:
            spent = Balance.of(page.entries).total
            if not self._cap.fits(spent + asked):
                name = repr(self.data_set) if self.data_set else self.path.name
                raise BudgetError(self._cap.refusal(name, asked.cost, spent, about))
            content = {"cost": asdict(asked), "about": dict(about)}
            entry = page.append("charge", request, content)
        return Receipt(entry.seq, entry.hash)

    def stored(self, request: str) -> dict[str, Any] | None:
        """The stored answer to this request, or None if there is none."""
        check_text("request", request, empty=False)
        return self._balance().answer(request)

    def complete(self, request: str, receipt: Receipt, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store `body` as the answer to the request unless it has one; return the stored one."""
        with self._chain().appending() as page:
            balance = Balance.of(page.entries)
            stored = balance.answer(request)
            if stored is not None:
                return stored
            paid = balance.charges.get(receipt.seq)
            if paid is None or (paid.request, paid.hash) != (request, receipt.head):
                raise InputError(f"receipt {receipt.seq} does not belong to request {request!r}")
            entry = page.append("release", request, {"charge": receipt.seq, "body": dict(body)})
        return entry.content["body"]

    def release(
        self, request: str, cost: Cost, about: Mapping[str, Any],
        draw: Callable[[Receipt], Mapping[str, Any]],
    ) -> tuple[dict[str, Any], bool]:  # fmt: skip
        """The answer to the request, and whether it was charged now.

        A request that was answered before gets the same answer at no cost: noise is not drawn
        twice, so nobody can average it away. Otherwise the ledger is charged, `draw(receipt)` makes
        the answer, and the answer is stored. If `draw` fails, the charge stays, and asking again is
        charged again.
        """
        stored = self.stored(request)
        if stored is not None:
            return stored, False
        receipt = self.charge(request, cost, about)
        return self.complete(request, receipt, draw(receipt)), True

    def close(self) -> None:
        """Stop using this object. There is no file to close: none is held open between calls."""
        self._kept = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._balance().charges)

    def __bool__(self) -> bool:
        return True  # a ledger without charges is a ledger, whatever its length

    def __repr__(self) -> str:
        terms = f"epsilon={self.epsilon:g}, delta={self.delta:g}, {self.adjacency}, {self.unit}"
        return plain_text(f"Ledger({self.path.name}, {terms})")

    def _chain(self) -> Chain:
        if self._kept is None:
            raise InputError(f"the ledger {self.path} is closed: use Ledger.open")
        return self._kept

    def _balance(self) -> Balance:
        return Balance.of(self._chain().read())


def _check_terms(
    epsilon: Any, delta: Any, adjacency: Any, unit: Any, data_set: Any, kept: Any
) -> Cap:
    budget, choice = Budget(epsilon, delta), check_choice(option("unit"), unit, get_args(Unit))
    return Cap(
        budget.epsilon,
        budget.delta,
        check_adjacency(adjacency),
        "owner" if choice == "owner" else "point",
        check_text(option("data_set"), data_set),
        check_filter(kept, budget.delta),
    )


def _read_cap(chain: Chain) -> Cap:
    """The cap in the first entry, checked just like a new one."""
    try:
        terms = chain.first.content if chain.first and chain.first.kind == "cap" else {}
        cap = [terms[name] for name in ("format", *Cap.__match_args__)]
    except (LookupError, RecursionError, TypeError, ValueError):
        cap = [None]
    if cap[0] != FORMAT:
        raise InputError(f"{chain.path} is not a ledger of the format {FORMAT}")
    return _check_terms(*cap[1:])


def _shown(entry: Entry) -> dict[str, Any]:
    shown = {name: getattr(entry, name) for name in ("kind", "seq", "time", "request")}
    content = entry.content
    if entry.is_adoption:
        return {**shown, "kind": "adoption", "cost": None, "about": {}}
    if entry.kind == "charge":
        return {**shown, "cost": Units(**content["cost"]).cost, "about": content["about"]}
    return {**shown, "cost": None, "about": content}


def _check_path(path: object) -> Path:
    text = check_text("path", str(path) if isinstance(path, Path) else path, empty=False)
    if "\0" in text or not resolved(Path(text)).name:
        raise InputError(f"path must be the name of a file, got {text!r}")
    return Path(text)
