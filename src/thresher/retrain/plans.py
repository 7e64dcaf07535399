"""Plans: which coalitions to train on, and what values follow from their utilities.

A plan hands out blocks, and accepts their utilities in the same order. Its result never depends on
who computed them, how many at once, or how rounds were cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from thresher.array_types import Flags, Floats
from thresher.errors import InputError
from thresher.ranking import agreement
from thresher.retrain.coalitions import Block, Prefixes, Subsets, Without, permutation
from thresher.retrain.running_means import InAndOut, Moments
from thresher.retrain.utility import Enough
from thresher.threads import cut

USUAL = 10_000  # evaluations, unless told otherwise: what the paper spends
FIRST_LOOK = 10  # samples before the ranking is looked at for the first time
GROWTH = 1.25  # and how many times more there are at the next look
LOOKS = 2  # in a row that have to find it stable
MANY = 100  # samples after which values that are all the same are taken for granted


@dataclass(frozen=True)
class Limit:
    """When to stop: after this many evaluations, or once the ranking is this stable."""

    evaluations: int | None
    stability: float | None = None

    def at_least(self, least: int, purpose: str) -> Limit:
        """The limit if it allows this many evaluations, or the default limit if there is none."""
        if self.evaluations is not None and self.evaluations < least:
            raise InputError(
                f"evaluations must be at least {least} for {purpose}, got {self.evaluations}"
            )
        free = self.evaluations is None and self.stability is None
        return Limit(max(USUAL, least)) if free else self


@dataclass(frozen=True)
class Start:
    """What a plan needs to know: how many points, utility of none and of all, size of blocks."""

    points: int
    none: float
    full: float
    size: int
    seed: int


class Plan(Protocol):
    """The interface of a plan, as the engine uses it."""

    spent: int = 0  # utilities that went into the values
    failed: int = 0  # and how many of them are of fits that failed
    done: bool = False
    enough: Enough | None = None  # when a walk may stop before its end, if it may
    stability: float | None = None  # of the ranking, where it was looked at

    @property
    def short_of(self) -> float | None:
        """The stability that was asked for, if the plan ended without it."""
        return None

    def next(self, count: int) -> Sequence[Block]:
        """At most `count` blocks to compute next, each handed out once."""

    def take(self, block: Block, utilities: Floats, failed: Flags) -> None:
        """Accept the utilities of a block; blocks come back in the order they were handed out."""

    def total(self) -> int:
        """How many evaluations are expected in all."""

    def result(self) -> tuple[Floats, Floats]:
        """The values and their standard errors."""


class LeaveOneOut(Plan):
    """Utility of all points minus utility of all others: exact, with one fit for each point."""

    def __init__(self, start: Start) -> None:
        self.full, self.values = start.full, np.empty(start.points)
        pieces = cut(0, start.points, start.size)[::-1]
        self._blocks = [Without(start.points, *piece) for piece in pieces]

    def next(self, count: int) -> list[Without]:
        """The next points."""
        return [self._blocks.pop() for _ in range(min(count, len(self._blocks)))]

    def take(self, block: Block, utilities: Floats, failed: Flags) -> None:
        """Compute the values of the points left out."""
        self.values[block.low : block.low + len(utilities)] = self.full - utilities
        self.spent += len(utilities)
        self.failed += int(failed.sum())
        self.done = self.spent == len(self.values)

    def total(self) -> int:
        """One evaluation for each point."""
        return len(self.values)

    def result(self) -> tuple[Floats, Floats]:
        """The values, which are exact."""
        return self.values, np.zeros(len(self.values))


class Sampling(Plan, Protocol):
    """Coalitions drawn in two halves: the ranking is stable if both halves agree on it."""

    start: Start
    limit: Limit
    halves: tuple[Moments, Moments] | tuple[InAndOut, InAndOut]
    _next_look: int = FIRST_LOOK
    _stable: int = 0

    @property
    def short_of(self) -> float | None:
        """The stability that was asked for, if the plan ended without it."""
        return self.limit.stability if self._stable < LOOKS else None

    def total(self) -> int:
        """The limit, or the number that the stability found so far suggests.

        Noise falls as 1/samples, so s / (1 - s) grows in proportion to the samples.
        """
        wanted, found = self.limit.stability, self.stability
        most = self.limit.evaluations
        if wanted is None or not found or wanted == 1:
            return most or 0
        factor = wanted / (1 - wanted) * (1 - found) / found
        guess = max(self.spent, int(self.spent * factor))
        return guess if most is None else min(most, guess)

    def result(self) -> tuple[Floats, Floats]:
        """The values and standard errors of both halves."""
        both: Moments | InAndOut = self.halves[0] + self.halves[1]  # type: ignore[operator]
        return both.values(), both.errors()

    def _is_stable(self, samples: int) -> bool:
        """Whether the ranking is stable after this many samples; it is checked now and then."""
        wanted = self.limit.stability
        if wanted is None or samples < self._next_look:
            return False
        self._next_look = max(samples + 1, int(samples * GROWTH))
        found = agreement(self.halves[0].values(), self.halves[1].values())
        if np.isnan(found):  # all values are the same so far
            found = float(samples >= MANY)
        self.stability = found
        self._stable = self._stable + 1 if found >= wanted else 0
        return self._stable >= LOOKS


class Walks(Sampling):
    """Walks through permutations that value every point by what it adds at its position.

    value_i = E[weight(position) * (utility with i - utility before i)], where the weight of
    position j is n times the probability that a semivalue gives to coalitions of size j (1 for
    Shapley). Positions without weight are not trained. With truncation, a walk ends once its
    utility is `enough`, and the points left share the remaining utility evenly.
    """

    def __init__(self, start: Start, sizes: Floats, limit: Limit, truncation: float = 0.0) -> None:
        self.start, points = start, start.points
        first, last = needed_positions(sizes)
        self.weights = np.zeros(points)
        self.weights[first : last + 1] = points * sizes[first : last + 1]
        self.low, self.high = max(first, 1), min(last + 2, points)
        self.enough = Enough(start.full, truncation) if truncation else None
        self.limit = limit.at_least(2 * self.cost, f"two permutations of {points} points")
        self.halves = Moments(points), Moments(points)
        self.walks = 0
        self._open: dict[int, _Walk] = {}
        if self.cost == 0:  # a single point: nothing is random
            self._value(_Walk([]))
            self.done, self._stable = True, LOOKS

    @property
    def cost(self) -> int:
        """How many utilities a whole walk needs."""
        return max(0, self.high - self.low)

    def next(self, count: int) -> list[Prefixes]:
        """Blocks of the first unfinished walks; one for each walk if walks may end early."""
        start, most = self.start, self.limit.evaluations
        # walks beyond these may not count, or need not be begun yet
        walks = count if most is None else (most - self.spent) // self.cost
        pieces = cut(self.low, self.high, start.size)[::-1]
        blocks: list[Prefixes] = []
        for walk in range(self.walks, self.walks + walks):
            if len(blocks) >= count:
                break
            if walk not in self._open:
                self._open[walk] = _Walk(
                    [Prefixes(start.points, *piece, walk, start.seed) for piece in pieces]
                )
            waiting, room = self._open[walk].waiting, 1 if self.enough else count - len(blocks)
            if not self._ended(self._open[walk]):
                blocks += [waiting.pop() for _ in range(min(room, len(waiting)))]
        return blocks

    def take(self, block: Block, utilities: Floats, failed: Flags) -> None:
        """Accept utilities of a part of a walk; finished walks count in their order."""
        walk = self._open[block.key[0]]
        walk.parts.append(utilities)
        walk.failed += int(failed.sum())
        while not self.done and self.walks in self._open and self._through(self._open[self.walks]):
            self._value(self._open.pop(self.walks))
            most = self.limit.evaluations
            spent = most is not None and self.spent + self.cost > most
            self.done = spent or self._is_stable(self.walks)

    def total(self) -> int:
        """The evaluations that the limit allows, or those that stability needs."""
        whole = self.cost if self.limit.stability is None else 1
        return super().total() // max(whole, 1) * whole

    def result(self) -> tuple[Floats, Floats]:
        """The mean over walks."""
        values, errors = super().result()
        return values, errors if len(values) > 1 else np.zeros(1)

    def _through(self, walk: _Walk) -> bool:
        return sum(map(len, walk.parts)) == self.cost or self._ended(walk)

    def _ended(self, walk: _Walk) -> bool:
        """Whether the walk's last known utility was enough."""
        return self.enough is not None and bool(walk.parts) and self.enough(walk.parts[-1][-1])

    def _value(self, walk: _Walk) -> None:
        known, start = np.concatenate([np.empty(0), *walk.parts]), self.start
        utilities = np.full(start.points + 1, start.none)
        utilities[self.low : self.low + len(known)] = known
        end = self.low + len(known) - 1
        if self._ended(walk):
            utilities[end:] = np.linspace(known[-1], start.full, start.points + 1 - end)
        utilities[-1] = start.full
        values = np.empty(start.points)
        order = permutation(start.points, start.seed, self.walks)
        values[order] = np.diff(utilities) * self.weights
        self.halves[self.walks % 2].add(values)
        self.spent += len(known)
        self.failed += walk.failed
        self.walks += 1


