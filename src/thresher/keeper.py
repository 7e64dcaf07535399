"""`Keeper`: one SQLite file for data that must survive a crash.

After a crash or a power cut, everything that was committed is there, and nothing else. SQLite does
not notice a flipped bit within an entry, so users of this module store a checksum with each entry.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import struct
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from thresher.errors import InputError
from thresher.files import why

APPLICATION = int.from_bytes(b"THRK", "big")  # SQLite's mark of whose file this is
DAMAGED = "is damaged: put back a copy of it, or remove it"
IN_USE = "is in use by another process, or was opened twice in this one"
REASONS = {  # by how the name of SQLite's error begins
    "SQLITE_BUSY": IN_USE,
    "SQLITE_LOCKED": IN_USE,
    "SQLITE_NOTADB": "is another kind of file, or damaged: move it away, or choose a new name",
    "SQLITE_CORRUPT": DAMAGED,
}
NUMBER = struct.Struct("<QI")  # the number of commits, and its checksum


class Keeper:
    """An SQLite file with tables of one kind, open in this process alone.

    Parameters
    ----------
    path
        The file, which is created if it does not exist.
    schema
        Statements that create the tables of a new file.
    kind
        What the file is, such as "thresher.checkpoint/3". A file of another kind is refused.
    what
        The name for the file in messages, such as "checkpoint".
    shared
        Let other processes read and write it, too; each then waits for its turn.
    log
        Commit to a log beside the file, which `close` moves into the file. A commit then waits for
        the disk once instead of four times.

    Notes
    -----
    SQLite takes a damaged log for one that ends early. So the number of commits is kept in the file
    and, after each commit, in another file next to it. If commits are missing, the file is refused.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "cells.db")
    >>> with Keeper(path, "CREATE TABLE cell (name TEXT)", kind="cells/1", what="store") as kept:
    ...     with kept.change():
    ...         _ = kept.do("INSERT INTO cell VALUES (?)", "first")
    ...     list(kept.rows("SELECT name FROM cell"))
    [('first',)]
    """

    def __init__(
        self, path: str | os.PathLike[str], schema: str, *, kind: str, what: str,
        shared: bool = False, log: bool = False,
    ) -> None:  # fmt: skip
        self.path, self.kind, self.what = Path(path), kind, what
        self._process = os.getpid()
        self._commits: _Commits | None = None
        with self._refusals():
            self._file = sqlite3.connect(
                path, timeout=60 if shared else 0, isolation_level=None, check_same_thread=False
            )
        try:
            self._start(schema, shared=shared)
            if log:
                self._start_log()
        except BaseException:
            self._file.close()
            raise
        _open_keepers.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def do(self, statement: str, *entries: Any) -> sqlite3.Cursor:
        """Run one statement."""
        with self._refusals():
            return self._file.execute(statement, entries)

    def do_many(self, statement: str, rows: Any) -> None:
        """Run one statement for each of the rows."""
        with self._refusals():
            self._file.executemany(statement, rows)

    def rows(self, statement: str, *entries: Any) -> Iterator[tuple[Any, ...]]:
        """The rows that a statement finds, one after the other."""
        with self._refusals():
            yield from self._file.execute(statement, entries)

    def row(self, statement: str, *entries: Any) -> tuple[Any, ...]:
        """The one row that a statement must find."""
        for found in self.rows(statement, *entries):
            return found
        raise InputError(f"{self.what} {self.path} {DAMAGED}")

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        """Commit everything that is done inside at the end, or nothing."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a failed commit may have rolled back
                self._file.execute("ROLLBACK")
            raise

    def begin(self) -> None:
        """Start a change, unless one has been started."""
        if not self._file.in_transaction:
            self.do("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit the change, and return when it is on the disk."""
        if self._commits is None:
            self.do("COMMIT")
            return
        number = self._commits.number + 1
        self.do("UPDATE kind SET commits = ?", number)
        self.do("COMMIT")
        with self._refusals():
            self._commits.write(number)

    def compact(self) -> None:
        """Return space that is no longer used to the disk."""
        self.do("VACUUM")
        if self._commits is not None:
            self.do("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file, so that others can use it; what was not committed is lost."""
        if self._process != os.getpid():  # see `_leave_to_parent`
            return
        self._file.close()
        _open_keepers.discard(self)
        if self._commits is not None:
            self._commits.close(needed=self._beside("-wal").exists())
            self._commits = None

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    def _start(self, schema: str, *, shared: bool) -> None:
        self.do("PRAGMA synchronous = FULL")
        for name in ("fullfsync", "checkpoint_fullfsync"):  # macOS: not the drive's cache
            self.do(f"PRAGMA {name} = ON")
        if not shared:
            self.do("PRAGMA locking_mode = EXCLUSIVE")
        self.do("BEGIN IMMEDIATE" if shared else "BEGIN EXCLUSIVE")
        wanted = [text.strip() for text in schema.split(";") if text.strip()]
        found = [text for (text,) in self.rows("SELECT sql FROM sqlite_master") if text]
        (mark,) = self.row("PRAGMA application_id")
        if not mark and found in ([], wanted):  # new, or made by a version that left no mark
            for statement in wanted[len(found) :]:
                self.do(statement)
            self.do("CREATE TABLE kind (name TEXT NOT NULL, commits INTEGER NOT NULL)")
            self.do("INSERT INTO kind VALUES (?, 0)", self.kind)
            self.do(f"PRAGMA application_id = {APPLICATION}")
        elif mark != APPLICATION or self.row("SELECT name FROM kind") != (self.kind,):
            raise InputError(
                f"{self.what} {self.path} is another kind of file, or was made by another "
                "version: move it away, or choose a new name"
            )
        self.do("COMMIT")

    def _start_log(self) -> None:
        self.do("PRAGMA journal_mode = WAL")
        self.do("PRAGMA wal_checkpoint(TRUNCATE)")  # what is read now may not be on the disk yet
        (number,) = self.row("SELECT commits FROM kind")
        with self._refusals():
            self._commits = _Commits(self._beside("-commits"))
        missing = self._commits.number - number
        if missing > 0:
            self._commits.close(needed=True)
            raise InputError(
                f"{self.what} {self.path} is damaged: its last {missing} commits are missing; put "
                "back a copy of it and of the files next to it"
            )
        with self._refusals():
            self._commits.write(number)

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """Turn SQLite's errors into an `InputError` that names the file."""
        name = f"{self.what} {self.path}"
        try:
            yield
        except sqlite3.Error as refused:
            code = str(getattr(refused, "sqlite_errorname", ""))
            for start, reason in REASONS.items():
                if code.startswith(start):
                    raise InputError(f"{name} {reason}") from None
            raise InputError(f"{name} cannot be used: {refused}") from refused
        except UnicodeDecodeError:  # a message of SQLite about a name that is none
            raise InputError(f"{name} {DAMAGED}") from None
        except OSError as refused:
            raise InputError(f"{name} cannot be used: {why(refused)}") from None


class _Commits:
    """The number of commits, in a separate file that is never ahead of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
        self.number = 0  # where a power cut left nothing that is whole
        found = self._file.read()
        if len(found) == NUMBER.size and NUMBER.unpack(found)[1] == zlib.crc32(found[:8]):
            self.number = NUMBER.unpack(found)[0]

    def write(self, number: int) -> None:
        self.number = number
        self._file.seek(0)
        self._file.write(NUMBER.pack(number, zlib.crc32(struct.pack("<Q", number))))

    def close(self, *, needed: bool) -> None:
        self._file.close()
        if not needed:
            self.path.unlink(missing_ok=True)


_open_keepers = weakref.WeakSet[Keeper]()


def _leave_to_parent() -> None:
    """Keep connections of the parent open in a forked process: closing them would end the log.

    An extra reference keeps each connection even when Python frees everything as it exits.
    """
    for keeper in _open_keepers:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(keeper._file))


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_leave_to_parent)
