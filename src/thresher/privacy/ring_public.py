"""Validation points and rings, seen as points: what the prior for a private table is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thresher.array_types import Bytes, Flags, Floats
from thresher.inputs import Points, Validation
from thresher.neighbors.ball import Ball
from thresher.neighbors.kernel import Kernel
from thresher.passes.walk import ring_pairs
from thresher.privacy.public_rows import Public

SPREAD = 8.0  # near points that the usual spread over rings is worth


@dataclass(frozen=True)
class RingPublic(Public):
    """Which validation points each row is near, and in which ring."""

    place: Bytes  # R x M: the ring, the innermost is 0; any number where not near
    rings: int
    price_axes: ClassVar[int] = 3

    @classmethod
    def around(cls, plain: Public, validation: Validation, kernel: Kernel) -> RingPublic:
        """The same rows as `plain`, with rings."""
        rows, count = plain.rows, len(kernel.edges)
        assert validation.rows is not None  # noqa: S101 - a public side has features
        points = Points(validation.rows.some(rows), validation.codes[rows])
        ball = Ball.around(validation, kernel.radius, "all", kernel.edges)
        place = np.minimum(ring_pairs(points, ball, count), count - 1)
        return cls(rows, plain.codes, plain.near, place, count)

    @property
    def entries(self) -> int:
        """Numbers of a vector for each validation point."""
        return 2 * self.rings

    def vectors(self, rows: slice) -> Floats:
        """The vectors of some rows: those with the label, ring by ring, then the others."""
        near, same = self.near[rows], self.same[rows]
        found = np.zeros((len(near), self.entries, near.shape[1]))
        entry = np.where(same, 0, self.rings) + self.place[rows]
        np.put_along_axis(found, entry[:, None], near[:, None], axis=1)
        return found.reshape(len(near), -1)

    def crowd(self, weights: Floats, members: Flags) -> Floats:
        """How much of some rows, by their weights, is in each ring of each validation point."""
        near, place = self.near[members], self.place[members]
        return np.array([weights[members] @ (near & (place == r)) for r in range(self.rings)])

    def shrunk(self, raw: Floats) -> Floats:
        """The mean vector; how it spreads over rings is drawn towards what is usual.

        Points with the label of a validation point lie closer than others, so that each has a usual
        spread of its own.
        """
        each = raw.reshape(2, self.rings, -1)
        total = super().shrunk(each.sum(axis=1).ravel()).reshape(2, 1, -1)
        usual = each.sum(axis=2, keepdims=True)
        usual /= np.maximum(usual.sum(axis=1, keepdims=True), 1e-300)
        seen = each * (len(self.near) - 1)
        spread = (seen + SPREAD * usual) / (seen.sum(axis=1, keepdims=True) + SPREAD)
        return np.asarray((total * spread).ravel())
