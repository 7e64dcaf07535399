"""The public side of a release, from what a caller hands in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thresher.checks import check_radius
from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs import check_validation, kept
from thresher.privacy.accountants import Adjacency, Budget
from thresher.privacy.design import Setting, Unit
from thresher.privacy.target_setting import TargetSetting
from thresher.regression import CLASSES, REGRESSION, check_task
from thresher.sides.targets import target_side


@dataclass(frozen=True)
class Game:
    """Who judges, and what near and right mean: arguments of `dp_tknn_shapley`, not checked yet."""

    X_val: Any
    y_val: Any
    radius: Any = 0.5
    metric: Any = "cosine"
    classes: Any = None
    task: Any = CLASSES
    bounds: Any = None
    empty: Any = None


def release_setting(
    game: Game, budget: Budget, adjacency: Adjacency, unit: Unit = "point",
    semivalue: Semivalue = "shapley", points_per_owner: int | None = None,
    points: int | None = None,
) -> Setting:  # fmt: skip
    """All that is public before the points are looked at, checked."""
    rest: dict[str, Any] = {
        "budget": budget, "adjacency": adjacency, "unit": unit,
        "semivalue": check_semivalue(semivalue), "points_per_owner": points_per_owner,
        "points": points,
    }  # fmt: skip
    if check_task(game.task) == REGRESSION:
        return _of_targets(game, rest)
    if game.bounds is not None or game.empty is not None:
        raise InputError("bounds and empty go with task='regression'")
    validation = check_validation(
        game.X_val, game.y_val, metric=game.metric, classes=game.classes, public=True
    )
    return Setting(kept(validation), check_radius(game.radius), **rest)


def _of_targets(game: Game, rest: dict[str, Any]) -> TargetSetting:
    if game.classes is not None:
        raise InputError("classes goes without task='regression', which has targets")
    if game.bounds is None:
        raise InputError(
            "bounds is needed for private targets: the public range of targets, (low, high). "
            "Private targets outside of it are clipped"
        )
    side = target_side(
        game.X_val, game.y_val, radius=game.radius, metric=game.metric, empty=game.empty,
        bounds=game.bounds,
    )  # fmt: skip
    return TargetSetting(side.validation, side.radius, **rest, targets=side)
