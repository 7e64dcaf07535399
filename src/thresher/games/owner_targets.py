"""What is counted where owners are the players and points carry numbers, and the games it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Integers
from thresher.games.leaf_targets import Judges
from thresher.games.owner_counts import NUMBERS, weighed
from thresher.games.owner_values import OwnerGames
from thresher.games.targets import ENTRIES, TargetGroups, summed


@dataclass(frozen=True)
class OwnerTargets:
    """The near points of each owner, the sum of their targets and that of their squares.

    The code of a point is a pair: whose it is, and its target in steps of the grid.
    """

    owners: int
    rings: int = 1  # of the neighborhood

    @property
    def entries(self) -> int:
        """Four numbers for each owner and ring, the owners of an entry together."""
        return ENTRIES * self.owners * self.rings

    def groups(self, codes: Array) -> TargetGroups:
        """Points in input order."""
        return TargetGroups.of_targets(codes[:, 1], codes[:, 0])

    def sums(self, block: Any, groups: Any) -> Integers:
        """What all points add to the cells of a block."""
        return groups.sums(block, self.owners)


def target_codes(owners: Array, targets: Array) -> Integers:
    """Codes that say whose a point is, and its target."""
    return np.column_stack([owners, targets]).astype(np.int64)


def target_games(
    sums: Integers, judges: Integers, empty: int, unit: float, weights: tuple[float, ...] = (1.0,)
) -> OwnerGames:
    """One game for each cell, whose judge has a target; utility is in units of `unit`.

    `weights` are those of rings, the innermost first.
    """
    near, first = sums.reshape(ENTRIES, -1, len(weights), len(judges))[:2]
    gain = weighed(first - near * judges, np.array(weights)).T * unit
    mass = np.ascontiguousarray(weighed(near, np.array(weights)).T)
    none = (empty - judges).astype(np.float64)
    weight = np.full(len(judges), unit)
    return OwnerGames(mass, np.ascontiguousarray(gain), weight, none, square=True)


def leaf_target_games(sums: Integers, judges: Judges, empty: int, unit: float) -> OwnerGames:
    """One game for each leaf, whose judges have a weight and a mean target."""
    weight, mean, rest = judges
    near, first = sums.reshape(ENTRIES, -1, len(mean))[:2]
    gain = (first - near * mean).T * (weight * unit)[:, None]
    mass = np.ascontiguousarray(near.T, np.float64)
    about = mass, np.ascontiguousarray(gain), weight * unit, empty - mean
    return OwnerGames(*about, square=True, rest=-rest * unit)


def mutual_target_games(
    sums: Integers, leaves: int, empty: int, unit: float
) -> Iterator[OwnerGames]:
    """Games of leaves where points judge each other: two for each leaf and owner of judges.

    A judge is taken out of its own game. With u its target, its owner has one point less, and the
    gains of all owners are S - n u in the sums with the judge. Take u = m + d, with m the mean of
    the owner's judges. Then gains and the prediction of nobody are linear in d, and utility is a
    square: over all judges of the owner d adds up to 0, so that they pay as many times what one
    with target m pays, and the sum of d^2 times what a game with gains n pays, whose prediction of
    nobody is 1.
    """
    table = sums.reshape(ENTRIES, -1, leaves)
    count, first, second = (each.reshape(-1, leaves) for each in summed(sums.reshape(ENTRIES, -1)))
    cell, owner = np.nonzero(table[0].T)
    step = max(1, NUMBERS // len(count))
    for lo in range(0, len(cell), step):
        leaf, whose = cell[lo : lo + step], owner[lo : lo + step]
        rows, mine = np.arange(len(leaf)), count[whose, leaf]
        near, total = count.T[leaf], first.T[leaf]
        mean = first[whose, leaf] / mine
        spread = np.maximum(second[whose, leaf] - first[whose, leaf] * mean, 0.0)
        beside = near.copy()
        beside[rows, whose] -= 1
        pull = (mine * unit, total - near * mean[:, None], empty - mean)
        shift = (spread * unit, near, np.ones(len(leaf)))
        for weight, gain, none in (pull, shift):
            yield OwnerGames(beside, gain * weight[:, None], weight, none, square=True)
