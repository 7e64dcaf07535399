"""Validation points with targets, seen as points: what the prior for a private table is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from thresher.array_types import Array, Floats
from thresher.privacy.entry_weights import EntryWeights
from thresher.privacy.public_rows import Public
from thresher.privacy.target_contributions import ENTRIES, ONE, basis, steps, sums

KINDS = 4  # of points, by their targets, whose shares may differ
SHARE_SHIFT = 0.2  # at kappa = 1, the spread of the share of a kind
TARGET_SHIFT = 0.1  # and of the share of it whose targets are wrong


@dataclass(frozen=True)
class TargetPublic(Public):
    """Which validation points each row is near, and the targets; 0 is the middle of the bounds."""

    targets: Floats  # of all M, from -1 to 1
    to_steps: float  # of the grid by which prices are paid
    one: ClassVar[int] = ONE

    @property
    def entries(self) -> int:
        """Numbers of a vector for each validation point."""
        return ENTRIES

    @cached_property
    def adds(self) -> Floats:
        """L(u) of the rows: three columns."""
        return basis(steps(self.targets[self.rows])).T / ONE

    def lengths(self, entries: EntryWeights) -> Floats:
        """The squared weighted length of each row's vector, itself left out."""
        return super().lengths(entries) * (self.adds**2).sum(axis=1)

    @cached_property
    def kinds(self) -> Array:
        """What kind of point each row is: to which quarter its target belongs."""
        u = self.targets[self.rows]
        return np.searchsorted(np.quantile(u, np.linspace(0, 1, KINDS + 1)[1:-1]), u)

    def vectors(self, rows: slice) -> Floats:
        """The vectors of some rows, 3M numbers each."""
        near = self.near[rows].astype(np.float64)
        return np.concatenate([near * adds[:, None] for adds in self.adds[rows].T], axis=1)

    def worth(self, prices: Floats) -> Floats:
        """What each row would be worth at prices of members: quadratics in grid steps."""
        near, u = self.near.astype(np.float64), self.targets[self.rows] * self.to_steps
        a, b, c = (part @ near.T for part in np.moveaxis(prices, -2, 0))
        return np.asarray(a + u * (b + u * c))

    def masses(self, tables: Floats) -> Floats:
        """How many points are near each validation point, in place of each of its numbers."""
        near = tables.reshape(*tables.shape[:-1], ENTRIES, -1).sum(axis=-2)
        return np.concatenate([near] * ENTRIES, axis=-1)

    def shifts(self, weights: Floats) -> Floats:
        """More points with targets of one kind, or more of them with a target that is wrong.

        Two rows a kind: the mean vector of its rows, and that with the target of anybody.
        """
        usual, rows = self.adds.mean(axis=0), []
        for kind in np.unique(self.kinds):
            mine = (self.kinds == kind) * weights / int((self.kinds == kind).sum())
            rows.append(SHARE_SHIFT * self.total(mine))
            rows.append(TARGET_SHIFT * np.outer(usual, mine @ self.near).ravel())
        return np.array(rows)

    def shrunk(self, raw: Floats) -> Floats:
        """The mean vector, with mass, mean target and spread drawn towards their averages.

        The validation point itself tells of the targets around it, as each row near it does.
        """
        rows = len(self.near)
        mass, first, second = sums(raw.reshape(ENTRIES, -1))
        own = self.targets / (rows - 1)
        some = mass + 1 / (rows - 1)
        mean, seen = (first + own) / some, some * (rows - 1)
        spread = np.maximum((second + self.targets * own) / some - mean**2, 0.0)
        within = float(np.average(spread, weights=seen))
        mean = _drawn(mean, within / seen, seen)
        mass = _drawn(mass, mass * (1 - mass) / (rows - 1), np.ones_like(mass))
        square = np.minimum(mean**2 + (seen * spread + within) / (seen + 1), 1.0)
        return _vector(mass, mean, square)


def _drawn(found: Floats, error: Floats, weights: Floats) -> Floats:
    """Numbers drawn towards their average, by how much of their variance is error."""
    average = float(np.average(found, weights=weights))
    true = max(float(((found - average) ** 2 - error).mean()), 1e-12)
    trust = true / (true + error + 1e-15)
    return np.asarray(trust * found + (1 - trust) * average)


def _vector(mass: Floats, mean: Floats, square: Floats) -> Floats:
    """The sums of L(u) of so many points, with this mean and mean square of u."""
    low, high = (square - mean) / 2, (square + mean) / 2
    return np.concatenate([mass * low, mass * (1 - square), mass * high])
