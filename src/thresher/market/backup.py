"""A backup of a market's folder while it runs."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from thresher.errors import InputError


def back_up(folder: Path, out: Path) -> list[Path]:
    """Copy the database, then the witness of the ledger, then the ledger, into a new folder.

    The ledger is copied last, so it has every release that the database has, and every entry that
    the witness knows, although the market goes on. A ledger from a backup does not know what was
    spent after the backup. So restore it only if the newest one is lost, and then charge what was
    released since.
    """
    if out.exists():
        raise InputError(f"{out} already exists: name another folder")
    if not (folder / "ledger.db").exists():
        raise InputError(f"there is no market in {folder}")
    out.mkdir(mode=0o700, parents=True)
    names = ("market.db", "ledger.db.witness", "ledger.db")
    return [_copied(folder / name, out) for name in names if (folder / name).exists()]


def _copied(path: Path, out: Path) -> Path:
    """Copy a file in its state at one moment, for its owner alone."""
    target = out / path.name
    target.touch(mode=0o600)
    if path.suffix == ".witness":
        shutil.copyfile(path, target)
        return target
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    return target
