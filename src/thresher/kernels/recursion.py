"""Values of all points for one validation point, from far to near."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

U32 = np.uint32
U64 = np.uint64


@njit(cache=True, nogil=True)
def add_values(
    keys: NDArray[np.uint64], steps: NDArray[np.float64], last_match: float, last_other: float,
    consulted: int, out: NDArray[np.float64],
) -> int:  # fmt: skip
    """Add the values of one validation point to `out`; `keys` are sorted nearest first.

    Return how many of the nearest `consulted` points carry the validation point's label.

    The farthest point starts with `last_match` or `last_other`; then, going nearer,
    value_r = value_{r+1} + steps[r] * (match_r - match_{r+1}). There are no branches, because
    the processor would mispredict a branch on the match every other time.
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


@njit(cache=True, nogil=True)
def add_sampled_values(
    keys: NDArray[np.uint64], sampled: NDArray[np.bool_], k: int, steps: float,
    out: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add to `out` the value of every point beside a sample of them, in whole `steps` of one.

    A point of rank r among the sample and itself is worth, with m the matches,

        m / max(k, r) + sum over sampled points behind it, of rank q > r, of
        m_q (1 / max(k, q) - 1 / max(k, q - 1))

    One pass from far to near: `inside` is that sum for a sampled point, `outside` for one that
    joins the sample, which moves those behind it back by one rank.
    """
    left = 0
    for i in range(sampled.shape[0]):
        left += int(sampled[i])
    inside = 0.0
    outside = 0.0
    for r in range(keys.shape[0] - 1, -1, -1):
        low = U32(keys[r])
        point = low >> U32(1)
        match = np.float64(low & U32(1))
        if sampled[point]:
            value = match / max(k, left) + inside
            inside += match * (1.0 / max(k, left) - 1.0 / max(k, left - 1))
            outside += match * (1.0 / max(k, left + 1) - 1.0 / max(k, left))
            left -= 1
        else:
            value = match / max(k, left + 1) + outside
        out[point] += np.int64(np.floor(value * steps))
