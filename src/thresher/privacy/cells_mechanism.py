"""The cells mechanism: a histogram of labels over public cells, with delta = 0.

A point is counted in the cell whose center is nearest, by the pair rule: a function of that point
and public data alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.checks import check_count
from thresher.errors import InputError, option
from thresher.inputs import Validation
from thresher.metrics import CHUNK, Rows, measure
from thresher.neighbors.tiles import pair_table
from thresher.price_list import PriceList
from thresher.privacy.accountants import Adjacency, Cost, Filter, pure_mu
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import DRAWS, OWNER_SCALE, UNKNOWN_SIZE, Design, Setting, Unit
from thresher.privacy.noise import Noise
from thresher.privacy.public_rows import CHUNK_ROWS, Public, priceable, total_deviations
from thresher.threads import cut

MOST_CELLS = 30
LEAST_SHARE = 0.25  # of the positive bins that are taken for points, however many are negative
OVERALL = 2.0  # rows of a class that the shares of its whole cell are worth
DOUBTED = 0.5  # and in draws, which show how far shares may be off
SHAPE = 0.5  # of the weights of rows in draws: more spread than a sample has, since cells differ
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
        return CellsDesign(setting, CellMap.of(setting.validation, setting.radius, count))


@dataclass(frozen=True)
class CellsDesign(Design):
    """Each unit has one vote in all, in one bin or shared among its points' bins."""

    setting: Setting
    map: CellMap

    @property
    def votes(self) -> int:
        """Parts of one that an owner's points share."""
        return 1 if self.setting.unit == "point" else OWNER_SCALE

    @property
    def laplace_scale(self) -> float:
        """Of the noise: the votes that one unit moves, over epsilon."""
        moved = self.votes * (1 if self.setting.adjacency == "add-remove" else 2)
        return moved / self.setting.budget.epsilon

    @property
    def untold(self) -> str:
        """One vote says nothing of how many points its owner has, unless that is public."""
        return "" if self.setting.knows_size else UNKNOWN_SIZE

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says of it."""
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
        """Epsilon alone, or the mu of that."""
        if filter == "gaussian":
            return Cost(mu_squared=pure_mu(self.epsilon(adjacency, unit)) ** 2)
        return Cost(epsilon=self.epsilon(adjacency, unit))

    def epsilon(self, adjacency: Adjacency, unit: Unit) -> float:  # noqa: ARG002
        """What was asked for; replacing moves twice as many votes as adding.

        One point of an owner moves no more votes than the owner has (T10).
        """
        epsilon, ours = self.setting.budget.epsilon, self.setting.adjacency
        if adjacency == ours:
            return epsilon
        return 2 * epsilon if ours == "add-remove" else epsilon / 2

    def noise(self, source: Noise) -> Integers:
        """One discrete Laplace a bin."""
        noise = source.laplace(self.laplace_scale, math.prod(self._shape))
        return noise.reshape(self._shape)

    def footprint(self, contributions: Contributions) -> Integers:
        """The histogram of votes."""
        points, units = contributions.points, contributions.units
        sizes = np.diff(units.starts)
        votes = np.empty(len(points), np.int64)
        votes[units.order] = np.repeat(self.votes // np.maximum(sizes, 1), sizes)
        histogram = np.zeros(self._shape, np.int64)
        np.add.at(histogram, (self.map.cells_of(points.rows), points.codes), votes)
        return histogram

    def prices(self, release: Integers) -> PriceList:
        """Prices at the counts that the histogram implies."""
        table = np.concatenate(self.map.counts(release * self._points_a_vote))
        return self.setting.prices(priceable(table, total_deviations(self._draws(release))))

    def drawn_prices(self, release: Integers) -> list[PriceList]:
        """Prices at other counts that the histogram leaves likely."""
        draws = self._draws(release)
        deviation = total_deviations(draws)
        return [self.setting.prices(priceable(draw, deviation)) for draw in draws]

    def _draws(self, release: Integers) -> Floats:
        """Tables of counts that the histogram leaves likely, one a row."""
        histogram, random = release * self._points_a_vote, np.random.default_rng(0)
        spread = self.laplace_scale * self._points_a_vote
        noisy = [histogram - random.laplace(0, spread, histogram.shape) for _ in range(DRAWS)]
        return np.array([np.concatenate(self.map.drawn_counts(h, random)) for h in noisy])

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


@dataclass(frozen=True)
class CellMap:
    """Centers from the validation set, and which validation points lie in which cell."""

    centers: Rows
    validation: Validation
    public: Public
    member: Floats  # one row per public row: a one in the column of its cell

    @classmethod
    def of(cls, validation: Validation, radius: float, cells: int) -> CellMap:
        """Cells by k-means on the validation rows (unit vectors for the cosine metric)."""
        from sklearn.cluster import KMeans

        public = Public.of(validation, radius, least=1)
        assert validation.rows is not None  # noqa: S101 - the mechanism checked it
        assert public is not None  # noqa: S101 - so it is
        cosine = validation.metric == "cosine"
        rows: Any = validation.rows.as_float64(slice(None))
        if cosine:
            rows = rows / np.sqrt(validation.rows.squares)[:, None]
        distinct = len(np.unique(rows, axis=0))
        means = KMeans(min(cells, distinct), n_init=4, random_state=0).fit(rows).cluster_centers_
        means = means[(means**2).sum(axis=1) > 1e-20] if cosine else means
        centers = measure("centers", means if len(means) else rows[:1], cosine=cosine)
        member = np.eye(len(centers))[_nearest(validation.rows, centers, cosine=cosine)]
        return cls(centers, validation, public, member[public.rows])

    def cells_of(self, rows: Any) -> Integers:
        """The cell of each row, a function of that row alone; the first of equally near ones."""
        return _nearest(rows, self.centers, cosine=self.validation.metric == "cosine")

    def counts(self, histogram: Array) -> tuple[Floats, Floats]:
        """The counts (same, other) that points spread like the validation set would give."""
        return self._counts(histogram, np.ones(len(self.member)), OVERALL)

    def drawn_counts(self, histogram: Array, random: np.random.Generator) -> tuple[Floats, Floats]:
        """The same with shares drawn from what the validation set leaves likely.

        Public rows are weighed at random (Rubin's bootstrap), the same for all validation points,
        so that shares that rest on the same rows err together.
        """
        return self._counts(histogram, random.standard_gamma(SHAPE, len(self.member)), DOUBTED)

    def _counts(self, histogram: Array, chance: Floats, strength: float) -> tuple[Floats, Floats]:
        """With public rows weighed by chance, and shares of each class in a cell of its own.

        In a cell classes need not lie alike; where there are few rows of a class, all rows of the
        cell tell its share.
        """
        counted, codes = nonnegative(histogram), self.public.codes[self.public.rows]
        rows = self.member * chance[:, None]
        overall = self._shares(rows, 0.0, 1e-9)
        by_class = np.empty((len(self.validation), counted.shape[1]))
        for code in range(counted.shape[1]):
            shares = self._shares(rows * (codes == code)[:, None], overall, strength)
            by_class[:, code] = shares @ counted[:, code]
        return self._split(by_class)

    def _shares(self, rows: Floats, usual: Floats | float, strength: float) -> Floats:
        """Which share of the rows of each cell is near each validation point, itself left out."""
        near = np.zeros((len(self.validation), rows.shape[1]))
        for lo, hi in cut(0, len(rows), CHUNK_ROWS):
            near += self.public.near[lo:hi].T @ rows[lo:hi]
        size = np.tile(rows.sum(axis=0), (len(near), 1))
        size[self.public.rows] -= rows
        return (near + strength * usual) / (np.maximum(size, 0.0) + strength)

    def _split(self, by_class: Floats) -> tuple[Floats, Floats]:
        same = by_class[np.arange(len(by_class)), self.validation.codes]
        return same, np.maximum(by_class.sum(axis=1) - same, 0.0)


def nonnegative(histogram: Array) -> Floats:
    """The nearest histogram without negative bins and of the same total, if that is one.

    To cut off negative bins alone would add points that are not there: noise lifts empty bins.

    Examples
    --------
    >>> nonnegative(np.array([[5.0, 1.0], [-2.0, 0.0]])).tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    positive = np.maximum(histogram, 0.0)
    total = max(float(histogram.sum()), LEAST_SHARE * float(positive.sum()))
    falling = np.sort(positive.ravel())[::-1]
    cuts = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    return np.maximum(positive - max(0.0, float(cuts.max())), 0.0)


def _nearest(rows: Rows, centers: Rows, *, cosine: bool) -> Integers:
    cells = np.zeros(len(rows), np.int64)
    for lo, hi in cut(0, len(rows), max(1, CHUNK // rows.width)):
        cells[lo:hi] = pair_table(rows.some(slice(lo, hi)), centers, cosine=cosine).argmin(axis=1)
    return cells
