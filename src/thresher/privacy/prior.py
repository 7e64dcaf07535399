"""Noisy counts to estimated counts, with the public validation set as the prior.

The model: a training point is distributed like a validation point. A wrong model costs accuracy,
never privacy, since only public data and the released table enter. With w_r the clipped vector of
public row r, m their mean and K their covariance, n training points give a table of

    counts  ~  Normal(n m, kappa n (1 + n / R) K + tau W)          R public rows
    release =  clipped counts + noise of variance sigma^2 W

W is diagonal with mean 1: there is less noise where fewer points are near (`entry_weights`). K also
has the directions in which the table moves when classes have other shares, or labels are wrong more
often. Three numbers are unknown: n, the factor kappa (how far the training set may differ from the
public one) and tau (how far each count may differ on its own). Guesses at them are weighted by the
likelihood of the release. Means and shares are first drawn towards their averages, because a few
public rows say little about one small neighborhood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np

from thresher.array_types import Array, Floats
from thresher.privacy.clipped_units import ClippedOwners, ClippedPoints
from thresher.privacy.entry_weights import Clipping
from thresher.privacy.public_rows import MOST_ROWS, Public
from thresher.threads import one_blas_thread

UNLIKELY = 5.0  # in logarithm of likelihood below the best
KAPPAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
NUMBER_SPREAD = 0.5  # of n, over what the size of the table says
KAPPA_SPREAD = 1.5  # of the logarithm of kappa, before the release is seen
TAUS = (0.0, *(10.0**half for half in np.arange(0, 7.5, 0.5)))  # 100,000 points reach 10^5.5


class Prior:
    """What the validation set says about the counts of clipped units.

    A unit is `size` points: 1, or the usual number of an owner's points.
    """

    def __init__(self, public: Public, clipping: Clipping, size: int = 1) -> None:
        rows = len(public.near)
        raw = public.total(np.ones(rows)) / (rows - 1)
        some = slice(None, None, -(-rows // MOST_ROWS))
        vectors = public.vectors(some)
        units: ClippedPoints | ClippedOwners
        if size == 1:
            units = ClippedPoints(public, clipping, raw, some)
        else:
            units = ClippedOwners(public, clipping, raw, some, size)
        self.units = units
        self.rows = rows / size
        self.mean = size * public.shrunk(raw)  # of one unit's vector
        self.clipped_mean = self.mean * units.kept
        root, wide = math.sqrt((len(vectors) - 1) / size), math.sqrt(self.rows)
        shifts = size * public.shifts(np.ones(rows))
        self.spread = np.concatenate([(vectors - raw) / root, wide * shifts])  # squared: K
        self.variance = float((self.spread[: len(vectors)] ** 2).sum(axis=0).mean())  # of a number
        clipped = units.deviations(vectors) / root
        self.clipped_spread = np.concatenate([clipped, wide * units.shifts(shifts)])

    def posterior(self, release: Floats, sigma: Floats) -> Posterior:
        """The likely counts behind a release with noise of these standard deviations."""
        with one_blas_thread():  # small products: several threads would only wait for each other
            return Posterior(self, release, sigma)


@dataclass(frozen=True)
class Fits:
    """Guesses at n, kappa and tau, and how likely each is beside the others."""

    weight: Floats  # or its logarithm, up to a constant
    n: Floats
    n_deviation: Floats
    common: Floats  # kappa n (1 + n / R)
    tau: Floats

    def some(self, which: Array) -> Fits:
        """The guesses at these places, which may repeat."""
        return Fits(*(getattr(self, field.name)[which] for field in fields(self)))

    def likely(self) -> Fits:
        """The likely guesses, with log-likelihoods turned into weights that add up to 1."""
        found = self.some(np.flatnonzero(self.weight > self.weight.max() - UNLIKELY))
        weight = np.exp(found.weight - found.weight.max())
        return replace(found, weight=weight / weight.sum())


class Posterior:
    """The distribution of the counts given a release: its mean, and tables drawn from it.

    It is a mixture over guesses at kappa and tau, weighted by their likelihood. Given those, n
    follows from a regression, with an error of its own. `misfit` is the variance of the counts
    around n m, divided by the variance from chance alone.
    """

    def __init__(self, prior: Prior, release: Floats, sigma: Floats) -> None:
        self._prior = prior
        self._sigma = math.sqrt(float((sigma**2).mean()))
        self._own = sigma / self._sigma  # what a count does on its own grows as its noise does
        self._A = prior.clipped_spread / sigma  # whitened: noise has variance 1
        lam, U = np.linalg.eigh(self._A @ self._A.T)
        used = lam > 1e-12 * max(lam[-1], 1e-300)
        self._lam = lam[used]
        self._axes = (U[:, used].T @ self._A) / np.sqrt(self._lam)[:, None]
        self._seen, self._usual = release / sigma, prior.clipped_mean / sigma
        self._fits = self._fit()
        fits = self._fits
        usual = fits.n[:, None] * self._usual
        self._means = fits.n[:, None] * prior.mean + self._deviations(fits, self._seen - usual)
        self.mean: Floats = fits.weight @ self._means
        chance = fits.n * (1 + fits.n / prior.rows)
        each = fits.common + fits.tau / max(prior.variance, 1e-300)
        self.misfit = float(fits.weight @ (each / chance))

    def _fit(self) -> Fits:
        """The likely guesses."""
        y, m = self._seen, self._usual
        z, mz = self._axes @ y, self._axes @ m
        y2, m2, ym = y @ y - z @ z, m @ m - mz @ mz, y @ m - z @ mz
        kappa, tau = (grid.ravel() for grid in np.meshgrid(KAPPAS, TAUS, indexing="ij"))
        usual = -0.5 * (np.log(kappa) / KAPPA_SPREAD) ** 2  # 1 is what chance alone gives
        outside = tau / self._sigma**2 + 1.0
        usual_n, loose = self._usual_number()
        n = usual_n
        for _ in range(2):  # the covariance depends on n, so n is found twice
            common = kappa * n * (1 + n / self._prior.rows)
            inside = common[:, None] * self._lam + outside[:, None]
            bottom = (mz * mz / inside).sum(axis=1) + m2 / outside + loose
            top = (mz * z / inside).sum(axis=1) + ym / outside + loose * usual_n
            best = np.maximum(1.0, top / bottom)
            squares = ((z - best[:, None] * mz) ** 2 / inside).sum(axis=1)
            squares += np.maximum(y2 - 2 * best * ym + best**2 * m2, 0.0) / outside
            squares += loose * (best - usual_n) ** 2
            logs = np.log(inside).sum(axis=1) + (len(y) - len(z)) * np.log(outside)
            score = -0.5 * (logs + squares + np.log(bottom)) + usual
            n = float(best[score.argmax()])
        return Fits(score, best, 1 / np.sqrt(bottom), common, tau).likely()

    def _usual_number(self) -> tuple[float, float]:
        """The n that the size of the table suggests, and 1 / variance of the true n around it.

        If other class shares look like more points, the shape of the table says little about n.
        Then only this keeps n from going astray.
        """
        y, m = self._seen, self._usual
        known = max(float(m @ m), 1e-300)
        n = max(1.0, float(y @ m) / known)
        return n, 1 / ((NUMBER_SPREAD * n) ** 2 + 1 / known)

    def _deviations(self, fits: Fits, seen: Floats) -> Floats:
        """The expected deviations of the counts from n m, given whitened ones of releases."""
        outside = fits.tau[:, None] / self._sigma**2 + 1.0
        z = seen @ self._axes.T
        inside = (z / (fits.common[:, None] * self._lam + outside)) @ self._axes
        solved = inside + (seen - z @ self._axes) / outside
        shared = (inside @ self._A.T) @ self._prior.spread
        alone = fits.tau[:, None] / self._sigma * solved
        return fits.common[:, None] * shared + alone * self._own

    def draws(self, count: int, random: np.random.Generator) -> Floats:
        """Tables drawn from the posterior, one per row.

        A table and its release are drawn from the prior. The error in estimating the table from its
        release is added to the mean.
        """
        which = random.choice(len(self._fits.weight), count, p=self._fits.weight)
        fits, (rows, cells) = self._fits.some(which), self._prior.spread.shape
        common = np.sqrt(fits.common)[:, None] * random.standard_normal((count, rows))
        own = np.sqrt(fits.tau)[:, None] * random.standard_normal((count, cells))
        more = (np.minimum(fits.n_deviation, fits.n) * random.standard_normal(count))[:, None]
        with one_blas_thread():
            table = common @ self._prior.spread + own * self._own + more * self._prior.mean
            seen = common @ self._A + own / self._sigma + more * self._usual
            seen += random.standard_normal(seen.shape)
            drawn = self._means[which] + table - self._deviations(fits, seen)
            return np.asarray(drawn * self._prior.units.factors(count, random))
