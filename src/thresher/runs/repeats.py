"""Entries that occur more than once among more of them than fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.runs.ranks import CHUNK, rank_values

MOST = 1000  # rows that are looked at closely
Blocks = Callable[[], Iterator[list[Any]]]


def find_repeats(
    blocks: Blocks, rows: int, folder: Path, *, room: int = 1 << 28
) -> dict[Hashable, list[int]]:
    """Some of the entries that occur more than once, and their rows; empty only if there are none.

    Entries become numbers of 53 bits, equal numbers are found by ranking, and what they stand for
    is compared.

    Parameters
    ----------
    blocks
        Gives all entries from the beginning, in blocks.
    rows
        How many there are.
    folder
        Where files may be kept for a while.
    room
        The bytes that may be used.

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


def _shared(rank: NDArray[np.int64], below: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places in the order that several numbers share, some of them."""
    found = np.empty(0, np.int64)
    for lo in range(0, len(rank), CHUNK):
        some = slice(lo, lo + CHUNK)
        found = np.union1d(found, below[some][rank[some] - below[some] > 1])
        if len(found) > MOST:
            break
    return found[:MOST]
