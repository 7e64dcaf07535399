"""How the structure of a forest comes about, where points come in parts or from Dask."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from thresher.errors import InputError
from thresher.growth import grow_codes, is_fitted
from thresher.inputs.labels import check_labels, class_list
from thresher.neighbors.forests import Forest
from thresher.neighbors.growing import GrowingSample, split_count
from thresher.neighbors.tree_columns import TreeColumns
from thresher.passes.parts import Labels
from thresher.passes.problem import Problem
from thresher.sides.forest import forest_side, validation_digest


@dataclass(frozen=True)
class Growth:
    """How a forest comes about, and what points are asked to be valued by."""

    forest: Any  # the structure, or the estimator that grows it
    settings: tuple[int, int, int]  # how many trees and folds, and the seed
    # X_val, y_val, semivalue, classes, mean: as in `forest_shapley`
    X_val: Any
    y_val: Any
    semivalue: Any
    classes: Any
    mean: bool

    @property
    def numbers(self) -> bool:
        """Whether labels are numbers to predict."""
        return False

    @property
    def ready(self) -> bool:
        """Whether the structure is known, so that no pass over the points comes before."""
        return isinstance(self.forest, Forest)

    def identity(self) -> Any:
        """What tells its structure from others."""
        if isinstance(self.forest, Forest):
            return self.forest.digest()
        return [repr(self.forest), *self.settings]

    def digest(self, columns: TreeColumns) -> str | None:
        """A SHA-256 of the validation set, if there is one."""
        X_val = None if self.X_val is None else columns.encode("X_val", self.X_val)
        return validation_digest(X_val, self.labels)

    def with_columns(self, columns: TreeColumns) -> Growth:
        """The same, with the trees of an estimator that is fitted already as they are."""
        if not isinstance(self.forest, Forest) and is_fitted(self.forest):
            return replace(self, forest=Forest.as_fitted(self.forest, columns))
        return self

    def sample(self) -> GrowingSample:
        """No rows yet."""
        trees, folds, seed = self.settings
        return GrowingSample(split_count(trees, folds), folds, seed)

    def grown(self, sample: GrowingSample, columns: TreeColumns, labels: Labels) -> Forest:
        """The structure that follows from a sample of all rows, whose labels mean what they do."""
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
        """What else follows from all rows, as JSON can hold it."""
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
