"""Which features rule the distances: by their shares of the distances between pairs of rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from thresher.array_types import Floats

PAIRS = 1 << 11  # of rows that are looked at
RULING = 0.5  # of the way from an even share to all


def distance_shares(X: Floats, widths: Sequence[int]) -> list[float]:
    """The share that each feature has of the squared distance of two rows, in the mean over pairs.

    Each pair counts once, however far apart it is, so a few wild rows change little.

    Parameters
    ----------
    X
        Rows of numbers.
    widths
        How many columns each feature has; further columns are no feature, and have their share.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 4)) * [3, 1, 1, 1]
    >>> [round(share, 2) for share in distance_shares(X, [1, 1, 2])]
    [0.55, 0.13, 0.31]
    """
    rows = np.random.default_rng(0).permutation(len(X))[: 2 * PAIRS]
    half = len(rows) // 2
    apart = np.abs(X[rows[:half]] - X[rows[half : 2 * half]])
    largest = apart.max(axis=1, initial=0.0)
    squares = (apart[largest > 0] / largest[largest > 0, None]) ** 2  # which cannot overflow
    if not len(squares):
        return [0.0] * len(widths)
    shares = (squares / squares.sum(axis=1, keepdims=True)).mean(axis=0)
    starts = np.cumsum([0, *widths])
    return [float(shares[lo:hi].sum()) for lo, hi in pairwise(starts.tolist())]


def rules(share: float, features: int) -> bool:
    """Whether a feature with this share of the distances rules those of so many features.

    Examples
    --------
    >>> rules(0.7, 2), rules(0.7, 10), rules(1.0, 1)
    (False, True, False)
    """
    even = 1 / max(1, features)
    return share > even + RULING * (1 - even)
