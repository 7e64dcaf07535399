"""Trees whose leaves say who is near: grown on folds, so that no point shapes its own leaf.

Folds are drawn by a hash of a row's features and a seed. So copies of a row share a fold, the order
of rows does not matter, and a newcomer knows which trees it may fill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_columns, check_features, check_width, column_names, is_frame
from thresher.errors import InputError
from thresher.kernels.pairs import fingerprints
from thresher.labels import Codes, is_missing
from thresher.neighbors.leaves import Places
from thresher.progress import progress_bar
from thresher.threads import thread_count

SPLITS = 10  # times that the folds are drawn, each with its share of the trees
GROWN_FROM = 20_000  # rows of a fold that decide the structure at most
LARGEST = np.finfo(np.float32).max
ORDER = 1 << 20  # salt of the order in which rows are handed to a forest

Features = NDArray[np.float32]
Encode = Callable[[str, Any], Features]


@dataclass(frozen=True)
class Tree:
    """One tree, and the rows that may fill it: those in `fold` of the folds of `split`."""

    structure: Any  # of scikit-learn; None for a tree of one leaf
    split: int = 0
    fold: int = 0
    numbers: Places = field(default_factory=lambda: np.zeros(1, np.int32))  # of leaves, by node
    codes: NDArray[np.int64] | None = None  # the classes of the rows that it was grown from

    @classmethod
    def of(
        cls, structure: Any, split: int, fold: int, codes: NDArray[np.int64] | None = None
    ) -> Tree:
        """A tree of scikit-learn's, its leaves numbered from 0."""
        leaf = structure.children_left < 0
        return cls(structure, split, fold, (np.cumsum(leaf) - 1).astype(np.int32), codes)

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return int(self.numbers[-1]) + 1

    def leaves(self, features: Features) -> Places:
        """The leaf of each row."""
        if self.structure is None:
            return np.zeros(len(features), np.int32)
        return self.numbers[self.structure.apply(features)]

    def seen(self, classes: int) -> NDArray[np.float64]:
        """How many rows of each class (one row each) it was grown from, by leaf."""
        found = np.zeros((classes, self.size))
        if self.codes is not None:
            leaf = self.structure.children_left < 0
            rows = self.structure.weighted_n_node_samples[leaf]
            found[self.codes] = np.rint(self.structure.value[leaf, 0].T * rows)
        return found


@dataclass(frozen=True)
class Grown:
    """Trees with their folds; without `folds` all rows fill all trees."""

    name: str
    trees: list[Tree]
    folds: int = 0
    seed: int = 0

    @classmethod
    def as_fitted(cls, forest: Any) -> Grown:
        """The trees of a fitted forest of scikit-learn's."""
        found = [each.tree_ for each in np.ravel(getattr(forest, "estimators_", []))]
        if not found:
            raise InputError(
                f"forest has no trees of scikit-learn's, it is a {type(forest).__name__}: pass the "
                "leaves that it finds to leaf_shapley"
            )
        return cls(type(forest).__name__, [Tree.of(each, 0, 0) for each in found])

    @property
    def sizes(self) -> list[int]:
        """How many leaves each tree has."""
        return [tree.size for tree in self.trees]

    @property
    def middle(self) -> int:
        """The first tree of the second half of the splits; 0 where there is one split only.

        Both halves are forests of their own: other folds, other trees, each row in equally many.
        """
        splits = [tree.split for tree in self.trees]
        return splits.index((max(splits) + 1) // 2) if splits[-1] else 0

    def folds_of(self, features: Features) -> NDArray[np.int64] | None:
        """The fold of each row in each split; None where all rows fill all trees."""
        if not self.folds:
            return None
        splits = 1 + max(tree.split for tree in self.trees)
        return np.array([fold_of(features, self.seed, s, self.folds) for s in range(splits)])


@dataclass(frozen=True)
class ForestRows:
    """Rows that are dropped through trees when they are asked for."""

    features: Features
    grown: Grown
    fold_of: NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.features)

    def leaves(self, tree: int) -> Places:
        """The leaf of each row in one tree, negative where the row may not fill it."""
        one = self.grown.trees[tree]
        if self.fold_of is None:
            return one.leaves(self.features)
        found = np.full(len(self.features), -1, np.int32)
        rows, features = _inside(self, one.split, one.fold)
        found[rows] = one.leaves(features)
        return found

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@lru_cache(maxsize=2)  # trees of one fold follow each other
def _inside(rows: ForestRows, split: int, fold: int) -> tuple[NDArray[np.int64], Features]:
    """The rows of a fold."""
    assert rows.fold_of is not None  # noqa: S101 - by those who call
    which = np.flatnonzero(rows.fold_of[split] == fold)
    return which, np.ascontiguousarray(rows.features[which])


