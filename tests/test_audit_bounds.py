"""Lower bounds on epsilon: exact values, and how often they are too high."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import thresher as th
from thresher.attack.area import Roc
from thresher.attack.bounds import (
    ceiling,
    certifiable,
    epsilon_from_one_run,
    epsilon_from_runs,
    epsilon_if_gaussian,
    gaussian_ceiling,
    least_share,
    most_share,
    mu_from_runs,
    one_run_chance,
)
from thresher.privacy.accountants import gaussian_delta, gaussian_epsilon


def check_alarms(alarms, tries, rate):
    """At most four standard errors above the stated rate: fails by chance once in 30,000."""
    assert alarms <= rate * tries + 4 * math.sqrt(rate * (1 - rate) * tries)


@pytest.mark.parametrize(("hits", "runs"), [(0, 30), (30, 30), (7, 30), (500, 1000)])
def test_limits_are_those_of_clopper_and_pearson(hits, runs):
    known = binomtest(hits, runs).proportion_ci(confidence_level=0.9, method="exact")
    found = least_share(hits, runs, 0.05), most_share(hits, runs, 0.05)
    np.testing.assert_allclose(found, (known.low, known.high))


def test_a_bound_of_runs_that_are_told_apart_is_known_by_hand():
    """500 of 500 hits and no false alarm on the second half, each limit at 0.5 %."""
    found = epsilon_from_runs(np.ones(1000), np.zeros(1000), delta=0.01, confidence=0.99)
    limit = 0.005 ** (1 / 500)
    assert found == pytest.approx(math.log((limit - 0.01) / (1 - limit)))
    assert found == pytest.approx(certifiable(1000, delta=0.01, confidence=0.99))


@pytest.mark.parametrize("sign", [1, -1])
def test_both_directions_are_tried(sign):
    """In one direction of the scores, and with one order of the worlds, nothing is to be seen."""
    rare = np.r_[np.ones(300), np.zeros(9700)]
    for inside, outside in [(rare, np.zeros(10_000)), (np.zeros(10_000), rare)]:
        assert epsilon_from_runs(sign * inside, sign * outside, delta=0) > 2.5


def test_scores_that_tell_but_not_by_their_size_are_found():
    """Odd numbers with the canary, even ones without."""
    random = np.random.default_rng(0)
    inside = 2 * random.integers(0, 20, 4000) + 1
    outside = 2 * random.integers(0, 20, 4000)
    assert epsilon_from_runs(inside, outside, delta=0) > 5
    assert mu_from_runs(inside, outside) > 4


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_the_bound_from_runs_is_rarely_too_high(epsilon):
    """Randomized response, whose epsilon is reached; 1,500 audits of 400 runs, 10 % false alarms.

    Scores are sorted, which must not matter; and the bound is no trivial one.
    """
    random, q = np.random.default_rng(1), 1 / (1 + math.exp(-epsilon))
    found = []
    for _ in range(1500):
        inside, outside = np.sort(random.random((2, 400)) < [[q], [1 - q]], axis=1)
        found.append(epsilon_from_runs(inside, outside, delta=0, confidence=0.9))
    check_alarms(sum(bound > epsilon for bound in found), len(found), 0.1)
    assert np.mean(found) >= max(0, epsilon - 0.35)


def test_the_bound_on_mu_is_rarely_too_high():
    """N(1, 1) against N(0, 1); 600 audits of 1,000 runs, 10 % false alarms."""
    random = np.random.default_rng(2)
    found = [
        mu_from_runs(random.normal(1, 1, 1000), random.normal(0, 1, 1000), confidence=0.9)
        for _ in range(600)
    ]
    check_alarms(sum(bound > 1 for bound in found), len(found), 0.1)
    assert np.mean(found) > 0.8


def test_the_gaussian_epsilon_is_that_of_the_accountant_rounded_down():
    for mu, delta in [(0.3, 1e-5), (1.0, 1e-3), (4.0, 1e-6)]:
        found = epsilon_if_gaussian(mu, delta)
        assert gaussian_delta(found, mu) >= delta
        assert found <= gaussian_epsilon(mu, delta) <= found * (1 + 1e-4)
    assert epsilon_if_gaussian(0.1, 0.3) == 0
    assert epsilon_if_gaussian(1.0, 0.0) == math.inf


def test_one_run_with_all_guesses_right_is_known_by_hand():
    """q^10 = 0.05."""
    q = 0.05**0.1
    found = epsilon_from_one_run(np.ones(10), np.ones(10), delta=0, confidence=0.95)
    assert found == pytest.approx(math.log(q / (1 - q)))


def test_the_chance_of_right_guesses_is_the_papers_or_ours():
    """One canary and epsilon = 0: 1/2 + delta / 2 is reached. Many: the paper's sum, by hand."""
    assert one_run_chance(1, 1, 1, epsilon=0, delta=0.1) == pytest.approx(0.55)
    q, below = 1 / (1 + math.exp(-1)), 0.0
    for i in range(1, 91):
        below = max(below, (binom.cdf(89, 100, q) - binom.cdf(89 - i, 100, q)) / i)
    wanted = binom.sf(89, 100, q) + 2 * 100 * 1e-3 * below
    assert one_run_chance(100, 100, 90, epsilon=1, delta=1e-3) == pytest.approx(wanted)


