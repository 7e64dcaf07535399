"""Convert stores that version 0.1 wrote: a snapshot, and a journal of later updates.

The snapshot is an .npz file. Each record of the journal has a checksum and a number, one more than
that of the record before. A mark follows each commit. Unreadable bytes without a mark after them
come from a crash: they were never committed, and are dropped with a warning.
"""

from __future__ import annotations

import contextlib
import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thresher.counts import NeighborCounts
from thresher.drafts import PREFIX, fcntl
from thresher.errors import InputError, ThresherWarning
from thresher.files import check_sealed, reading
from thresher.inputs.arrays import load_about, load_arrays
from thresher.live.points import Id, PointTable
from thresher.live.store_file import NAME, SNAPSHOT, create_file, empty_store

FORMAT = "thresher.live/1"
JOURNAL, LOCK = "journal", "lock"
HEADER = struct.Struct("<8s16sQI")  # magic, key of the store, number of the first record, checksum
MAGIC = b"thrlive1"
LEAD = struct.Struct("<II")  # size and checksum of the body
BODY = struct.Struct("<QBBi")  # number, kind, kind of id, class code; then the id and the features
ADD, REMOVE, RELABEL, MARK = range(1, 5)
TEXT = 0  # the kind of id that is a string; else it is an integer of eight bytes


class Record(NamedTuple):
    """One update, as the journal stores it."""

    number: int
    kind: int
    id: Id
    code: int
    features: bytes
    end: int  # where the next record begins


def convert(folder: Path) -> None:
    """Replace any files of version 0.1; a crash leaves either the old or the new store."""
    if not (folder / SNAPSHOT).is_file():
        return
    with _locked(folder):
        if not (folder / NAME).exists():
            create_file(folder, *read(folder))
        drafts = [path.name for path in folder.glob(f"{PREFIX}*")]  # that a crash left
        for name in (*drafts, JOURNAL, LOCK, SNAPSHOT):
            (folder / name).unlink(missing_ok=True)


def read(folder: Path) -> tuple[NeighborCounts, PointTable]:
    """Read the points of a store, and counts without any."""
    path = folder / JOURNAL
    if not path.is_file():
        raise InputError(f"{path} is missing: put back a copy of the folder")
    with reading(folder / SNAPSHOT, "snapshot of live counts") as found:
        about, counts, points = _read_snapshot(found)
    data, key = path.read_bytes(), bytes.fromhex(about["key"])
    row_size, end = points.width * points.dtype.itemsize, HEADER.size
    number = _first_number(path, data, key) - 1
    if number > about["number"]:
        raise InputError(f"{path} is newer than the snapshot: put back a copy of the folder")
    while record := _record(data, end, zlib.crc32(key), row_size):
        if record.number != number + 1:
            raise InputError(f"{path} lacks records after number {number}: put back a copy of it")
        if record.number > about["number"] and record.kind != MARK:
            _apply(path, points, record)
        number, end = record.number, record.end
    if _has_mark(data, end, zlib.crc32(key), number):
        raise InputError(
            f"{path} is damaged at byte {end}, after record {number}, before updates that were "
            "committed: put back a copy of the folder"
        )
    if end < len(data):
        warnings.warn(
            f"{path} ends in {len(data) - end} bytes of an update that a crash cut off before it "
            "was committed: they are dropped",
            ThresherWarning,
            stacklevel=5,
        )
    return counts, points


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock by which version 0.1 keeps a store to itself."""
    with (folder / LOCK).open("ab") as file:
        try:
            if fcntl is not None:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{folder} is in use: close it there first") from None
        yield


def _read_snapshot(path: Path) -> tuple[Any, NeighborCounts, PointTable]:
    arrays = load_arrays(path)  # each has a checksum of its own
    about = load_about(arrays)
    check_sealed(about, FORMAT)
    counts, points = empty_store("ball", about, arrays)
    ids = _ids(arrays)
    points.extend(ids, arrays["rows"], arrays["codes"])
    if len(points) != len(ids) or arrays["rows"].dtype != points.dtype:
        raise InputError("its points do not fit together")
    return about, counts, points


def _ids(arrays: dict[str, Any]) -> list[Id]:
    text, ends = arrays["id_bytes"].tobytes(), arrays["id_ends"].tolist()
    parts = [text[lo:hi] for lo, hi in zip([0, *ends], ends, strict=False)]
    kinds = arrays["id_kinds"].tolist()
    return [
        part.decode() if kind == TEXT else int(part)
        for part, kind in zip(parts, kinds, strict=True)
    ]


def _first_number(path: Path, data: bytes, key: bytes) -> int:
    """The number of a journal's first record; raise unless the journal is this store's."""
    head = data[: HEADER.size]
    if len(head) < HEADER.size or HEADER.unpack(head)[3] != zlib.crc32(head[:-4]):
        raise InputError(f"{path} is damaged at its beginning: put back a copy of it")
    magic, found, first, _ = HEADER.unpack(head)
    if magic != MAGIC or found != key:
        raise InputError(f"{path} is not the journal of this store: put back its own")
    return int(first)


def _record(data: bytes, place: int, seed: int, row_size: int) -> Record | None:
    """The record at this place; None if there is no complete one."""
    start = place + LEAD.size
    if start + BODY.size > len(data):
        return None
    size, checksum = LEAD.unpack_from(data, place)
    body = data[start : start + size]
    if size < BODY.size or len(body) < size or zlib.crc32(body, seed) != checksum:
        return None
    number, kind, id_kind, code = BODY.unpack_from(body)
    name_end = size - (row_size if kind == ADD else 0)
    name = body[BODY.size : name_end]
    found = name.decode() if id_kind == TEXT else int.from_bytes(name, "little", signed=True)
    return Record(number, kind, found, code, body[name_end:], start + size)


def _has_mark(data: bytes, place: int, seed: int, number: int) -> bool:
    """Whether there is a mark with a later number anywhere after this place."""
    size = struct.pack("<I", BODY.size)
    found = data.find(size, place)
    while found >= 0:
        record = _record(data, found, seed, 0)
        if record is not None and record.kind == MARK and record.number > number:
            return True
        found = data.find(size, found + 1)
    return False


def _apply(path: Path, points: PointTable, record: Record) -> None:
    """Apply one update again."""
    number, kind, name, code, features, _ = record
    if kind not in {ADD, REMOVE, RELABEL} or (name in points) == (kind == ADD):
        raise InputError(
            f"{path} does not fit the snapshot: record {number} is about the point {name!r}; put "
            "back a copy of the folder"
        )
    if kind == ADD:
        points.append(name, np.frombuffer(features, points.dtype), code)
    elif kind == REMOVE:
        points.remove(name)
    else:
        points.relabel(name, code)
