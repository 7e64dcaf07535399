from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import digamma, exp, expm1, loggamma, mpf
from oracles import exact_weights, semivalues, threshold_utility

from thresher import Beta, InputError
from thresher.games.semivalues import (
    check_semivalue,
    member_prices,
    rest_prices,
    semivalue_name,
    utility,
    weights,
)

NAMES = ["shapley", "banzhaf", "leave-one-out"]
BETAS = [
    (1, 1),
    (4, 1),
    (1, 4),
    (16, 1),
    (0.5, 0.5),
    (0.1, 0.2),
    (2.5, 1 + 1e-9),
    (1e-3, 7),
    (1e-8, 1e-8),
    (1e8, 1e-8),
    (1e-8, 1e8),
    (1e8, 1e8),
    (1e-30, 1e-30),
]


def both(name):
    """The library's semivalue and the oracle's."""
    return (name, name) if isinstance(name, str) else (Beta(*name), ("beta", *name))


@pytest.mark.parametrize("name", [*NAMES, *BETAS], ids=str)
def test_weights_equal_their_defining_sums(name):
    ours, definition = both(name)
    sizes = [1, 2, 3, 7, 8, 50, 200]
    w0, W = weights(ours, np.array(sizes))
    want = [exact_weights(definition, c) for c in sizes]
    np.testing.assert_allclose(w0, [float(a) for a, _ in want], rtol=1e-13, atol=1e-300)
    # W is a difference from w0, so its error is relative to that
    np.testing.assert_allclose(W, [float(b) for _, b in want], rtol=1e-12, atol=5e-14)


@given(
    same=st.integers(0, 4),
    other=st.integers(0, 3),
    classes=st.integers(1, 4),
    name=st.sampled_from([*NAMES, *BETAS[:6]]),
)
def test_prices_equal_enumeration_over_all_coalitions(same, other, classes, name):
    ours, definition = both(name)
    gain, loss = rest_prices(np.array([same]), np.array([other]), classes, ours)
    for price, match in ((gain, True), (loss, False)):
        matches = [match] + [True] * same + [False] * other
        near = [True] * len(matches)
        want = semivalues(
            lambda s, n=near, m=matches: threshold_utility(s, n, m, classes), len(near), definition
        )
        np.testing.assert_allclose(price[0], want[0], atol=1e-13)


@pytest.mark.parametrize("c", [1, 2, 1030, 10**5, 10**7])
def test_shapley_is_stable_up_to_ten_million_neighbors(c):
    harmonic = digamma(mpf(c) + 1) - digamma(mpf(1))
    w0, W = weights("shapley", np.array([c]))
    np.testing.assert_allclose(w0[0], 1 / c, rtol=1e-15)
    np.testing.assert_allclose(W[0], float((harmonic - 1) / c), rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("a_b", [(4, 1), (1, 4), (0.5, 0.5), (3, 1.000001), (0.2, 0.3)])
def test_beta_is_stable_up_to_ten_million_neighbors(a_b):
    a, b = (mpf(x) for x in a_b)
    c = 10**7
    none = exp(loggamma(a + b) - loggamma(a) + loggamma(c - 1 + a) - loggamma(c - 1 + a + b))
    if b == 1:
        mean = 1 / mpf(c) + a / c * (digamma(a + c) - digamma(a + 1))
    else:
        ratio = loggamma(a + c) - loggamma(a + 1) - loggamma(a + c + b - 1) + loggamma(a + b)
        mean = 1 / mpf(c) - a / c * expm1(ratio) / (b - 1)
    w0, W = weights(Beta(*a_b), np.array([c]))
    np.testing.assert_allclose(w0[0], float(none), rtol=1e-11)
    np.testing.assert_allclose(W[0], float(mean - none), rtol=1e-11)


def test_banzhaf_and_leave_one_out_at_ten_million_neighbors():
    c = np.array([10**7])
    assert [float(x[0]) for x in weights("banzhaf", c)] == [0.0, 2e-7]
    assert [float(x[0]) for x in weights("leave-one-out", c)] == [0.0, 1e-7]


def test_extreme_beta_weights_are_numbers():
    for a in (1e-150, 1e-100, 1e-16, 1.0, 1e16, 1e150):
        for b in (1e-150, 1e-100, 1e-16, 1.0, 1e16, 1e150):
            w0, W = weights(Beta(a, b), np.array([1, 2, 3, 100]))
            assert (w0 >= 0).all()
            assert (w0 <= 1).all()
            assert (W >= 0).all()
            assert (W <= 1).all()


def test_beta_one_one_is_shapley():
    sizes = np.array([1, 2, 5, 1000, 70_000])
    for ours, want in zip(weights(Beta(1, 1), sizes), weights("shapley", sizes), strict=True):
        np.testing.assert_allclose(ours, want, rtol=1e-12, atol=1e-16)


def test_beta_weights_do_not_depend_on_which_other_sizes_are_asked_for():
    many = np.array([1, 65_535, 65_536, 65_537, 65_538, 200_000])
    for b in (1.0, 3.0):
        together = weights(Beta(2, b), many)
        alone = [weights(Beta(2, b), many[j : j + 1]) for j in range(len(many))]
        for part in range(2):
            assert together[part].tolist() == [float(x[part][0]) for x in alone]


@given(same=st.integers(0, 10**7), other=st.integers(0, 10**7), classes=st.integers(2, 1000))
def test_the_right_label_earns_and_the_wrong_one_pays(same, other, classes):
    gain, loss = rest_prices(np.array([same]), np.array([other]), classes, "shapley")
    assert gain[0] > 0 > loss[0]


@given(same=st.integers(0, 50), other=st.integers(0, 50), classes=st.integers(1, 5))
def test_member_prices_add_up_to_the_utility_they_make(same, other, classes):
    counts = np.array([same]), np.array([other])
    gain, loss = member_prices(*counts, classes, "shapley")
    want = utility(*counts, classes) - 1 / classes
    np.testing.assert_allclose(same * gain[0] + other * loss[0], want, atol=1e-13)


@pytest.mark.parametrize("name", [*NAMES, Beta(2, 0.5)])
def test_names_come_back_as_the_semivalue(name):
    assert check_semivalue(semivalue_name(name)) == name


@pytest.mark.parametrize(
    "wrong",
    ["Shapley", "", None, 3, ("beta", 1, 1), "beta(1e, 2)", "beta(1, --2)", "beta(., 1)", "beta(1e1e1, 2)",
     "beta(1)", "beta(, 1)", "beta(1-2, 3)"],
)  # fmt: skip
def test_an_unknown_semivalue_is_refused(wrong):
    with pytest.raises(InputError, match=r"semivalue must be 'shapley'.*got"):
        check_semivalue(wrong)


@pytest.mark.parametrize("a", [0, -1, float("nan"), float("inf"), 10**400, "1", True, None])
def test_beta_refuses_what_is_no_positive_number(a):
    with pytest.raises(InputError, match="a of Beta must be a number between"):
        Beta(a, 1)
    with pytest.raises(InputError, match="b of Beta must be a number between"):
        Beta(1, a)
