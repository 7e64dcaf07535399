"""Coalitions in blocks: the small pieces of work that are sent to workers.

A block yields one boolean mask over the points for each of its coalitions. The masks of a block may
share memory: each is valid until the next one.
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
    """The coalitions with numbers `low` to `high` - 1, in the order of a subclass."""

    points: int
    low: int
    high: int

    @property
    def key(self) -> tuple[int, int]:
        """The block's key among all blocks of a run; the same in all runs with these settings."""
        return 0, self.low

    def __len__(self) -> int:
        return self.high - self.low

    @abstractmethod
    def masks(self) -> Iterator[Flags]:
        """The coalitions, one after the other."""


@dataclass(frozen=True)
class Prefixes(Block):
    """The first `low`, ..., `high` - 1 points of the permutation of this `walk`."""

    walk: int
    seed: int

    @property
    def key(self) -> tuple[int, int]:
        """The walk and the first size."""
        return self.walk, self.low

    def masks(self) -> Iterator[Flags]:
        """Yield every prefix: the one before, plus the next point of the permutation."""
        order = permutation(self.points, self.seed, self.walk)
        mask = np.zeros(self.points, np.bool_)
        mask[order[: self.low - 1]] = True
        for size in range(self.low, self.high):
            mask[order[size - 1]] = True
            yield mask


def permutation(points: int, seed: int, walk: int) -> Integers:
    """The permutation of this walk, which does not depend on the worker or the order of calls."""
    return np.random.default_rng([seed, walk, WALK]).permutation(points)


@dataclass(frozen=True)
class Subsets(Block):
    """Subsets number `low` to `high` - 1: every point is in each with probability one half."""

    seed: int

    def masks(self) -> Iterator[Flags]:
        """Yield subsets; 1 is the complement of 0, so that every point is in and out once."""
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
    """All points but one: without point `low`, ..., `high` - 1."""

    def masks(self) -> Iterator[Flags]:
        """Yield the coalitions, each without one point."""
        mask = np.ones(self.points, np.bool_)
        for point in range(self.low, self.high):
            mask[point] = False
            yield mask
            mask[point] = True
