"""The bound that fits the number of points, by simulation on public data.

A small bound means little noise, but more is clipped, and what the prior makes up for that is off
by a share that no number of points makes smaller. So the more points there are, the larger the
bound should be. Candidates are tried on made-up points: validation points, drawn with unequal
chances, since the real ones are a different sample, from classes whose shares differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.price_list import PriceList
from thresher.privacy.contributions import clipped_weights
from thresher.privacy.design import Floats, Setting
from thresher.privacy.prior import MOST_ROWS, Public

Integers = NDArray[np.int64]

QUANTILES = (0.25, 0.5, 0.8, 0.95, 1.0)  # of what validation points are near: bounds that are tried
TRIALS = 2
CLASS_SHIFT = 0.5  # the standard deviation of the logarithm of a class's share
BETTER = 0.99  # a larger bound must be better by this to be taken


class Simulated(Protocol):
    """A mechanism as far as it is tried: noise, scale, and prices of a release."""

    @property
    def scale(self) -> int:
        """Weights are whole numbers of this part of one."""

    @property
    def sigma(self) -> float:
        """Of the noise on the scaled table."""

    def prices(self, release: Integers) -> PriceList:
        """The price list of a release."""


def fitted_bound(
    public: Public, setting: Setting, points: int, design: Callable[[int], Simulated]
) -> int:
    """The bound with the smallest error of values on made-up points, so many of them."""
    size = setting.points_per_owner or 1
    if size > 1:
        vectors, classes = public.grouped(size), None
    else:
        some = slice(None, None, -(-len(public.near) // MOST_ROWS))
        vectors, classes = public.vectors(some), public.codes[public.rows[some]]
    squares = np.minimum((vectors**2).sum(axis=1), 2.0**62).astype(np.int64)
    tried = np.unique(np.maximum(1, np.quantile(squares + (size == 1), QUANTILES).astype(np.int64)))
    made = [_made(len(vectors), classes, max(1, points // size), trial) for trial in range(TRIALS)]
    best, least = 0, np.inf
    for bound in tried.tolist():
        simulated = design(bound)
        kept = clipped_weights(squares, bound, simulated.scale)
        error = float(
            np.mean([_missed(simulated, public, setting, z, vectors, kept) for z in made])
        )
        if error < BETTER * least:
            best, least = bound, error
    return best or int(tried[0])


def _made(rows: int, classes: NDArray[np.int32] | None, units: int, seed: int) -> Floats:
    """How often each row is drawn."""
    random = np.random.default_rng(seed)
    chance = random.standard_exponential(rows)
    if classes is not None:
        chance *= np.exp(CLASS_SHIFT * random.standard_normal(int(classes.max()) + 1))[classes]
    return random.multinomial(units, chance / chance.sum()).astype(np.float64)


def _missed(
    design: Simulated, public: Public, setting: Setting, drawn: Floats, vectors: Floats,
    kept: Integers,
) -> float:  # fmt: skip
    """The relative error of the values of validation points."""
    random = np.random.default_rng(0)
    exact = setting.prices(tuple(np.split(drawn @ vectors, 2)))  # type: ignore[arg-type]
    measured = np.split((drawn * kept) @ vectors, 2)
    noise = design.sigma * random.standard_normal(np.shape(measured))
    found = design.prices(np.rint(measured + noise).astype(np.int64))
    truth = public.values(exact.gain, exact.loss)
    values = public.values(found.gain, found.loss)
    return float(np.sqrt(((values - truth) ** 2).mean() / max((truth**2).mean(), 1e-300)))
