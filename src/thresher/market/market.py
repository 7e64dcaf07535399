"""A market: its folder, its database, its ledger and its key."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import func, select

from thresher.errors import InputError, either, option
from thresher.market.database import Database, make_private, sqlite_url
from thresher.market.members import add_member
from thresher.market.receipts import sign
from thresher.market.tables import Key, Member
from thresher.privacy.ledger import Ledger

EPSILON, DELTA = 10.0, 1e-5  # the cap of a ledger for which the operator named none


@dataclass(frozen=True)
class Market:
    """An open market; its folder holds the ledger and, unless another is named, the database."""

    folder: Path
    database: Database

    @classmethod
    def open(
        cls, folder: str | Path, url: str | None = None, *, epsilon: float | None = None,
        delta: float | None = None,
    ) -> Market:  # fmt: skip
        """Open the market in a folder, and create what is missing there.

        Parameters
        ----------
        folder
            Only its owner may read it. All servers of a market share it.
        url
            The URL of the database. The default is SQLite in the folder.
        epsilon, delta
            The cap of the ledger: what all tasks together may cost an owner. It is fixed when the
            ledger is made, by default at 10 and 1e-5. Later, another cap is refused.
        """
        folder = Path(folder)
        _make_private_folder(folder)
        market = cls(folder, Database(url or sqlite_url(folder)))
        market.database.migrate()
        market._make_ledger(epsilon, delta)
        market._make_key()
        return market

    @property
    def ledger_path(self) -> Path:
        """The ledger of the whole market."""
        return self.folder / "ledger.db"

    @cached_property
    def key(self) -> Ed25519PrivateKey:
        """The key that signs receipts."""
        with self.database.reading() as session:
            return Ed25519PrivateKey.from_private_bytes(session.get_one(Key, 1).private)

    def sign(self, document: dict[str, Any]) -> dict[str, Any]:
        """A document with the market's signature."""
        return sign(self.key, document)

    def first_operator(self) -> str | None:
        """Create the first operator and return its token; None if there is an operator."""
        with self.database.writing() as session:
            there = select(func.count()).select_from(Member).where(Member.role == "operator")
            if session.scalar(there):
                return None
            return add_member(session, "operator", "operator")[1]

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def _make_ledger(self, epsilon: float | None, delta: float | None) -> None:
        lock = self.folder / "ledger.lock"
        make_private(lock)
        with lock.open("w") as held:
            os.lockf(held.fileno(), os.F_LOCK, 0)  # two servers that start at once take turns
            if not self.ledger_path.exists():
                cap = EPSILON if epsilon is None else epsilon, DELTA if delta is None else delta
                Ledger.create(
                    self.ledger_path, epsilon=cap[0], delta=cap[1], unit="owner",
                    data_set="all rows of the market",
                )  # fmt: skip
                make_private(self.ledger_path)
                return
            make_private(self.ledger_path)
            with Ledger.open(self.ledger_path) as ledger:
                ledger.check_witness()  # now, rather than when the first task has closed
        self._check_cap(epsilon=epsilon, delta=delta)

    def _check_cap(self, **asked: float | None) -> None:
        """Raise if a cap is given that differs from the fixed one."""
        given = {name: number for name, number in asked.items() if number is not None}
        if not given:
            return
        with Ledger.open(self.ledger_path) as ledger:
            for name, number in given.items():
                fixed = getattr(ledger, name)
                if number != fixed:
                    raise InputError(
                        f"{either(name, option(f'cap_{name}'))} must be {fixed:g}, got {number:g}: "
                        "it was fixed when the market was first opened. Leave it out, or use "
                        "another folder"
                    )

    def _make_key(self) -> None:
        with self.database.writing() as session:
            if session.get(Key, 1) is None:
                made = Ed25519PrivateKey.generate().private_bytes_raw()
                session.add(Key(id=1, private=made))


def _make_private_folder(folder: Path) -> None:
    """Create the folder, or take it over: only its owner may read it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & stat.S_ISVTX:
            raise PermissionError(errno.EPERM, "many users share it")
        folder.chmod(0o700)
    except OSError as refused:
        raise InputError(
            f"the market cannot keep {folder} to itself ({refused.strerror}): name a folder of its "
            "own"
        ) from None
