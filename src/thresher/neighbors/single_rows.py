"""One point at a time, compared with 64 validation rows at once, or with all trees of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import MAX_MAGNITUDE
from thresher.kernels.pairs import PANEL, fingerprint, move_row
from thresher.kernels.tree_leaves import move_in_trees
from thresher.metrics import SMALLEST_SQUARE
from thresher.neighbors.forests import Forest
from thresher.neighbors.tree_columns import as_floats
from thresher.neighbors.trees import HASH_SHIFT, NODE, Nodes, as_written, hash_salt

NOBODY = -1  # the class that a point leaves when it is new, and enters when it goes


@dataclass(frozen=True)
class Panels:
    """The validation set in the form that the kernel for one row needs."""

    numbers: NDArray[np.float64]  # panels x features x 64 validation points
    squares: NDArray[np.float64]
    codes: NDArray[np.int32]
    cosine: bool
    edges: NDArray[np.float64]  # of the rings, ascending
    bounds: tuple[float, float]  # of |x|^2, within which `metrics.measure` takes a row

    @classmethod
    def of(cls, validation: Validation, edges: tuple[float, ...]) -> Panels:
        """The panels of a validation set with features."""
        assert validation.rows is not None  # noqa: S101 - distances are counted as tables
        count, width = validation.rows.array.shape
        panels = -(-count // PANEL)
        padded = np.zeros((panels * PANEL, width))
        padded[:count] = validation.rows.array
        numbers = padded.reshape(panels, PANEL, width).transpose(0, 2, 1)
        cosine = validation.metric == "cosine"
        bounds = (SMALLEST_SQUARE if cosine else 0.0, MAX_MAGNITUDE**2)
        squares, codes = validation.rows.squares, validation.codes
        about = squares, codes, cosine, np.array(edges), bounds
        return cls(np.ascontiguousarray(numbers), *about)

    def fingerprint(self, row: NDArray[np.float64], code: int) -> int:
        """The fingerprint of a row and its class."""
        return int(fingerprint(row, code))

    def move(
        self, row: NDArray[np.float64], leave: int, enter: int, counts: NDArray[np.int64], *,
        twins: bool,
    ) -> bool:  # fmt: skip
        """Count a row out of one class and into another; see `kernels.pairs.move_row`."""
        return move_row(
            row, self.numbers, self.squares, self.codes, self.cosine, self.edges, self.bounds,
            leave, enter, twins, counts,
        )  # fmt: skip


def plain_row(X: Any, width: int) -> NDArray[np.float64] | None:
    """The row of a plain array of floats that has one, copied in float64; None for any other X."""
    plain = type(X) is np.ndarray and X.dtype.char in "efd" and 0 < X.ndim < 3
    if plain and X.size == width == X.shape[-1]:
        return X.reshape(width).astype(np.float64)
    return None


def plain_label(y: Any) -> Any:
    """The label of a list or plain array that has one; None for any other y, and repeated times."""
    if type(y) is list and len(y) == 1:
        return None if getattr(y[0], "fold", 0) else y[0]  # a time that equals an earlier one
    if type(y) is np.ndarray and y.shape == (1,) and y.dtype.kind in "iubU":
        return y.item()
    return None


@dataclass(frozen=True)
class LeafMover:
    """The trees in the form that the kernel for one row needs."""

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
        """Count a row out of one class and into another, in the trees that it may fill."""
        del twins
        single, forest = as_floats(row), self.forest
        inside = np.ones(len(self.first), np.bool_)
        if forest.folds:
            written, splits = as_written(single), range(int(forest.nodes["split"].max()) + 1)
            hashed = [fingerprint(written, hash_salt(forest.seed, split)) for split in splits]
            folds = np.array([(each >> HASH_SHIFT) % forest.folds for each in hashed])
            inside = folds[forest.nodes["split"]] == forest.nodes["fold"]
        cells = forest.starts[:-1]
        move_in_trees(single, inside, self.first, cells, *self.nodes, leave, enter, counts)
        return True
