"""Ranks with ties, without the seconds that importing scipy.stats takes."""

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
