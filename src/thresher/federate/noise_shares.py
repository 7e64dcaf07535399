"""Shares of noise: how much each silo adds, and how much noise the sum has.

Of k survivors, t may collude, and they know their own shares. So each silo adds a discrete Gaussian
of variance sigma^2 / (k - t). Then the shares of the other k - t silos already hide what sigma
hides (T12 of docs/privacy-proofs.md). If all n silos survive, the sum has n / (k - t) times that
variance.
"""

from __future__ import annotations

import math

from thresher.errors import InputError, option
from thresher.privacy.accountants import SLACK, check_sigma

DISTANCE = 2.0**-85  # of a million drawn numbers from their distribution, at most
LEAST_VARIANCE = 16.0  # of a share: sums are then discrete Gaussians up to a factor 1 +- 10^-67


def share_sigma(sigma: float, fewest: int, colluding: int) -> float:
    """Sigma of one silo's share of the noise."""
    variance = sigma**2 / (fewest - colluding)
    if variance < LEAST_VARIANCE:
        raise InputError(
            f"a share of the noise would have variance {variance:.3g} in whole numbers, but at "
            f"least {LEAST_VARIANCE:g} is needed: use a smaller {option('epsilon')}"
        )
    return math.sqrt(variance)


def noise_excess(silos: int, fewest: int, colluding: int) -> float:
    """The variance of the noise of `silos` silos, divided by what the guarantee needs.

    Examples
    --------
    >>> noise_excess(50, 40, 10)
    1.6666666666666667
    """
    return silos / (fewest - colluding)


def check_draws(epsilon: float, delta: float) -> None:
    """Raise if shares are not drawn exactly enough for a budget (T12)."""
    if (1 + math.exp(epsilon)) * DISTANCE > SLACK * delta:
        raise InputError(
            f"{option('epsilon')}={epsilon:g} is too large for {option('delta')}={delta:g}: silos "
            "do not draw their noise exactly enough. Use a smaller epsilon or a larger delta"
        )


def check_total(sigma: float, excess: float) -> None:
    """Raise if the noise could wrap around 64 bits."""
    check_sigma(sigma * math.sqrt(excess))
