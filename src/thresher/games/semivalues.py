"""Counts to prices: what a near point is worth to a validation point, with all formulas.

Let the *rest* be the other near points, `same` of them with the validation point's label and
`other` without it. Let c = same + other + 1 be the number of near points including the valued one,
and C the number of classes. Every semivalue of the threshold utility has the form

    gain = w0(c) (1 - 1/C) + W(c) (1 - same / (c - 1))     the point carries the label
    loss = w0(c) (0 - 1/C) + W(c) (0 - same / (c - 1))     it does not

with the second term absent for c = 1. Its two functions w0 and W define it:

    Shapley        w0 = 1/c         W = (H_c - 1) / c                  H_c the harmonic number
    Banzhaf        w0 = 2^(1-c)     W = (2 - 2^(1-c)) / c - 2^(1-c)
    leave-one-out  w0 = [c = 1]     W = [c > 1] / c
    Calibrated(t)  w0 = 0           W = [c > t] (H_c - H_t) / (c - t)
    Beta(a, b)     w0 = P(J = 0)    W = E[1 / (1 + J)] - P(J = 0)      J ~ beta-binomial(c-1; b, a)

Why: points out of reach are null players, so a coalition is J of the c - 1 others in reach, and any
J of them are equally likely. Alone, the point adds m - 1/C (m = 1 if it carries the label, and
otherwise 0). After j > 0 others, it adds on average (m - same / (c - 1)) / (j + 1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError, quoted
from thresher.inputs.checks import check_count, check_number

Weights = Callable[[Integers], tuple[Floats, Floats]]

CHUNK = 1 << 16
NUMBER = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)"


@dataclass(frozen=True)
class Beta:
    """The Beta(a, b) semivalue (Kwon and Zou 2022); Beta(1, 1) is Shapley.

    A larger `a` gives small coalitions more weight, and a larger `b` gives large ones more. Both
    are from 1e-150 to 1e150.

    Examples
    --------
    >>> import thresher as th
    >>> th.Beta(4, 1)
    Beta(a=4.0, b=1.0)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            given = getattr(self, name)
            number = check_number(f"{name} of Beta", given, least=1e-150, most=1e150)
            object.__setattr__(self, name, number)


@dataclass(frozen=True)
class Calibrated:
    """The mean of what a point adds to coalitions of at least `t` near members.

    Small coalitions do not count, because their votes are mostly chance. A coalition of j >= t
    other near points has the weight 1 / (c - t), where c is the number of near points. If c <= t,
    values are 0. Values do not add up to the utility of all points, so they rank points rather than
    pay for them. Use it with `tknn_shapley` and its counts, without a kernel; t is an integer >= 1.

    Examples
    --------
    >>> import thresher as th
    >>> th.Calibrated(5)
    Calibrated(t=5)
    """

    t: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", check_count("t of Calibrated", self.t))


Semivalue = str | Beta | Calibrated


def check_semivalue(semivalue: object, *, calibrated: bool = False) -> Semivalue:
    """Return the semivalue, given as a known name, a `Beta`, or the text of `semivalue_name`.

    A `Calibrated` is accepted only if `calibrated` is True.
    """
    if isinstance(semivalue, Beta) or (isinstance(semivalue, str) and semivalue in NAMED):
        return semivalue
    steps = re.fullmatch(r"calibrated\(([1-9][0-9]*)\)", str(semivalue))
    if steps:
        semivalue = Calibrated(int(steps[1]))
    if isinstance(semivalue, Calibrated):
        if calibrated:
            return semivalue
        raise InputError(
            f"{semivalue} works only for tknn_shapley and its counts, without a kernel"
        )
    written = re.fullmatch(rf"beta\({NUMBER}, *{NUMBER}\)", str(semivalue))
    if written:
        return Beta(float(written[1]), float(written[2]))
    names = ", ".join(repr(name) for name in NAMED)
    raise InputError(f"semivalue must be {names} or thresher.Beta(a, b), got {quoted(semivalue)}")


def semivalue_name(semivalue: Semivalue) -> str:
    """The semivalue in words, for records: 'shapley', 'beta(4.0, 1.0)'."""
    if isinstance(semivalue, Calibrated):
        return f"calibrated({semivalue.t})"
    return semivalue if isinstance(semivalue, str) else f"beta({semivalue.a}, {semivalue.b})"


