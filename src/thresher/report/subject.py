"""Subject: the valuation a report is about, and the data that came with it, checked together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError
from thresher.findings.label_findings import Findings
from thresher.findings.second_look import rank_space
from thresher.forest import FOREST
from thresher.inputs.checked_inputs import Points, Validation
from thresher.inputs.checks import (
    check_columns,
    check_features,
    check_flag,
    check_width,
    column_names,
)
from thresher.inputs.labels import Classes, Codes, check_labels, class_list, raw_labels
from thresher.metrics import Rows, measure
from thresher.neighbors.kernel import Kernel
from thresher.neighbors.tree_columns import TreeColumns
from thresher.regression import REGRESSION, check_targets
from thresher.report.bands import cut_in_bands
from thresher.report.phrases import brief, short
from thresher.tables.copies import Copies
from thresher.valuation import Valuation

STRANGERS = "zero-budget-score"  # the method that takes labels which are no class
FEATURES = 4  # columns of a data frame that are shown beside a row


class Section(Protocol):
    """A section of the page: it holds what was measured, and its template shows that."""

    name: ClassVar[str]  # its id on the page, and the name of its template

    @property
    def title(self) -> str:
        """The title in the list of sections."""


@dataclass(frozen=True)
class Data:
    """Features and class codes of the points and of the validation points, if there are any."""

    rows: Rows
    codes: Codes
    rows_val: Rows
    codes_val: Codes
    splits: tuple[Any, Any] = (None, None)  # for a forest, both sides as its trees split them


@dataclass(frozen=True)
class Subject:
    """What is known: values, and as much of the data as the caller passed."""

    valuation: Valuation
    classes: tuple[str, ...] = ()  # as text; empty where there are no labels
    codes: Codes | None = None  # the class of each point
    codes_val: Codes | None = None  # and of each validation point
    given: Data | None = None  # these with features
    ids: Sequence[Any] | None = None
    numbers: Sequence[int] | None = None  # of the rows where they come from
    shown: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # columns beside each row
    held_out: bool = False  # whether validation points are unchecked rows of the same table
    seed: int = 0
    findings: Findings | None = None  # where they are known already
    copies: Copies | None = None  # which rows are copies of others
    labels: tuple[str, ...] = ()  # the classes as a file has them, whole
    targets: Floats | None = None  # where labels are numbers: classes are bands of them
    targets_val: Floats | None = None

    def __len__(self) -> int:
        return len(self.valuation)

    @property
    def values(self) -> Floats:
        """The value of each point."""
        return self.valuation.values

    @property
    def data(self) -> Data:
        """Features and classes of both sides, or an error that says why there are none."""
        if self.metric == "precomputed":
            raise InputError("distances were precomputed, so there are no features to go by")
        if self.given is None:
            raise InputError("the report was made without X, y, X_val and y_val")
        return self.given

    @property
    def kernel(self) -> Kernel | None:
        """The rings of the valuation; None if all near points count alike."""
        return Kernel.recorded(self.valuation.params)

    @property
    def radius(self) -> float:
        """The radius of the valuation, or an error if the method has none."""
        if "radius" not in self.valuation.params:
            raise InputError(f"{self.valuation.method} has no radius")
        return float(self.valuation.params["radius"])

    @property
    def metric(self) -> str:
        """The metric of the valuation; euclidean for methods without one."""
        return str(self.valuation.params.get("metric", "euclidean"))

    @property
    def mutual(self) -> bool:
        """Whether the points judged each other, without a validation set."""
        return judged_by_points(self.valuation)

    @property
    def validation_points(self) -> int | None:
        """How many validation points there are; None if that is not known or there are none."""
        count = self.valuation.params.get("validation_points")
        return count if isinstance(count, int) and not self.mutual else None

    @cached_property
    def order(self) -> Integers:
        """Rows by value, the lowest first; equal values by position."""
        return np.argsort(self.values, kind="stable")

    def random(self, purpose: int) -> np.random.Generator:
        """Random numbers for one purpose, which do not depend on those for other purposes."""
        return np.random.default_rng([self.seed, purpose])

    def label(self, row: int) -> str:
        """The label of a point as text; empty if labels are not known."""
        if self.targets is not None:
            return short(float(self.targets[row]))
        return "" if self.codes is None else self.classes[self.codes[row]]

    def number(self, row: int) -> int:
        """The row number of a point in the table it comes from."""
        return row if self.numbers is None else int(self.numbers[row])

    def name(self, row: int) -> str:
        """The id of a point as text; empty if there are none."""
        return "" if self.ids is None else brief(self.ids[row])

    def story(self, row: int, *more: str) -> str:
        """What is known about a point, in one line."""
        name, kind = self.name(row), "label" if self.targets is None else "target"
        known = f"row {self.number(row)}", name and f"id {name}", f"{kind} {self.label(row)}"
        return " · ".join(part for part in (*known, *more) if part)


def sample(count: int, most: int, random: np.random.Generator) -> Integers:
    """The numbers below `count`, all or `most` of them at random; in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(random.choice(count, most, replace=False))