def fold_of(features: Features, seed: int, split: int, folds: int) -> NDArray[np.int64]:
    """The fold of each row."""
    return (hashes(features, seed, split) % np.uint64(folds)).astype(np.int64)


def hashes(features: Features, seed: int, number: int) -> NDArray[np.uint64]:
    """A number for each row that depends on its features and two other numbers alone."""
    plain = np.where(np.isnan(features), -np.inf, features).astype(np.float64)
    found = np.empty(len(plain), np.uint64)
    fingerprints(plain, np.full(len(plain), seed * 1_000_003 + number, np.int64), found)
    return found >> np.uint64(20)


def grow(
    features: Features, codes: Codes, forest: Any, trees: int, folds: int, seed: int, *,
    progress: bool = False,
) -> Grown:  # fmt: skip
    """Grow trees on the rows outside of each fold, as often as there are splits."""
    from sklearn.base import clone, is_classifier
    from sklearn.ensemble import RandomForestClassifier

    # no bootstrap: folds leave out half of the rows already, and a tree needs all of the others
    model = RandomForestClassifier(bootstrap=False) if forest is None else forest
    each = trees // folds
    splits = min(SPLITS, each)
    shares = [each // splits + (split < each % splits) for split in range(splits)]
    order = np.lexsort((codes, hashes(features, seed, ORDER)))
    found: list[Tree] = []
    with progress_bar("grow", splits * folds, show=progress, unit="forests") as advance:
        for split, share in enumerate(shares):
            folds_here = fold_of(features, seed, split, folds)[order]
            for fold in range(folds):
                rows = order[folds_here != fold][:GROWN_FROM]
                if not len(rows):
                    found += [Tree(None, split, fold) for _ in range(share)]
                    continue
                settings = {"n_estimators": share, "random_state": seed + len(found)}
                if "n_jobs" in model.get_params():
                    settings["n_jobs"] = thread_count()
                fitted = clone(model).set_params(**settings).fit(features[rows], codes[rows])
                voters = is_classifier(fitted.estimators_[0])
                known = fitted.classes_.astype(np.int64) if voters else None
                found += [Tree.of(one.tree_, split, fold, known) for one in fitted.estimators_]
                if advance is not None:
                    advance(1)
    return Grown(type(model).__name__, found, folds, seed)


def tree_features(name: str, table: Any) -> tuple[Features, Encode]:
    """A table as numbers that trees can split, and a function that reads others in the same way.

    Categories and text become numbers in their order. Missing cells are NaN, which trees send
    where it does best. Numbers too large for float32 become the largest one.
    """
    if not is_frame(table):
        features = _floats(check_features(name, table))

        def encode_array(other: str, more: Any) -> Features:
            found = _floats(check_features(other, more))
            check_width(other, found, name, features.shape[1])
            return found

        return features, encode_array
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    categories = {
        column: {text: float(code) for code, text in enumerate(sorted(_texts(frame, column)))}
        for column, kind in frame.schema.items()
        if not (kind.is_numeric() or kind == nw.Boolean)
    }

    def encode(other: str, more: Any) -> Features:
        check_columns(other, column_names(more), name, column_names(table))
        rows = nw.from_native(more, eager_only=True)
        columns = [_column(rows, column, categories.get(column)) for column in frame.columns]
        if not columns or not len(rows):
            raise InputError(f"{other} is empty: a row and a column are needed")
        return _floats(np.stack(columns, axis=1))

    return encode(name, table), encode


def _texts(frame: Any, column: str) -> set[str]:
    return {str(entry) for entry in frame.get_column(column).to_list() if not is_missing(entry)}


def _column(frame: Any, column: str, codes: dict[str, float] | None) -> NDArray[np.float64]:
    """One column as numbers; what is missing, and a category that is not known, is NaN."""
    entries = frame.get_column(column).to_list()
    if codes is None:
        return np.array([np.nan if is_missing(x) else float(x) for x in entries])
    return np.array([np.nan if is_missing(x) else codes.get(str(x), np.nan) for x in entries])


def _floats(array: NDArray[Any]) -> Features:
    found = np.clip(array, -LARGEST, LARGEST)  # NaN stays NaN
    return np.ascontiguousarray(found, dtype=np.float32)
