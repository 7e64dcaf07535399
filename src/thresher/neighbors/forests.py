"""Forest: the public structure of trees, fixed before any point is counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.files import check_sealed, portable, reading
from thresher.inputs.arrays import load_about, load_arrays, pack_array, save_arrays, unpack_array
from thresher.inputs.checks import check_columns, check_count, check_width
from thresher.inputs.labels import Classes
from thresher.neighbors.tree_columns import Features, TreeColumns
from thresher.neighbors.trees import NODE, ForestRows, Tree, fold_of

FORMAT = "thresher.forest/1"
SIZES = ("nodes", "split", "fold")  # of each tree


@dataclass(frozen=True, eq=False)
class Forest:
    """The structure of a forest: splits and leaves, without the points in them.

    `grow_forest` makes one. Pass the same structure to `forest_shapley`, `NeighborCounts` and
    `LiveCounts`, and their values agree. Price lists contain it, too.

    Parameters
    ----------
    name
        What kind of forest it is.
    trees
        The trees.
    folds, seed
        How rows are divided into folds. Without folds, all rows fill all trees.
    columns
        How tables become numbers.
    classes
        The labels that it was grown from.
    total
        How many trees the whole forest has, if this is only a part of it.

    Examples
    --------
    >>> import thresher as th
    >>> forest = th.grow_forest([[0.0], [1.0], [2.0], [3.0]], list("aabb"), trees=4)
    >>> len(forest.trees), forest.folds, forest.classes
    (4, 2, ('a', 'b'))
    >>> forest.apply([[0.5]]).shape, forest.unseen([[0.5]]).sum().item()
    ((1, 4), 2)
    """

    name: str
    trees: list[Tree]
    folds: int = 0
    seed: int = 0
    columns: TreeColumns | None = None
    classes: tuple[Hashable, ...] = ()
    total: int = 0

    @classmethod
    def as_fitted(cls, forest: Any, columns: TreeColumns | None = None) -> Forest:
        """The trees of a fitted scikit-learn forest; all rows fill all of them.

        `columns` are those of the points, which must be the columns that it was fitted on.
        """
        check_whole_rows(forest)
        fitted = np.ravel(getattr(forest, "estimators_", []))
        found: list[Any] = [getattr(each, "tree_", None) for each in fitted]
        if not found or None in found:
            raise InputError(
                f"forest must have scikit-learn's trees, got a {type(forest).__name__}: pass the "
                "leaves that it finds to leaf_shapley"
            )
        names = tuple(getattr(forest, "feature_names_in_", ())) or None
        if columns is not None:
            check_columns("X", columns.names, "the forest", names)
            check_width("X", np.empty((0, columns.width)), "the forest", found[0].n_features)
            if columns.texts:
                raise InputError(
                    "X has columns of text or categories, but a fitted forest has only seen "
                    "numbers: pass the numbers that it was fitted on, or a forest that is not "
                    "fitted"
                )
            columns = replace(columns, names=columns.names or names)
        classes = tuple(np.asarray(getattr(forest, "classes_", ())).tolist())
        trees = [Tree.of(each) for each in found]
        return cls(type(forest).__name__, trees, columns=columns, classes=classes)

    def __repr__(self) -> str:
        about = f"{self.name}, {len(self.trees)} trees with {int(self.starts[-1])} leaves"
        if self.columns is not None:
            about += f", {self.columns.width} feature{'s' if self.columns.width > 1 else ''}"
        return f"Forest({about}{f', {self.folds} folds' if self.folds else ''})"

    @property
    def sizes(self) -> list[int]:
        """How many leaves each tree has."""
        return [tree.size for tree in self.trees]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first leaf of each tree among all leaves, and the end."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    @property
    def size(self) -> int:
        """How many trees the whole forest has."""
        return self.total or len(self.trees)

    @property
    def trees_each(self) -> int:
        """How many trees of the whole forest each row fills."""
        return self.size // (self.folds or 1)

    @property
    def middle(self) -> int:
        """The first tree of the second half of the splits; 0 if there is only one split.

        Each half is a forest of its own: they have different folds and different trees, and each
        row fills equally many trees of both.
        """
        splits = [tree.split for tree in self.trees]
        return splits.index((max(splits) + 1) // 2) if splits[-1] else 0

    def some(self, lo: int, hi: int) -> Forest:
        """Some of the trees, of the same forest."""
        return replace(self, trees=self.trees[lo:hi], total=self.size)

    def encode(self, name: str, table: Any) -> Features:
        """A table as numbers."""
        assert self.columns is not None  # noqa: S101 - grow_forest knows them
        return self.columns.encode(name, table, "the forest")

    def folds_of(self, features: Features) -> NDArray[np.int32] | None:
        """The fold of each row in each split; None if all rows fill all trees."""
        if not self.folds:
            return None
        splits = 1 + max(tree.split for tree in self.trees)
        return np.array([fold_of(features, self.seed, s, self.folds) for s in range(splits)])

    def rows(self, features: Features, *, everywhere: bool = False) -> ForestRows:
        """Rows in the trees that they may fill, or in all of them."""
        return ForestRows(features, self.trees, None if everywhere else self.folds_of(features))

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The leaf of each row in each tree (one column per tree), for `leaf_shapley`."""
        rows = self.rows(self.encode("X", X), everywhere=True)
        return np.stack([rows.leaves(tree) for tree in range(len(self.trees))], axis=1)

    def unseen(self, X: Any) -> NDArray[np.bool_]:
        """Whether each row may fill each tree, for `leaf_shapley`."""
        rows = self.rows(self.encode("X", X))
        return np.stack([rows.leaves(tree) >= 0 for tree in range(len(self.trees))], axis=1)

    @cached_property
    def nodes(self) -> dict[str, NDArray[Any]]:
        """The nodes of all trees, one after the other, and the number of nodes of each."""
        found: dict[str, NDArray[Any]] = {
            name: np.concatenate([getattr(tree, name) for tree in self.trees]) for name in NODE
        }
        found["nodes"] = np.array([len(tree.feature) for tree in self.trees], np.int64)
        for name in ("split", "fold"):
            found[name] = np.array([getattr(tree, name) for tree in self.trees], np.int32)
        return found

    def describe(self) -> dict[str, Any]:
        """What a file records about it, besides its nodes."""
        return self._growth() | {"classes": portable("label", self.classes)}

    def _growth(self) -> dict[str, Any]:
        assert self.columns is not None  # noqa: S101 - grow_forest knows them
        return {
            "name": self.name,
            "folds": self.folds,
            "seed": self.seed,
            "columns": self.columns.describe(),
        }

    def digest(self) -> str:
        """A SHA-256 of the structure."""
        about = json.dumps([self._growth(), self.size], sort_keys=True)
        state = hashlib.sha256(about.encode())
        for array in self.nodes.values():
            state.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
        return state.hexdigest()

    @classmethod
    def stored(cls, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Forest:
        """The forest that a file describes, with these nodes."""
        columns = TreeColumns.from_record(about["columns"])
        ends = np.cumsum(arrays["nodes"]).tolist()
        folds = check_count("folds", about["folds"], least=0)
        trees = []
        for end, count, split, fold in zip(
            ends, *(arrays[name].tolist() for name in SIZES), strict=True
        ):
            place = slice(end - count, end)
            nodes: dict[str, Any] = {
                name: np.array(arrays[name][place], kind) for name, kind in NODE.items()
            }
            whole = {len(each) for each in nodes.values()} == {count}
            if not (whole and split >= 0 and 0 <= fold < max(folds, 1)):
                raise InputError("its trees do not fit together")
            trees.append(Tree(**nodes, split=split, fold=fold))
            trees[-1].check(columns.width)
        if not trees or len(trees) % max(folds, 1):
            raise InputError("its trees do not fit together")
        classes = Classes(tuple(about["classes"])).labels if about["classes"] else ()
        seed = check_count("seed", about["seed"], least=0)
        return cls(str(about["name"]), trees, folds, seed, columns, classes)

    def document(self) -> dict[str, Any]:
        """The whole forest as JSON can hold it."""
        packed = {name: pack_array(each, deflate=True) for name, each in self.nodes.items()}
        return self.describe() | {"nodes": packed}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Forest:
        """The forest from what `document()` returned."""
        nodes = {name: unpack_array(each) for name, each in document["nodes"].items()}
        return cls.stored(document, nodes)

    def save(self, path: str | Path) -> None:
        """Write one file (NumPy's .npz, nothing pickled); an existing file is replaced."""
        save_arrays(path, {"format": FORMAT, **self.describe()}, self.nodes)

    @classmethod
    def load(cls, path: str | Path) -> Forest:
        """The forest that `save` wrote."""
        with reading(path, "forest") as found:
            arrays = load_arrays(found)  # each has a checksum of its own
            about = load_about(arrays)
            check_sealed(about, FORMAT)
            return cls.stored(about, arrays)


def check_whole_rows(fitted: Any) -> None:
    """Refuse trees that see a draw of features, as those of bagging may, and number these anew."""
    draws = getattr(fitted, "estimators_features_", ())
    fewer = any(len(each) < fitted.n_features_in_ for each in draws)
    if fewer or getattr(fitted, "bootstrap_features", False):
        raise InputError(
            "forest must show every tree all features: leave out bootstrap_features and "
            f"max_features of {type(fitted).__name__}"
        )
