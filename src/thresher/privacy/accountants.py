"""What a release costs, and how much noise a budget asks for. Never sees data.

Three mechanisms are accounted for.

Gaussian
    mu-Gaussian DP: (epsilon, delta)-DP exactly for delta >= Phi(mu/2 - epsilon/mu) - e^epsilon
    Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018). Our noise is the *discrete* Gaussian on the
    integers. It is a Gaussian of variance sigma^2 - r^2 after a randomized rounding that commutes
    with whole shifts, up to a factor 1 +- n 10^-33 in every probability (n coordinates, r = 2; T3
    of docs/privacy-proofs.md): whatever vector of integers one owner moves, of euclidean length at
    most D, the release is mu-GDP with mu = D / sqrt(sigma^2 - r^2).
Poisson-sampled Gaussian
    Numerically, by dp-accounting's privacy loss distributions, which are pessimistic.
Discrete Laplace
    Of scale D / epsilon: epsilon-DP for shifts of at most D in all (delta = 0).

A `Cost` is what a ledger adds up; `cap` says how.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

from scipy.special import log_ndtr, ndtri

from thresher.errors import InputError, either, option, require
from thresher.inputs.checks import check_choice, check_number

Adjacency = Literal["add-remove", "replace-one"]
Unit = Literal["point", "owner"]
Filter = Literal["gaussian", "basic"]

ROUNDING_VARIANCE = 4.0  # r^2: what the rounding of the proof takes from the noise
ROUNDING = 1e-12  # relative, beyond that of a few float operations
SLACK = 1e-5  # share of delta left aside: small epsilons cancel to six digits
LARGEST_EPSILON = 100.0
LARGEST_SIGMA = 2.0**50  # so that noise and counts together never reach the ends of 64 bits
LEAST_SAMPLED_DELTA = 1e-12  # below, the numbers behind dp-accounting's tables are rounding
FINEST, COARSEST = 1e-4, 2e-3  # steps of the loss in dp-accounting's tables, rounded up to them
TOLERANCE = 1e-3  # of the noise multiplier of a sampled release, on the safe side


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) pair: what is allowed, or what something costs.

    Examples
    --------
    >>> Budget(1, 1e-5)
    Budget(epsilon=1.0, delta=1e-05)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon = check_number(option("epsilon"), self.epsilon, least=1e-6, most=LARGEST_EPSILON)
        delta = check_number(option("delta"), self.delta, least=0.0, most=0.5)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


@dataclass(frozen=True)
class Cost:
    """What a ledger is charged: mu^2 in the Gaussian filter, epsilon and delta in the basic one."""

    mu_squared: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    def stated(self, delta: float) -> str:
        """An epsilon and a delta; a Gaussian cost is stated at the `delta` of the cap."""
        if not (self.mu_squared and delta):
            return f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        epsilon = gaussian_epsilon(math.sqrt(self.mu_squared), delta)
        return f"epsilon={epsilon:.6g}, delta={delta:g}"


def check_adjacency(adjacency: object) -> Adjacency:
    """Return `adjacency` if it is one of the two that exist; raise otherwise."""
    choices = get_args(Adjacency)
    return check_choice(option("adjacency"), adjacency, choices)  # type: ignore[return-value]


def check_filter(filter: object, delta: float) -> Filter:  # noqa: A002 - the word of the field
    """Return `filter`, or the default for this delta if it is None."""
    if filter is None:
        return "gaussian" if delta > 0 else "basic"
    known = check_choice(option("filter"), filter, get_args(Filter))
    if known == "gaussian" and delta == 0:
        raise InputError(f"{option('filter')} must be 'basic' if delta is 0, got 'gaussian'")
    return known  # type: ignore[return-value]


def pure_mu(epsilon: float) -> float:
    """The mu at which every epsilon-DP release is mu-GDP: 2 Phi^-1(1 / (1 + e^-epsilon)).

    Both trade-off curves are symmetric and convex and pass through the same corner. The curve of
    epsilon-DP is straight on either side of that corner, so the Gaussian one lies below.

    Examples
    --------
    >>> round(pure_mu(1.0), 4)
    1.232
    """
    return -2 * float(ndtri(1 / (1 + math.exp(epsilon)))) * (1 + ROUNDING)


def pure_scale(length: int, epsilon: float) -> float:
    """The smallest scale of discrete Laplace noise that makes shifts of this length epsilon-DP.

    It is rounded up. A ledger adds up epsilon as the decimal that it prints as, and under the other
    adjacency twice or half of it. These may be smaller by a rounding, and the scale covers them.

    Examples
    --------
    >>> pure_scale(1, 0.25)
    4.0
    """
    printed = (Fraction(repr(epsilon * times)) / Fraction(times) for times in (0.5, 1.0, 2.0))
    wanted = length / min(Fraction(epsilon), *printed)
    nearest = float(wanted)
    return nearest if nearest >= wanted else math.nextafter(nearest, math.inf)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The smallest delta at which the Gaussian mechanism with sensitivity / sigma = mu is DP."""
    if mu <= 0.0:
        return 0.0
    reach = float(log_ndtr(mu / 2 - epsilon / mu))
    return_path = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return max(0.0, -math.exp(reach) * math.expm1(min(0.0, return_path - reach)))


@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian mechanism is (epsilon, delta)-DP, on the safe side.

    Examples
    --------
    >>> round(1 / gaussian_mu(1.0, 1e-4), 4)  # noise for sensitivity 1
    3.1857
    """
    if delta <= 0.0:
        cells = option("mechanism", "cells")
        raise InputError(f"{option('delta')} must be > 0 for Gaussian noise, got 0: use {cells}")
    kept = delta * (1 - SLACK)
    return last_that_holds(lambda mu: gaussian_delta(epsilon, mu) <= kept, 1e-12, 200.0)


@lru_cache(maxsize=1024)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon at which the Gaussian mechanism with mu is DP, on the safe side."""
    kept = delta * (1 - SLACK)
    most = mu * (mu / 2 + math.sqrt(-2 * math.log(kept))) + 1.0
    return -last_that_holds(lambda e: gaussian_delta(-e, mu) <= kept, -most, 0.0)


