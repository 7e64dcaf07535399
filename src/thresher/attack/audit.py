"""Audits of a claimed epsilon: what the releases themselves prove about it.

A proof says how much a release can cost at most, an audit how much it costs at least. Where the
least is more than what was claimed, the proof, the code or the noise is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.attack import bounds
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
from thresher.attack.canaries import Bait, Buffered, Pair, guesses, knn_pair
from thresher.attack.roc import Roc
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
from thresher.regression import CLASSES, check_task

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
    task: str = CLASSES,
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
    task
        As in `dp_tknn_shapley`: "regression" goes with "table".

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
    near = None if near is None else check_count("near", near)
    canaries = check_count("canaries", canaries, least=0)
    check_flag("progress", progress)
    bounds.level(confidence)
    source = Buffered(noise_source(seed))
    notes, crowd = [CANARY], None
    if isinstance(mechanism, str) and mechanism == "knn":
        notes.append(NO_ONE_RUN)
        claim, pair = _knn_claim(budget, known, near, k, subsample)
    elif k is not None or subsample is not None:
        raise InputError(f"k and subsample go with {option('mechanism', 'knn')}, got {mechanism!r}")
    else:
        claim, pair, crowd = _claim(mechanism, budget, known, near, canaries, check_task(task))
    with progress_bar("audit", 2 * runs, show=progress, unit="runs") as advance:
        inside, outside = (
            pair.scores(source, runs, canary=canary, advance=advance) for canary in (True, False)
        )
    notes += [] if seed is None else [SEEDED]
    one_run = None
    if crowd is not None:  # the scores of many canaries in one release, and whether each was in
        random = np.random.default_rng(None if seed is None else [seed, 1])
        truth = random.random(len(crowd.canaries)) < 0.5
        one_run = crowd.one_release(source, truth), np.where(truth, 1, -1)
    return _audit(claim, (inside, outside), confidence, one_run, notes)


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
    claim = _Claim("runs", budget, "as in the runs", check_flag("gaussian", gaussian))
    if gaussian and budget.delta == 0:
        raise InputError("gaussian=True goes with delta > 0: Gaussian noise is never epsilon-DP")
    scores = bounds.read_scores("inside", inside), bounds.read_scores("outside", outside)
    return _audit(claim, scores, confidence)


class _Claim(NamedTuple):
    """What is claimed, and of what noise."""

    name: str
    budget: Budget
    adjacency: str
    gaussian: bool
    scheme: Scheme | None = None


def _claim(
    mechanism: object,
    budget: Budget,
    adjacency: Adjacency,
    near: int | None,
    canaries: int,
    task: str,
) -> tuple[_Claim, Pair, Bait | None]:
    """The claim, a pair of data sets for many runs, and a crowd of canaries for one."""
    if not isinstance(mechanism, Mechanism):
        mechanism = MECHANISMS[check_choice("mechanism", mechanism, (*MECHANISMS, "knn"))]()
    bound = mechanism.bound if isinstance(mechanism, Table) else "usual"
    most, each = (NEIGHBORS, 1) if isinstance(bound, str) else (bound, bound)
    bait = Bait.of(mechanism, budget, adjacency, 1, near or most, task)
    crowd = Bait.of(mechanism, budget, adjacency, canaries, each, task) if canaries else None
    design, pure, scheme = bait.design, isinstance(mechanism, Cells), None
    if isinstance(design, PaperDesign):
        scheme = Scheme(design.options.rate, design.steps, design.multiplier, adjacency)
    name = "{mechanism} ({noise}, {scheme})".format(**design.record)
    budget = Budget(budget.epsilon, 0) if pure else budget
    claim = _Claim(name, budget, adjacency, not pure and scheme is None, scheme)
    return claim, bait.pair(), crowd


def _knn_claim(
    budget: Budget, adjacency: Adjacency, near: int | None, k: int | None, subsample: float | None
) -> tuple[_Claim, Pair]:
    k, near = check_count("k", USUAL_K if k is None else k), near or NEIGHBORS
    rate = None if subsample is None else check_number("subsample", subsample, least=1e-6, most=1)
    rate = None if rate == 1 else rate
    design = KNNDesign(budget, k, near, rate, adjacency, seeded=False)
    scheme = None if rate is None else Scheme(rate, near, design.multiplier, adjacency)
    name = "{mechanism} ({noise}, {scheme})".format(**design.record())
    return _Claim(name, budget, adjacency, scheme is None, scheme), knn_pair(design)


def _one_run_bound(scores: Floats, coins: NDArray[np.int64], delta: float, alpha: float) -> float:
    tries = (guesses(scores, -(-len(scores) // share)) for share in GUESSED)
    each = 1 - alpha / len(GUESSED)
    return max(
        bounds.epsilon_from_one_run(made, coins, delta=delta, confidence=each) for made in tries
    )


def _audit(
    claim: _Claim, scores: tuple[Floats, Floats], confidence: float,
    one_run: tuple[Floats, NDArray[np.int64]] | None = None, notes: Sequence[str] = (),
) -> Audit:  # fmt: skip
    """All bounds; each gets an equal part of the false-alarm rate."""
    confidence = 1 - bounds.level(confidence)
    epsilon, delta, scheme = claim.budget.epsilon, claim.budget.delta, claim.scheme
    made = {
        ANY: True, GAUSSIAN: claim.gaussian, SAMPLED: scheme is not None,
        ONE_RUN: one_run is not None,
    }  # fmt: skip
    each = 1 - (1 - confidence) / sum(made.values())
    gaussian = sampled = single = None
    most, runs = bounds.ceiling(epsilon, delta), min(len(part) for part in scores)
    canaries, roc = 0 if one_run is None else len(one_run[1]), Roc.of(*scores)
    if claim.gaussian:
        gaussian = bounds.epsilon_if_gaussian(bounds.mu_from_runs(*scores, confidence=each), delta)
        most = bounds.gaussian_ceiling(gaussian_mu(epsilon, delta))
    if scheme is not None:
        sampled = epsilon_if_sampled(*scores, scheme, epsilon=epsilon, delta=delta, confidence=each)
    if one_run is not None:
        single = _one_run_bound(*one_run, delta, 1 - each)
    return Audit(
        claim.name, epsilon, delta, claim.adjacency, runs, canaries, confidence,
        bounds.epsilon_from_runs(*scores, delta=delta, confidence=each), gaussian, sampled, single,
        roc.auroc, roc.standard_error, most, bounds.certifiable(runs, delta=delta, confidence=each),
        (*(sentence for sentence, holds in made.items() if holds), *notes),
    )  # fmt: skip
