"""Shapley values of k-nearest-neighbor regression for one judge, from far to near.

Let y_1, ..., y_N be targets in the order of distance to a judge with target t, and K = min(k, N).
Utilities of a coalition S, with D the divisor of a full neighborhood:

    "mean"     minus the squared error of the mean of the min(k, |S|) nearest, z0^2 if S is empty
    "jia2019"  minus the squared error of their sum over k; 0 if S is empty (Jia et al. 2019)

The farthest point changes a coalition only if fewer than K others are in it, and what it adds on
average follows from the mean m, mean square q and mean product of pairs p of the others. Two
neighbors in the order, u = y_i and w = y_{i+1}, differ in value by the mean, over coalitions of the
others, of what exchanging them changes. That happens where fewer than K of the i - 1 nearer points
are in S, with chance min(K, i)/i; the other members of the neighborhood enter by their sum:

    value_i - value_{i+1} = (w - u) [ (2 lin + (u + w) min(K, i)/i) / D^2 - 2 t min(K, i)/(i D) ]

where lin is the mean sum of the others among the K - 1 first of S. A nearer point j < i is among
them, while fewer than K of the nearer ones are present, with chance a (a + 1) / (2 (i - 1) i),
a = min(K - 1, i - 1); a farther one, j > i + 1, with chance a (a + 1) / (2 (j - 2) (j - 1)),
a = min(K - 1, j - 2). For "mean" coalitions smaller than K - 1 divide by |S| + 1 and not by D,
which adds (w - u) [2 mm sum s e_s + (u + w) sum e_s] / (N - 1), e_s = 1/(s + 1)^2 - 1/D^2, with mm
the mean of all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def nearest_values(y: Floats, t: float, k: int, empty: float | None) -> Floats:
    """The value of each point, `y` nearest first; "mean" with a prediction for none, or "jia2019".

    Examples
    --------
    >>> nearest_values(np.array([1.0, 3.0]), 1.0, 1, 0.0).tolist()
    [2.5, -1.5]
    """
    if empty is None:
        return _values(y, t, k, None)
    return _values(y - t, 0.0, k, empty - t)


def _values(y: Floats, t: float, k: int, z0: float | None) -> Floats:
    n = len(y)
    K = min(k, n)
    D = k if z0 is None else K
    last = _farthest(y, t, K, D, z0) / n
    if n == 1:
        return np.array([last])
    rank = np.arange(1.0, n + 1)
    inside = np.minimum(K, rank) / rank
    a = np.minimum(K - 1, rank - 1)
    nearer = a * (a + 1) / (2 * np.maximum(rank - 1, 1) * rank)
    a = np.maximum(np.minimum(K - 1, rank - 2), 0)
    farther = a * (a + 1) / (2 * np.maximum((rank - 2) * (rank - 1), 1))
    before = np.concatenate([[0.0], np.cumsum(y)])[: n - 1]
    behind = np.concatenate([np.cumsum((farther * y)[::-1])[::-1], [0.0]])[2:]
    sums = nearer[:-1] * before + behind
    u, w = y[:-1], y[1:]
    steps = (2 * sums + (u + w) * inside[:-1]) / D**2 - 2 * t * inside[:-1] / D
    if z0 is not None:
        s = np.arange(0.0, min(K - 1, n - 1))
        less = 1 / (s + 1) ** 2 - 1 / D**2
        others = (y.sum() - u - w) / max(n - 2, 1)
        steps += (2 * others * (s * less).sum() + (u + w) * less.sum()) / (n - 1)
    found = np.full(n, last)
    found[:-1] += np.cumsum(((w - u) * steps)[::-1])[::-1]
    return found


def _farthest(y: Floats, t: float, K: int, D: int, z0: float | None) -> float:
    """What the farthest point adds, summed over the sizes of coalitions that it changes."""
    own, rest = float(y[-1]), y[:-1]
    n = len(rest)
    m = float(rest.mean()) if n else 0.0
    if z0 is None:
        return -(own / D) * (K * (K - 1) * m / D + K * (own / D - 2 * t)) - t * t
    q = float((rest**2).mean()) if n else 0.0
    p = float((rest.sum() ** 2 - (rest**2).sum()) / (n * (n - 1))) if n > 1 else 0.0
    j = np.arange(1.0, K)
    after = (j * q + j * (j - 1) * p + 2 * j * own * m + own**2) / (j + 1) ** 2
    return z0**2 - own**2 + float((p + (q - p) / j - after).sum())
