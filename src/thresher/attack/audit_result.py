"""What an audit found, as a text for people to read, and how it follows from many runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.attack import bounds
from thresher.attack.area import Area, Scores, epsilon_from_area, mu_from_area
from thresher.attack.canaries import guesses
from thresher.attack.noise_size import Shape, too_quiet
from thresher.attack.sampled_bound import Scheme, epsilon_if_sampled
from thresher.privacy.accountants import Budget, gaussian_mu

GUESSED = (10, 3, 1)  # in the one-run audit one canary of so many is guessed at: three tries
FINE = 10.0  # below this sigma whole numbers are too coarse to tell a quiet run
ANY = "the bound from many runs assumes nothing about the mechanism"
GAUSSIAN = "the Gaussian bound assumes that the noise is Gaussian; how much of it is in question"
SAMPLED = (
    "the sampled bound assumes Poisson-sampled releases with Gaussian noise, as accounted for; how "
    "much noise is in question"
)
AREA = "the bound from the area under the ROC curve assumes only that many runs average out"
SPREAD = (
    "the bound from the spread of the noise assumes that noise of the right shape is added to "
    "what is measured; so does the search for runs with almost no noise"
)
REPLAY = (
    "replays assume nothing: with the same table in its place, what leaves is compared bit by bit"
)
ONE_RUN = "the bound from one run assumes that each canary was in by a fair coin of its own"
NO_ONE_RUN = (
    "there is no bound from one run, because the claim covers one released value, not all of them"
)
CANARY = (
    "the canary is the worst we know for this mechanism, alone among made-up validation points, so "
    "real points are hidden better"
)
SEEDED = "noise was drawn from a seed, not from the operating system as in a release"


@dataclass(frozen=True)
class Audit:
    """What was claimed, what was proven, and what was assumed; `print` shows all of it.

    The bounds share the false-alarm rate. If the claim is true, `passed` is False with
    probability at most 1 - confidence.

    Parameters
    ----------
    mechanism, epsilon, delta, adjacency
        What was claimed, and about which mechanism.
    runs, canaries
        How many runs there were of each kind, and how many canaries were in the one run.
    confidence
        How sure the bounds are, all of them together.
    lower_bound
        A lower bound on epsilon from many runs, which holds for any mechanism.
    gaussian_bound, sampled_bound, spread_bound
        The same for Gaussian noise, for Gaussian noise on a Poisson sample, and from the spread of
        the noise. None if they do not apply.
    area_bound, one_run_bound
        The same from the area under the ROC curve, and from one run with many canaries.
    auroc, auroc_error, auroc_ceiling
        How well runs with and without the canary can be told apart, the standard error of that,
        and the highest that the claim allows.
    certifiable
        The largest epsilon that this many runs could prove without assumptions.
    replays
        How many runs repeated an earlier one.
    leaks
        Problems that were found directly, not through a bound.
    assumptions
        What the bounds take for granted.

    Examples
    --------
    >>> import thresher as th
    >>> audit = th.audit_runs(range(100, 200), range(100), epsilon=0.1, delta=0)
    >>> audit.passed, audit.epsilon
    (False, 0.1)
    """

    mechanism: str
    epsilon: float
    delta: float
    adjacency: str
    runs: int  # of each kind
    canaries: int  # in the one run
    confidence: float
    lower_bound: float
    gaussian_bound: float | None
    sampled_bound: float | None
    area_bound: float
    spread_bound: float | None
    one_run_bound: float | None
    auroc: float
    auroc_error: float
    auroc_ceiling: float
    certifiable: float
    replays: int
    leaks: tuple[str, ...]  # what is wrong beside all bounds
    assumptions: tuple[str, ...]

    @property
    def proven(self) -> float:
        """The largest of the bounds."""
        return max(bound for _, bound in self._bounds())

    @property
    def passed(self) -> bool:
        """Whether no bound exceeds the claim, and nothing leaks."""
        return self.proven <= self.epsilon and not self.leaks

    @property
    def verdict(self) -> str:
        """The result of the audit in one sentence."""
        by = max(self._bounds(), key=lambda pair: pair[1])[0]
        claimed = f"{self.epsilon:g} was claimed"
        sure = f"with confidence {self.confidence:g}"
        if self.proven <= self.epsilon and self.leaks:
            return f"violated: {'; '.join(self.leaks)}; epsilon {claimed}"
        if not self.passed:
            return f"violated: epsilon is at least {self.proven:.3g} {sure} ({by}), {claimed}"
        most = f"if nothing is assumed, this many runs prove {self.certifiable:.3g} at most"
        found = f"epsilon is at least {self.proven:.3g} {sure}, {claimed}"
        return f"no violation found, which is no proof: {found}; {most}"

    def to_json(self) -> str:
        """Everything in the audit, as JSON for programs."""
        more = {"proven": self.proven, "passed": self.passed, "verdict": self.verdict}
        return json.dumps(asdict(self) | more)

    def _bounds(self) -> list[tuple[str, float]]:
        named = (
            ("many runs", self.lower_bound), ("many runs, Gaussian noise", self.gaussian_bound),
            ("many runs, sampled Gaussian noise", self.sampled_bound),
            ("area under the ROC curve", self.area_bound),
            ("spread of the noise", self.spread_bound),
            ("one run", self.one_run_bound),
        )  # fmt: skip
        return [(name, bound) for name, bound in named if bound is not None]

    def __str__(self) -> str:
        measured = f"{self.auroc:.4f} (standard error {self.auroc_error:.4f})"
        most = f"if the claim holds, the true one is at most {self.auroc_ceiling:.4f}"
        rows = [
            ("claimed", f"epsilon {self.epsilon:g}, delta {self.delta:g}, {self.adjacency}"),
            *((f"proven, {name}", f"epsilon >= {bound:.4f}") for name, bound in self._bounds()),
            ("attack AUROC", f"{measured}; {most}"),
            ("runs", f"{self.runs} with and {self.runs} without the canary"),
            ("canaries in one run", str(self.canaries)),
            ("replays of what leaves", str(self.replays)),
            *(("leaks", sentence) for sentence in self.leaks),
            ("confidence", f"{self.confidence:g}, of all bounds together"),
        ]
        width = max(len(name) for name, _ in rows)
        table = [f"  {name:<{width}}  {text}" for name, text in rows]
        notes = [f"  - {sentence}" for sentence in self.assumptions]
        return "\n".join([f"Audit of {self.mechanism}", *table, "Assumed", *notes, self.verdict])


@dataclass(frozen=True)
class Claim:
    """What is claimed, and for which noise."""

    name: str
    budget: Budget
    adjacency: str
    gaussian: bool
    scheme: Scheme | None = None
    shape: Shape | None = None


@dataclass(frozen=True)
class Evidence:
    """The results of the runs: scores, noise, one release of many canaries, replays."""

    inside: Floats  # scores of one canary, in independent runs
    outside: Floats
    pooled: Scores  # of all canaries
    louder: Scores | None = None
    noise: Integers | None = None
    single: tuple[Floats, Integers] | None = None
    leaks: tuple[str, ...] = ()
    replays: int = 0


def audited(claim: Claim, found: Evidence, confidence: float, notes: Sequence[str] = ()) -> Audit:
    """Compute all bounds; each gets an equal part of the false-alarm rate."""
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
    """The epsilon that the observed noise implies, and a sentence if some runs had hardly any."""
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
