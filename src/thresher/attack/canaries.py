"""Worst-case canaries: points whose presence a mechanism has the most trouble hiding.

The validation set is made up. A canary is near as many validation points as the mechanism's bound
allows, with their label, and there is no other point. So only the noise hides it. Every run goes
through the design's own `noise` and `measure`. Under "replace-one", the canary takes the place of a
point whose contribution is as different as possible.

The score of a run is the logarithm of the likelihood ratio of the release (for Poisson samples,
that of the mixture). By Neyman and Pearson, no other attack beats it. For private KNN-Shapley
values, the score is the value itself, because the ratio is a monotone function of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers
from thresher.attack.trials import Trial
from thresher.errors import InputError
from thresher.inputs.checked_inputs import Validation, check_validation
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX
from thresher.neighbors.tree_columns import TreeColumns
from thresher.neighbors.trees import Tree
from thresher.privacy.accountants import Adjacency, Budget
from thresher.privacy.cells_mechanism import Cells, CellsDesign
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Design
from thresher.privacy.dp_knn import KNNDesign
from thresher.privacy.dp_knn import value_steps as knn_sums
from thresher.privacy.noise import Noise, Seeded
from thresher.privacy.paper_mechanism import Paper, PaperDesign
from thresher.privacy.private_points import PrivatePoints, read_points
from thresher.privacy.release_setting import Game, Mechanism, design_release, release_setting
from thresher.privacy.table_design import TableDesign
from thresher.privacy.table_mechanism import Table
from thresher.regression import CLASSES

Places = list[tuple[float, Any]]  # points: where they stand, and their labels or targets

RADIUS = 0.5
SPACING = 10.0  # from one neighborhood to the next
NOWHERE = -1000.0  # near no validation point
TIE = 1e-9
LABELS: tuple[Any, Any] = "yes", "no"  # of a canary, and of what replaces it
OPPOSED_TARGETS: tuple[Any, Any] = 1.0, -0.558
KEPT_WORLDS = 256  # sets of canaries whose neighbors are remembered from run to run
LARGEST_CROWD = 20_000  # points that fill the ranks before a canary


@dataclass(frozen=True)
class Bait:
    """A design for a made-up validation set of neighborhoods, with one canary for each."""

    design: Design
    canaries: Places
    substitutes: list[Places]  # for each canary what stands in its place if it is out, if anything

    @cached_property
    def shifts(self) -> list[tuple[Integers, Integers]]:
        """The numbers measured without and with each canary, if no sample leaves it out."""
        empty = self.footprint([])
        return [
            (self.footprint(absent) if absent else empty, self.footprint([canary]))
            for absent, canary in zip(self.substitutes, self.canaries, strict=True)
        ]

    @classmethod
    def of(
        cls, mechanism: Mechanism, budget: Budget, adjacency: Adjacency, neighborhoods: int,
        size: int, task: str = CLASSES, kernel: Any = BOX, *, leaves: bool = False,
    ) -> Bait:  # fmt: skip
        """Neighborhoods of `near` validation points each, with a canary in every one.

        With `leaves`, a neighborhood is a leaf of each of `near` trees.
        """
        if isinstance(mechanism, Cells):
            mechanism = replace(mechanism, cells=mechanism.cells or neighborhoods)
        spots = SPACING * np.arange(neighborhoods)
        weighs = isinstance(mechanism, Table) and mechanism.exponent > 0
        rows = (spots[:, None] + _places(size, uneven=weighs)).reshape(-1, 1)
        yes, no = LABELS
        if leaves:
            if task != CLASSES or kernel != BOX:
                raise InputError("leaves cannot be used with task='regression' or a kernel")
            about = Game(rows, [yes] * len(rows), forest=_made_up_forest(spots, size))
        elif task == CLASSES:
            about = Game(rows, [yes] * len(rows), RADIUS, "euclidean", [no, yes], kernel=kernel)
        else:
            about = Game(rows, np.zeros(len(rows)), RADIUS, "euclidean", None, task, (-1.0, 1.0))
            yes, no = OPPOSED_TARGETS
        setting = release_setting(about, budget, adjacency)
        three = isinstance(mechanism, Paper) and mechanism.counts == "three"
        canaries: Places = [(float(spot), yes) for spot in spots]
        others: list[Places] = [[(NOWHERE if three else spot, no)] for spot, _ in canaries]
        absent = others if adjacency == "replace-one" else [[] for _ in canaries]
        return cls(design_release(mechanism, setting), canaries, absent)

    def contributions(self, places: Places) -> Contributions:
        """What these points add."""
        points = read_places(places, self.design.setting.validation).points
        return self.design.setting.contributions(points, Units.of(None, len(points)))

    def footprint(self, places: Places) -> Integers:
        """What the design measures for these points if none is left out of a sample."""
        return self.design.footprint(self.contributions(places))

    def trial(self) -> Trial:
        """A trial whose runs release some of the canaries; every run measures a whole data set."""
        worlds: dict[bytes, Contributions] = {}

        def release(source: Noise, truth: Flags) -> Integers:
            key = truth.tobytes()
            world = worlds.get(key) or self.contributions(self.chosen(truth))
            if len(worlds) < KEPT_WORLDS:  # what a run finds near is found once
                worlds[key] = world
            return self.design.release(world, source)

        def score(outputs: Integers) -> Floats:
            return np.array([self.score(outputs, *shifts) for shifts in self.shifts]).T

        return Trial(len(self.canaries), release, score, self.residual)

    def residual(self, outputs: Integers, truth: Flags) -> Integers:
        """The noise of releases: the released numbers minus the measured ones.

        If a mechanism samples, who was sampled is unknown, so only releases of nobody are noise.
        """
        if isinstance(self.design, PaperDesign):
            return outputs[~truth[:, 0] & (not self.substitutes[0])]
        left = outputs.copy()
        for column, shifts in zip(truth.T, self.shifts, strict=True):
            left -= np.array(shifts)[column.astype(int)]
        return left

    def chosen(self, truth: Flags) -> Places:
        """The canaries that are in, and the substitutes for the others."""
        cases = zip(self.canaries, self.substitutes, truth, strict=True)
        return [place for canary, out, here in cases for place in ([canary] if here else out)]

    def one_release(self, source: Noise, truth: Flags) -> Floats:
        """The score of each canary in one release that holds those for which `truth` is True."""
        output = self.design.release(self.contributions(self.chosen(truth)), source)[None]
        return np.array([self.score(output, *self._own(shifts))[0] for shifts in self.shifts])

    def _own(self, shifts: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
        """A canary's own part of a release, without the sample size, to which all canaries add."""
        if not isinstance(self.design, PaperDesign) or self.design.options.counts != "three":
            return shifts
        return tuple(np.concatenate([0 * s[:1], s[1:]]) for s in shifts)  # type: ignore[return-value]

    def score(self, outputs: Integers, without: Integers, canary: Integers) -> Floats:
        """The logarithm of the likelihood ratio of each release.

        Laplace noise gives many releases the same ratio. A tiny amount is added to tell them apart,
        in case the noise is not what it should be.
        """
        ratio = self._likelihood(outputs, canary) - self._likelihood(outputs, without)
        axes = tuple(range(1, outputs.ndim))
        return ratio + TIE * (outputs * (canary - without)).sum(axis=axes)

    def _likelihood(self, outputs: Integers, shift: Integers) -> Floats:
        """The log-likelihood if a point moves the release by `shift`, minus that of noise alone."""
        design, axes = self.design, tuple(range(1, outputs.ndim))
        if isinstance(design, CellsDesign):
            gain = np.abs(outputs) - np.abs(outputs - shift)
            return gain.sum(axis=axes) / design.laplace_scale
        assert isinstance(design, TableDesign | PaperDesign)  # noqa: S101 - there are three
        loss = (outputs * shift - shift**2 / 2) / design.sigma**2
        if isinstance(design, TableDesign):
            return (loss * design.entries.squares).sum(axis=axes)
        rate, shared = design.options.rate, design.options.sample == "shared"
        sampled = loss.sum(axis=axes if shared else 1)
        mixed = np.logaddexp(math.log1p(-rate), math.log(rate) + sampled)
        return mixed if shared else mixed.sum(axis=1)


