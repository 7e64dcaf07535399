"""Entries of a ledger: each holds the hash of the one before, so that no change goes unnoticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from thresher.errors import BudgetError, InputError

START = "0" * 64  # what the first entry has for the hash of the one before
HASHED = json.JSONEncoder(default=repr, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Entry:
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
        """The body, read."""
        return json.loads(self.body)

    @property
    def intact(self) -> bool:
        """Whether the hash is that of the other fields."""
        return self.hash == _digest(self.fields[:-1])

    @property
    def fields(self) -> tuple[Any, ...]:
        """The row, as the table holds it."""
        return (self.seq, self.kind, self.time, self.request, self.body, self.previous, self.hash)


def check_links(entries: Sequence[Entry], path: Path) -> None:
    """Raise unless every entry is there, as it was written, and follows the one before."""
    if not entries:
        raise BudgetError(f"entry 0 of {path} is missing: put back the newest copy")
    previous = START
    for seq, entry in enumerate(entries):
        if entry.seq != seq:
            raise BudgetError(f"entry {seq} of {path} is missing: put back the newest copy")
        if not entry.intact:
            raise BudgetError(
                f"entry {seq} of {path} was changed after it was written: put back the newest copy"
            )
        if entry.previous != previous:
            raise BudgetError(
                f"entry {seq} of {path} does not follow entry {seq - 1}: put back the newest copy"
            )
        previous = entry.hash


def _json(content: object) -> str:
    try:
        return json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError) as unfit:
        raise InputError(f"a ledger holds JSON only: {unfit}") from None


def _digest(fields: tuple[object, ...]) -> str:
    return hashlib.sha256(HASHED.encode(fields).encode("ascii")).hexdigest()
