"""What a budget will buy, before anything is spent.

The validation set plays the training set: points are drawn from it with replacement, counted,
privatized and priced as a real release would, and the values of the validation points at those
prices are compared with their exact ones. Nothing private is looked at.

So public numbers show whether a release would be noise, before it is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError, either, option
from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import MAX_INTEGER, check_count
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX
from thresher.privacy.accountants import Budget, check_adjacency
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Design, Setting, check_points_per_owner, stated_epsilons
from thresher.privacy.noise import Seeded
from thresher.privacy.public_rows import LEAST_ROWS, Public, as_points
from thresher.privacy.release import is_hidden, over_noise
from thresher.privacy.release_setting import RINGS, Game, design_release, release_setting
from thresher.ranking import rank_agreement
from thresher.regression import CLASSES

TRIALS = 4
MOST_DRAWN = 20_000  # points, at most, by which noise is foretold; more are a multiple of them


@dataclass(frozen=True)
class Plan:
    """What one mechanism is expected to give.

    Parameters
    ----------
    mechanism
        Its name.
    relative_error
        Expected root mean square error of the values over their root mean square.
    rank_agreement
        Expected Spearman correlation with the exact values.
    zero_budget
        The rank agreement of the zero-budget score, for comparison: it costs nothing.
    record
        Noise, bound, and epsilon under both adjacencies.
    is_noise
        Whether the released table would be no larger than noise alone.
    mu_squared
        What a ledger with the Gaussian filter is charged; None if it does not accept the mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X_val = np.random.default_rng(0).normal(size=(50, 3))
    >>> y_val = X_val[:, 0] > 0
    >>> plans = th.plan_release(X_val, y_val, points=1000, epsilon=1, delta=1e-5)
    >>> sorted(plan.mechanism for plan in plans)
    ['cells', 'table']
    """

    mechanism: str
    relative_error: float
    rank_agreement: float
    zero_budget: float
    record: dict[str, Any]
    is_noise: bool
    mu_squared: float | None = None

    def __repr__(self) -> str:
        expected = f"relative error {self.relative_error:.3f}, ranks {self.rank_agreement:.3f}"
        noise = "; its table is noise" if self.is_noise else ""
        return f"Plan({self.mechanism}: {expected}; zero budget {self.zero_budget:.3f}{noise})"


def plan_release(
    X_val: Any, y_val: Any, *, points: int, epsilon: float, delta: float, radius: float = 0.5,
    metric: str = "cosine", classes: Any = None, adjacency: str = "add-remove",
    mechanisms: Any = None, points_per_owner: int | None = None, task: str = CLASSES,
    bounds: tuple[float, float] | None = None, empty: float | None = None, kernel: Any = BOX,
    rings: int = RINGS, forest: Forest | None = None,
) -> list[Plan]:  # fmt: skip
    """Plan a release: what each mechanism is expected to give for this many points, best first.

    Parameters
    ----------
    X_val, y_val, epsilon, delta, radius, metric, classes, adjacency, task, bounds, empty
        As in `dp_tknn_shapley`.
    kernel, rings, forest
        As in `dp_tknn_shapley`.
    points
        About how many points there will be: a number that is public, or a guess.
    mechanisms
        Names or mechanisms with options; by default "table" and, for classes within a radius,
        "cells".
    points_per_owner
        If given, owners with about this many points each are protected, not single points.

    Returns
    -------
    list of Plan
        In the order of their expected relative error. The error is NaN if it cannot be estimated,
        because no validation point is near another or all have one label. Real errors are larger if
        the validation set does not resemble the points.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X_val = np.random.default_rng(0).normal(size=(100, 3))
    >>> plans = th.plan_release(X_val, X_val[:, 0] > 0, points=2000, epsilon=1, delta=1e-5)
    >>> [plan.mechanism for plan in plans]
    ['table', 'cells']
    """
    setting = release_setting(
        Game(X_val, y_val, radius, metric, classes, task, bounds, empty, kernel, rings, forest),
        Budget(epsilon, delta), check_adjacency(adjacency),
        "point" if points_per_owner is None else "owner",
        points_per_owner=check_points_per_owner(points_per_owner, owners=True),
        points=check_count(option("points"), points, most=MAX_INTEGER),
    )  # fmt: skip
    if mechanisms is None:
        mechanisms = ("table", "cells") if type(setting) is Setting else ("table",)
    if isinstance(mechanisms, str) or not isinstance(mechanisms, Iterable):
        mechanisms = [mechanisms]
    designs = [_design(each, setting) for each in mechanisms]
    plans = [plan_design(design, points) for design in designs]
    return sorted(plans, key=lambda plan: np.nan_to_num(plan.relative_error, nan=np.inf))


def _design(mechanism: Any, setting: Setting) -> Design:
    """A mechanism fitted to a setting; a "counted" bound gets the expected number of units."""
    if getattr(mechanism, "bound", None) != "counted":
        return design_release(mechanism, setting)
    assert setting.points is not None  # noqa: S101 - a plan is for so many
    waiting = design_release(mechanism, replace(setting, points=None))
    return waiting.recorded({"count": setting.points // (setting.points_per_owner or 1)})


def plan_design(design: Design, n: int) -> Plan:
    """What a design is expected to give for n points like those of the validation set."""
    _check_rows("a plan", design.setting.validation)
    public = design.setting.public()
    trials = [_trial(design, public, n, trial) for trial in range(TRIALS)]
    error, ranks, free = np.mean(trials, axis=0).tolist()
    record = design.record | stated_epsilons(design)
    noise = is_hidden(design, _usual_table(design, n))
    cost = design.cost(design.setting.adjacency, design.setting.unit, "gaussian").mu_squared
    name = str(design.record["mechanism"])
    return Plan(name, error, ranks, free, record, noise, cost or None)


def check_more_than_noise(design: Design, points: int) -> None:
    """Raise if the table of so many points would be no larger than noise, by public data alone."""
    named = option("points")
    _check_rows(named, design.setting.validation, f"add some, or leave {named} out")
    usual = _usual_table(design, points)
    if is_hidden(design, usual):
        share = math.sqrt(over_noise(design, usual))
        raise InputError(
            f"the release would be noise: {points} points like those of the validation set change "
            f"its table by only {share:.2g} times as much as the noise does. Nothing was charged. "
            "Use a larger epsilon, another "
            f"mechanism{either(' (plan_release compares them)', '')} or more points, or release "
            f"it anyway ({option('anyway', value=True)})"
        )


def _check_rows(what: str, validation: Validation, way_out: str = "add some") -> None:
    rows = 0 if validation.rows is None else len(validation)
    if rows < LEAST_ROWS:
        raise InputError(
            f"{what} needs features of at least {LEAST_ROWS} validation points, got {rows}: "
            f"{way_out}"
        )


def _usual_table(design: Design, n: int) -> Floats:
    """The table that so many points, spread like the validation set, are expected to give."""
    some = min(n, max(MOST_DRAWN, design.setting.points_per_owner or 1))
    measured = design.measure(_drawn(design.setting, some, seed=0), Seeded(0))
    return np.multiply(measured, n / some, dtype=np.float64)


def _trial(design: Design, public: Public | None, n: int, seed: int) -> tuple[float, float, float]:
    """The relative error and the rank agreement of a trial, and those ranks for the free score."""
    setting = design.setting
    drawn = _drawn(setting, n, seed)
    exact = setting.exact_prices(drawn)
    found = design.prices(design.release(drawn, Seeded(seed)))
    truth, values, free = setting.row_worths(public, exact, found)
    return _relative(values, truth), rank_agreement(values, truth), rank_agreement(free, truth)


def _drawn(setting: Setting, n: int, seed: int) -> Contributions:
    """What this many points, drawn from the validation set with replacement, add to the table."""
    which = np.random.default_rng(seed).integers(0, len(setting.validation), n)
    owners = np.arange(n) // (setting.points_per_owner or 1)
    return setting.contributions(as_points(setting.validation, which), Units.of(owners, n))


def _relative(values: Floats, truth: Floats) -> float:
    power = float((truth**2).mean())
    return float(np.sqrt(((values - truth) ** 2).mean() / power)) if power > 0 else math.nan
