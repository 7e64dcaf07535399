"""One point at a time: a row dropped through all trees at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.kernels.pairs import fingerprint
from thresher.kernels.tree_rows import move_row
from thresher.neighbors.forests import Forest
from thresher.neighbors.tree_columns import as_floats
from thresher.neighbors.trees import HASH_SHIFT, NODE, Nodes, as_written, hash_salt


@dataclass(frozen=True)
class LeafMover:
    """The trees as the kernel for one row wants them."""

    forest: Forest
    first: NDArray[np.int64]  # node of each tree
    nodes: Nodes

    @classmethod
    def of(cls, forest: Forest) -> LeafMover:
        """All trees of a forest."""
        first = np.concatenate([[0], np.cumsum(forest.nodes["nodes"])[:-1]]).astype(np.int64)
        feature, threshold, right, missing_left = (forest.nodes[name] for name in NODE)
        return cls(forest, first, (feature, threshold, right, missing_left))

    def fingerprint(self, row: NDArray[np.float64], code: int) -> int:
        """The fingerprint of a row and its class."""
        return int(fingerprint(as_written(as_floats(row)), code))

    def move(
        self, row: NDArray[np.float64], leave: int, enter: int, counts: NDArray[Any], *,
        twins: bool,
    ) -> bool:  # fmt: skip
        """Count a row out of one class and into another; see `kernels.tree_rows.move_row`."""
        del twins
        single, forest = as_floats(row), self.forest
        inside = np.ones(len(self.first), np.bool_)
        if forest.folds:
            written, splits = as_written(single), range(int(forest.nodes["split"].max()) + 1)
            hashed = [fingerprint(written, hash_salt(forest.seed, split)) for split in splits]
            folds = np.array([(each >> HASH_SHIFT) % forest.folds for each in hashed])
            inside = folds[forest.nodes["split"]] == forest.nodes["fold"]
        cells = forest.starts[:-1]
        move_row(single, inside, self.first, cells, *self.nodes, leave, enter, counts)
        return True
