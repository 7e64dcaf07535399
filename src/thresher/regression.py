"""Numbers as targets, checked: what task="regression" takes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError, quoted
from thresher.inputs.checked_inputs import Points, Validation, check_pair
from thresher.inputs.checks import MAX_INTEGER, check_choice, rows_text
from thresher.inputs.grids import Grid

CLASSES, REGRESSION = "classification", "regression"
TASKS = (CLASSES, REGRESSION)
PAIRS = 1 << 22  # distances that are held at a time
LARGEST, SMALLEST_RANGE = 1e150, 1e-140  # targets and their range: squares are float64 numbers
COARSE = 1e-15  # times the size or the spread of targets: they may be rounded by so much


def check_task(task: object) -> str:
    """Return `task` if it is one of the two; raise otherwise."""
    return check_choice("task", task, TASKS)


def is_regression(task: Any, empty: Any, bounds: Any, classes: Any) -> bool:
    """Whether targets are numbers; raise for arguments that belong to the other task."""
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
    """Raise if classes are given, which cannot be used with numbers."""
    if classes is not None:
        raise InputError("classes cannot be used with task='regression', which has targets")


def check_targets(name: str, y: Any, *, first: int = 0) -> Floats:
    """Targets as float64, checked: one finite number per point; `first` is the first row."""
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
    """Targets as an array, with objects converted to numbers if possible."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise InputError(f"{name} is a masked array with masked targets: drop those rows")
    found = np.asarray(y)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1 or found.dtype != object:
        return found
    return _numbers(name, found.tolist(), first)


def _numbers(name: str, objects: list[Any], first: int) -> Array:
    """The numbers in a list of objects; an error names the first entry that is not a number."""
    entries = [each.item() if isinstance(each, np.generic) else each for each in objects]
    for row, entry in enumerate(entries, first):
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            raise InputError(
                f"{name} must have one number per row with task='regression', got {quoted(entry)} "
                f"in row {row}"
            )
        if isinstance(entry, int) and abs(entry) > MAX_INTEGER:
            raise _beyond(name)
    return np.array(entries, np.float64)


def _beyond(name: str) -> InputError:
    return InputError(f"{name} has integers beyond 2**53, which float64 rounds: rescale them")


def check_range(low: float, high: float) -> None:
    """Raise if targets differ by so little that squared errors would be lost to rounding."""
    if 0 < high - low < SMALLEST_RANGE:
        raise InputError(
            f"targets from {low:g} to {high:g} differ by less than {SMALLEST_RANGE:g}: rescale them"
        )


def spread(targets: Floats) -> float:
    """How far most targets are from their middle; of targets that differ, never 0."""
    distance = np.abs(targets - np.median(targets)) if len(targets) else targets
    found = float(np.median(distance)) if distance.any() else 0.0
    return found or float(min(distance[distance > 0], default=0.0))


def first_rounded(targets: Floats, grid: Grid, usual: float) -> int | None:
    """The first row whose target a grid cannot hold closely enough, by the usual spread.

    Coarse grids, of private tables and of old files, hold what they hold.
    """
    if grid.center is not None:
        return None
    off = np.abs(grid.rounded(targets) - targets)
    rows = np.flatnonzero(off > COARSE * np.maximum(np.abs(targets), usual))
    return int(rows[0]) if len(rows) else None


def too_wide(
    name: str, targets: Floats, row: int, bounds: tuple[float, float], first: int = 0
) -> InputError:
    """The error for bounds that are too wide for the target in a row."""
    where = name if name == "empty" else f"{name} in row {first + row}"
    return InputError(
        f"bounds {bounds[0]:g} to {bounds[1]:g}, or the range of all targets, are too wide for "
        f"{targets[row]:g} in {where}, which would be rounded: pass narrower bounds=, or drop the "
        "rows whose targets are that far off"
    )


def _too_far(named: dict[str, Floats], rounded: float) -> InputError:
    """The error for targets that are so far off that others would be rounded."""
    size = max(float(np.abs(targets).max()) for targets in named.values())
    name, rows = next(
        (name, rows)
        for name, targets in named.items()
        if len(rows := np.flatnonzero(np.abs(targets) >= size / 1024))
    )
    where = "" if name == "empty" else f" in {rows_text(rows)}"
    return InputError(
        f"{name} has {named[name][rows[0]]:g}{where}, so far off that other targets, such as "
        f"{rounded:g}, would be rounded: drop those rows, or correct them"
    )


