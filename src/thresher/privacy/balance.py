"""What the entries of a ledger add up to: charges, their total, and answers by request."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thresher.errors import BudgetError, InputError
from thresher.privacy.cap import SCALE, Units
from thresher.privacy.entries import Entry

BROKEN = (AttributeError, InputError, LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Balance:
    """All entries, the charges by their number, the releases by their request."""

    entries: Sequence[Entry]
    charges: dict[int, Entry]
    releases: dict[str, Entry]
    total: Units

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Balance:
        """The balance of a whole chain, of which the first entry is the cap."""
        charges: dict[int, Entry] = {}
        releases: dict[str, Entry] = {}
        total = Units()
        for entry in entries[1:]:
            if entry.kind == "charge":
                charges[entry.seq] = entry
                total += _units(entry, entries[0])
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
        return _as_proved(units) if _is_too_low(about, cap.content) else units
    except BROKEN as broken:
        raise BudgetError(f"entry {entry.seq} has a cost that cannot be read: {broken}") from None


def _is_too_low(about: Mapping[str, Any], terms: Mapping[str, Any]) -> bool:
    """Whether a charge is of the time when a replaced point was taken to keep its owner (T9)."""
    points = (terms.get("unit"), terms.get("adjacency")) == ("point", "replace-one")
    owners = (about.get("unit"), about.get("mechanism")) == ("owner", "table")
    return points and owners and "epsilon_replace_one_point" not in about


def _as_proved(units: Units) -> Units:
    """What such a charge has to count for: the squared length 6 B instead of 2 B.

    As a pair, it is two changes of one owner each: 2 epsilon, and (1 + e^epsilon) delta.
    """
    growth = math.ceil((1 + math.exp(min(units.epsilon / SCALE, 700.0))) * (1 + 1e-12) * 2**40)
    delta = -(-units.delta * growth // 2**40)
    return Units(3 * units.mu_squared, 2 * units.epsilon, delta)
