"""A file that only grows: each entry holds the hash of the one before, and a witness the last.

The file is an SQLite table. Beside it lies its *witness*, `<path>.witness`, with the number of
entries and the hash of the last. It is renewed after every commit and before the writer goes on,
so it may be behind the table after a crash, never ahead: a table in which the witness' hash is
not found is an older copy, or another file. The entry that a crash leaves unwitnessed paid for
nothing, as its writer never came to draw any noise.

Every operation opens its own connection. Nothing is shared between threads or inherited by a
forked process, and a file that is put in the place of another is noticed at once.

Who can write the file can also compute a whole new chain: only hashes that were recorded
elsewhere, in the releases themselves, tell it from the old one (`verify` takes them).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from thresher.errors import BudgetError, InputError
from thresher.files import sync_folder

APPLICATION = int.from_bytes(b"THRL", "big")  # SQLite's mark of whose file this is
TIMEOUT = 60.0  # seconds to wait for other writers
START = "0" * 64  # what the first entry has for the hash of the one before

SELECT = "SELECT seq, kind, time, request, body, previous, hash FROM entry "
ALL = SELECT + "ORDER BY seq"
AT = SELECT + "WHERE seq = ?"
LAST = SELECT + "ORDER BY seq DESC LIMIT 1"
CHARGES = SELECT + "WHERE kind = 'charge' ORDER BY seq"
RELEASE = SELECT + "WHERE kind = 'release' AND request = ?"
FIRST_GAP = "SELECT min(seq) + 1 FROM entry WHERE seq + 1 NOT IN (SELECT seq FROM entry)"
INSERT = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)"

# the third trigger stops INSERT OR REPLACE, which removes rows without asking the second
SCHEMA = """
BEGIN;
CREATE TABLE entry (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('cap', 'charge', 'release')),
    time TEXT NOT NULL,
    request TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE UNIQUE INDEX one_release ON entry (request) WHERE kind = 'release';
