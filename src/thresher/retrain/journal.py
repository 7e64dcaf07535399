"""A file that a broken run goes on from: every utility that was paid for, as it came.

The first line says what the run is, each other line holds a block of utilities and a checksum.
Lines are only ever appended; one that a crash cut off, or that was damaged, is computed again. Who
goes on with other data or settings is refused, and any file that is not a journal is left alone.
More evaluations are no other setting: a run that is through can be prolonged.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from thresher.errors import InputError, ThresherWarning
from thresher.retrain.utility import Outcome

FORMAT = "thresher.retrain/2"
Key = tuple[int, int]


class Journal:
    """The utilities known so far, and where new ones are written; without a path, nowhere."""

    def __init__(self, path: str | Path | None, about: Mapping[str, Any], *, size: int) -> None:
        self.size = size  # coalitions a block; that of the file, where there is one
        self.known: dict[Key, Outcome] = {}
        self._file: IO[bytes] | None = None
        if path is None:
            return
        found = check_path(path)
        try:
            self._file = found.open("a+b")
        except OSError as refused:
            raise InputError(f"checkpoint {path} cannot be written: {refused.strerror}") from None
        try:
            _lock(self._file, found)
            self._read(found, dict(about))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, outcomes: Mapping[Key, Outcome]) -> None:
        """Append these blocks, and wait until they are on the disk."""
        if self._file is None or not outcomes:
            return
        for key, outcome in outcomes.items():
            failed = [int(flag) for flag in outcome.failed]
            entry = [*key, outcome.utilities, failed, outcome.warned, outcome.complaint]
            self._file.write(_line(entry))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, path: Path, about: dict[str, Any]) -> None:
        assert self._file is not None  # noqa: S101
        self._file.seek(0)
        head = self._file.readline()
        if not head:
            self._file.write(_line({"format": FORMAT, "size": self.size, **about}))
            self._file.flush()
            return
        self.size = _check_same(path, _entry(head), about)
        damaged = 0
        for line in self._file:
            entry = _entry(line)
            if entry is not None:
                self.known[entry[0], entry[1]] = Outcome(*entry[2:])
            elif line.endswith(b"\n"):
                damaged += 1
            else:  # cut off by a crash
                self._file.truncate(self._file.tell() - len(line))
                break
        if damaged:
            words = f"{damaged} lines of checkpoint {path} are damaged, and are computed again"
            warnings.warn(words, ThresherWarning, stacklevel=6)


def _line(entry: Any) -> bytes:
    text = json.dumps(entry).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _entry(line: bytes) -> Any:
    """What a line holds; None if it is not whole."""
    if not line.endswith(b"\n") or line[:8] != b"%08x" % zlib.crc32(line[9:-1]):
        return None
    with contextlib.suppress(ValueError):
        return json.loads(line[9:-1])
    return None


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


def _check_same(path: Path, head: Any, about: dict[str, Any]) -> int:
    """The size of blocks of a file that belongs to this run; else raise."""
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise InputError(f"checkpoint {path} is another kind of file: choose a new name")
    for name, ours in json.loads(json.dumps(about)).items():
        if head.get(name) != ours:
            raise InputError(
                f"checkpoint {path} belongs to another run: its {name} is {head.get(name)!r}, "
                f"not {ours!r}; choose a new name, or go on with the same arguments"
            )
    return int(head["size"])


def _lock(file: IO[bytes], path: Path) -> None:
    """Raise if another run is writing here; the lock goes with the process."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"checkpoint {path} is in use by another run") from None
    except OSError:  # some network drives know no locks
        return
