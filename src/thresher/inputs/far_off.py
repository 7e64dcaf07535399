"""Targets that are far from all others, such as 999999999 where a number is missing.

They are findings of their own. Where others are judged, they must not count: one of them would
decide every split of a tree, every mean and every sum of squared errors.
"""

from __future__ import annotations

import numpy as np

from thresher.array_types import Flags, Floats

MOST = 0.9  # the share of targets whose distance from the middle is usual
FAR = 50.0  # usual distances: 80 standard deviations of a normal distribution


def far_off(targets: Floats) -> Flags:
    """Which targets are far from the middle of all, by the distance within which most of them are.

    Examples
    --------
    >>> far_off(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 1e9])).nonzero()[0]
    array([10])
    """
    if not len(targets):
        return np.zeros(0, np.bool_)
    distance = np.abs(targets - np.median(targets))
    usual = float(np.quantile(distance, MOST))
    if usual == 0 and distance.any():  # most are the same
        usual = float(np.median(distance[distance > 0]))
    return np.asarray(distance > FAR * usual)


def brought_in(targets: Floats) -> Floats:
    """The same targets, with the median of all others in place of those that are far off."""
    far = far_off(targets)
    return np.where(far, np.median(targets[~far]), targets) if far.any() else targets
