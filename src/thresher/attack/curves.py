"""What one neighbor reveals: the value of a fixed point with and without its nearest neighbor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.checked_inputs import check_points, check_validation
from thresher.inputs.checks import check_choice, check_count
from thresher.inputs.labels import check_labels
from thresher.knn import knn_shapley
from thresher.metrics import Rows
from thresher.neighbors.tiles import pair_table
from thresher.tknn import tknn_shapley

GRIDS: dict[str, Sequence[Any]] = {
    "k": range(1, 16), "radius": [round(0.1 * step, 1) for step in range(1, 10)],
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class NeighborEffect:
    """Two curves over `grid` (values of k, or radii); the gap between them is what leaks."""

    over: str  # "k" or "radius"
    grid: NDArray[np.float64]  # where the point was valued
    beside: NDArray[np.float64]  # its value with the neighbor in the data
    alone: NDArray[np.float64]  # and without
    point: int  # a row of X
    neighbor: int  # the nearest other row

    def __repr__(self) -> str:
        gap = float(np.abs(self.beside - self.alone).max())
        return f"NeighborEffect(point {self.point}, over {self.over}, largest gap {gap:.4g})"


def neighbor_effect(
    X: Any, y: Any, X_val: Any, y_val: Any, *, point: int, over: Literal["k", "radius"] = "k",
    grid: Sequence[Any] | None = None, metric: str = "cosine", utility: str = "soft-label",
    classes: Any = None,
) -> NeighborEffect:  # fmt: skip
    """The value of a point as a function of k (or of the radius), with and without its neighbor.

    Parameters
    ----------
    X, y, X_val, y_val, metric, classes
        As in `knn_shapley`.
    point
        The row that is valued. Its nearest neighbor, of any label, is taken out of the data.
    over, grid
        "k" (1 to 15, unless a grid is given) or "radius" (0.1 to 0.9).
    utility
        As in `knn_shapley`, for "k" only.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.attack.curves import neighbor_effect
    >>> rng = np.random.default_rng(0)
    >>> X, V = rng.normal(size=(50, 2)), rng.normal(size=(20, 2))
    >>> neighbor_effect(X, X[:, 0] > 0, V, V[:, 0] > 0, point=7)
    NeighborEffect(point 7, over k, largest gap 0.02462)
    """
    check_choice("over", over, tuple(GRIDS))
    steps = list(GRIDS[over] if grid is None else grid)
    labels = check_labels("y", y)
    point = check_count("point", point, least=0)
    if point >= len(labels) or len(labels) < 2:
        raise InputError(
            f"point must be a row number of X, which has {len(labels)} rows, got {point}"
        )
    validation = check_validation(X_val, y_val, metric=metric, classes=classes, seen=labels)
    rows = check_points(X, y, validation, labels).rows
    if not isinstance(rows, Rows):
        raise InputError("metric must be 'cosine' or 'euclidean', got 'precomputed'")
    one = rows.some(slice(point, point + 1))
    keys = pair_table(rows, one, cosine=validation.metric == "cosine")[:, 0]
    keys[point] = np.inf
    neighbor = int(keys.argmin())
    everybody = np.arange(len(labels))
    function: Any = knn_shapley if over == "k" else tknn_shapley
    options: dict[str, Any] = {"metric": metric, "classes": validation.classes}
    options |= {"utility": utility} if over == "k" else {}

    def curve(which: NDArray[np.int64]) -> NDArray[np.float64]:
        data = rows.array[which], [labels[row] for row in which], X_val, y_val
        found = [function(*data, **options, **{over: step}) for step in steps]
        return np.array([each.values[np.searchsorted(which, point)] for each in found])

    beside, alone = curve(everybody), curve(np.delete(everybody, neighbor))
    return NeighborEffect(over, np.array(steps, np.float64), beside, alone, point, neighbor)
