"""The game among owners if only the totals and the number of the other owners are known.

Exact values need the counts of every owner, but a private table has only totals. This module
assumes that the others are alike: K owners with the same number of near points, mu, and the same
share r' of them that carry the label. With n near points, a share r of them with the label, and
x = n / mu, an owner adds n (r - r') / (n + j mu) to j > 0 others and r - 1/C to nobody, so that its
Shapley value is

    ((r - 1/C) + (r - r') sum_{j=1..K} x / (x + j)) / (K + 1),   the sum = x (psi(x+K+1) - psi(x+1))

It is exact if the others are alike. If they are not, it is wrong, and values no longer add up.
"""

from __future__ import annotations

import numpy as np

from thresher.array_types import Floats


def alike_values(
    near: Floats, same: Floats, table: tuple[Floats, Floats], others: float, classes: int
) -> Floats:
    """The value of each owner, added up over validation points.

    Parameters
    ----------
    near, same
        For each owner (rows) and validation point (columns), the number of near points, and how
        many of them carry the label.
    table
        For all owners together, estimates of how many near points carry the label and how many do
        not.
    others
        How many other owners there are.
    classes
        How many classes there are.

    Examples
    --------
    >>> near, same = np.array([[20.0], [20.0]]), np.array([[14.0], [14.0]])
    >>> alike_values(near, same, (np.array([28.0]), np.array([12.0])), 1, 2).round(4).tolist()
    [0.1, 0.1]
    """
    from scipy.special import digamma

    rest = np.maximum(table[0] + table[1] - near, 0.0)
    carry = np.clip(table[0] - same, 0.0, rest)
    share = carry / np.maximum(rest, 1e-300)
    own = same / np.maximum(near, 1.0)
    x = near * others / np.maximum(rest, 1e-9)
    beside = np.where(rest > 1e-9, x * (digamma(x + others + 1) - digamma(x + 1)), 0.0)
    alone = np.where(rest > 1e-9, 1.0, others + 1.0)  # nobody else is near: all of it
    values = (alone * (own - 1 / classes) + (own - share) * beside) / (others + 1)
    return np.asarray(np.where(near > 0, values, 0.0).sum(axis=1))
