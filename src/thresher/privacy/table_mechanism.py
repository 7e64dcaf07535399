"""The table mechanism: one joint release of the M x 2 counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from thresher.checks import check_choice, check_count, check_flag, check_number
from thresher.errors import InputError
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
from thresher.privacy.certified import certified_bound
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import (
    DRAWS,
    OWNER_SCALE,
    UNKNOWN_SIZE,
    Design,
    Floats,
    Integers,
    Setting,
    Unit,
)
from thresher.privacy.entry_weights import EXPONENT, Clipping, EntryWeights
from thresher.privacy.fitting import candidate_bounds, fitted_bound
from thresher.privacy.noise import Noise
from thresher.privacy.prior import Prior, Public

POINT_SCALE = 64  # parts of one that a point's weight is a whole number of
UNFITTED = 0.25  # share of public units that are not clipped if the number of points is unknown


@dataclass(frozen=True)
class Table:
    """One joint release of the M x 2 counts, each unit clipped to sqrt(B), discrete Gaussian noise.

    Parameters
    ----------
    bound
        B, the squared length that one unit may move the table by: a number chosen without looking
        at the points, "usual" or "certified" (no point can be near more, so that nothing is
        clipped). The usual one fits the number of points, by a simulation on the validation set,
        where that number is public (`points=`). Where it is not, a quarter of the validation points
        are near no more than that.
    prior
        Whether the public validation set serves as a prior for the counts.
    weights
        Where few points are near, counts get less noise, and more where many are: noise of sigma /
        s_v with s_v = (p_v + 1/R)^(-weights) for a share p_v of the R public rows near validation
        point v. B is then a squared weighted length (T15). From 0 (no weights) to 1; by default 1/4
        with the usual bound and 0 with others, which are about unweighted lengths.

    Examples
    --------
    >>> import thresher as th
    >>> release = th.dp_tknn_shapley(
    ...     [[1.0, 0.1], [0.1, 1.0]], ["yes", "no"], [[1.0, 0.0], [0.0, 1.0]], ["yes", "no"],
    ...     epsilon=1, delta=1e-5, mechanism=Table(bound="certified"), seed=0,
    ... )
    >>> release.record["mechanism"]
    'table'
    """

    bound: int | Literal["usual", "certified"] = "usual"
    prior: bool = True
    weights: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.bound, str):
            check_choice("bound", self.bound, ("usual", "certified"))
        else:
            object.__setattr__(self, "bound", check_count("bound", self.bound))
        object.__setattr__(self, "prior", check_flag("prior", self.prior))
        if self.weights is not None:
            object.__setattr__(
                self, "weights", check_number("weights", self.weights, least=0.0, most=1.0)
            )
        if self.weights and self.bound == "certified":
            raise InputError("weights goes without bound='certified', which has none")

    def design(self, setting: Setting) -> TableDesign:
        """The mechanism fitted to a setting."""
        public = setting.public()
        entries = self._entries(setting, public)
        bound = self._bound(setting, public, entries)
        return TableDesign(setting, bound, public if self.prior else None, entries)

    def _entries(self, setting: Setting, public: Public | None) -> EntryWeights:
        if self.exponent and public is not None:
            return EntryWeights.by_density(public.near, self.exponent)
        return EntryWeights.alike(len(setting.validation))

    @property
    def exponent(self) -> float:
        """Of the weights of validation points; 0 where all weigh the same."""
        if self.weights is None:
            return EXPONENT if self.bound == "usual" else 0.0
        return self.weights

    def _bound(self, setting: Setting, public: Public | None, entries: EntryWeights) -> int:
        if not isinstance(self.bound, str):
            return self.bound
        if setting.validation.rows is None:
            raise InputError("bound must be given with metric='precomputed': Table(bound=...)")
        if self.bound == "certified":
            return certified_bound(setting.validation, setting.radius)
        if public is None:
            return len(setting.validation)
        if setting.points is not None and self.prior:
            make = lambda bound: TableDesign(setting, bound, public, entries)  # noqa: E731
            return fitted_bound(public, setting, setting.points, entries, make)
        return usual_bound(public, entries, setting.points_per_owner or 1)


@dataclass(frozen=True)
class TableDesign(Design):
    """The table mechanism: sensitivity sqrt(B), or what the setting has for other changes."""

    setting: Setting
    bound: int
    public: Public | None
    entries: EntryWeights
    excess: float = 1.0  # the variance of all noise, over that which the guarantee counts on

    @property
    def parts(self) -> int:
        """Clipped weights are whole numbers of this part of one."""
        return POINT_SCALE if self.setting.unit == "point" else OWNER_SCALE

    @property
    def scale(self) -> int:
        """How many whole numbers of the table stand for one point."""
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

    def length(self, adjacency: Adjacency, unit: Unit | None = None) -> float:
        """The weighted length by which the scaled table can move if one `unit` changes.

        By default one of those that are protected.
        """
        moved = self.setting.moved[self.setting.unit, unit or self.setting.unit][adjacency]
        return self.scale * math.sqrt(moved * self.bound)

    @cached_property
    def sigma(self) -> float:
        """Of the noise on the scaled table that the guarantee counts on, where the weight is 1."""
        mu = gaussian_mu(self.setting.budget.epsilon, self.setting.budget.delta)
        return discrete_sigma(self.length(self.setting.adjacency), mu, self.entries.largest)

    @property
    def drawn_sigma(self) -> float:
        """Of all noise on the scaled table, where the weight is 1."""
        return self.sigma * math.sqrt(self.excess)

    @property
    def deviations(self) -> Floats:
        """Of all noise on the scaled table: those of an entry of each validation point."""
        return self.drawn_sigma / self.entries.roots

    def mu(self, length: float) -> float:
        """At which noise hides moves of the scaled table by this weighted length."""
        return discrete_mu(length, self.sigma, self.entries.largest)

    @property
    def untold(self) -> str:
        """The prior knows what clipping takes from points, not from owners of many points."""
        if self.public is None:
            return "without the prior nothing tells what clipping takes away"
        return "" if self.setting.knows_size else UNKNOWN_SIZE

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says of it."""
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

    def cost(self, adjacency: Adjacency, unit: Unit, filter: Filter) -> Cost:  # noqa: A002
        """mu^2, for Gaussian DP, or an (epsilon, delta) pair."""
        if filter == "basic":
            return Cost(epsilon=self.epsilon(adjacency, unit), delta=self.setting.budget.delta)
        return Cost(mu_squared=self.mu(self.length(adjacency, unit)) ** 2)

    def epsilon(self, adjacency: Adjacency, unit: Unit) -> float:
        """Exact conversion of mu; for the adjacency and unit of the budget, what was asked for."""
        if (adjacency, unit) == (self.setting.adjacency, self.setting.unit):
            return self.setting.budget.epsilon
        return gaussian_epsilon(self.mu(self.length(adjacency, unit)), self.setting.budget.delta)

    def noise(self, source: Noise) -> Integers:
        """A discrete Gaussian for each number of the table, of the width that its weight asks."""
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
        """From the length of each unit's own clipped vector, and that of a worst replacement."""
        distinct, which = np.unique(self.squares(contributions), return_inverse=True)
        weights, one = self.weights(distinct).tolist(), self.entries.one
        replaced = self.setting.adjacency == "replace-one"
        other = self.scale * math.sqrt(self.bound) if replaced else 0.0
        own = [w * math.sqrt(u / one) for w, u in zip(weights, distinct.tolist(), strict=True)]
        delta, opposed = self.setting.budget.delta, self.setting.opposed
        moved = [math.sqrt(a**2 + other**2 + 2 * opposed * a * other) for a in own]
        each = [gaussian_epsilon(self.mu(length), delta) for length in moved]
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
        """The expected counts given the release, and tables drawn from their law, one a row."""
        table = release.ravel() / self.scale
        sigma = np.tile(self.deviations / self.scale, self.setting.entries)
        random = np.random.default_rng(0)
        if self.public is None:  # the release speaks for itself
            return table, table + sigma * random.standard_normal((DRAWS, len(table)))
        posterior = self._prior.posterior(table, sigma)
        return posterior.mean, posterior.draws(DRAWS, random)

    def kept_shares(self) -> Floats:
        """Which share of each count clipping leaves, as the public prior expects it."""
        if self.public is None:
            return np.ones(self.setting.entries * len(self.setting.validation))
        prior = self._prior
        return np.divide(
            prior.clipped_mean, prior.mean, out=np.ones_like(prior.mean), where=prior.mean > 0
        )

    def owner_mean(self) -> Floats:
        """The counts that one unit adds on average, as the public prior expects it."""
        return self._prior.mean

    @cached_property
    def _prior(self) -> Prior:
        assert self.public is not None  # noqa: S101 - by those who call
        return Prior(self.public, self.clipping, self.setting.points_per_owner or 1)


def usual_bound(public: Public, entries: EntryWeights, size: int = 1) -> int:
    """A quarter of the public units have at most this squared weighted length.

    A training point with a longer vector is scaled down, and the prior makes up for it: less noise
    for all is worth more (benchmarks/privacy.py; from a tenth to a half there is little
    difference).
    """
    return int(candidate_bounds(public, entries, size, (UNFITTED,))[0])
