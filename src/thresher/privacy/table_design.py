"""The table mechanism as planned: noise, cost, and prices of a released table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.price_list import PriceList
from thresher.privacy.accountants import (
    Adjacency,
    Cost,
    Filter,
    discrete_mu,
    discrete_sigma,
    gaussian_epsilon,
    gaussian_mu,
)
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import DRAWS, OWNER_SCALE, UNKNOWN_SIZE, Change, Design, Setting
from thresher.privacy.entry_weights import Clipping, EntryWeights
from thresher.privacy.noise import Noise
from thresher.privacy.prior import Prior
from thresher.privacy.public_rows import Public

POINT_SCALE = 64  # parts of one that a point's weight is a whole number of


@dataclass(frozen=True)
class TableDesign(Design):
    """The table mechanism as planned: its sensitivity is sqrt(B), times a factor of the setting."""

    setting: Setting
    bound: int
    public: Public | None
    entries: EntryWeights
    excess: float = 1.0  # the variance of all noise, over that which the guarantee counts on
    spared: float = 0.0  # the part of mu^2 that something else takes

    @property
    def parts(self) -> int:
        """How many parts one has: clipped weights are whole numbers of these parts."""
        return POINT_SCALE if self.setting.unit == "point" else OWNER_SCALE

    @property
    def scale(self) -> int:
        """The whole number in the table that stands for one point."""
        return self.parts * self.setting.one

    @property
    def clipping(self) -> Clipping:
        """How vectors are clipped."""
        return Clipping(self.bound, self.parts, self.entries)

    def squares(self, contributions: Contributions) -> Integers:
        """The squared weighted lengths of the whole vectors of units."""
        return contributions.squares(self.entries.whole)

    def weights(self, squares: Integers) -> Integers:
        """The clipped weights of units whose whole vectors have these `squares`."""
        return self.clipping.weights(squares, self.setting.one)

    def length(self, adjacency: Adjacency, unit: Change | None = None) -> float:
        """The weighted length by which the scaled table can move if one `unit` changes.

        The default unit is the protected one.
        """
        moved = self.setting.moved[self.setting.unit, unit or self.setting.unit][adjacency]
        return self.scale * math.sqrt(moved * self.bound)

    @cached_property
    def sigma(self) -> float:
        """The sigma that the guarantee counts on, for entries of the scaled table with weight 1."""
        mu = self.budget_mu * math.sqrt(1 - self.spared)
        return discrete_sigma(self.length(self.setting.adjacency), mu, self.entries.largest)

    @property
    def budget_mu(self) -> float:
        """The mu of the whole budget."""
        return gaussian_mu(self.setting.budget.epsilon, self.setting.budget.delta)

    @property
    def drawn_sigma(self) -> float:
        """The sigma of all noise, for entries of the scaled table with weight 1."""
        return self.sigma * math.sqrt(self.excess)

    @property
    def deviations(self) -> Floats:
        """The sigma of all noise on the scaled table, for an entry of each validation point."""
        return self.drawn_sigma / self.entries.roots

    def mu(self, length: float) -> float:
        """The mu at which noise hides moves of the scaled table by this weighted length."""
        return discrete_mu(length, self.sigma, self.entries.largest)

    def whole_mu(self, length: float) -> float:
        """The mu at which such moves are hidden in everything that is released."""
        return math.hypot(self.mu(length), self.budget_mu * math.sqrt(self.spared))

    @property
    def untold(self) -> str:
        """Why there is no error: no prior, or owners of unknown size; or ""."""
        if self.public is None:
            return "without a prior, nothing says how far off the counts are"
        return "" if self.setting.knows_size else UNKNOWN_SIZE

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says about the mechanism."""
        return {
            "mechanism": "table",
            "noise": "discrete Gaussian",
            "sigma": self.drawn_sigma / self.scale,
            "bound": self.bound,
            "scale": self.scale,
            "scheme": "no sampling",
            "prior": "none" if self.public is None else "validation set",
            **self.entries.record(),
        }

    def cost(self, adjacency: Adjacency, unit: Change, filter: Filter) -> Cost:  # noqa: A002
        """The cost as mu^2, for the Gaussian filter, or as an (epsilon, delta) pair."""
        if filter == "basic":
            return Cost(epsilon=self.epsilon(adjacency, unit), delta=self.setting.budget.delta)
        return Cost(mu_squared=self.whole_mu(self.length(adjacency, unit)) ** 2)

    def epsilon(self, adjacency: Adjacency, unit: Change) -> float:
        """The epsilon converted from mu, exactly; as asked for if these are the budget's own."""
        if (adjacency, unit) == (self.setting.adjacency, self.setting.unit):
            return self.setting.budget.epsilon
        mu = self.whole_mu(self.length(adjacency, unit))
        return gaussian_epsilon(mu, self.setting.budget.delta)

    def noise(self, source: Noise) -> Integers:
        """One number of discrete Gaussian noise for each entry, as wide as its weight requires."""
        drawn = np.empty((self.setting.entries, len(self.entries.whole)), np.int64)
        for width in np.unique(self.deviations).tolist():
            places = np.flatnonzero(self.deviations == width)
            noise = source.gaussian(width, drawn.shape[0] * len(places))
            drawn[:, places] = noise.reshape(-1, len(places))
        return drawn

    def footprint(self, contributions: Contributions) -> Integers:
        """The scaled table of clipped counts."""
        return contributions.counts(self.weights(self.squares(contributions)))

    def personal_epsilon(self, contributions: Contributions) -> Floats:
        """The epsilon of each unit, from its own clipped vector and that of a worst replacement."""
        distinct, which = np.unique(self.squares(contributions), return_inverse=True)
        weights, one = self.weights(distinct).tolist(), self.entries.one
        replaced = self.setting.adjacency == "replace-one"
        other = self.scale * math.sqrt(self.bound) if replaced else 0.0
        own = [w * math.sqrt(u / one) for w, u in zip(weights, distinct.tolist(), strict=True)]
        delta, opposed = self.setting.budget.delta, self.setting.opposed
        moved = [math.sqrt(a**2 + other**2 + 2 * opposed * a * other) for a in own]
        each = [gaussian_epsilon(self.whole_mu(length), delta) for length in moved]
        return np.array(each)[which]

    def prices(self, release: Integers) -> PriceList:
        """Prices at the posterior mean of the counts."""
        mean, draws = self.estimates(release)
        return self.setting.estimated(mean, draws, prior=self.public is not None)

    def drawn_prices(self, release: Integers) -> list[PriceList]:
        """Prices at tables drawn from the posterior."""
        _, draws = self.estimates(release)
        known = self.public is not None
        return [self.setting.estimated(draw, draws, prior=known) for draw in draws]

    def estimates(self, release: Integers) -> tuple[Floats, Floats]:
        """The expected counts given the release, and tables drawn from the posterior in rows."""
        table, sigma = self._in_points(release)
        random = np.random.default_rng(0)
        if self.public is None:  # the release speaks for itself
            return table, table + sigma * random.standard_normal((DRAWS, len(table)))
        posterior = self._prior.posterior(table, sigma)
        return posterior.mean, posterior.draws(DRAWS, random)

    def misfit(self, release: Integers) -> float:
        """How much more the counts vary around the expected ones than chance explains."""
        return self._prior.posterior(*self._in_points(release)).misfit

    def _in_points(self, release: Integers) -> tuple[Floats, Floats]:
        """The released numbers in points, and the standard deviations of their noise."""
        sigma = np.tile(self.deviations / self.scale, self.setting.entries)
        return release.ravel() / self.scale, sigma

    def kept_shares(self) -> Floats:
        """The share of each count that clipping leaves, as the public prior expects it."""
        if self.public is None:
            return np.ones(self.setting.entries * self.setting.cells)
        prior = self._prior
        return np.divide(
            prior.clipped_mean, prior.mean, out=np.ones_like(prior.mean), where=prior.mean != 0
        )

    def owner_mean(self) -> Floats:
        """The counts that one unit adds on average, as the public prior expects it."""
        return self._prior.mean

    @cached_property
    def _prior(self) -> Prior:
        assert self.public is not None  # noqa: S101 - by those who call
        return Prior(self.public, self.clipping, self.setting.points_per_owner or 1)
