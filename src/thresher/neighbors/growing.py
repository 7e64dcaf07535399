"""Trees grown on folds, so that no point shapes its own leaf; large tables by a sample of rows.

The rows whose features have the smallest hashes decide the structure. So neither the order of rows
nor the way they are cut into parts matters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.far_off import brought_in
from thresher.neighbors.forests import Forest, check_whole_rows
from thresher.neighbors.tree_columns import Features
from thresher.neighbors.trees import Tree, fold_of, hashes
from thresher.progress import progress_bar
from thresher.threads import thread_count

SPLITS = 10  # times that the folds are drawn, each with its share of the trees
GROWN_FROM = 20_000  # rows of a fold that decide the structure at most
ORDER = 1 << 20  # salt of the order in which rows are handed to a forest


def grow(
    features: Features, codes: NDArray[Any], forest: Any, trees: int, folds: int, seed: int, *,
    progress: bool = False,
) -> Forest:  # fmt: skip
    """Grow trees on the rows outside of each fold, as often as there are splits.

    `codes` are those of classes, or numbers if the forest is a regressor.
    """
    if trees % folds:
        raise InputError(f"trees must be a multiple of folds, got {trees} and {folds}")
    from sklearn.base import clone, is_classifier
    from sklearn.ensemble import RandomForestClassifier

    # no bootstrap: folds leave out half of the rows already, and a tree needs all of the others
    model = RandomForestClassifier(bootstrap=False) if forest is None else forest
    if not (hasattr(model, "get_params") and "n_estimators" in model.get_params()):
        raise InputError(
            "forest must be a scikit-learn forest or what grow_forest returns, got "
            f"{type(model).__name__}"
        )
    each, splits = trees // folds, split_count(trees, folds)
    shares = [each // splits + (split < each % splits) for split in range(splits)]
    order = np.lexsort((codes, hashes(features, seed, ORDER)))
    found: list[Tree] = []
    with progress_bar("grow", splits * folds, show=progress, unit="forests") as advance:
        for split, share in enumerate(shares):
            folds_here = fold_of(features, seed, split, folds)[order]
            for fold in range(folds):
                rows = order[folds_here != fold][:GROWN_FROM]
                if not len(rows):
                    found += [Tree.of_one_leaf(split, fold) for _ in range(share)]
                    continue
                settings = {"n_estimators": share, "random_state": seed + len(found)}
                if "n_jobs" in model.get_params():
                    settings["n_jobs"] = thread_count()
                # one target that is far off would decide every split
                kept = codes[rows] if is_classifier(model) else brought_in(codes[rows])
                with np.errstate(over="ignore", invalid="ignore"):  # it sums columns to find gaps
                    fitted = clone(model).set_params(**settings).fit(features[rows], kept)
                check_whole_rows(fitted)
                known = fitted.classes_ if is_classifier(fitted.estimators_[0]) else None
                found += [Tree.of(one.tree_, split, fold, known) for one in fitted.estimators_]
                if advance is not None:
                    advance(1)
    return Forest(type(model).__name__, found, folds, seed)


def split_count(trees: int, folds: int) -> int:
    """How often the folds are drawn."""
    return min(SPLITS, trees // folds)


@dataclass
class GrowingSample:
    """The rows seen so far that may decide the structure of a forest.

    `grow` makes the same forest from them as from all rows. There are at most `GROWN_FROM` for each
    fold of each split, most of them shared, and as many more for each class if rows are alike.
    """

    # splits, folds, seed: of the forest
    splits: int
    folds: int
    seed: int
    # the labels of all rows, in order of appearance, and the row in which each was first met
    labels: dict[Hashable, int] = field(default_factory=dict)
    rows: int = 0  # how many rows were seen
    # features, codes: the rows that may matter, and the number of the label of each
    features: Features | None = None
    codes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, features: Features, labels: Sequence[Hashable]) -> GrowingSample:
        """See more rows; returns itself."""
        for row, label in enumerate(labels, self.rows):
            self.labels.setdefault(label, row)
        numbers = {label: number for number, label in enumerate(self.labels)}
        codes = np.array([numbers[label] for label in labels], np.int64)
        self.rows += len(codes)
        self._keep(features, codes)
        return self

    def merge(self, other: GrowingSample) -> GrowingSample:
        """See the rows that `other` saw, which come after these; returns itself."""
        for label, row in other.labels.items():
            self.labels.setdefault(label, self.rows + row)
        numbers = {label: number for number, label in enumerate(self.labels)}
        theirs = np.array([numbers[label] for label in other.labels], np.int64)
        self.rows += other.rows
        if other.features is not None:
            self._keep(other.features, theirs[other.codes])
        return self

    def _keep(self, features: Features, codes: NDArray[np.int64]) -> None:
        both = [features] if self.features is None else [self.features, features]
        features, codes = np.concatenate(both), np.concatenate([self.codes, codes])
        rows = self._chosen(features, codes)
        self.features, self.codes = features[rows], codes[rows]

    def _chosen(self, features: Features, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows that may matter; ties are decided later, when classes have their order."""
        number = hashes(features, self.seed, ORDER)
        order = np.lexsort((codes, number))
        place = number[order]
        last = np.zeros(len(order), np.bool_)
        for split in range(self.splits):
            folds_here = fold_of(features, self.seed, split, self.folds)[order]
            for fold in range(self.folds):
                outside = np.flatnonzero(folds_here != fold)
                some = outside[:GROWN_FROM]
                tied = place[outside] == place[some[-1]] if len(some) else []
                last[some] = True
                last[outside[tied]] = True
        alike = np.concatenate([[True], (np.diff(place) > 0) | (np.diff(codes[order]) != 0)])
        first = np.flatnonzero(alike[: len(order)])
        rank = np.arange(len(order)) - np.repeat(first, np.diff([*first, len(order)]))
        return np.sort(order[last & (rank < GROWN_FROM)])
