"""From checked arguments to a `Valuation`: the steps that all four methods share."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import FitWarning, InputError
from thresher.inputs.checked_inputs import check_pair
from thresher.inputs.checks import check_count, check_flag, check_number
from thresher.inputs.labels import check_owners, label_array
from thresher.metrics import Rows
from thresher.passes.checkpoint import Checkpoint
from thresher.progress import progress_bar
from thresher.regression import REGRESSION, check_task, checked_points
from thresher.retrain.engine import Journal, run
from thresher.retrain.newton import Newton
from thresher.retrain.plans import Limit, Plan, Start
from thresher.retrain.utility import (
    Game,
    NumberGame,
    Outcome,
    Refit,
    check_model,
    model_identity,
)
from thresher.threads import thread_count
from thresher.valuation import Valuation

LARGEST_BLOCK = 64
BLOCK_SECONDS = 1.0


def estimate(
    method: str, about: dict[str, Any], make_plan: Callable[[Start], Plan], problem: Problem, *,
    owners: object, model: object, accelerate: object, mean: object, seed: object, workers: object,
    checkpoint: str | Path | None, progress: object,
) -> Valuation:  # fmt: skip
    """Train until the plan is done, and return its values as a `Valuation`."""
    seed, game = check_count("seed", seed, least=0), problem.game
    known_owners = check_owners(owners, len(game.X))
    model = check_model(model, seed, numbers=problem.numbers)
    accelerate, mean = check_flag("accelerate", accelerate), check_flag("mean", mean)
    if accelerate and problem.numbers:
        raise InputError("accelerate is for classes: leave it out with task='regression'")
    threads = _check_workers(workers)
    progress = check_flag("progress", progress)
    utility = Newton.of(game, model) if accelerate else Refit(game, model)
    full, seconds = _everybody(utility)
    utility = replace(utility, checked=True)
    size = LARGEST_BLOCK
    if not accelerate:  # of no consequence for values: every fit is for itself
        size = max(1, min(LARGEST_BLOCK, int(BLOCK_SECONDS / seconds)))
    identity: dict[str, Any] = {}
    if checkpoint is not None:
        identity = {
            "method": method, **about, "seed": seed, "accelerate": accelerate,
            **model_identity(model), "data": _digest(game), "versions": _versions(),
        }  # fmt: skip
    with Checkpoint(checkpoint, {**identity, "size": size}, free=("size",)) as kept:
        journal = Journal(kept)
        plan = make_plan(Start(len(game.X), game.none, full, journal.size, seed))
        with progress_bar(method, plan.total(), show=progress, unit="fits") as advance:
            overall = run(
                utility, plan, journal, workers=threads, processes=not accelerate, pace=seconds,
                advance=advance,
            )  # fmt: skip
    _warn(overall, plan, "mean target" if problem.numbers else "most frequent class")
    values, errors = plan.result()
    params = {
        **about, "model": repr(model), "accelerate": accelerate, "evaluations": plan.spent,
        "seed": seed, "failed_fits": plan.failed, **problem.about,
        "validation_points": len(game.V), "mean": mean,
    }  # fmt: skip
    if plan.stability is not None or plan.short_of is not None:
        params["stability"] = plan.stability
    scale = 1 if mean else len(game.V)
    ends = scale * full, scale * game.none
    return Valuation(values * scale, method, params, *ends, known_owners, errors * scale)


def _check_workers(workers: object) -> int:
    """How many workers to use: as asked, as in an active `joblib.parallel_config`, or all cores."""
    from joblib import effective_n_jobs

    if workers is None:
        configured = int(effective_n_jobs(None))
        return configured if configured > 1 else thread_count()
    if isinstance(workers, int) and workers < 1:
        raise InputError(
            f"workers must be an integer >= 1, got {workers}: leave it out for all cores"
        )
    return check_count("workers", workers)


def check_limit(evaluations: object, stability: object) -> Limit:
    """When to stop, from the caller's arguments."""
    most = None if evaluations is None else check_count("evaluations", evaluations)
    wanted = None
    if stability is not None:
        wanted = check_number("stability", stability, least=0, most=1)
        if wanted == 1 and most is None:
            raise InputError(
                "stability=1 may never be reached: pass evaluations= too, or a smaller stability"
            )
    return Limit(most, wanted)


