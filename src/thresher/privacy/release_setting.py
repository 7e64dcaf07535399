"""Plan a release from the caller's arguments: its public side, and a mechanism by name."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.errors import InputError, either, option
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs.checked_inputs import check_validation, own_copy
from thresher.inputs.checks import check_choice
from thresher.inputs.grids import Grid
from thresher.neighbors.kernel import BOX, Kernel, check_kernel
from thresher.privacy.accountants import Adjacency, Budget, Unit
from thresher.privacy.cells_mechanism import Cells
from thresher.privacy.contributions import Contributions, Units
from thresher.privacy.design import Design, Setting
from thresher.privacy.leaf_setting import LeafSetting
from thresher.privacy.names import number_owners
from thresher.privacy.paper_mechanism import Paper
from thresher.privacy.private_points import PrivatePoints, read_points
from thresher.privacy.ring_setting import RingSetting
from thresher.privacy.table_mechanism import Table
from thresher.privacy.target_setting import TargetSetting
from thresher.regression import CLASSES, REGRESSION, check_task
from thresher.sides.ball_side import BallSide, only_ball
from thresher.sides.forest_side import FOREST, ForestSide, check_leaves_alone, forest_side
from thresher.sides.protocol import PublicSide
from thresher.sides.target_side import TargetSide, target_side

RINGS = 4  # of a private kernel: each has noise of its own (benchmarks/privacy.py)
Mechanism = Table | Paper | Cells
MECHANISMS: dict[str, type[Mechanism]] = {"table": Table, "paper": Paper, "cells": Cells}


@dataclass(frozen=True)
class Game:
    """The validation set and what near and right mean: unchecked `dp_tknn_shapley` arguments."""

    X_val: Any
    y_val: Any
    radius: Any = 0.5
    metric: Any = "cosine"
    classes: Any = None
    task: Any = CLASSES
    bounds: Any = None
    empty: Any = None
    kernel: Any = BOX
    rings: Any = RINGS
    forest: Any = None


def release_setting(
    game: Game, budget: Budget, adjacency: Adjacency, unit: Unit = "point",
    semivalue: Semivalue = "shapley", points_per_owner: int | None = None,
    points: int | None = None,
) -> Setting:  # fmt: skip
    """Check everything that is public before the points are looked at, and return it."""
    known = check_semivalue(semivalue)
    return side_setting(
        _public_side(game), budget=budget, adjacency=adjacency, unit=unit, semivalue=known,
        points_per_owner=points_per_owner, points=points,
    )  # fmt: skip


def side_setting(side: PublicSide, **rest: Any) -> Setting:
    """The setting for a public side: one of radius, kernel, leaves or targets."""
    if isinstance(side, ForestSide):
        return LeafSetting(side, **rest)
    if isinstance(side, TargetSide):
        return TargetSetting(side, **rest)
    ball = only_ball(side)
    return (Setting if ball.kernel is None else RingSetting)(ball, **rest)


def _public_side(game: Game) -> PublicSide:
    radius, kernel = check_kernel(game.kernel, game.rings, game.radius)
    if check_task(game.task) == REGRESSION:
        return _targets_side(game, kernel)
    if game.bounds is not None or game.empty is not None:
        raise InputError(
            f"{option('bounds')} and {option('empty')} need {option('task', REGRESSION)}"
        )
    if game.forest is not None:
        check_leaves_alone(game.radius, game.metric, game.kernel)
        return forest_side(game.forest, game.X_val, game.y_val, game.classes)
    validation = check_validation(
        game.X_val, game.y_val, metric=game.metric, classes=game.classes, public=True
    )
    return BallSide(own_copy(validation), radius, kernel)


def _targets_side(game: Game, kernel: Kernel | None) -> TargetSide:
    for name, given in ((option("kernel"), kernel), (FOREST, game.forest)):
        if given is not None:
            raise InputError(
                f"{name} cannot be used with {option('task', REGRESSION)}: private releases of "
                "numbers count all points within the radius alike. Leave it out"
            )
    if game.classes is not None:
        raise InputError("classes cannot be used with task='regression', which has targets")
    if game.bounds is None:
        raise InputError(
            f"{option('bounds')} is missing: pass the public range of the targets, "
            f"{either('(low, high)', 'such as 0,100')}. Private targets outside it are clipped"
        )
    return target_side(
        game.X_val, game.y_val, radius=game.radius, metric=game.metric, empty=game.empty,
        bounds=game.bounds, grid=Grid.coarse,
    )  # fmt: skip


def design_release(mechanism: object, setting: Setting) -> Design:
    """A mechanism, by name or with options, fitted to a setting."""
    if not isinstance(mechanism, Mechanism):
        mechanism = MECHANISMS[check_choice("mechanism", mechanism, tuple(MECHANISMS))]()
    if type(setting) is not Setting and not isinstance(mechanism, Table):
        raise InputError(
            "targets, kernels and leaves can be released only by the mechanism 'table', got "
            f"{type(mechanism).__name__.lower()!r}"
        )
    return mechanism.design(setting)


def read_contributions(
    setting: Setting, X: Any, y: Any, owners: tuple[Hashable, ...] | None, *,
    together: bool = False,
) -> tuple[PrivatePoints, Contributions]:  # fmt: skip
    """The usable points, and what each unit of points adds.

    If there are owners, a point without one is not usable. A unit is a point or an owner, or, if
    `together`, all points.
    """
    owned = None if owners is None else np.array([owner is not None for owner in owners], bool)
    private = read_points(X, y, setting.validation, owned)
    numbers = None if owners is None else number_owners(owners)[private.where]
    numbers = np.zeros(len(private), np.int64) if together else numbers
    units = Units.of(numbers, len(private))
    return private, setting.contributions(private.points, units)
