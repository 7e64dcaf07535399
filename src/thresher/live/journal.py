"""The file of updates since the last snapshot: records that are only ever appended.

A record has a checksum and a number, one more than that of the record before. `commit` writes all
records and waits for the disk; only then does it append a *mark*. So whatever lies before a mark
was on the disk once, and if it cannot be read it was damaged. What cannot be read and has no mark
behind it may be the trace of a crash: it was never committed, and is cut off.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from thresher.errors import InputError
from thresher.files import sync, sync_folder, write_whole
from thresher.live.points import Id

HEADER = struct.Struct("<8s16sQ")  # magic, key of the store, number of the first record
CHECKSUM = struct.Struct("<I")
LEAD = struct.Struct("<II")  # size and checksum of the body
BODY = struct.Struct("<QBBi")  # number, kind, kind of id, class code; then the id and the features
WHOLE = struct.Struct("<q")  # an integer as id
MAGIC = b"thrlive1"
START = HEADER.size + CHECKSUM.size
ADD, REMOVE, RELABEL, MARK = range(1, 5)
TEXT, INTEGER = 0, 1
BUFFER = 1 << 18  # bytes of records that wait in memory before they are written


class Record(NamedTuple):
    """One update, as the file has it."""

    number: int
    kind: int
    id: Id
    code: int
    features: bytes
    end: int  # where the next record begins


class Journal:
    """An open journal to append to; records wait in memory until there are many, or a commit.

    `committed` says whether all records of the file are known to be on the disk.
    """

    def __init__(self, path: Path, key: bytes, number: int, *, committed: bool) -> None:
        self.path = path
        self.number = number  # of the last record
        self._seed = zlib.crc32(key)
        self._waiting = bytearray()
        self._file = path.open("ab", buffering=0)
        self._committed = committed

    @classmethod
    def create(cls, path: Path, key: bytes, number: int) -> Journal:
        """An empty journal whose first record will follow record `number`; replaces another."""
        head = HEADER.pack(MAGIC, key, number + 1)

        def write(temporary: Path) -> None:
            with temporary.open("wb") as file:
                file.write(head + CHECKSUM.pack(zlib.crc32(head)))
                file.flush()
                sync(file.fileno())

        write_whole(path, write)
        sync_folder(path.parent)
        return cls(path, key, number, committed=True)

    def append(self, kind: int, name: Id, code: int = 0, features: bytes = b"") -> None:
        """Add a record."""
        if type(name) is str:
            id_kind, id_bytes = TEXT, name.encode()
        else:
            id_kind, id_bytes = INTEGER, WHOLE.pack(name)
        self._put(BODY.pack(self.number + 1, kind, id_kind, code) + id_bytes + features)
        self._committed = False
        if len(self._waiting) > BUFFER:
            self._write()

    def commit(self) -> None:
        """Return when all records are on the disk."""
        if self._committed:
            return
        self._write()
        sync(self._file.fileno())
        self._committed = True
        self._put(BODY.pack(self.number + 1, MARK, TEXT, 0))
        self._write()

    def close(self) -> None:
        """Close the file; what was not committed may be lost."""
        self._file.close()

    def _put(self, body: bytes) -> None:
        self.number += 1
        self._waiting += LEAD.pack(len(body), zlib.crc32(body, self._seed))
        self._waiting += body

    def _write(self) -> None:
        while self._waiting:
            del self._waiting[: self._file.write(self._waiting)]


def read_header(path: Path, data: Any, key: bytes) -> int:
    """The number of a journal's first record, if the journal is of the store with this key."""
    head = bytes(data[: HEADER.size])
    if len(data) < START or CHECKSUM.unpack_from(data, HEADER.size)[0] != zlib.crc32(head):
        raise InputError(f"{path} is damaged at its beginning: put back a copy of it")
    magic, found, first = HEADER.unpack(head)
    if magic != MAGIC or found != key:
        raise InputError(f"{path} is not the journal of this store: put back its own")
    return int(first)


def read_records(path: Path, data: Any, key: bytes, row_size: int) -> Iterator[Record]:
    """The records of a journal, up to its end or to where a crash cut it off.

    An `InputError` says that it is damaged in the middle.
    """
    seed, number, place = zlib.crc32(key), read_header(path, data, key) - 1, START
    while True:
        record = _record(data, place, seed, row_size)
        if record is None:
            break
        if record.number != number + 1:
            raise InputError(f"{path} lacks records after number {number}: put back a copy of it")
        yield record
        number, place = record.number, record.end
    if _has_mark(data, place, seed, number):
        raise InputError(
            f"{path} is damaged at byte {place}, after record {number}, before updates that were "
            "committed: put back a copy of the folder"
        )


def _record(data: Any, place: int, seed: int, row_size: int) -> Record | None:
    """The record at this place; None if there is none that is whole."""
    start = place + LEAD.size
    if start + BODY.size > len(data):
        return None
    size, checksum = LEAD.unpack_from(data, place)
    if size < BODY.size or start + size > len(data):
        return None
    body = data[start : start + size]
    if zlib.crc32(body, seed) != checksum:
        return None
    number, kind, id_kind, code = BODY.unpack_from(body)
    name_end = size - (row_size if kind == ADD else 0)
    name = body[BODY.size : name_end]
    found: Id = ""
    if kind != MARK:
        found = WHOLE.unpack(name)[0] if id_kind == INTEGER else bytes(name).decode()
    return Record(number, kind, found, code, bytes(body[name_end:]), start + size)


def _has_mark(data: Any, place: int, seed: int, number: int) -> bool:
    """Whether a mark with a later number stands anywhere behind this place."""
    size = CHECKSUM.pack(BODY.size)
    found = data.find(size, place)
    while found >= 0:
        record = _record(data, found, seed, 0)
        if record is not None and record.kind == MARK and record.number > number:
            return True
        found = data.find(size, found + 1)
    return False
