"""The paper's two private baselines: KNN-Shapley values with noise, without and with sampling.

One point, added or removed, moves the value of another one (Jia et al. 2019) by at most 1 / (k (k +
1)) for each validation point. Every value gets its own noise, so the guarantee is about one
released value. Owners who put several values together see the same points several times, and the
noise averages out. So there is no protection against collusion, and no ledger.

Values are whole numbers of steps, and 2^12 steps make up that sensitivity. The noise over the
validation set would be a sum of M Gaussians, which is one Gaussian, rounded as in `accountants`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from thresher.array_types import Flags, Floats, Integers
from thresher.errors import InputError, option
from thresher.inputs.checked_inputs import Points, Validation, check_validation
from thresher.inputs.checks import check_count, check_number
from thresher.kernels.recursion import add_sampled_values
from thresher.metrics import SMALLEST_SQUARE, Rows
from thresher.neighbors.sorting import Bench, Source, order, sources
from thresher.privacy.accountants import (
    ROUNDING_VARIANCE,
    Adjacency,
    Budget,
    check_adjacency,
    check_sigma,
    gaussian_epsilon,
    gaussian_mu,
    sampled_epsilon,
    sampled_multiplier,
)
from thresher.privacy.noise import Noise, noise_source
from thresher.privacy.private_points import FEATURES, PrivatePoints, read_points
from thresher.privacy.release import Error, Release, SeededRelease, interval, release_format
from thresher.threads import cut, in_order
from thresher.version import __version__

STEPS = 1 << 12  # in the sensitivity of one validation point
LARGEST_K = 100_000
JOB_ROWS = 16
CAVEAT = "protects one released value at a time: no protection against collusion"


class _NoisyValues:
    """A release of values that each have their own noise, instead of prices."""

    record: Mapping[str, Any]
    price_list: Any = None
    table: Any = None
    values: Floats
    _design: Any = None
    _owners: Any = None

    def __init__(
        self, private: PrivatePoints, sums: Integers, step: float, record: dict[str, Any]
    ) -> None:
        self.record, self._private = MappingProxyType(record), private
        self.values = private.in_input_order(np.float64(step) * sums)
        self.values.flags.writeable = False

    @cached_property
    def personal_epsilon(self) -> Floats:
        """The epsilon that each point is exposed to, which is the same for all."""
        return np.full(len(self.values), self.record["epsilon"])

    @cached_property
    def relative_error(self) -> float | None:
        """The noise relative to what remains of the values without it; None with sampling."""
        if self.record["rate"] is not None:
            return None  # values beside a sample are other numbers than the exact ones
        signal = float((self.values**2).mean()) if len(self.values) else 0.0
        variance = self.record["sigma"] ** 2
        return math.sqrt(variance / max(signal - variance, 1e-3 * variance, 1e-300))

    @property
    def is_noise(self) -> bool:
        """Whether the released values are no larger than noise alone would be."""
        over = float((self.values**2).mean()) if len(self.values) else 0.0
        return over < self.record["sigma"] ** 2 * (1 + 3 * math.sqrt(2 / max(len(self.values), 1)))

    @property
    def ranks(self) -> None:
        """None, because every value has its own noise and nothing says how it ranks."""
        return None

    @property
    def warning(self) -> str:
        """An empty text, since there is no price list to compare with the zero-budget score."""
        return ""

    @property
    def why_untold(self) -> str:
        """Why the release cannot state its error; an empty string if it can."""
        return self.error.why

    @cached_property
    def error(self) -> Error:
        """The expected relative error, and an interval for every value."""
        deviation = np.full(len(self.values), self.record["sigma"])
        stated = self.relative_error
        why = (
            "values measured next to a sample differ from the exact ones" if stated is None else ""
        )
        return Error(stated, deviation, *interval(self.values, deviation), why)

    def to_json(self) -> str:
        """The record as JSON, without the values, which are for their owners."""
        return json.dumps({"format": release_format(self.record), "record": dict(self.record)})


class KNNRelease(_NoisyValues, Release):
    """Private KNN-Shapley values; `price_list` and `table` are None: there are no prices.

    Examples
    --------
    >>> import thresher as th
    >>> rows, labels = [[0.0], [1.0], [2.0]], ["cat", "cat", "dog"]
    >>> release = th.dp_knn_shapley(rows, labels, rows, labels, epsilon=1, delta=1e-5, k=1,
    ...     metric="euclidean")
    >>> release.values.shape, release.price_list
    ((3,), None)
    """


class SeededKNNRelease(_NoisyValues, SeededRelease):
    """A release from a seed, for tests and experiments: it protects nobody.

    Examples
    --------
    >>> import thresher as th
    >>> rows, labels = [[0.0], [1.0], [2.0]], ["cat", "cat", "dog"]
    >>> th.dp_knn_shapley(rows, labels, rows, labels, epsilon=1, delta=1e-5, k=1,
    ...     metric="euclidean", seed=0)
    SeededKNNRelease(knn, epsilon=1, delta=1e-05, add-remove, point)
    """


def dp_knn_shapley(
    X: Any, y: Any, X_val: Any, y_val: Any, *, epsilon: float, delta: float, k: int = 5,
    subsample: float | None = None, metric: str = "cosine", classes: Any = None,
    seed: int | None = None, adjacency: str = "add-remove",
) -> KNNRelease | SeededKNNRelease:  # fmt: skip
    """The paper's baseline: KNN-Shapley values, each with its own noise.

    It protects one released value at a time and does not protect against collusion. Use it only for
    comparison, and `dp_tknn_shapley` for everything else.

    Parameters
    ----------
    X, y, X_val, y_val, epsilon, delta, metric, classes, seed, adjacency
        As in `dp_tknn_shapley`.
    k
        As in `knn_shapley`, at most 100,000.
    subsample
        The rate of a fresh Poisson sample for each validation point; every point is valued next to
        that sample. None uses all points.

    Returns
    -------
    KNNRelease
        Values (sums over the validation set, utility of Jia et al. 2019), record and error.

    Raises
    ------
    InputError
        If an argument cannot be used.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    >>> th.dp_knn_shapley(
    ...     X, y, [[0.1]], ["a"], k=1, metric="euclidean", epsilon=1, delta=1e-5, seed=0
    ... )
    SeededKNNRelease(knn, epsilon=1, delta=1e-05, add-remove, point)
    """
    source = noise_source(seed)
    validation = check_validation(X_val, y_val, metric=metric, classes=classes, public=True)
    k, budget = check_count("k", k, most=LARGEST_K), Budget(epsilon, delta)
    if budget.delta == 0:
        raise InputError(
            f"{option('delta')} must be > 0, got 0: this mechanism adds Gaussian noise"
        )
    rate = None if subsample is None else check_number("subsample", subsample, least=1e-6, most=1)
    design = KNNDesign(
        budget, k, len(validation), None if rate == 1 else rate,
        check_adjacency(adjacency), seed is not None,
    )  # fmt: skip
    private = _within_range(read_points(X, y, validation), validation)
    noise = source.gaussian(design.sigma, len(private))
    sums = value_steps(private.points, validation, design, source)
    kind = KNNRelease if seed is None else SeededKNNRelease
    record = design.record() | {"validation_digest": validation.digest()}
    return kind(private, sums + noise, design.step, record)


@dataclass(frozen=True)
class KNNDesign:
    """How much noise to add, computed from public numbers alone."""

    budget: Budget
    k: int
    validation: int
    rate: float | None
    adjacency: Adjacency
    seeded: bool

    @property
    def step(self) -> float:
        """The value that one step stands for."""
        return 1 / (STEPS * self.k * (self.k + 1))

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Sensitivity to one validation point, in steps: rounding may add one, floats another."""
        return (STEPS + 2) * (1 if adjacency == "add-remove" else 2)

    @cached_property
    def multiplier(self) -> float:
        """The ratio of noise to sensitivity for one validation point."""
        if self.rate is None:
            mu = gaussian_mu(self.budget.epsilon, self.budget.delta)
            return math.sqrt(self.validation) / mu
        return sampled_multiplier(self.budget, self.rate, self.validation, self.adjacency)

    @cached_property
    def sigma(self) -> float:
        """The sigma of the noise on the sum over the validation set, in steps."""
        accounted = self.adjacency if self.rate is None else "add-remove"
        one = self.multiplier * self.sensitivity(accounted)
        return check_sigma(math.sqrt(self.validation * one**2 + ROUNDING_VARIANCE))

    def epsilon(self, adjacency: Adjacency) -> float:
        """The epsilon at the budget's delta under this adjacency."""
        delta = self.budget.delta
        if adjacency == self.adjacency:
            return self.budget.epsilon
        if self.rate is not None:
            steps = self.validation
            return sampled_epsilon(delta, self.rate, self.multiplier, steps, adjacency)
        ratio = self.sensitivity(adjacency) / self.sensitivity(self.adjacency)
        return gaussian_epsilon(ratio * math.sqrt(self.validation) / self.multiplier, delta)

    def record(self) -> dict[str, Any]:
        """What the release record says."""
        return {
            "mechanism": "knn",
            "noise": "discrete Gaussian",
            "caveat": CAVEAT,
            "adjacency": self.adjacency,
            "unit": "point",
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "epsilon_add_remove": self.epsilon("add-remove"),
            "epsilon_replace_one": self.epsilon("replace-one"),
            "sigma": self.sigma * self.step,
            "sensitivity": 1 / (self.k * (self.k + 1)),
            "scheme": "no sampling" if self.rate is None else "fresh Poisson samples",
            "rate": self.rate,
            "k": self.k,
            "validation_points": self.validation,
            "seeded": self.seeded,
            "version": __version__,
        }


