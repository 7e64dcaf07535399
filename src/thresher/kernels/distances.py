"""Distances of all points to one validation point, or of a tile of points to a few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.kernels.pairs import EUCLIDEAN, distance


@njit(cache=True, nogil=True)
def direct_distances(
    XT: NDArray[np.floating[Any]],
    dims: tuple[int, ...],
    lengths: NDArray[np.float64],
    v: NDArray[np.float64],
    length: float,
    metric: int,
    out: NDArray[np.float64],
) -> None:
    """Distances from the columns of `XT`, feature by feature in float64, alike for every pair.

    Squared for the euclidean metric, which orders alike; `lengths` and `length` are the norms. As
    in `masks.direct_words` the type of `dims` makes the number of features a constant.
    """
    if metric == EUCLIDEAN:
        for i in range(out.shape[0]):
            total = 0.0
            for k in range(len(dims)):
                t = np.float64(XT[k, i]) - v[k]
                total += t * t
            out[i] = total
    else:
        for i in range(out.shape[0]):
            total = 0.0
            for k in range(len(dims)):
                total += np.float64(XT[k, i]) * v[k]
            out[i] = 1.0 - total / (lengths[i] * length)


@njit(cache=True, nogil=True)
def product_distances(
    G: NDArray[np.floating[Any]],
    squares: NDArray[np.float64],
    lengths: NDArray[np.float64],
    v2: NDArray[np.float64],
    metric: int,
    out: NDArray[np.floating[Any]],
) -> None:
    """Distances from a tile `G` of the product of validation points (rows) and points."""
    for r in range(out.shape[0]):
        g = G[r]
        o = out[r]
        if metric == EUCLIDEAN:
            square = v2[r]
            for i in range(o.shape[0]):
                o[i] = (squares[i] + square) - 2.0 * np.float64(g[i])
        else:
            length = np.sqrt(v2[r])
            for i in range(o.shape[0]):
                o[i] = 1.0 - np.float64(g[i]) / (lengths[i] * length)


@njit(cache=True, nogil=True)
def pair_distances(
    X: NDArray[np.float64],
    x2: NDArray[np.float64],
    v: NDArray[np.float64],
    v2: float,
    metric: int,
    out: NDArray[np.float64],
) -> None:
    """Distances of the rows of X to v by the pair rule."""
    for i in range(X.shape[0]):
        out[i] = distance(X[i], v, x2[i], v2, metric)
