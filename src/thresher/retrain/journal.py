"""A file that a broken run goes on from: every utility that was paid for, as it came.

It says what the run is, and holds blocks of utilities, each with a checksum. A damaged block is
computed again. Who goes on with other data or settings is refused, and any file that is not a
journal is left alone. More evaluations are no other setting: a run that is through can be
prolonged.
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from thresher.errors import InputError, ThresherWarning
from thresher.files import check_sealed, sealed
from thresher.keeper import Keeper
from thresher.retrain.utility import Outcome

KIND = "thresher.retrain/3"
SCHEMA = """
CREATE TABLE run (about TEXT NOT NULL);
CREATE TABLE block (stream INTEGER, start INTEGER, outcome BLOB NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (stream, start))
"""
Key = tuple[int, int]


class Journal:
    """The utilities known so far, and where new ones are written; without a path, nowhere."""

    def __init__(self, path: str | Path | None, about: Mapping[str, Any], *, size: int) -> None:
        self.size = size  # coalitions a block; that of the file, where there is one
        self.known: dict[Key, Outcome] = {}
        self._keeper: Keeper | None = None
        if path is None:
            return
        self._keeper = Keeper(check_path(path), SCHEMA, kind=KIND, what="checkpoint")
        try:
            self._start(self._keeper, json.loads(json.dumps({"format": KIND, **about})))
        except BaseException:
            self._keeper.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._keeper is not None:
            self._keeper.close()

    def write(self, outcomes: Mapping[Key, Outcome]) -> None:
        """Add these blocks, and wait until they are on the disk."""
        if self._keeper is None or not outcomes:
            return
        rows = []
        for key, outcome in outcomes.items():
            failed = [int(flag) for flag in outcome.failed]
            entry = [outcome.utilities, failed, outcome.warned, outcome.complaint]
            content = json.dumps(entry).encode()
            rows.append((*key, content, _checksum(key, content)))
        with self._keeper.change():
            self._keeper.do_many("INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?)", rows)

    def _start(self, keeper: Keeper, about: dict[str, Any]) -> None:
        for (text,) in keeper.rows("SELECT about FROM run"):
            self._go_on(keeper, text, about)
            return
        if keeper.row("SELECT count(*) FROM block") != (0,):
            raise InputError(f"checkpoint {keeper.path} is damaged: remove it")
        with keeper.change():
            text = json.dumps(sealed({**about, "size": self.size}))
            keeper.do("INSERT INTO run VALUES (?)", text)

    def _go_on(self, keeper: Keeper, text: str, about: dict[str, Any]) -> None:
        """Read what another run left, if it was the same; else raise."""
        try:
            found = json.loads(text)
            check_sealed(found, KIND)
        except (TypeError, ValueError):
            raise InputError(f"checkpoint {keeper.path} is damaged: remove it") from None
        for name, ours in about.items():
            if found.get(name) != ours:
                raise InputError(
                    f"checkpoint {keeper.path} belongs to another run: its {name} is "
                    f"{found.get(name)!r}, not {ours!r}; choose a new name, or go on with the same "
                    "arguments"
                )
        self.size, damaged = int(found["size"]), 0
        for stream, start, outcome, checksum in keeper.rows(
            "SELECT stream, start, outcome, checksum FROM block"
        ):
            if isinstance(outcome, bytes) and checksum == _checksum((stream, start), outcome):
                self.known[stream, start] = Outcome(*json.loads(outcome))
            else:
                damaged += 1
        if damaged:
            words = f"{damaged} blocks of checkpoint {keeper.path} are damaged: they are computed"
            warnings.warn(f"{words} again", ThresherWarning, stacklevel=6)


def _checksum(key: Key, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(f"{key[0]} {key[1]}".encode()))


def check_path(path: object) -> Path:
    """The path of a file that can be there."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise InputError(f"checkpoint must be the path of a file, got {path!r}")
    found = Path(path)
    if found.is_dir():
        raise InputError(f"checkpoint must be the path of a file, got the folder {path}")
    if not found.parent.is_dir():
        raise InputError(f"checkpoint {path}: the folder {found.parent} does not exist")
    return found
