"""The four arguments every valuation starts from, checked together: X, y, X_val, y_val."""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, LabelWarning, TwinWarning, either
from thresher.inputs.checks import (
    Metric,
    check_columns,
    check_features,
    check_metric,
    check_width,
    column_names,
)
from thresher.inputs.labels import Classes, Codes, RawLabels, check_labels, class_list
from thresher.inputs.precomputed import Distances, Stored, check_complete, distances_of
from thresher.inputs.spelling import NAMES, named, split_by_spelling
from thresher.kernels.codes import mark, maybe_members
from thresher.kernels.pairs import fingerprints
from thresher.metrics import CHUNK, Rows, measure
from thresher.threads import cut

MARK_BITS = 18
MOST_POINTS = 1 << 31  # an index and a flag share 32 bits
NEEDED = (
    "a validation set is needed here, X_val and y_val. Only tknn_shapley, knn_shapley, "
    "leaf_shapley and forest_shapley let points judge each other if you leave both out"
)
PUBLIC = (
    "a public validation set is needed here, X_val and y_val. It is published together with the "
    "prices, so without it the points themselves would be published"
)


@dataclass(frozen=True)
class Points:
    """The points to value: their features (or distances) and class codes."""

    rows: Rows | Distances
    codes: Codes

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, lo: int, hi: int) -> Points:
        """The points from row `lo` up to row `hi`, if they have features."""
        assert isinstance(self.rows, Rows)  # noqa: S101 - distances may come in blocks of columns
        rows = Rows(self.rows.array[lo:hi], self.rows.squares[lo:hi])
        return Points(rows, self.codes[lo:hi])


