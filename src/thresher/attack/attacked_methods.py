"""What is attacked: the valuation functions of this library, or any other.

Given all points of an experiment, a target becomes an oracle. These points are members,
non-members, and points to draw shadow sets from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.attack.oracles import (
    CallOracle,
    CountOracle,
    NearTables,
    NoisyOracle,
    Oracle,
    RankOracle,
    TargetTables,
)
from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs.checked_inputs import Points, Validation, check_points, check_validation
from thresher.inputs.checks import MAX_INTEGER, check_choice, check_count, check_radius
from thresher.inputs.labels import check_labels
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX
from thresher.privacy.accountants import Budget
from thresher.privacy.noise import Seeded
from thresher.privacy.private_points import read_points
from thresher.privacy.release_setting import RINGS, Game, Mechanism, design_release, release_setting
from thresher.regression import CLASSES
from thresher.sides.ball_side import BallSide


@dataclass(frozen=True)
class Data:
    """The points of an experiment and the validation set, as they were passed."""

    X: Any
    y: Any
    X_val: Any
    y_val: Any
    classes: Any = None

    def checked(self, metric: str) -> tuple[Points, Validation]:
        """Check both sides; without `classes`, take them from y_val and y."""
        labels = check_labels("y", self.y)
        validation = check_validation(
            self.X_val, self.y_val, metric=metric, classes=self.classes, seen=labels
        )
        return check_points(self.X, self.y, validation, labels), validation


@dataclass(frozen=True)
class TKNN:
    """Exact threshold values, as from `tknn_shapley`: a target of `membership_attack`.

    Parameters
    ----------
    radius, metric, semivalue
        As in `tknn_shapley`.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> from thresher.attack import TKNN
    >>> rng = np.random.default_rng(0)
    >>> X, V = rng.normal(size=(300, 2)), rng.normal(size=(30, 2))
    >>> attack = th.membership_attack(
    ...     X, X[:, 0] > 0, V, V[:, 0] > 0, against=TKNN(radius=0.3),
    ...     members=50, nonmembers=50, shadow=100, shadow_sets=4,
    ... )
    >>> len(attack.is_member)
    100
    """

    radius: float = 0.5
    metric: str = "cosine"
    semivalue: Semivalue = "shapley"

    def oracle(self, data: Data, seed: int) -> Oracle:  # noqa: ARG002
        """An oracle with the counts of all points."""
        points, validation = data.checked(self.metric)
        tables = NearTables.of(points, BallSide(validation, check_radius(self.radius)))
        return CountOracle(tables, check_semivalue(self.semivalue))


@dataclass(frozen=True)
class KNN:
    """Exact nearest-neighbor values, as from `knn_shapley`: a target of `membership_attack`.

    Parameters
    ----------
    k, metric, utility
        As in `knn_shapley`.

    Examples
    --------
    >>> from thresher.attack import KNN
    >>> KNN(k=3)  # pass it as `against=`
    KNN(k=3, metric='cosine', utility='soft-label')
    """

    k: int = 5
    metric: str = "cosine"
    utility: str = "soft-label"

    def oracle(self, data: Data, seed: int) -> Oracle:  # noqa: ARG002
        """An oracle with the distances of all points."""
        check_choice("utility", self.utility, ("soft-label", "jia2019"))
        sides, k = data.checked(self.metric), min(check_count("k", self.k), MAX_INTEGER)
        return RankOracle(*sides, k, self.utility)


@dataclass(frozen=True)
class DPTKNN:
    """Private threshold values, as from `dp_tknn_shapley`: a target of `membership_attack`.

    The noise is seeded, so that an attack can be repeated.

    Parameters
    ----------
    epsilon, delta, mechanism, radius, metric, task, bounds, empty, kernel, rings, forest
        As in `dp_tknn_shapley`.

    Examples
    --------
    >>> from thresher.attack import DPTKNN
    >>> target = DPTKNN(epsilon=1, delta=1e-5)  # pass it as `against=`
    >>> target.mechanism, target.radius
    ('table', 0.5)
    """

    epsilon: float
    delta: float
    mechanism: str | Mechanism = "table"
    radius: float = 0.5
    metric: str = "cosine"
    task: str = CLASSES
    bounds: tuple[float, float] | None = None
    empty: float | None = None
    kernel: Any = BOX
    rings: int = RINGS
    forest: Forest | None = None

    def oracle(self, data: Data, seed: int) -> Oracle:
        """An oracle with the mechanism fitted to the validation set and the classes."""
        game = Game(
            data.X_val, data.y_val, self.radius, self.metric, data.classes, self.task,
            self.bounds, self.empty, self.kernel, self.rings, self.forest,
        )  # fmt: skip
        setting = release_setting(game, Budget(self.epsilon, self.delta), "add-remove")
        if self.task == CLASSES:
            points = check_points(data.X, data.y, setting.validation)
            tables: Any = None if self.forest is not None else NearTables.of(points, setting.side)
        else:
            points = read_points(data.X, data.y, setting.validation).points
            tables = TargetTables.of(points, setting.side)
        own = int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])  # not that of the split
        return NoisyOracle(points, design_release(self.mechanism, setting), tables, Seeded(own))


@dataclass(frozen=True)
class Recomputed:
    """Any function of (X, y, X_val, y_val) with `.values`: a target of `membership_attack`.

    Parameters
    ----------
    function
        It is called again for every question of the attacker, so this is slow.

    Examples
    --------
    >>> import thresher as th
    >>> from thresher.attack import Recomputed
    >>> target = Recomputed(th.zero_budget_score)  # pass it as `against=`
    >>> target.function.__name__
    'zero_budget_score'
    """

    function: Callable[..., Any]

    def oracle(self, data: Data, seed: int) -> Oracle:  # noqa: ARG002
        """An oracle with the function and the points."""
        if data.classes is not None:
            raise InputError(
                "classes cannot be used with Recomputed(function): pass them to the function itself"
            )
        X, y = np.asarray(data.X), np.asarray(data.y)
        return CallOracle(self.function, X, y, (data.X_val, data.y_val))


Target = TKNN | KNN | DPTKNN | Recomputed
