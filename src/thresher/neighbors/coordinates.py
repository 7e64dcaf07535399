"""Rows as coordinates for a tree of boxes, and how far a box may be without holding a near point.

Coordinates are rows moved to a common center and scaled by a power of two (euclidean), or rows of
length 1 (cosine: |x/|x| - v/|v||^2 is twice the cosine distance). Boxes are made over all of them,
or, for wide rows, over their projections on `PLANE` orthonormal directions: a projection is never
longer than what it is a projection of.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers, Single
from thresher.inputs.checks import Metric
from thresher.metrics import CHUNK, DIRECT_WIDTH, UNIT, Rows, power_of_two
from thresher.threads import cut, one_blas_thread, run

PLANE = 16  # directions that boxes have at most
SAMPLE = 1024  # rows from which center and directions are read
ROUNDING = 2.0**-53  # half the distance from 1 to the next float64


@dataclass(frozen=True)
class Space:
    """The coordinates in which a tree is built over points and searched by validation points."""

    metric: Metric
    radius: float  # as asked for
    center: Floats
    scale: float
    directions: Floats | None  # features x PLANE, orthonormal columns
    longest: float = math.inf  # longer rows, on either side, are near none: coordinates 0

    @classmethod
    def of(cls, points: Rows, validation: Rows, metric: Metric, radius: float) -> Space:
        """A space for these points and validation points; results do not depend on its choice."""
        width = points.width
        spread = cls(metric, radius, np.zeros(width), 1.0, None)
        if metric == "euclidean":
            longest = _longest(points, validation, radius)
            some = points.some(_sampled(len(points)))
            kept = np.flatnonzero(some.squares <= longest * longest)
            center = some.as_float64(kept).sum(axis=0) / max(1, len(kept))
            spread = cls(metric, radius, center, power_of_two(4 * longest), None, longest)
        if width <= DIRECT_WIDTH:
            return spread
        directions = _directions(spread.coordinates(points, _sampled(len(points))))
        return replace(spread, directions=directions)

    def coordinates(self, rows: Rows, which: slice | Integers) -> Floats:
        """Some of the rows as coordinates."""
        found = np.array(rows.array[which], np.float64)
        if self.metric == "cosine":
            norms = np.sqrt(rows.squares[which])
            return found / np.where(norms > 0, norms, 1.0)[:, None]
        found -= self.center
        found *= self.scale
        found[self.too_long(rows, which)] = 0.0
        return found

    def too_long(self, rows: Rows, which: slice | Array) -> Flags:
        """Which of these rows are too long to be near any row of the other side."""
        return rows.squares[which] > self.longest * self.longest

    def flat(self, coordinates: Floats) -> Floats:
        """What boxes are made of: the coordinates themselves, or their projections."""
        if self.directions is None:
            return coordinates
        with one_blas_thread():
            return coordinates @ self.directions

    def flat_points(self, rows: Rows) -> tuple[Single, Floats]:
        """All rows as boxes see them, rounded to float32, and the lengths of their coordinates."""
        width = rows.width if self.directions is None else self.directions.shape[1]
        out, norms = np.empty((len(rows), width), np.float32), np.empty(len(rows))

        def job(lo: int, hi: int) -> None:
            part = self.coordinates(rows, slice(lo, hi))
            norms[lo:hi] = lengths(part)
            out[lo:hi] = part if self.directions is None else part @ self.directions

        with nullcontext() if self.directions is None else one_blas_thread():
            pieces = cut(0, len(rows), max(1, CHUNK // rows.width))
            run(job, pieces, parallel=rows.array.size > CHUNK)
        return out, norms

    def limit(self, longest: float, longest_query: float) -> float:
        """The squared distance beyond which a box holds no point that the pair rule calls near.

        `longest` and `longest_query` are the greatest lengths of coordinates on either side.

        Proof, with u = 2^-53 and d features. *The pair rule.* Euclidean: it computes the squared
        distance within (d + 3) u relative, and loses at most d 2^-1074 to underflow; its root, u.
        So a near pair is truly within radius (1 + (d + 4) u) + sqrt(d) 2^-537. Cosine: the product
        is wrong by d u |x| |v|, squared norms by d u relative, so the similarity is wrong by less
        than (2 d + 5) u, and the comparison with the radius adds at most 3 u: unit vectors of a
        near pair are within sqrt(2 (radius + (2 d + 8) u)). *Coordinates.* A difference from the
        center is rounded once, lengths and quotients within (d + 4) u, projections within d u of
        the length times sqrt(16), and directions are orthonormal within `bent`: all below 8 (d +
        4) u times the length. Points are then rounded to float32: 2^-24 of their length and 2^-149
        a coordinate. *The box.* Its sides are coordinates, so nothing is rounded; the squared gap
        to a query is computed within (d + 3) u.
        """
        if self.metric == "cosine" and self.radius >= 2:
            return math.inf
        d = len(self.center)
        error = 8 * (d + 4) * ROUNDING
        if self.metric == "cosine":
            reach = math.sqrt(2 * (self.radius + (2 * d + 8) * ROUNDING))
        else:
            reach = self.radius * self.scale + math.sqrt(d) * self.scale * 2.0**-536
        reach += error * (reach + longest + longest_query)
        reach += UNIT * 1.001 * longest + math.sqrt(d) * 2.0**-148
        reach *= 1 + bent(self.directions)
        return reach * reach * (1 + error)


def lengths(coordinates: Floats) -> Floats:
    """The length of each row of coordinates."""
    return np.sqrt(np.einsum("ij,ij->i", coordinates, coordinates))


def bent(directions: Floats | None) -> float:
    """By how much a projection on `directions` may be longer than what is projected."""
    if directions is None:
        return 0.0
    gram = directions.T @ directions
    return float(np.linalg.norm(gram - np.eye(len(gram)))) + len(directions) * 2.0**-50


def _sampled(count: int) -> Integers:
    return np.arange(0, count, max(1, count // SAMPLE))[:SAMPLE]


def _longest(points: Rows, validation: Rows, radius: float) -> float:
    """The length beyond which no row, on either side, can be near one of the other side.

    A row that is more than four times as long as the radius and the longest row of the other side
    is near none, and can be ignored when the other side is judged.
    """
    squares = [points.squares, validation.squares]
    ends = [float(np.sqrt(each.max(initial=0.0))) for each in squares]
    while max(ends) > 4 * (min(ends) + radius) + 2.0**-480:
        side = int(ends[1] > ends[0])
        limit = 4 * (ends[1 - side] + radius) + 2.0**-480
        kept = squares[side] <= limit * limit
        ends[side] = math.sqrt(float(squares[side].max(initial=0.0, where=kept)))
    return max(ends) * (1 + 2.0**-40)  # so that its square is no less than theirs


def _directions(coordinates: Floats) -> Floats:
    """Orthonormal directions in which rows differ most, by a few steps of subspace iteration."""
    away = coordinates - coordinates.mean(axis=0)
    away /= max(float(np.abs(away).max(initial=0.0)), 2.0**-500)
    found = np.random.default_rng(0).standard_normal((away.shape[1], PLANE))
    with one_blas_thread():
        for _ in range(3):
            found, _triangle = np.linalg.qr(away.T @ (away @ found))
    return found
