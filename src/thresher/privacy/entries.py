"""Entries of a ledger: each holds the hash of the one before, so that no change goes unnoticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from thresher.errors import BudgetError, InputError

START = "0" * 64  # what the first entry has for the hash of the one before
HASHED = json.JSONEncoder(default=repr, separators=(",", ":"))


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
        """The body, read."""
        return json.loads(self.body)

    @property
    def intact(self) -> bool:
        """Whether the hash is that of the other fields."""
        return self.hash == _digest(self[:-1])


def check_links(entries: Sequence[Entry], path: Path) -> None:
    """Raise unless every entry is there, as it was written, and follows the one before."""
    if not entries:
        raise BudgetError(f"entry 0 of {path} is missing: put back the newest copy")
    previous = START
    for seq, entry in enumerate(entries):
        wrong = {
            "is missing": entry.seq != seq,
            "was changed after it was written": not entry.intact,
            f"does not follow entry {seq - 1}": entry.previous != previous,
        }
        if any(wrong.values()):
            first = next(what for what, found in wrong.items() if found)
            raise BudgetError(f"entry {seq} of {path} {first}: put back the newest copy")
        previous = entry.hash


def _json(content: object) -> str:
    try:
        return json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError) as unfit:
        raise InputError(f"a ledger holds JSON only: {unfit}") from None


def _digest(fields: tuple[object, ...]) -> str:
    return hashlib.sha256(HASHED.encode(fields).encode("ascii")).hexdigest()
