"""The market's database: SQLite in a folder, or PostgreSQL by its URL.

Everything happens in a transaction: `reading` only reads, and `writing` makes changes. On SQLite, a
writing transaction takes the write lock at its start, so it never has to be repeated. The threads
of a process queue for that lock here. SQLite itself lets waiting threads retry after a while, and
among many of them one might never get its turn. On PostgreSQL, a transaction locks a row before it
changes it (`with_for_update`).

What is deleted must leave SQLite's files, which only their owner can read. `secure_delete`
overwrites it in the database, and emptying the write-ahead log removes it from there. A reader that
is slow can keep the log from being emptied. Then it is tried again after each later transaction,
and when a server opens the database.
"""

from __future__ import annotations

import contextlib
import glob
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import Session

from thresher.errors import InputError

WAIT = 30_000  # milliseconds that a transaction waits for another one
SETUP = (  # deleted rows are overwritten
    "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={WAIT}",
    "secure_delete=ON", "temp_store=MEMORY",
)  # fmt: skip
EMPTY_LOG = "wal_checkpoint(TRUNCATE)"
LOG_WAIT = 5_000  # milliseconds to wait for readers before the log can be emptied
DELETED = "deleted"  # in the `info` of a session that deletes rows
PATIENCE = {  # PostgreSQL's
    "options": f"-c lock_timeout={WAIT} -c statement_timeout={4 * WAIT}",
    "connect_timeout": "10",
}
CONNECTIONS = {"pool_size": 5, "max_overflow": 60}  # more than a server has threads
MIGRATING = 0x7468726573686572  # the advisory lock of a migration


class Database:
    """A database, and how to begin transactions in it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> database = Database(sqlite_url(folder.name))
    >>> database.migrate()
    >>> with database.reading() as session:
    ...     session.scalar(text("select count(*) from members"))
    0
    >>> database.close()
    >>> folder.cleanup()
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        one_writes = self.engine.dialect.name == "sqlite"
        self._turn: AbstractContextManager[Any] = threading.Lock() if one_writes else nullcontext()
        self._has_log, self._log_is_due = one_writes, False

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that changes nothing."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that is committed if the block ends well, and rolled back otherwise."""
        engine = self.engine.execution_options(immediate=True)
        with self._turn:
            with Session(engine, expire_on_commit=False) as session, session.begin():
                yield session
            self._log_is_due |= DELETED in session.info
            if self._log_is_due:
                self._empty_log()

    def migrate(self) -> None:
        """Migrate the tables to this version; two servers that start at once take turns."""
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        with self.engine.execution_options(immediate=True).begin() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.execute(text(f"select pg_advisory_xact_lock({MIGRATING})"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        with self._turn:
            self._empty_log()  # a server may have died before it could

    def _empty_log(self) -> None:
        """Remove from SQLite's write-ahead log what was deleted, or note that it is still due."""
        if not self._has_log:
            self._log_is_due = False
            return
        with contextlib.closing(self.engine.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"pragma busy_timeout={LOG_WAIT}")
            try:
                (busy, *_) = cursor.execute(f"pragma {EMPTY_LOG}").fetchone()
            except sqlite3.OperationalError:  # such as a full disk; the deletion is committed
                busy = True
            cursor.execute(f"pragma busy_timeout={WAIT}")
        self._log_is_due = bool(busy)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def sqlite_url(folder: str | Path) -> str:
    """The URL of the database in a folder."""
    return f"sqlite:///{Path(folder).resolve() / 'market.db'}"


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError("database must be a URL such as postgresql://user@host/name") from None
    if parsed.get_backend_name() == "postgresql":
        named = {"options", "connect_timeout"} & {*parsed.query}  # by whoever wrote the URL
        given = {name: PATIENCE[name] for name in PATIENCE.keys() - named}
        parsed = parsed.set(drivername="postgresql+psycopg")
        return create_engine(parsed, pool_pre_ping=True, connect_args=given, **CONNECTIONS)
    if parsed.get_backend_name() != "sqlite":
        raise InputError(
            f"database must be SQLite or PostgreSQL, got {parsed.get_backend_name()!r}"
        )
    if parsed.database not in {None, "", ":memory:"}:
        make_private(Path(str(parsed.database)))  # SQLite gives its log the same permissions
    engine = create_engine(parsed, **CONNECTIONS)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def make_private(path: Path) -> None:
    """Let only its owner read a file and those of SQLite beside it; create it if it is missing."""
    if path.parent.is_dir():
        path.touch(mode=0o600)
    for file in path.parent.glob(f"{glob.escape(path.name)}*"):
        with contextlib.suppress(FileNotFoundError):  # another server has just removed it
            file.chmod(0o600)


def _set_up(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    for setting in SETUP:
        connection.execute(f"pragma {setting}")


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("begin immediate" if immediate else "begin")
