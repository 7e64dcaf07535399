"""The cells mechanism: a histogram of labels over public cells, with delta = 0.

A point is counted in the cell with the nearest center, by the pair rule: its cell depends on that
point and public data alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError, option
from thresher.inputs.checks import check_count
from thresher.price_list import PriceList
from thresher.privacy.accountants import Adjacency, Cost, Filter, Unit, pure_mu, pure_scale
from thresher.privacy.cell_map import CellMap, nonnegative
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import DRAWS, OWNER_SCALE, UNKNOWN_SIZE, Design, Setting
from thresher.privacy.noise import Noise
from thresher.privacy.public_rows import priceable, total_deviations

MOST_CELLS = 30
ROWS_A_CELL = 5  # public rows that a cell should have on average


@dataclass(frozen=True)
class Cells:
    """A histogram of labels over public cells with discrete Laplace noise: delta = 0.

    Parameters
    ----------
    cells
        How many cells there are. The default is as many as the validation set can tell apart, at
        most 30.

    Examples
    --------
    >>> import thresher as th
    >>> from thresher.privacy import Cells
    >>> release = th.dp_tknn_shapley(
    ...     [[1.0, 0.1], [0.1, 1.0]], ["yes", "no"], [[1.0, 0.0], [0.0, 1.0]], ["yes", "no"],
    ...     epsilon=1, delta=0, mechanism=Cells(cells=2), seed=0,
    ... )
    >>> release.record["mechanism"]
    'cells'
    """

    cells: int | None = None

    def __post_init__(self) -> None:
        if self.cells is not None:
            object.__setattr__(self, "cells", check_count("cells", self.cells))

    def design(self, setting: Setting) -> CellsDesign:
        """The mechanism fitted to a setting."""
        if setting.validation.rows is None:
            cells = option("mechanism", "cells")
            raise InputError(f"{cells} needs features, not metric='precomputed'")
        count = self.cells or max(1, min(MOST_CELLS, len(setting.validation) // ROWS_A_CELL))
        return CellsDesign(setting, CellMap.of(setting.validation, setting.side.radius, count))


@dataclass(frozen=True)
class CellsDesign(Design):
    """The cells mechanism as planned: each unit has one vote, which its points share."""

    setting: Setting
    map: CellMap

    @property
    def votes(self) -> int:
        """How many parts a vote has, so that an owner's points can share it in whole numbers."""
        return 1 if self.setting.unit == "point" else OWNER_SCALE

    @property
    def laplace_scale(self) -> float:
        """The scale of the noise: the votes that one unit moves, over epsilon, rounded up."""
        moved = self.votes * (1 if self.setting.adjacency == "add-remove" else 2)
        return pure_scale(moved, self.setting.budget.epsilon)

    @property
    def untold(self) -> str:
        """Why there is no error: one vote hides how many points its owner has; or ""."""
        return "" if self.setting.knows_size else UNKNOWN_SIZE

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says about the mechanism."""
        return {
            "mechanism": "cells",
            "noise": "discrete Laplace",
            "sigma": _deviation(self.laplace_scale) / self.votes,
            "bound": 1,
            "scale": self.votes,
            "scheme": "no sampling",
            "cells": len(self.map.centers),
        }

    def cost(self, adjacency: Adjacency, unit: Unit, filter: Filter) -> Cost:  # noqa: A002
        """The epsilon of the release, or its mu in a ledger with the Gaussian filter."""
        if filter == "gaussian":
            return Cost(mu_squared=pure_mu(self.epsilon(adjacency, unit)) ** 2)
        return Cost(epsilon=self.epsilon(adjacency, unit))

    def epsilon(self, adjacency: Adjacency, unit: Unit) -> float:  # noqa: ARG002
        """The epsilon under an adjacency: replacing a unit moves twice the votes of adding one.

        One point of an owner moves no more votes than the owner does (T10).
        """
        epsilon, ours = self.setting.budget.epsilon, self.setting.adjacency
        if adjacency == ours:
            return epsilon
        return 2 * epsilon if ours == "add-remove" else epsilon / 2

    def noise(self, source: Noise) -> Integers:
        """One number of discrete Laplace noise for each bin."""
        noise = source.laplace(self.laplace_scale, math.prod(self._shape))
        return noise.reshape(self._shape)

    def footprint(self, contributions: Contributions) -> Integers:
        """The histogram of votes."""
        points, units = contributions.points, contributions.units
        votes = units.each(self.votes // np.maximum(np.diff(units.starts), 1))
        histogram = np.zeros(self._shape, np.int64)
        np.add.at(histogram, (self.map.cells_of(points.rows), points.codes), votes)
        return histogram

    def prices(self, release: Integers) -> PriceList:
        """Prices at the counts that the histogram implies."""
        table = np.concatenate(self.map.counts(nonnegative(release * self._points_a_vote)))
        return self.setting.prices(priceable(table, total_deviations(self._draws(release))))

    def drawn_prices(self, release: Integers) -> list[PriceList]:
        """Prices at other counts that the histogram leaves likely."""
        draws = self._draws(release)
        deviation = total_deviations(draws)
        return [self.setting.prices(priceable(draw, deviation)) for draw in draws]

    def row_weights(self, release: Integers) -> Floats:
        """How many points each public row stands for: class shares of the points may differ."""
        public = self.map.public
        codes = public.codes[public.rows]
        points = nonnegative(release * self._points_a_vote).sum(axis=0)
        rows = np.bincount(codes, minlength=len(points))
        return np.asarray((points / np.maximum(rows, 1))[codes])

    def misfit(self, release: Integers) -> float:
        """How much more points and public rows differ over the cells than chance explains."""
        return self.map.misfit(release * self._points_a_vote, 2 * self._spread**2)

    def _draws(self, release: Integers) -> Floats:
        """Random tables of counts that are likely given the histogram, one per row.

        Each draw adds noise to the estimated histogram and estimates it again. The error of that
        estimate shows how far the first one may be from the true histogram, including its bias.
        """
        random, found = np.random.default_rng(0), nonnegative(release * self._points_a_vote)
        points, drawn = max(float(found.sum()), 1.0), []
        for _ in range(DRAWS):
            again = nonnegative(found + random.laplace(0, self._spread, found.shape))
            drawn.append(np.concatenate(self.map.drawn_counts(2 * found - again, points, random)))
        return np.array(drawn)

    @property
    def _spread(self) -> float:
        return self.laplace_scale * self._points_a_vote

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.map.centers), len(self.setting.validation.classes)

    @property
    def _points_a_vote(self) -> float:
        return (self.setting.points_per_owner or 1) / self.votes


def _deviation(scale: float) -> float:
    """The standard deviation of the discrete Laplace distribution: sqrt(2 p) / (1 - p)."""
    p = math.exp(-1 / scale)
    return math.sqrt(2 * p) / -math.expm1(-1 / scale)