def test_more_canaries_without_a_guess_weaken_the_bound_where_delta_is_not_0():
    made, truth = np.ones(60), np.r_[np.ones(57), -np.ones(3)]
    few, many = (
        epsilon_from_one_run(made, truth, canaries=m, delta=1e-4, confidence=0.95)
        for m in (60, 10_000)
    )
    assert many < few
    left_out = np.r_[made, np.zeros(9940)], np.r_[truth, np.ones(9940)]
    assert epsilon_from_one_run(*left_out, delta=1e-4, confidence=0.95) == pytest.approx(many)


@pytest.mark.parametrize("leak", ["none", "one", "all"])
def test_the_bound_from_one_run_is_rarely_too_high(leak):
    """Randomized response of epsilon 1; 4,000 audits of 60 canaries, 10 % false alarms.

    delta = 0.005 is spent on telling a coin for certain, or rarely all of them at once; a guess is
    made at what was told and at half of the others.
    """
    random, m, epsilon = np.random.default_rng(3), 60, 1.0
    delta = 0.0 if leak == "none" else 0.005
    q, seen = 1 / (1 + math.exp(-epsilon)), []
    for _ in range(4000):
        truth = random.choice([-1, 1], m)
        told = random.random() < delta if leak == "all" else random.random(m) < delta
        answers = np.where(random.random(m) < q, truth, -truth)
        made = np.where(told, truth, np.where(random.random(m) < 0.5, 0, answers))
        seen.append((int((made != 0).sum()), int((made * truth > 0).sum())))
    chance = {s: one_run_chance(m, *s, epsilon=epsilon, delta=delta) for s in set(seen)}
    alarms = sum(chance[s] <= 0.1 for s in seen)
    check_alarms(alarms, len(seen), 0.1)
    assert alarms > 20


def test_the_bound_from_one_run_has_no_slack_without_delta():
    """As often too high as stated, up to the steps of a binomial: 4,000 audits at 10 %."""
    random, q = np.random.default_rng(4), 1 / (1 + math.exp(-1))
    right = random.binomial(500, q, 4000)
    limit = {v: one_run_chance(500, 500, v, epsilon=1, delta=0) for v in set(right)}
    share = np.mean([limit[v] <= 0.1 for v in right])
    assert 0.06 < share < 0.12


def test_auroc_counts_pairs_and_knows_its_error():
    """The error against the spread of 400 areas: within 15 %."""
    random = np.random.default_rng(5)
    P, Q = random.integers(0, 9, 40), random.integers(0, 7, 30)
    wanted = np.mean([(p > q) + 0.5 * (p == q) for p in P for q in Q])
    assert Roc.of(P, Q).auroc == pytest.approx(wanted)
    small = Roc.of(np.array([1, 2, 3, 4]), np.array([0, 1, 2, 3]))
    assert [round(number, 4) for number in (small.auroc, small.standard_error)] == [0.7188, 0.196]
    drawn = [Roc.of(random.normal(1, 1, 100), random.normal(0, 2, 50)) for _ in range(400)]
    areas, errors = np.array([(roc.auroc, roc.standard_error) for roc in drawn]).T
    assert areas.std() == pytest.approx(errors.mean(), rel=0.15)


def test_ceilings_are_areas_below_trade_off_curves():
    """By the trapezoid rule."""
    from scipy.special import ndtr, ndtri

    q = np.linspace(0, 1, 200_001)
    mu = 0.7
    assert gaussian_ceiling(mu) == pytest.approx(np.trapezoid(ndtr(ndtri(q) + mu), q), abs=1e-6)
    for e, d in [(1.0, 0.0), (0.5, 0.1), (3.0, 1e-3)]:
        most = np.minimum(np.minimum(d + np.exp(e) * q, 1 - np.exp(-e) * (1 - d - q)), 1)
        assert ceiling(e, d) == pytest.approx(np.trapezoid(most, q), abs=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: epsilon_from_runs([1] * 5, [0] * 50, delta=0), "inside must be at least 20"),
        (lambda: mu_from_runs([1] * 50, [math.nan] * 50), "outside must be .* finite"),
        (lambda: epsilon_from_runs([1] * 50, [0] * 50, delta=-1), "delta must be"),
        (lambda: mu_from_runs([1] * 50, [0] * 50, confidence=1), "confidence must be"),
        (lambda: epsilon_from_one_run([1], [1, 1], delta=0), "the same length"),
        (lambda: epsilon_from_one_run([2], [1], delta=0), "guesses must be -1, 0 or 1"),
        (lambda: epsilon_from_one_run([1], [0], delta=0), "truth -1 or 1"),
        (lambda: epsilon_from_one_run([1], [1], canaries=0, delta=0), "canaries must be"),
    ],
)
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(th.InputError, match=message):
        call()


@pytest.mark.parametrize("step", [0.02, 0.05])
def test_scores_that_repeat_are_not_chosen_because_they_are_frequent_by_chance(step):
    """N(0.45, 1) against N(0, 1) in steps: more runs prove more, and nearly all there is."""
    random, found = np.random.default_rng(0), []
    for runs in (20_000, 100_000):
        scores = random.normal(0.45, 1, runs), random.normal(0, 1, runs)
        found.append(mu_from_runs(*(np.rint(each / step) * step for each in scores)))
    assert 0.33 < found[0] < found[1]
    assert 0.4 < found[1] < 0.45
