"""Ranks with ties and their agreement, without the seconds that importing scipy.stats takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats


def average_ranks(values: Any) -> NDArray[np.float64]:
    """Ranks from 1 on; equal values share the mean of their ranks.

    Examples
    --------
    >>> average_ranks([3.0, 1.0, 3.0, 2.0]).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[place]


def agreement(one: Floats, other: Floats) -> float:
    """How well the ranking by a whole sample would agree with that of another such sample.

    With rho the rank correlation of the two halves, this is 2 rho / (1 + rho) (Spearman and Brown),
    and at least 0. It is NaN if all values are equal in both halves, and 0 if they are equal in
    one.

    Examples
    --------
    >>> round(agreement(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.7, 2.6])), 3)
    0.667
    """
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return 0.0
    ranks = [average_ranks(values) - (len(values) + 1) / 2 for values in (one, other)]
    lengths = [float(np.sqrt(rank @ rank)) for rank in ranks]
    if min(lengths) == 0:
        return float("nan") if max(lengths) == 0 else 0.0
    rho = max(0.0, float(ranks[0] @ ranks[1]) / (lengths[0] * lengths[1]))
    return min(1.0, 2 * rho / (1 + rho))


def rank_agreement(values: Floats, truth: Floats) -> float:
    """Spearman's rank correlation; NaN if one side is constant.

    Examples
    --------
    >>> rank_agreement(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 4.0]))
    1.0
    """
    ours, theirs = average_ranks(values), average_ranks(truth)
    if ours.std() == 0 or theirs.std() == 0:
        return math.nan
    return float(np.corrcoef(ours, theirs)[0, 1])
