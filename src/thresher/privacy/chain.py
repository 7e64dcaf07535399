"""A file that only grows: an SQLite table of entries, and a witness beside it.

Every operation reads the whole table and checks it: no entry may be missing or changed, each must
follow the one before, and the witness' hash must be among them. A table without that hash is an
older copy, or another file. The witness is renewed after every commit and before the writer goes
on, so after a crash it may be behind the table, but never ahead. An entry that a crash leaves
without a witness paid for nothing, because its writer had not drawn any noise yet.

Every operation opens its own connection. So threads share nothing, a forked process inherits
nothing, and a replaced file is noticed at once. After a commit, the writer reads the file again
through a new connection. If its entry is missing, or another writer's entry is in its place, it
stops.

Anyone who can write the file can also compute a whole new chain. Only hashes that were recorded
elsewhere, in the releases themselves, tell it from the old one (`verify` takes them).
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import sqlite3
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.drafts import draft_file, fcntl
from thresher.errors import BudgetError, InputError, either, option
from thresher.files import put, resolved, sync_folder, usual_mode
from thresher.privacy.entries import Entry, check_links
from thresher.privacy.witness import Witness, WitnessFile

APPLICATION = int.from_bytes(b"THRL", "big")  # SQLite's mark of whose file this is
TIMEOUT = 60.0  # seconds to wait for other writers
OPENED = either("Ledger.open", f"it with {option('ledger')}")
ATTEMPTS = 100  # at a witness that other writers keep moving
LOCK_BYTES = 0x40000000, 512  # where SQLite locks a file, and how much of it

ALL = "SELECT seq, kind, time, request, body, previous, hash FROM entry ORDER BY seq"
INSERT = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)"
OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"

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


@dataclass(slots=True)
class Page:
    """The checked entries of a chain inside a transaction, and those that it adds."""

    entries: list[Entry]
    witnessed: bool

    def append(self, kind: str, request: str, content: Mapping[str, Any]) -> Entry:
        """The new last entry; it notes whether a witness vouched for those before it.

        Its nonce tells it from an entry that another process makes for the same request.
        """
        about = {"witnessed": self.witnessed, "nonce": secrets.token_hex(8)}
        entry = Entry.after(self.entries[-1], kind, request, {**content, **about})
        self.entries.append(entry)
        return entry


class Chain:
    """An append-only table in a file, and the witness beside it."""

    def __init__(self, path: Path) -> None:
        self.path = resolved(path)
        self.witness = WitnessFile(self.path)
        self.first: Entry | None = None

    @classmethod
    def create(cls, path: Path, kind: str, content: Mapping[str, Any]) -> Chain:
        """A new chain of one entry; the file appears whole, and never in the place of another."""
        chain = cls(path)
        try:
            chain._check_free()
            with draft_file(chain.path.parent) as draft:
                first = Entry.after(None, kind, "", content)
                _write_first(draft, first)
                _check_locks(draft, chain.path)
                chain.witness.check_step()
                draft.chmod(usual_mode())
                with chain.witness.prepared(first):
                    put(draft, chain.path)
                sync_folder(chain.path.parent)
        except FileExistsError:
            chain._check_free()
            raise
        except (sqlite3.Error, OSError) as failure:  # such as a name that no file can have
            raise InputError(f"cannot create {chain.path}: {failure}") from failure
        with chain.appending() as page:
            chain.first = page.entries[0]
        return chain

    @classmethod
    def open(cls, path: Path) -> Chain:
        """The chain in an existing file that is in order and not behind its witness."""
        chain = cls(path)
        try:
            chain.first = chain.read()[0]
        except BudgetError as broken:
            raise InputError(str(broken)) from None
        return chain

    def read(self) -> list[Entry]:
        """All entries, checked."""
        return self._read(self.witness.load())  # first: the table may grow meanwhile

    @contextlib.contextmanager
    def appending(self, *, adopt: bool = False) -> Iterator[Page]:
        """One exclusive transaction: all that is appended is durable and witnessed at its end.

        A chain that has no witness is refused, unless it was just created. To `adopt` it makes a
        new witness, and refuses a chain that has one.
        """
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            witness = self.witness.load()
            entries = self._check(connection, witness, pages=True)
            if witness is not None and adopt:
                raise InputError(f"{self.path} has its witness: there is nothing to adopt")
            if witness is None and not adopt:
                witness = self.witness.begin(entries)
            page = Page(entries, witness is not None)
            known = len(page.entries)
            yield page
            if added := page.entries[known:]:
                self.witness.check_step()
                connection.executemany(INSERT, added)
                connection.execute("COMMIT")
                connection.execute("BEGIN IMMEDIATE")
            self._settle(page.entries[-1], adopt=adopt)
            connection.execute("ROLLBACK")

    def verify(self, head: str | None = None) -> tuple[list[Entry], bool]:
        """All entries, checked, and whether a witness vouches for them."""
        witness = self.witness.load()
        entries = self._read(witness, pages=True)
        if head is not None and head not in {entry.hash for entry in entries}:
            raise BudgetError(
                f"{self.path} does not hold the entry {head!r}: it was replaced by another ledger "
                "or by an older copy; put back the one that paid for that release"
            )
        return entries, witness is not None

    def _settle(self, entry: Entry, *, adopt: bool) -> None:
        """Move the witness on until it vouches for a committed entry; raise if that is not there.

        This runs under the lock, so that a slower writer cannot set the witness back. If locks do
        not work, only one of two writers of the same entry gets past this point.
        """
        for _ in range(ATTEMPTS):
            known = self.witness.load()
            entries = self._read(known)
            if entries[entry.seq : entry.seq + 1] != [entry]:
                raise InputError(
                    f"entry {entry.seq} of {self.path} was overwritten by another process, so locks"
                    " do not work there: no noise was drawn; move the ledger and its witness to a "
                    "local disk"
                )
            if known is None and not adopt:  # it was removed meanwhile
                raise self.witness.missing()
            if known is not None and known.entries > entry.seq:
                return
            self.witness.advance(known, entries)
            if self.witness.load() == Witness.of(entries):
                return
        raise InputError(f"the witness of {self.path} could not be renewed: try again")

    def _read(self, witness: Witness | None, *, pages: bool = False) -> list[Entry]:
        with self._connected() as connection:
            return self._check(connection, witness, pages=pages)

    def _check(
        self, connection: sqlite3.Connection, witness: Witness | None, *, pages: bool
    ) -> list[Entry]:
        """All entries; raise unless they are in order, ours, up to the witness, and in our table.

        Entries are checked before the schema, because a problem with an entry says more. Damage to
        `pages` that no entry shows is checked last, because the next write could spread it.
        """
        entries = [Entry(*row) for row in connection.execute(ALL)]
        check_links(entries, self.path)
        if self.first and entries[0] != self.first:
            raise BudgetError(f"{self.path} was replaced by another ledger after it was opened")
        if witness is not None and not witness.vouches_for(entries):
            raise BudgetError(
                f"{self.path} is older than its witness {self.witness.path.name}, or another "
                "ledger: what was spent since then stays spent; restore the newest copy"
            )
        if connection.execute(OBJECTS).fetchall() != _objects():
            raise BudgetError(
                f"the tables or triggers of {self.path} were changed: restore the newest copy"
            )
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] if pages else "ok"
        if found != "ok":
            problem = " ".join(str(found).split())
            raise BudgetError(f"{self.path} is damaged ({problem}): restore the newest copy")
        return entries

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
        if self.witness.path.exists():
            raise InputError(
                f"there is no ledger {self.path}, but its witness {self.witness.path.name} says "
                "that there was one: put it back"
            )
        make = either("Ledger.create", "thresher ledger create")
        raise InputError(f"there is no ledger {self.path}: {make} makes a new one")

    def _check_free(self) -> None:
        if not self.path.parent.is_dir():
            raise InputError(f"cannot create {self.path}: the folder does not exist")
        journal = self.path.with_name(f"{self.path.name}-journal")
        beside = (self.witness.path, journal, *self.witness.steps())
        left = next((file for file in beside if file.exists()), None)
        if self.path.exists():  # asked last: a ledger comes before all that is beside it
            raise InputError(
                f"{self.path} already exists, and its cap can never change: use {OPENED}, or "
                "another path for other data"
            )
        if left is not None:
            raise InputError(
                f"cannot create {self.path}: {left.name} says that there was a ledger here; "
                f"put it back and use {OPENED}, or choose another path for other data"
            )


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=TIMEOUT, isolation_level=None)


def _make_durable(connection: sqlite3.Connection) -> None:
    """Make a commit return only when it is on the disk, and leave no file beside the table."""
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")


@functools.cache
def _objects() -> list[tuple[Any, ...]]:
    """The tables, indexes and triggers of a new chain."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return connection.execute(OBJECTS).fetchall()


def _write_first(path: Path, entry: Entry) -> None:
    with contextlib.closing(_connect(path, "rwc")) as connection:
        _make_durable(connection)
        connection.executescript(SCHEMA)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(INSERT, entry)
        connection.execute("COMMIT")


def _check_locks(draft: Path, target: Path) -> None:
    """Raise if SQLite's lock on a file in this folder does not keep others out.

    Linux can tell, because the lock of an open file conflicts with the lock of a process, even our
    own. Whether a lock keeps other *machines* out cannot be seen from here.
    """
    if not hasattr(fcntl, "F_OFD_SETLK"):
        return
    with contextlib.closing(_connect(draft, "rw")) as connection, draft.open("r+b") as file:
        connection.execute("BEGIN EXCLUSIVE")
        wanted = struct.pack("@hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, *LOCK_BYTES, 0)
        try:
            fcntl.fcntl(file.fileno(), fcntl.F_OFD_SETLK, wanted)
        except OSError:
            return
    raise InputError(
        f"cannot create {target}: locks do not work in this folder, so two processes could spend "
        "the same budget; use a local disk"
    )
