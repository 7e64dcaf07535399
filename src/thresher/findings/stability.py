"""Stability: how much of what was found would be found again with other random trees.

A forest is grown in two halves that share nothing but the rows: other folds, other trees. What they
agree on is not chance. The whole forest is steadier than either half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thresher.array_types import Flags, Floats, Integers
from thresher.findings.advice import SUGGESTIONS
from thresher.ranking import agreement

Advice = tuple[Integers, Integers]  # suggestions and best labels, as numbers


@dataclass(frozen=True)
class Stability:
    """How well two halves of the trees agree."""

    # how well the ranking by value of the whole forest would agree with that of another one:
    # the rank correlation, estimated from that of the halves (Spearman and Brown)
    values: float
    # of the rows that one half would relabel, the share that the other half would, too, to the
    # same label. NaN where neither would relabel any.
    relabel: float
    marked: float  # the same for rows with any suggestion but keep, whichever it is

    @classmethod
    def of(cls, values: tuple[Floats, Floats], advice: tuple[Advice, Advice]) -> Stability:
        """The stability that follows from what both halves found."""
        (first, best), (second, other) = advice
        keep, relabel = SUGGESTIONS.index("keep"), SUGGESTIONS.index("relabel")
        return cls(
            agreement(*values),
            _overlap(first == relabel, second == relabel, best == other),
            _overlap(first != keep, second != keep, np.ones(len(first), np.bool_)),
        )


def _overlap(first: Flags, second: Flags, alike: Flags) -> float:
    """Which share of the rows of one half the other half has, too, with the same label."""
    either = int(first.sum() + second.sum())
    return 2 * int((first & second & alike).sum()) / either if either else float("nan")
