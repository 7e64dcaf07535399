"""Public cells, and what a histogram over them says about wrong labels and other differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.inputs.checked_inputs import Validation
from thresher.metrics import CHUNK, Rows, measure
from thresher.neighbors.tiles import pair_table
from thresher.privacy.public_rows import Public
from thresher.threads import cut

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

    def misfit(self, histogram: Array, variance: float) -> float:
        """How much more points and public rows differ over the cells than chance explains.

        Class shares may differ without counting here. `variance` is the variance of the noise in a
        bin. Differences that noise alone could cause are not counted.
        """
        labeled = self.member.T @ self.one_hot(histogram.shape[1])
        cells, rows, totals = len(labeled), labeled.sum(axis=0), histogram.sum(axis=0)
        q, points = labeled / np.maximum(rows, 1.0), np.maximum(totals, 0.0)
        missed = ((histogram - totals * q).sum(axis=1) ** 2).sum()
        noise = variance * (1 - 2 * q + cells * q**2).sum()
        noise *= 1 + SURE * np.sqrt(2 / cells)
        chance = (points * q * (1 - q) * (1 + points / np.maximum(rows, 1.0))).sum()
        return float(max(missed - noise, 0.0) / max(chance, 1e-9))

    def one_hot(self, classes: int) -> Floats:
        """One row for each public row, with a one in the column of its class."""
        return np.eye(classes)[self.public.codes[self.public.rows]]


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
