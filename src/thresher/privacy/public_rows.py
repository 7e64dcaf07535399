"""The validation set seen as points: what the prior for a private table is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Array, Flags, Floats, Integers
from thresher.inputs.checked_inputs import Points, Validation
from thresher.neighbors.ball import Ball
from thresher.passes.walk import near_pairs
from thresher.privacy.entry_weights import EntryWeights
from thresher.threads import cut

SHARE_SHIFT = 1.0  # at kappa = 1, the spread of the share that one of two classes has
LABEL_SHIFT = 0.3  # and of the share of all points that are of it and have a wrong label
FLOOR = 2.0  # standard deviations
LEAST_ROWS = 8  # with fewer public rows there is no prior
PUBLIC_ROWS = 2000  # validation points, at most, that are seen as points
CHUNK_ROWS = 512  # public rows turned into floats at a time
MOST_ROWS = 600  # public rows that the covariance is taken from


def as_points(validation: Validation, rows: Integers) -> Points:
    """Some rows of a validation set that has features, as points."""
    assert validation.rows is not None  # noqa: S101 - by those who call
    return Points(validation.rows.some(rows), validation.codes[rows])


@dataclass(frozen=True)
class Public:
    """Validation points seen as points: which validation points each of these rows is near."""

    rows: Integers  # R of the M validation points
    codes: NDArray[np.int32]  # of all M
    near: Flags  # R x M, each row itself left out
    price_axes: ClassVar[int] = 2  # of the prices of members
    one: ClassVar[int] = 1  # whole numbers of a vector that stand for 1

    @property
    def entries(self) -> int:
        """How many numbers a vector has for each validation point: two, (same, other)."""
        return 2

    @classmethod
    def of(cls, validation: Validation, radius: float, least: int = LEAST_ROWS) -> Public | None:
        """All validation points as rows, or, if there are many, some of them at equal steps.

        Return None if distances are precomputed, or if the rows are too few to say anything.
        """
        if validation.rows is None or len(validation) < least:
            return None
        rows = np.arange(0, len(validation), -(-len(validation) // PUBLIC_ROWS))
        near = near_pairs(as_points(validation, rows), Ball.around(validation, radius, "all"))
        near[np.arange(len(rows)), rows] = False
        return cls(rows, validation.codes, near)

    @property
    def kinds(self) -> Array:
        """What kind of point each row is: its class."""
        return self.codes[self.rows]

    @cached_property
    def same(self) -> Flags:
        """Whether labels agree: R x M."""
        return self.codes[self.rows][:, None] == self.codes[None, :]

    def lengths(self, entries: EntryWeights) -> Floats:
        """The squared weighted length of each row's vector, which does not count the row itself."""
        return np.asarray(self.near @ entries.squares)

    def vectors(self, rows: slice) -> Floats:
        """The vectors (same, other) of some rows, 2M numbers each."""
        near, same = self.near[rows], self.same[rows]
        return np.concatenate([near & same, near & ~same], axis=1).astype(np.float64)

    def total(self, weights: Floats) -> Floats:
        """The weighted sum of all vectors; one sum for every row of weights."""
        total = np.zeros((*weights.shape[:-1], self.entries * self.near.shape[1]))
        for lo, hi in cut(0, len(self.near), CHUNK_ROWS):
            total += weights[..., lo:hi] @ self.vectors(slice(lo, hi))
        return total

    def grouped(self, size: int) -> Floats:
        """The vectors of made-up owners of `size` rows each, drawn at random and kept."""
        if size not in self._groups:
            rows = len(self.near)
            self._groups[size] = self.owners(size, np.ones(rows), np.random.default_rng(0))
        return self._groups[size]

    def owners(self, size: int, chance: Floats, random: np.random.Generator) -> Floats:
        """The vectors of new made-up owners, whose rows are drawn with these chances.

        No row is drawn twice if there are enough, because a row added to itself is longer than two
        different rows. Rows do not count themselves, hence the factor.
        """
        rows, part = len(chance), chance / chance.sum()
        twice = 2 * size > rows
        picked = (random.choice(rows, size, replace=twice, p=part) for _ in range(MOST_ROWS))
        each = np.array([np.bincount(p, minlength=rows) for p in picked], np.float64)
        return self.total(each) * (rows / (rows - 1))

    @cached_property
    def _groups(self) -> dict[int, Floats]:
        return {}

    def worth(self, prices: Floats) -> Floats:
        """What each row would be worth at member prices; leading axes may hold several lists."""
        flat = prices.reshape(*prices.shape[: prices.ndim - self.price_axes], -1)
        parts = [
            self.vectors(slice(lo, hi)) @ np.moveaxis(flat, -1, 0)
            for lo, hi in cut(0, len(self.near), CHUNK_ROWS)
        ]
        return np.moveaxis(np.concatenate(parts), 0, -1)

    def crowd(self, weights: Floats, members: Flags) -> Floats:
        """The total weight of these rows near each validation point."""
        return np.asarray(weights[members] @ self.near[members])

    def masses(self, tables: Floats) -> Floats:
        """The numbers of a table that count points: here all of them."""
        return tables

    def kept(self, clipped: Floats, whole: Floats) -> Floats:
        """The share of each number of a table that clipping leaves."""
        part, mass = self.masses(clipped), self.masses(whole)
        return np.divide(part, mass, out=np.ones_like(mass), where=mass > 0)

    def shifts(self, weights: Floats) -> Floats:
        """How the table moves if one class has more points, or more wrong labels.

        There are two rows for each class: the mean vector of its validation points, and the mean
        vector they would have under a random other label. If there are many classes, each share is
        small and moves by less.
        """
        classes = np.unique(self.kinds)
        rows, usual = [], 2 / max(len(classes), 2)
        for code in classes:
            members, carriers = self.kinds == code, self.codes == code
            near = self.crowd(weights, members) / int(members.sum())
            same = np.where(carriers, near, 0.0)
            wrong = np.where(carriers, 0.0, near / max(len(classes) - 1, 1))
            rows.append(usual * SHARE_SHIFT * np.array([same, near - same]).ravel())
            rows.append(usual * LABEL_SHIFT * np.array([wrong, near - wrong]).ravel())
        return np.array(rows)

    def shrunk(self, raw: Floats) -> Floats:
        """The mean vector, with masses and label shares drawn towards their averages."""
        half, rows = len(raw) // 2, len(self.near)
        same, mass = raw[:half], raw[:half] + raw[half:]
        chance = mass * (1 - mass) / (rows - 1)
        true = max(float(mass.var() - chance.mean()), 1e-12)
        weight = true / (true + chance + 1e-15)
        mass_shrunk = weight * mass + (1 - weight) * mass.mean()
        seen = mass * (rows - 1)
        share = float(same.sum() / max(mass.sum(), 1e-12))
        some = seen > 0
        strength = _strength(same[some] / mass[some], seen[some], share)
        shares = (same * (rows - 1) + strength * share) / (seen + strength)
        return np.concatenate([mass_shrunk * shares, mass_shrunk * (1 - shares)])


def _strength(shares: Floats, seen: Floats, share: float) -> float:
    """How many points the average share is worth, given how much the shares really differ."""
    if not len(shares):
        return 1.0
    chance = share * (1 - share)
    true = max(float(shares.var() - (chance / seen).mean()), 1e-4)
    return max(chance / true - 1, 0.5)


def total_deviations(draws: Floats) -> Floats:
    """The standard deviation of each total same + other over the drawn tables."""
    half = draws.shape[1] // 2
    return np.asarray((draws[:, :half] + draws[:, half:]).std(axis=0))


def priceable(table: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Turn an estimated table into counts (same, other) that can be priced.

    A total is raised to two of its standard deviations, because prices rise steeply towards zero
    points.
    """
    half = len(table) // 2
    total = table[:half] + table[half:]
    floored = np.maximum(np.maximum(total, FLOOR * deviation), 0.0)
    safe = np.maximum(total, np.maximum(0.5 * deviation, 1e-12))
    share = np.clip(table[:half] / safe, 0.0, 1.0)
    return share * floored, (1 - share) * floored
