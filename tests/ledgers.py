"""Ledgers for tests, and what somebody with an editor can do to them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from thresher.privacy.ledger import Ledger


def make(path, epsilon=1.0, delta=0.0, **terms):
    return Ledger.create(path, epsilon=epsilon, delta=delta, **terms)


def raw(path, *statements, values=()):
    """Run SQL on the file, as somebody with an editor would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement, values)


def untie(path):
    raw(path, *(f"DROP TRIGGER {name}" for name in ("no_update", "no_delete", "no_replace")))
