"""Trees whose leaves say who is near, and which rows may fill them.

Folds are drawn by a hash of a row's features and a seed. So copies of a row share a fold, the order
of rows does not matter, and a newcomer knows which trees it may fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Array, Flags, Floats, Integers, LongWords, Single
from thresher.errors import InputError
from thresher.kernels.pairs import fingerprints
from thresher.kernels.tree_leaves import drop_rows
from thresher.neighbors.leaves import Places
from thresher.neighbors.tree_columns import Features
from thresher.threads import cut

HASH_SHIFT = 20  # bits of a fingerprint that a hash leaves out
ROWS = 1 << 13  # that are made ready for fingerprints at a time

NODE: dict[str, Any] = {
    "feature": np.int32, "threshold": np.float32, "right": np.int32, "missing_left": np.bool_
}  # fmt: skip

Nodes = tuple[Array, Array, Array, Array]


@dataclass(frozen=True)
class Seen:
    """The rows that a tree was grown from: how many of each class are in each leaf."""

    codes: Integers
    counts: NDArray[np.int32]  # one row for each of these classes

    @classmethod
    def of(cls, structure: Any, codes: Integers) -> Seen:
        """The rows that a tree of scikit-learn was grown from."""
        leaf = structure.children_left < 0
        rows = structure.weighted_n_node_samples[leaf]
        return cls(codes, np.rint(structure.value[leaf, 0].T * rows).astype(np.int32))


@dataclass(frozen=True)
class Tree:
    """One tree, and the rows that may fill it: those in `fold` of the folds of `split`.

    Nodes lie in preorder: the left child of a node is the next one.
    """

    # feature, threshold: rows whose number in this column is at most the threshold go left. A
    # leaf has no column: -1.
    feature: NDArray[np.int32]
    threshold: Single
    right: NDArray[np.int32]  # the right child, and for a leaf its number among the leaves
    missing_left: Flags  # whether rows without a number go left
    # split, fold: who may fill it
    split: int = 0
    fold: int = 0
    # the rows that it was grown from, where that is known. Files do not have it.
    seen: Seen | None = None

    @classmethod
    def of(cls, structure: Any, split: int = 0, fold: int = 0, codes: Array | None = None) -> Tree:
        """A tree of scikit-learn; its leaves are numbered in the order of its nodes.

        `codes` are the classes of the rows that it was grown from.
        """
        order, place = _preorder(structure.children_left, structure.children_right)
        leaf = structure.children_left < 0
        right = np.where(leaf, np.cumsum(leaf) - 1, place[structure.children_right])
        columns = {
            "feature": np.where(leaf, -1, structure.feature),
            "threshold": np.where(leaf, 0, _floor(structure.threshold)),
            "right": right,
            "missing_left": structure.missing_go_to_left,
        }
        nodes = {name: columns[name][order].astype(kind) for name, kind in NODE.items()}
        seen = None if codes is None else Seen.of(structure, codes.astype(np.int64))
        return cls(**nodes, split=split, fold=fold, seen=seen)

    @classmethod
    def of_one_leaf(cls, split: int = 0, fold: int = 0) -> Tree:
        """A tree with one leaf, which tells nothing apart."""
        nodes: dict[str, Any] = {name: np.zeros(1, kind) for name, kind in NODE.items()}
        return cls(**{**nodes, "feature": np.array([-1], np.int32)}, split=split, fold=fold)

    @cached_property
    def size(self) -> int:
        """How many leaves it has."""
        return int((self.feature < 0).sum())

    @property
    def nodes(self) -> Nodes:
        """Its columns, in the form that kernels need."""
        return self.feature, self.threshold, self.right, self.missing_left

    def leaves(self, features: Features, out: Places) -> Places:
        """The leaf of each row, where `out` is not negative."""
        drop_rows(features, *self.nodes, out)
        return out

    def check(self, width: int) -> None:
        """Raise unless all rows of this width reach a leaf, and leaves have different numbers."""
        leaf, count = self.feature < 0, len(self.feature)
        inner = np.flatnonzero(~leaf)
        forward = (self.right[inner] > inner + 1).all() and (self.right[inner] < count).all()
        numbered = np.array_equal(np.sort(self.right[leaf]), np.arange(leaf.sum()))
        whole = count and 2 * leaf.sum() == count + 1 and leaf[-1] and self.feature.max() < width
        if not (forward and numbered and whole):
            raise InputError("it has a tree that is not a tree of scikit-learn")


def _preorder(left: Array, right: Array) -> tuple[Array, Array]:
    """The nodes in preorder, and the place of each node there."""
    inner = np.flatnonzero(left >= 0)
    order = np.arange(len(left))
    if not np.array_equal(left[inner], inner + 1):  # of trees that were grown best first
        found, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            found.append(node)
            if left[node] >= 0:
                waiting += [int(right[node]), int(left[node])]
        order = np.array(found)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return order, place


def _floor(thresholds: Floats) -> Single:
    """The largest float32 that is no larger: the same float32 numbers are at most that."""
    with np.errstate(over="ignore"):
        near = thresholds.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(np.float64) > thresholds, below, near)


@dataclass(frozen=True, eq=False)
class ForestRows:
    """Rows that are dropped through trees when they are asked for.

    `fold_of` has the fold of each row in each split; if it is None, rows fill all trees.
    """

    array: Features
    trees: list[Tree]
    fold_of: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.array)

    def leaves(self, tree: int) -> Places:
        """The leaf of each row in one tree, negative where the row may not fill it."""
        one = self.trees[tree]
        if self.fold_of is None:
            return one.leaves(self.array, np.zeros(len(self), np.int32))
        inside = self.fold_of[one.split] == one.fold
        return one.leaves(self.array, inside.astype(np.int32) - np.int32(1))


def fold_of(features: Features, seed: int, split: int, folds: int) -> NDArray[np.int32]:
    """The fold of each row."""
    return (hashes(features, seed, split) % np.uint64(folds)).astype(np.int32)


def hashes(features: Features, seed: int, number: int) -> LongWords:
    """A number for each row that depends on its features and two other numbers alone."""
    salt = np.full(len(features), hash_salt(seed, number), np.int64)
    return row_prints(features, salt) >> np.uint64(HASH_SHIFT)


def hash_salt(seed: int, number: int) -> int:
    """What a hash adds to the features."""
    return seed * 1_000_003 + number


def row_prints(features: Features, salt: Integers) -> LongWords:
    """A fingerprint of each row, missing cells included, and of its integer of `salt`."""
    found = np.empty(len(features), np.uint64)
    for lo, hi in cut(0, len(features), ROWS):
        fingerprints(as_written(features[lo:hi]), salt[lo:hi], found[lo:hi])
    return found


def as_written(features: Array) -> Floats:
    """Rows in which a number that no feature has stands for missing cells."""
    return np.where(np.isnan(features), -np.inf, features).astype(np.float64)
