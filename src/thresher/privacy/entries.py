"""Entries of a ledger, and what they add up to: charges, their total, and stored answers.

Each entry holds the hash of the one before, so that no change goes unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from thresher.errors import BudgetError, InputError
from thresher.privacy.accountants import Cost, gaussian_epsilon, gaussian_mu
from thresher.privacy.cap import SCALE, Units

START = "0" * 64  # what the first entry has for the hash of the one before
HASHED = json.JSONEncoder(default=repr, separators=(",", ":"))
ROUNDING = 1e-9  # of an epsilon that was converted from mu and back
BROKEN = (AttributeError, InputError, LookupError, RecursionError, TypeError, ValueError)


class Entry(NamedTuple):
    """One row; `body` is JSON, `hash` is the SHA-256 of all the others."""

    seq: int
    kind: str
    time: str
    request: str
    body: str
    previous: str
    hash: str

    @classmethod
    def after(cls, last: Entry | None, kind: str, request: str, content: Any) -> Entry:
        """The entry that follows `last`."""
        fields = (
            last.seq + 1 if last else 0,
            kind,
            datetime.now(UTC).isoformat(timespec="seconds"),
            request,
            _json(content),
            last.hash if last else START,
        )
        return cls(*fields, _digest(fields))

    @property
    def content(self) -> dict[str, Any]:
        """The body as a dictionary."""
        return json.loads(self.body)

    @property
    def is_adoption(self) -> bool:
        """Whether it records that somebody went on without the witness: it costs nothing."""
        return self.kind == "charge" and self.content.get("adopted") is True

    @property
    def intact(self) -> bool:
        """Whether the hash is that of the other fields."""
        return self.hash == _digest(self[:-1])


def check_links(entries: Sequence[Entry], path: Path) -> None:
    """Raise unless every entry is there, as it was written, and follows the one before."""
    if not entries:
        raise BudgetError(f"entry 0 of {path} is missing: restore the newest copy")
    previous = START
    for seq, entry in enumerate(entries):
        wrong = {
            "is missing": entry.seq != seq,
            "was changed after it was written": not entry.intact,
            f"does not follow entry {seq - 1}": entry.previous != previous,
        }
        if any(wrong.values()):
            first = next(what for what, found in wrong.items() if found)
            raise BudgetError(f"entry {seq} of {path} {first}: restore the newest copy")
        previous = entry.hash


def _json(content: object) -> str:
    try:
        return json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError) as unfit:
        raise InputError(f"a ledger holds JSON only: {unfit}") from None


def _digest(fields: tuple[object, ...]) -> str:
    return hashlib.sha256(HASHED.encode(fields).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Balance:
    """All entries of a ledger, with charges by number and releases by request."""

    entries: Sequence[Entry]
    charges: dict[int, Entry]
    releases: dict[str, Entry]
    total: Units

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Balance:
        """The balance of a whole chain, whose first entry is the cap."""
        charges: dict[int, Entry] = {}
        releases: dict[str, Entry] = {}
        total = Units()
        for entry in entries[1:]:
            if entry.kind == "charge":
                total += _units(entry, entries[0])
                if not entry.is_adoption:
                    charges[entry.seq] = entry
            elif entry.kind == "release" and entry.request not in releases:
                releases[entry.request] = entry
            else:
                raise BudgetError(f"entry {entry.seq} is neither a charge nor a first release")
        return cls(entries, charges, releases, total)

    def answer(self, request: str) -> dict[str, Any] | None:
        """The body of the release of this request, if there is one and a charge paid for it."""
        entry = self.releases.get(request)
        if entry is None:
            return None
        try:
            content = entry.content
            paid = self.charges.get(content["charge"])
            body: dict[str, Any] = content["body"]
        except BROKEN as broken:
            raise BudgetError(f"entry {entry.seq} cannot be read: {broken}") from None
        if paid is None or paid.request != request or paid.seq > entry.seq:
            raise BudgetError(f"entry {entry.seq} is a release that no charge paid for")
        return body


def _units(entry: Entry, cap: Entry) -> Units:
    try:
        units, about = Units.stored(entry.content["cost"]), entry.content["about"]
        return _as_proved(units, about, cap.content)
    except BROKEN as broken:
        raise BudgetError(f"entry {entry.seq} has a cost that cannot be read: {broken}") from None


def _as_proved(units: Units, about: Mapping[str, Any], terms: Mapping[str, Any]) -> Units:
    """The cost that a charge should have had: older versions charged two kinds too little.

    Both are for the table of a release of owners, under replacement. A ledger of points was charged
    for a squared length of 2 B instead of 6 B (T9). A ledger of owners was charged for 6 B instead
    of 8 B (T17) if the task of a federated release protected silos.
    """
    owners = (about.get("unit"), about.get("mechanism")) == ("owner", "table")
    if terms.get("adjacency") != "replace-one" or not owners:
        return units
    if terms.get("unit") == "point" and "epsilon_replace_one_point" not in about:
        growth = math.ceil((1 + math.exp(min(units.epsilon / SCALE, 700.0))) * (1 + 1e-12) * 2**40)
        delta = -(-units.delta * growth // 2**40)  # two changes of one owner each
        return Units(3 * units.mu_squared, 2 * units.epsilon, delta)
    if terms.get("unit") == "owner" and "task_digest" in about:
        return _for_owners_in_silos(units, about["epsilon_replace_one"], about["delta"])
    return units


def _for_owners_in_silos(units: Units, epsilon: float, delta: float) -> Units:
    """The cost for 8 B if it was charged for 6 B; `epsilon` and `delta` are those for 2 B.

    Such a charge does not say whether its task protected owners or silos. But one for owners was
    charged for 2 B.
    """
    mu = gaussian_mu(epsilon, delta) * (1 + ROUNDING)
    if units.mu_squared > 2 * mu**2 * SCALE:
        return Units.of(Cost(mu_squared=4 * mu**2))
    if units.epsilon > 1.5 * epsilon * SCALE:
        proved = Units.of(Cost(epsilon=gaussian_epsilon(2 * mu, delta)))
        return replace(proved, delta=units.delta)
    return units
