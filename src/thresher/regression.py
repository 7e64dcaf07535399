"""Numbers as targets: what `tknn_shapley` and `knn_shapley` do with task="regression"."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError
from thresher.games.leaf_targets import Judges, LeafTargets
from thresher.games.nearest_targets import Chances, nearest_values
from thresher.games.ring_targets import RingTargetGame
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.games.target_changes import growth
from thresher.games.targets import Grid, TargetGame
from thresher.inputs.checked_inputs import Points, Validation, check_pair
from thresher.inputs.checks import MAX_INTEGER, check_choice
from thresher.inputs.labels import check_owners
from thresher.inputs.precomputed import Distances
from thresher.metrics import Rows
from thresher.neighbors.ball import Ball, Neighbors
from thresher.neighbors.kernel import Kernel
from thresher.neighbors.tiles import pair_table
from thresher.passes.result import warn_of_reach
from thresher.passes.walk import pay_while_counting
from thresher.progress import progress_bar
from thresher.threads import cut
from thresher.valuation import Valuation

CLASSES, REGRESSION = "classification", "regression"
TASKS = (CLASSES, REGRESSION)
PAIRS = 1 << 22  # distances that are held at a time
LARGEST, SMALLEST_RANGE = 1e150, 1e-140  # targets and their range: squares are float64 numbers


def check_task(task: object) -> str:
    """`task`, if it is one."""
    return check_choice("task", task, TASKS)


def is_regression(task: Any, empty: Any, bounds: Any, classes: Any) -> bool:
    """Whether targets are numbers; what belongs to the other task is refused."""
    if check_task(task) != REGRESSION:
        if empty is not None or bounds is not None:
            raise InputError(
                "empty and bounds need task='regression': for classes, the utility is 1/C where "
                "no point is near"
            )
        return False
    check_no_classes(classes)
    return True


def check_no_classes(classes: Any) -> None:
    """Refuse classes, which numbers do not go with."""
    if classes is not None:
        raise InputError("classes cannot be used with task='regression', which has targets")


def check_targets(name: str, y: Any, *, first: int = 0) -> Floats:
    """Targets as float64, if they are one finite number a point; `first` is the first row."""
    found = _column(name, y, first)
    if found.ndim != 1 or found.dtype.kind not in "fiu":
        raise InputError(
            f"{name} must have one number per row with task='regression', got {_kind(y)}"
        )
    if not len(found):
        raise InputError(f"{name} is empty: at least one target is needed")
    if found.dtype.kind in "iu" and (np.abs(found.astype(np.float64)) > MAX_INTEGER).any():
        raise _beyond(name)
    if not np.isfinite(found).all():
        row = first + int(np.flatnonzero(~np.isfinite(found))[0])
        raise InputError(f"{name} has NaN or infinite targets, first in row {row}: drop those rows")
    targets = found.astype(np.float64)
    if np.abs(targets).max() > LARGEST:
        raise InputError(f"{name} has targets beyond {LARGEST:g}: rescale them")
    return targets


def _column(name: str, y: Any, first: int) -> Array:
    """Targets as an array; objects as numbers, if they are some."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise InputError(f"{name} is a masked array with masked targets: drop those rows")
    found = np.asarray(y)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1 or found.dtype != object:
        return found
    return _numbers(name, found.tolist(), first)


def _numbers(name: str, objects: list[Any], first: int) -> Array:
    """The numbers of a list of objects; an error names the first entry that is none."""
    entries = [each.item() if isinstance(each, np.generic) else each for each in objects]
    for row, entry in enumerate(entries, first):
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            raise InputError(
                f"{name} must have one number per row with task='regression', got {entry!r} in "
                f"row {row}"
            )
        if isinstance(entry, int) and abs(entry) > MAX_INTEGER:
            raise _beyond(name)
    return np.array(entries, np.float64)


def _beyond(name: str) -> InputError:
    return InputError(f"{name} has integers beyond 2**53, which float64 rounds: rescale them")


def check_range(low: float, high: float) -> None:
    """Refuse targets that differ by so little that squared errors would be lost."""
    if 0 < high - low < SMALLEST_RANGE:
        raise InputError(
            f"targets from {low:g} to {high:g} differ by less than {SMALLEST_RANGE:g}: rescale them"
        )


