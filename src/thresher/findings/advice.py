"""What to do about a point, by what others say about its label.

By a radius, and by nearest neighbors, the others are validation points, and each has one vote:

    outlier   no validation point is near: nothing can be said
    keep      its value is not negative, or at least half of the near ones agree with its label
    relabel   it hurts, would help under another label, and near validation points clearly say so:
              none is more frequent among them, and at most one in five of those with either label
              has the point's own, which is more than two standard deviations from even odds
    drop      as clearly wrong, but it would hurt under every other label too
    inspect   it hurts, and most near ones disagree, but not clearly; or no validation point at all
              has its label, so that none could agree

By a forest, the others are the rows in the point's leaves (`games.label_shares`). For each label,
`forecast` says how many points carry it wrongly. That many labels are called wrong: those that the
others contradict most.

    outlier   hardly anybody is ever in its leaf: nothing can be said
    relabel   its label is called wrong, and another one has at least a fifth of the others
    drop      its label is called wrong, but no other one has that share
    inspect   the next in line, as many again, if another label's share exceeds that of its own
    keep      all others

With fewer than ten rows in all, nothing is clear: rows to relabel or drop are rows to inspect. With
fewer than three, or if all have the same label, nothing can be said: all rows are outliers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thresher.array_types import Flags, Floats, Integers
from thresher.findings.forecast import Forecast, lowest
from thresher.games.label_shares import LabelShares
from thresher.inputs.labels import Codes

SUGGESTIONS = ("keep", "relabel", "inspect", "drop", "outlier")
CALLED_WRONG = ("relabel", "drop")
CLEAR = 2.0  # standard deviations of even odds
FEW = 0.2  # share of votes for the own label
NEW_LABEL = 0.2  # share of another label that makes it the new one: below, it is rarely right
LEAST_ROWS = 10  # in each half, as many as have to agree to be clear by votes
JUDGED_ROWS = 3  # fewer say nothing
NOBODY = 0.05  # other rows in a leaf, as a mean over trees


@dataclass(frozen=True)
class Near:
    """How many are near each point, and its value under its own label and the best other one."""

    near: Integers
    own: Integers  # of them with the own label
    value: Floats
    best: Integers  # the best other label
    votes: Integers  # of near ones for it
    most: Integers  # of near ones for any other label
    best_value: Floats


def suggest_by_votes(values: Floats, near: Near, known: Flags) -> Integers:
    """What to do, as places in `SUGGESTIONS`; `known`: some validation point has the label."""
    both = near.votes + near.own
    clear = (near.votes - near.own > CLEAR * np.sqrt(both)) & (near.own <= FEW * both)
    clear &= known & (near.votes == near.most)
    fine = (values >= 0) | (2 * near.own >= near.near)
    conditions = [near.near == 0, fine, clear & (near.best_value > 0), clear]
    words = [SUGGESTIONS.index(word) for word in ("outlier", "keep", "relabel", "drop", "inspect")]
    return np.select(conditions, words[:4], words[4])


def suggest_by_shares(
    shares: LabelShares, codes: Codes, forecast: Forecast, rows: int = LEAST_ROWS
) -> Integers:
    """What to do about each point, as places in `SUGGESTIONS`, if there are so many rows in all.

    There are none that say anything if all have the same label.
    """
    contradicted = np.flatnonzero(shares.other > shares.own)
    scores, labels = shares.score[contradicted], codes[contradicted].astype(np.int64)
    wrong, doubtful = (
        np.isin(np.arange(len(codes)), contradicted[lowest(scores, labels, np.rint(counts))])
        for counts in (forecast.by_label, 2 * forecast.by_label)
    )
    clear, named = wrong & (rows >= LEAST_ROWS), shares.other >= NEW_LABEL
    alone = (shares.near < NOBODY) | (rows < JUDGED_ROWS)
    conditions = [alone, clear & named, clear, doubtful]
    words = [SUGGESTIONS.index(word) for word in ("outlier", "relabel", "drop", "inspect")]
    return np.select(conditions, words, SUGGESTIONS.index("keep"))
