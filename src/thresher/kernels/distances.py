"""Distances of all points to one validation point, or of a tile of points to a few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from thresher.kernels.pairs import EUCLIDEAN, distance

CHUNK = 512


@njit(cache=True, nogil=True)
def direct_distances(
    XT: NDArray[np.floating[Any]],
    x2: NDArray[np.float64],
    v: NDArray[np.float64],
    v2: float,
    metric: int,
    out: NDArray[np.float64],
) -> None:
    """Distances from the columns of `XT`, feature by feature in float64, alike for every pair.

    Squared for the euclidean metric, which orders alike.
    """
    length = np.sqrt(v2)
    for c in range(0, out.shape[0], CHUNK):
        o = out[c : c + CHUNK]
        n = o.shape[0]
        o[:] = 0.0
        for k in range(XT.shape[0]):
            column = XT[k, c : c + CHUNK]
            if metric == EUCLIDEAN:
                for i in range(n):
                    t = np.float64(column[i]) - v[k]
                    o[i] += t * t
            else:
                for i in range(n):
                    o[i] += np.float64(column[i]) * v[k]
        if metric != EUCLIDEAN:
            squares = x2[c : c + CHUNK]
            for i in range(n):
                o[i] = 1.0 - o[i] / (np.sqrt(squares[i]) * length)


@njit(cache=True, nogil=True)
def product_distances(
    G: NDArray[np.floating[Any]],
    x2: NDArray[np.float64],
    v2: NDArray[np.float64],
    metric: int,
    out: NDArray[np.floating[Any]],
) -> None:
    """Distances from a tile `G` of the product points x validation points, transposed."""
    for r in range(out.shape[0]):
        o = out[r]
        if metric == EUCLIDEAN:
            for i in range(o.shape[0]):
                o[i] = (x2[i] + v2[r]) - 2.0 * G[i, r]
        else:
            length = np.sqrt(v2[r])
            for i in range(o.shape[0]):
                o[i] = 1.0 - G[i, r] / (np.sqrt(x2[i]) * length)


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
