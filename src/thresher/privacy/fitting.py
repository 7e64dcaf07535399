"""The bound that fits the number of points, by simulation on public data.

A small bound means little noise, but more is clipped. The prior makes up for that, but its error is
a share of the values, and no number of points makes it smaller. So the more points there are, the
larger the bound should be. Candidates are tried on made-up points: validation points, drawn with
unequal chances. The chances are unequal because the real points are a different sample, from
classes whose shares differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.privacy.entry_weights import EntryWeights
from thresher.privacy.public_rows import MOST_ROWS, Public
from thresher.privacy.table_design import TableDesign

Design = TypeVar("Design", bound=TableDesign)

QUANTILES = (0.25, 0.5, 0.8, 0.95, 1.0)  # of what validation points are near: bounds that are tried
TRIALS = 2
CLASS_SHIFT = 0.5  # the standard deviation of the logarithm of a class's share
UNFITTED = 0.25  # share of public units that are not clipped if the number of points is unknown
BETTER = 0.99  # a larger bound must be better by this to be taken


def fitted(design: Design, points: int) -> Design:
    """The design with the bound that has the smallest error on this many made-up points."""
    public, size = design.public, design.setting.points_per_owner or 1
    assert public is not None  # noqa: S101 - by those who call
    made = [_made(public, size, max(1, points // size), trial) for trial in range(TRIALS)]
    bounds = np.unique(candidate_bounds(public, design.entries, size, QUANTILES)).tolist()
    tried = [replace(design, bound=bound) for bound in bounds]
    best, least = tried[0], np.inf
    for simulated in tried:
        error = float(np.mean([_missed(simulated, public, each) for each in made]))
        if error < BETTER * least:
            best, least = simulated, error
    return best


def candidate_bounds(
    public: Public, entries: EntryWeights, size: int, shares: tuple[float, ...]
) -> Integers:
    """The quantiles, at these shares, of the squared weighted lengths of public units."""
    if size > 1:  # owners of so many points each
        lengths = entries.lengths(public.grouped(size))
    else:
        lengths = public.lengths(entries) + entries.squares[public.rows]
    return np.maximum(1, np.quantile(lengths, shares)).astype(np.int64)


def usual_bound(public: Public, entries: EntryWeights, size: int = 1) -> int:
    """The squared weighted length that a quarter of the public units do not exceed.

    A training point with a longer vector is scaled down, and the prior makes up for it: less noise
    for all is worth more. Shares from a tenth to a half give similar results
    (benchmarks/privacy.py).
    """
    return int(candidate_bounds(public, entries, size, (UNFITTED,))[0])


def _made(public: Public, size: int, units: int, seed: int) -> tuple[Floats, Floats]:
    """Vectors of made-up units, and how many units have each."""
    random = np.random.default_rng(seed)
    kinds = public.kinds
    chance = random.standard_exponential(len(kinds))
    chance *= np.exp(CLASS_SHIFT * random.standard_normal(int(kinds.max()) + 1))[kinds]
    if size > 1:
        vectors = public.owners(size, chance, random)
        chance = np.ones(len(vectors))
    else:
        some = slice(None, None, -(-len(kinds) // MOST_ROWS))
        vectors, chance = public.vectors(some), chance[some]
    return vectors, random.multinomial(units, chance / chance.sum()).astype(np.float64)


def _missed(design: TableDesign, public: Public, made: tuple[Floats, Floats]) -> float:
    """The relative error that a design makes in the values of validation points."""
    setting = design.setting
    random, (vectors, drawn) = np.random.default_rng(0), made
    lengths = design.clipping.entries.lengths(vectors)
    kept = design.clipping.shares(lengths, public.one) * design.scale
    exact = setting.prices((drawn @ vectors).reshape(setting.entries, -1))
    measured = ((drawn * kept) @ vectors).reshape(setting.entries, -1)
    noise = design.deviations * random.standard_normal(measured.shape)
    found = design.prices(np.rint(measured + noise).astype(np.int64))
    truth, values = public.worth(exact.member_prices), public.worth(found.member_prices)
    return float(np.sqrt(((values - truth) ** 2).mean() / max((truth**2).mean(), 1e-300)))
