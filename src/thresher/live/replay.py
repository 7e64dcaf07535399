"""The updates of a journal, made again: many at a time, because counts do not mind the order."""

from __future__ import annotations

import contextlib
import mmap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.counts import NeighborCounts
from thresher.errors import InputError, ThresherWarning
from thresher.files import sync
from thresher.inputs import Points
from thresher.live.folder import State, check_codes
from thresher.live.journal import (
    ADD,
    MARK,
    RELABEL,
    REMOVE,
    START,
    Journal,
    Record,
    read_header,
    read_records,
)
from thresher.live.points import PointTable
from thresher.metrics import measure

MANY = 1 << 22  # numbers in the rows that are counted at a time


def caught_up(path: Path, state: State) -> Journal:
    """The journal, after its updates are made to the state."""
    end = START
    replay = Replay(path, state.counts, state.points)
    row_size = state.points.width * state.points.dtype.itemsize
    with _mapped(path) as data:
        first, size = read_header(path, data, state.key), len(data)
        if first > state.number + 1:
            raise InputError(f"{path} is newer than the snapshot: put back a copy of the folder")
        last, kind = first - 1, MARK
        for record in read_records(path, data, state.key, row_size):
            if record.number > state.number and record.kind != MARK:
                replay.apply(record)
            last, kind, end = record.number, record.kind, record.end
    replay.finish()
    if last < state.number:  # a snapshot was made, and the journal not yet emptied
        return Journal.create(path, state.key, state.number)
    if end < size:
        _cut(path, end, size)
    return Journal(path, state.key, last, committed=kind == MARK)


class Replay:
    """Makes updates to a table of points at once, and to counts when there are many."""

    def __init__(self, path: Path, counts: NeighborCounts, points: PointTable) -> None:
        self._path, self._counts, self._points = path, counts, points
        self._most = max(1, MANY // points.width)
        self._enter: list[tuple[NDArray[Any], int]] = []
        self._leave: list[tuple[NDArray[Any], int]] = []

    def apply(self, record: Record) -> None:
        """Make one update."""
        name, points = record.id, self._points
        if record.kind not in {ADD, REMOVE, RELABEL} or (name in points) == (record.kind == ADD):
            raise InputError(
                f"{self._path} does not fit the snapshot: record {record.number} is about the "
                f"point {name!r}; put back a copy of the folder"
            )
        if record.kind == ADD:
            row = np.frombuffer(record.features, points.dtype)
            points.append(name, row, record.code)
            self._enter.append((row, record.code))
        else:
            self._leave.append(points.get(name))
            if record.kind == REMOVE:
                points.remove(name)
            else:
                points.relabel(name, record.code)
                self._enter.append((self._leave[-1][0], record.code))
        if len(self._enter) + len(self._leave) >= self._most:
            self.finish()

    def finish(self) -> None:
        """Count what has not been counted yet: first in, so that all can leave that came."""
        for entering, some in ((True, self._enter), (False, self._leave)):
            if some:
                points = self._checked(some)
                self._counts.move(**{"enter" if entering else "leave": points})
                some.clear()

    def _checked(self, some: list[tuple[NDArray[Any], int]]) -> Points:
        validation = self._counts.validation
        rows = np.array([row for row, _ in some])
        codes = check_codes([code for _, code in some], len(validation.classes))
        return Points(measure("X", rows, cosine=validation.metric == "cosine"), codes)


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[Any]:
    """The bytes of a file, without reading it whole."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:  # which cannot be mapped
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _cut(path: Path, end: int, size: int) -> None:
    """Drop the end of a journal that a crash left unfinished."""
    warnings.warn(
        f"{path} ends in {size - end} bytes of an update that a crash cut off before it was "
        "committed: they are dropped",
        ThresherWarning,
        stacklevel=5,
    )
    with path.open("r+b") as file:
        file.truncate(end)
        sync(file.fileno())
