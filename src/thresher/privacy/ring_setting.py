"""A private release in which near points count by their distance: what is public beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Bytes, Flags, Floats
from thresher.inputs.checked_inputs import Validation
from thresher.neighbors.ball import Ball
from thresher.neighbors.kernel import Kernel
from thresher.passes.walk import ring_pairs
from thresher.price_list import PriceList
from thresher.privacy.design import Setting
from thresher.privacy.public_rows import FLOOR, Public, as_points

SPREAD = 8.0  # near points that the usual spread over rings is worth


def floored_counts(table: Floats, draws: Floats, entries: int) -> Floats:
    """Estimated counts made priceable: none below zero, and no cell total below its noise.

    Each cell (a validation point or a leaf) has this many `entries`. Their sum is raised to `FLOOR`
    of its standard deviations over the `draws`. If all entries of a cell are 0, they share that sum
    equally.
    """
    deviation = draws.reshape(len(draws), entries, -1).sum(axis=1).std(axis=0)
    split = table.reshape(entries, -1)
    counts = np.maximum(split, 0.0)
    some = np.where(counts.sum(axis=0) > 0, counts, 1.0)
    total = np.maximum(split.sum(axis=0), FLOOR * deviation)
    return np.asarray(some * np.maximum(total, 0.0) / some.sum(axis=0))


class RingSetting(Setting):
    """The setting whose table has two numbers for each ring of each validation point.

    A point is in one ring of a validation point. So a unit moves the table by as much as it would
    without rings, at the outer radius, and T1, T2 and T9 hold unchanged.
    """

    @property
    def _kernel(self) -> Kernel:
        assert self.side.kernel is not None  # noqa: S101 - by `side_setting`
        return self.side.kernel

    def record(self) -> dict[str, Any]:
        """What a release says about classes and rings."""
        return super().record() | self._kernel.record()

    def public(self) -> Public | None:
        """The validation points seen as points."""
        plain = super().public()
        return plain and RingPublic.around(plain, self.validation, self._kernel)

    def estimated(self, table: Floats, draws: Floats, *, prior: bool) -> PriceList:
        """The prices of an estimated table; `draws` show how certain the table is."""
        del prior  # is in the table
        return self.prices(floored_counts(table, draws, self.entries))

    def free_prices(self) -> Floats:
        """What the zero-budget score pays members: what each would be worth alone, in any ring."""
        return np.repeat(super().free_prices()[:, None], len(self._kernel.edges), axis=1)


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
        ball = Ball.around(validation, kernel.radius, "all", kernel.edges)
        place = np.minimum(ring_pairs(as_points(validation, rows), ball, count), count - 1)
        return cls(rows, plain.codes, plain.near, place, count)

    @property
    def entries(self) -> int:
        """How many numbers a vector has for each validation point."""
        return 2 * self.rings

    def vectors(self, rows: slice) -> Floats:
        """The vectors of some rows: counts with the label, ring by ring, then the other counts."""
        near, same = self.near[rows], self.same[rows]
        found = np.zeros((len(near), self.entries, near.shape[1]))
        entry = np.where(same, 0, self.rings) + self.place[rows]
        np.put_along_axis(found, entry[:, None], near[:, None], axis=1)
        return found.reshape(len(near), -1)

    def crowd(self, weights: Floats, members: Flags) -> Floats:
        """The total weight of these rows in each ring of each validation point."""
        near, place = self.near[members], self.place[members]
        return np.array([weights[members] @ (near & (place == r)) for r in range(self.rings)])

    def shrunk(self, raw: Floats) -> Floats:
        """The mean vector, with its spread over rings drawn towards the usual one.

        Points with the label of a validation point lie closer than others, so the two kinds have
        separate usual spreads.
        """
        each = raw.reshape(2, self.rings, -1)
        total = super().shrunk(each.sum(axis=1).ravel()).reshape(2, 1, -1)
        usual = each.sum(axis=2, keepdims=True)
        usual /= np.maximum(usual.sum(axis=1, keepdims=True), 1e-300)
        seen = each * (len(self.near) - 1)
        spread = (seen + SPREAD * usual) / (seen.sum(axis=1, keepdims=True) + SPREAD)
        return np.asarray((total * spread).ravel())
