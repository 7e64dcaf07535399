"""Keeper: one SQLite file for what must survive a crash.

What was committed is there after a crash or a power cut; what was not committed is gone, whole. The
file is not in write-ahead mode, so all that was committed is in it alone. SQLite itself does not
notice a flipped bit within an entry, so those who keep something here keep a checksum with it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from thresher.errors import InputError
from thresher.files import why

APPLICATION = int.from_bytes(b"THRK", "big")  # SQLite's mark of whose file this is
LOCKED = {"SQLITE_BUSY", "SQLITE_LOCKED"}


class Keeper:
    """An SQLite file with tables of one kind, open in this process alone.

    Parameters
    ----------
    path
        The file; it is made where it is not there.
    schema
        Statements that make the tables of a new file.
    kind
        What the file is, such as "thresher.checkpoint/3". A file of another kind is refused.
    what
        What messages call it, such as "checkpoint".
    shared
        Let other processes read and write it, too; each then waits for its turn.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "cells.db")
    >>> with Keeper(path, "CREATE TABLE cell (name TEXT)", kind="cells/1", what="store") as kept:
    ...     with kept.change():
    ...         _ = kept.do("INSERT INTO cell VALUES (?)", "first")
    ...     kept.do("SELECT name FROM cell").fetchall()
    [('first',)]
    """

    def __init__(
        self, path: str | os.PathLike[str], schema: str, *, kind: str, what: str,
        shared: bool = False,
    ) -> None:  # fmt: skip
        self.path, self.kind, self.what = Path(path), kind, what
        self._process = os.getpid()
        with self._refusals():
            self._file = sqlite3.connect(
                path, timeout=60 if shared else 0, isolation_level=None, check_same_thread=False
            )
        try:
            self._begin(schema, shared=shared)
        except BaseException:
            self._file.close()
            raise

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

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        """All that is done inside is committed at the end, or none of it."""
        self.do("BEGIN IMMEDIATE")
        try:
            yield
            self.do("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a failed commit may have rolled back
                self._file.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Let others have the file; what was not committed is gone."""
        if self._process == os.getpid():  # in a forked process, closing would drop our locks
            self._file.close()

    def _begin(self, schema: str, *, shared: bool) -> None:
        self.do("PRAGMA synchronous = FULL")
        if not shared:
            self.do("PRAGMA locking_mode = EXCLUSIVE")
        self.do("BEGIN IMMEDIATE" if shared else "BEGIN EXCLUSIVE")
        mark = self.do("PRAGMA application_id").fetchone()[0]
        empty = not self.do("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if empty and not mark:
            for statement in schema.split(";"):
                if statement.strip():
                    self.do(statement)
            self.do("CREATE TABLE kind (name TEXT NOT NULL)")
            self.do("INSERT INTO kind VALUES (?)", self.kind)
            self.do(f"PRAGMA application_id = {APPLICATION}")
        elif mark != APPLICATION or self._found() != self.kind:
            raise InputError(
                f"{self.what} {self.path} is another kind of file, or of another version: choose a "
                "new name"
            )
        self.do("COMMIT")

    def _found(self) -> str | None:
        try:
            row = self._file.execute("SELECT name FROM kind").fetchone()
        except sqlite3.OperationalError:
            return None
        return None if row is None else str(row[0])

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """Whatever SQLite refuses inside is an `InputError` that names the file."""
        try:
            yield
        except sqlite3.Error as refused:
            name = f"{self.what} {self.path}"
            code = str(getattr(refused, "sqlite_errorname", ""))
            if any(code.startswith(each) for each in LOCKED):
                raise InputError(f"{name} is in use by another process") from None
            if code.startswith("SQLITE_NOTADB"):
                text = "is another kind of file, or damaged: choose a new name"
                raise InputError(f"{name} {text}") from None
            if code.startswith("SQLITE_CORRUPT"):
                text = "is damaged: put back a copy of it, or remove it"
                raise InputError(f"{name} {text}") from None
            raise InputError(f"{name} cannot be used: {refused}") from refused
        except OSError as refused:
            raise InputError(f"{self.what} {self.path} cannot be used: {why(refused)}") from None