def _within_range(private: PrivatePoints, validation: Validation) -> PrivatePoints:
    """The points, without those whose distances are too small to be ordered."""
    rows = private.points.rows
    if not isinstance(rows, Rows) or validation.rows is None or validation.metric == "cosine":
        return private
    if 0 < validation.rows.largest_norm() ** 2 < SMALLEST_SQUARE:
        raise InputError("X_val has only values below 1e-72: rescale the features")
    fine = (rows.squares >= SMALLEST_SQUARE) | ~rows.array.any(axis=1)
    if fine.all():
        return private
    kept, ordered = np.flatnonzero(fine), np.ones(private.total, np.bool_)
    ordered[private.where] = fine
    passed = {**private.passed, FEATURES: private.passed[FEATURES] & ordered}
    points = Points(rows.some(kept), private.points.codes[kept])
    return PrivatePoints(points, private.where[kept], passed)


def value_steps(
    points: Points, validation: Validation, design: KNNDesign, source: Noise
) -> Integers:
    """The exact values in steps, summed over the validation set."""
    n = len(points)
    total = np.zeros(n, np.int64)

    def job(table: Source, lo: int, hi: int, coins: Flags) -> Integers:
        bench, sums = Bench.of(n), np.zeros(n, np.int64)
        for v in range(lo, hi):
            order(bench, table, v, points.codes, int(validation.codes[v]))
            add_sampled_values(bench.keys, coins[v - lo], design.k, 1 / design.step, sums)
        return sums

    def jobs(table: Source) -> Iterator[tuple[Source, int, int, Flags]]:
        for lo, hi in cut(table.start, table.stop, JOB_ROWS):
            size = (hi - lo) * n
            coins = np.ones(size, bool) if design.rate is None else source.sample(design.rate, size)
            yield table, lo, hi, coins.reshape(hi - lo, n)

    for table in sources(points, validation, "float64") if n else ():
        for sums in in_order(job, jobs(table), parallel=n * len(validation) >= 1 << 20):
            total += sums
    return total
