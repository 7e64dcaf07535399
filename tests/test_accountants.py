"""Costs and noise: against definitions, other accountants, and frozen figures."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import discrete_gaussian_delta

from thresher.errors import InputError
from thresher.inputs.checked_inputs import check_validation
from thresher.privacy import Cells
from thresher.privacy.accountants import (
    Budget,
    discrete_mu,
    discrete_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    pure_mu,
    sampled_delta,
    sampled_epsilon,
    sampled_multiplier,
)
from thresher.privacy.cells_mechanism import CellsDesign
from thresher.privacy.design import Setting
from thresher.sides.ball_side import BallSide

EPSILONS = st.floats(0.01, 20)
DELTAS = st.floats(-30, -1).map(lambda power: 10.0**power)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("mu", [0.001, 0.03, 0.3, 1.0, 5.0])
def test_delta_is_that_of_the_gaussian_mechanism(epsilon, mu):
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assert gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


@given(EPSILONS, DELTAS)
def test_calibration_is_never_below_target_and_hardly_above(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta
    assert gaussian_delta(epsilon, mu * (1 + 1e-4)) > delta * (1 - 1e-6)
    assert gaussian_delta(gaussian_epsilon(mu, delta), mu) <= delta
    assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(0.1, 1e-4, 24.51), (0.5, 1e-4, 5.894), (0.5, 1e-5, 7.032), (1, 1e-4, 3.186), (8, 1e-4, 0.543)],
)  # fmt: skip
def test_noise_for_sensitivity_one_is_the_known_one(epsilon, delta, sigma):
    assert 1 / gaussian_mu(epsilon, delta) == pytest.approx(sigma, abs=6e-4 * sigma)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-4), (1.0, 1e-6), (4.0, 1e-9)])
def test_noise_agrees_with_dp_accounting(epsilon, delta):
    dp_accounting = pytest.importorskip("dp_accounting")
    theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert 1 / gaussian_mu(epsilon, delta) == pytest.approx(theirs, rel=1e-5)


SHIFTS = [
    [1],
    [1] * 17,
    [3, 2],
    [5, 1, 1, 1],
    [64] * 4,
    [8, 4, 2, 1],
    [9] * 3 + [4] * 5,
    [2] * 40,
]


@pytest.mark.parametrize("shift", SHIFTS, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
def test_discrete_noise_hides_every_whole_shift_of_its_length(shift, epsilon):
    delta, length = 1e-4, math.sqrt(sum(x * x for x in shift))
    sigma = discrete_sigma(length, gaussian_mu(epsilon, delta))
    assert discrete_gaussian_delta(epsilon, sigma, shift) <= delta
    assert discrete_mu(length, sigma) <= gaussian_mu(epsilon, delta)


def test_discrete_noise_agrees_with_dp_accounting():
    loss = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    sigma = discrete_sigma(math.sqrt(17), gaussian_mu(1.0, 1e-4))
    once = loss.from_discrete_gaussian_mechanism(
        sigma, sensitivity=1, value_discretization_interval=1e-4
    )
    assert once.self_compose(17).get_epsilon_for_delta(1e-4) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("multiplier", "steps", "epsilon"),
    [(0.8, 200, 1.32093), (1.0, 200, 0.69797), (2.0, 200, 0.21281), (4.0, 5000, 0.53587)],
)
def test_sampled_releases_cost_what_they_did(multiplier, steps, epsilon):
    pytest.importorskip("dp_accounting")
    found = sampled_epsilon(1e-4, 0.01, multiplier, steps, "add-remove")
    assert found == pytest.approx(epsilon, abs=1e-3)


def test_sampled_releases_agree_with_an_outside_accountant():
    pytest.importorskip("dp_accounting")
    prv = pytest.importorskip("prv_accountant")
    mechanism = prv.PoissonSubsampledGaussianMechanism(
        sampling_probability=0.01, noise_multiplier=1.0
    )
    accountant = prv.PRVAccountant(
        prvs=[mechanism], max_self_compositions=[200], eps_error=1e-3, delta_error=1e-10
    )
    low, _, high = accountant.compute_epsilon(delta=1e-4, num_self_compositions=[200])
    found = sampled_epsilon(1e-4, 0.01, 1.0, 200, "add-remove")
    assert low - 1e-3 <= found <= high + 1e-3


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_sampled_calibration_is_on_the_safe_side(adjacency):
    pytest.importorskip("dp_accounting")
    budget = Budget(0.2, 1e-4)
    multiplier = sampled_multiplier(budget, 0.01, 100, adjacency)
    assert sampled_delta(0.2, 0.01, multiplier, 100, adjacency) <= 1e-4
    assert sampled_delta(0.2, 0.01, multiplier * 0.995, 100, adjacency) > 1e-4


def test_a_shared_sample_costs_more_than_fresh_ones():
    pytest.importorskip("dp_accounting")
    fresh = 1.165  # what fresh samples need for epsilon 0.5
    true = sampled_epsilon(1e-4, 0.01, fresh / math.sqrt(17), 1, "add-remove")
    assert true > 5  # one that touches 17 validation points


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("delta", [1e-30, 1e-20, 1e-9])
def test_calibration_holds_in_high_precision_where_floats_cancel(epsilon, delta):
    with mpmath.workdps(80):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(gaussian_mu(epsilon, delta))
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert exact <= delta


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 35.0, 60.0, 100.0])
def test_the_mu_of_a_pure_release_is_right_to_the_last_digits(epsilon):
    with mpmath.workdps(80):
        mu = mpmath.mpf(pure_mu(epsilon))
        share = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        assert mpmath.ncdf(-mu / 2) <= share
        assert mpmath.ncdf(-mu * (1 - mpmath.mpf(3e-5)) / 2) >= share


PUBLIC = check_validation([[1.0, 0.0], [0.0, 1.0]], ["a", "b"], metric="cosine", classes=None)
BASE = Setting(BallSide(PUBLIC, 0.5), Budget(1.0, 0.0), "add-remove", "point")
MAP = Cells(cells=1).design(BASE).map


@pytest.mark.parametrize("unit", ["point", "owner"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@given(epsilon=st.floats(1e-6, 100))
@example(epsilon=0.3)
@example(epsilon=1.1)
@example(epsilon=2.7)
def test_the_noise_of_cells_is_no_less_than_epsilon_needs(unit, adjacency, epsilon):
    """In exact rationals: the votes that move over the scale, against all that is claimed."""
    setting = replace(BASE, budget=Budget(epsilon, 0.0), adjacency=adjacency, unit=unit)
    design = CellsDesign(setting, MAP)
    for changed, votes in (("add-remove", design.votes), ("replace-one", 2 * design.votes)):
        calibrated, claimed = votes / Fraction(design.laplace_scale), design.epsilon(changed, unit)
        assert calibrated <= Fraction(claimed)
        assert calibrated <= Fraction(repr(claimed))  # what a ledger adds up
        assert calibrated >= Fraction(claimed) * (1 - Fraction(1, 2**50))


def test_a_sampled_release_needs_a_delta_that_can_be_computed():
    with pytest.raises(InputError, match="delta must be at least 1e-12 for a sampled release"):
        sampled_multiplier(Budget(1.0, 1e-15), 0.01, 20, "add-remove")


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
def test_a_pure_release_is_no_worse_than_its_gaussian(epsilon):
    """Randomized response is the worst epsilon-DP release: its delta at every other epsilon."""
    mu, yes = pure_mu(epsilon), math.exp(epsilon) / (1 + math.exp(epsilon))
    for other in np.linspace(0, 1.5 * epsilon, 40):
        worst = max(0.0, yes - math.exp(other) * (1 - yes))
        assert worst <= gaussian_delta(other, mu) + 1e-15


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e9, "1"])
def test_an_impossible_epsilon_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon must be"):
        Budget(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [-1e-9, 1, math.nan, None])
def test_an_impossible_delta_is_refused(delta):
    with pytest.raises(InputError, match="delta must be"):
        Budget(1, delta)


def test_gaussian_noise_needs_a_delta():
    with pytest.raises(InputError, match="cells"):
        gaussian_mu(1.0, 0.0)


def test_the_oracle_is_the_definition():
    """Two points, every outcome enumerated."""
    sigma, epsilon = 3.0, 0.3
    x = np.arange(-60, 61)
    p = np.exp(-(x**2) / (2 * sigma**2))
    p /= p.sum()
    joint = np.outer(p, p)
    moved = np.zeros_like(joint)
    moved[2:, 1:] = joint[:-2, :-1]
    delta = np.maximum(moved - math.exp(epsilon) * joint, 0).sum()
    assert discrete_gaussian_delta(epsilon, sigma, [2, 1]) == pytest.approx(delta, rel=1e-6)
