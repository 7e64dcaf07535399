"""The table mechanism: one joint release of the M x 2 counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_choice, check_count, check_flag
from thresher.errors import InputError
from thresher.games.classes import ClassCounts
from thresher.inputs import Points, Validation
from thresher.metrics import Rows
from thresher.neighbors.ball import Ball
from thresher.passes.walk import count
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
from thresher.privacy.contributions import Contributions, clipped_weights
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
from thresher.privacy.fitting import fitted_bound
from thresher.privacy.noise import Noise
from thresher.privacy.prior import Prior, Public

POINT_SCALE = 64  # parts of one that a point's weight is a whole number of
SAFETY = 1e-9  # radii are widened and bounds raised by this, far beyond all rounding


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
    """

    bound: int | Literal["usual", "certified"] = "usual"
    prior: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.bound, str):
            check_choice("bound", self.bound, ("usual", "certified"))
        else:
            object.__setattr__(self, "bound", check_count("bound", self.bound))
        object.__setattr__(self, "prior", check_flag("prior", self.prior))

    def design(self, setting: Setting) -> TableDesign:
        """The mechanism fitted to a setting."""
        public = setting.public()
        return TableDesign(setting, self._bound(setting, public), public if self.prior else None)

    def _bound(self, setting: Setting, public: Public | None) -> int:
        if not isinstance(self.bound, str):
            return self.bound
        if setting.validation.rows is None:
            raise InputError("bound must be given with metric='precomputed': Table(bound=...)")
        if self.bound == "certified":
            return certified_bound(setting.validation, setting.radius)
        if public is None:
            return len(setting.validation)
        if setting.points is not None and self.prior:
            make = lambda bound: TableDesign(setting, bound, public)  # noqa: E731
            return fitted_bound(public, setting, setting.points, make)
        return usual_bound(public, setting.points_per_owner or 1)


@dataclass(frozen=True)
class TableDesign(Design):
    """The table mechanism: sensitivity sqrt(B), or what the setting has for other changes."""

    setting: Setting
    bound: int
    public: Public | None
    excess: float = 1.0  # the variance of all noise, over that which the guarantee counts on

    @property
    def parts(self) -> int:
        """Clipped weights are whole numbers of this part of one."""
        return POINT_SCALE if self.setting.unit == "point" else OWNER_SCALE

    @property
    def scale(self) -> int:
        """How many whole numbers of the table stand for one point."""
        return self.parts * self.setting.one

    def weights(self, squares: Integers) -> Integers:
        """The clipped weights of units whose whole vectors have these squared lengths."""
        return clipped_weights(squares, self.bound * self.setting.one**2, self.parts)

    def length(self, adjacency: Adjacency, unit: Unit | None = None) -> float:
        """By how much the scaled table can move if one `unit` changes; by default one of ours."""
        moved = self.setting.moved[self.setting.unit, unit or self.setting.unit][adjacency]
        return self.scale * math.sqrt(moved * self.bound)

    @cached_property
    def sigma(self) -> float:
        """Of the noise on the scaled table that the guarantee counts on."""
        budget = self.setting.budget
        return discrete_sigma(
            self.length(self.setting.adjacency), gaussian_mu(budget.epsilon, budget.delta)
        )

    @property
    def drawn_sigma(self) -> float:
        """Of all noise on the scaled table."""
        return self.sigma * math.sqrt(self.excess)

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
        }

    def cost(self, adjacency: Adjacency, unit: Unit, filter: Filter) -> Cost:  # noqa: A002
        """mu^2, for Gaussian DP, or an (epsilon, delta) pair."""
        if filter == "basic":
            return Cost(epsilon=self.epsilon(adjacency, unit), delta=self.setting.budget.delta)
        return Cost(mu_squared=discrete_mu(self.length(adjacency, unit), self.sigma) ** 2)

    def epsilon(self, adjacency: Adjacency, unit: Unit) -> float:
        """Exact conversion of mu; for the adjacency and unit of the budget, what was asked for."""
        if (adjacency, unit) == (self.setting.adjacency, self.setting.unit):
            return self.setting.budget.epsilon
        mu = discrete_mu(self.length(adjacency, unit), self.sigma)
        return gaussian_epsilon(mu, self.setting.budget.delta)

    def noise(self, source: Noise) -> Integers:
        """A discrete Gaussian for each number of the table."""
        m, entries = len(self.setting.validation), self.setting.entries
        return source.gaussian(self.drawn_sigma, entries * m).reshape(entries, m)

    def footprint(self, contributions: Contributions) -> Integers:
        """The scaled table of clipped counts."""
        return contributions.counts(self.weights(contributions.squares()))

    def personal_epsilon(self, contributions: Contributions) -> Floats:
        """From the length of each unit's own clipped vector, and that of a worst replacement."""
        distinct, which = np.unique(contributions.squares(), return_inverse=True)
        weights = self.weights(distinct).tolist()
        replaced = self.setting.adjacency == "replace-one"
        other = self.scale * math.sqrt(self.bound) if replaced else 0.0
        own = [w * math.sqrt(u) for w, u in zip(weights, distinct.tolist(), strict=True)]
        delta, opposed = self.setting.budget.delta, self.setting.opposed
        moved = [math.sqrt(a**2 + other**2 + 2 * opposed * a * other) for a in own]
        each = [gaussian_epsilon(discrete_mu(length, self.sigma), delta) for length in moved]
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
        table, sigma = release.ravel() / self.scale, self.drawn_sigma / self.scale
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
            prior.clipped_mean, prior.mean, out=np.ones_like(prior.mean), where=prior.mean != 0
        )

    def owner_mean(self) -> Floats:
        """The counts that one unit adds on average, as the public prior expects it."""
        return self._prior.mean

    @cached_property
    def _prior(self) -> Prior:
        assert self.public is not None  # noqa: S101 - by those who call
        return Prior(self.public, self.bound, self.parts, self.setting.points_per_owner or 1)