def _kind(y: Any) -> str:
    return f"{type(y).__name__} of {np.asarray(y).dtype} with shape {np.shape(y)}"


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Check that bounds are two numbers, the lower first, and return them."""
    found = np.zeros(0)
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        found = np.asarray(bounds, np.float64)
    if found.shape != (2,) or not np.isfinite(found).all() or not found[0] < found[1]:
        raise InputError(f"bounds must be two numbers, the lower first, got {quoted(bounds)}")
    if np.abs(found).max() > LARGEST:
        raise InputError(
            f"bounds must be at most {LARGEST:g}, got {quoted(bounds)}: rescale the targets"
        )
    check_range(float(found[0]), float(found[1]))
    return float(found[0]), float(found[1])


def check_empty(empty: Any, judges: Floats | None) -> float:
    """The prediction if nobody is near, by default the mean of the validation targets."""
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
        raise InputError(f"empty must be a finite number, at most {LARGEST:g}, got {quoted(empty)}")
    return float(size)


def check_differ(low: float, high: float, *, both: bool) -> None:
    """Raise if there is only one distinct target; `both`: there is a validation set, too."""
    if low == high:
        raise InputError(
            f"{'y and y_val have' if both else 'y has'} one distinct target, {low:g}: there is "
            "nothing to predict. Regression needs targets that differ"
        )


@dataclass(frozen=True)
class Targets:
    """The targets of points and judges, and the prediction if nobody is near."""

    points: Floats
    judges: Floats
    empty: float

    @classmethod
    def of_judges(cls, y_val: Any, empty: Any) -> Targets:
        """Check the targets of a validation set alone."""
        judges = check_targets("y_val", y_val)
        return cls(judges, judges, check_empty(empty, judges))

    @classmethod
    def check(cls, y: Any, y_val: Any, empty: Any) -> Targets:
        """Check targets; the default for `empty` is the mean of the validation targets."""
        points = check_targets("y", y)
        judges = points if y_val is None else check_targets("y_val", y_val)
        together = np.concatenate([points, judges])
        check_differ(float(together.min()), float(together.max()), both=y_val is not None)
        return cls(points, judges, check_empty(empty, None if y_val is None else judges))

    def bounds(self, bounds: Any = None) -> tuple[float, float]:
        """The range of all targets, or the public bounds that contain them."""
        together = [*(each for each in (self.points, self.judges)), np.array([self.empty])]
        low, high = min(each.min() for each in together), max(each.max() for each in together)
        if bounds is not None:
            wide = check_bounds(bounds)
            if not wide[0] <= low <= high <= wide[1]:
                raise InputError(
                    f"y, y_val or empty is outside the bounds {wide[0]:g} to {wide[1]:g}: they "
                    f"go from {low:g} to {high:g}; pass wider bounds="
                )
            self._check_fine(Grid.over(*wide), wide)
            return wide
        check_range(float(low), float(high))
        self._check_fine(Grid.over(float(low), float(high)))
        return float(low), float(high)

    def _check_fine(self, grid: Grid, bounds: tuple[float, float] | None = None) -> None:
        """Raise if the grid is too coarse, because of `bounds` or of targets that are far off."""
        usual = spread(np.concatenate([self.points, self.judges]))
        named = {"y": self.points, "y_val": self.judges, "empty": np.array([self.empty])}
        for name, targets in named.items():
            row = first_rounded(targets, grid, usual)
            if row is not None and bounds is not None:
                raise too_wide(name, targets, row, bounds)
            if row is not None:
                raise _too_far(named, targets[row])

    def grid(self) -> Grid:
        """The grid of all targets."""
        return Grid.over(*self.bounds())

    def as_classes(self, *, judged: bool) -> tuple[Integers, Integers | None]:
        """Points and judges with one class; no judges if the points judge each other."""
        judges = np.zeros(len(self.judges), np.int64) if judged else None
        return np.zeros(len(self.points), np.int64), judges

    def record(self) -> dict[str, Any]:
        """What a result says about the targets."""
        return {"task": REGRESSION, "empty": self.empty}


def checked_points(
    X: Any, y: Any, X_val: Any, y_val: Any, *, metric: str, empty: Any,
    complete: bool = False,
) -> tuple[Points, Validation, Targets]:  # fmt: skip
    """Points and validation set without classes, and their targets."""
    if (X_val is None) != (y_val is None) and metric != "precomputed":
        raise InputError("X_val and y_val go together: pass both, or neither")
    targets = Targets.check(y, y_val, empty)
    labels, judges = targets.as_classes(judged=y_val is not None)
    points, validation = check_pair(
        X, labels, X_val, judges, metric=metric, classes=[0], mutual=True, complete=complete
    )
    return points, validation, targets
