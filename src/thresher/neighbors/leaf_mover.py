"""One point at a time: a row dropped through all trees at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.kernels.pairs import fingerprint
from thresher.kernels.tree_rows import move_row
from thresher.neighbors.forests import Forest
from thresher.neighbors.tree_columns import LARGEST
from thresher.neighbors.trees import NODE, Nodes, as_written


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
        return int(fingerprint(as_written(_single(row)), code))

    def move(
        self, row: NDArray[np.float64], leave: int, enter: int, counts: NDArray[Any], *,
        twins: bool,
    ) -> bool:  # fmt: skip
        """Count a row out of one class and into another; see `kernels.tree_rows.move_row`."""
        del twins
        single = _single(row)
        folds = self.forest.folds_of(single[None])
        inside = np.ones(len(self.first), np.bool_)
        if folds is not None:
            inside = folds[self.forest.nodes["split"], 0] == self.forest.nodes["fold"]
        cells = self.forest.starts[:-1]
        move_row(single, inside, self.first, cells, *self.nodes, leave, enter, counts)
        return True


def _single(row: NDArray[np.float64]) -> NDArray[np.float32]:
    """A row as trees see it."""
    return np.clip(row, -LARGEST, LARGEST).astype(np.float32)
