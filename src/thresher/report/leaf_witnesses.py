"""Which rows speak for and against the label of a row, by a forest: those that share its leaves.

In each tree that was grown without the row, every other row in its leaf weighs one over their
number. So the weights of the rows with one label add up to that label's share. Leaves can hold a
whole class. So a few rows of each label in a leaf stand for the rest: those that come first in an
order drawn once, so that the same rows turn up in other trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.neighbors.forests import Forest
from thresher.progress import Advance

MOST_OF_LABEL = 48  # rows of one label in a leaf that stand for all of them
ENTRIES = 1 << 22  # pairs of rows that are held before they are added up


class SharedLeaves:
    """The weights of other rows for the asked rows, added up tree after tree."""

    def __init__(self, asked: Integers, codes: Array, classes: int, seed: int) -> None:
        self.asked, self.classes, self.rows = asked, classes, len(codes)
        self.own = codes[asked]
        shuffled = np.random.default_rng([seed, len(codes)]).permutation(len(codes))
        self.order = shuffled[np.argsort(codes[shuffled], kind="stable")]  # by label, then by lot
        self.codes = codes[self.order].astype(np.int64)
        self.shares: Floats = np.zeros((len(asked), classes))
        self.trees = np.zeros(len(asked), np.int64)
        self.keys: list[Integers] = []
        self.weights: list[Floats] = []

    def add(self, leaf_of: Array, leaf_asked: Array, leaves: int) -> None:
        """Add a tree: the leaf of every row, and of each asked row, negative where it is absent."""
        places = np.flatnonzero(leaf_asked >= 0)
        wanted = np.zeros(leaves, np.bool_)
        wanted[leaf_asked[places]] = True
        mine = leaf_of[self.order]
        members = np.flatnonzero((mine >= 0) & wanted[mine])
        group = mine[members].astype(np.int64) * self.classes + self.codes[members]
        sizes = np.bincount(group, minlength=leaves * self.classes)
        members = members[np.argsort(group, kind="stable")]
        others = sizes.reshape(leaves, self.classes)[leaf_asked[places]]
        others[np.arange(len(places)), self.own[places]] -= 1
        total = np.maximum(others.sum(axis=1), 1)
        self.shares[places] += others / total[:, None]
        self.trees[places] += 1
        self._add_pairs(places, leaf_asked[places], members, sizes, total)

    def _add_pairs(
        self, places: Integers, leaf: Array, members: Integers, sizes: Integers, total: Integers
    ) -> None:
        starts = np.cumsum(sizes) - sizes
        first = (leaf.astype(np.int64)[:, None] * self.classes + np.arange(self.classes)).ravel()
        taken = np.minimum(sizes[first], MOST_OF_LABEL)
        offsets = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
        found = self.order[members[np.repeat(starts[first], taken) + offsets]]
        each = taken.reshape(-1, self.classes).sum(axis=1)
        asking = np.repeat(places, each)
        self.keys.append(asking * self.rows + found)
        self.weights.append(np.repeat(1 / total, each))
        if sum(map(len, self.keys)) > ENTRIES:
            self._add_up()

    def _add_up(self) -> None:
        keys, inverse = np.unique(np.concatenate(self.keys), return_inverse=True)
        self.keys = [keys]
        summed: Floats = np.bincount(inverse, np.concatenate(self.weights)).astype(np.float64)
        self.weights = [summed]

    def ranked(self) -> list[Integers]:
        """For each asked row the others, without itself, those that share the most leaves first."""
        if not self.keys:
            return [np.empty(0, np.int64)] * len(self.asked)
        self._add_up()
        keys, weights = self.keys[0], self.weights[0]
        asking, other = keys // self.rows, keys % self.rows
        ends = np.searchsorted(asking, np.arange(len(self.asked) + 1))
        found = []
        for place, row in enumerate(self.asked.tolist()):
            some = slice(ends[place], ends[place + 1])
            ordered = other[some][np.argsort(-weights[some], kind="stable")]
            found.append(ordered[ordered != row])
        return found


def shared_leaves(
    forest: Forest, features: Any, features_val: Any, asked: Integers, codes: Array,
    classes: int, seed: int = 0, advance: Advance | None = None,
) -> tuple[list[Integers], Floats]:  # fmt: skip
    """Which rows share the most leaves with each asked row, and the share of each label among them.

    Rows of the validation set, if there is one, are numbered after the points.
    """
    every = features if features_val is None else np.concatenate([features, features_val])
    rows = forest.rows(every, everywhere=True)
    asking = forest.rows(features[asked])
    found = SharedLeaves(asked, codes, classes, seed)
    for tree in range(len(forest.trees)):
        found.add(rows.leaves(tree), asking.leaves(tree), forest.sizes[tree])
        if advance is not None:
            advance(1)
    return found.ranked(), found.shares / np.maximum(found.trees, 1)[:, None]
