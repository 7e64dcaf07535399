"""The public side of a release, from what a caller hands in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thresher.errors import InputError, option
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs.checked_inputs import Validation, check_validation, kept
from thresher.neighbors.kernel import BOX, Kernel, check_kernel
from thresher.privacy.accountants import Adjacency, Budget
from thresher.privacy.design import Setting, Unit
from thresher.privacy.leaf_setting import LeafSetting
from thresher.privacy.ring_setting import RingSetting
from thresher.privacy.target_setting import TargetSetting
from thresher.regression import CLASSES, REGRESSION, check_task
from thresher.sides.ball_side import only_ball
from thresher.sides.forest_side import FOREST, ForestSide, check_leaves_alone, forest_side
from thresher.sides.protocol import PublicSide
from thresher.sides.target_side import target_side

RINGS = 4  # of a private kernel: each has noise of its own (benchmarks/privacy.py)


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
    kernel: Any = BOX
    rings: Any = RINGS
    forest: Any = None


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
    radius, kernel = check_kernel(game.kernel, game.rings, game.radius)
    if check_task(game.task) == REGRESSION:
        for name, given in ((option("kernel"), kernel), (FOREST, game.forest)):
            if given is not None:
                raise InputError(
                    f"{name} cannot be used with task='regression': private releases of numbers "
                    "count all points within the radius alike. Leave it out"
                )
        return _of_targets(game, rest)
    if game.bounds is not None or game.empty is not None:
        raise InputError("bounds and empty need task='regression'")
    if game.forest is not None:
        check_leaves_alone(game.radius, game.metric, game.kernel)
        side = forest_side(game.forest, game.X_val, game.y_val, game.classes)
        return LeafSetting.of(side, **rest)
    validation = check_validation(
        game.X_val, game.y_val, metric=game.metric, classes=game.classes, public=True
    )
    return class_setting(kept(validation), radius, kernel, **rest)


def class_setting(
    validation: Validation, radius: float, kernel: Kernel | None, *rest: Any, **more: Any
) -> Setting:
    """The setting of classes; without a kernel all near points count alike."""
    if kernel is None:
        return Setting(validation, radius, *rest, **more)
    return RingSetting.of(kernel, Setting(validation, radius, *rest, **more))


def side_setting(side: PublicSide, **rest: Any) -> Setting:
    """The setting of classes whose public side is known: a radius, a kernel, or leaves."""
    if isinstance(side, ForestSide):
        return LeafSetting.of(side, **rest)
    ball = only_ball(side)
    return class_setting(ball.validation, ball.radius, ball.kernel, **rest)


def _of_targets(game: Game, rest: dict[str, Any]) -> TargetSetting:
    if game.classes is not None:
        raise InputError("classes cannot be used with task='regression', which has targets")
    if game.bounds is None:
        raise InputError(
            "bounds is missing: pass the public range of the targets, (low, high). Private "
            "targets outside it are clipped"
        )
    side = target_side(
        game.X_val, game.y_val, radius=game.radius, metric=game.metric, empty=game.empty,
        bounds=game.bounds,
    )  # fmt: skip
    return TargetSetting(side.validation, side.radius, **rest, targets=side)
