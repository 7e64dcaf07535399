"""Temporary files and folders next to a result, and those that killed processes left behind.

A killed process cannot remove its drafts, so the next process that writes to the same folder does.
A draft is locked as long as its owner lives. Only drafts that can be locked are removed, because
their owner is gone. On a file system whose locks do not work, nothing is removed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

fcntl: Any = None
with contextlib.suppress(ImportError):  # not on Windows
    import fcntl

PREFIX = ".thresher-"
NAME = re.compile(r"\.thresher-([0-9a-f]{8})-\w{8}")
DAY = 24 * 60 * 60.0  # seconds after which a draft of another machine is taken for abandoned

_swept = set[Path]()


def draft_file(folder: Path) -> AbstractContextManager[Path]:
    """An empty temporary file in a folder, removed at the end unless it was renamed."""
    return _draft(folder, directory=False)


def draft_folder(folder: Path) -> AbstractContextManager[Path]:
    """An empty temporary folder in a folder, removed at the end with everything in it."""
    return _draft(folder, directory=True)


@contextlib.contextmanager
def _draft(folder: Path, *, directory: bool) -> Iterator[Path]:
    handle, path = _locked(folder, directory=directory)
    try:
        yield path
    finally:
        _delete(path)
        if handle is not None:
            os.close(handle)


def remove_abandoned(folder: Path) -> None:
    """Remove this user's drafts in a folder if their owners are gone."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = NAME.fullmatch(entry.name)
            with contextlib.suppress(OSError):
                if named and _is_ours(entry, named[1]):
                    _remove(Path(entry.path))


def _locked(folder: Path, *, directory: bool) -> tuple[int | None, Path]:
    """Create a draft and the handle that locks it, and remove abandoned drafts next to it."""
    while True:
        handle, path = _made(folder, directory=directory)
        if handle is None:
            return None, path
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            return handle, path
        if _is_at(handle, path):  # else somebody removed it before it was locked
            break
        os.close(handle)
    if folder not in _swept and _locks_work(path):
        _swept.add(folder)
        remove_abandoned(folder)
    return handle, path


def _made(folder: Path, *, directory: bool) -> tuple[int | None, Path]:
    prefix = f"{PREFIX}{_host()}-"
    if not directory:
        handle, name = tempfile.mkstemp(dir=folder, prefix=prefix)
        if fcntl is None:  # an open file cannot be renamed
            os.close(handle)
        return (None if fcntl is None else handle), Path(name)
    path = Path(tempfile.mkdtemp(dir=folder, prefix=prefix))
    try:
        return (None if fcntl is None else os.open(path, os.O_RDONLY)), path
    except FileNotFoundError:  # removed before it was locked
        return _made(folder, directory=True)


def _host() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _locks_work(path: Path) -> bool:
    """Whether locks work: a locked draft cannot be locked again."""
    with contextlib.suppress(OSError), _opened(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _is_ours(entry: os.DirEntry[str], host: str) -> bool:
    """Whether a draft is this user's, and either from this machine or untouched for a day."""
    about = entry.stat(follow_symlinks=False)
    plain = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
    near = host == _host() or time.time() - about.st_mtime > DAY
    return plain and near and about.st_uid == os.geteuid()


def _remove(path: Path) -> None:
    with _opened(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(handle, path):
            return
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)  # of SQLite
        _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    mode = os.O_RDONLY if path.is_dir() else os.O_RDWR  # some systems want to write what they lock
    handle = os.open(path, mode | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether a path still names the file that is open."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
