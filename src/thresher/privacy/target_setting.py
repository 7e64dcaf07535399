"""A private release where points have targets: all that is public before they are looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Floats
from thresher.games.semivalues import semivalue_name
from thresher.games.targets import estimated_changes, estimated_quadratics
from thresher.inputs.checked_inputs import Points
from thresher.price_list import PriceList
from thresher.privacy.accountants import Adjacency
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Setting, Unit
from thresher.privacy.lagrange import ENTRIES, ONE, OPPOSED, steps, sums
from thresher.privacy.public_rows import Public
from thresher.privacy.target_contributions import TargetContributions
from thresher.privacy.target_public import TargetPublic
from thresher.regression import REGRESSION
from thresher.sides.target_side import TargetSide

TWO = 2 * (1 + OPPOSED)
FLOOR, PULL = 4.0, 4.0  # standard deviations of a count; see benchmarks/privacy_regression.py


@dataclass(frozen=True)
class TargetSetting(Setting):
    """Points have targets within public bounds; the table has the sums of `lagrange`."""

    targets: TargetSide | None = None
    one: ClassVar[int] = ONE
    opposed: ClassVar[float] = OPPOSED
    moved: ClassVar[dict[tuple[Unit, Unit], dict[Adjacency, float]]] = {
        ("point", "point"): {"add-remove": 1, "replace-one": TWO},  # T13
        ("owner", "owner"): {"add-remove": 1, "replace-one": TWO},
        ("owner", "point"): {"add-remove": TWO, "replace-one": 4 * TWO},
    }

    @property
    def side(self) -> TargetSide:
        """Validation set, radius, bounds and `empty`."""
        assert self.targets is not None  # noqa: S101 - `of` has given it
        return self.targets

    @property
    def entries(self) -> int:
        """Numbers that a validation point has in the table."""
        return ENTRIES

    def record(self) -> dict[str, Any]:
        """What a release says of its targets."""
        bounds: Any = self.side.classes
        return {"task": REGRESSION, "bounds": list(bounds.bounds), "empty": self.side.empty}

    @property
    def _half(self) -> float:
        """Half of the range of targets, in steps of the grid of prices."""
        bounds: Any = self.side.classes
        low, high = bounds.bounds
        return float((high - low) / 2 / self.side.grid.step)

    def contributions(self, points: Points, units: Units) -> Contributions:
        """What units of points add to the table."""
        return TargetContributions(points, self.side, steps(points.codes / self._half), units)

    def public(self) -> Public | None:
        """The validation points seen as points."""
        plain = super().public()
        if plain is None:
            return None
        u = np.clip(self.validation.codes / self._half, -1.0, 1.0)
        return TargetPublic(plain.rows, plain.codes, plain.near, u, self._half)

    def estimated(self, table: Floats, draws: Floats, *, prior: bool) -> PriceList:
        """The prices of estimated sums, of which `draws` tell how sure they are.

        A count is at least `FLOOR` of its standard deviations. With a `prior`, means are those with
        as many more points as `PULL` deviations, whose targets are what the validation set tells.
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
        """The mean and the mean square of targets near each validation point, by public data."""
        public = self.public()
        if public is None:
            return None
        whole = public.total(np.ones(len(public.near))) / (len(public.near) - 1)
        count, first, second = sums(public.shrunk(whole).reshape(ENTRIES, -1))
        return first / np.maximum(count, 1e-12), second / np.maximum(count, 1e-12)

    def table_prices(self, table: Floats) -> PriceList:
        """The prices that follow from a table as it is."""
        count, first, second = sums(table)
        some = np.maximum(count, 1e-12)
        return self._list(count, first / some, second / some)

    def entry_prices(self, prices: PriceList) -> Floats:
        """What a member is paid for each number that it adds: a quadratic at u = -1, 0 and 1."""
        a, b, c = prices.member_prices
        return np.concatenate([a + u * self._half * (b + u * self._half * c) for u in (-1, 0, 1)])

    def gain_prices(self, prices: PriceList) -> Floats:
        """The most that each validation point pays for a near point, whatever its target is."""
        a, b, c = prices.member_prices
        bend = np.minimum(c, -1e-300)
        peak = np.clip(-b / (2 * bend), -self._half, self._half)
        ends = self.entry_prices(prices).reshape(ENTRIES, -1)
        most = np.maximum(ends.max(axis=0), a + peak * (b + peak * c))
        return np.tile(np.maximum(most, 0.0), ENTRIES)

    def free_prices(self) -> Floats:
        """What the zero-budget score pays members: what each would be worth alone."""
        return self.side.alone_prices()

    def _list(self, count: Floats, mean: Floats, square: Floats) -> PriceList:
        side, half = self.side, self._half
        judges, empty = self.validation.codes / half, side.empty_steps / half
        both = [
            estimated_quadratics(
                count, mean, square, judges, empty, self.semivalue, newcomer=newcomer
            )
            for newcomer in (False, True)
        ]
        units = np.array([[1.0, half, half**2]] * 2 + [[half**2, half, half**2]])[..., None]
        moved = estimated_changes(count, mean, judges, self.semivalue)
        table = np.array([*both, moved]) * (half * side.grid.step) ** 2 / units
        prices = PriceList(side, semivalue_name(self.semivalue), table)
        return replace(prices, scaled=self.knows_size)