CREATE TRIGGER no_update BEFORE UPDATE ON entry
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON entry
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER no_replace BEFORE INSERT ON entry
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), -1) + 1 FROM entry) OR (NEW.kind = 'release'
        AND EXISTS (SELECT 1 FROM entry WHERE kind = 'release' AND request = NEW.request))
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
"""


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


@dataclass(frozen=True, slots=True)
class Witness:
    """What lies beside a chain: how many entries it had, and the hash of the last."""

    entries: int
    head: str


class Chain:
    """An append-only table in a file, and the witness beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.witness = self.path.with_name(f"{self.path.name}.witness")
        self.first: Entry | None = None

    @classmethod
    def create(cls, path: Path, kind: str, content: Mapping[str, Any]) -> Chain:
        """A new chain of one entry; the file appears whole, and never in the place of another."""
        chain = cls(path)
        try:
            chain._check_free()
        except OSError as failure:  # a name that no file can have
            raise InputError(f"cannot create {chain.path}: {failure}") from failure
        draft = chain.path.with_name(f".thresher-{secrets.token_hex(8)}")
        try:
            _write_first(draft, Entry.after(None, kind, "", content))
            _put(draft, chain.path)
        except FileExistsError:
            chain._check_free()
            raise
        except (sqlite3.Error, OSError) as failure:
            raise InputError(f"cannot create {chain.path}: {failure}") from failure
        finally:
            draft.unlink(missing_ok=True)
        with chain.appending() as empty:
            chain.first = empty.read(AT, 0)[0]
        return chain

    @classmethod
    def open(cls, path: Path) -> Chain:
        """The chain in an existing file that is not behind its witness."""
        chain = cls(path)
        try:
            first = chain.read(AT, 0)
        except BudgetError as stale:
            raise InputError(str(stale)) from None
        if not first:
            raise InputError(f"{chain.path} is not a ledger, or is damaged: it has no first entry")
        chain.first = first[0]
        return chain

    def read(self, statement: str, *values: object) -> list[Entry]:
        """The entries that a SELECT finds, each of them intact."""
        witness = self._load_witness()  # before the table, which may grow meanwhile
        with self._connected() as connection:
            self._check_history(connection, witness)
            return self._select(connection, statement, *values)

    @contextlib.contextmanager
    def appending(self) -> Iterator[Appender]:
        """One exclusive transaction: all that is appended is durable and witnessed at its end."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            witness = self._load_witness()
            self._check_history(connection, witness)
            yield Appender(self, connection, witnessed=witness is not None)
            connection.execute("COMMIT")
            self._renew_witness(connection)

    def verify(self, head: str | None = None) -> tuple[list[Entry], bool]:
        """All entries, if none is changed or missing, and whether a witness vouches for them."""
        witness = self._load_witness()
        with self._connected() as connection:
            entries = [Entry(*row) for row in connection.execute(ALL)]
            self._check_links(entries)
            self._check_history(connection, witness)
        if head is not None and head not in {entry.hash for entry in entries}:
            raise BudgetError(
                f"{self.path} does not hold the entry {head!r}: it was replaced by another ledger "
                "or by an older copy; put back the one that paid for that release"
            )
        always = all(entry.content["witnessed"] for entry in entries[1:])
        return entries, witness is not None and always

    def _check_links(self, entries: list[Entry]) -> None:
        if not entries:
            raise BudgetError(f"entry 0 of {self.path} is missing")
        previous = START
        for seq, entry in enumerate(entries):
            if entry.seq != seq:
                raise BudgetError(f"entry {seq} of {self.path} is missing")
            if not entry.intact:
                raise BudgetError(self._changed(seq))
            if entry.previous != previous:
                raise BudgetError(f"entry {seq} of {self.path} does not follow entry {seq - 1}")
            previous = entry.hash

    def _check_history(self, connection: sqlite3.Connection, witness: Witness | None) -> None:
        """Raise unless this is the file that was opened, with no gap, and up to its witness."""
        gaps = connection.execute("SELECT max(seq) + 1 - count(*) FROM entry").fetchone()[0]
        if gaps:
            following = connection.execute(FIRST_GAP).fetchone()[0]
            raise BudgetError(f"entries of {self.path} are missing, the first of them {following}")
        if self.first and self._select(connection, AT, 0) != [self.first]:
            raise BudgetError(f"{self.path} was replaced by another ledger after it was opened")
        if witness is None:
            return
        found = self._select(connection, AT, witness.entries - 1)
        if not found or found[0].hash != witness.head:
            raise BudgetError(
                f"{self.path} is older than its witness {self.witness.name}, or another ledger: "
                "what was spent since then stays spent; put back the newest copy"
            )

    def _select(
        self, connection: sqlite3.Connection, statement: str, *values: object
    ) -> list[Entry]:
        entries = [Entry(*row) for row in connection.execute(statement, values)]
        for entry in entries:
            if not entry.intact:
                raise BudgetError(self._changed(entry.seq))
        return entries

    def _changed(self, seq: int) -> str:
        return f"entry {seq} of {self.path} was changed after it was written"

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation; closing it undoes what was not committed."""
        self._check_there()
        try:
            with contextlib.closing(_connect(self.path, "rw")) as connection:
                mark = connection.execute("PRAGMA application_id").fetchone()[0]
                if mark != APPLICATION:
                    raise InputError(f"{self.path} is not a ledger")
                _make_durable(connection)
                yield connection
        except (sqlite3.Error, OSError, UnicodeError) as failure:
            raise InputError(f"the ledger {self.path} cannot be used: {failure}") from failure

    def _check_there(self) -> None:
        if self.path.is_file():
            return
        if self.witness.exists():
            raise InputError(
                f"there is no ledger {self.path}, but its witness {self.witness.name} says that "
                "there was one: put it back"
            )
        raise InputError(f"there is no ledger {self.path}: Ledger.create makes a new one")

    def _check_free(self) -> None:
        if not self.path.parent.is_dir():
            raise InputError(f"cannot create {self.path}: the folder does not exist")
        if self.path.exists():
            raise InputError(
                f"{self.path} exists already, and a cap is fixed forever: use Ledger.open, or "
                "another path for other data"
            )
        journal = self.path.with_name(f"{self.path.name}-journal")
        for left in (self.witness, journal):
            if left.exists():
                raise InputError(
                    f"cannot create {self.path}: {left.name} says that there was a ledger here; "
                    "put it back and use Ledger.open, or choose another path for other data"
                )

    def _load_witness(self) -> Witness | None:
        try:
            kept = json.loads(self.witness.read_bytes())
            return Witness(int(kept["entries"]), str(kept["head"]))
        except FileNotFoundError:
            return None
        except (OSError, LookupError, TypeError, ValueError) as broken:
            raise InputError(f"{self.witness} is damaged: put back a copy of it") from broken

    def _renew_witness(self, connection: sqlite3.Connection) -> None:
        """Write the hash of the last entry; under the lock, lest a slower writer set it back."""
        connection.execute("BEGIN IMMEDIATE")
        last = self._select(connection, LAST)[0]
        draft = self.witness.with_name(f"{self.witness.name}.new")
        with draft.open("w", encoding="ascii") as file:
            json.dump(asdict(Witness(last.seq + 1, last.hash)), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.witness)
        sync_folder(self.path.parent)
        connection.execute("ROLLBACK")


class Appender:
    """What may be done inside a transaction."""

    def __init__(self, chain: Chain, connection: sqlite3.Connection, *, witnessed: bool) -> None:
        self._chain, self._connection, self._witnessed = chain, connection, witnessed

    def read(self, statement: str, *values: object) -> list[Entry]:
        """The entries that a SELECT finds, each of them intact."""
        return self._chain._select(self._connection, statement, *values)

    def append(self, kind: str, request: str, content: Mapping[str, Any]) -> Entry:
        """The new last entry; it notes whether a witness vouched for those before it."""
        last = self.read(LAST)[0]
        entry = Entry.after(last, kind, request, {**content, "witnessed": self._witnessed})
        self._connection.execute(INSERT, entry.fields)
        return entry


def _json(content: object) -> str:
    try:
        return json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError) as unfit:
        raise InputError(f"a ledger holds JSON only: {unfit}") from None


def _digest(fields: tuple[object, ...]) -> str:
    text = json.dumps(fields, default=repr, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=TIMEOUT, isolation_level=None)


def _make_durable(connection: sqlite3.Connection) -> None:
    """A commit returns when it is on the disk, and leaves no file beside the table."""
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")


def _write_first(path: Path, entry: Entry) -> None:
    with contextlib.closing(_connect(path, "rwc")) as connection:
        _make_durable(connection)
        connection.executescript(SCHEMA)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(INSERT, entry.fields)
        connection.execute("COMMIT")


def _put(draft: Path, target: Path) -> None:
    """Give a finished file its name, unless the name is taken."""
    try:
        target.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: take the name first
        target.touch(exist_ok=False)
        draft.replace(target)
    sync_folder(target.parent)
