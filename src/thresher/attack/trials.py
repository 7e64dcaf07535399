"""Many releases, with and without canaries: their scores, and how loud each was.

In half of the runs, the first canary is alone or nobody is there. This shows effects that depend on
who else is there. In the other half, a coin decides for every other canary, so that one release
counts for many. The first canary is in exactly half of the runs of either kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers
from thresher.attack.area import Scores
from thresher.privacy.noise import Noise, Relay
from thresher.progress import Advance

BATCH = 1 << 15  # numbers drawn at a time
CHUNK = 2048  # runs scored at a time


class Buffered(Relay):
    """The same noise, drawn many numbers at a time, because each call of OpenDP is slow."""

    def __init__(self, source: Noise) -> None:
        super().__init__(source)
        self._left: dict[tuple[str, float], Array] = {}

    def draw(self, kind: str, number: float, size: int) -> Any:
        """Take numbers from the last batch, or from a new one if too few are left."""
        left: Any = self._left.get((kind, number), ())
        if len(left) < size:
            left = super().draw(kind, number, max(size, BATCH))
        self._left[kind, number] = left[size:]
        return left[:size]


@dataclass(frozen=True)
class Trial:
    """A mechanism, some canaries, and scores that show from a release which are in."""

    canaries: int
    release: Callable[[Noise, Flags], Integers]  # of the canaries that are in
    score: Callable[[Integers], Floats]  # of releases, one a row: a column for each canary
    noise: Callable[[Integers, Flags], Integers] | None  # of releases for which it can be told


@dataclass(frozen=True)
class Runs:
    """The results of many releases, one per row."""

    truth: Flags  # which canaries were in
    crowded: Flags  # whether others than the first were
    scores: Floats
    loudness: Floats  # the sum of squares of all numbers released
    noise: Integers | None  # of the runs for which it can be told

    def first(self, *, inside: bool) -> Floats:
        """The scores of the first canary."""
        return self.scores[self.truth[:, 0] == inside, 0]

    def pooled(self) -> Scores:
        """The scores of all canaries; all scores of one run form a group."""
        counted = np.repeat(self.crowded[:, None], self.truth.shape[1], axis=1)
        counted[:, 0] = True
        rows = np.repeat(np.arange(len(counted))[:, None], counted.shape[1], axis=1)
        return Scores(self.scores[counted], self.truth[counted], rows[counted])

    def louder(self) -> Scores:
        """How loud the runs are in which the first canary is alone, or nobody is there."""
        alone = ~self.crowded
        return Scores(self.loudness[alone], self.truth[alone, 0], np.flatnonzero(alone))


def coins(runs: int, canaries: int, random: np.random.Generator) -> tuple[Flags, Flags]:
    """Which canaries are in, for runs with and without the first, and which runs are crowded."""
    rows = np.arange(2 * runs)
    crowded = (rows // 2 % 2 == 1) & (canaries > 1)
    truth = (random.random((2 * runs, canaries)) < 0.5) & crowded[:, None]
    truth[:, 0] = rows % 2 == 0
    return truth, crowded


def run_trial(
    trial: Trial, source: Noise, runs: int, random: np.random.Generator,
    advance: Advance | None = None,
) -> Runs:  # fmt: skip
    """Run a trial: as many releases with the first canary as without it."""
    truth, crowded = coins(runs, trial.canaries, random)
    scores, loud, noise = [], [], []
    for start in range(0, len(truth), CHUNK):
        part = truth[start : start + CHUNK]
        outputs = np.array([trial.release(source, row) for row in part])
        scores.append(trial.score(outputs))
        loud.append((outputs.reshape(len(part), -1).astype(np.float64) ** 2).sum(axis=1))
        if trial.noise is not None:
            noise.append(trial.noise(outputs, part))
        if advance is not None:
            advance(len(part))
    whole = np.concatenate(noise) if any(map(len, noise)) else None
    return Runs(truth, crowded, np.concatenate(scores), np.concatenate(loud), whole)
