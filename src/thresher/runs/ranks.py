"""Ranks and percentiles of values on disk, in bounded memory.

Values are sorted part by part. The rank of a value follows from its places in all sorted parts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from thresher.array_types import Floats, Integers

CHUNK = 1 << 18  # values sorted together, at least
ROW = 64  # bytes that sorting takes for each value


def rank_values(values: Floats, folder: Path, *, room: int = 1 << 28) -> tuple[Integers, Integers]:
    """The rank of each value (1 is the lowest, equal ones by position), and how many are lower.

    Parameters
    ----------
    values
        The values; any array or memmap.
    folder
        Where arrays as long as the values may lie, those that are returned among them.
    room
        The bytes that may be used.

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
