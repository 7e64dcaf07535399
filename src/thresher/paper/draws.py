"""Draws: training points with a tenth of them corrupted, and a validation set; two protocols.

`paper`: as the printed figures were made. Rows of the rarer class are repeated at random until both
classes are equally large. Only then are rows split, so validation rows have twins among the
training rows. If a set has the authors' own draw, that draw is used. `clean`: equal rows are
dropped, and then rows are split, with equally many of each class and no repetition. In both
protocols, columns are scaled by the training rows, including corrupted ones.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers
from thresher.corrupt import add_feature_noise, flip_labels
from thresher.embed import leading_components
from thresher.paper.datasets import DataSet

PROTOCOLS = ("paper", "clean")
TASKS = ("mislabel", "noisy")
POINTS, VALIDATION, CORRUPTED = 2000, 200, 0.1
COMPONENTS = 32  # of embeddings; with more, hardly anybody is within radius 0.5


def seed_of(*names: object) -> int:
    """A seed for each purpose: the same names, the same seed; other names, an independent one.

    Examples
    --------
    >>> seed_of("corrupt", "wind", 0) == seed_of("corrupt", "wind", 0)
    True
    >>> seed_of("corrupt", "wind", 0) == seed_of("corrupt", "pol", 0)
    False
    """
    return int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:4], "big")


@dataclass(frozen=True, eq=False)
class Problem:
    """Points to value, some of them corrupted, and a validation set.

    Parameters
    ----------
    X, y, X_val, y_val
        As in `tknn_shapley`.
    bad
        True for the points that are corrupted.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.paper import Problem
    >>> X = np.eye(2)
    >>> problem = Problem(X, np.array([0, 1]), X, np.array([0, 1]), np.array([False, True]))
    >>> problem.classes
    [0, 1]
    """

    X: Array
    y: Integers
    X_val: Array
    y_val: Integers
    bad: Flags

    @property
    def data(self) -> tuple[Any, Any, Any, Any]:
        """The four arguments of every valuation function."""
        return self.X, self.y, self.X_val, self.y_val

    @property
    def classes(self) -> list[int]:
        """The labels of the validation set."""
        return np.unique(self.y_val).tolist()


def draw_problem(data: DataSet, task: str, protocol: str, number: int) -> Problem:
    """Draw the problem with this number; the same number gives the same problem.

    Parameters
    ----------
    data
        A set of the paper.
    task
        "mislabel" (a tenth of the labels flipped), "noisy" (noise on a tenth of the rows), or
        "intact".
    protocol
        "paper" or "clean".
    number
        The number of the draw. It has no effect if the authors' own draw is replayed.

    Examples
    --------
    >>> from thresher.paper import Shelf, draw_problem
    >>> problem = draw_problem(Shelf(fetch=False).get("2dplanes"), "mislabel", "clean", 0)
    >>> len(problem.y), int(problem.bad.sum())
    (2000, 200)
    """
    raw = split(data, protocol, number)
    if protocol == "paper" and data.replay is not None:
        return scale(data, replay_corruption(raw, task, data.replay.noise))
    return scale(data, corrupt(raw, task, seed_of("corrupt", data.name, task, protocol, number)))


def split(data: DataSet, protocol: str, number: int, points: int = POINTS) -> Problem:
    """Training and validation rows, before scaling and corruption."""
    if data.validation is not None:
        return _split_embedded(data, twins=protocol == "paper")
    if protocol == "paper" and data.replay is not None and points == POINTS:
        train, validation = data.replay.train, data.replay.validation
    else:
        rng = np.random.default_rng(seed_of("split", data.name, protocol, number, points))
        if protocol == "paper":
            train, validation = _oversampled(data.y, points, rng)
        else:
            train, validation = _distinct(data.X, data.y, points, rng)
    rows = data.X[train], data.y[train], data.X[validation], data.y[validation]
    return Problem(*rows, np.zeros(len(train), np.bool_))


def corrupt(raw: Problem, task: str, seed: int) -> Problem:
    """Corrupt a random tenth of the points."""
    if task == "mislabel":
        y, bad = flip_labels(raw.y, fraction=CORRUPTED, seed=seed, classes=raw.classes)
        return replace(raw, y=y, bad=bad)
    if task == "noisy":
        X, bad = add_feature_noise(raw.X, fraction=CORRUPTED, seed=seed)
        return replace(raw, X=X, bad=bad)
    return raw


def replay_corruption(raw: Problem, task: str, noise: Floats) -> Problem:
    """Apply the authors' corruption: of the first points, with their noise."""
    X, y, bad = raw.X.copy(), raw.y.copy(), raw.bad.copy()
    first = slice(0, len(noise))
    if task == "mislabel":
        y[first] = 1 - y[first]
    elif task == "noisy":
        X[first] += noise * np.sqrt((raw.X**2).sum(axis=0))
    bad[first] = task != "intact"
    return replace(raw, X=X, y=y, bad=bad)


def scale(data: DataSet, raw: Problem) -> Problem:
    """Scale columns to mean 0 and, except for embeddings, deviation 1 over the training rows."""
    mean = raw.X.mean(axis=0)
    spread = raw.X.std(axis=0) if data.validation is None else np.ones_like(mean)
    spread = np.where(spread > 0, spread, 1)
    return replace(raw, X=(raw.X - mean) / spread, X_val=(raw.X_val - mean) / spread)


@functools.lru_cache(maxsize=2)
def _split_embedded(data: DataSet, *, twins: bool) -> Problem:
    """Leading components of all points, or of those that are not also validation rows."""
    assert data.validation is not None  # noqa: S101
    X_val, y_val = data.validation
    known = set() if twins else {row.tobytes() for row in X_val}
    kept = np.array([row.tobytes() not in known for row in data.X], np.bool_)
    X, X_val = leading_components(data.X[kept], X_val, COMPONENTS)
    return Problem(X, data.y[kept], X_val, y_val, np.zeros(len(X), np.bool_))


def _oversampled(y: Integers, points: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
    rare, common = sorted((np.flatnonzero(y == label) for label in (0, 1)), key=len)
    more = rng.choice(rare, size=len(common) - len(rare))
    pool = rng.permutation(np.concatenate([rare, common, more]))
    validation, rest = pool[:VALIDATION], pool[VALIDATION:]
    return _halves(y, rest, points // 2, rng), validation


def _distinct(
    X: Array, y: Integers, points: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    pool = rng.permutation(np.unique(X, axis=0, return_index=True)[1])
    validation = _halves(y, pool, VALIDATION // 2, rng)
    rest = pool[~np.isin(pool, validation)]
    each = min(points // 2, *(int((y[rest] == label).sum()) for label in (0, 1)))
    return _halves(y, rest, each, rng), validation


def _halves(y: Integers, rows: Integers, each: int, rng: np.random.Generator) -> Integers:
    """Take `each` rows of each class, and shuffle them."""
    return rng.permutation(np.concatenate([rows[y[rows] == label][:each] for label in (0, 1)]))