def weights(semivalue: Semivalue | Weights, near: Integers) -> tuple[Floats, Floats]:
    """The weights (w0, W) for neighborhoods of `near` >= 1 points, the valued point included.

    Examples
    --------
    >>> w0, W = weights("shapley", np.array([1, 2, 10_000_000]))
    >>> W.round(9).tolist()
    [0.0, 0.25, 1.57e-06]
    """
    if isinstance(semivalue, Beta):
        return _beta(semivalue.a, semivalue.b, near)
    if isinstance(semivalue, Calibrated):
        return np.zeros(near.shape), _calibrated(semivalue.t, near)
    return NAMED[semivalue](near) if isinstance(semivalue, str) else semivalue(near)


def weight_table(semivalue: Semivalue, most: int) -> Weights:
    """The weights of neighborhoods of up to `most` points, computed once and then looked up."""
    w0, W = weights(semivalue, np.arange(1, most + 1))
    return lambda near: (w0[near - 1], W[near - 1])


def coalition_sizes(semivalue: Beta, points: int) -> Floats:
    """The probability that a semivalue gives to coalitions of j = 0, ..., n - 1 others.

    J is beta-binomial(n - 1; b, a): the product of p_{j+1} / p_j = (n-1-j)/(j+1) (j+b)/(n-2-j+a).

    Examples
    --------
    >>> coalition_sizes(Beta(1, 1), 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    j = np.arange(points - 1.0)
    steps = np.log((points - 1 - j) / (j + 1)) + np.log(
        (j + semivalue.b) / (points - 2 - j + semivalue.a)
    )
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    found = np.exp(logs - logs.max())
    return found / found.sum()


def rest_prices(
    same: Integers, other: Integers, classes: int, semivalue: Semivalue | Weights
) -> tuple[Floats, Floats]:
    """What one more near point is worth beside `same` + `other` near ones: (gain, loss).

    Examples
    --------
    >>> gain, loss = rest_prices(np.array([0, 1]), np.array([0, 1]), 2, "shapley")
    >>> gain.round(4).tolist(), loss.round(4).tolist()
    ([0.5, 0.3056], [-0.5, -0.3056])
    """
    near = same + other + 1
    w0, W = weights(semivalue, near)
    share = same / np.maximum(near - 1, 1)
    gain = w0 * (1 - 1 / classes) + W * (1 - share)
    loss = w0 * (0 - 1 / classes) - W * share
    return gain, loss


def prices_between(
    same: Floats, other: Floats, classes: int, semivalue: Semivalue
) -> tuple[Floats, Floats]:
    """`rest_prices` for counts that need not be whole, interpolated from the four nearest.

    Examples
    --------
    >>> gain, _ = prices_between(np.array([0.0, 0.5, 1.0]), np.array([1.0] * 3), 2, "shapley")
    >>> gain.round(4).tolist()
    [0.5, 0.4028, 0.3056]
    """
    low_same, low_other = np.floor(same).astype(np.int64), np.floor(other).astype(np.int64)
    part_same, part_other = same - low_same, other - low_other
    gain, loss = np.zeros(same.shape), np.zeros(same.shape)
    for more_same, more_other in ((0, 0), (0, 1), (1, 0), (1, 1)):
        share = (part_same if more_same else 1 - part_same) * (
            part_other if more_other else 1 - part_other
        )
        prices = rest_prices(low_same + more_same, low_other + more_other, classes, semivalue)
        gain += share * prices[0]
        loss += share * prices[1]
    return gain, loss


def member_prices(
    same: Integers, other: Integers, classes: int, semivalue: Semivalue | Weights
) -> tuple[Floats, Floats]:
    """What a point that is among the counted ones is worth: (gain, loss).

    Its rest is the counts without itself. If no such point was counted, the price is that of a
    first one.
    """
    carries, lacks = label_prices(same, other, classes, semivalue)
    return carries[0], lacks[1]


def label_prices(
    same: Integers, other: Integers, classes: int, semivalue: Semivalue | Weights
) -> Floats:
    """What members are worth under any label: prices[own, under, v] for validation point v.

    `own` is 0 for a member that carries the label of v, and otherwise 1. `under` is 0 if it is
    priced under that label, and otherwise 1.
    """
    carries = rest_prices(np.maximum(same - 1, 0), other, classes, semivalue)
    lacks = rest_prices(same, np.maximum(other - 1, 0), classes, semivalue)
    return np.array([carries, lacks])


def _shapley(near: Integers) -> tuple[Floats, Floats]:
    from scipy.special import digamma

    harmonic = np.where(near > 1, digamma(near + 1.0) + np.euler_gamma, 1.0)
    return 1 / near, (harmonic - 1) / near


def _banzhaf(near: Integers) -> tuple[Floats, Floats]:
    w0 = np.exp2(1.0 - near)
    return w0, (2 - w0) / near - w0


def _leave_one_out(near: Integers) -> tuple[Floats, Floats]:
    return np.where(near == 1, 1.0, 0.0), np.where(near > 1, 1 / near, 0.0)


NAMED: dict[str, Weights] = {
    "shapley": _shapley,
    "banzhaf": _banzhaf,
    "leave-one-out": _leave_one_out,
}


def _calibrated(t: int, near: Integers) -> Floats:
    """(H_c - H_t) / (c - t), the mean of 1/(j + 1) over j = t, ..., c - 1; 0 for c <= t.

    For large t, the difference of harmonic numbers would cancel, so it is taken from their series
    H_n = gamma + log(n + 1/2) + 1 / (24 (n + 1/2)^2) - 7 / (960 (n + 1/2)^4) + ...
    """
    from scipy.special import digamma

    more = np.maximum(near - t, 1).astype(np.float64)
    if t < 64:
        steps = digamma(t + more + 1) - digamma(t + 1.0)
    else:
        middle, end = t + 0.5, t + 0.5 + more
        steps = np.log1p(more / middle) + (end**-2 - middle**-2) / 24
        steps += (middle**-4 - end**-4) * 7 / 960
    return np.where(near > t, steps / more, 0.0)


def _beta(a: float, b: float, near: Integers) -> tuple[Floats, Floats]:
    """Beta weights as products of ratios near 1, summed as logarithms, so that nothing overflows.

    P(J = 0)       = prod_{i=0}^{c-2} (a + i) / (a + b + i)
    E[1 / (1 + J)] = 1/c + (a/c) (1 - prod_{i=1}^{c-1} (a + i) / (a + i + b - 1)) / (b - 1)

    (the second from E[1 / (1 + J)] = E[(1 - (1 - p)^c) / (c p)] over p ~ Beta(b, a)); for b = 1 the
    last quotient is sum_{i=1}^{c-1} 1 / (a + i).
    """
    w0 = np.exp(-_sums(lambda i: np.log1p(b / (a + i)), 0, near - 1))
    excess = b - 1.0

    def logarithm(i: Floats) -> Floats:  # of (a + i + b - 1) / (a + i), well near 1 and near 0
        ratio = (a + b + (i - 1)) / (a + i)
        with np.errstate(divide="ignore"):
            return np.where(ratio < 0.5, np.log(ratio), np.log1p(excess / (a + i)))

    if excess == 0.0:
        scaled = a * _sums(lambda i: 1 / (a + i), 1, near)
    else:  # a times the last quotient; where its product is huge, a is tiny and joins it in time
        log_product = -_sums(logarithm, 1, near)
        usual = a * -np.expm1(np.minimum(log_product, 30.0))
        scaled = np.where(log_product < 30, usual, a - np.exp(math.log(a) + log_product)) / excess
    return w0, np.maximum((1 + scaled) / near - w0, 0.0)


def _sums(term: Callable[[Floats], Floats], first: int, ends: Integers) -> Floats:
    """sum_{i=first}^{end-1} term(i) for every end; chunks of it are added exactly."""
    sums = np.zeros(ends.shape)
    before: list[float] = []
    for lo in range(first, int(ends.max(initial=first)), CHUNK):
        running = np.cumsum(term(np.arange(lo, lo + CHUNK, dtype=np.float64)))
        inside = (ends > lo) & (ends <= lo + CHUNK)
        sums[inside] = math.fsum(before) + running[ends[inside] - lo - 1]
        before.append(float(running[-1]))
    return sums


def utility(same: Integers, other: Integers, classes: int) -> float:
    """The utility of all points: the sum of label shares, or 1/C if nobody is near.

    Examples
    --------
    >>> utility(np.array([3, 0]), np.array([1, 0]), 2)
    1.25
    """
    near = same + other
    shares: Array = np.where(near > 0, same / np.maximum(near, 1), 1 / classes)
    return float(shares.sum())