@dataclass(frozen=True)
class Problem:
    """The data that a model is trained and tested on."""

    game: Any
    about: dict[str, Any]  # for the record
    numbers: bool = False

    @classmethod
    def check(
        cls, X: Any, y: Any, X_val: Any, y_val: Any, *, classes: Any, task: str, empty: Any
    ) -> Problem:
        """Check points and validation set, with classes or with numbers."""
        if check_task(task) == REGRESSION:
            if classes is not None:
                raise InputError("classes cannot be used with task='regression', which has targets")
            if y_val is None:
                raise InputError("y_val is None: a retrained model is judged by a validation set")
            points, validation, targets = checked_points(
                X, y, X_val, y_val, metric="euclidean", empty=empty
            )
            sides = (_rows(points.rows), targets.points, _rows(validation.rows), targets.judges)
            about = {**targets.record(), "utility": "minus the mean squared error"}
            return cls(NumberGame(*sides, targets.empty), about, numbers=True)
        if empty is not None:
            raise InputError("empty needs task='regression'")
        points, validation = check_pair(X, y, X_val, y_val, metric="euclidean", classes=classes)
        labels = label_array(validation.classes.labels)
        if labels.dtype.kind == "O":
            labels = np.arange(len(labels))
        ours, theirs = (each.codes.astype(np.int64) for each in (points, validation))
        game = Game(_rows(points.rows), ours, _rows(validation.rows), theirs, labels)
        return cls(game, {"classes": list(validation.classes.labels)})


def _rows(rows: Any) -> NDArray[Any]:
    """The features as a read-only view, so that models that change their input have to copy it."""
    assert isinstance(rows, Rows)  # noqa: S101 - the metric is not "precomputed"
    view = rows.array.view()
    view.flags.writeable = False
    return view


def _everybody(utility: Refit) -> tuple[float, float]:
    """The utility of all points, and the seconds it took; raise if the fit fails."""
    everybody = np.ones(utility.points, np.bool_)
    seconds = []
    for _ in range(2 if isinstance(utility, Newton) else 1):  # the first call may have compiled
        start = time.perf_counter()
        outcome = utility.evaluate([everybody])
        seconds.append(time.perf_counter() - start)
    if outcome.failed[0]:
        raise InputError(
            "model cannot be fitted on all points (it is given a plain table of numbers): "
            + outcome.complaint
        )
    return outcome.utilities[0], max(1e-6, seconds[-1])


def _digest(game: Any) -> str:
    state = hashlib.sha256()
    for field in fields(game):
        array = np.atleast_1d(getattr(game, field.name))
        state.update(repr((array.shape, array.dtype.str)).encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()


def _versions() -> list[str]:
    """The versions of the packages that utilities depend on."""
    from importlib.metadata import version

    return [f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "scipy")]


def _warn(overall: Outcome, plan: Plan, instead: str) -> None:
    words = [
        f"{count} of {plan.spent} fits {what}"
        for count, what in (
            (plan.failed, f"failed, and predicted the {instead} of their points instead"),
            (overall.warned, "warned"),
        )
        if count
    ]
    if words:
        warnings.warn(
            f"{'; '.join(words)}. If that is too many, change the model or its settings. The first "
            f"said {overall.complaint}",
            FitWarning,
            stacklevel=4,
        )
    if plan.short_of is not None:
        found = (
            "" if plan.stability is None else f", where it was {plan.stability:.3g} when checked"
        )
        warnings.warn(
            f"stability={plan.short_of:g} was not reached with {plan.spent} evaluations{found}: "
            "pass more evaluations=, or a smaller stability",
            FitWarning,
            stacklevel=4,
        )
