"""The cells mechanism: a histogram of labels over public cells, with delta = 0.

A point is counted in the cell with the nearest center, by the pair rule: its cell depends on that
point and public data alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError, option
from thresher.inputs.checks import check_count
from thresher.price_list import PriceList
from thresher.privacy.accountants import Adjacency, Cost, Filter, Unit, pure_mu, pure_scale
from thresher.privacy.cell_counts import CellCounts, Drawn, lonely
from thresher.privacy.cell_map import CellMap
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import OWNER_SCALE, UNKNOWN_SIZE, Design, Setting
from thresher.privacy.noise import Noise

MOST_CELLS = 30
LONELY = "most validation points are near no other, so they do not show how far off prices are"
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
        """Why there is no error: owners of unknown size, lonely validation points; or ""."""
        if not self.setting.knows_size:
            return UNKNOWN_SIZE
        return LONELY if lonely(self.map.public.near) else ""

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
        return self.setting.prices(self._drawn(release).expected)

    def drawn_prices(self, release: Integers) -> list[PriceList]:
        """Prices at other counts that the histogram leaves likely."""
        halves = (np.split(table, 2) for table in self._drawn(release).tables)
        return [self.setting.prices((same, other)) for same, other in halves]

    def drawn_errors(self, release: Integers, ours: Floats, drawn: Floats) -> Floats:
        """The relative error for each draw, if its counts and prices are the true ones.

        Public rows stand for points, as many as the draw says. More points than rows may be near a
        validation point. Their number is that of the draw, too, and they are taken to be near no
        other.
        """
        public, found = self.map.public, []
        known = self._drawn(release)
        near, same = public.near, public.same
        for table, weights, theirs in zip(known.tables, known.weights, drawn, strict=True):
            by_rows = np.concatenate([weights @ (near & same), weights @ (near & ~same)])
            more = np.maximum(table - by_rows, 0.0)
            missed, true = (
                float(weights @ public.worth(prices) ** 2 + more @ prices.ravel() ** 2)
                for prices in (theirs - ours, theirs)
            )
            found.append(math.sqrt(missed / max(true, 1e-300)))
        return np.array(found)

    def misfit(self, release: Integers) -> float:
        """How much more points and public rows differ over the cells than chance explains."""
        return self.map.misfit(release * self._points_a_vote, self._noise_of_bins**2)

    def _drawn(self, release: Integers) -> Drawn:
        """Counts that the histogram leaves likely."""
        key = release.tobytes()
        if key not in self._known:
            self._known.clear()  # several methods ask for the same one
            histogram = np.multiply(release, self._points_a_vote, dtype=np.float64)
            units = float(histogram.sum()) / (self.setting.points_per_owner or 1)
            self._known[key] = self._counts.drawn(histogram, self._noise_of_bins, units)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[bytes, Drawn]:
        return {}

    @cached_property
    def _counts(self) -> CellCounts:
        return CellCounts(self.map)

    @property
    def _noise_of_bins(self) -> float:
        """The standard deviation of the noise in a bin, in points."""
        return _deviation(self.laplace_scale) * self._points_a_vote

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