def shortlist(present: Integers, scores: Array, most: int) -> Integers:
    """The classes to show, in order: all that are present, or those with the highest scores."""
    if len(present) <= most:
        return present
    return np.sort(present[np.argsort(-scores, kind="stable")[:most]])


def check_subject(
    valuation: object, X: Any, y: Any, X_val: Any, y_val: Any,
    *, ids: Any = None, rows: Any = None, show: Any = None, held_out: bool = False,
    seed: int = 0, findings: Findings | None = None,
    checked: tuple[Points, Validation] | None = None, copies: Copies | None = None,
) -> Subject:  # fmt: skip
    """The subject, if valuation and data fit each other; `checked` data are not checked again."""
    if not isinstance(valuation, Valuation):
        raise InputError(f"valuation must be a Valuation, got {type(valuation).__name__}")
    precomputed = valuation.params.get("metric") == "precomputed"
    _check_given(valuation, X=X, y=y, X_val=X_val, y_val=y_val)
    n = len(valuation)
    if n == 0:
        raise InputError("the valuation has no points: there is nothing to report")
    known = None if ids is None else _entries("ids", ids, n)
    numbers = None if rows is None else _entries("rows", rows, n)
    forest = valuation.method == FOREST
    array = None if X is None or precomputed or forest else check_features("X", X)
    shown = _frame_columns(X, array, n) if show is None else _shown_columns(show, n)
    classes, codes, codes_val, data = None, None, None, None
    targets = targets_val = None
    if checked is not None:
        points, validation = checked
        classes, codes, codes_val = validation.classes, points.codes, validation.codes
        if isinstance(points.rows, Rows) and validation.rows is not None:
            data = Data(points.rows, codes, validation.rows, codes_val)
    elif y is not None:
        classes, codes, codes_val, targets, targets_val = _labeled(valuation, y, y_val)
        if forest and X is not None:
            data = _forest_data(X, codes, X_val, codes_val)
        elif array is not None and X_val is not None:
            check_columns("X", column_names(X), "X_val", column_names(X_val))
            cosine = valuation.params.get("metric") == "cosine"
            data = _data(array, codes, X_val, codes_val, cosine=cosine)
    return Subject(
        valuation, () if classes is None else _texts(classes.labels), codes, codes_val, data, known,
        numbers, shown, check_flag("held_out", held_out), seed, findings, copies,
        () if classes is None else tuple(map(str, classes.labels)), targets, targets_val,
    )  # fmt: skip


def _labeled(
    valuation: Valuation, y: Any, y_val: Any
) -> tuple[Classes, Codes, Any, Floats | None, Floats | None]:
    """The classes and the codes of both sides; for numbers, their bands and the numbers."""
    if valuation.params.get("task") != REGRESSION:
        return *_codes(valuation, y, y_val), None, None
    targets = check_targets("y", y)
    targets_val = None if y_val is None else check_targets("y_val", y_val)
    codes, codes_val, classes = cut_in_bands(targets, targets_val)
    _check_counts(valuation, codes, codes_val)
    return classes, codes, codes_val, targets, targets_val


def judged_by_points(valuation: Valuation) -> bool:
    """Whether there was no validation set."""
    return valuation.params.get("judges") == "points"


def _check_given(valuation: Valuation, **tables: Any) -> None:
    """Refuse tables if some of them are missing."""
    given = [name for name, table in tables.items() if table is not None]
    fitting = [[], ["y"], ["y", "y_val"], list(tables)]
    if valuation.params.get("metric") == "precomputed":
        fitting.append(["X", "y", "y_val"])
    if judged_by_points(valuation):
        fitting = [[], ["y"], ["X", "y"]]
    if given in fitting:
        return
    if judged_by_points(valuation):
        raise InputError(
            f"the points judged each other: pass X and y alone, got {' and '.join(given)}"
        )
    raise InputError(
        f"a report takes X, y, X_val and y_val together, or y and y_val, or y, or none of "
        f"them, got {' and '.join(given)}"
    )