def usual_bound(public: Public, size: int = 1) -> int:
    """A quarter of the public points are near at most so many validation points, themselves too.

    A training point near more of them is scaled down, and the prior makes up for it: less noise for
    all is worth more (benchmarks/privacy.py; from a tenth to a half there is little difference).
    """
    if size > 1:  # the same for owners of so many points each
        return max(1, int(np.quantile((public.grouped(size) ** 2).sum(axis=1), 0.25)))
    return max(1, int(np.quantile(public.squares + 1, 0.25)))


def certified_bound(validation: Validation, radius: float) -> int:
    """A number of validation points that no point whatsoever can be near more than.

    The least of three: all of them; the most that lie within twice the radius of one (those near x
    are that close to each other, angles for the cosine metric); and for the cosine metric with t =
    1 - radius and unit vectors v, for every a > -t, the largest over unit x of sum_v (<x, v> +
    a)^2 / (t + a)^2, since each near v adds at least 1. That largest is at most L + sum_q (a
    b_q)^2 / (L - l_q) + a^2 M for every L beyond the eigenvalues l of V'V, with b = V'1 in their
    basis (Lagrange).
    """
    rows = validation.rows
    assert rows is not None  # noqa: S101 - the mechanism checked it
    least = len(validation)
    wide = _twice(validation.metric, radius)
    if wide is not None:
        points = Points(rows, np.zeros(len(rows), np.int32))
        counts = count(points, Ball.around(validation, wide), ClassCounts(1))
        least = min(least, int(counts.max()))
    level = 1.0 - radius - SAFETY
    if validation.metric == "cosine" and level > 0:
        least = min(least, _spectral_bound(rows, level))
    return max(1, least)


def _twice(metric: str, radius: float) -> float | None:
    """The radius within which all validation points near one point lie; None where it is all."""
    if metric == "euclidean":
        return 2 * radius * (1 + SAFETY)
    angle = 2 * math.acos(max(-1.0, 1.0 - radius))
    return None if angle >= math.pi else 1.0 - math.cos(angle) + SAFETY


def _spectral_bound(rows: Rows, level: float) -> int:
    V: NDArray[Any] = rows.as_float64(slice(None)) / np.sqrt(rows.squares)[:, None]
    values, axes = np.linalg.eigh(V.T @ V)
    b = axes.T @ V.sum(axis=0)
    least = math.inf
    for a in np.linspace(0.0, 3.0, 61):
        step = a * float(np.linalg.norm(b)) + 1.0
        multipliers = values[-1] + SAFETY + step * np.geomspace(1e-6, 1e2, 400)
        dual = multipliers + ((a * b) ** 2 / (multipliers[:, None] - values)).sum(axis=1)
        least = min(least, float(dual.min() + a * a * len(V)) / (level + a) ** 2)
    return math.floor(least * (1 + SAFETY) + SAFETY)
