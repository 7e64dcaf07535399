"""How the structure of a forest is grown, if points come in parts or from Dask."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.growth import check_regressor, grow_codes, grow_targets, is_fitted
from thresher.inputs.labels import check_labels, class_list
from thresher.neighbors.forests import Forest
from thresher.neighbors.growing import GrowingSample, split_count
from thresher.neighbors.tree_columns import Features, TreeColumns
from thresher.passes.partitions import collected
from thresher.passes.parts import Labels
from thresher.passes.problem import Problem
from thresher.passes.target_span import TargetSpan
from thresher.regression import REGRESSION, check_empty, check_targets
from thresher.sides.forest_side import forest_side, validation_digest
from thresher.sides.target_forest_side import side_in_bounds


@dataclass(frozen=True)
class Growth:
    """How a forest is grown, and the settings for valuing points by it."""

    forest: Any  # the structure, or the estimator that grows it
    settings: tuple[int, int, int]  # how many trees and folds, and the seed
    # X_val, y_val, semivalue, classes, mean: as in `forest_shapley`
    X_val: Any
    y_val: Any
    semivalue: Any
    classes: Any
    mean: bool
    numbers: ClassVar[bool] = False  # whether labels are numbers to predict

    @property
    def ready(self) -> bool:
        """Whether the structure is known, so that no pass over the points comes before."""
        return isinstance(self.forest, Forest)

    def identity(self) -> Any:
        """What tells the structure from others."""
        if isinstance(self.forest, Forest):
            return self.forest.digest()
        return [repr(self.forest), *self.settings]

    def digest(self, columns: TreeColumns) -> str | None:
        """A SHA-256 of the validation set, if there is one."""
        X_val = None if self.X_val is None else columns.encode("X_val", self.X_val)
        return validation_digest(X_val, self.labels)

    def with_columns(self, columns: TreeColumns) -> Self:
        """The same growth; if the estimator is fitted already, its trees are taken as they are."""
        if not isinstance(self.forest, Forest) and is_fitted(self.forest):
            return replace(self, forest=Forest.as_fitted(self.forest, columns))
        return self

    def sample(self) -> GrowingSample:
        """No rows yet."""
        trees, folds, seed = self.settings
        return GrowingSample(split_count(trees, folds), folds, seed)

    def grown(self, sample: GrowingSample, columns: TreeColumns, labels: Labels) -> Forest:
        """The structure that follows from a sample of all rows; `labels` says what labels mean."""
        self.check(sample)
        given = [] if self.classes is None else list(class_list(self.classes).labels)
        meaning, others = labels.settle(sample.labels, [*self.labels, *given], sample.rows)
        given = others[len(self.labels) :]
        known = class_list(given or None, list(meaning.values()))
        numbers = known.encode("y", [meaning[label] for label in sample.labels])
        rows: Any = sample.features
        return grow_codes(rows, numbers[sample.codes], known, columns, self.forest, self.settings)

    def check(self, sample: GrowingSample) -> None:
        """Raise unless there are rows."""
        if not sample.rows or sample.features is None:
            raise InputError("X is empty: at least one row is needed")

    def learned(self, sample: GrowingSample) -> dict[str, Any]:
        """What else follows from all rows, in a form for JSON."""
        del sample
        return {}

    @property
    def labels(self) -> list[Hashable]:
        """The labels of the validation set."""
        found = check_labels("y_val", [] if self.y_val is None else self.y_val)
        return found if isinstance(found, list) else found.tolist()

    def problem(self, forest: Forest, learned: Mapping[str, Any]) -> Problem:
        """What the points are valued by."""
        del learned
        side = forest_side(forest, self.X_val, self.y_val, self.classes)
        return Problem(
            side, self.labels, self.semivalue, self.classes, self.mean, expected=forest.classes
        )


@dataclass
class TargetSample(GrowingSample):
    """Rows that may decide the structure, with their targets, and the range of all targets."""

    codes: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    span: TargetSpan = field(default_factory=TargetSpan)

    def add(self, features: Features, labels: Any) -> TargetSample:
        """See more rows; returns itself."""
        self.span = TargetSpan().join(self.span).see(labels)
        return self._see(features, check_targets("y", labels))

    def merge(self, other: Any) -> TargetSample:
        """See the rows that `other` saw, which come after these; returns itself."""
        self.span = TargetSpan().join(self.span).join(other.span)
        self.rows += other.rows - len(other.codes)
        return self if other.features is None else self._see(other.features, other.codes)

    def _see(self, features: Features, targets: NDArray[Any]) -> TargetSample:
        self.rows += len(targets)
        if self.splits:  # else the structure is known
            self._keep(features, targets)
        return self


@dataclass(frozen=True)
class TargetGrowth(Growth):
    """How a forest is grown if targets are numbers.

    `empty` is the prediction for a leaf without points; if None, the mean of all targets.
    """

    empty: float | None = None
    numbers: ClassVar[bool] = True

    @property
    def ready(self) -> bool:
        """Always false: the range of all targets is needed first."""
        return False

    def identity(self) -> Any:
        """What tells the structure and the predictions from others."""
        return [REGRESSION, self.empty, super().identity()]

    def with_columns(self, columns: TreeColumns) -> Self:
        """As for classes, but a classifier is refused."""
        if is_fitted(self.forest):
            check_regressor(self.forest)
        return super().with_columns(columns)

    def sample(self) -> TargetSample:
        """A sample without rows; it keeps none if the structure is known."""
        plain = super().sample()
        splits = 0 if isinstance(self.forest, Forest) else plain.splits
        return TargetSample(splits, plain.folds, plain.seed)

    def grown(self, sample: Any, columns: TreeColumns, labels: Labels) -> Forest:
        """The structure that follows from a sample of all rows."""
        del labels
        if isinstance(self.forest, Forest):
            return self.forest
        self.check(sample)
        return grow_targets(sample.features, sample.codes, columns, self.forest, self.settings)

    def learned(self, sample: Any) -> dict[str, Any]:
        """The prediction for a leaf without points, and the range of all targets."""
        empty = sample.span.mean() if self.empty is None else self.empty
        return {"empty": empty, "bounds": sample.span.bounds(self._judges, empty)}

    @property
    def _judges(self) -> NDArray[np.float64]:
        return np.zeros(0) if self.y_val is None else np.asarray(self.y_val, np.float64)

    def problem(self, forest: Forest, learned: Mapping[str, Any]) -> Problem:
        """What the points are valued by."""
        low, high = learned["bounds"]
        side = side_in_bounds(forest, self.X_val, self._judges, learned["empty"], (low, high))
        return Problem.by_numbers(side, self.semivalue, mean=self.mean)


def growth_of(
    forest: Any, settings: tuple[int, int, int], X_val: Any, y_val: Any, semivalue: Any, *,
    mean: bool, empty: Any,
) -> TargetGrowth:  # fmt: skip
    """The checked settings for growing a forest with numbers as targets."""
    judges = None if y_val is None else check_targets("y_val", collected(y_val))
    known = check_empty(empty, judges)
    return TargetGrowth(forest, settings, X_val, judges, semivalue, None, mean, empty=known)
