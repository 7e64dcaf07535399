"""What each unit of privacy adds to the table of counts, clipped to a length set from public data.

A unit is a point, or an owner with all its points. Its vector u holds, for every validation point,
the near points it has with that label and with another one: 2 M whole numbers, for a single point
zeros and ones. With a kernel it holds as many for each ring, and a point is in one ring. Clipped to
length sqrt(B) it enters the table as w u, with w the largest of 0, 1/S, 2/S, ..., 1 for which |w
u|^2 <= B. The weight depends on the unit and on public data alone, bit for bit, because nearness
does (the pair rule). So one unit moves S times the table, which is whole, by an integer vector of
length at most S sqrt(B).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers, LongWords
from thresher.inputs.checked_inputs import Points
from thresher.kernels.units import LONGEST, add_counts, add_squares
from thresher.neighbors.ball import Ball
from thresher.neighbors.blocks import BitBlock
from thresher.neighbors.groups import Groups
from thresher.neighbors.rings import RingBlock
from thresher.passes.walk import value, visit
from thresher.price_list import PriceList
from thresher.privacy.noise import Noise
from thresher.progress import Advance
from thresher.sides.ball_side import BallSide
from thresher.threads import cut, run

KEPT_BYTES = 256 << 20  # bits that are kept in memory rather than computed again
JOB_UNITS = 4096
PARALLEL_PAIRS = 1 << 22
SAMPLE_PAIRS = 1 << 22  # coins thrown at a time


@dataclass(frozen=True)
class Units:
    """Which points belong together: `order[starts[u]:starts[u + 1]]` are those of unit u."""

    order: Integers
    starts: Integers

    @classmethod
    def of(cls, owners: Integers | None, points: int) -> Units:
        """Points on their own, or grouped by the number of their owner."""
        if owners is None:
            return cls(np.arange(points), np.arange(points + 1))
        order = np.argsort(owners, kind="stable")
        firsts = np.flatnonzero(np.diff(owners[order], prepend=-1))
        return cls(order, np.append(firsts, points))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def each(self, numbers: Array) -> Array:
        """For each point, the number of its unit."""
        found = np.empty(len(self.order), numbers.dtype)
        found[self.order] = np.repeat(numbers, np.diff(self.starts))
        return found


class KeptBall:
    """All pairs within a radius, found once and kept if they are few, for private points."""

    def __init__(self, ball: Ball, points: int) -> None:
        self.ball, self.cells = ball, ball.cells
        self.keep = points * (ball.cells + 64) // (1 if ball.edges else 8) <= KEPT_BYTES
        self.kept: list[Any] = []

    def blocks(self, rows: Any, groups: Groups, advance: Advance | None = None) -> Iterator[Any]:
        """The nearness bits or rings, one block of validation points at a time."""
        if self.kept or not len(rows):
            yield from self.kept
            return
        kept: list[Any] = []
        for block in self.ball.blocks(rows, groups, advance):
            if self.keep:
                last = block.columns.stop == self.cells  # it is not overwritten
                kept.append(block if last else block.copy())
            yield block
        self.kept = kept


class Contributions:
    """Which private points are near which validation points, and what units of points add up to."""

    def __init__(self, points: Points, side: BallSide, units: Units) -> None:
        self.points, self.validation, self.units = points, side.validation, units
        self.near, self.game = KeptBall(side.near("all"), len(points)), side.counting()
        self.groups = self.game.groups(points.codes)
        self._rows = self.groups.positions[units.order].astype(np.int64)

    def squares(self, importance: Integers | None = None) -> Integers:
        """The squared length of each unit's vector, or `LONGEST` if it is longer.

        The squares of a validation point's counts enter as often as its `importance` says.
        """
        squares = np.zeros(len(self.units), np.int64)

        def add(block: BitBlock | RingBlock) -> None:
            for layer in block.layers():
                often = in_lanes(importance, layer)
                self._add_units(layer, add_squares, lambda lo, hi: (often, squares[lo:hi]))  # noqa: B023

        visit(self.points, self.near, self.groups, add)
        return squares

    def counts(self, weights: Integers) -> Integers:
        """The table (same, other) x M with every unit's vector times its whole weight.

        With a kernel it has a row for each ring, those of `same` first. Nothing wraps: a point adds
        at most the scale, 2^12, to a number, and there are fewer than 2^31 points.
        """
        rings, jobs = max(1, len(self.near.ball.edges)), -(-len(weights) // JOB_UNITS)
        table = np.zeros((2, rings, len(self.validation)), np.int64)

        def add(block: BitBlock | RingBlock) -> None:
            for ring, layer in enumerate(block.layers()):
                parts = np.zeros((jobs, 2, layer.words.shape[1] * 32), np.int64)
                more = lambda lo, hi, to=parts: (weights[lo:hi], to[lo // JOB_UNITS])  # noqa: E731
                self._add_units(layer, add_counts, more)
                width = layer.columns.stop - layer.columns.start
                table[:, ring, layer.columns] = parts.sum(axis=0)[:, :width]

        visit(self.points, self.near, self.groups, add)
        return table.reshape(2 * rings, -1)

    def sampled_counts(
        self, source: Noise, rate: float, *, shared: bool
    ) -> tuple[Integers, Integers, Integers]:
        """Counts in Poisson samples: all points, near ones with the label, near ones with another.

        Each validation point has its own sample, or all have one if `shared`.
        """
        n, out = len(self.points), np.zeros((3, len(self.validation)), np.int64)
        common = source.sample(rate, n) if shared else None

        def add(block: BitBlock) -> None:
            lanes, width = block.words.shape[1] * 32, block.columns.stop - block.columns.start
            drawn = np.empty_like(block.words)
            for lo, hi in cut(0, n, max(1, SAMPLE_PAIRS // lanes)):
                if common is None:
                    coins = source.sample(rate, (hi - lo) * lanes).reshape(hi - lo, lanes)
                else:
                    coins = np.repeat(common[lo:hi, None], lanes, axis=1)
                out[0, block.columns] += coins.sum(axis=0)[:width]
                drawn[lo:hi] = np.packbits(coins, axis=1, bitorder="little").view(np.uint32)
            sampled = replace(block, words=block.words & drawn)
            out[1:, block.columns] = self.game.sums(sampled, self.groups)

        visit(self.points, self.near, self.groups, add)
        return out[0], out[1], out[2]

    def values(self, lists: list[PriceList]) -> Floats:
        """What each point is worth under each price list: one row per list."""
        prices = [each.member_prices for each in lists]
        return np.array([value(self.points, self.near, self.game, each) for each in prices])

    def _add_units(self, block: BitBlock, kernel: Any, more: Callable[[int, int], Any]) -> None:
        """Call a kernel of `kernels.units` for batches of units; `more` has its last arguments."""
        labels = self.validation.codes[block.columns]
        bits = np.zeros((len(self.validation.classes), block.words.shape[1] * 32), np.uint8)
        bits[labels, np.arange(len(labels))] = 1  # for every class: who carries its label
        masks = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)

        def job(lo: int, hi: int) -> None:
            starts = self.units.starts[lo : hi + 1]
            kernel(block.words, masks, self.groups.codes, self._rows, starts, *more(lo, hi))

        parallel = len(self.points) * len(self.validation) >= PARALLEL_PAIRS
        run(job, cut(0, len(self.units), JOB_UNITS), parallel=parallel)


def in_lanes(importance: Integers | None, block: BitBlock) -> Integers:
    """Per-point numbers padded to the words of a block: 0 where there is no validation point."""
    lanes = np.zeros(block.words.shape[1] * 32, np.int64)
    width = block.columns.stop - block.columns.start
    lanes[:width] = 1 if importance is None else importance[block.columns]
    return lanes


def clipped_weights(squares: Integers, bound: int, scale: int) -> Integers:
    """The largest whole w <= scale with w^2 |u|^2 <= bound scale^2, for every squared length.

    It is 0 for the length `LONGEST`, which stands for all longer ones, and for a negative length,
    which no sum of squares has. A longer vector never has a larger weight (T9 relies on this). Only
    whole numbers are used: w is allowed if |u|^2 <= floor(bound scale^2 / w^2).

    Examples
    --------
    >>> clipped_weights(np.array([0, 4, 9, 16]), 4, 64).tolist()
    [64, 64, 42, 32]
    """
    too_large = np.searchsorted(_longest_at(bound, scale), squares.astype(np.uint64))
    return scale - too_large.astype(np.int64)


@lru_cache(maxsize=16)
def _longest_at(bound: int, scale: int) -> LongWords:
    """The longest squared lengths that may have the weights `scale`, `scale` - 1, ..., 1."""
    most, longest = bound * scale**2, int(LONGEST)
    each = [min(most // w**2, longest - 1) for w in range(scale, 0, -1)]
    return np.array(each, np.uint64)