def _places(size: int, *, uneven: bool) -> Floats:
    """Validation points around a canary, all near it; if uneven, one more is near some of them."""
    crowd = np.linspace(0, RADIUS / 4, size)
    return np.append(crowd, 1.1 * RADIUS) if uneven and size > 1 else crowd


def _made_up_forest(spots: Array, trees: int) -> Forest:
    """Identical trees with two leaves around each spot; the spot's canary is in the first leaf."""
    from sklearn.tree import DecisionTreeRegressor

    places = np.concatenate([spots, spots + RADIUS])[:, None]
    grown = DecisionTreeRegressor().fit(places, np.arange(len(places)))
    return Forest("made up", [Tree.of(grown.tree_)] * trees, columns=TreeColumns(1), classes=LABELS)


def knn_trial(design: KNNDesign) -> Trial:
    """A point whose value is released, and a canary behind it that lowers the value the most.

    With k points before it, none with the label, a canary with the label of the validation points
    takes 1 / (k (k + 1)) from each of them. With sampling, there must be other points to fill the
    ranks.
    """
    validation = check_validation(
        np.zeros((design.validation, 1)), ["yes"] * design.validation, metric="euclidean",
        classes=["no", "yes"],
    )  # fmt: skip
    k, rate = design.k, design.rate
    crowd = [(0.1 + 0.1 * i / LARGEST_CROWD, "no") for i in range(1 + _fillers(k, rate))]
    rest: Places = [] if design.adjacency == "add-remove" else [(0.9, "no")]
    sets = crowd + rest, [*crowd, (0.9, "yes")]
    worlds = [read_places(places, validation).points for places in sets]

    def sums(source: Noise, world: int) -> Integers:
        return knn_sums(worlds[world], validation, design, source)[:1]

    fixed = None if rate else [sums(Seeded(0), world) for world in (0, 1)]  # slow, and no draws

    def release(source: Noise, truth: Flags) -> Integers:
        noise, world = source.gaussian(design.sigma, 1), int(truth[0])
        return noise + (sums(source, world) if fixed is None else fixed[world])

    return Trial(1, release, lambda outputs: -outputs.astype(np.float64), None)