def _codes(valuation: Valuation, y: Any, y_val: Any) -> tuple[Classes, Codes, Any]:
    """The classes and the codes of both sides' labels, whose numbers must fit the valuation."""
    labels = check_labels("y", y)
    labels_val = None if y_val is None else check_labels("y_val", y_val)
    stored = valuation.params.get("classes")
    if isinstance(stored, list) and valuation.method != STRANGERS:
        classes = Classes(tuple(_hashable(entry) for entry in stored))
    else:
        classes = class_list(None, *(part for part in (labels, labels_val) if part is not None))
    codes = _encode(classes, "y", labels)
    codes_val = None if labels_val is None else _encode(classes, "y_val", labels_val)
    _check_counts(valuation, codes, codes_val)
    return classes, codes, codes_val


def _check_counts(valuation: Valuation, codes: Codes, codes_val: Codes | None) -> None:
    """Refuse numbers of rows that are not those of the valuation."""
    if len(codes) != len(valuation):
        raise InputError(f"the valuation has {len(valuation)} points but y has {len(codes)} labels")
    wanted = valuation.params.get("validation_points")
    if codes_val is not None and wanted is not None and len(codes_val) != wanted:
        raise InputError(
            f"the valuation was made with {wanted} validation points but y_val has {len(codes_val)}"
        )


def _encode(classes: Classes, name: str, labels: Any) -> Codes:
    """The codes of labels; classes may be the repr of labels that are not JSON, such as dates."""
    codes = classes.known_codes(labels)
    if len(codes) and int(codes.min()) < 0:
        return classes.encode(name, [x if isinstance(x, str) else repr(x) for x in labels])
    return codes


def _hashable(entry: Any) -> Hashable:
    return tuple(_hashable(part) for part in entry) if isinstance(entry, list) else entry


def _texts(labels: Sequence[Hashable]) -> tuple[str, ...]:
    """Labels as text, all different: 1 and "1" are told apart by their repr."""
    for written in (tuple(map(brief, labels)), tuple(brief(repr(label)) for label in labels)):
        if len(set(written)) == len(written):
            return written
    return tuple(f"{brief(label)} (class {code})" for code, label in enumerate(labels))


def _data(array: Any, codes: Codes, X_val: Any, codes_val: Codes, *, cosine: bool) -> Data:
    array_val = check_features("X_val", X_val)
    check_width("X", array, "X_val", array_val.shape[1])
    _check_lengths((array, codes), (array_val, codes_val))
    rows, rows_val = measure("X", array, cosine=cosine), measure("X_val", array_val, cosine=cosine)
    return Data(rows, codes, rows_val, codes_val)


def _forest_data(X: Any, codes: Codes, X_val: Any, codes_val: Codes | None) -> Data:
    """Features as trees split them, and as ranks, which charts and regressions can use."""
    columns = TreeColumns.of("X", X)
    splits = columns.encode("X", X)
    splits_val = None if X_val is None else columns.encode("X_val", X_val)
    _check_lengths((splits, codes), (splits_val, codes_val))
    ranks = rank_space(splits if splits_val is None else np.concatenate([splits, splits_val]))
    rows = measure("X", ranks, cosine=False)
    ours, theirs = rows.some(slice(0, len(splits))), rows.some(slice(len(splits), None))
    known = np.empty(0, np.int32) if codes_val is None else codes_val
    return Data(ours, codes, theirs, known, (splits, splits_val))


def _check_lengths(*sides: tuple[Any, Codes | None]) -> None:
    """Refuse points, or a validation set, with different numbers of rows and labels."""
    for name, (table, labels) in zip(("X", "X_val"), sides, strict=True):
        if table is not None and labels is not None and len(table) != len(labels):
            raise InputError(f"{name} has {len(table)} rows but there are {len(labels)} labels")


def _frame_columns(X: Any, array: Any, n: int) -> dict[str, Any]:
    """The first columns of a data frame, to be shown beside each row."""
    names = column_names(X) if X is not None else None
    if names is None:
        return {}
    if array is None:  # of a forest: cells of any kind
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        return {
            name: _entries(name, frame.get_column(name).to_list(), n) for name in names[:FEATURES]
        }
    if len(array) != n:
        raise InputError(f"the valuation has {n} points but X has {len(array)} rows")
    return {name: array[:, place] for place, name in enumerate(names[:FEATURES])}


def _shown_columns(show: object, n: int) -> dict[str, Any]:
    if not isinstance(show, Mapping):
        raise InputError(f"show must map names to columns, got {type(show).__name__}")
    return {str(name): _entries(f"show[{name!r}]", column, n) for name, column in show.items()}


def _entries(name: str, column: Any, n: int) -> Sequence[Any]:
    """A column as a sequence of n entries of any kind."""
    found = raw_labels(name, column)
    if len(found) != n:
        raise InputError(f"{name} has {len(found)} entries but the valuation has {n} points")
    return found if isinstance(found, list) else found.tolist()
