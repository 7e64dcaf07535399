"""Audits of a claimed epsilon: what the releases themselves prove about it.

A proof says how much a release can cost at most, an audit how much it costs at least. Where the
least is more than what was claimed, the proof, the code or the noise is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.attack.audit_result import (
    ANY,
    CANARY,
    GAUSSIAN,
    NO_ONE_RUN,
    ONE_RUN,
    SAMPLED,
    SEEDED,
    Audit,
)
from thresher.attack.bounds import (
    auroc,
    ceiling,
    certifiable,
    epsilon_from_one_run,
    epsilon_from_runs,
    epsilon_if_gaussian,
    gaussian_ceiling,
    level,
    mu_from_runs,
    read_scores,
)
from thresher.attack.canaries import Bait, Buffered, Pair, guesses, knn_pair
from thresher.attack.sampled_bound import Scheme, epsilon_if_sampled
from thresher.checks import check_choice, check_count, check_flag, check_number
from thresher.errors import InputError, option
from thresher.privacy.accountants import Adjacency, Budget, check_adjacency, gaussian_mu
from thresher.privacy.cells_mechanism import Cells
from thresher.privacy.dp_knn import KNNDesign
from thresher.privacy.mechanisms import MECHANISMS, Mechanism
from thresher.privacy.noise import noise_source
from thresher.privacy.paper_mechanism import PaperDesign
from thresher.privacy.table_mechanism import Table
from thresher.progress import progress_bar

__all__ = ["Audit", "audit_mechanism", "audit_runs"]

Floats = NDArray[np.float64]

LEAST_RUNS = 100
NEIGHBORS = 8
GUESSED = (10, 3, 1)  # in the one-run audit one canary of so many is guessed at: three tries
USUAL_K = 5


def audit_mechanism(
    mechanism: str | Mechanism = "table", *, epsilon: float, delta: float,
    adjacency: str = "add-remove", runs: int = 20000, canaries: int = 200,
    confidence: float = 0.999, near: int | None = None, k: int | None = None,
    subsample: float | None = None, seed: int | None = None, progress: bool = False,
) -> Audit:  # fmt: skip
    """What many releases of this library's own mechanisms prove about their epsilon.

    Parameters
    ----------
    mechanism
        "table", "paper", "cells" or "knn" (`dp_knn_shapley`), or one of `thresher.privacy.Table`,
        `Paper`, `Cells` with options.
    epsilon, delta, adjacency
        The claim, as in `dp_tknn_shapley`. The claim of "cells" is about delta = 0.
    runs
        Releases with the canary, and as many without it.
    canaries
        In the single release of the one-run audit; 0 leaves it out.
    confidence
        If the claim is true, the audit says otherwise with probability at most 1 - confidence.
    near
        Validation points near the canary; without it as many as `Table(bound=...)` says, else 8.
    k, subsample
        For "knn", as in `dp_knn_shapley`.
    seed
        For tests: as in `dp_tknn_shapley`, without it noise comes from the operating system.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    Audit
        Bounds, AUROC, verdict; `print` it.

    Notes
    -----
    Every run goes through the mechanism's own code for noise and counts. `thresher.attack.bounds`
    has the formulas. The cost is that of the noise: about 15 microseconds for each number from the
    operating system, and 2 (paper: 2 or 3) numbers for each run and neighbor.

    Examples
    --------
    >>> audit = audit_mechanism("cells", epsilon=1, delta=0, runs=5000, canaries=0, seed=0)
    >>> audit.passed, round(audit.lower_bound, 2)
    (True, 0.75)
    """
    budget, known = Budget(epsilon, delta), check_adjacency(adjacency)
    runs = check_count("runs", runs, least=LEAST_RUNS)
    known_near = None if near is None else check_count("near", near)
    sizes = known_near, check_count("canaries", canaries, least=0)
    check_flag("progress", progress)
    level(confidence)
    source = Buffered(noise_source(seed))
    plan = _plan(mechanism, budget, known, sizes, k, subsample)
    with progress_bar("audit", 2 * runs, show=progress, unit="runs") as advance:
        inside, outside = (
            plan.pair.scores(source, runs, canary=canary, advance=advance)
            for canary in (True, False)
        )
    return _audit(
        plan, (inside, outside), confidence=confidence,
        one_run=None if plan.crowd is None else _one_run(plan.crowd, source, seed),
        notes=(CANARY, *plan.notes, *(() if seed is None else (SEEDED,))),
    )  # fmt: skip


def audit_runs(
    inside: ArrayLike, outside: ArrayLike, *, epsilon: float, delta: float,
    confidence: float = 0.999, gaussian: bool = False,
) -> Audit:  # fmt: skip
    """What the scores of anybody's runs prove about a claimed epsilon.

    Parameters
    ----------
    inside, outside
        A score of each run with and without the canary, whatever it is made of: the higher, the
        more likely the canary was in. Runs are independent.
    epsilon, delta, confidence
        As in `audit_mechanism`.
    gaussian
        Whether to assume that the mechanism adds Gaussian noise: a far sharper bound.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> inside, outside = random.normal(1, 1, 10_000), random.normal(0, 1, 10_000)
    >>> audit_runs(inside, outside, epsilon=1, delta=1e-5).verdict
    'violated: epsilon is at least 1.68 with confidence 0.999 (many runs), 1 was claimed'
    """
    budget = Budget(epsilon, delta)
    plan = _Plan("runs", budget, budget.delta, "as in the runs", gaussian=check_flag(
        "gaussian", gaussian
    ))  # fmt: skip
    if gaussian and budget.delta == 0:
        raise InputError("gaussian=True goes with delta > 0: Gaussian noise is never epsilon-DP")
    scores = read_scores("inside", inside), read_scores("outside", outside)
    return _audit(plan, scores, confidence=confidence, one_run=None, notes=())


@dataclass(frozen=True)
class _Plan:
    """What is claimed, and how to put it to the test."""

    name: str
    budget: Budget
    delta: float
    adjacency: str
    gaussian: bool = False
    scheme: Scheme | None = None
    pair: Any = None
    crowd: Bait | None = None
    notes: tuple[str, ...] = ()


def _plan(
    mechanism: object, budget: Budget, adjacency: Adjacency, sizes: tuple[int | None, int],
    k: object, subsample: object,
) -> _Plan:  # fmt: skip
    if isinstance(mechanism, str) and mechanism == "knn":
        return _knn_plan(
            budget, adjacency, sizes[0] or NEIGHBORS, USUAL_K if k is None else k, subsample
        )
    if k is not None or subsample is not None:
        raise InputError(f"k and subsample go with {option('mechanism', 'knn')}, got {mechanism!r}")
    if not isinstance(mechanism, Mechanism):
        mechanism = MECHANISMS[check_choice("mechanism", mechanism, (*MECHANISMS, "knn"))]()
    bound = mechanism.bound if isinstance(mechanism, Table) else "usual"
    most = NEIGHBORS if isinstance(bound, str) else bound
    bait = Bait.of(mechanism, budget, adjacency, 1, sizes[0] or most)
    each = 1 if isinstance(bound, str) else bound
    crowd = Bait.of(mechanism, budget, adjacency, sizes[1], each) if sizes[1] else None
    design, pure = bait.design, isinstance(mechanism, Cells)
    scheme = None
    if isinstance(design, PaperDesign):
        scheme = Scheme(design.options.rate, design.steps, design.multiplier, adjacency)
    name = f"{design.record['mechanism']} ({design.record['noise']}, {design.record['scheme']})"
    return _Plan(
        name, budget, 0.0 if pure else budget.delta, adjacency, not pure and scheme is None, scheme,
        bait.pair(), crowd,
    )  # fmt: skip


def _knn_plan(
    budget: Budget, adjacency: Adjacency, neighbors: int, k: object, subsample: object
) -> _Plan:
    rate = None if subsample is None else check_number("subsample", subsample, least=1e-6, most=1)
    design = KNNDesign(
        budget, check_count("k", k), neighbors, None if rate == 1 else rate, adjacency, seeded=False
    )
    scheme = None
    if design.rate is not None:
        scheme = Scheme(design.rate, neighbors, design.multiplier, adjacency)
    pair: Pair = knn_pair(design)
    how = design.record()["scheme"]
    return _Plan(
        f"knn (discrete Gaussian, {how})", budget, budget.delta, adjacency, scheme is None, scheme,
        pair, None, (NO_ONE_RUN,),
    )  # fmt: skip


def _one_run(
    crowd: Bait, source: Buffered, seed: int | None
) -> Callable[[float, float], tuple[int, float]]:
    """One release of many canaries; its bound at a delta and a confidence."""
    random = np.random.default_rng(None if seed is None else [seed, 1])
    truth = random.random(len(crowd.canaries)) < 0.5
    scores, coins = crowd.one_release(source, truth), np.where(truth, 1, -1)

    def bound(delta: float, confidence: float) -> tuple[int, float]:
        each = 1 - (1 - confidence) / len(GUESSED)
        tries = (guesses(scores, -(-len(scores) // share)) for share in GUESSED)
        found = (epsilon_from_one_run(t, coins, delta=delta, confidence=each) for t in tries)
        return len(coins), max(found)

    return bound


def _audit(
    plan: _Plan, scores: tuple[Floats, Floats], *, confidence: float,
    one_run: Callable[[float, float], tuple[int, float]] | None, notes: tuple[str, ...],
) -> Audit:  # fmt: skip
    """All bounds; each gets an equal part of the false-alarm rate."""
    confidence = 1 - level(confidence)
    epsilon, delta, scheme = plan.budget.epsilon, plan.delta, plan.scheme
    used = 1 + plan.gaussian + (scheme is not None) + (one_run is not None)
    each = 1 - (1 - confidence) / used
    canaries, single = (0, None) if one_run is None else one_run(delta, each)
    mu = mu_from_runs(*scores, confidence=each) if plan.gaussian else 0.0
    sampled = None
    if scheme is not None:
        sampled = epsilon_if_sampled(*scores, scheme, epsilon=epsilon, delta=delta, confidence=each)
    reach = gaussian_ceiling(gaussian_mu(epsilon, delta)) if plan.gaussian else None
    area, error = auroc(*scores)
    assumed = (
        (ANY, True), (GAUSSIAN, plan.gaussian), (SAMPLED, scheme is not None),
        (ONE_RUN, one_run is not None),
    )  # fmt: skip
    return Audit(
        plan.name, epsilon, delta, plan.adjacency, min(len(part) for part in scores), canaries,
        confidence, epsilon_from_runs(*scores, delta=delta, confidence=each),
        epsilon_if_gaussian(mu, delta) if plan.gaussian else None, sampled, single, area, error,
        ceiling(epsilon, delta) if reach is None else reach,
        certifiable(min(len(part) for part in scores), delta=delta, confidence=each),
        (*(sentence for sentence, holds in assumed if holds), *notes),
    )  # fmt: skip
