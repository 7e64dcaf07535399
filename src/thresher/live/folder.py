"""The folder of a store: its three files, its lock, and the snapshot, which is written whole."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from thresher.arrays import load_arrays
from thresher.checks import check_choice, check_radius
from thresher.counts import NeighborCounts
from thresher.drafts import NAME, fcntl, remove_abandoned
from thresher.errors import InputError
from thresher.files import (
    check_sealed,
    portable,
    reading,
    sealed,
    sync,
    sync_folder,
    write_whole,
)
from thresher.labels import Codes
from thresher.live.journal import INTEGER, START, TEXT
from thresher.live.points import Id, PointTable
from thresher.price_list import stored_validation

FORMAT = "thresher.live/1"
SNAPSHOT, JOURNAL, LOCK = "snapshot.npz", "journal", "lock"
DRAFTS = ".thresher-*"  # what `write_whole` was writing when a crash came


@dataclass
class State:
    """What a snapshot holds: the points, their counts, and the last update that is in it."""

    key: bytes
    number: int
    counts: NeighborCounts
    points: PointTable


def lock_folder(folder: Path) -> IO[bytes]:
    """The lock of a folder, held until it is closed or the process ends; raise if it is taken."""
    try:
        file = (folder / LOCK).open("ab")
    except OSError as refused:
        raise InputError(f"{folder} cannot be opened: {refused.strerror}") from None
    try:
        if fcntl is not None:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError(f"{folder} is in use: only one may write to it at a time") from None
    except OSError as refused:
        file.close()
        raise InputError(
            f"{folder} cannot be locked: {refused.strerror}; use a local disk"
        ) from None
    return file


def unlock_folder(file: IO[bytes], *, ours: bool) -> None:
    """Let go of a lock; one that is not `ours` belongs to the process that this one came from."""
    if ours and fcntl is not None and not file.closed:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)  # whoever has a copy of the handle
    file.close()


def new_folder(path: object) -> Path:
    """A folder in which a store can be made: new, empty, or with a start that was broken off."""
    folder = check_folder(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"folder must be a folder, got the file {folder}")
    if (folder / SNAPSHOT).exists():
        raise InputError(f"{folder} holds a store already: use LiveCounts.open")
    if folder.is_dir():
        foreign = sorted({file.name for file in folder.iterdir()} - {JOURNAL, LOCK})
        foreign = [name for name in foreign if not name.startswith(DRAFTS[:-1])]
        journal = folder / JOURNAL
        if foreign or (journal.exists() and journal.stat().st_size > START):
            raise InputError(f"{folder} is not empty: choose a new folder")
    try:
        folder.mkdir(exist_ok=True)
        sync_folder(folder.absolute().parent)
    except OSError as refused:
        raise InputError(f"cannot create {folder}: {refused.strerror}") from None
    return folder


def old_folder(path: object) -> Path:
    """A folder that holds a store."""
    folder = check_folder(path)
    if not (folder / SNAPSHOT).is_file():
        raise InputError(f"there is no store in {folder}: LiveCounts.create makes a new one")
    if not (folder / JOURNAL).is_file():
        raise InputError(f"{folder / JOURNAL} is missing: put back a copy of the folder")
    return folder


def check_folder(path: object) -> Path:
    """`path` as a path."""
    if isinstance(path, str | os.PathLike) and str(path) and "\0" not in str(path):
        return Path(path)
    raise InputError(f"folder must be the name of a folder, got {path!r}")


def remove_drafts(folder: Path) -> None:
    """Remove files that nobody finished; whoever holds the lock may."""
    remove_abandoned(folder)
    for draft in folder.glob(DRAFTS):
        if draft.is_file() and not NAME.fullmatch(draft.name):  # of version 0.1
            draft.unlink(missing_ok=True)


def write_snapshot(folder: Path, state: State) -> None:
    """Put a new snapshot in the place of the old one, durably."""
    validation = state.counts.validation
    assert validation.rows is not None  # noqa: S101 - a store has features
    about = {
        "format": FORMAT,
        "key": state.key.hex(),
        "number": state.number,
        "radius": state.counts.radius,
        "metric": validation.metric,
        "columns": validation.columns,
        "classes": portable("label", validation.classes.labels),
        "dtype": state.points.dtype.name,
    }
    rows, codes = state.points.table()
    arrays: dict[str, Any] = {
        "about": np.array(json.dumps(sealed(about))),
        "counts": np.array([state.counts.same, state.counts.other]),
        "features": validation.rows.array,
        "labels": validation.codes,
        "rows": rows,
        "codes": codes,
        **_packed(state.points.ids),
    }

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
            stream.flush()
            sync(stream.fileno())

    try:
        write_whole(folder / SNAPSHOT, write)
        sync_folder(folder)
    except OSError as refused:
        raise InputError(f"cannot write {folder / SNAPSHOT}: {refused.strerror}") from None


def read_snapshot(folder: Path) -> State:
    """What the snapshot in a folder holds."""
    with reading(folder / SNAPSHOT, "snapshot of live counts") as found:
        arrays = load_arrays(found)  # each has a checksum of its own
        about = json.loads(str(arrays.get("about", "{}")))
        check_sealed(about, FORMAT)
        validation = stored_validation(about, arrays["features"], arrays["labels"])
        assert validation.rows is not None  # noqa: S101 - its features were read
        rows, ids = arrays["rows"], _unpacked(arrays)
        codes = check_codes(arrays["codes"], len(validation.classes))
        check_choice("dtype", about["dtype"], ("float32", "float64"))
        points = PointTable(validation.rows.width, about["dtype"])
        points.extend(ids, rows, codes)
        if len(points) != len(ids) or rows.dtype != points.dtype:
            raise InputError("its points do not fit together")
        members = points.members(cosine=validation.metric == "cosine")
        radius = check_radius(about["radius"])
        counts = NeighborCounts.restored(validation, radius, arrays["counts"], members)
        return State(bytes.fromhex(about["key"]), int(about["number"]), counts, points)


def _packed(ids: tuple[Id, ...]) -> dict[str, NDArray[Any]]:
    """Ids as arrays: for each its kind and the end of its bytes, and all the bytes."""
    texts = [name.encode() if isinstance(name, str) else b"%d" % name for name in ids]
    kinds = [TEXT if isinstance(name, str) else INTEGER for name in ids]
    return {
        "id_kinds": np.array(kinds, np.uint8),
        "id_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        "id_bytes": np.frombuffer(b"".join(texts), np.uint8),
    }


def _unpacked(arrays: dict[str, NDArray[Any]]) -> list[Id]:
    text, ends = arrays["id_bytes"].tobytes(), arrays["id_ends"].tolist()
    parts = [text[lo:hi] for lo, hi in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
    kinds = arrays["id_kinds"].tolist()
    return [
        part.decode() if kind == TEXT else int(part)
        for part, kind in zip(parts, kinds, strict=True)
    ]


def check_codes(codes: Any, classes: int) -> Codes:
    """Class codes of a file, if there are such classes."""
    found = np.array(codes, np.int32)
    if len(found) and (found.min() < 0 or found.max() >= classes):
        raise InputError("it has labels that are not among its classes")
    return found
