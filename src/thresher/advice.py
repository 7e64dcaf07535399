"""What to do about a point, by what others say about its label.

For forests the others are the rows in the point's leaves (`games.label_shares`). For each label,
`forecast` says how many points carry it wrongly. Those whose others contradict it most are called
wrong, as many as that:

    outlier   hardly anybody is ever in its leaf: nothing can be said
    relabel   its label is called wrong, and another one has a fifth of the others at least
    drop      its label is called wrong, but no other one has that share
    inspect   the next in line, as many again, if another label's share exceeds that of its own
    keep      all others
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.forecast import Forecast, lowest
from thresher.games.label_shares import LabelShares
from thresher.labels import Codes

SUGGESTIONS = ("keep", "relabel", "inspect", "drop", "outlier")
NEW_LABEL = 0.2  # share of another label that makes it the new one: below, it is rarely right
NOBODY = 0.05  # other rows in a leaf, as a mean over trees


def suggest_by_shares(shares: LabelShares, codes: Codes, forecast: Forecast) -> NDArray[np.int64]:
    """What to do about each point, as places in `SUGGESTIONS`."""
    contradicted = np.flatnonzero(shares.other > shares.own)
    scores, labels = shares.score[contradicted], codes[contradicted].astype(np.int64)
    wrong, doubtful = (
        np.isin(np.arange(len(codes)), contradicted[lowest(scores, labels, np.rint(counts))])
        for counts in (forecast.by_label, 2 * forecast.by_label)
    )
    named = shares.other >= NEW_LABEL
    conditions = [shares.near < NOBODY, wrong & named, wrong, doubtful]
    words = [SUGGESTIONS.index(word) for word in ("outlier", "relabel", "drop", "inspect")]
    return np.select(conditions, words, SUGGESTIONS.index("keep"))