@dataclass(frozen=True)
class Validation:
    """The public side: the validation rows, their class codes, the class list and the metric."""

    rows: Rows | None  # None where distances are precomputed
    codes: Codes
    classes: Classes
    metric: Metric
    columns: tuple[str, ...] | None = None  # names of the features, where they have names
    mutual: bool = False  # the points themselves, each of which is left out of its own game
    complete: bool = False  # whether distances that a sparse matrix does not store are far

    def __len__(self) -> int:
        return len(self.codes)

    def record(self) -> dict[str, Any]:
        """What a valuation records about its validation set."""
        if self.mutual:
            return {"validation_points": 0, "judges": "points"}
        return {"validation_points": len(self)}

    def digest(self) -> str:
        """A SHA-256 of all of it: rows as float64 numbers, labels, class list and metric."""
        state = hashlib.sha256(repr((self.metric, len(self), self.classes.labels)).encode())
        state.update(self.codes.tobytes())
        if self.rows is not None:
            state.update(repr(self.rows.width).encode())
            for lo, hi in cut(0, len(self), max(1, CHUNK // self.rows.width)):
                state.update((self.rows.as_float64(slice(lo, hi)) + 0.0).tobytes())
        return state.hexdigest()


def check_validation(
    X_val: object, y_val: object, *, metric: object, classes: object,
    seen: RawLabels | None = None, public: bool = False, complete: bool = False,
) -> Validation:  # fmt: skip
    """The validation set; the class list is given, or read off y_val and the labels `seen`.

    Its rows may be the caller's own array: `own_copy` makes a copy that is safe to keep. If the set
    will be `public`, the message for a missing one says so.
    """
    known = check_metric(metric)
    complete = check_complete(complete, known)
    needs_rows = known != "precomputed"
    if y_val is None or (X_val is None and needs_rows):
        name = "X_val" if X_val is None and needs_rows else "y_val"
        raise InputError(f"{name} is None: {PUBLIC if public else NEEDED}")
    if not needs_rows:
        if X_val is not None:
            raise InputError("X_val must be None with metric='precomputed': X holds the distances")
        rows, labels = None, check_labels("y_val", y_val)
    else:
        rows = measure("X_val", check_features("X_val", X_val), cosine=known == "cosine")
        labels = check_labels("y_val", y_val, len(rows))
    if len(labels) == 0:
        raise InputError("y_val is empty: at least one validation point is needed")
    found = class_list(classes, *(() if seen is None else (seen,)), labels)
    columns = column_names(X_val) if rows is not None else None
    codes = found.encode("y_val", labels)
    return Validation(rows, codes, found, known, columns, complete=complete)


def own_copy(validation: Validation) -> Validation:
    """The same validation set, copied so that it shares no memory with the caller's arrays."""
    if validation.rows is None:
        return validation
    rows = Rows(validation.rows.array.copy(), validation.rows.squares)
    return dataclasses.replace(validation, rows=rows)


def check_points(
    X: object,
    y: object,
    validation: Validation,
    labels: RawLabels | None = None,
    *,
    strangers: bool = False,
    first: int = 0,
    name: str = "X",
    whole: bool = False,
) -> Points:
    """Points that match the validation set in width and classes.

    A label that is not a class is an error; with `strangers`, it gets the code after the last
    class. Messages number rows from `first`, and call the table `name`. `whole` says that there are
    no other points.
    """
    if labels is None:
        labels = check_labels("y", y, first=first)
    if validation.rows is None:
        rows: Rows | Distances = distances_of(
            X, len(labels), len(validation), first, complete=validation.complete, whole=whole
        )
    else:
        check_columns(name, column_names(X), "X_val", validation.columns)
        array = check_features(name, X)
        check_width(name, array, "X_val", validation.rows.width)
        rows = measure(name, array, cosine=validation.metric == "cosine", first=first)
    labels = check_labels("y", labels, len(rows), first=first)
    if len(labels) >= MOST_POINTS:
        raise InputError(f"X has {len(labels)} rows: value them in parts, with NeighborCounts")
    if strangers:
        codes = validation.classes.known_codes(labels)
        return Points(rows, np.where(codes < 0, np.int32(len(validation.classes)), codes))
    holder = "y" if name == "X" else name  # a table in a file has its labels with it
    return Points(rows, validation.classes.encode(holder, labels, first=first))


def check_pair(
    X: object, y: object, X_val: object, y_val: object, *, metric: object, classes: object,
    mutual: bool = False, complete: bool = False,
) -> tuple[Points, Validation]:  # fmt: skip
    """Points and validation set of one valuation, with a warning if they share rows.

    If they may be `mutual`, points without a validation set judge each other.
    """
    labels = check_labels("y", y)
    if mutual and X_val is None and y_val is None:
        return check_mutual(X, labels, metric=metric, classes=classes, complete=complete)
    validation = check_validation(
        X_val, y_val, metric=metric, classes=classes, seen=labels, complete=complete
    )
    points = check_points(X, y, validation, labels, whole=True)
    if classes is None:
        warn_of_codes(points.codes, validation.codes, validation.classes, stacklevel=4)
    warn_of_twins(points, validation, stacklevel=4)
    return points, validation


def check_mutual(
    X: object, y: object, *, metric: object, classes: object, complete: bool = False
) -> tuple[Points, Validation]:
    """Points that judge each other: as points, and as their own validation set."""
    known, labels, judges = check_metric(metric), check_labels("y", y), None
    complete = check_complete(complete, known)
    if known == "precomputed":
        rows: Rows | Distances = distances_of(X, len(labels), None, complete=complete, whole=True)
    else:
        rows = judges = measure("X", check_features("X", X), cosine=known == "cosine")
    labels = check_labels("y", labels, len(rows))
    if len(labels) < 2:
        raise InputError(
            "X has 1 row, and no other point to judge it: pass a validation set, X_val and y_val"
        )
    found = class_list(classes, labels)
    codes, columns = found.encode("y", labels), None if judges is None else column_names(X)
    return Points(rows, codes), Validation(judges, codes, found, known, columns, mutual=True)


def warn_of_labels(
    ours: Iterable[Hashable], theirs: Iterable[Hashable], *, stacklevel: int
) -> None:
    """Warn if points and validation set share no label, or write some of them differently."""
    ours, theirs = dict.fromkeys(ours), dict.fromkeys(theirs)
    said = ""
    if ours.keys().isdisjoint(theirs):
        first, other = (named([next(iter(each))]) for each in (ours, theirs))
        said = (
            f"have no label in common (the first are {first} and {other}): are they of the same "
            f"kind?{either(' If this is intended, pass classes=', '')}"
        )
    elif pairs := split_by_spelling(ours, theirs):
        shown = "; ".join(named(pair) for pair in pairs[:NAMES])
        said = (
            f"write some labels differently, so they count as different classes ({shown}): write "
            f"them alike{either(', or pass classes= if they are meant to differ', '')}"
        )
    if said:
        warnings.warn(f"y and y_val {said}", LabelWarning, stacklevel=stacklevel)


def warn_of_codes(ours: Codes, theirs: Codes, classes: Classes, *, stacklevel: int) -> None:
    """Warn as `warn_of_labels` does, about labels that are given by their codes."""
    found = [np.flatnonzero(np.bincount(codes)).tolist() for codes in (ours, theirs)]
    labels = ([classes.labels[code] for code in codes] for codes in found)
    warn_of_labels(*labels, stacklevel=stacklevel + 1)


def warn_of_twins(points: Points, validation: Validation, *, stacklevel: int) -> None:
    """Warn of validation rows that are exact copies of training rows."""
    if isinstance(points.rows, Distances) or validation.rows is None:
        return
    twins = count_twins(points.rows, validation.rows)
    tell_of_twins(twins, len(validation), stacklevel=stacklevel + 1)


def tell_of_twins(twins: int, rows: int, *, stacklevel: int) -> None:
    """Warn that `twins` of `rows` validation rows are exact copies of training rows, if any are."""
    if twins:
        warnings.warn(
            f"{twins} of {rows} validation rows are exact copies of training rows. This leak "
            "makes the copies look better than they are. Split before you oversample, or drop "
            "the copies",
            TwinWarning,
            stacklevel=stacklevel,
        )


def count_twins(points: Rows, validation: Rows) -> int:
    """How many validation rows also occur among the points."""
    return int(find_twins(points, validation).sum())


def find_twins(points: Rows, validation: Rows) -> NDArray[np.bool_]:
    """Which validation rows also occur among the points.

    Equal rows have equal norms, bit for bit: only points whose norm some validation row shares are
    looked at closer, so this costs next to nothing.
    """
    marks = np.zeros(1 << MARK_BITS, np.bool_)
    shift = np.uint64(64 - MARK_BITS)
    mark(validation.squares.view(np.uint64), marks, shift)
    maybe = maybe_members(points.squares.view(np.uint64), marks, shift)
    maybe = maybe[np.isin(points.squares[maybe], validation.squares)]
    if not len(maybe):
        return np.zeros(len(validation), np.bool_)
    theirs = row_fingerprints(points, maybe)
    ours = row_fingerprints(validation)
    return np.isin(ours, theirs)


def row_fingerprints(
    rows: Rows, which: NDArray[np.int64] | None = None, salt: NDArray[np.int64] | None = None
) -> NDArray[np.uint64]:
    """A 64-bit fingerprint of each row (or of the rows `which`) and of its integer in `salt`."""
    count = len(rows) if which is None else len(which)
    out = np.empty(count, np.uint64)
    salt = np.zeros(count, np.int64) if salt is None else salt
    for lo, hi in cut(0, count, max(1, CHUNK // rows.width)):
        some = slice(lo, hi) if which is None else which[lo:hi]
        fingerprints(rows.as_float64(some), salt[lo:hi], out[lo:hi])
    return out


def point_prints(rows: Rows | Distances, salt: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A fingerprint of each row of features or of distances, and of its integer in `salt`."""
    if isinstance(rows, Distances):
        if not isinstance(rows.source, np.ndarray | Stored):
            raise InputError(
                "X must be one array of distances here: add the points in parts instead"
            )
        table: Any = rows.source
        rows = Rows(table, np.empty(len(rows)))
    return row_fingerprints(rows, None, salt)
