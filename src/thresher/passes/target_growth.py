"""How a forest with numbers as targets comes about, where points come in parts or from Dask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.growth import grow_targets
from thresher.neighbors.forests import Forest
from thresher.neighbors.growing import GrowingSample
from thresher.neighbors.tree_columns import Features, TreeColumns
from thresher.passes.forest_growth import Growth
from thresher.passes.partitions import collected
from thresher.passes.parts import Labels
from thresher.passes.problem import TargetProblem
from thresher.passes.target_span import TargetSpan
from thresher.regression import REGRESSION, check_empty, check_targets
from thresher.sides.forest_targets import side_in_bounds


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
        """See the rows that another one saw, which come after these; returns itself."""
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
    """The same with numbers as targets.

    `empty` is the prediction where nobody is; if None, the mean of all targets.
    """

    empty: float | None = None

    @property
    def numbers(self) -> bool:
        """Labels are."""
        return True

    @property
    def ready(self) -> bool:
        """Never: the range of all targets is needed first."""
        return False

    def identity(self) -> Any:
        """What tells its structure, and what is predicted, from others."""
        return [REGRESSION, self.empty, super().identity()]

    def with_columns(self, columns: TreeColumns) -> TargetGrowth:
        """The same: an estimator is fitted anew, on folds."""
        del columns
        return self

    def sample(self) -> TargetSample:
        """No rows yet; none are kept where the structure is known."""
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
        """The prediction where nobody is, and the range of all targets."""
        empty = sample.span.mean() if self.empty is None else self.empty
        return {"empty": empty, "bounds": sample.span.bounds(self._judges, empty)}

    @property
    def _judges(self) -> NDArray[np.float64]:
        return np.zeros(0) if self.y_val is None else np.asarray(self.y_val, np.float64)

    def problem(self, forest: Forest, learned: Mapping[str, Any]) -> TargetProblem:
        """What the points are valued by."""
        low, high = learned["bounds"]
        side = side_in_bounds(forest, self.X_val, self._judges, learned["empty"], (low, high))
        return TargetProblem.over(side, self.semivalue, mean=self.mean)


def growth_of(
    forest: Any, settings: tuple[int, int, int], X_val: Any, y_val: Any, semivalue: Any, *,
    mean: bool, empty: Any,
) -> TargetGrowth:  # fmt: skip
    """The growth of a forest with numbers, checked."""
    judges = None if y_val is None else check_targets("y_val", collected(y_val))
    known = check_empty(empty, judges)
    return TargetGrowth(forest, settings, X_val, judges, semivalue, None, mean, empty=known)
