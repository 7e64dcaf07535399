"""Values of k-nearest-neighbor regression for one judge, by every semivalue.

Let y_1, ..., y_n be targets in the order of distance to a judge with target t, and K = min(k, n).
Utilities of a coalition S, with D the divisor of a full neighborhood:

    "mean"     minus the squared error of the mean of the min(k, |S|) nearest, z0^2 if S is empty
    "jia2019"  minus the squared error of their sum over k; 0 if S is empty (Jia et al. 2019)

A semivalue says how likely a coalition of the others is by its size. All coalitions of one size are
equally likely. A point i enters a coalition S of s others in one of two ways.

If s < K, it joins all of them. What it adds on average follows from the mean m, the mean square q
and the mean product of pairs p of all others, as in `targets`.

If s >= K, it takes the place of the K-th nearest l of S, if it is nearer. Let z = y - t for "mean".
The K - 1 others before l are equally likely to be any of the l - 2 points before l other than i.
Let h_l be the chance that l is the K-th nearest of S, P_l the sum of z_1, ..., z_l, and
c = (K - 1) / (l - 2). Then the point adds on average, summed over l > max(i, K),

    - h_l (z_i - z_l) (2 c (P_{l-1} - z_i) + z_i + z_l) / D^2

This is a quadratic in z_i, so sums from the far end value all points in O(n). For "jia2019", z is
y, and 2 t h_l (y_i - y_l) / D is added. For "mean", y and t count from a number in the middle of
all targets, so that a judge that is far off loses no digit. Then z is y, this term is added, too,
and so is 2 t (y_i - m) / (s + 1) where s < K others are joined.

If every other point is in S with chance x, h_l = C(l-2, K-1) x^K (1-x)^(l-1-K). Banzhaf has x = 1/2
and leave-one-out has x = 1. For Shapley, x is uniform, and for Beta(a, b), it is distributed as
Beta(b, a), so h_{K+1} is the product of (b + j) / (a + b + j) over j < K, and
h_{l+1} / h_l = (l - 1) (a + l - 1 - K) / ((l - K) (a + b + l - 1)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.games.semivalues import Beta, Semivalue, coalition_sizes


@dataclass(frozen=True)
class Chances:
    """How likely coalitions of the others are, for n points and K neighbors."""

    sizes: Floats  # the chances of s = 0, ..., K - 1 others
    last: Floats  # the chance that the point at each place is the K-th nearest; 0 up to place K

    @classmethod
    def of(cls, semivalue: Semivalue, points: int, k: int) -> Chances:
        """The chances of a semivalue."""
        K = min(k, points)
        if semivalue == "leave-one-out":
            sizes = (np.arange(K) == points - 1).astype(np.float64)
            return cls(sizes, (np.arange(points) == K).astype(np.float64))
        place = np.arange(K + 1.0, points)  # l, from that after the first
        steps = (place - 1) / (place - K)
        if semivalue == "banzhaf":
            s = np.arange(1.0, K)
            sizes = np.concatenate([[0.0], np.cumsum(np.log2((points - s) / s))]) - (points - 1)
            return cls(np.exp2(sizes), _placed(0.5**K, steps / 2, K, points))
        if semivalue != "shapley" and not isinstance(semivalue, Beta):
            raise InputError(
                f"semivalue {semivalue!r} is for classes: it cannot be used with regression"
            )
        kind = semivalue if isinstance(semivalue, Beta) else Beta(1, 1)
        a, b, j = kind.a, kind.b, np.arange(K)
        first = float(np.prod((b + j) / (a + b + j)))
        steps = steps * (a + place - 1 - K) / (a + b + place - 1)
        return cls(coalition_sizes(kind, points)[:K], _placed(first, steps, K, points))


def _placed(first: float, steps: Floats, K: int, points: int) -> Floats:
    if points == K:
        return np.zeros(points)
    return np.concatenate([np.zeros(K), [first], first * np.cumprod(steps)])[:points]


def nearest_values(y: Floats, t: float, k: int, empty: float | None, chances: Chances) -> Floats:
    """The value of each point, nearest first: for "mean" with a prediction for none, or "jia2019".

    Examples
    --------
    >>> shapley = Chances.of("shapley", 2, 1)
    >>> nearest_values(np.array([1.0, 3.0]), 1.0, 1, 0.0, shapley).tolist()
    [2.5, -1.5]
    """
    K = min(k, len(y))
    if empty is None:
        return _joining_sum(y, t, k, chances) + _replacing(y, t, K, k, chances.last)
    center = float(np.median(y))
    z, apart = y - center, t - center
    joining = _joining_mean(z, apart, empty - center, chances)
    return joining + _replacing(z, apart, K, K, chances.last)


def _joining_mean(z: Floats, t: float, z0: float, chances: Chances) -> Floats:
    """What points add to coalitions of fewer than K others: the squared error of the mean."""
    n, s, weight = len(z), np.arange(1.0, len(chances.sizes)), chances.sizes[1:]
    one, two = z.sum() - z, (z**2).sum() - z**2
    m, q = one / max(n - 1, 1), two / max(n - 1, 1)
    p = (one**2 - two) / max((n - 1) * (n - 2), 1)
    after = weight / (s + 1) ** 2
    squares, pairs = weight / s - s * after, (s - 1) * (weight / s - s * after)
    found = q * squares.sum() + p * pairs.sum() - 2 * z * m * (s * after).sum() - z**2 * after.sum()
    found += 2 * t * (z - m) * (weight / (s + 1)).sum()
    return np.asarray(found + chances.sizes[0] * (z0 - z) * (z0 + z - 2 * t))


def _joining_sum(y: Floats, t: float, k: int, chances: Chances) -> Floats:
    """What points add to coalitions of fewer than K others, for the sum over k."""
    s, weight = np.arange(1.0, len(chances.sizes)), chances.sizes[1:]
    m, own = (y.sum() - y) / max(len(y) - 1, 1) / k, y / k
    found = -own * (2 * m * (weight * s).sum() + (own - 2 * t) * weight.sum())
    return np.asarray(found - chances.sizes[0] * (own - t) ** 2)


def _replacing(z: Floats, t: float, K: int, divisor: int, last: Floats) -> Floats:
    """What points add if they take the place of the K-th nearest."""
    sums = np.cumsum(z)
    c = (K - 1) / np.maximum(np.arange(1.0, len(z) + 1) - 2, 1)
    square, linear = last * (1 - 2 * c), 2 * last * c * sums
    fixed = last * z * (2 * c * (sums - z) + z)
    A, B, C, H, Y = (_behind(each) for each in (square, linear, fixed, last, last * z))
    return (C - z * (A * z + B)) / divisor**2 + 2 * t * (z * H - Y) / divisor


def _behind(terms: Floats) -> Floats:
    """For each place, the sum over all places behind it."""
    return np.concatenate([np.cumsum(terms[::-1])[::-1][1:], [0.0]])
