"""Ranks of values on disk, and entries that occur more than once, in bounded memory.

Values are sorted part by part. The rank of a value follows from its places in all sorted parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers

CHUNK = 1 << 18  # values sorted together, at least
ROW = 64  # bytes that sorting takes for each value
MOST = 1000  # entries that occur again and are looked at closely
Blocks = Callable[[], Iterator[list[Any]]]


def rank_values(values: Floats, folder: Path, *, room: int = 1 << 28) -> tuple[Integers, Integers]:
    """The rank of each value (1 is the lowest, equal ones by position), and how many are lower.

    Arrays as long as the values are kept in `folder`, and so are those that are returned. `room` is
    how many bytes of memory may be used.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rank, below = rank_values(np.array([0.5, -1.0, 0.5, 0.0]), Path(folder))
    ...     print(rank.tolist(), below.tolist())
    [3, 1, 4, 2] [2, 0, 2, 1]
    """
    count, step = len(values), max(CHUNK, room // ROW)
    parts = [slice(lo, min(lo + step, count)) for lo in range(0, count, step)]
    ordered = np.memmap(folder / "ordered.f64", "<f8", "w+", shape=(count,))
    rank = np.memmap(folder / "rank.i64", "<i8", "w+", shape=(count,))
    below = np.memmap(folder / "below.i64", "<i8", "w+", shape=(count,))
    for part in parts:
        ordered[part] = np.sort(values[part])
    for part in parts:
        order = part.start + np.argsort(values[part], kind="stable")
        low, earlier = np.zeros(len(order), np.int64), np.arange(1, len(order) + 1)
        for other in parts:
            left = np.searchsorted(ordered[other], ordered[part])
            low += left
            if other.start == part.start:
                earlier -= left
            elif other.start < part.start:
                earlier += np.searchsorted(ordered[other], ordered[part], side="right") - left
        below[order], rank[order] = low, low + earlier
    return rank, below


def find_repeats(
    blocks: Blocks, rows: int, folder: Path, *, room: int = 1 << 28
) -> dict[Hashable, list[int]]:
    """Some of the entries that occur more than once, and their rows; empty only if there are none.

    Entries become numbers of 53 bits, equal numbers are found by ranking, and what they stand for
    is compared. `blocks` gives all entries from the beginning; `rows` is how many there are.

    Examples
    --------
    >>> import tempfile
    >>> find_repeats(lambda: iter([["a", "b"], ["c", "a"]]), 4, Path(tempfile.mkdtemp()))
    {'a': [0, 3]}
    """
    prints = np.memmap(folder / "ids.f64", "<f8", "w+", shape=(rows,))
    row = 0
    for entries in blocks():
        prints[row : row + len(entries)] = [_print(entry) for entry in entries]
        row += len(entries)
    rank, below = rank_values(prints, folder, room=room)
    places = _shared(rank, below)
    found: dict[Hashable, list[int]] = {}
    row = 0
    for entries in blocks() if len(places) else ():
        for inside in np.flatnonzero(np.isin(below[row : row + len(entries)], places)).tolist():
            found.setdefault(entries[inside], []).append(row + inside)
        row += len(entries)
    return {entry: where for entry, where in found.items() if len(where) > 1}


def _print(entry: object) -> int:
    text = f"{type(entry).__name__}:{entry!r}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little") >> 11


def _shared(rank: Integers, below: Integers) -> Integers:
    """Some of the places in the order that several numbers share."""
    found = np.empty(0, np.int64)
    for lo in range(0, len(rank), CHUNK):
        some = slice(lo, lo + CHUNK)
        found = np.union1d(found, below[some][rank[some] - below[some] > 1])
        if len(found) > MOST:
            break
    return found[:MOST]
