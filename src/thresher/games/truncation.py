"""KNN-Shapley from the nearest points alone: what the other points get, and how far off it is.

Take one validation point and N points, nearest first. Let m_i = 1 if the i-th point carries its
label, as n of them do, and otherwise 0. Unrolled, the recursions of `nearest` say, for k < N and
i = 1..N,

    value_i = m_i / max(k, i) - sum_{j > max(k, i)} m_j / (j (j - 1)) + A(m_i)
    A(m)    = 0 for jia2019,   (m - n/N) (H_k - 1) / (N - 1) - 1 / (C N) for soft-label

A depends on the sizes of the classes alone: the constant part (H_k - 1) / (N - 1) of every step
telescopes. So truncation costs both utilities the same. Keep the K nearest points, k <= K < N. The
number of matches among the far points, those beyond K, is known: S = n - m_1 - ... - m_K. Only
their order is unknown. Every value is replaced by its mean over all orders of the far points:

    R = sum_{j > K} m_j / (j (j - 1))       by   S / (K N)
    a far point that matches                by   a = h - (h - 1/N) (S - 1) / (N - K - 1)
    a far point that does not               by   b =   - (h - 1/N) S       / (N - K - 1)
    with h = (1/(K+1) + ... + 1/N) / (N - K), the mean of 1/i; and plus A(m)

**Theorem.** The value of each point is wrong by at most

    bound = max( (1/sqrt K - 1/sqrt N)^2, 1/(K+1) - 1/N )  <  1/K

for one validation point, so also for the mean over a validation set, and by M times as much for the
sum over M. If K >= 1/error then bound < error.

Proof. *Kept points.* Only R is replaced, which enters all of them alike. R is largest if the S
matches come first, 1/K - 1/(K+S), and least if they come last, 1/(N-S) - 1/N. With u = K + S, and
with u = N - S, both distances to S / (K N) are 1/K + 1/N - 1/u - u/(K N), which is largest at
u = sqrt(K N), where it is (1/sqrt K - 1/sqrt N)^2. *Far points.* The sum behind a point of rank i
is between 0 and 1/i - 1/N, so that a match has value - A between 1/N and 1/i <= 1/(K+1), and any
other point between -(1/(K+1) - 1/N) and 0. Means lie within the same limits.

What else holds: values still add up to the utility of all points minus that of none, because those
of every order do, and the k <= K nearest points are known. Among the kept points of one validation
point, all differences of values are exact, and so are their ranks. Over several validation points,
this is lost: ranks are certain only between points whose values are more than twice the bound
apart. Midpoints of the intervals instead of means would halve the second term, but they would be
off by all of it for nearly all points, and the values would no longer add up. Zeros instead of
means would be off by 1/(K+1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def error_bound(n: int, kept: int) -> float:
    """The largest error of a value, for a validation point that keeps this many of n points.

    Examples
    --------
    >>> round(error_bound(1000, 99), 6)
    0.009
    """
    if kept >= n:
        return 0.0
    near = (1 / math.sqrt(kept) - 1 / math.sqrt(n)) ** 2
    return max(near, 1 / (kept + 1) - 1 / n)


def neighbors_kept(n: int, k: int, error: float) -> int:
    """How few neighbors (k to n) keep the error this small; n if the error must be 0."""
    if error == 0.0 or k >= n:
        return n
    near = (math.sqrt(error) + 1 / math.sqrt(n)) ** -2
    far = 1 / (error + 1 / n) - 1
    kept = max(k, math.ceil(near), math.ceil(far))
    while error_bound(n, kept) > error:  # rounded the wrong way
        kept += 1
    return min(kept, n)


@dataclass(frozen=True)
class Truncation:
    """The numbers of the theorem for one set of points, k and number of points kept.

    First, kept points get what they are worth beyond far points of their label, by the recursion of
    `nearest` with `steps`. Then all points get what far points are worth.
    """

    steps: NDArray[np.float64]
    sizes: NDArray[np.int64]  # of a validation point's own class, by class
    points: int  # N
    kept: int
    spread: float  # a - b
    slope: float  # -b / S
    excess: float
    empty: float

    @classmethod
    def of(
        cls, sizes: NDArray[np.int64], k: int, kept: int, *, excess: float, empty: float,
        left_out: int = 0,
    ) -> Truncation:  # fmt: skip
        """The numbers for class sizes; `excess` is H_k - 1, `empty` 1/C; jia2019 has 0 for both.

        Validation points leave out this many of their own class: one if they are points themselves.
        """
        n = int(sizes.sum()) - left_out
        far = n - kept
        mean = float((1 / np.arange(kept + 1, n + 1)).sum()) / far  # h
        slope = (mean - 1 / n) / max(far - 1, 1)
        spread = mean + slope
        steps = 1 / np.maximum(k, np.arange(1, kept, dtype=np.float64)) - spread
        return cls(steps, np.maximum(sizes - left_out, 0), n, kept, spread, slope, excess, empty)

    def last(self, far_matches: int) -> tuple[float, float]:
        """How much more the farthest kept point is worth than a far one, for (match, other)."""
        other = far_matches * (self.slope - 1 / (self.kept * self.points))
        return 1 / self.kept - self.spread + other, other

    def far(self, code: int, far_matches: int) -> NDArray[np.float64]:
        """The value of a far point of each class, for a validation point of class `code`."""
        n = self.points
        step = self.excess / max(n - 1, 1)
        other = -far_matches * self.slope - self.empty / n - float(self.sizes[code]) / n * step
        values = np.full(len(self.sizes), other)
        values[code] += self.spread + step
        return values
