"""A backup of a market's folder while it runs."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from thresher.errors import InputError


def back_up(folder: Path, out: Path) -> list[Path]:
    """Copy the database, then the ledger and its witness, into a new folder.

    The ledger is copied last, so it has every release that the database has. A ledger from a backup
    does not know what was spent after the backup. So restore it only if the newest one is lost, and
    then charge what was released since.
    """
    if out.exists():
        raise InputError(f"{out} already exists: name another folder")
    if not (folder / "ledger.db").exists():
        raise InputError(f"there is no market in {folder}")
    out.mkdir(mode=0o700, parents=True)
    made = [_copied(folder / name, out) for name in ("market.db", "ledger.db")
            if (folder / name).exists()]  # fmt: skip
    witness = folder / "ledger.db.witness"
    return [*made, Path(shutil.copy2(witness, out))] if witness.exists() else made


def _copied(path: Path, out: Path) -> Path:
    """Copy a database in its state at one moment."""
    target = out / path.name
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    target.chmod(0o600)
    return target
