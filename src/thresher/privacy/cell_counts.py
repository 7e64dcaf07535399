"""Counts near validation points from a noisy histogram over public cells, and how far off they are.

A count is a sum over cells: the points in a cell, times the share of them that is near. So the
noise of the histogram moves a count by known weights. The shares are not known. The validation
rows of a cell say what they are, and so does the distance of its center, after all other pairs of
a row and a center at about that distance. All this needs the released histogram and public data
alone, so it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Flags, Floats
from thresher.privacy.cell_map import CellMap, wrong_shares
from thresher.privacy.design import DRAWS
from thresher.privacy.public_rows import FLOOR, priceable, total_deviations

Tally = Sequence[tuple[Floats, Floats]]  # for each class: near rows, and rows; M x K each
Smooth = tuple[Floats, float, float]  # shares by distance; factors for the own class, for others

FEW = 0.1  # rows that a share by distance is worth in a cell: it decides where there are none
HALVES = 4  # random halves of the rows by which the other half is foretold
SCATTERS = np.concatenate([[0.0], 10.0 ** np.arange(-4, 1.01, 0.25)])
LEAST = 0.02  # of an expected count is what a drawn one has
NONE = 1e-9


@dataclass(frozen=True)
class Estimate:
    """Counts (same, other) of each validation point, 2 x M numbers each."""

    by_rows: Floats
    by_distance: Floats
    variance: Floats  # of `by_rows`: its shares are those of few rows
    chance: Floats  # variance of the true counts, since points are a sample, too


@dataclass(frozen=True)
class Drawn:
    """Counts that a release leaves likely: tables of 2M numbers."""

    expected: tuple[Floats, Floats]
    tables: Floats  # one per row
    weights: Floats  # and how many points each public row then stands for


class CellCounts:
    """The shares of the points of each cell that are near each validation point."""

    def __init__(self, cells: CellMap) -> None:
        self._cells, codes = cells, cells.validation.codes
        self._codes = codes
        self._one_hot = cells.one_hot(len(cells.validation.classes))
        self._near = cells.public.near.astype(np.float64).T
        self._order = np.argsort(-_distances(cells), axis=None, kind="stable")
        self._rows = len(cells.member)
        self._whole = self._tally(np.ones(self._rows))
        self._smooth = self._by_distance(self._whole)
        self._scatter = self._held_out()

    def drawn(self, histogram: Floats, deviation: float, units: float) -> Drawn:
        """Counts behind a histogram of points with noise of this deviation in each bin.

        `units` is about how many independent ones the points are. Each draw has other noise, and
        other weights of the public rows (Rubin's bootstrap), the same for all validation points:
        shares that rest on the same rows err together.
        """
        random, found = np.random.default_rng(0), self._estimate_points(histogram)
        weight = self._trust(found)
        mean = _mixed(found, weight)
        more = self._rows / max(units, 1.0)  # variance of a sample of points over that of rows
        kept = np.sqrt(weight)
        part = np.sqrt((kept + more) / (1 + more))
        shape = self._shape / (1 + more)
        usual, apart, weights = [], [], []
        for _ in range(DRAWS):
            noisy = histogram + deviation * random.standard_normal(histogram.shape)
            chance = random.standard_gamma(shape) / shape
            these, others = self._estimate_points(noisy), self._estimate_points(noisy, chance)
            usual.append(_mixed(these, weight))
            apart.append(part * (others.by_rows - these.by_rows))
            weights.append(self._row_weights(noisy, chance))
        unseen = kept * found.variance + found.chance - np.var(apart, axis=0)
        drawn = np.add(usual, apart).reshape(DRAWS, -1)
        # prices fall as one over the count, so the mean count is best, but not one below its error
        expected = priceable(mean.ravel(), total_deviations(drawn) / FLOOR)
        drawn = np.maximum(drawn, LEAST * np.concatenate(expected))
        # rows that are not there cannot vary: what bootstraps leave out is drawn for each count
        each = np.maximum(mean, NONE) ** 2 / np.maximum(unseen, NONE)
        each = np.clip(each, 1e-3, 1 / NONE).ravel()
        drawn *= random.standard_gamma(np.broadcast_to(each, drawn.shape)) / each
        return Drawn(expected, np.maximum(drawn, NONE), np.array(weights))

    @property
    def _shape(self) -> Floats:
        """Shapes of gamma weights with which shares among few rows vary as much as they err.

        The rows of a cell differ less from their own mean than from the true one. With r of them,
        weights of variance (r + 1) / (r - 1) make up for that.
        """
        sizes = self._cells.member.T @ self._one_hot
        each = ((self._cells.member @ sizes) * self._one_hot).sum(axis=1)
        return np.asarray(np.maximum(each - 1, 0.5) / (each + 1))

    def _row_weights(self, histogram: Floats, chance: Floats) -> Floats:
        """How many points each public row stands for."""
        member, one_hot = self._cells.member, self._one_hot
        sums = (member * chance[:, None]).T @ one_hot
        points = np.maximum(histogram, 0.0) / np.maximum(sums, NONE)
        return np.asarray(((member @ points) * one_hot).sum(axis=1) * chance)

    def _trust(self, found: Estimate) -> Floats:
        """How far to follow the rows near a validation point, and not the distances alone.

        Rows fitted the cells, and often the scaling of columns. So they look more like each other
        than points do, and held-out rows show too little scatter around what distances foretell.
        True counts are taken to scatter at least as much as counts by rows err.
        """
        squares = np.maximum(found.by_distance, NONE) ** 2
        least = found.variance.sum(axis=1) / squares.sum(axis=1)
        scatter = np.maximum(self._scatter, least)[:, None] * squares
        return np.asarray(scatter / (scatter + found.variance + NONE))

    def _held_out(self) -> Floats:
        """The scatter of true counts around those by distance, in squares of them, for both sides.

        Each half of the rows foretells how many rows of the other half are near. The scatter that
        makes these numbers most likely is taken.
        """
        random, score = np.random.default_rng(0), np.zeros((2, len(SCATTERS)))
        for _ in range(HALVES):
            half = random.permutation(self._rows) < self._rows // 2
            ours, theirs = (
                self._tally(half.astype(np.float64)),
                self._tally((~half).astype(np.float64)),
            )
            found = self._estimate([size for _, size in theirs], ours, self._by_distance(ours))
            seen = self._sides([near.sum(axis=1) for near, _ in theirs])
            for place, scatter in enumerate(SCATTERS):
                true = scatter * found.by_distance**2
                weight = true / (true + found.variance + NONE)
                variance = weight * found.variance + found.chance + 1e-6
                missed = (seen - _mixed(found, weight)) ** 2 / variance
                score[:, place] -= 0.5 * (np.log(variance) + missed).sum(axis=1)
        return np.asarray(SCATTERS[score.argmax(axis=1)])

    def _tally(self, weights: Floats) -> Tally:
        """How many rows of each cell and class are near each validation point, and how many exist.

        A validation point does not count as near itself.
        """
        found, rows = [], self._cells.public.rows
        for labeled in self._one_hot.T:
            some = np.flatnonzero(labeled)
            member = self._cells.member[some] * weights[some, None]
            size = np.tile(member.sum(axis=0), (len(self._codes), 1))
            size[rows[some]] -= member
            found.append((self._near[:, some] @ member, np.maximum(size, 0.0)))
        return found

    def _by_distance(self, tally: Tally) -> Smooth:
        """The share of a cell that is near at each distance, falling with the distance.

        It is a regression over all pairs of a validation point and a cell. The factors tell how
        much more often a row is near if it has the class of the validation point, or another.
        """
        from sklearn.isotonic import isotonic_regression

        near, size = (np.asarray(sum(parts)) for parts in zip(*tally, strict=True))
        sizes, shares = size.ravel()[self._order], np.empty(size.size)
        seen = near.ravel()[self._order] / np.maximum(sizes, NONE)
        shares[self._order] = isotonic_regression(seen, sample_weight=np.maximum(sizes, 1e-6))
        rare = 0.5 / self._rows
        by_distance = np.clip(shares.reshape(size.shape), rare, 1 - rare)
        found = self._sides([each.sum(axis=1) for each, _ in tally]).sum(axis=1)
        usual = self._sides([(each * by_distance).sum(axis=1) for _, each in tally]).sum(axis=1)
        kin, others = (found / np.maximum(usual, NONE)).tolist()
        return by_distance, kin, others

    def _estimate_points(self, histogram: Floats, chance: Floats | None = None) -> Estimate:
        """The counts that a histogram implies, under random weights of the rows."""
        tally, member = self._whole, self._cells.member
        if chance is not None:
            tally, member = self._tally(chance), member * chance[:, None]
        wrong = wrong_shares(np.maximum(histogram, 0.0), member, self._one_hot)
        return self._estimate(list(histogram.T), tally, self._smooth, wrong)

    def _estimate(
        self, points: Sequence[Array], tally: Tally, smooth: Smooth, wrong: Floats | None = None
    ) -> Estimate:
        """The counts if each class has so many points in the cells.

        Within a cell, each class may lie elsewhere. Points with a `wrong` label lie where other
        classes do.
        """
        by_distance, kin, others = smooth
        near, size = (np.asarray(sum(parts)) for parts in zip(*tally, strict=True))
        found: list[list[Floats]] = []
        for code, (ours, rows) in enumerate(tally):
            factor = np.where(self._codes == code, kin, others)[:, None]
            usual = np.clip(by_distance * factor, 0.0, 1.0)
            share, far = (ours + FEW * usual) / (rows + FEW), usual
            if wrong is not None:
                astray = near - ours + FEW * by_distance
                astray /= np.maximum(size - rows, 0.0) + FEW
                share = share + wrong[:, code] * (astray - share)
                far = far + wrong[:, code] * (by_distance - far)
            chance, counted = usual * (1 - usual), points[code]
            found.append([
                (share * counted).sum(axis=1), (far * counted).sum(axis=1),
                (chance * counted**2 / (rows + 1)).sum(axis=1),
                (chance * np.abs(counted)).sum(axis=1),
            ])  # fmt: skip
        return Estimate(*(self._sides(each) for each in zip(*found, strict=True)))

    def _sides(self, by_class: Sequence[Floats]) -> Floats:
        """Sums over the class of each validation point, and over all others: 2 x M."""
        each = np.array(by_class)
        same = each[self._codes, np.arange(len(self._codes))]
        return np.array([same, each.sum(axis=0) - same])


def lonely(near: Flags) -> bool:
    """Whether most validation points are near no other, so that nothing says what near them is."""
    return bool(np.median(near.sum(axis=0)) < 1)


def _mixed(found: Estimate, weight: Floats) -> Floats:
    return np.asarray(found.by_distance + weight * (found.by_rows - found.by_distance))


def _distances(cells: CellMap) -> Floats:
    """Distances from validation points to centers, or what grows as they do: M x K."""
    rows: Any = cells.validation.rows
    ours, centers = rows.as_float64(slice(None)), cells.centers.as_float64(slice(None))
    if cells.validation.metric == "cosine":
        ours = ours / np.sqrt((ours**2).sum(axis=1))[:, None]
        return np.asarray(-ours @ (centers / np.sqrt((centers**2).sum(axis=1))[:, None]).T)
    squares = (ours**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    return np.asarray(squares - 2 * ours @ centers.T)
