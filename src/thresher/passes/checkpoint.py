"""A folder that a broken run goes on from.

`run.json` says what the run is. Besides it there are arrays, in one file with their entry, and
other pieces: a file each, and beside it a description with the digest of that file, sealed. All are
written whole and renamed; a piece that is damaged, or that a crash left without description, is as
if it were not there, and is computed again. Who goes on with other data or settings is refused, and
so is a folder that holds anything else. A run that is through removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher.arrays import load_arrays
from thresher.errors import InputError, ThresherWarning
from thresher.files import check_sealed, reading, sealed, write_whole

FORMAT = "thresher.checkpoint/2"
RUN, LOCK, ABOUT = "run.json", "lock", ".json"
OURS = re.compile(  # names of files that a run removes
    r"run\.json|lock|(counts|counts-again|encoder|values-\d+)(\.arrow)?(\.json)?"
    r"|values\.f64|(rank|below)\.i64|ids-(prints|rank|below)|\.thresher-.*"
)
BLOCK = 1 << 20  # bytes hashed at a time


class Checkpoint:
    """What a run has done so far; without a folder it keeps nothing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Checkpoint(Path(folder, "run"), {"radius": 0.5}) as kept:
    ...         kept.save_arrays("counts", {"rows": 3}, counts=np.array([1, 2]))
    ...     with Checkpoint(Path(folder, "run"), {"radius": 0.5}) as kept:
    ...         kept.load_arrays("counts")
    ({'rows': 3}, {'counts': array([1, 2])})
    """

    def __init__(self, folder: str | os.PathLike[str] | None, about: Mapping[str, Any]) -> None:
        self.folder: Path | None = None
        self._lock: IO[bytes] | None = None
        if folder is None:
            return
        self.folder = _checked(folder)
        self._lock = _locked(self.folder)
        try:
            self._begin(json.loads(json.dumps({"format": FORMAT, **about})))
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def _begin(self, about: dict[str, Any]) -> None:
        path = self._path(RUN)
        if not path.exists():
            text = json.dumps(sealed(about))
            write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
            return
        found = _read(path, FORMAT)
        if found is None:
            raise InputError(
                f"checkpoint {self.folder} is damaged, or of another version: remove it, or choose "
                "a new folder"
            )
        for name, ours in about.items():
            if found.get(name) != ours:
                what, theirs, wanted = _difference(name, found.get(name), ours)
                raise InputError(
                    f"checkpoint {self.folder} belongs to another run: its {what} is "
                    f"{_short(theirs)}, not {_short(wanted)}; choose a new folder, or go on with "
                    "the same data and arguments"
                )

    def save(self, name: str, entry: Mapping[str, Any], write: Callable[[Path], object]) -> None:
        """Keep a piece: the file that `write` fills, and the entry that describes it."""
        if self.folder is None:
            return
        path = self._path(name)
        write_whole(path, write)
        about = sealed({"format": FORMAT, "entry": dict(entry), "digest": _digest(path)})
        text = json.dumps(about)
        write_whole(
            self._path(name + ABOUT),
            lambda temporary: temporary.write_text(text, encoding="utf-8"),
        )

    def load(self, name: str) -> tuple[dict[str, Any], Path] | None:
        """The entry and the file of a piece; None where it is not there, or not whole."""
        if self.folder is None:
            return None
        path, beside = self._path(name), self._path(name + ABOUT)
        if not path.is_file() or not beside.is_file():
            return None
        about = _read(beside, FORMAT)
        if about is None or about.get("digest") != _digest(path):
            _warn_of_damage(path, stacklevel=3)
            return None
        return about["entry"], path

    def save_arrays(self, name: str, entry: Mapping[str, Any], **arrays: NDArray[Any]) -> None:
        """Keep some arrays in one file with their entry, in place of those that were there."""
        if self.folder is None:
            return
        about = np.array(json.dumps(sealed({"format": FORMAT, "entry": dict(entry)})))

        def write(temporary: Path) -> None:
            with temporary.open("wb") as stream:
                np.savez(stream, allow_pickle=False, about=about, **arrays)

        write_whole(self._path(name), write)

    def load_arrays(self, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """The entry and the arrays that were kept; None where they are not there, or not whole."""
        if self.folder is None or not self._path(name).is_file():
            return None
        path = self._path(name)
        try:
            with reading(path, "checkpoint"):
                arrays = load_arrays(path)  # each has a checksum
                about = json.loads(str(arrays.pop("about")))
                check_sealed(about, FORMAT)
        except InputError:
            _warn_of_damage(path, stacklevel=3)
            return None
        return about["entry"], arrays

    def finish(self) -> None:
        """Remove all of it: the run is through."""
        if self.folder is None or self._lock is None:
            return
        for path in self.folder.iterdir():
            if OURS.fullmatch(path.name):
                path.unlink()
        self._lock.close()
        with contextlib.suppress(OSError):  # somebody else has a file there
            self.folder.rmdir()

    def _path(self, name: str) -> Path:
        assert self.folder is not None  # noqa: S101 - callers see to it
        return self.folder / name


def _checked(folder: object) -> Path:
    if not isinstance(folder, str | os.PathLike) or not str(folder):
        raise InputError(f"checkpoint must be the name of a folder, got {folder!r}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError(f"checkpoint must be a folder, and {path} is a file")
    if not path.parent.is_dir():
        raise InputError(f"checkpoint {path}: the folder {path.parent} does not exist")
    if path.is_dir() and not all(OURS.fullmatch(each.name) for each in path.iterdir()):
        raise InputError(f"checkpoint {path} holds other files: choose a new folder")
    return path


def _locked(folder: Path) -> IO[bytes]:
    """The folder's lock, held until the file is closed; raise if another run has it."""
    try:
        folder.mkdir(exist_ok=True)
        file = (folder / LOCK).open("ab")
    except OSError as refused:
        raise InputError(f"checkpoint {folder} cannot be written: {refused.strerror}") from None
    try:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError(f"checkpoint {folder} is in use by another run") from None
    except (ImportError, OSError):  # not on Windows, nor on some network drives
        pass
    return file


def _read(path: Path, wanted: str) -> dict[str, Any] | None:
    """A sealed description; None where it is damaged."""
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        check_sealed(about, wanted)
    except (InputError, OSError, ValueError):
        return None
    return about


def _digest(path: Path) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            state.update(block)
    return state.hexdigest()


def _difference(name: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    """The first thing within two entries in which they differ, and what each has there."""
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


def _warn_of_damage(path: Path, *, stacklevel: int) -> None:
    warnings.warn(
        f"{path} of a checkpoint is damaged, and is computed again", ThresherWarning,
        stacklevel=stacklevel + 1,
    )  # fmt: skip
