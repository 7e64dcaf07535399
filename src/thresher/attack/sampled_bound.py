"""A lower bound on epsilon that assumes Poisson-sampled Gaussian releases, and only their noise.

This is for sampled releases what `mu_from_runs` and `epsilon_if_gaussian` are for Gaussian noise.
It is much sharper than Clopper and Pearson at one delta, because it compares the runs with the
whole trade-off curve that the accountant claims.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.attack.bounds import best_event, least_share, level, most_share, parts
from thresher.privacy.accountants import Adjacency, sampled_delta, sampled_epsilon

LOSSES = 24  # epsilons at which the claimed curve is looked up
HALVINGS = 9  # of the interval in which the noise multiplier is sought
ALARMS = np.linspace(0.0, 1.0, 501)  # shares of false alarms over which an area is taken
LESS, MORE = 2.0, 8.0  # times the noise claimed: what is considered (less takes long)


@dataclass(frozen=True)
class Scheme:
    """A number of releases, each of a fresh Poisson sample, with Gaussian noise."""

    rate: float
    steps: int
    multiplier: float  # noise over sensitivity, as accounted for
    adjacency: Adjacency

    def ceiling(self, multiplier: float, epsilon: float) -> Any:
        """The largest share of hits that this noise allows at each share of false alarms.

        It is the minimum over e of d(e) + exp(e) q and 1 - exp(-e) (1 - d(e) - q), with d the
        accountant's delta.
        """
        grid = epsilon * np.linspace(1 / 8, 3.0, LOSSES)  # below, accounting takes long
        deltas = np.array([
            sampled_delta(float(e), self.rate, multiplier, self.steps, self.adjacency) for e in grid
        ])  # fmt: skip

        def most(alarms: Any) -> NDArray[np.float64]:
            q = np.asarray(alarms, np.float64)[..., None]
            forth, back = deltas + np.exp(grid) * q, 1 - np.exp(-grid) * (1 - deltas - q)
            return np.minimum(forth, back).min(axis=-1)

        return most


def epsilon_if_sampled(
    inside: ArrayLike, outside: ArrayLike, scheme: Scheme, *, epsilon: float, delta: float,
    confidence: float = 0.999, area: float = 0.5,
) -> float:  # fmt: skip
    """The epsilon of the scheme with the largest noise that the runs do not contradict.

    Parameters
    ----------
    inside, outside
        Scores of runs with and without the canary.
    scheme
        How often it releases, at what rate, with what noise. The noise is what is in question.
    epsilon, delta
        The claim: where to look.
    confidence
        The bound is too high with probability at most 1 - confidence, if the scheme is of this
        kind.
    area
        A lower limit of the area under the ROC curve, if there is one, with its own confidence.
    """
    alpha = level(confidence) / 2
    P, p_rest, Q, q_rest = parts(inside, outside, 10)
    event = best_event(P, Q, _contrast)[1]
    least = least_share(int(event(p_rest).sum()), len(p_rest), alpha)
    most = most_share(int(event(q_rest).sum()), len(q_rest), alpha)
    if least <= most and area <= 0.5:
        return 0.0
    few, many = scheme.multiplier / LESS, scheme.multiplier * MORE
    for _ in range(HALVINGS):
        middle = math.sqrt(few * many)
        curve = scheme.ceiling(middle, epsilon)
        refuted = least > curve(most) or area > np.trapezoid(curve(ALARMS), ALARMS)
        few, many = (few, middle) if refuted else (middle, many)
    if many >= scheme.multiplier * MORE:
        return 0.0
    return sampled_epsilon(delta, scheme.rate, many, scheme.steps, scheme.adjacency)


def _contrast(hits: Any, runs: int, others: Any, other_runs: int) -> Any:
    """How many standard errors lie between two shares."""
    p, q = hits / runs, others / other_runs
    return (p - q) / np.sqrt((p * (1 - p) + 1 / runs) / runs + (q * (1 - q)) / other_runs)
