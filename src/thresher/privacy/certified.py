"""A bound, from public data, that no possible point exceeds: with it, nothing is clipped."""

from __future__ import annotations

import math

import numpy as np

from thresher.array_types import Array
from thresher.games.classes import ClassCounts
from thresher.inputs.checked_inputs import Points, Validation
from thresher.metrics import Rows
from thresher.neighbors.ball import Ball
from thresher.passes.walk import count

SAFETY = 1e-9  # radii are widened and bounds raised by this, far beyond all rounding


def certified_bound(validation: Validation, radius: float) -> int:
    """A bound on how many validation points any possible point can be near.

    The least of three: all of them; the most that lie within twice the radius of one (those near x
    are that close to each other, angles for the cosine metric); and for the cosine metric with t =
    1 - radius and unit vectors v, for every a > -t, the largest over unit x of sum_v (<x, v> +
    a)^2 / (t + a)^2, since each near v adds at least 1. That largest is at most L + sum_q (a
    b_q)^2 / (L - l_q) + a^2 M for every L beyond the eigenvalues l of V'V, with b = V'1 in their
    basis (Lagrange).
    """
    rows = validation.rows
    assert rows is not None  # noqa: S101 - the mechanism checked it
    least = len(validation)
    wide = _twice(validation.metric, radius)
    if wide is not None:
        points = Points(rows, np.zeros(len(rows), np.int32))
        counts = count(points, Ball.around(validation, wide), ClassCounts(1))
        least = min(least, int(counts.max()))
    level = 1.0 - radius - SAFETY
    if validation.metric == "cosine" and level > 0:
        least = min(least, _spectral_bound(rows, level))
    return max(1, least)


def _twice(metric: str, radius: float) -> float | None:
    """How far apart two validation points near the same point can be; None if any distance is."""
    if metric == "euclidean":
        return 2 * radius * (1 + SAFETY)
    angle = 2 * math.acos(max(-1.0, 1.0 - radius))
    return None if angle >= math.pi else 1.0 - math.cos(angle) + SAFETY


def _spectral_bound(rows: Rows, level: float) -> int:
    V: Array = rows.as_float64(slice(None)) / np.sqrt(rows.squares)[:, None]
    values, axes = np.linalg.eigh(V.T @ V)
    b = axes.T @ V.sum(axis=0)
    least = math.inf
    for a in np.linspace(0.0, 3.0, 61):
        step = a * float(np.linalg.norm(b)) + 1.0
        multipliers = values[-1] + SAFETY + step * np.geomspace(1e-6, 1e2, 400)
        dual = multipliers + ((a * b) ** 2 / (multipliers[:, None] - values)).sum(axis=1)
        least = min(least, float(dual.min() + a * a * len(V)) / (level + a) ** 2)
    return math.floor(least * (1 + SAFETY) + SAFETY)
