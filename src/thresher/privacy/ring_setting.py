"""A private release where near points weigh by their distance: what is public before it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Bytes, Flags, Floats
from thresher.inputs.checked_inputs import Points, Validation
from thresher.neighbors.ball import Ball
from thresher.neighbors.kernel import Kernel
from thresher.passes.walk import ring_pairs
from thresher.price_list import PriceList
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Setting
from thresher.privacy.public_rows import FLOOR, Public
from thresher.sides.ball_side import BallSide

SPREAD = 8.0  # near points that the usual spread over rings is worth


def floored_counts(table: Floats, draws: Floats, entries: int) -> Floats:
    """Estimated counts, none below zero; all entries of a cell add up to what noise can tell.

    A cell (a validation point, or a leaf) has so many `entries`. Their sum is at least `FLOOR` of
    its standard deviations, of which `draws` tell. Where nothing is left, all entries are alike.
    """
    deviation = draws.reshape(len(draws), entries, -1).sum(axis=1).std(axis=0)
    split = table.reshape(entries, -1)
    counts = np.maximum(split, 0.0)
    some = np.where(counts.sum(axis=0) > 0, counts, 1.0)
    total = np.maximum(split.sum(axis=0), FLOOR * deviation)
    return np.asarray(some * np.maximum(total, 0.0) / some.sum(axis=0))


@dataclass(frozen=True)
class RingSetting(Setting):
    """The table has two numbers for each ring of each validation point.

    A point is in one ring of a validation point, so that a unit moves the table by what it would
    without rings, at the outer radius: T1, T2 and T9 hold as they are.
    """

    kernel: Kernel | None = None

    @classmethod
    def of(cls, kernel: Kernel, plain: Setting) -> RingSetting:
        """The same setting with rings."""
        return cls(
            **{each.name: getattr(plain, each.name) for each in fields(plain)}, kernel=kernel
        )

    @property
    def side(self) -> BallSide:
        """Validation set, radius and kernel, as price lists have them."""
        return BallSide(self.validation, self.radius, self.kernel)

    @property
    def _rings(self) -> Kernel:
        assert self.kernel is not None  # noqa: S101 - `release_setting` has given it
        return self.kernel

    @property
    def entries(self) -> int:
        """Numbers that a validation point has in the table."""
        return 2 * len(self._rings.edges)

    def record(self) -> dict[str, Any]:
        """What a release says of classes and rings."""
        return super().record() | self._rings.record()

    def contributions(self, points: Points, units: Units) -> Contributions:
        """What units of points add to the table."""
        return Contributions(points, self.validation, self.radius, units, self.kernel)

    def public(self) -> Public | None:
        """The validation points seen as points."""
        plain = super().public()
        return plain and RingPublic.around(plain, self.validation, self._rings)

    def estimated(self, table: Floats, draws: Floats, *, prior: bool) -> PriceList:
        """The prices of an estimated table; `draws` tell how sure it is."""
        del prior  # is in the table
        return self.table_prices(floored_counts(table, draws, self.entries))

    def table_prices(self, table: Floats) -> PriceList:
        """The prices that follow from a table as it is."""
        prices = PriceList.over(self.side, np.asarray(table, np.float64), self.semivalue)
        return replace(prices, scaled=self.knows_size)

    def free_prices(self) -> Floats:
        """What the zero-budget score pays members: what each would be worth alone, in any ring."""
        return np.repeat(super().free_prices()[:, None], len(self._rings.edges), axis=1)


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
