"""Numbers that order points by distance: to one validation point, or a tile of them to a few.

`pairs.order_key` defines the number of a pair. Divisions that could raise errors would keep the
loops from being vectorized, hence NumPy's error model.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thresher.array_types import Floats, Numbers


@njit(cache=True, nogil=True, error_model="numpy")
def direct_keys(
    XT: Numbers, dims: tuple[int, ...], x2: Floats, v: Floats, v2: float,
    cosine: bool, out: Floats,
) -> None:  # fmt: skip
    """Keys from the columns of `XT`, feature by feature in float64, alike for every pair.

    As in `masks.direct_words`, the type of `dims` makes the number of features a constant.
    """
    if not cosine:
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
            out[i] = -total * abs(total) / (x2[i] * v2)


@njit(cache=True, nogil=True, error_model="numpy")
def direct_tile(
    XT: Numbers, dims: tuple[int, ...], x2: Floats, V: Floats, v2: Floats,
    cosine: bool, factor: float, out: Numbers,
) -> None:  # fmt: skip
    """Keys for several validation points, one row of `out` each, times a power of two."""
    row = np.empty(out.shape[1])
    for r in range(out.shape[0]):
        direct_keys(XT, dims, x2, V[r], v2[r], cosine, row)
        o = out[r]
        for i in range(row.shape[0]):
            o[i] = row[i] * factor


@njit(cache=True, nogil=True, error_model="numpy")
def product_keys(
    G: Numbers, x2: Floats, v2: Floats, cosine: bool,
    out: Numbers,
) -> None:  # fmt: skip
    """Keys from a tile `G` of the product of validation points (rows) and points."""
    for r in range(out.shape[0]):
        g = G[r]
        o = out[r]
        if not cosine:
            square = v2[r]
            for i in range(o.shape[0]):
                o[i] = (x2[i] + square) - 2.0 * np.float64(g[i])
        else:
            square = v2[r]
            for i in range(o.shape[0]):
                product = np.float64(g[i])
                o[i] = -product * abs(product) / (x2[i] * square)
