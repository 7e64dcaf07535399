"""The points that are present, in order of arrival: ids, features and class codes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, quoted
from thresher.inputs.labels import Codes
from thresher.metrics import CHUNK
from thresher.threads import cut

Id = str | int
FIRST_ROOM = 64  # rows that a new table has room for
LARGEST_ID = 2**63


def check_id(name: Any) -> Id:
    """Return `name` if it is a string or an integer that fits into eight bytes; raise otherwise."""
    if isinstance(name, np.generic):
        name = name.item()
    if type(name) is str and (name.isascii() or _is_text(name)):
        return name
    if type(name) is int and -LARGEST_ID <= name < LARGEST_ID:
        return name
    raise InputError(f"id must be a string or an integer below 2**63, got {quoted(name)}")


def _is_text(name: str) -> bool:
    """Whether a string can be stored: half of a surrogate pair cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class PointTable:
    """Points by id. Removing a point leaves a hole, and many holes are closed together.

    Each point keeps its place number, which is higher than those of all points before it. It has a
    checksum once it is in a file. `changed` lists what the file lacks: for each place, the id of
    the point to write, or None if the point is gone. `checksums` is the sum over the points that
    the file should have.
    """

    def __init__(self, width: int, dtype: Any, code_dtype: Any = np.int32) -> None:
        self.changed: dict[int, Id | None] = {}
        self.checksums = 0
        self._rows = np.empty((FIRST_ROOM, width), dtype)
        self._codes = np.empty(FIRST_ROOM, code_dtype)
        self._places = np.empty(FIRST_ROOM, np.int64)
        self._checksums = np.zeros(FIRST_ROOM, np.int64)  # 0 while the file has none
        self._slots: dict[Id, int] = {}  # where in these arrays; in order of arrival, both
        self._end = 0
        self._last = -1

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, name: Id) -> bool:
        return name in self._slots

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids, in order of arrival."""
        return tuple(self._slots)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self._rows.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which features are kept."""
        return self._rows.dtype

    def get(self, name: Id) -> tuple[NDArray[np.float64], int]:
        """A copy of the point's features, in float64, and its class code."""
        slot = self._slots[name]
        return self._rows[slot].astype(np.float64), int(self._codes[slot])

    def append(self, name: Id, row: NDArray[Any], code: int) -> None:
        """Add a new point at the end."""
        if self._end == len(self._codes):
            self._make_room(1)
        slot = self._end
        self._last += 1
        self._rows[slot] = row
        self._codes[slot] = code
        self._places[slot] = self._last
        self._checksums[slot] = 0
        self._slots[name] = slot
        self.changed[self._last] = name
        self._end = slot + 1

    def extend(self, names: Sequence[Id], rows: NDArray[Any], codes: Any) -> None:
        """Add new points at the end."""
        places = range(self._last + 1, self._last + 1 + len(names))
        self._fill(names, rows, codes, places, 0)
        self.changed.update(zip(places, names, strict=True))

    def load(
        self, names: Sequence[Id], rows: NDArray[Any], codes: Any, places: Any, checksums: Any
    ) -> None:
        """Add points from a file at the end."""
        self._fill(names, rows, codes, places, checksums)
        self.checksums += sum(checksums)

    def remove(self, name: Id) -> None:
        """Remove a point."""
        slot = self._slots.pop(name)
        self.checksums -= int(self._checksums[slot])
        self.changed[int(self._places[slot])] = None

    def relabel(self, name: Id, code: int) -> None:
        """Change the class of a point, which keeps its place."""
        slot = self._slots[name]
        self._codes[slot] = code
        self.changed[int(self._places[slot])] = name

    def entries(self, names: Iterable[Id]) -> Iterator[tuple[int, Id, int, bytes, int]]:
        """What a file stores about these points: place, id, class code, features and checksum."""
        for name in names:
            slot = self._slots[name]
            place, code = int(self._places[slot]), int(self._codes[slot])
            features = self._rows[slot].tobytes()
            found = checksum(place, name, code, features)
            self.checksums += found - int(self._checksums[slot])
            self._checksums[slot] = found
            yield place, name, code, features, found

    def table(self) -> tuple[NDArray[Any], Codes]:
        """Features and codes of all points, in order of arrival: views, valid until a change."""
        self._close_up()
        return self._rows[: self._end], self._codes[: self._end]

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self._rows, self._codes, self._places, self._checksums

    def _fill(self, names: Sequence[Id], *columns: Any) -> None:
        if self._end + len(names) > len(self._codes):
            self._make_room(len(names))
        lo, hi = self._end, self._end + len(names)
        for array, entries in zip(self._arrays(), columns, strict=True):
            array[lo:hi] = entries
        self._slots.update(zip(names, range(lo, hi), strict=True))
        if names:
            self._last = int(self._places[hi - 1])
        self._end = hi

    def _make_room(self, more: int) -> None:
        if 2 * len(self) <= self._end:
            self._close_up()
        wanted = self._end + more
        if wanted > len(self._codes):
            room = max(wanted, len(self._codes) * 3 // 2)
            grown = [np.empty((room, *array.shape[1:]), array.dtype) for array in self._arrays()]
            for new, old in zip(grown, self._arrays(), strict=True):
                new[: self._end] = old[: self._end]
            self._rows, self._codes, self._places, self._checksums = grown

    def _close_up(self) -> None:
        """Move points forward into the holes, a few at a time, so that no full copy is made."""
        count = len(self)
        if count == self._end:
            return
        slots = np.fromiter(self._slots.values(), np.int64, count)
        for lo, hi in cut(0, count, max(1, CHUNK // self.width)):
            for array in self._arrays():
                array[lo:hi] = array[slots[lo:hi]]
        self._slots = dict(zip(self._slots, range(count), strict=True))
        self._end = count


def checksum(place: int, name: Id, code: int, features: bytes) -> int:
    """A CRC-32 of everything that a file stores about a point."""
    text = f"{place} {code} {type(name) is str} {name}".encode()
    return zlib.crc32(features, zlib.crc32(text))
