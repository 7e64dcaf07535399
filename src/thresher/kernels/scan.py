"""Values of all points for one validation point, from far to near."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

U32 = np.uint32
U64 = np.uint64


@njit(cache=True, nogil=True)
def add_values(
    keys: NDArray[np.uint64],
    steps: NDArray[np.float64],
    last_match: float,
    last_other: float,
    consulted: int,
    out: NDArray[np.float64],
) -> int:
    """Add the values of one validation point to `out`; `keys` are sorted nearest first.

    Returns how many of the nearest `consulted` points carry the validation point's label.

    The farthest point starts with `last_match` or `last_other`; then, going nearer,
    value_r = value_{r+1} + steps[r] * (match_r - match_{r+1}). Free of branches: a branch on the
    match would be guessed wrong every other time.
    """
    n = keys.shape[0]
    low = U32(keys[n - 1])
    match = np.int64(low & U32(1))
    value = last_match if match else last_other
    out[low >> U32(1)] += value
    for r in range(n - 2, -1, -1):
        low = U32(keys[r])
        nearer = np.int64(low & U32(1))
        value += steps[r] * np.float64(nearer - match)
        match = nearer
        out[low >> U32(1)] += value
    matches = 0
    for r in range(consulted):
        matches += int(keys[r] & U64(1))
    return matches
