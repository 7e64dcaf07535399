"""A private release of points with targets: what is public before the points are looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Array, Floats
from thresher.games.semivalues import semivalue_name
from thresher.games.targets import estimated_prices
from thresher.inputs.checked_inputs import Points
from thresher.price_list import PriceList
from thresher.privacy.accountants import Adjacency, Unit
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Change, Setting
from thresher.privacy.entry_weights import EntryWeights
from thresher.privacy.public_rows import Public
from thresher.privacy.target_contributions import (
    ENTRIES,
    ONE,
    OPPOSED,
    TargetContributions,
    basis,
    steps,
    sums,
)
from thresher.regression import REGRESSION
from thresher.sides.target_side import TargetSide

TWO = 2 * (1 + OPPOSED)
FLOOR, PULL = 4.0, 4.0  # standard deviations of a count; see benchmarks/privacy_regression.py
KINDS = 4  # of points, by their targets, whose shares may differ
SHARE_SHIFT = 0.2  # at kappa = 1, the spread of the share of a kind
TARGET_SHIFT = 0.1  # and of the share of it whose targets are wrong


@dataclass(frozen=True)
class TargetSetting(Setting):
    """The setting for targets within public bounds; the table has the sums of L(u)."""

    side: TargetSide
    one: ClassVar[int] = ONE
    opposed: ClassVar[float] = OPPOSED
    moved: ClassVar[dict[tuple[Unit, Change], dict[Adjacency, float]]] = {
        ("point", "point"): {"add-remove": 1, "replace-one": TWO},  # T13
        ("owner", "owner"): {"add-remove": 1, "replace-one": TWO},
        ("owner", "point"): {"add-remove": TWO, "replace-one": 4 * TWO},
        ("owner", "part"): {"add-remove": TWO, "replace-one": 4 * TWO},  # T17
    }

    @property
    def entries(self) -> int:
        """How many numbers the table has for each validation point."""
        return ENTRIES

    def record(self) -> dict[str, Any]:
        """What a release says about its targets."""
        bounds: Any = self.side.classes
        return {"task": REGRESSION, "bounds": list(bounds.bounds), "empty": self.side.empty}

    @property
    def _half(self) -> float:
        """Half of the range of targets, in steps of the grid of prices."""
        bounds: Any = self.side.classes
        low, high = bounds.bounds
        return float((high - low) / 2 / self.side.grid.step)

    @property
    def _width(self) -> float:
        """Half of the range of targets."""
        return self._half * self.side.grid.step

    def contributions(self, points: Points, units: Units) -> Contributions:
        """What units of points add to the table."""
        return TargetContributions(points, self.side, steps(points.codes / self._half), units)

    def public(self) -> Public | None:
        """The validation points seen as points."""
        plain = super().public()
        if plain is None:
            return None
        u = np.clip(self.validation.codes / self._half, -1.0, 1.0)
        return TargetPublic(plain.rows, plain.codes, plain.near, u, self._width)

    def estimated(self, table: Floats, draws: Floats, *, prior: bool) -> PriceList:
        """The prices of estimated sums; `draws` show how certain the sums are.

        A count is raised to `FLOOR` of its standard deviations. With a `prior`, means are computed
        as if `PULL` deviations more points were near, with the targets that the validation set
        suggests.
        """
        every = draws.reshape(len(draws), ENTRIES, -1)
        deviation = every.sum(axis=1).std(axis=0)
        count, first, second = sums(table.reshape(ENTRIES, -1))
        usual = self._usual if prior else None
        more = 0.5 * deviation if usual is None else PULL * deviation
        some = np.maximum(np.maximum(count, 0.0) + more, 1e-12)
        mean, square = (
            each / some if usual is None else (each + more * usual[place]) / some
            for place, each in enumerate((first, second))
        )
        mean = np.clip(mean, -1.0, 1.0)
        floored = np.maximum(count, FLOOR * deviation)
        return self._list(np.maximum(floored, 0.0), mean, np.clip(square, mean**2, 1.0))

    @cached_property
    def _usual(self) -> tuple[Floats, Floats] | None:
        """The mean and mean square of targets near each validation point, from public data."""
        public = self.public()
        if public is None:
            return None
        whole = public.total(np.ones(len(public.near))) / (len(public.near) - 1)
        count, first, second = sums(public.shrunk(whole).reshape(ENTRIES, -1))
        return first / np.maximum(count, 1e-12), second / np.maximum(count, 1e-12)

    def prices(self, table: Array | tuple[Floats, Floats]) -> PriceList:
        """The prices that follow from a table as it is."""
        count, first, second = sums(np.asarray(table))
        some = np.maximum(count, 1e-12)
        return self._list(count, first / some, second / some)

    def entry_prices(self, prices: PriceList) -> Floats:
        """What a member is paid for adding one to each number: a quadratic at u = -1, 0 and 1."""
        a, b, c, center = prices.member_prices
        places = (u * self._width - center for u in (-1, 0, 1))
        return np.concatenate([a + r * (b + r * c) for r in places])

    def gain_prices(self, prices: PriceList) -> Floats:
        """The most that each validation point pays for a near point, whatever its target is."""
        a, b, c, center = prices.member_prices
        bend = np.minimum(c, -1e-300)
        peak = np.clip(-b / (2 * bend), -self._width - center, self._width - center)
        ends = self.entry_prices(prices).reshape(ENTRIES, -1)
        most = np.maximum(ends.max(axis=0), a + peak * (b + peak * c))
        return np.tile(np.maximum(most, 0.0), ENTRIES)

    def free_prices(self) -> Floats:
        """What the zero-budget score pays members: what each would be worth alone."""
        return self.side.alone_prices()

    def _list(self, count: Floats, mean: Floats, square: Floats) -> PriceList:
        side, width = self.side, self._width
        about = side.targets / width, side.none / width, self.semivalue
        value = [width**2, width, 1.0]
        units = np.array([*value, *value, 1.0, width, 1.0, width])[:, None]
        table = estimated_prices(count, mean, square, *about) * units
        return replace(
            PriceList(side, semivalue_name(self.semivalue), table), scaled=self.knows_size
        )


@dataclass(frozen=True)
class TargetPublic(Public):
    """Which validation points each row is near, and targets, 0 in the middle of the bounds."""

    targets: Floats  # of all M, from -1 to 1
    width: float  # half of the range of targets
    one: ClassVar[int] = ONE

    @property
    def entries(self) -> int:
        """How many numbers a vector has for each validation point."""
        return ENTRIES

    @cached_property
    def adds(self) -> Floats:
        """L(u) of each row, in three columns."""
        return basis(steps(self.targets[self.rows])).T / ONE

    def lengths(self, entries: EntryWeights) -> Floats:
        """The squared weighted length of each row's vector, which does not count the row itself."""
        return super().lengths(entries) * (self.adds**2).sum(axis=1)

    @cached_property
    def kinds(self) -> Array:
        """What kind of point each row is: the quarter that its target belongs to."""
        u = self.targets[self.rows]
        return np.searchsorted(np.quantile(u, np.linspace(0, 1, KINDS + 1)[1:-1]), u)

    def vectors(self, rows: slice) -> Floats:
        """The vectors of some rows, 3M numbers each."""
        near = self.near[rows].astype(np.float64)
        return np.concatenate([near * adds[:, None] for adds in self.adds[rows].T], axis=1)

    def worth(self, prices: Floats) -> Floats:
        """What each row would be worth at member prices, which are quadratics around centers."""
        near, u = self.near.astype(np.float64), self.targets[self.rows] * self.width
        a, b, c, center = np.moveaxis(prices, -2, 0)
        around_0 = a - center * (b - center * c), b - 2 * center * c, c
        fixed, linear, bend = (part @ near.T for part in around_0)
        return np.asarray(fixed + u * (linear + u * bend))

    def masses(self, tables: Floats) -> Floats:
        """The number of points near each validation point, repeated for each of its numbers."""
        near = tables.reshape(*tables.shape[:-1], ENTRIES, -1).sum(axis=-2)
        return np.concatenate([near] * ENTRIES, axis=-1)

    def shifts(self, weights: Floats) -> Floats:
        """How the table moves if one kind has more points, or more wrong targets.

        There are two rows for each kind: the mean vector of its rows, and the mean vector that they
        would have with any row's target.
        """
        usual, rows = self.adds.mean(axis=0), []
        for kind in np.unique(self.kinds):
            mine = (self.kinds == kind) * weights / int((self.kinds == kind).sum())
            rows.append(SHARE_SHIFT * self.total(mine))
            rows.append(TARGET_SHIFT * np.outer(usual, mine @ self.near).ravel())
        return np.array(rows)

    def shrunk(self, raw: Floats) -> Floats:
        """The mean vector, with mass, mean target and spread drawn towards their averages.

        The validation point's own target counts like that of one more row near it.
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
    """Numbers drawn towards their average, the more of their variance is error."""
    average = float(np.average(found, weights=weights))
    true = max(float(((found - average) ** 2 - error).mean()), 1e-12)
    trust = true / (true + error + 1e-15)
    return np.asarray(trust * found + (1 - trust) * average)


def _vector(mass: Floats, mean: Floats, square: Floats) -> Floats:
    """The sums of L(u) over `mass` points with this mean and mean square of u."""
    low, high = (square - mean) / 2, (square + mean) / 2
    return np.concatenate([mass * low, mass * (1 - square), mass * high])
