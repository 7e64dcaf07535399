"""Coalitions in blocks: what is handed to a worker at a time, small to send.

A block yields one boolean mask over the points for each of its coalitions. The masks of a block
may share their memory: each is good until the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thresher.array_types import Flags, Integers

DRAWN = 64  # subsets drawn together, whatever the size of blocks
WALK, SUBSET = 1, 2  # end a seed: so that none equals a seed of other draws, of flip_labels say


@dataclass(frozen=True)
class Block(ABC):
    """Coalitions number `low` to `high` - 1 among some points, in an order that a subclass has."""

    points: int
    low: int
    high: int

    @property
    def key(self) -> tuple[int, int]:
        """Tells the block from all others of its run; the same in every run of these settings."""
        return 0, self.low

    def __len__(self) -> int:
        return self.high - self.low

    @abstractmethod
    def masks(self) -> Iterator[Flags]:
        """The coalitions, one after the other."""


@dataclass(frozen=True)
class Prefixes(Block):
    """The first `low`, ..., `high` - 1 points of a permutation; the one of this `walk`."""

    walk: int
    seed: int

    @property
    def key(self) -> tuple[int, int]:
        """The walk and the first size."""
        return self.walk, self.low

    def masks(self) -> Iterator[Flags]:
        """Every prefix is the one before and the next point of the permutation."""
        order = permutation(self.points, self.seed, self.walk)
        mask = np.zeros(self.points, np.bool_)
        mask[order[: self.low - 1]] = True
        for size in range(self.low, self.high):
            mask[order[size - 1]] = True
            yield mask


def permutation(points: int, seed: int, walk: int) -> Integers:
    """The permutation of this walk: the same whoever asks, in whatever order."""
    return np.random.default_rng([seed, walk, WALK]).permutation(points)


@dataclass(frozen=True)
class Subsets(Block):
    """Subsets number `low` to `high` - 1: every point is in each with probability one half."""

    seed: int

    def masks(self) -> Iterator[Flags]:
        """Number 1 is the complement of number 0, so that every point is in one and out of one."""
        for number in range(self.low, self.high):
            part, place = divmod(number, DRAWN)
            if number == self.low or place == 0:
                rng = np.random.default_rng([self.seed, part, SUBSET])
                drawn = rng.integers(0, 2, (DRAWN, self.points), dtype=np.bool_)
                if part == 0:
                    drawn[1] = ~drawn[0]
            yield drawn[place]


@dataclass(frozen=True)
class Without(Block):
    """All points but one: without number `low`, ..., `high` - 1."""

    def masks(self) -> Iterator[Flags]:
        """One point is left out at a time."""
        mask = np.ones(self.points, np.bool_)
        for point in range(self.low, self.high):
            mask[point] = False
            yield mask
            mask[point] = True
