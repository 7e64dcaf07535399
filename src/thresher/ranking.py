"""Ranks with ties, without the seconds that importing scipy.stats takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def average_ranks(values: Any) -> NDArray[np.float64]:
    """Ranks from 1 on; equal values share the mean of their ranks.

    Examples
    --------
    >>> average_ranks([3.0, 1.0, 3.0, 2.0]).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[place]
