"""Shares of noise: their law, what they add up to, and the audit when some add none."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import chi2

import thresher as th
from thresher.errors import InputError
from thresher.federate.noise_shares import (
    LEAST_VARIANCE,
    check_draws,
    check_total,
    noise_excess,
    share_sigma,
)
from thresher.privacy import tabled_noise
from thresher.privacy.tabled_noise import TabledSystem, exact_weights, wide_gaussian

FALSE_ALARM = 1e-6


def law(variance, reach):
    """The discrete Gaussian on -reach..reach, to 60 digits."""
    weights = [mp.exp(-mp.mpf(x * x) / (2 * mp.mpf(variance))) for x in range(-reach, reach + 1)]
    total = mp.fsum(weights)
    return [weight / total for weight in weights]


def added(first, second, step=1):
    """The law of a sum, the second number times a step."""
    reach = len(first) // 2 + step * (len(second) // 2)
    out, offset = [mp.mpf(0)] * (2 * reach + 1), reach - len(first) // 2
    for j, q in enumerate(second):
        shift = offset + step * (j - len(second) // 2)
        for i, p in enumerate(first):
            out[i + shift] += p * q
    return out


def largest_ratio(found, variance):
    """By what factor, less 1, a law differs from the discrete Gaussian, within five sigma."""
    reach = len(found) // 2
    want, near = law(variance, reach), int(5 * math.sqrt(variance))
    ratios = [found[i] / want[i] for i in range(reach - near, reach + near + 1)]
    return max(*ratios, 1 / min(ratios)) - 1


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


@pytest.fixture
def seeded(monkeypatch):
    random = np.random.default_rng(0)
    monkeypatch.setattr(tabled_noise.os, "urandom", random.bytes)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1, 1), (1, 3), (2, 2), (4, 2)])
def test_a_sum_of_discrete_gaussians_is_one_up_to_the_factor_of_t12(a, b):
    reach = [int(14 * math.sqrt(v)) + 2 for v in (a, b)]
    found = added(law(a, reach[0]), law(b, reach[1]))
    h = 2.1 * math.exp(-2 * math.pi**2 * a * b / (a + b))
    error = float(largest_ratio(found, a + b))
    assert error <= (1 + h) / (1 - h) - 1
    assert error >= h / 2  # the bound is not far from the truth


def test_a_wide_law_is_a_sum_of_two_narrow_ones():
    """a + m b with the variances that `wide_gaussian` takes: 32 m^2, and at least 32."""
    step, coarse = 2, 33
    fine = tabled_noise.SPREAD * step**2
    found = added(law(fine, 160), law(coarse, 80), step)
    assert largest_ratio(found, fine + step**2 * coarse) < 1e-42  # what is beyond 14 sigma


@pytest.mark.parametrize("variance", [16.0, 900.5])
def test_tables_hold_the_law(variance):
    reach = math.ceil(14 * math.sqrt(variance))
    weights = exact_weights(variance)
    assert len(weights) == reach + 1
    for x in (0, 1, 2, reach // 2, reach):
        want = mp.exp(-mp.mpf(x * x) / (2 * mp.mpf(variance)))
        assert abs(mp.mpf(weights[x]) / 2**256 - want) < (x * x + 1) * mp.mpf(2) ** -255 + 1e-59
    high, low, found = tabled_noise._table(variance)
    assert found == reach
    cumulative = mp.mpf(0)
    for word, rest, probability in zip(high.tolist(), low.tolist(), law(variance, reach)):
        cumulative += probability
        assert abs((mp.mpf(word) * 2**64 + rest) / mp.mpf(2) ** 128 - cumulative) < 2.0**-120


@pytest.mark.parametrize("sigma", [4.0, 300.0, 50_000.0])
def test_draws_follow_the_law(seeded, sigma):
    """Chi-square over 50 bins of 100,000 draws; false alarms 1e-6, by a fixed seed."""
    drawn = TabledSystem().gaussian(sigma, 100_000)
    edges = np.unique(np.round(np.linspace(-3, 3, 51) * sigma)) + 0.5
    counts = np.histogram(drawn, [-np.inf, *edges, np.inf])[0]
    below = [float(mp.ncdf(edge / sigma)) for edge in edges]
    if sigma == 4.0:  # few numbers: sum them
        exact = np.cumsum([float(p) for p in law(sigma**2, 60)])
        below = [exact[int(edge - 0.5) + 60] for edge in edges]
    expected = len(drawn) * np.diff([0.0, *below, 1.0])
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, len(counts) - 1)
    assert len(np.unique(drawn)) > 20


def test_where_the_high_word_ties_the_low_one_decides(monkeypatch):
    high, low, reach = tabled_noise._table(16.0)
    place = reach  # between 0 and 1
    for rest, number in ((int(low[place]) - 1, 0), (int(low[place]), 1)):
        words = np.array([high[place], rest], np.uint64).tobytes()
        monkeypatch.setattr(tabled_noise.os, "urandom", lambda size, words=words: words)
        assert wide_gaussian(16.0, 1).tolist() == [number]


def test_the_shares_of_those_who_do_not_collude_are_the_noise_that_was_asked_for(seeded):
    sigma, k, t = 500.0, 4, 1
    each = share_sigma(sigma, k, t)
    assert (k - t) * each**2 == pytest.approx(sigma**2)
    assert noise_excess(5, k, t) == pytest.approx(5 / 3)
    total = sum(TabledSystem().gaussian(each, 40_000) for _ in range(k - t))
    deviation = math.sqrt(2 / total.size)  # of the variance's estimate, relative
    assert abs(total.var() / sigma**2 - 1) < 5 * deviation


def test_too_little_and_too_much_noise_are_refused():
    with pytest.raises(InputError, match="at least 16 is needed"):
        share_sigma(math.sqrt(LEAST_VARIANCE) * 1.7, 4, 1)
    with pytest.raises(InputError, match="at most"):
        check_total(2.0**50, 1.1)


class Shares(TabledSystem):
    """Noise as so many silos add it up, of n = 5, k = 4 and t = 1."""

    def __init__(self, adders):
        self.adders = adders

    def gaussian(self, sigma, size):
        each = share_sigma(sigma, 4, 1)
        return sum(super(Shares, self).gaussian(each, size) for _ in range(self.adders))


@pytest.mark.parametrize(("adders", "passed"), [(5, True), (3, True), (1, False)])
def test_the_audit_passes_also_when_t_of_the_survivors_add_none(
    seeded, monkeypatch, adders, passed
):
    """Three honest shares are what epsilon counts on, whoever else adds noise; one is too few."""
    monkeypatch.setattr("thresher.attack.audit.noise_source", lambda seed: Shares(adders))
    audit = th.audit_mechanism("table", epsilon=1, delta=1e-5, runs=6000, canaries=0, near=2)
    assert audit.passed is passed
    if adders == 3:  # and it is not far from what was claimed
        assert audit.gaussian_bound > 0.6


def test_the_face_is_lazy():
    assert th.federate.__name__ == "thresher.federate"
    for name in th.federate.__all__:
        assert getattr(th.federate, name).__module__.startswith(
            ("thresher.federate", "thresher.privacy")
        )
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        th.federate.nothing  # noqa: B018


@pytest.mark.parametrize(("epsilon", "delta"), [(20, 1e-10), (33, 1e-6), (1, 1e-15)])
def test_noise_is_drawn_exactly_enough_for_usual_budgets(epsilon, delta):
    check_draws(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(34, 1e-6), (20, 1e-13), (1, 1e-21)])
def test_budgets_for_which_noise_is_not_drawn_exactly_enough_are_refused(epsilon, delta):
    with pytest.raises(InputError, match=f"epsilon={epsilon:g} is too large for delta={delta:g}"):
        check_draws(epsilon, delta)
