"""Targets in a private table: what a point with a target adds to a validation point it is near.

Targets are clipped to public bounds and rounded to u = k / G, with k from -G at the lower bound to
G at the upper one. A point adds L(u) = (u (u - 1) / 2, 1 - u^2, u (u + 1) / 2), which has length

    |L(u)|^2 = 1 - 3/2 u^2 (1 - u^2) <= 1,

and the sums of these three tell how many points are near, the sum of their u and of their u^2. In
units of 1 / (2 G^2) all three are whole numbers, so that nothing is rounded afterwards. No two sums
of such vectors have a smaller cosine than -`OPPOSED` (T13 of docs/privacy.md).
"""

from __future__ import annotations

import numpy as np

from thresher.array_types import Floats, Integers

G = 64
ONE = 2 * G * G  # whole numbers that stand for 1
OPPOSED = 0.14974
ENTRIES = 3


def steps(u: Floats) -> Integers:
    """Targets, 0 in the middle of the bounds and 1 at the upper one, clipped and rounded: k.

    Examples
    --------
    >>> steps(np.array([-7.0, 0.0, 0.5, 1.0])).tolist()
    [-64, 0, 32, 64]
    """
    return np.rint(G * np.clip(u, -1.0, 1.0)).astype(np.int64)


def basis(k: Integers) -> Integers:
    """What points add, in units of 1 / (2 G^2): three rows, one column per point.

    Examples
    --------
    >>> basis(np.array([-64, 0, 32])).tolist()
    [[8192, 0, -1024], [0, 8192, 6144], [0, 0, 3072]]
    """
    return np.array([k * (k - G), 2 * (G * G - k * k), k * (k + G)])


def sums(table: Floats) -> tuple[Floats, Floats, Floats]:
    """How many points are near, the sum of their u and of their u^2, from sums of L(u)."""
    low, middle, high = table
    return low + middle + high, high - low, high + low
