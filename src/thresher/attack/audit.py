"""Audits of a claimed epsilon: what the releases themselves prove about it.

A proof says how much a release can cost at most, and an audit how much it costs at least. If that
is more than the claim, the proof, the code or the noise is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thresher.attack import bounds
from thresher.attack.area import Scores
from thresher.attack.audit_result import (
    CANARY,
    NO_ONE_RUN,
    SEEDED,
    Audit,
    Claim,
    Evidence,
    audited,
)
from thresher.attack.replay import leaks
from thresher.attack.subjects import knn_subject, subject_of
from thresher.attack.trials import Buffered, run_trial
from thresher.errors import InputError, option
from thresher.inputs.checks import check_count, check_flag
from thresher.neighbors.kernel import BOX
from thresher.privacy.accountants import Budget, check_adjacency
from thresher.privacy.noise import noise_source
from thresher.privacy.release_setting import Mechanism
from thresher.progress import progress_bar
from thresher.regression import CLASSES, check_task

__all__ = ["Audit", "audit_mechanism", "audit_runs"]

LEAST_RUNS = 100
REPLAY_SHARE = 4  # one replay of what leaves for so many runs


def audit_mechanism(
    mechanism: str | Mechanism = "table", *, epsilon: float, delta: float,
    adjacency: str = "add-remove", runs: int = 20000, canaries: int = 200,
    confidence: float = 0.999, near: int | None = None, k: int | None = None,
    subsample: float | None = None, seed: int | None = None, progress: bool = False,
    task: str = CLASSES, kernel: Any = BOX, leaves: bool = False,
) -> Audit:  # fmt: skip
    """What many releases prove about the epsilon of this library's own mechanisms.

    Parameters
    ----------
    mechanism
        "table", "paper", "cells" or "knn" (`dp_knn_shapley`), or one of `thresher.privacy.Table`,
        `Paper`, `Cells` with options.
    epsilon, delta, adjacency
        The claim, as in `dp_tknn_shapley`. The claim of "cells" is about delta = 0.
    runs
        How many releases to make with the first canary, and how many without it. Half of the
        releases also have other canaries: a coin flip decides for each, and each has its own
        validation points. A quarter as many replays compare everything that others see: prices,
        their own values, and the record.
    canaries
        How many canaries the single release of the one-run audit has; 0 leaves that audit out.
    confidence
        If the claim is true, the audit says otherwise with probability at most 1 - confidence.
    near
        How many validation points are near a canary. The default is what `Table(bound=...)` says,
        otherwise 2 (8 for "paper" and "knn", which have one canary).
    k, subsample
        For "knn", as in `dp_knn_shapley`.
    seed
        For tests, as in `dp_tknn_shapley`. Without it, noise comes from the operating system.
    progress
        Show a progress bar on standard error.
    task
        As in `dp_tknn_shapley`: "regression" needs "table".
    kernel
        As in `dp_tknn_shapley`: other kernels than the box need "table".
    leaves
        Audit a release by leaves of a made-up forest. Then `near` is its number of trees. Leaves
        need "table".

    Returns
    -------
    Audit
        Bounds, AUROC, verdict; `print` it.

    Notes
    -----
    Every run goes through the mechanism's own code for noise and counts. `thresher.attack.bounds`
    and `thresher.attack.area` have the formulas. The cost is mostly that of the noise: about 15
    microseconds for each number from the operating system, and about 30 numbers per run.

    Examples
    --------
    >>> import thresher as th
    >>> audit = th.audit_mechanism("cells", epsilon=1, delta=0, runs=5000, canaries=0, seed=0)
    >>> audit.passed, round(audit.lower_bound, 2)
    (True, 0.83)
    """
    budget, known = Budget(epsilon, delta), check_adjacency(adjacency)
    runs = check_count("runs", runs, least=LEAST_RUNS)
    near = None if near is None else check_count("near", near)
    canaries = check_count("canaries", canaries, least=0)
    check_flag("progress", progress)
    bounds.level(confidence)
    if isinstance(mechanism, str) and mechanism == "knn":
        plain = isinstance(kernel, str) and kernel == BOX and check_task(task) == CLASSES
        if check_flag("leaves", leaves) or not plain:
            raise InputError(
                f"task, kernel and leaves need {option('mechanism', 'table')}, got 'knn': leave "
                "them out"
            )
        subject = knn_subject(budget, known, near, k, subsample)
    elif k is not None or subsample is not None:
        raise InputError(
            f"{option('k')} and {option('subsample')} need {option('mechanism', 'knn')}, got "
            f"{mechanism!r}"
        )
    else:
        subject = subject_of(
            mechanism, budget, known, near, canaries, check_task(task), kernel,
            leaves=check_flag("leaves", leaves),
        )  # fmt: skip
    source = Buffered(noise_source(seed))
    random = np.random.default_rng(None if seed is None else [seed, 1])  # no number of the noise
    replays = 0 if subject.replayed is None else runs // REPLAY_SHARE
    with progress_bar("audit", 2 * runs + replays, show=progress, unit="runs") as advance:
        found = run_trial(subject.trial, source, runs, random, advance)
        differences = () if subject.replayed is None else leaks(subject.replayed, replays, advance)
    single = None
    if subject.crowd is not None:  # the scores of many canaries in one release, and who was in
        truth = random.random(len(subject.crowd.canaries)) < 0.5
        single = subject.crowd.one_release(source, truth), np.where(truth, 1, -1)
    notes = [CANARY, *([NO_ONE_RUN] if mechanism == "knn" else [])]
    evidence = Evidence(
        found.first(inside=True), found.first(inside=False), found.pooled(), found.louder(),
        found.noise, single, differences, replays,
    )  # fmt: skip
    return audited(subject.claim, evidence, confidence, notes + ([] if seed is None else [SEEDED]))


def audit_runs(
    inside: ArrayLike, outside: ArrayLike, *, epsilon: float, delta: float,
    confidence: float = 0.999, gaussian: bool = False,
) -> Audit:  # fmt: skip
    """What the scores of your own runs prove about a claimed epsilon.

    Parameters
    ----------
    inside, outside
        One score for each run with and without the canary. The higher the score, the more likely
        the canary was in. Runs must be independent.
    epsilon, delta, confidence
        As in `audit_mechanism`.
    gaussian
        Whether to assume that the mechanism adds Gaussian noise: a far sharper bound.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> random = np.random.default_rng(0)
    >>> inside, outside = random.normal(1, 1, 10_000), random.normal(0, 1, 10_000)
    >>> th.audit_runs(inside, outside, epsilon=1, delta=1e-5).verdict
    'violated: epsilon is at least 1.62 with confidence 0.999 (many runs), 1 was claimed'
    """
    budget = Budget(epsilon, delta)
    claim = Claim("runs", budget, "as in the runs", check_flag("gaussian", gaussian))
    if gaussian and budget.delta == 0:
        raise InputError("gaussian=True needs delta > 0: Gaussian noise is never epsilon-DP")
    scores = bounds.read_scores("inside", inside), bounds.read_scores("outside", outside)
    return audited(claim, Evidence(*scores, Scores.of(*scores)), confidence)