def _kind(y: Any) -> str:
    return f"{type(y).__name__} of {np.asarray(y).dtype} with shape {np.shape(y)}"


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Two numbers, the lower first."""
    found = np.zeros(0)
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        found = np.asarray(bounds, np.float64)
    if found.shape != (2,) or not np.isfinite(found).all() or not found[0] < found[1]:
        raise InputError(f"bounds must be two numbers, the lower first, got {bounds!r}")
    if np.abs(found).max() > LARGEST:
        raise InputError(f"bounds must be at most {LARGEST:g}, got {bounds!r}: rescale the targets")
    check_range(float(found[0]), float(found[1]))
    return float(found[0]), float(found[1])


def check_empty(empty: Any, judges: Floats | None) -> float:
    """The prediction where nobody is near: the mean of the validation targets, if not given."""
    if empty is None and judges is None:
        raise InputError(
            "empty is needed if there is no validation set: pass the prediction for when no "
            "point is near, a public number such as 0"
        )
    if empty is None and judges is not None:
        return float(judges.mean())
    number = np.asarray(empty)
    plain = number.shape == () and number.dtype.kind in "fiu"
    size: Any = float(number) if plain else empty if type(empty) is int else np.nan
    if not abs(size) <= LARGEST:
        raise InputError(f"empty must be a finite number, at most {LARGEST:g}, got {empty!r}")
    return float(size)


def check_differ(low: float, high: float, *, both: bool) -> None:
    """Refuse a single distinct target; `both`: there is a validation set, too."""
    if low == high:
        raise InputError(
            f"{'y and y_val have' if both else 'y has'} one distinct target, {low:g}: there is "
            "nothing to predict. Regression needs targets that differ"
        )


@dataclass(frozen=True)
class Targets:
    """The targets of points and judges, and the prediction where nobody is near."""

    points: Floats
    judges: Floats
    empty: float

    @classmethod
    def of_judges(cls, y_val: Any, empty: Any) -> Targets:
        """Those of a validation set alone, checked."""
        judges = check_targets("y_val", y_val)
        return cls(judges, judges, check_empty(empty, judges))

    @classmethod
    def check(cls, y: Any, y_val: Any, empty: Any) -> Targets:
        """Checked; the default for `empty` is the mean of the validation targets."""
        points = check_targets("y", y)
        judges = points if y_val is None else check_targets("y_val", y_val)
        together = np.concatenate([points, judges])
        check_differ(float(together.min()), float(together.max()), both=y_val is not None)
        return cls(points, judges, check_empty(empty, None if y_val is None else judges))

    def bounds(self, bounds: Any = None) -> tuple[float, float]:
        """The range of all of them, or the public bounds that hold them."""
        together = [*(each for each in (self.points, self.judges)), np.array([self.empty])]
        low, high = min(each.min() for each in together), max(each.max() for each in together)
        if bounds is not None:
            wide = check_bounds(bounds)
            if not wide[0] <= low <= high <= wide[1]:
                raise InputError(
                    f"y, y_val or empty is outside the bounds {wide[0]:g} to {wide[1]:g}: they "
                    f"go from {low:g} to {high:g}; pass wider bounds="
                )
            return wide
        check_range(float(low), float(high))
        return float(low), float(high)

    def grid(self) -> Grid:
        """The grid of all of them."""
        return Grid.over(*self.bounds())

    def record(self) -> dict[str, Any]:
        """What a result says of them."""
        return {"task": REGRESSION, "empty": self.empty}


@dataclass(frozen=True)
class Paid:
    """What points were paid, in steps of a grid, by a game of `target_evidence`."""

    sums: Floats
    grid: Grid
    targets: Targets
    steps: Integers  # the targets of the points
    divisor: int

    def worth(self, targets: Floats) -> Floats:
        """What each point would be worth with another target, all else equal."""
        base, slope, bend = self.sums[:3]
        now, new = self.steps.astype(np.float64), (targets - self.grid.center) / self.grid.step
        found = base + now * (slope + now * bend) + growth(self.sums[3:6], now, new)
        return np.asarray(found * self.grid.step**2 / self.divisor)


def checked_points(
    X: Any, y: Any, X_val: Any, y_val: Any, *, metric: str, empty: Any
) -> tuple[Points, Validation, Targets]:
    """Points and validation set without classes, and their targets."""
    if (X_val is None) != (y_val is None) and metric != "precomputed":
        raise InputError("X_val and y_val go together: pass both, or neither")
    targets = Targets.check(y, y_val, empty)
    judges = None if y_val is None else np.zeros(len(targets.judges), np.int64)
    labels = np.zeros(len(targets.points), np.int64)
    points, validation = check_pair(
        X, labels, X_val, judges, metric=metric, classes=[0], mutual=True
    )
    return points, validation, targets


def radius_regression(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
    owners: Any, mean: bool, neighbors: Neighbors, progress: bool, empty: Any,
    bounds: Any = None, kernel: Kernel | None = None, kind: Any = None,
    show: Callable[[Paid], None] | None = None,
) -> Valuation:  # fmt: skip
    """`tknn_shapley` with numbers as targets; `show` sees what points were paid by the game.

    `kind` is the game, a `TargetGame`, or with a kernel a `RingTargetGame`.
    """
    points, validation, targets = checked_points(X, y, X_val, y_val, metric=metric, empty=empty)
    known_owners, wide = check_owners(owners, len(points)), targets.bounds(bounds)
    grid = Grid.over(*wide)
    unit = grid.step**2
    steps: Any = grid.steps(targets.points)
    points = replace(points, codes=steps)
    empty_steps = int(grid.steps(np.array([targets.empty]))[0])
    more: dict[str, Any] = {}
    edges = () if kernel is None else kernel.edges
    if kernel is not None:
        kind, more = kind or RingTargetGame, {"weights": kernel.weights}
    game = (kind or TargetGame)(grid.steps(targets.judges), empty_steps, semivalue, **more)
    near = Ball.around(validation, radius, neighbors, edges)
    divisor = len(validation) if mean else 1
    sums = np.zeros((game.entries, near.cells), np.int64)

    def keep(columns: slice, found: Integers) -> None:
        sums[:, columns] = found

    with progress_bar("tknn-shapley", len(points) * len(validation), show=progress) as advance:
        paid, groups = pay_while_counting(points, near, game, keep, advance=advance)
    if show is not None:
        show(Paid(paid, grid, targets, steps, divisor))
    values = game.total(paid, groups)
    if not sums.any():
        warn_of_reach(radius, stacklevel=4, mutual=validation.mutual)
    params = {
        "radius": radius,
        **({} if kernel is None else kernel.record()),
        "metric": validation.metric,
        "semivalue": semivalue_name(semivalue),
        **targets.record(),
        "bounds": list(wide),
        "grid": grid.record(),
        **validation.record(),
        "mean": mean,
    }
    ends = game.utility(sums) * unit / divisor, game.utility_none() * unit / divisor
    found = values * unit / divisor
    found.flags.writeable = False
    return Valuation(found, "tknn-shapley", params, *ends, known_owners)


def knn_regression(
    X: Any, y: Any, X_val: Any, y_val: Any, *, k: int, metric: str, utility: str, owners: Any,
    mean: bool, progress: bool, empty: Any, semivalue: Semivalue = "shapley",
) -> Valuation:  # fmt: skip
    """`knn_shapley` with numbers as targets."""
    if utility == "jia2019" and empty is not None:
        raise InputError("empty needs utility='mean': jia2019 has utility 0 for no points")
    given = 0.0 if utility == "jia2019" else empty
    points, validation, targets = checked_points(X, y, X_val, y_val, metric=metric, empty=given)
    known_owners = check_owners(owners, len(points))
    prediction = None if utility == "jia2019" else targets.empty
    values, everybody, nobody = np.zeros(len(points)), 0.0, 0.0
    chances = Chances.of(semivalue, len(points) - validation.mutual, k)
    with progress_bar("knn-shapley", len(points) * len(validation), show=progress) as advance:
        for v, order in enumerate(_orders(points, validation)):
            own, t = targets.points[order], float(targets.judges[v])
            values[order] += nearest_values(own, t, k, prediction, chances)
            few = own[:k]
            guess = few.sum() / k if prediction is None else few.mean()
            everybody -= float((guess - t) ** 2)
            nobody -= 0.0 if prediction is None else (prediction - t) ** 2
            if advance is not None:
                advance(len(points))
    divisor = len(validation) if mean else 1
    params = {
        "k": k,
        "metric": validation.metric,
        "utility": utility,
        "semivalue": semivalue_name(semivalue),
        **(targets.record() | ({"empty": None} if prediction is None else {})),
        **validation.record(),
        "mean": mean,
    }
    return Valuation(
        values / divisor, "knn-shapley", params, everybody / divisor, nobody / divisor, known_owners
    )


def _orders(points: Points, validation: Validation) -> Iterator[Integers]:
    """For each judge the points by their distance, by the pair rule; equal ones by position."""
    step = max(1, PAIRS // len(points))
    given = points.rows.table() if isinstance(points.rows, Distances) else np.zeros((0, 0))
    for lo, hi in cut(0, len(validation), step):
        if isinstance(points.rows, Rows):
            assert validation.rows is not None  # noqa: S101 - they have features, too
            cosine = validation.metric == "cosine"
            keys = pair_table(points.rows, validation.rows.some(slice(lo, hi)), cosine=cosine)
        else:
            keys = given[:, lo:hi]
        for v in range(lo, hi):
            order = np.argsort(keys[:, v - lo], kind="stable")
            yield order[order != v] if validation.mutual else order


def leaf_regression(
    votes: Any, targets: Targets, method: str, about: dict[str, Any], semivalue: Semivalue, *,
    owners: Any, mean: bool, progress: bool, kind: type[LeafTargets] = LeafTargets,
    show: Callable[[Paid], None] | None = None,
) -> Valuation:  # fmt: skip
    """`leaf_shapley` and `forest_shapley` with numbers as targets, for points in known leaves.

    `show` sees what the points were paid.
    """
    known_owners, grid = check_owners(owners, len(votes.codes)), targets.grid()
    trees, mutual = len(votes.near.starts) - 1, votes.rows_val is None
    if mutual and votes.trees.min() != votes.trees.max():
        raise InputError(
            "some points are in more trees than others: regression then needs a validation set, "
            "X_val and y_val"
        )
    share = 1 / max(int(votes.trees[0]), 1) if mutual else 1 / trees
    judges = grid.steps(targets.judges)
    none = int(grid.steps(np.array([targets.empty]))[0])
    votes = replace(votes, codes=grid.steps(targets.points))
    game = kind(
        judges, none, semivalue,
        leaf_judges=None if mutual else _judges_of(votes, judges, share), share=share,
    )  # fmt: skip
    utilities: list[float] = []
    with progress_bar(method, trees, show=progress, unit="trees") as bar:
        paid, groups = pay_while_counting(
            votes, votes.near, game,
            lambda columns, sums: utilities.append(game.leaf_utility(sums, columns)), advance=bar,
        )  # fmt: skip
    divisor = len(judges) if mean else 1
    if show is not None:
        show(Paid(paid, grid, targets, votes.codes, divisor))
    values, unit = game.total(paid, groups), grid.step**2
    params = {
        **about,
        "trees": trees,
        "semivalue": semivalue_name(semivalue),
        **targets.record(),
        "bounds": list(targets.bounds()),
        "grid": grid.record(),
        "judges": "points" if mutual else "validation",
        "validation_points": 0 if mutual else len(judges),
        "mean": mean,
    }
    ends = sum(utilities) * unit / divisor, game.utility_none() * unit / divisor
    return Valuation(values * unit / divisor, method, params, *ends, known_owners)


def _judges_of(votes: Any, targets: Integers, share: float) -> Callable[[slice], Judges]:
    """The validation points in the leaves of a tree, as the game asks for them."""

    def judges(columns: slice) -> Judges:
        leaves = votes.rows_val.leaves(votes.near.tree(columns))
        return leaf_judges(leaves, columns.stop - columns.start, targets, share)

    return judges


def leaf_judges(leaves: Array, size: int, targets: Integers, share: float) -> Judges:
    """The weight and the mean target of the judges in each leaf, and what is left of targets."""
    count = np.bincount(leaves, minlength=size)
    means = np.bincount(leaves, targets, minlength=size) / np.maximum(count, 1)
    left = float(((targets - means[leaves]) ** 2).sum())
    return np.asarray(count * share, np.float64), means, left * share