def _fillers(k: int, rate: float | None) -> int:
    """Points beside the target that make a sampled canary's effect largest, on average."""
    from scipy.stats import binom

    if rate is None or k == 1:
        return k - 1
    most = min(LARGEST_CROWD, math.ceil(3 * k / rate))
    counts = np.unique(np.linspace(k - 1, most, 200).astype(int))
    ranks = np.arange(k + 1, 20 * k + 20)  # of the canary: two more than fillers before it
    effect = [float((binom.pmf(ranks - 2, n, rate) / (ranks * (ranks - 1))).sum()) for n in counts]
    return int(counts[int(np.argmax(effect))])


def read_places(places: Places, validation: Validation) -> PrivatePoints:
    """Read points at these places just like a release does."""
    rows = np.array([place for place, _ in places]).reshape(-1, 1)
    return read_points(rows, [label for _, label in places], validation)


def guesses(scores: Floats, count: int) -> Integers:
    """Guess at the canaries whose scores stand out most; 0 for the others."""
    if not 0 < count <= len(scores):
        raise InputError(f"count must be between 1 and {len(scores)}, got {count}")
    out = np.zeros(len(scores), np.int64)
    sure = np.argsort(-np.abs(scores), kind="stable")[:count]
    out[sure] = np.where(scores[sure] > 0, 1, -1)
    return out
