"""The sums of owners, kept between two questions: only what changed since is counted."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.live.points import Id, PointTable
from thresher.passes.owner_sums import TABLE, OwnedPoints, OwnerNames, cell_bytes
from thresher.passes.walk import count
from thresher.sides.protocol import PublicSide


class LiveOwners:
    """What each owner adds to each cell, as of the last question, and who has left since then.

    Parameters
    ----------
    side
        The public side.
    most
        The most bytes that the sums may take; beyond it all is counted again each time.
    """

    def __init__(self, side: PublicSide, most: int = TABLE) -> None:
        self._side, self._most = side, most
        self._names = OwnerNames()
        self._whose: dict[Id, Hashable] = {}
        self._left: list[tuple[Floats, int, Hashable]] = []
        self._sums = self._tables(0)
        self.counted = 0  # points, over all questions

    def leave(self, name: Id, row: Floats, code: int) -> None:
        """A point is about to leave, or to have another label."""
        if name in self._whose:
            self._left.append((row.copy(), code, self._whose.pop(name)))

    def fit(self, owners: int) -> bool:
        """Whether the sums of so many owners may be kept."""
        return cell_bytes(self._side, owners) * self._side.shape[1] <= self._most

    def sums(self, points: PointTable, owners: Sequence[Hashable]) -> Integers:
        """What the owners of all points add to all cells, in order of first appearance."""
        for name, owner in zip(points.ids, owners, strict=True):
            if name in self._whose and self._whose[name] != owner:
                self.leave(name, *points.get(name))
        new = [
            (*points.get(name), owner)
            for name, owner in zip(points.ids, owners, strict=True)
            if name not in self._whose
        ]
        self._count(new, 1)
        self._count(self._left, -1)
        self._left = []
        self._whose = dict(zip(points.ids, owners, strict=True))
        order = [self._names.known[owner] for owner in dict.fromkeys(owners)]
        return self._sums[:, order].reshape(-1, self._side.shape[1])

    def _count(self, some: list[tuple[Floats, int, Hashable]], sign: int) -> None:
        """Count some points in, or out."""
        codes = self._names.codes([owner for *_, owner in some])
        more = len(self._names) - self._sums.shape[1]
        if more:
            self._sums = np.concatenate([self._sums, self._tables(more)], axis=1)
        if not some:
            return
        kinds: Any = np.array([code for _, code, _ in some], self._side.codes.dtype)
        points = self._side.stored_points(np.array([row for row, *_ in some]), kinds)
        owned = OwnedPoints.of(points, codes, self._side)
        game = self._side.owner_counting(len(self._names))
        self._sums += sign * count(owned, self._side.near(), game).reshape(self._sums.shape)
        self.counted += len(some)

    def _tables(self, owners: int) -> Integers:
        return np.zeros((self._side.owner_tables, owners, *self._cells), np.int64)

    @property
    def _cells(self) -> tuple[int, int]:
        """What an owner has in a table: entries of a cell, and cells."""
        entries = self._side.owner_counting(1).entries // self._side.owner_tables
        return entries, self._side.shape[1]
