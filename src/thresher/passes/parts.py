"""Where rows come from: part by part, in one order, from any row on."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.checks import check_features
from thresher.inputs.labels import RawLabels, check_labels, raw_labels
from thresher.sides.protocol import PublicSide, SidePoints

SAMPLE = 1024  # rows by which arrays are told apart
OBJECT = 120  # bytes of a label that is an object, its place in a list included


class Place(NamedTuple):
    """Where a part ends: the rows so far, the number of the file, and the rows so far within it."""

    row: int = 0
    file: int = 0
    inside: int = 0


@dataclass(frozen=True)
class Part:
    """Some consecutive rows."""

    first: int  # the number of the first of them among all rows
    # X, y: features and labels
    X: Any
    y: RawLabels
    after: Place  # where the next part begins
    # name, inside: what messages call it, and the number of its first row there
    name: str = "X"
    inside: int = 0
    # columns that are read with it, such as ids, as they are
    beside: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)

    def text_bytes(self) -> int:
        """The bytes that labels and other columns take, if they are objects."""
        columns = [*self.beside.values(), *([self.y] if isinstance(self.y, list) else [])]
        return sum(sys.getsizeof(entry) + 8 for column in columns for entry in column)

    def points(self, side: PublicSide, *, strangers: bool) -> SidePoints:
        """The rows, checked against a public side."""
        return side.check_points(
            self.X, self.y, strangers=strangers, first=self.inside, name=self.name
        )


class Labels(Protocol):
    """What labels of points mean, which may be known only after all were read.

    In this class, labels mean what they are.
    """

    def keyed(self, labels: Sequence[Hashable]) -> list[Hashable]:
        """Labels of a validation set as they would be read here."""
        return list(labels)

    def settle(
        self, found: Mapping[Hashable, int], labels: Sequence[Hashable], rows: int
    ) -> tuple[Mapping[Hashable, Hashable], list[Hashable]]:
        """What labels mean, once all that are `found` in these rows are known.

        `found` has the first row of each label, and `labels` are those of a validation set.
        """
        del rows
        return {label: label for label in found}, list(labels)


class PlainLabels(Labels):
    """Labels that mean what they are."""


class Source(Labels, Protocol):
    """Rows that can be read again and again."""

    @property
    def count(self) -> int | None:
        """The number of rows, if that is known before they are read."""

    @property
    def row_bytes(self) -> tuple[int, int]:
        """The bytes that a row takes: for its features, and for everything else."""

    @property
    def reading(self) -> int:
        """The bytes that reading takes in addition, for parts of any size."""

    def read(self, start: Place, rows: int) -> Iterator[Part]:
        """Parts of at most `rows` rows, from `start` on."""

    def identity(self) -> dict[str, Any]:
        """What tells these rows from others, in a few numbers and words."""


class ArrayParts(PlainLabels):
    """The rows of an array or a memmap; labels that are whole numbers are sorted.

    Rows of a memmap are copied as they are read, which is what reading ahead is good for; parts of
    other arrays are views.

    Examples
    --------
    >>> source = ArrayParts(np.arange(10.0).reshape(5, 2), list("abcde"))
    >>> [(part.first, part.y) for part in source.read(Place(1), rows=2)]
    [(1, ['b', 'c']), (3, ['d', 'e'])]
    """

    reading = 0

    def __init__(self, X: Any, y: Any, *, precomputed: bool = False) -> None:
        if precomputed and not isinstance(X, np.ndarray):
            raise InputError("X must be one array of distances with memory=, or a memmap of them")
        self.array: NDArray[Any] = X if isinstance(X, np.ndarray) else check_features("X", X)
        if self.array.ndim != 2 or not self.array.size:
            check_features("X", self.array)  # says what is wrong
        self.labels = raw_labels("y", y)
        self.count: int | None = len(self.array)
        if len(self.labels) != len(self.array):
            raise InputError(f"y has {len(self.labels)} labels but there are {self.count} rows")
        self._mapped = _is_mapped(self.array)
        self.whole = isinstance(self.labels, np.ndarray) and self.labels.dtype.kind in "iub"

    @property
    def row_bytes(self) -> tuple[int, int]:
        """The bytes that a row takes: a copy if it is read from a file or turned into floats."""
        width, kind = self.array.shape[1], self.array.dtype
        converted = 0 if kind.kind == "f" and kind.isnative else 8
        return (
            width * (kind.itemsize + converted) if self._mapped else width * converted or 1,
            8 if self.whole else OBJECT,
        )

    def settle(
        self, found: Mapping[Any, int], labels: Sequence[Hashable], rows: int
    ) -> tuple[Mapping[Hashable, Hashable], list[Hashable]]:
        """The labels as they are, in order as in an array of them."""
        ours = {label: found[label] for label in sorted(found)} if self.whole else found
        return super().settle(ours, labels, rows)

    def read(self, start: Place, rows: int) -> Iterator[Part]:
        """Parts of at most `rows` rows."""
        for lo in range(start.row, len(self.array), rows):
            part = self.array[lo : lo + rows]
            X = np.array(part) if self._mapped else part
            y = check_labels("y", self.labels[lo : lo + rows], first=lo)
            yield Part(lo, X, y, Place(lo + len(y)), inside=lo)

    def identity(self) -> dict[str, Any]:
        """Shape, dtype, and a digest of rows taken at even steps."""
        step = max(1, len(self.array) // SAMPLE)
        state = hashlib.sha256(np.ascontiguousarray(self.array[::step]).tobytes())
        labels = self.labels[::step]
        state.update(repr(labels if isinstance(labels, list) else labels.tolist()).encode())
        return {
            "rows": len(self.array),
            "features": self.array.shape[1],
            "dtype": str(self.array.dtype),
            "sample": state.hexdigest(),
        }


def _is_mapped(array: Any) -> bool:
    """Whether the numbers of an array are in a file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return isinstance(array, mmap.mmap)


Item = TypeVar("Item")
END: Any = object()


@contextlib.contextmanager
def read_ahead(source: Iterable[Item], *, threaded: bool = True) -> Iterator[Iterator[Item]]:
    """Yield the items of `source` in their order, one of them read ahead by a thread.

    At most two items are in memory: the one in use, and the one that is being read or that waits.
    Any error of the reader is raised here, in its place. When the block ends, for any reason, the
    thread has ended and the source is closed. Without `threaded`, items are read when they are
    asked for.

    Examples
    --------
    >>> with read_ahead(range(3)) as items:
    ...     list(items)
    [0, 1, 2]
    """
    items = iter(source)
    try:
        if not threaded:
            yield items
            return
        with ThreadPoolExecutor(1, thread_name_prefix="thresher-ahead") as reader:
            yield _items(items, reader)
    finally:
        close: Any = getattr(items, "close", None)
        if close is not None:
            close()


def _items(items: Iterator[Item], reader: ThreadPoolExecutor) -> Iterator[Item]:
    waiting = reader.submit(next, items, END)
    while (item := waiting.result()) is not END:
        waiting = reader.submit(next, items, END)
        yield item
