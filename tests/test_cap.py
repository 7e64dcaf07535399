"""The cap and its filters: sums are exact, and never rounded down."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledgers import make

from thresher.errors import BudgetError
from thresher.privacy.accountants import Cost, check_filter, gaussian_delta, gaussian_mu
from thresher.privacy.cap import SCALE, Cap, Units


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def test_decimals_add_up_as_people_add_them(path):
    ledger = make(path, epsilon=0.3)
    for request in "abc":
        ledger.charge(request, Cost(epsilon=0.1), {})
    assert ledger.spent() == Cost(epsilon=0.3)
    with pytest.raises(BudgetError):
        ledger.charge("d", Cost(epsilon=1e-20), {})


def test_what_remains_is_rounded_down_from_the_exact_number(path):
    ledger = make(path)
    ledger.charge("a", Cost(epsilon=1e-20), {})
    assert ledger.remaining() == 0.999999999
    ledger.charge("b", Cost(epsilon=ledger.remaining()), {})


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-5, 0.1])
def test_one_gaussian_release_may_take_the_whole_cap(epsilon, delta):
    cap = Cap(epsilon, delta, "add-remove", "point", "", "gaussian")
    whole = Units.of(Cost(mu_squared=gaussian_mu(epsilon, delta) ** 2))
    assert cap.fits(whole)
    assert cap.left(Units()) == epsilon
    assert cap.left(whole) < 1e-3 * epsilon


@given(share=st.floats(0, 1), epsilon=st.floats(0.01, 20), digits=st.integers(2, 12))
@settings(max_examples=30)
def test_what_remains_fits_and_a_little_more_does_not(share, epsilon, digits):
    cap = Cap(epsilon, 10.0**-digits, "add-remove", "point", "", "gaussian")
    spent = Units.of(Cost(mu_squared=share * gaussian_mu(epsilon, cap.delta) ** 2))
    left = cap.left(spent)
    for more, fits in ((left, True), (left * (1 + 1e-6) + 2e-6, False)):
        if 0 < more < epsilon:
            asked = Units.of(Cost(mu_squared=gaussian_mu(more, cap.delta) ** 2))
            assert cap.fits(spent + asked) == fits


amounts = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 1e-13, 1e-25, 5e-324, 1 / 3])
costs = st.builds(Cost, mu_squared=amounts) | st.builds(
    Cost, epsilon=amounts, delta=amounts.map(lambda d: d * 1e-6)
)


@given(cost=costs)
def test_units_are_rounded_up_and_by_less_than_one(cost):
    units = Units.of(cost)
    for part in ("mu_squared", "epsilon", "delta"):
        exact, whole = Fraction(repr(getattr(cost, part))) * SCALE, getattr(units, part)
        assert exact <= whole < exact + 1


@given(
    asked=st.lists(costs, max_size=12),
    epsilon=st.floats(0.01, 10),
    delta=st.sampled_from([0, 1e-6, 0.1]),
)
def test_whatever_is_asked_what_is_accepted_is_within_the_cap(asked, epsilon, delta):
    terms = ("add-remove", "point", "", check_filter(None, delta))
    cap, spent = Cap(epsilon, delta, *terms), Units()
    exact = np.zeros(3)
    for cost in asked:
        if cap.fits(spent + Units.of(cost)):
            spent += Units.of(cost)
            exact += [cost.mu_squared, cost.epsilon, cost.delta]
            mu = math.sqrt(spent.cost.mu_squared)
            assert gaussian_delta(epsilon - spent.cost.epsilon, mu) + spent.cost.delta <= delta
            parts = (spent.cost.mu_squared, spent.cost.epsilon, spent.cost.delta)
            assert np.all(np.array(parts) >= exact * (1 - 1e-15))


@given(asked=st.lists(costs, max_size=5))
@settings(max_examples=10)
def test_a_ledger_accepts_what_its_cap_says(asked, tmp_path_factory):
    ledger = make(tmp_path_factory.mktemp("any") / "ledger.db", epsilon=1.0, delta=1e-2)
    spent = Units()
    for i, cost in enumerate(asked):
        if ledger._cap.fits(spent + Units.of(cost)):
            ledger.charge(str(i), cost, {})
            spent += Units.of(cost)
        else:
            with pytest.raises(BudgetError, match="does not fit"):
                ledger.charge(str(i), cost, {})
    assert ledger.spent() == spent.cost
    assert ledger.remaining() == ledger._cap.left(spent)
