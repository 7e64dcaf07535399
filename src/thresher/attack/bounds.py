"""Lower bounds on epsilon from the scores of an attack. Pure statistics: never sees data.

An attack gives each run a score: the higher, the more likely the canary was in. `inside` holds the
scores of runs with the canary, `outside` those of runs without it. A bound holds with the stated
confidence for any mechanism. Some of the runs choose an event, and the others count how often it
happens, so looking at many events costs no confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from thresher.array_types import Floats
from thresher.errors import InputError, option
from thresher.inputs.checks import check_count, check_number
from thresher.privacy.accountants import gaussian_delta

Bound = Callable[[Any, int, Any, int], Any]  # from hits of so many runs inside, and outside

LEAST_RUNS = 20
MOST_EVENTS = 400  # that half of the runs are asked about, for each order of the scores
RARE = 16  # scores that repeat so often on average are told apart one by one
LARGEST = 100.0  # epsilon that is ever proven


def epsilon_from_runs(
    inside: ArrayLike, outside: ArrayLike, *, delta: float, confidence: float = 0.999
) -> float:
    """A lower bound on the epsilon that a mechanism spends, without assumptions about it.

    Parameters
    ----------
    inside, outside
        Scores of runs with and without the canary.
    delta
        The delta of the claim.
    confidence
        The bound is too high with probability at most 1 - confidence.

    Returns
    -------
    float
        The bound, at least 0.

    Notes
    -----
    For every event E an (epsilon, delta)-DP mechanism has P(E) <= e^epsilon Q(E) + delta, with P, Q
    the laws with and without the canary, in either order. So epsilon >= log((p - delta) / q) with p
    a lower and q an upper limit of Clopper and Pearson (1934) for P(E) and Q(E), each wrong with
    probability at most (1 - confidence) / 2. An event is that the score is at least, or at most,
    some threshold. If scores repeat, it may also be that the score is one of the most telling ones.
    One event, one order and one threshold are chosen on half of the runs and certified on the other
    half. For n runs, this takes O(n log n).

    Examples
    --------
    >>> inside, outside = [1] * 750 + [0] * 250, [0] * 750 + [1] * 250  # log 3 = 1.0986
    >>> round(epsilon_from_runs(inside, outside, delta=0, confidence=0.95), 3)
    0.914
    """
    alpha = level(confidence) / 2
    P, p_rest, Q, q_rest = parts(inside, outside, 2)
    delta = check_number(option("delta"), delta, least=0.0, most=1.0)

    def bound(hits: Any, runs: int, others: Any, other_runs: int) -> Any:
        likely = least_share(hits, runs, alpha) - delta
        return _log_ratio(likely, most_share(others, other_runs, alpha))

    forth, back = best_event(P, Q, bound), best_event(Q, P, bound)
    if forth[0] >= back[0]:
        return _certified(forth[1], p_rest, q_rest, bound)
    return _certified(back[1], q_rest, p_rest, bound)


def mu_from_runs(inside: ArrayLike, outside: ArrayLike, *, confidence: float = 0.999) -> float:
    """The mu below which the mechanism is not mu-GDP.

    Notes
    -----
    Under mu-GDP every test has Phi^-1(1 - a) - Phi^-1(b) <= mu, with a the share of false alarms
    and b that of misses (Dong, Roth and Su 2022). Upper limits of both, each wrong with probability
    at most (1 - confidence) / 2, bound mu from below. That needs no assumption, but turning it into
    an epsilon does: see `epsilon_if_gaussian`. A tenth of the runs choose the event.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> inside, outside = random.normal(1, 1, 20_000), random.normal(0, 1, 20_000)
    >>> round(mu_from_runs(inside, outside), 2)  # truly 1
    0.92
    """
    alpha = level(confidence) / 2

    def bound(hits: Any, runs: int, others: Any, other_runs: int) -> Any:
        misses = most_share(runs - hits, runs, alpha)
        return -ndtri(most_share(others, other_runs, alpha)) - ndtri(misses)

    P, p_rest, Q, q_rest = parts(inside, outside, 10)
    return _certified(best_event(P, Q, bound)[1], p_rest, q_rest, bound)


def epsilon_if_gaussian(mu: float, delta: float) -> float:
    """The epsilon of a mechanism whose trade-off curve is that of N(0, 1) against N(mu, 1).

    With `mu_from_runs`, this gives a far sharper bound than `epsilon_from_runs`, but it assumes the
    shape of the curve (Nasr et al. 2023). Rounded down.

    Examples
    --------
    >>> round(epsilon_if_gaussian(0.3139, 1e-4), 3)
    1.0
    """
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0.0:
        return math.inf
    most = mu * (mu / 2 + math.sqrt(-2 * math.log(delta))) + 1.0
    return _last(lambda epsilon: gaussian_delta(epsilon, mu) > delta, most, 60)


def epsilon_from_one_run(
    guesses: ArrayLike, truth: ArrayLike, *, canaries: int | None = None, delta: float,
    confidence: float = 0.999,
) -> float:  # fmt: skip
    """A lower bound on the epsilon that one release spends, from guesses at many canaries in it.

    Parameters
    ----------
    guesses
        For each canary 1 (it is in), -1 (it is not) or 0 (no guess).
    truth
        Whether it was in: 1 or -1, decided by a separate fair coin for each.
    canaries
        How many canaries there were, if those without a guess are left out.
    delta, confidence
        As in `epsilon_from_runs`.

    Notes
    -----
    Steinke, Nasr and Jagielski 2023, Theorem 5.2: of r guesses at m canaries, v or more are right
    with probability at most

        P(W >= v) + 2 m delta max over i >= 1 of P(v - i <= W < v) / i,   W ~ Binomial(r, q)

    with q = 1 / (1 + e^-epsilon). For delta = 0: given the release and the coins before it, a coin
    has odds of at most e^epsilon, so each guess is right with probability at most q, whatever came
    before. With delta, the odds of a coin exceed that on releases where one law exceeds e^epsilon
    times the other, by at most delta in all; the probability of a right guess then exceeds q by at
    most delta / (1 + e^epsilon) on average, so m delta / (1 + e^epsilon) may stand in place of the
    second term (our derivation). The smaller of the two is taken. How many guesses are made must
    not depend on the truth.

    Examples
    --------
    >>> round(epsilon_from_one_run([1] * 100, [1] * 90 + [-1] * 10, delta=0, confidence=0.95), 3)
    1.631
    """
    made, true = np.asarray(guesses), np.asarray(truth)
    if made.shape != true.shape or made.ndim != 1:
        raise InputError(
            f"guesses and truth must have the same length, got {made.shape}, {true.shape}"
        )
    if not (np.isin(made, (-1, 0, 1)).all() and np.isin(true, (-1, 1)).all()):
        raise InputError("guesses must be -1, 0 or 1 and truth -1 or 1, got other numbers")
    m = len(made) if canaries is None else check_count("canaries", canaries, least=len(made))
    delta = check_number(option("delta"), delta, least=0.0, most=1.0)
    right, tried, most = int((made * true > 0).sum()), int((made != 0).sum()), level(confidence)

    def refuted(epsilon: float) -> bool:
        return one_run_chance(m, tried, right, epsilon=epsilon, delta=delta) <= most

    return _last(refuted, LARGEST, 50)


def _last(holds: Callable[[float], bool], most: float, halvings: int) -> float:
    """The largest epsilon from 0 up to which `holds`, rounded down."""
    lo, hi = 0.0, most
    for _ in range(halvings):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if holds(middle) else (lo, middle)
    return lo


def one_run_chance(
    canaries: int, guesses: int, right: int, *, epsilon: float, delta: float
) -> float:
    """The largest probability of this many right guesses under (epsilon, delta)-DP."""
    from scipy.stats import binom

    q = 1 / (1 + math.exp(-epsilon))
    below = binom.pmf(np.arange(right - 1, -1, -1), guesses, q)
    steepest = float((np.cumsum(below) / np.arange(1, right + 1)).max(initial=0.0))
    lost = canaries * delta * min(2 * steepest, 1 / (1 + math.exp(epsilon)))
    return min(1.0, float(binom.sf(right - 1, guesses, q)) + lost)


def gaussian_ceiling(mu: float) -> float:
    """The largest AUROC of any attack on a mu-GDP release: Phi(mu / sqrt 2).

    Examples
    --------
    >>> round(gaussian_ceiling(0.3139), 3)
    0.588
    """
    return math.erfc(-mu / 2) / 2


def ceiling(epsilon: float, delta: float) -> float:
    """The largest AUROC of any attack on an (epsilon, delta)-DP release.

    The area below (0, delta), (p, 1 - p), (1 - delta, 1) with p = (1 - delta) / (1 + e^epsilon).

    Examples
    --------
    >>> round(ceiling(math.log(3), 0), 3)
    0.75
    """
    p = (1 - delta) / (1 + math.exp(epsilon))
    return delta + p * (delta + 1 - p) / 2 + (1 - delta - p) * (2 - p) / 2


def certifiable(runs: int, *, delta: float, confidence: float = 0.999) -> float:
    """The largest epsilon that this many runs of each kind can prove, if no guess is wrong.

    Examples
    --------
    >>> round(certifiable(20_000, delta=1e-5), 1)
    7.2
    """
    alpha, rest = level(confidence) / 2, runs - runs // 2
    best = _log_ratio(least_share(rest, rest, alpha) - delta, most_share(0, rest, alpha))
    return max(0.0, float(best))


def level(confidence: float) -> float:
    """The false-alarm rate for a confidence, which is checked."""
    number = check_number("confidence", confidence, least=0.5, most=1.0)
    if number > 1 - 1e-9:
        raise InputError(f"confidence must be below 1, such as 0.999, got {confidence!r}")
    return 1 - number


def read_scores(name: str, scores: ArrayLike) -> Floats:
    """The scores as numbers; raise if they cannot be used."""
    wanted = f"{name} must be at least {LEAST_RUNS} finite numbers in one dimension"
    try:
        array = np.asarray(scores, np.float64)
    except (TypeError, ValueError) as unfit:
        raise InputError(f"{wanted}: {unfit}") from None
    if array.ndim != 1 or len(array) < LEAST_RUNS:
        raise InputError(f"{wanted}, got an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{wanted}, got {int((~np.isfinite(array)).sum())} that are not finite")
    return array


def parts(inside: ArrayLike, outside: ArrayLike, share: int) -> Iterator[Floats]:
    """One in `share` runs, and the others, split without regard to the scores or their order."""
    for name, scores in (("inside", inside), ("outside", outside)):
        mixed = np.random.default_rng(0).permutation(read_scores(name, scores))
        yield from np.split(mixed, [len(mixed) // share])


def least_share(hits: Any, runs: int, alpha: float) -> Any:
    """The lower limit of Clopper and Pearson, wrong with probability at most alpha."""
    return np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), runs - hits + 1.0, alpha))


def most_share(hits: Any, runs: int, alpha: float) -> Any:
    """The upper limit of Clopper and Pearson, wrong with probability at most alpha."""
    return 1 - least_share(runs - hits, runs, alpha)


def _log_ratio(above: Any, below: Any) -> Any:
    return np.log(np.maximum(above, 1e-300)) - np.log(below)


def best_event(P: Floats, Q: Floats, bound: Bound) -> tuple[float, Callable[[Floats], Any]]:
    """The event with the largest bound on these runs, and that bound.

    If scores repeat, events also follow the order of their likelihood ratios. Half of the runs give
    the order, and the other half, counted twice, show how good it is. The same runs for both would
    choose scores that are frequent by chance.
    """
    values, where = np.unique(np.concatenate([P, Q]), return_inverse=True)
    sides = np.split(where, [len(P)])
    p, q = (np.bincount(side, minlength=len(values)) for side in sides)
    p_half, q_half = (np.bincount(side[::2], minlength=len(values)) for side in sides)
    upward, both = np.arange(len(values)), (p, q)
    tests: list[tuple[Any, Any, Any]] = [
        (upward, np.less_equal, both), (upward[::-1], np.greater_equal, both)
    ]  # fmt: skip
    if len(values) * RARE <= len(where):
        order = np.argsort((q_half + 0.5) / (p_half + 0.5), kind="stable")
        tests.append((order, np.isin, (2 * (p - p_half), 2 * (q - q_half))))
    stops = np.unique(np.linspace(1, len(values), MOST_EVENTS).astype(int))
    found = []
    for order, test, counts in tests:
        hits, others = (np.cumsum(each[order])[stops - 1] for each in counts)
        hits, others = np.minimum(hits, len(P)), np.minimum(others, len(Q))
        bounds = bound(hits, len(P), others, len(Q))
        best = int(np.argmax(bounds))
        found.append((float(bounds[best]), test, values[order[: stops[best]]]))
    gain, test, chosen = max(found, key=lambda entry: entry[0])
    return gain, lambda scores: test(scores, chosen if test is np.isin else chosen[-1])


def _certified(event: Callable[[Floats], Any], P: Floats, Q: Floats, bound: Bound) -> float:
    hits, others = int(event(P).sum()), int(event(Q).sum())
    return max(0.0, float(bound(hits, len(P), others, len(Q))))
