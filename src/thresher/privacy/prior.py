"""Noisy counts to estimated counts, with the public validation set as the prior.

The model: a training point is distributed like a validation point. A wrong model costs accuracy,
never privacy, since only public data and the released table enter. With w_r the clipped vector of
public row r, m their mean and K their covariance, n training points give a table of

    counts  ~  Normal(n m, kappa n (1 + n / R) K + tau I)          R public rows
    release =  clipped counts + noise of variance sigma^2

The unknown n, the factor kappa (how far the training set may differ from the public one) and tau
(by how much each count on its own) maximize the likelihood of the release. Means and shares are
first drawn towards their averages, as few public rows say little about one small neighborhood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.inputs import Points, Validation
from thresher.privacy.contributions import Contributions, Units, clipped_weights
from thresher.threads import cut

Floats = NDArray[np.float64]

LEAST_ROWS = 8  # with fewer public rows there is no prior
MOST_ROWS = 600  # public rows that the covariance is taken from
KAPPAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
TAUS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)


@dataclass(frozen=True)
class Public:
    """The validation set seen as points: who of them is near whom."""

    near: NDArray[np.bool_]  # R x M, without the row itself
    same: NDArray[np.bool_]
    squares: NDArray[np.int64]  # near validation points of each row, itself left out

    @classmethod
    def of(cls, validation: Validation, radius: float) -> Public | None:
        """None where distances are precomputed, or rows are too few to say anything."""
        if validation.rows is None or len(validation) < LEAST_ROWS:
            return None
        near = cls.near_pairs(validation, radius)
        same = validation.codes[:, None] == validation.codes[None, :]
        return cls(near, same, near.sum(axis=1))

    @staticmethod
    def near_pairs(validation: Validation, radius: float) -> NDArray[np.bool_]:
        """Which validation rows are near which, themselves left out."""
        assert validation.rows is not None  # noqa: S101 - checked by those who call
        points = Points(validation.rows, validation.codes)
        bits = Contributions(points, validation, radius, Units.of(None, len(points)))
        near = np.empty((len(points), len(points)), np.bool_)
        for block in bits.blocks():
            unpacked = np.unpackbits(block.words.view(np.uint8), axis=1, bitorder="little")
            width = block.columns.stop - block.columns.start
            near[:, block.columns] = unpacked[bits.groups.positions, :width]
        np.fill_diagonal(near, val=False)
        return near

    def vectors(self, rows: slice) -> Floats:
        """The vectors (same, other) of some rows, 2M numbers each."""
        near, same = self.near[rows], self.same[rows]
        return np.concatenate([near & same, near & ~same], axis=1).astype(np.float64)

    def total(self, weights: Floats) -> Floats:
        """The sum of all vectors, each times its weight."""
        total = np.zeros(2 * self.near.shape[1])
        for lo, hi in cut(0, len(weights), 512):
            total += weights[lo:hi] @ self.vectors(slice(lo, hi))
        return total

    def values(self, gain: Floats, loss: Floats) -> Floats:
        """What each row would be worth at these prices."""
        return (self.near & self.same) @ gain + (self.near & ~self.same) @ loss


class Prior:
    """What the validation set says about the counts, for units clipped to sqrt(bound)."""

    def __init__(self, public: Public, bound: int, scale: int) -> None:
        rows = len(public.near)
        weights = clipped_weights(public.squares, bound, scale) / scale
        raw = public.total(np.ones(rows)) / (rows - 1)
        raw_clipped = public.total(weights) / (rows - 1)
        self.mean = _shrunk(raw, rows)  # of one point's vector
        kept = np.divide(raw_clipped, raw, out=np.ones_like(raw), where=raw > 0)
        self.clipped_mean = self.mean * kept
        some = slice(None, None, -(-rows // MOST_ROWS))
        vectors = public.vectors(some)
        root = math.sqrt(len(vectors) - 1)
        self.spread = (vectors - raw) / root  # its square is K
        self.clipped_spread = (vectors * weights[some, None] - raw_clipped) / root
        self.rows = rows

    def posterior(self, release: Floats, sigma: float) -> Posterior:
        """The counts behind a release with noise of standard deviation sigma."""
        return Posterior(self, release, sigma)


class Posterior:
    """The law of the counts given a release: a mean, standard deviations, and draws."""

    def __init__(self, prior: Prior, release: Floats, sigma: float) -> None:
        self.prior, self.sigma = prior, sigma
        A = prior.clipped_spread / sigma  # whitened: noise has variance 1
        lam, U = np.linalg.eigh(A @ A.T)
        lam = np.maximum(lam, 0.0)
        used = lam > 1e-12 * max(lam[-1], 1e-300)
        self._lam, self._axes = lam[used], (U[:, used].T @ A) / np.sqrt(lam[used])[:, None]
        self._A = A
        self._fit(release / sigma, prior.clipped_mean / sigma)
        seen = release / sigma - self.n * prior.clipped_mean / sigma
        self.mean = self.n * prior.mean + self._deviation(seen)

    def _fit(self, y: Floats, m: Floats) -> None:
        """n, kappa and tau of the largest likelihood; n given the others is a regression."""
        z, mz = self._axes @ y, self._axes @ m
        y2, m2, ym = y @ y - z @ z, m @ m - mz @ mz, y @ m - z @ mz
        rest = len(y) - len(z)
        n = max(1.0, float(y @ m) / max(float(m @ m), 1e-300))
        for _ in range(2):
            best = -math.inf
            base = n * (1 + n / self.prior.rows)
            for kappa in KAPPAS:
                for tau in TAUS:
                    outside = tau / self.sigma**2 + 1.0
                    inside = kappa * base * self._lam + outside
                    top = (mz * z / inside).sum() + ym / outside
                    bottom = (mz * mz / inside).sum() + m2 / outside
                    fitted = max(1.0, float(top / max(bottom, 1e-300)))
                    squares = ((z - fitted * mz) ** 2 / inside).sum()
                    squares += max(y2 - 2 * fitted * ym + fitted**2 * m2, 0.0) / outside
                    score = -0.5 * (np.log(inside).sum() + rest * math.log(outside) + squares)
                    if score > best:
                        best, found = float(score), (fitted, kappa, tau)
            n = found[0]
        self.n, self.kappa, self.tau = found
        self.base = self.kappa * base

    def _deviation(self, seen: Floats) -> Floats:
        """The expected deviation of the counts from n m, given the whitened one of the release."""
        outside = self.tau / self.sigma**2 + 1.0
        z = self._axes @ seen
        inside = z / (self.base * self._lam + outside)
        apart = (seen - self._axes.T @ z) / outside
        solved = self._axes.T @ inside + apart
        common = self.prior.spread.T @ (self._A @ (self._axes.T @ inside))
        return self.base * common + self.tau / self.sigma * solved

    def draws(self, count: int, random: np.random.Generator) -> Floats:
        """Tables drawn from the posterior, one a row."""
        spread, (rows, cells) = self.prior.spread, self.prior.spread.shape
        tables = np.empty((count, cells))
        for table in tables:
            common = math.sqrt(self.base) * random.standard_normal(rows)
            own = math.sqrt(self.tau) * random.standard_normal(cells)
            seen = common @ self._A + own / self.sigma + random.standard_normal(cells)
            table[:] = self.mean + common @ spread + own - self._deviation(seen)
        return tables


def _shrunk(raw: Floats, rows: int) -> Floats:
    """The mean vector, with each neighborhood's mass and label share drawn to their averages."""
    half = len(raw) // 2
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
    """How many points the average share is worth: from how much shares really differ."""
    if not len(shares):
        return 1.0
    chance = share * (1 - share)
    true = max(float(shares.var() - (chance / seen).mean()), 1e-4)
    return max(chance / true - 1, 0.5)


class Flat:
    """The same without a prior: the release speaks for itself."""

    def __init__(self, release: Floats, sigma: float) -> None:
        self.mean, self.sigma = release, sigma

    def draws(self, count: int, random: np.random.Generator) -> Floats:
        """Tables that the release leaves possible, one a row."""
        return self.mean + self.sigma * random.standard_normal((count, len(self.mean)))


def total_deviations(draws: Floats) -> Floats:
    """The standard deviation of each total same + other over the drawn tables."""
    half = draws.shape[1] // 2
    return np.asarray((draws[:, :half] + draws[:, half:]).std(axis=0))


def priceable(table: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Counts (same, other) that can be priced, from an estimated table.

    A total is at least 1.5 of its standard deviations: prices rise steeply towards zero points.
    """
    half = len(table) // 2
    total = table[:half] + table[half:]
    floored = np.maximum(np.maximum(total, 1.5 * deviation), 0.0)
    safe = np.maximum(total, np.maximum(0.5 * deviation, 1e-12))
    share = np.clip(table[:half] / safe, 0.0, 1.0)
    return share * floored, (1 - share) * floored
