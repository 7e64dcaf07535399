"""Public sides in files: what kind of side it is follows from the format of the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from thresher.errors import InputError
from thresher.files import check_sealed
from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import check_choice, check_features, check_metric, check_radius
from thresher.inputs.grids import Grid
from thresher.inputs.labels import Classes, Codes
from thresher.metrics import measure
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import Kernel
from thresher.sides.ball_side import BALL, RINGS, BallSide
from thresher.sides.forest_side import POINTS, PREFIX, VALIDATION, ForestSide
from thresher.sides.protocol import PublicSide
from thresher.sides.target_forest_side import TargetForestSide
from thresher.sides.target_side import RING_TARGETS, TARGETS, TargetClasses, TargetSide


def stored_kind(about: Any, formats: Mapping[str, str], *parts: bytes) -> str:
    """The kind of side in a file, one of `formats`; an error if the seal is broken."""
    named = about.get("format") if isinstance(about, dict) else None
    known = [kind for kind, name in formats.items() if named in {name, former(name)}]
    if not known:
        raise InputError(f"its format is not {' or '.join(formats.values())}")
    check_sealed(about, str(named), *parts)
    return known[0]


def former(name: str) -> str:
    """The name of the format before this one, if it can still be read."""
    return (
        name.replace("target-counts/2", "target-counts/1")
        .replace("target-prices/2", "target-prices/1")
        .replace("target-live/2", "target-live/1")
    )


def stored_side(kind: str, about: Any, arrays: Mapping[str, Any]) -> PublicSide:
    """The side that a file describes."""
    return READERS[kind](about, arrays)


def _ball(about: Any, arrays: Mapping[str, Any]) -> BallSide:
    """The side that a file describes."""
    metric, features = check_metric(about["metric"]), arrays.get("features")
    rows = None
    if features is not None:
        rows = measure("X_val", check_features("X_val", features), cosine=metric == "cosine")
    columns = None if about["columns"] is None else tuple(about["columns"])
    classes = Classes(tuple(about["classes"]))
    labels = _codes(arrays["labels"], classes, None if rows is None else len(rows))
    if not len(labels):
        raise InputError("it has no validation points")
    complete = bool(about.get("complete", False))
    validation = Validation(rows, labels, classes, metric, columns, complete=complete)
    return BallSide(validation, check_radius(about["radius"]), Kernel.recorded(about))


def _targets(about: Any, arrays: Mapping[str, Any]) -> TargetSide:
    """The side that a file describes."""
    plain = _ball(*_without_targets(about, arrays))
    classes, codes = _stored_targets(about, arrays)
    validation = dataclasses.replace(plain.validation, codes=codes, classes=classes)
    return TargetSide(validation, plain.radius, plain.kernel, float(about["empty"]))


def _forest_targets(about: Any, arrays: Mapping[str, Any]) -> TargetForestSide:
    """The side that a file describes."""
    plain = _forest(*_without_targets(about, arrays))
    classes, codes = _stored_targets(about, arrays)
    return TargetForestSide(
        plain.forest, classes, plain.features, codes, empty=float(about["empty"])
    )


def _without_targets(about: Any, arrays: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """The same description and arrays with one class in place of targets."""
    return {**about, "classes": [0]}, {**arrays, "labels": 0 * np.asarray(arrays["labels"])}


def _stored_targets(about: Any, arrays: Mapping[str, Any]) -> tuple[TargetClasses, Any]:
    """The grid of targets, and those of the validation points in its steps."""
    low, high = about["bounds"]
    classes = TargetClasses((TARGETS,), Grid(**about["grid"]), (float(low), float(high)))
    codes, (least, most) = np.array(arrays["labels"], np.int64), classes.code_range
    if len(codes) and not least <= codes.min() <= codes.max() <= most:
        raise InputError("it has targets outside its bounds")
    return dataclasses.replace(classes, judges=classes.decode(codes)), codes


def _codes(codes: Any, classes: Classes, rows: int | None) -> Codes:
    """The class codes in a file, checked: one for each of `rows` rows."""
    labels = np.array(codes, np.int32)
    known = labels.ndim == 1 and (labels >= 0).all() and (labels < len(classes)).all()
    if not known:
        raise InputError("it has labels that are not among its classes")
    if rows is not None and rows != len(labels):
        raise InputError(f"it has {rows} rows but {len(labels)} labels")
    return labels


def _forest(about: Any, arrays: Mapping[str, Any]) -> ForestSide:
    """The side that a file describes."""
    nodes = {
        name.removeprefix(PREFIX): each for name, each in arrays.items() if name.startswith(PREFIX)
    }
    forest, classes = Forest.stored(about["forest"], nodes), Classes(tuple(about["classes"]))
    judges = check_choice("judges", about["judges"], (POINTS, VALIDATION))
    features = np.array(arrays["features"], np.float32)
    codes = _codes(arrays["labels"], classes, len(features))
    empty = judges == POINTS
    side = ForestSide(forest, classes, None if empty else features, codes)
    if features.ndim != 2 or features.shape[1] != side.width or (len(codes) == 0) != empty:
        raise InputError("its validation set does not fit the forest")
    return side


READERS: dict[str, Callable[[Any, Mapping[str, Any]], PublicSide]] = {
    BALL: _ball,
    RINGS: _ball,
    ForestSide.kind: _forest,
    TARGETS: _targets,
    RING_TARGETS: _targets,
    TargetForestSide.kind: _forest_targets,
}
