"""Replays: check that nothing but the table leaks.

Everything that leaves a release must follow from its table and public data, and an owner's values
also from that owner's own points. So both data sets, with the canary and without it, get the same
released table, and everything that leaves is compared bit by bit. The requests for noise must be
the same, too, and the canary must not move the measured numbers farther than the noise can hide.
One difference is proof, without statistics or false alarms.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.array_types import Integers
from thresher.attack.canaries import LABELS, RADIUS, Bait, Places, read_places
from thresher.privacy.accountants import Adjacency, Budget, gaussian_epsilon
from thresher.privacy.cells_mechanism import CellsDesign
from thresher.privacy.contributions import Units
from thresher.privacy.noise import Noise, Relay, Seeded
from thresher.privacy.paper_mechanism import PaperDesign
from thresher.privacy.release import SeededRelease
from thresher.privacy.release_setting import Mechanism
from thresher.privacy.table_design import TableDesign
from thresher.privacy.table_mechanism import Table
from thresher.privacy.target_setting import TargetSetting
from thresher.progress import Advance

NEAR = 16  # validation points near the canary: more than the bound, so that it is clipped
BOUND = 4
BLOCK = 250  # replays of one table
WHOLE = 2  # replays of a block in which all is compared, not prices and values alone
TIGHT = 1e-6


class Tape(Relay):
    """A source of noise that records the requests for it."""

    def __init__(self, source: Noise) -> None:
        super().__init__(source)
        self.asked: list[tuple[str, float, int]] = []

    def draw(self, kind: str, number: float, size: int) -> Any:
        """Record a request, except for coins: their number depends on points and stays private."""
        if kind != "sample":
            self.asked.append((kind, number, size))
        return super().draw(kind, number, size)


def replay_bait(
    mechanism: Mechanism,
    budget: Budget,
    adjacency: Adjacency,
    near: int,
    *game: Any,
    leaves: bool = False,
) -> Bait:
    """Bait with one canary, among validation points that are all near it."""
    if isinstance(mechanism, Table):
        if isinstance(mechanism.bound, str):
            mechanism = replace(mechanism, bound=BOUND, weights=mechanism.exponent)
        near = max(0 if leaves else NEAR, 2 * int(mechanism.bound))
    return Bait.of(mechanism, budget, adjacency, 1, near, *game, leaves=leaves)


class Replay:
    """Releases with a canary and without it, beside the same bystanders."""

    def __init__(self, bait: Bait) -> None:
        self.bait, self.design = bait, bait.design
        edges = -0.9 * RADIUS, 1.15 * RADIUS  # near some of the validation points, not all
        targets = isinstance(self.design.setting, TargetSetting)
        labels: Any = (-0.5, 0.5) if targets else LABELS
        self.bystanders: Places = [(edge, label) for edge in edges for label in labels]
        validation = self.design.setting.validation
        worlds = bait.substitutes[0], bait.canaries[:1]
        self.points = [read_places(self.bystanders + more, validation) for more in worlds]
        self.worlds = [
            self.design.setting.contributions(each.points, Units.of(None, len(each)))
            for each in self.points
        ]

    def differences(self, runs: int, advance: Advance | None = None) -> tuple[str, ...]:
        """What differs between replays although the table is the same."""
        found: dict[str, None] = {}
        for start in range(0, runs, BLOCK):
            noise = self.design.noise(Seeded(start))
            table = self.design.measure(self.worlds[0], Seeded(start)) + noise
            table.flags.writeable = False
            for run in range(min(BLOCK, runs - start)):
                outputs = dict(self._leaving(run % 2, table, whole=run < 2 * WHOLE))
                if run == 0:
                    first = outputs
                found |= {name: None for name, each in outputs.items() if first[name] != each}
            if advance is not None:
                advance(min(BLOCK, runs - start))
        return tuple(f"{name} depend on more than the released table" for name in found)

    def _leaving(self, world: int, table: Integers, *, whole: bool) -> Iterator[tuple[str, Any]]:
        """Everything that leaves a release with this table, from one of the two data sets."""
        tape = Tape(Seeded(0))
        self.design.noise(tape)
        self.design.measure(self.worlds[world], tape)
        record = dict(self.design.record) | {"published": "prices", "seeded": True}
        record |= {name: getattr(self.design.setting.budget, name) for name in ("epsilon", "delta")}
        private, contributions = self.points[world], self.worlds[world]
        outcome = SeededRelease(self.design, table, record, private, contributions, None)
        others = slice(len(self.bystanders))
        yield "the parameters of the noise", tape.asked
        yield "the record's numbers", json.dumps(record, default=str, sort_keys=True)
        yield "prices", outcome.price_list.table.tobytes()
        yield "the values of others", outcome.values[others].tobytes()
        if whole:
            yield "the published numbers", outcome.to_json()
            yield "the errors told to others", outcome.error.deviation[others].tobytes()
            yield "the personal epsilons of others", outcome.personal_epsilon[others].tobytes()

    def epsilon(self) -> float | None:
        """The epsilon that this noise gives for the canary's move; None for samples."""
        without, canary = (self.design.measure(world, Seeded(0)) for world in self.worlds)
        moved, design = (canary - without).astype(np.float64), self.design
        if isinstance(design, PaperDesign):
            return None
        if isinstance(design, CellsDesign):
            return float(np.abs(moved).sum()) / design.laplace_scale
        assert isinstance(design, TableDesign)  # noqa: S101 - there are three
        mu = math.sqrt(float(((moved * design.entries.roots) ** 2).sum())) / design.sigma
        return gaussian_epsilon(mu, design.setting.budget.delta) if mu > 0 else 0.0


def leaks(bait: Bait, runs: int, advance: Advance | None = None) -> tuple[str, ...]:
    """Sentences about what leaks besides the table, and about a point that moves it too far."""
    replay = Replay(bait)
    found, moved = replay.differences(runs, advance), replay.epsilon()
    claimed = bait.design.setting.budget.epsilon
    if moved is not None and moved > claimed * (1 + TIGHT):
        found += (
            f"one point moves the table so far that its noise leaves epsilon {moved:.3g}, not "
            f"{claimed:g}",
        )
    return found
