"""A file from which an interrupted run continues.

It holds what the run is, and pieces of work that are done, each with checksums. A piece is written
whole or not at all. A damaged piece counts as missing and is computed again. Another run, with
other data or settings, is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from thresher.errors import InputError, ThresherWarning
from thresher.keeper import Keeper

KIND = "thresher.checkpoint/3"
SCHEMA = """
CREATE TABLE piece (
    name TEXT NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (name, number)
)
"""
RUN = "run"  # the piece that says what the run is
Chunk = Any  # bytes, or whatever else has a buffer


class Checkpoint:
    """What a run has done so far; without a path it keeps nothing.

    Parameters
    ----------
    path
        The file; it is made if it does not exist.
    about
        What the run is: a file of another run is refused. Afterwards it is what the file says.
    free
        The names of entries of `about` that may differ in the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Checkpoint(Path(folder, "run"), {"radius": 0.5}) as kept:
    ...         kept.save("values-0", {"rows": 3}, [b"first", b"second"])
    ...     with Checkpoint(Path(folder, "run"), {"radius": 0.5}) as kept:
    ...         entry, chunks = kept.load("values-0")
    ...         print(entry, list(chunks))
    {'rows': 3} [b'first', b'second']
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, about: Mapping[str, Any], *,
        free: Collection[str] = (),
    ) -> None:  # fmt: skip
        self._file: Keeper | None = None
        self.about = about
        if path is None:
            return
        self._file = Keeper(_checked(path), SCHEMA, kind=KIND, what="checkpoint")
        try:
            self.about = _begin(self._file, json.loads(json.dumps(about)), free)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def __bool__(self) -> bool:
        return self._file is not None

    def save(self, name: str, entry: Mapping[str, Any], chunks: Iterable[Chunk] = ()) -> None:
        """Keep a piece, an entry and some chunks of bytes; it replaces any piece of this name."""
        if self._file is not None:
            _save(self._file, name, entry, chunks)

    def save_entries(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep some pieces without chunks: all of them, or none."""
        if self._file is not None and entries:
            with self._file.change():
                for name, entry in entries.items():
                    _write(self._file, name, entry, ())

    def load_entries(self, *, stacklevel: int) -> dict[str, dict[str, Any]]:
        """The entries of all pieces; warns if some are damaged."""
        found: dict[str, dict[str, Any]] = {}
        if self._file is None:
            return found
        names = list(self._file.rows("SELECT DISTINCT name FROM piece WHERE name != ?", RUN))
        for (name,) in names:
            with contextlib.suppress(DamagedError):
                found[name] = json.loads(_read(self._file, name, 0))["entry"]
        if len(found) < len(names):
            words = f"{len(names) - len(found)} pieces of checkpoint {self._file.path} are damaged"
            warnings.warn(f"{words}, and are computed again", ThresherWarning, stacklevel)
        return found

    def load(self, name: str) -> tuple[dict[str, Any], Chunks] | None:
        """The entry and the chunks of a piece; None if it is missing or damaged."""
        file = self._file
        if file is None or not file.do("SELECT 1 FROM piece WHERE name = ?", name).fetchone():
            return None
        try:
            about = json.loads(_read(file, name, 0))
            chunks = Chunks(file, name, about["chunks"])
            for _ in chunks:
                pass
        except DamagedError as damaged:
            warnings.warn(f"{damaged}, and is computed again", ThresherWarning, stacklevel=3)
            return None
        return about["entry"], chunks

    def finish(self) -> None:
        """Remove the file: the run is done."""
        if self._file is not None:
            self._file.close()
            self._file.path.unlink(missing_ok=True)


class DamagedError(InputError):
    """A piece has other bytes than were written."""


@dataclass(frozen=True)
class Chunks:
    """The chunks of a piece, read whenever they are asked for."""

    file: Keeper
    name: str
    count: int

    def __iter__(self) -> Iterator[bytes]:
        return (_read(self.file, self.name, number) for number in range(1, self.count + 1))


def _begin(file: Keeper, about: dict[str, Any], free: Collection[str]) -> dict[str, Any]:
    """Write into a new file what the run is; refuse that of another run. Returns what it says."""
    if not file.do("SELECT 1 FROM piece").fetchone():
        _save(file, RUN, about, ())
        return about
    try:
        found: dict[str, Any] = json.loads(_read(file, RUN, 0))["entry"]
    except DamagedError:
        raise InputError(
            f"checkpoint {file.path} is damaged: remove it, or choose a new name"
        ) from None
    for name, ours in about.items():
        if name not in free and found.get(name) != ours:
            what, theirs, wanted = _difference(name, found.get(name), ours)
            raise InputError(
                f"checkpoint {file.path} belongs to another run: its {what} is {_short(theirs)}, "
                f"not {_short(wanted)}; choose a new name, or go on with the same data and "
                "arguments"
            )
    return found


def _save(file: Keeper, name: str, entry: Mapping[str, Any], chunks: Iterable[Chunk]) -> None:
    with file.change():
        _write(file, name, entry, chunks)


def _write(file: Keeper, name: str, entry: Mapping[str, Any], chunks: Iterable[Chunk]) -> None:
    file.do("DELETE FROM piece WHERE name = ?", name)
    number = 0
    for number, chunk in enumerate(chunks, 1):
        _put(file, name, number, chunk)
    _put(file, name, 0, json.dumps({"entry": dict(entry), "chunks": number}).encode())


def _put(file: Keeper, name: str, number: int, content: Chunk) -> None:
    digest = _digest(name, number, content)
    file.do("INSERT INTO piece VALUES (?, ?, ?, ?)", name, number, content, digest)


def _read(file: Keeper, name: str, number: int) -> bytes:
    row = file.do(
        "SELECT CAST(content AS BLOB), CAST(digest AS BLOB) FROM piece "
        "WHERE name = ? AND number = ?", name, number,
    ).fetchone()  # fmt: skip
    if row is None or row[1] != _digest(name, number, row[0] or b""):
        raise DamagedError(f"{name} of checkpoint {file.path} is damaged")
    return row[0]


def _digest(name: str, number: int, content: Chunk) -> bytes:
    state = hashlib.blake2b(f"{name} {number} ".encode(), digest_size=16)
    state.update(content)
    return state.digest()


def _checked(path: object) -> Path:
    """`path`, if a checkpoint can be written there."""
    if not isinstance(path, str | os.PathLike) or not str(path) or str(Path(path)) == ":memory:":
        raise InputError(f"checkpoint must be the path of a file, got {path!r}")
    found = Path(path)
    if found.is_dir():
        raise InputError(
            f"checkpoint must be the path of a file, got the folder {path}: choose a new name, and "
            "remove the folder if an earlier version made it"
        )
    if not found.parent.is_dir():
        raise InputError(f"checkpoint {path}: the folder {found.parent} does not exist")
    return found


def _difference(name: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    """The first thing in which two entries differ, and what each has there."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*other, *one]):
            if one.get(key) != other.get(key):
                return _difference(f"{name} {key}", one.get(key), other.get(key))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (theirs, ours) in enumerate(zip(one, other, strict=True)):
            if theirs != ours:
                return _difference(f"{name}[{place}]", theirs, ours)
    return name, one, other


def _short(entry: Any) -> str:
    text = repr(entry)
    return text if len(text) <= 60 else f"{text[:57]}..."