@dataclass
class _Walk:
    """An unfinished walk: blocks not yet handed out, last first, and utilities that came back."""

    waiting: list[Prefixes]
    parts: list[Floats] = field(default_factory=list)
    failed: int = 0


def needed_positions(sizes: Floats) -> tuple[int, int]:
    """The first and last positions that matter: less than 1e-12 of the weight lies outside."""
    below = np.cumsum(sizes)
    first = int(np.searchsorted(below, 1e-12))
    above = np.cumsum(sizes[::-1])
    return first, len(sizes) - 1 - int(np.searchsorted(above, 1e-12))


class RandomSubsets(Sampling):
    """Coalitions in which a coin decides whether each point is in: for Banzhaf values.

    A value is the mean utility with the point minus the mean utility without.
    """

    def __init__(self, start: Start, limit: Limit) -> None:
        self.start, self.limit = start, limit.at_least(4, "means with and without a point")
        points, full = start.points, start.full
        self.halves = InAndOut(points, full), InAndOut(points, full)
        self._handed_out = 0

    def next(self, count: int) -> list[Subsets]:
        """The next subsets."""
        start, most = self.start, self.limit.evaluations
        low, high = self._handed_out, self._handed_out + count * start.size
        self._handed_out = high if most is None else min(most, high)
        pieces = cut(low, self._handed_out, start.size)
        return [Subsets(start.points, *piece, start.seed) for piece in pieces]

    def take(self, block: Block, utilities: Floats, failed: Flags) -> None:
        """Accept subsets in their order: even numbers go to one half, and odd ones to the other."""
        for mask, utility, flag in zip(block.masks(), utilities, failed, strict=True):
            self.halves[self.spent % 2].add(mask, utility)
            self.spent += 1
            self.failed += int(flag)
            through = self.spent == self.limit.evaluations
            self.done = through or self._is_stable(self.spent // 2)
            if self.done:
                break
