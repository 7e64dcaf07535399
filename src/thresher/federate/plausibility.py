"""Check whether a federated release fits the number of points: a cheap test for lies.

A silo can lie, and nothing in the protocol shows it. But a point adds at most one to either count
of a validation point. So if counts exceed the number of all points by more than noise explains,
somebody probably lied. A whole table that is far from what the validation set suggests is another
hint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from thresher.errors import InputError
from thresher.inputs.checks import check_count
from thresher.privacy.release import Release, SeededRelease

DEVIATIONS = 6.0  # of the noise, beyond which an excess is no accident: 1 in 10^9 for each number
FACTOR = 2.0  # more than so many times what is expected, or less than one part in so many


@dataclass(frozen=True)
class Plausibility:
    """How the table of a release compares with a public number of points.

    Parameters
    ----------
    per_point
        How much a point (or an owner, if owners are protected) adds to the table on average. With a
        radius, this is how many validation points it is near, after clipping. With leaves, it is
        how many trees it fills.
    expected
        What the validation set suggests for `per_point`. With leaves, it is the number of trees,
        times the points of an owner if owners are protected.
    deviation
        The standard deviation of `per_point` that is due to noise alone.
    impossible
        How many validation points or leaves have counts above the number of points, or below zero,
        by more than six standard deviations of the noise. An honest round almost never has one:
        somebody probably lied.

    Examples
    --------
    >>> from thresher.federate import Plausibility
    >>> Plausibility(per_point=9.5, expected=10.0, deviation=0.1, impossible=0).is_plausible
    True
    >>> Plausibility(per_point=25.0, expected=10.0, deviation=0.1, impossible=0).is_plausible
    False
    """

    per_point: float
    expected: float
    deviation: float
    impossible: int

    @property
    def is_plausible(self) -> bool:
        """Whether nothing is impossible, and `per_point` is within a factor of 2 of `expected`.

        Six standard deviations of the noise are allowed on top.
        """
        slack = DEVIATIONS * self.deviation
        low, high = self.expected / FACTOR - slack, self.expected * FACTOR + slack
        return not self.impossible and bool(low <= self.per_point <= high)


def check_plausibility(release: Release | SeededRelease, points: int) -> Plausibility:
    """Compare a release with the public number of points in all silos together.

    Parameters
    ----------
    release
        A federated release.
    points
        How many points all silos together say they have.

    Notes
    -----
    The check does not find a lie that is about as large as what a silo honestly holds. It needs a
    prior (a validation set with features), or leaves, to which each point adds one in every tree.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> from thresher.federate import check_plausibility
    >>> X = np.random.default_rng(0).normal(size=(1200, 3))
    >>> y = X[:, 0] > 0
    >>> release = th.dp_tknn_shapley(
    ...     X[200:], y[200:], X[:200], y[:200], epsilon=1, delta=1e-6, seed=0
    ... )
    >>> check_plausibility(release, points=1000).is_plausible
    True
    >>> check_plausibility(release, points=100).is_plausible  # ten times as many must have come
    False
    """
    design: Any = release._design
    mass = design.setting.mass
    if release.record["mechanism"] != "table" or (design.public is None and mass is None):
        raise InputError(
            "release must use mechanism='table' and have a validation set with features"
        )
    number = check_count("points", points)
    table, scale = release.table / design.scale, design.drawn_sigma / design.scale
    counts = table.sum(axis=0)
    far = DEVIATIONS * math.sqrt(len(table)) * scale
    impossible = int(((counts > number + far) | (counts < -far)).sum())
    units = number / (design.setting.points_per_owner or 1)
    if mass is None:
        mass = float((design.kept_shares() * design.owner_mean()).sum())
    deviation = scale * math.sqrt(table.size) / units
    return Plausibility(float(table.sum()) / units, mass, deviation, impossible)
