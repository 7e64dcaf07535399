"""What to do about a point, by what others say about its label.

For forests the others are the rows in the point's leaves (`games.label_shares`):

    outlier   hardly anybody is ever in its leaf: nothing can be said
    relabel   another label's share exceeds that of its own clearly
    drop      its own label has next to no share, and no other one leads clearly either
    inspect   another label's share exceeds that of its own, but not clearly
    keep      all others
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.games.label_shares import LabelShares

SUGGESTIONS = ("keep", "relabel", "inspect", "drop", "outlier")
MARGIN = 0.2  # by which another label's share exceeds that of the own one, to be clear
NO_SHARE = 0.05  # of the own label, where no other one is clear
NOBODY = 0.05  # other rows in a leaf, as a mean over trees


def suggest_by_shares(shares: LabelShares) -> NDArray[np.int64]:
    """What to do about each point, as places in `SUGGESTIONS`."""
    lead = shares.other - shares.own
    conditions = [shares.near < NOBODY, lead >= MARGIN, shares.own < NO_SHARE, lead > 0]
    words = [SUGGESTIONS.index(word) for word in ("outlier", "relabel", "drop", "inspect")]
    return np.select(conditions, words, SUGGESTIONS.index("keep"))
