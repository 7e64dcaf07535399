"""KNN-Shapley from the nearest points alone: what the others are given, and how wrong that is.

Take one validation point and N points, nearest first; m_i = 1 where the i-th carries its label, n
of them all. Unrolled, the recursions of `nearest` say, for k < N and i = 1..N,

    value_i = m_i / max(k, i) - sum_{j > max(k, i)} m_j / (j (j - 1)) + A(m_i)
    A(m)    = 0 for jia2019,   (m - n/N) (H_k - 1) / (N - 1) - 1 / (C N) for soft-label

A depends on the sizes of the classes alone: the constant part (H_k - 1) / (N - 1) of every step
telescopes. So both utilities lose the same by truncation. Keep the K nearest points, k <= K < N;
the matches among the far points, those beyond K, are a known number S = n - m_1 - ... - m_K.
What is not known is their order. Every value is replaced by its mean over all orders of the far
points:

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
other point between -(1/(K+1) - 1/N) and 0. Means lie between the same ends.

What else holds. Values still add up to the utility of all points less that of none, because those
of every order do, and the k <= K nearest are known. Among the kept points of one validation point
all differences of values are exact, hence their ranks. Over several validation points this is lost:
ranks are safe only between points whose values are more than twice the bound apart. Middles of the
intervals in place of means would halve the second term, but be wrong by all of it for nearly all
points, and the values would no longer add up; zeros in place of means would be wrong by 1/(K+1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def error_bound(n: int, kept: int) -> float:
    """What the value of a point may be wrong by, for a validation point that keeps so many of n.

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
    """The fewest of n neighbors, at least k, that keep the error down; all n if it must be 0."""
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

    Kept points get what they are worth more than far points of their label, by the recursion of
    `nearest` with `steps`; then all points get what far points are worth.
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
        """For so many points of each class; H_k - 1 and 1/C, or 0 and 0 for jia2019.

        Validation points leave out so many of their own class: one if they are points themselves.
        """
        n = int(sizes.sum()) - left_out
        far = n - kept
        mean = float((1 / np.arange(kept + 1, n + 1)).sum()) / far  # h
        slope = (mean - 1 / n) / max(far - 1, 1)
        spread = mean + slope
        steps = 1 / np.maximum(k, np.arange(1, kept, dtype=np.float64)) - spread
        return cls(steps, np.maximum(sizes - left_out, 0), n, kept, spread, slope, excess, empty)

    def last(self, far_matches: int) -> tuple[float, float]:
        """What the farthest of the kept points is worth more than a far one: match, other."""
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
