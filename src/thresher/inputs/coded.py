"""Coded: a column of entries that repeat, such as labels, as numbers and a list of the entries."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Coded(Sequence[Any]):
    """A column of entries that repeat: a list of distinct entries, and the place there of each row.

    It behaves like the tuple of its entries, which is made only when it is needed.

    Examples
    --------
    >>> column = Coded.of(["dog", "cat", "dog"])
    >>> column, column.distinct, column.codes.tolist()
    (('dog', 'cat', 'dog'), ('dog', 'cat'), [0, 1, 0])
    >>> column.take([1, 0]).distinct
    ('cat', 'dog')
    """

    codes: NDArray[np.int32]  # for each row, the place of its entry in `distinct`
    distinct: tuple[Hashable, ...]  # the entries that occur, in order of appearance

    @classmethod
    def of(cls, entries: Iterable[Hashable]) -> Coded:
        """A column of any entries; the first one stands for all that equal it."""
        if isinstance(entries, Coded):
            return entries
        places: dict[Hashable, int] = {}
        codes = [places.setdefault(entry, len(places)) for entry in entries]
        return cls(np.array(codes, np.int32), tuple(places))

    @classmethod
    def numbered(cls, codes: NDArray[Any], entries: Sequence[Hashable]) -> Coded:
        """A column from codes and the entries that they number, some of which may not occur."""
        first = _first_rows(codes, len(entries))
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
        places = np.zeros(len(entries), np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        return cls(places[codes], tuple(entries[place] for place in order.tolist()))

    @cached_property
    def _entries(self) -> NDArray[Any]:
        return object_array(self.distinct)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: Any) -> Any:
        return self.take(row) if isinstance(row, slice) else self._entries[self.codes[row]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, Coded) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def tolist(self) -> list[Any]:
        """The entries, one per row."""
        return list(self._entries[self.codes].tolist())

    def take(self, rows: Any) -> Coded:
        """Some rows, by number."""
        return Coded.numbered(self.codes[rows], self.distinct)

    def first_rows(self) -> dict[Hashable, int]:
        """The first row of each distinct entry."""
        first = _first_rows(self.codes, len(self.distinct))
        return dict(zip(self.distinct, first.tolist(), strict=True))

    def renamed(self, entries: Iterable[Hashable]) -> Coded:
        """The same column with its distinct entries replaced, in order, by `entries`."""
        return Coded(self.codes, tuple(entries))


def object_array(entries: Sequence[Any]) -> NDArray[Any]:
    """The entries as an array of objects, even if some of them are sequences."""
    return np.fromiter(entries, object, len(entries))


def _first_rows(codes: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The first row of each code; the number of rows for a code that does not occur."""
    first = np.full(count, len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last one written stays
    return first
