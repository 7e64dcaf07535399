"""Public cells, and the counts that a histogram over them implies for the validation points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.inputs.checked_inputs import Validation
from thresher.metrics import CHUNK, Rows, measure
from thresher.neighbors.tiles import pair_table
from thresher.privacy.public_rows import Public
from thresher.threads import cut

LEAST_SHARE = 0.25  # of the positive bins that are taken for points, however many are negative
OVERALL = 1.0  # rows of a class that the shares of its whole cell are worth
DOUBTED = 0.5  # and in draws, which show how far shares may be off
SPREAD = 2.0  # variance of the weights of rows in draws: more than a sample has, since cells differ
SURE = 3.0  # standard deviations of noise that a misfit must exceed
MOST_WRONG = 0.5  # of all labels: beyond it the histogram and the public rows do not fit


@dataclass(frozen=True)
class CellMap:
    """Centers from the validation set, and which validation points lie in which cell."""

    centers: Rows
    validation: Validation
    public: Public
    member: Floats  # one row a public row: a one in the column of its cell

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
        """The nearest cell of each row, from that row alone; the first of equally near ones."""
        return _nearest(rows, self.centers, cosine=self.validation.metric == "cosine")

    def counts(self, counted: Floats) -> tuple[Floats, Floats]:
        """The counts (same, other) that points spread like the validation set would give."""
        return self._counts(counted, np.ones(len(self.member)), OVERALL)

    def drawn_counts(
        self, counted: Floats, points: float, random: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """The same with shares drawn from what the validation set leaves likely.

        Public rows get random weights (Rubin's bootstrap), the same for all validation points, so
        that shares that rest on the same rows err together. A small number of points differs from
        the shares that many of them would have, just as a small number of rows does.
        """
        rows = len(self.member)
        shape = 1 / (SPREAD * (1 + rows / points))
        return self._counts(counted, random.standard_gamma(shape, rows) / shape, DOUBTED)

    def misfit(self, histogram: Array, variance: float) -> float:
        """How much more points and public rows differ over the cells than chance explains.

        Class shares may differ without counting here. `variance` is the variance of the noise in a
        bin. Differences that noise alone could cause are not counted.
        """
        labeled = self.member.T @ self._one_hot(histogram.shape[1])
        cells, rows, totals = len(labeled), labeled.sum(axis=0), histogram.sum(axis=0)
        q, points = labeled / np.maximum(rows, 1.0), np.maximum(totals, 0.0)
        missed = ((histogram - totals * q).sum(axis=1) ** 2).sum()
        noise = variance * (1 - 2 * q + cells * q**2).sum()
        noise *= 1 + SURE * np.sqrt(2 / cells)
        chance = (points * q * (1 - q) * (1 + points / np.maximum(rows, 1.0))).sum()
        return float(max(missed - noise, 0.0) / max(chance, 1e-9))

    def _one_hot(self, classes: int) -> Floats:
        """One row for each public row, with a one in the column of its class."""
        return np.eye(classes)[self.public.codes[self.public.rows]]

    def _counts(self, counted: Floats, chance: Floats, strength: float) -> tuple[Floats, Floats]:
        """The counts under random weights of the public rows and given class shares in each cell.

        Within a cell, each class may lie elsewhere. If a class has few rows there, its share is
        estimated from all rows of the cell. Points with a wrong label lie where other classes do.
        """
        rows, one_hot = self.member * chance[:, None], self._one_hot(counted.shape[1])
        wrong = wrong_shares(np.maximum(counted, 0.0), rows, one_hot)
        each = [self._near(rows, np.flatnonzero(labeled)) for labeled in one_hot.T]
        whole = [sum(parts) for parts in zip(*each, strict=True)]
        overall = whole[0] / (whole[1] + 1e-9)
        alike = self._affinity(each, overall)
        by_class = np.empty((len(self.validation), counted.shape[1]))
        for code, (near, size) in enumerate(each):
            others, beside = whole[0] - near, whole[1] - size
            usual = overall * np.where(self.validation.codes == code, alike[0], alike[1])[:, None]
            right = (near + strength * usual) / (size + strength)
            astray = (others + strength * overall) / (np.maximum(beside, 0.0) + strength)
            by_class[:, code] = (right + wrong[:, code] * (astray - right)) @ counted[:, code]
        return self._split(by_class)

    def _affinity(
        self, each: Sequence[tuple[Floats, Floats]], overall: Floats
    ) -> tuple[float, float]:
        """How much more often rows of a cell are near a validation point if it has their own class.

        The second number is for points of other classes. Both are multiples of the share that is
        near among all rows of the cell.
        """
        sums = np.zeros((2, 2))
        for code, (near, size) in enumerate(each):
            own = self.validation.codes == code
            for kind, which in enumerate((own, ~own)):
                sums[kind] += near[which].sum(), (overall * size)[which].sum()
        same, other = sums[:, 0] / np.maximum(sums[:, 1], 1e-9)
        return float(same), float(other)

    def _near(self, rows: Floats, some: Integers) -> tuple[Floats, Floats]:
        """How many of `some` rows of each cell are near each validation point, and how many exist.

        A validation point does not count as near itself.
        """
        near = self._near_each[some].T @ rows[some]
        size = np.tile(rows[some].sum(axis=0), (len(near), 1))
        size[self.public.rows[some]] -= rows[some]
        return near, np.maximum(size, 0.0)

    @cached_property
    def _near_each(self) -> Floats:
        return self.public.near.astype(np.float64)

    def _split(self, by_class: Floats) -> tuple[Floats, Floats]:
        same = by_class[np.arange(len(by_class)), self.validation.codes]
        return np.maximum(same, 0.0), np.maximum(by_class.sum(axis=1) - same, 0.0)


def nonnegative(histogram: Array) -> Floats:
    """The nearest histogram that has no negative bins and, if possible, the same total.

    Just setting negative bins to 0 would add points that are not there, since noise also lifts
    empty bins.

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


def wrong_shares(counted: Floats, rows: Floats, one_hot: Floats) -> Floats:
    """The share of wrong labels among the points of each class in each cell.

    A label that is wrong, in a share f of all cases, is any other one with equal chances. So a cell
    with class shares q shows the shares q + f ((1 - q) / (C - 1) - q) in the histogram, and a
    regression over all bins solves this for f. Shares q that rest on few rows err, which looks like
    wrong labels. That part is subtracted, and an f within its own error is drawn towards 0.
    """
    classes = counted.shape[1]
    others = max(classes - 1, 1)
    ratio = classes / others
    sizes, squares = rows.sum(axis=0)[:, None], (rows**2).sum(axis=0)[:, None]
    labeled, n = rows.T @ one_hot, counted.sum(axis=1, keepdims=True)
    q = labeled / np.maximum(sizes, 1e-9)
    noise = q * (1 - q) / np.maximum(sizes**2 / np.maximum(squares, 1e-9) - 1, 1.0)
    pull = n * ((1 - q) / others - q)
    weight = float((pull**2 - (n * ratio) ** 2 * noise).sum())
    if weight <= 0:
        return np.zeros_like(counted)
    raw = float((pull * (counted - n * q) - n**2 * ratio * noise).sum()) / weight
    f = min(max(raw, 0.0), MOST_WRONG)
    variance = float(((pull * (counted - n * q - f * pull)) ** 2).sum()) / weight**2
    f *= f**2 / (f**2 + 2 * variance + 1e-12)
    q = (labeled + 0.5) / (sizes + 0.5 * classes)
    astray = (1 - q) * f / others
    return np.asarray(astray / (q * (1 - f) + astray))


def _nearest(rows: Rows, centers: Rows, *, cosine: bool) -> Integers:
    cells = np.zeros(len(rows), np.int64)
    for lo, hi in cut(0, len(rows), max(1, CHUNK // rows.width)):
        cells[lo:hi] = pair_table(rows.some(slice(lo, hi)), centers, cosine=cosine).argmin(axis=1)
    return cells
