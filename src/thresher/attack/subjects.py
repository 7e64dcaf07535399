"""The subject of an audit: a claim, canaries that test it, and the noise that it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.attack.audit_result import Claim
from thresher.attack.bounds import LARGEST, epsilon_if_gaussian
from thresher.attack.canaries import Bait, knn_trial
from thresher.attack.noise_size import Shape
from thresher.attack.replay import replay_bait
from thresher.attack.sampled_bound import Scheme
from thresher.attack.trials import Trial
from thresher.inputs.checks import check_choice, check_count, check_number
from thresher.privacy.accountants import (
    Adjacency,
    Budget,
    gaussian_mu,
    sampled_epsilon,
    sampled_multiplier,
)
from thresher.privacy.cells_mechanism import Cells
from thresher.privacy.dp_knn import KNNDesign
from thresher.privacy.paper_mechanism import Paper, PaperDesign
from thresher.privacy.release_setting import MECHANISMS, Mechanism
from thresher.privacy.table_design import TableDesign

NEAR, LONE_NEAR = 2, 8  # validation points near a canary: one of many, or the only one
TOGETHER = 16  # validation points, where canaries are many
USUAL_K = 5


@dataclass(frozen=True)
class Subject:
    """A claim, the trial that tests it, canaries for one release, and bait for replays."""

    claim: Claim
    trial: Trial
    crowd: Bait | None = None
    replayed: Bait | None = None


def subject_of(
    mechanism: object, budget: Budget, adjacency: Adjacency, near: int | None, canaries: int,
    *game: Any, leaves: bool = False,
) -> Subject:  # fmt: skip
    """The subject for a mechanism that releases a table, with this many canaries in one release."""
    if not isinstance(mechanism, Mechanism):
        mechanism = MECHANISMS[check_choice("mechanism", mechanism, (*MECHANISMS, "knn"))]()
    size, each, many = _crowd(mechanism, near)
    bait = Bait.of(mechanism, budget, adjacency, many, size, *game, leaves=leaves)
    crowd = None
    if canaries:
        crowd = Bait.of(mechanism, budget, adjacency, canaries, each, *game, leaves=leaves)
    design, pure, scheme = bait.design, isinstance(mechanism, Cells), None
    if isinstance(design, PaperDesign):
        scheme = Scheme(design.options.rate, design.steps, design.multiplier, adjacency)
    name = "{mechanism} ({noise}, {scheme})".format(**design.record)
    budget = Budget(budget.epsilon, 0) if pure else budget
    claim = Claim(
        name, budget, adjacency, not pure and scheme is None, scheme, _shape(bait, budget)
    )
    replayed = replay_bait(mechanism, budget, adjacency, size, *game, leaves=leaves)
    return Subject(claim, bait.trial(), crowd, replayed)


def _crowd(mechanism: Mechanism, near: int | None) -> tuple[int, int, int]:
    """How many validation points are near a canary, how many in one release; how many canaries."""
    if isinstance(mechanism, Paper):  # only a point near all of them spends what is claimed
        return near or LONE_NEAR, 1, 1
    if isinstance(mechanism, Cells):
        return near or NEAR, 1, min(TOGETHER // NEAR, mechanism.cells or TOGETHER)
    each = 1 if isinstance(mechanism.bound, str) else mechanism.bound
    size = near or (NEAR if isinstance(mechanism.bound, str) else each)
    return size, each, max(1, TOGETHER // size)


def _shape(bait: Bait, budget: Budget) -> Shape:
    """The noise that the budget needs for the first canary's move, computed independently."""
    without, canary = bait.shifts[0]
    moved, design = (canary - without).astype(np.float64), bait.design
    if isinstance(design, PaperDesign):
        options, steps, adjacency = design.options, design.steps, design.setting.adjacency
        length = math.sqrt(float((canary**2).sum()) / steps)
        needed = sampled_multiplier(budget, options.rate, steps, adjacency)

        def sampled(scale: float) -> float:
            multiplier = needed * min(max(scale / (needed * length), 1 / 4), 4.0)
            return sampled_epsilon(budget.delta, options.rate, multiplier, steps, adjacency)

        return Shape("gaussian", needed * length, sampled)
    if budget.delta == 0:
        votes = float(np.abs(moved).sum())
        pure = lambda scale: min(LARGEST, votes / scale) if scale > 0 else LARGEST  # noqa: E731
        return Shape("laplace", votes / budget.epsilon, pure)
    roots = design.entries.roots if isinstance(design, TableDesign) else 1.0
    length = math.sqrt(float(((moved * roots) ** 2).sum()))

    def gaussian(scale: float) -> float:
        mu = length / max(scale, 1e-9)
        return min(LARGEST, epsilon_if_gaussian(min(mu, 100.0), budget.delta))

    return Shape("gaussian", length / gaussian_mu(budget.epsilon, budget.delta), gaussian, roots)


def knn_subject(
    budget: Budget, adjacency: Adjacency, near: int | None, k: int | None, subsample: float | None
) -> Subject:
    """The subject for private nearest-neighbor values."""
    k, near = check_count("k", USUAL_K if k is None else k), near or LONE_NEAR
    rate = None if subsample is None else check_number("subsample", subsample, least=1e-6, most=1)
    rate = None if rate == 1 else rate
    design = KNNDesign(budget, k, near, rate, adjacency, seeded=False)
    scheme = None if rate is None else Scheme(rate, near, design.multiplier, adjacency)
    name = "{mechanism} ({noise}, {scheme})".format(**design.record())
    return Subject(Claim(name, budget, adjacency, scheme is None, scheme), knn_trial(design))
