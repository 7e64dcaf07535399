"""From what many runs gave to bounds on epsilon, within one false-alarm rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.attack import bounds
from thresher.attack.area import Area, Scores, epsilon_from_area, mu_from_area
from thresher.attack.audit_result import (
    ANY,
    AREA,
    GAUSSIAN,
    ONE_RUN,
    REPLAY,
    SAMPLED,
    SPREAD,
    Audit,
)
from thresher.attack.canaries import guesses
from thresher.attack.noise_size import Shape, too_quiet
from thresher.attack.sampled_bound import Scheme, epsilon_if_sampled
from thresher.privacy.accountants import Budget, gaussian_mu

GUESSED = (10, 3, 1)  # in the one-run audit one canary of so many is guessed at: three tries
FINE = 10.0  # below this sigma whole numbers are too coarse to tell a quiet run


@dataclass(frozen=True)
class Claim:
    """What is claimed, and of what noise."""

    name: str
    budget: Budget
    adjacency: str
    gaussian: bool
    scheme: Scheme | None = None
    shape: Shape | None = None


@dataclass(frozen=True)
class Evidence:
    """What runs gave: scores, noise, one release of many canaries, replays."""

    inside: Floats  # scores of one canary, in independent runs
    outside: Floats
    pooled: Scores  # of all canaries
    louder: Scores | None = None
    noise: Integers | None = None
    single: tuple[Floats, Integers] | None = None
    leaks: tuple[str, ...] = ()
    replays: int = 0


def audited(claim: Claim, found: Evidence, confidence: float, notes: Sequence[str] = ()) -> Audit:
    """All bounds; each gets an equal part of the false-alarm rate."""
    total, scheme = bounds.level(confidence), claim.scheme
    epsilon, delta = claim.budget.epsilon, claim.budget.delta
    shape = claim.shape if found.noise is not None else None
    made = {
        ANY: 1, AREA: 1 + 2 * (found.louder is not None), GAUSSIAN: int(claim.gaussian),
        SAMPLED: int(scheme is not None), SPREAD: 2 * (shape is not None),
        ONE_RUN: int(found.single is not None),
    }  # fmt: skip
    alpha = total / sum(made.values())
    least = 1 - alpha
    area = Area.of(found.pooled)
    reach = max(area.least(alpha), 0.0)
    if found.louder is not None:  # runs with the canary may be louder, or quieter
        turned = replace(found.louder, scores=-found.louder.scores)
        reach = max(reach, *(Area.of(each).least(alpha) for each in (found.louder, turned)))
    gaussian = sampled = spread = single = None
    scores = found.inside, found.outside
    most, runs = bounds.ceiling(epsilon, delta), min(len(part) for part in scores)
    if claim.gaussian:
        mu = max(bounds.mu_from_runs(*scores, confidence=least), mu_from_area(reach))
        gaussian = bounds.epsilon_if_gaussian(mu, delta)
        most = bounds.gaussian_ceiling(gaussian_mu(epsilon, delta))
    if scheme is not None:
        options = {"epsilon": epsilon, "delta": delta, "confidence": least, "area": reach}
        sampled = epsilon_if_sampled(*scores, scheme, **options)
    leaks = found.leaks
    if shape is not None and found.noise is not None:
        spread, quiet = _noise(shape, found.noise, alpha)
        leaks += quiet
    if found.single is not None:
        single = _one_run_bound(*found.single, delta, alpha)
    sentences = [sentence for sentence, holds in made.items() if holds]
    return Audit(
        claim.name, epsilon, delta, claim.adjacency, runs,
        0 if found.single is None else len(found.single[1]), 1 - total,
        bounds.epsilon_from_runs(*scores, delta=delta, confidence=least), gaussian, sampled,
        epsilon_from_area(reach, delta), spread, single, area.value, area.error, most,
        bounds.certifiable(runs, delta=delta, confidence=least), found.replays, leaks,
        (*sentences, *([REPLAY] if found.replays else []), *notes),
    )  # fmt: skip


def _noise(shape: Shape, noise: Integers, alpha: float) -> tuple[float, tuple[str, ...]]:
    """The epsilon of the noise that was seen, and a sentence if runs had next to none of it."""
    numbers, energy = math.prod(noise.shape[1:]), shape.energy(noise)
    spread = shape.epsilon(shape.most(energy, numbers, alpha))
    if shape.kind == "gaussian" and shape.scale < FINE:
        return spread, ()
    found, step = [], int(np.gcd.reduce(noise, axis=None))
    if step > 1:  # by chance next to never
        found.append(f"noise comes in steps of {step}: what is measured in between shows through")
    quiet, expected = shape.quiet(energy, numbers)
    if too_quiet(quiet, expected, alpha):
        rare = f"{expected:.2g} are expected"
        found.append(f"{quiet} of {len(energy)} runs had almost no noise, {rare}")
    return spread, tuple(found)


def _one_run_bound(scores: Floats, coins: Integers, delta: float, alpha: float) -> float:
    tries = (guesses(scores, -(-len(scores) // share)) for share in GUESSED)
    each = 1 - alpha / len(GUESSED)
    return max(
        bounds.epsilon_from_one_run(made, coins, delta=delta, confidence=each) for made in tries
    )
