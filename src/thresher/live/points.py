"""The points that are present, in order of arrival: ids, features and class codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs import Points
from thresher.labels import Codes
from thresher.metrics import CHUNK, measure
from thresher.threads import cut

Id = str | int
FIRST_ROOM = 64  # rows that a new table has room for
LARGEST_ID = 2**63


def check_id(name: Any) -> Id:
    """`name`, if it is a string or an integer that eight bytes hold."""
    if isinstance(name, np.generic):
        name = name.item()
    if type(name) is str and (name.isascii() or _is_text(name)):
        return name
    if type(name) is int and -LARGEST_ID <= name < LARGEST_ID:
        return name
    raise InputError(f"id must be a string or an integer below 2**63, got {name!r}")


def _is_text(name: str) -> bool:
    """Whether a string can be written at all: half of a surrogate pair cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class PointTable:
    """Points by id. A removed one leaves a hole, and holes are closed up when there are many."""

    def __init__(self, width: int, dtype: Any) -> None:
        self._rows = np.empty((FIRST_ROOM, width), dtype)
        self._codes = np.empty(FIRST_ROOM, np.int32)
        self._places: dict[Id, int] = {}  # in order of arrival, and so are the places
        self._end = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: Id) -> bool:
        return name in self._places

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids, in order of arrival."""
        return tuple(self._places)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self._rows.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype that features are kept in."""
        return self._rows.dtype

    def get(self, name: Id) -> tuple[NDArray[np.float64], int]:
        """A copy of the point's features, in float64, and its class code."""
        place = self._places[name]
        return self._rows[place].astype(np.float64), int(self._codes[place])

    def append(self, name: Id, row: NDArray[Any], code: int) -> None:
        """Put a new point at the end."""
        if self._end == len(self._codes):
            self._make_room(1)
        place = self._end
        self._rows[place] = row
        self._codes[place] = code
        self._places[name] = place
        self._end = place + 1

    def extend(self, names: Sequence[Id], rows: NDArray[Any], codes: Codes) -> None:
        """Put new points at the end."""
        if self._end + len(names) > len(self._codes):
            self._make_room(len(names))
        lo, hi = self._end, self._end + len(names)
        self._rows[lo:hi] = rows
        self._codes[lo:hi] = codes
        self._places.update(zip(names, range(lo, hi), strict=True))
        self._end = hi

    def remove(self, name: Id) -> None:
        """Take a point away."""
        del self._places[name]

    def relabel(self, name: Id, code: int) -> None:
        """Give a point another class; it keeps its place."""
        self._codes[self._places[name]] = code

    def table(self) -> tuple[NDArray[Any], Codes]:
        """Features and codes of all points, in order of arrival: views, until the next change."""
        self._close_up()
        return self._rows[: self._end], self._codes[: self._end]

    def members(self, *, cosine: bool) -> Points | None:
        """The points as counting and valuing want them; None if there are none."""
        rows, codes = self.table()
        return Points(measure("X", rows, cosine=cosine), codes) if len(codes) else None

    def _make_room(self, more: int) -> None:
        if 2 * len(self) <= self._end:
            self._close_up()
        wanted = self._end + more
        if wanted > len(self._codes):
            room = max(wanted, len(self._codes) * 3 // 2)
            rows = np.empty((room, self.width), self.dtype)
            rows[: self._end] = self._rows[: self._end]
            self._rows = rows
            self._codes = np.concatenate([self._codes, np.empty(room - len(self._codes), np.int32)])

    def _close_up(self) -> None:
        """Move points to the front, over the holes; a few at a time, so that no copy is made."""
        count = len(self)
        if count == self._end:
            return
        places = np.fromiter(self._places.values(), np.int64, count)
        for lo, hi in cut(0, count, max(1, CHUNK // self.width)):
            self._rows[lo:hi] = self._rows[places[lo:hi]]
            self._codes[lo:hi] = self._codes[places[lo:hi]]
        self._places = dict(zip(self._places, range(count), strict=True))
        self._end = count