def discrete_sigma(length: float, mu: float, largest: float = 1.0) -> float:
    """Sigma of the discrete Gaussian that makes shifts of this length mu-GDP.

    Entries may have weights (T15). Then each entry gets noise of sigma over the root of its weight,
    which hides shifts of this weighted length. `largest` is the largest weight.
    """
    rounding = ROUNDING_VARIANCE * largest
    return check_sigma(math.sqrt((length / mu) ** 2 * (1 + ROUNDING) + rounding))


def check_sigma(sigma: float) -> float:
    """Return `sigma` if it is at most 2^50, so that a sum with noise never wraps; raise otherwise.

    The numbers that noise is added to stay below 2^62. Noise of that size is 2^12 sigma away from
    0, which has a probability below e^-8,000,000.
    """
    if sigma > LARGEST_SIGMA:
        raise InputError(
            f"the noise would have sigma={sigma:.3g} in whole numbers, but at most "
            f"{LARGEST_SIGMA:.3g} is possible: use a larger epsilon or delta, or a smaller bound "
            "or validation set"
        )
    return sigma


def discrete_mu(length: float, sigma: float, largest: float = 1.0) -> float:
    """The mu at which whole shifts of this length are hidden; `largest` as in `discrete_sigma`."""
    return length / math.sqrt(sigma**2 - ROUNDING_VARIANCE * largest)


@lru_cache(maxsize=256)
def sampled_multiplier(budget: Budget, rate: float, steps: int, adjacency: Adjacency) -> float:
    """Noise multiplier (sigma / sensitivity) for `steps` Poisson-sampled Gaussian releases.

    Each step draws a fresh sample at this rate. Bisection; the answer is on the safe side.
    """
    if budget.delta < LEAST_SAMPLED_DELTA:
        others = f"{option('mechanism', 'table')} or {either(repr('cells'), 'cells')}"
        raise InputError(
            f"{option('delta')} must be at least {LEAST_SAMPLED_DELTA:g} for a sampled release, "
            f"got {budget.delta:g}: use {others}"
        )

    def enough(multiplier: float) -> bool:
        delta = sampled_delta(budget.epsilon, rate, multiplier, steps, adjacency)
        return delta <= budget.delta * (1 - SLACK)

    least, most = 0.75, 1.0  # small multipliers take long to account for
    while enough(least) and least > 0.2:
        least, most = 0.75 * least, least
    while not enough(most):
        least, most = most, 2 * most
    while most - least > TOLERANCE * least:
        middle = math.sqrt(least * most)
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def sampled_delta(
    epsilon: float, rate: float, multiplier: float, steps: int, adjacency: Adjacency
) -> float:
    """The delta of `steps` Poisson-sampled Gaussian releases, rounded up.

    Replacing a point removes it and adds another. So the release is (2 e, (1 + e^e) d)-DP for
    replacing if it is (e, d)-DP for adding or removing.
    """
    losses = _sampled_losses(rate, multiplier, steps, _interval(epsilon, steps))
    if adjacency == "add-remove":
        return max(0.0, float(losses.get_delta(epsilon)))
    half = max(0.0, float(losses.get_delta(epsilon / 2)))
    return min(1.0, (1 + math.exp(epsilon / 2)) * half)


def sampled_epsilon(
    delta: float, rate: float, multiplier: float, steps: int, adjacency: Adjacency
) -> float:
    """The epsilon of `steps` Poisson-sampled Gaussian releases, rounded up."""

    def holds(epsilon: float) -> bool:
        return sampled_delta(epsilon, rate, multiplier, steps, adjacency) <= delta

    most = 0.1
    while not holds(most):
        most *= 2
        if most > LARGEST_EPSILON:
            return math.inf
    return -last_that_holds(lambda minus: holds(-minus), -most, 0.0, tolerance=1e-6)


def _interval(epsilon: float, steps: int) -> float:
    """The grid step of the privacy loss at which rounding up costs next to nothing (measured).

    A power of two times the finest, so that tables are computed once for similar epsilons.
    """
    wanted = min(COARSEST, epsilon / (50 * math.sqrt(steps)))
    return FINEST * 2.0 ** max(0, math.floor(math.log2(max(wanted, FINEST) / FINEST)))


@lru_cache(maxsize=64)
def _sampled_losses(rate: float, multiplier: float, steps: int, interval: float) -> Any:
    da = require("dp_accounting", purpose="a sampled release", extra="private")
    pld = require("dp_accounting.pld", purpose="a sampled release", extra="private")
    accountant = pld.PLDAccountant(
        da.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=interval
    )
    event = da.PoissonSampledDpEvent(rate, da.GaussianDpEvent(multiplier))
    return accountant.compose(event, steps)


def last_that_holds(
    holds: Callable[[float], bool], lo: float, hi: float, *, tolerance: float = 1e-14
) -> float:
    """The largest number >= lo at which `holds` is still true, to the last bits."""
    if not holds(lo):
        raise InputError(
            f"epsilon and delta are too small for any noise (mu would be below {lo:g}): use "
            "larger ones"
        )
    if holds(hi):
        return hi
    while hi - lo > tolerance * max(abs(lo), abs(hi)):
        middle = (lo + hi) / 2
        if middle in {lo, hi}:
            break
        lo, hi = (middle, hi) if holds(middle) else (lo, middle)
    return lo
