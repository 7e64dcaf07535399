"""What to do about a point, by what others say about its label.

By a radius, and by nearest neighbors, the others are validation points, which have a vote each:

    outlier   no validation point is near: nothing can be said
    keep      its value is not negative, or at least half of the near ones agree with its label
    relabel   it hurts, would help under another label, and near validation points clearly say so:
              none is more frequent among them, and at most one in five of those with either label
              has the point's own, which is more than two standard deviations from even odds
    drop      as clearly wrong, but it would hurt under every other label too
    inspect   it hurts, and most near ones disagree, but not clearly; or no validation point at all
              has its label, so that none could agree

By a forest the others are the rows in the point's leaves (`games.label_shares`):

    outlier   hardly anybody is ever in its leaf: nothing can be said
    relabel   another label's share exceeds that of its own clearly
    drop      its own label has next to no share, and no other one leads clearly either
    inspect   another label's share exceeds that of its own, but not clearly
    keep      all others
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.games.label_shares import LabelShares

SUGGESTIONS = ("keep", "relabel", "inspect", "drop", "outlier")
CLEAR = 2.0  # standard deviations of even odds
FEW = 0.2  # share of votes for the own label
MARGIN = 0.2  # by which another label's share exceeds that of the own one, to be clear
NO_SHARE = 0.05  # of the own label, where no other one is clear
NOBODY = 0.05  # other rows in a leaf, as a mean over trees

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Near:
    """Who is near each point, and what it is worth under its own label and the best other one."""

    near: Integers
    own: Integers  # of them with the own label
    value: Floats
    best: Integers  # the best other label
    votes: Integers  # of near ones for it
    most: Integers  # of near ones for any other label
    best_value: Floats


def suggest_by_votes(values: Floats, near: Near, known: NDArray[np.bool_]) -> Integers:
    """What to do, as places in `SUGGESTIONS`; `known` are points with a label of the public."""
    both = near.votes + near.own
    clear = (near.votes - near.own > CLEAR * np.sqrt(both)) & (near.own <= FEW * both)
    clear &= known & (near.votes == near.most)
    fine = (values >= 0) | (2 * near.own >= near.near)
    conditions = [near.near == 0, fine, clear & (near.best_value > 0), clear]
    words = [SUGGESTIONS.index(word) for word in ("outlier", "keep", "relabel", "drop", "inspect")]
    return np.select(conditions, words[:4], words[4])


def suggest_by_shares(shares: LabelShares) -> Integers:
    """What to do about each point, as places in `SUGGESTIONS`."""
    lead = shares.other - shares.own
    conditions = [shares.near < NOBODY, lead >= MARGIN, shares.own < NO_SHARE, lead > 0]
    words = [SUGGESTIONS.index(word) for word in ("outlier", "relabel", "drop", "inspect")]
    return np.select(conditions, words, SUGGESTIONS.index("keep"))
