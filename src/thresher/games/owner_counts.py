"""What is counted if owners are the players: the near points of each owner, by label or target.

The code of a point shows both its owner and its class: owner x kinds + class, where the last kind
may be for labels that are not a class. So points of one owner lie together, and sums over parts of
the points add up as usual. If points carry numbers, the code is a pair of owner and target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError
from thresher.games.leaf_targets import Judges
from thresher.games.owner_values import OwnerGames
from thresher.games.targets import TargetGroups, centered, means_in_steps
from thresher.inputs.grids import Grid
from thresher.inputs.labels import Codes
from thresher.kernels.target_sums import ENTRIES
from thresher.neighbors.groups import Block, Groups

NUMBERS = 1 << 22  # of a table of games that is held at a time


def owned_codes(owners: Codes, codes: Codes, kinds: int) -> Codes:
    """Codes for the owner and the class of each point."""
    if len(owners) and (int(owners.max()) + 1) * kinds >= 1 << 31:
        raise InputError(
            f"owners has {int(owners.max()) + 1} owners, too many for {kinds} classes: owners "
            "times classes must stay below 2^31"
        )
    return (owners * np.int32(kinds) + codes).astype(np.int32)


def target_codes(owners: Array, targets: Array) -> Integers:
    """Codes for the owner and the target of each point."""
    return np.column_stack([owners, targets]).astype(np.int64)


@dataclass(frozen=True)
class OwnerAgreement:
    """Counts, for each owner, of near points that carry the label, and then of all near points."""

    judges: Codes  # the class of each validation point
    kinds: int  # how many different codes the points of an owner may have
    owners: int  # how many owners there are
    # the weight of each ring, the innermost first; none where all near points count alike
    weights: tuple[float, ...] = ()

    @property
    def entries(self) -> int:
        """How many numbers a cell keeps: two for each owner and ring."""
        return 2 * self.owners * max(1, len(self.weights))

    def groups(self, codes: Codes) -> Groups:
        """Points sorted by owner, and by class."""
        return Groups.of(codes, self.owners * self.kinds)

    def sums(self, block: Block, groups: Groups) -> Integers:
        """What all points add to the cells of a block: two rows for each owner."""
        present = np.flatnonzero(np.diff(groups.starts))
        counts = block.count(groups.segments(present))
        owner, kind = present // self.kinds, present % self.kinds
        agree = kind[:, None] == self.judges[block.columns]
        same = np.where(agree[:, None] if self.weights else agree, counts, 0)
        found = np.zeros((2, self.owners, *counts.shape[1:]), np.int64)
        if len(present):
            who, starts = np.unique(owner, return_index=True)
            found[0, who] = np.add.reduceat(same, starts, axis=0)
            found[1, who] = np.add.reduceat(counts, starts, axis=0)
        return found.reshape(self.entries, -1)

    def games(self, sums: Integers, empty: float) -> OwnerGames:
        """One game for each cell."""
        weights = np.array(self.weights or (1.0,))
        counts = sums.reshape(2, self.owners, len(weights), -1)
        same, near = (np.ascontiguousarray(weighed(each, weights).T) for each in counts)
        return OwnerGames(near, same, np.ones(len(near)), empty)


def weighed(counts: Integers | Floats, weights: Floats) -> Floats:
    """Counts of rings (the last axis but one) added up with the rings' weights.

    Equal counts have equal sums to the last bit, so that equal owners get equal values.
    """
    found = np.zeros((counts.shape[0], counts.shape[2]))
    for ring, weight in enumerate(weights.tolist()):
        found += weight * counts[:, ring]
    return found


def leaf_games(counts: Integers, judges: Floats) -> Iterator[OwnerGames]:
    """One game for each leaf, from counts[owner, class, leaf] and the weight of judges by class."""
    near = np.ascontiguousarray(counts.sum(axis=1).T)
    carry = np.ascontiguousarray(np.einsum("oct,ct->to", counts, judges))
    yield OwnerGames(near, carry, judges.sum(axis=0), 1 / len(judges))


def mutual_leaf_games(counts: Integers, weight: float) -> Iterator[OwnerGames]:
    """Games of leaves where points judge each other: one for each leaf and owner of judges.

    A judge is left out of its own game. So the counts[o, c] judges of owner o with class c see one
    point less of o, and one less that carries their label.
    """
    near = counts.sum(axis=1)
    leaves, owners = np.nonzero(near.T)
    step = max(1, NUMBERS // max(1, len(near)))
    for lo in range(0, len(leaves), step):
        leaf, owner = leaves[lo : lo + step], owners[lo : lo + step]
        rows, mine = np.arange(len(leaf)), near[owner, leaf]
        beside = near.T[leaf].copy()
        beside[rows, owner] -= 1
        carry = np.einsum("gc,ocg->go", counts[owner, :, leaf], counts[:, :, leaf]).astype(float)
        carry[rows, owner] -= mine
        yield OwnerGames(beside, carry * weight, mine * weight, 1 / counts.shape[1])


@dataclass(frozen=True)
class OwnerTargets:
    """For each owner, the near points' number, sum of targets, and sum of squared targets.

    The code of a point is a pair: its owner, and the code of its target.
    """

    owners: int
    grid: Grid
    rings: int = 1  # of the neighborhood

    @property
    def entries(self) -> int:
        """How many numbers a cell keeps for all owners and rings, entry by entry."""
        return ENTRIES * self.owners * self.rings

    def groups(self, codes: Array) -> TargetGroups:
        """Points in input order."""
        return TargetGroups.of_codes(codes[:, 1], self.grid, codes[:, 0])

    def sums(self, block: Any, groups: Any) -> Integers:
        """What all points add to the cells of a block."""
        return groups.sums(block, self.owners)


def target_games(
    sums: Integers, judges: Judges, empty: float, grid: Grid, weights: tuple[float, ...] = (1.0,)
) -> OwnerGames:
    """One game for each cell, whose judges have a weight and a mean target.

    `weights` are those of rings, the innermost first.
    """
    weight, mean, rest = judges
    near, first, _, center = _around_means(sums, len(weights), len(mean), grid)
    mass, gain = weighed(near, np.array(weights)), weighed(first, np.array(weights))
    each = np.ascontiguousarray(mass.T), np.ascontiguousarray((gain * weight).T)
    about = weight, empty - center
    return OwnerGames(*each, *about, square=True, apart=center - mean, rest=-rest)


def mutual_target_games(
    sums: Integers, leaves: int, empty: float, grid: Grid, share: float
) -> Iterator[OwnerGames]:
    """Games of leaves where points judge each other: two for each leaf and owner of judges.

    A judge is left out of its own game. Let u be its target. Then its owner has one point less, and
    the gains of all owners are S - n u, with S a sum that includes the judge. Take u = m + d, with
    m the mean of the owner's judges. Gains and the prediction without anyone are linear in d, and
    utility is a square. Over all judges of the owner, d adds up to 0. So together they pay their
    number times what a judge with target m pays, plus the sum of d^2 times what a game with gains n
    pays whose prediction without anyone is 1. A judge weighs `share`.
    """
    counts, firsts, seconds, center = _around_means(sums, 1, leaves, grid)
    count, first, second = (each[:, 0] for each in (counts, firsts, seconds))
    cell, owner = np.nonzero(count.T)
    step = max(1, NUMBERS // len(count))
    for lo in range(0, len(cell), step):
        leaf, whose = cell[lo : lo + step], owner[lo : lo + step]
        rows, mine = np.arange(len(leaf)), count[whose, leaf]
        near, total = count.T[leaf], first.T[leaf].copy()
        mean = first[whose, leaf] / mine
        spread = np.maximum(second[whose, leaf] - first[whose, leaf] * mean, 0.0)
        beside = near.copy()
        beside[rows, whose] -= 1
        total[rows, whose] -= mean
        none = empty - center[leaf]
        nothing = np.zeros(len(leaf))
        pull: tuple[Any, ...] = (mine * share, total, none, -mean)
        shift: tuple[Any, ...] = (spread * share, near, nothing + 1, nothing)
        for weight, gain, alone, apart in (pull, shift):
            yield OwnerGames(
                beside, gain * weight[:, None], weight, alone, square=True, apart=apart
            )


def _around_means(
    sums: Integers, rings: int, cells: int, grid: Grid
) -> tuple[Integers, Floats, Floats, Floats]:
    """The number and the sums of r and r^2 of each owner, ring and cell, and the cells' centers.

    r is a target less the mean of all in the cell.
    """
    table = sums.reshape(ENTRIES, -1)
    steps = means_in_steps(table.reshape(ENTRIES, -1, cells).sum(axis=1))
    one, two = centered(table, np.tile(steps, table.shape[1] // cells), grid.step)
    shape = -1, rings, cells
    return table[0].reshape(shape), one.reshape(shape), two.reshape(shape), steps * grid.step
