"""What leaves pay by their class counts alone: members, relabeled members, newcomers, any label.

A price list of a forest keeps the class counts of its leaves. Prices follow from them when they are
asked for: for a member of class a that is priced under class b, they are those of a newcomer of
class b to the leaf without the member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats, Integers
from thresher.errors import InputError
from thresher.games.forest_vote import ForestVote
from thresher.games.semivalues import rest_prices
from thresher.kernels.leaf_sums import add_under_labels
from thresher.neighbors.groups import Groups
from thresher.threads import cut, run

PIECE = 1 << 14  # points of one job


@dataclass(frozen=True)
class MemberVote(ForestVote):
    """The same game, paid by class counts in place of prices."""

    def pay(self, block: Any, groups: Groups, prices: Any, out: Floats) -> None:
        """Add what the leaves of a tree pay to each point in `out`; `prices` are class counts."""
        found = self.prices(prices.astype(np.int64), block.columns)
        super().pay(block, groups, found, out)


@dataclass(frozen=True)
class OtherVote(ForestVote):
    """What leaves pay to members, or to newcomers; under their own label or another one."""

    member: bool = False
    label: int | None = None

    def pay(self, block: Any, groups: Groups, prices: Any, out: Floats) -> None:
        """Add what the leaves of a tree pay to each point in `out`; `prices` are class counts."""
        own, base, change = label_prices(self, prices.astype(np.int64), block.columns)
        if self.label is not None:
            own = np.where(
                np.arange(self.classes)[:, None] == self.label, own, base + change[self.label]
            )
        segments = self._segments(groups)
        block.add(segments, own[[code for _, _, code in segments]], out)


@dataclass(frozen=True)
class LabelVote(OtherVote):
    """The same for every label at once: one column of sums for each class."""

    def pay(
        self, block: Any, groups: Groups, prices: Any, values: Floats,
        counts: NDArray[np.int32] | None = None,
    ) -> None:  # fmt: skip
        """Add to values[i, c] what point i is worth under class c, in input order."""
        if counts is not None:
            raise InputError(
                "a forest has no counts of near validation points: ask for values only"
            )
        own, base, change = label_prices(self, prices.astype(np.int64), block.columns)
        changes = np.ascontiguousarray(change.T)

        def job(lo: int, hi: int) -> None:
            add_under_labels(
                block.leaf_of, groups.codes, groups.rows, lo, hi, own, base, changes, values
            )

        points = len(groups.positions)
        run(job, cut(0, points, PIECE), parallel=points > PIECE)


def label_prices(
    vote: OtherVote, counts: Integers, columns: slice
) -> tuple[Floats, Floats, Floats]:
    """What a leaf pays to a point of each class (rows): under its own, and under another class.

    The second in two terms: one for the class of the point, one for the class it is priced under.
    """
    judges, total = vote.judges(columns, counts), counts.sum(axis=0)
    weight = 0.0 if vote.own is None else float(vote.own)

    def pay(members: Integers, others: Any, weights: Floats) -> tuple[Floats, Floats]:
        """What judges of each class pay to one more member that carries it, or lacks it."""
        same = members if vote.own is None else np.maximum(members - 1, 0)
        gain, loss = rest_prices(same, np.maximum(others, 0), vote.classes, vote.weights)
        return weights * gain, weights * loss

    if not vote.member:
        gain, loss = pay(counts, total - counts, judges)
        base = np.broadcast_to(loss.sum(axis=0), loss.shape)
        return base + (gain - loss), base.copy(), gain - loss
    left = np.maximum(counts - 1, 0)
    carried = pay(left, total - counts, np.maximum(judges - weight, 0.0))
    lacked = pay(counts, total - 1 - counts, judges)
    rest = lacked[1].sum(axis=0) - lacked[1]  # of judges of all other classes
    return rest + carried[0], rest + carried[1], lacked[0] - lacked[1]
