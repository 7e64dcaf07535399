"""Values of the game among owners: against enumeration, rational arithmetic and sampling."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import owner_utility, semivalues
from oracles import owner_values as rational_values

from thresher import Beta, InputError
from thresher.games.owner_values import OwnerGames
from thresher.games.semivalues import coalition_sizes
from thresher.kernels import integrals

RULES = [
    "shapley", "banzhaf", "leave-one-out", ("beta", 4.0, 1.0), ("beta", 1.0, 16.0),
    ("beta", 0.5, 0.5),
]  # fmt: skip


def owner_values(near, carry, weight, empty, semivalue):
    out = np.zeros(near.shape[1])
    OwnerGames(near, carry, weight, empty).add_values(semivalue, out)
    return out


def named(semivalue):
    return semivalue if isinstance(semivalue, str) else Beta(*semivalue[1:])


def values(near, same, classes, semivalue="shapley"):
    games = np.array([near], np.int64), np.array([same], np.float64)
    return owner_values(*games, np.ones(1), 1 / classes, named(semivalue))


def drawn(rng, owners, most):
    near = rng.integers(0, most + 1, owners)
    return near.tolist(), rng.binomial(near, rng.random(owners)).tolist()


def check_close(found, wanted):
    largest = max(np.abs(wanted).max(initial=0), 1e-3)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * largest)


@pytest.mark.parametrize("semivalue", RULES, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_values_equal_enumeration(semivalue, seed):
    rng = np.random.default_rng(seed)
    near, same = drawn(rng, int(rng.integers(1, 8)), 9)
    classes = int(rng.integers(2, 5))
    empty = Fraction(1, classes)
    utility = lambda s: owner_utility(s, near, same, empty)  # noqa: E731
    players = [o for o, count in enumerate(near) if count]
    wanted = np.zeros(len(near))
    wanted[players] = semivalues(
        lambda s: utility({players[i] for i in s}), len(players), semivalue
    )
    check_close(values(near, same, classes, semivalue), wanted)
    check_close(rational_values(near, same, empty, semivalue), wanted)


@pytest.mark.parametrize("semivalue", [*RULES[:2], *RULES[3:]], ids=str)
@pytest.mark.parametrize(
    ("owners", "most"), [(12, 30), (20, 2), (9, 60)], ids=["many", "alike", "large"]
)
def test_values_equal_rational_arithmetic(semivalue, owners, most):
    near, same = drawn(np.random.default_rng(owners), owners, most)
    check_close(
        values(near, same, 3, semivalue), rational_values(near, same, Fraction(1, 3), semivalue)
    )


def test_forty_owners_with_hundreds_of_points_equal_rational_arithmetic():
    rng = np.random.default_rng(5)
    near, same = drawn(rng, 40, 12)
    near[0], same[0] = 150, 90  # one of them as large as all others
    check_close(values(near, same, 2), rational_values(near, same, Fraction(1, 2)))


@pytest.mark.parametrize("semivalue", RULES, ids=str)
def test_owners_of_one_point_are_points(semivalue):
    from thresher.games.semivalues import member_prices

    same, other = 300, 500
    near = [1] * 800
    found = values(near, [1] * same + [0] * other, 3, semivalue)
    gain, loss = member_prices(np.array([same]), np.array([other]), 3, named(semivalue))
    np.testing.assert_allclose(found[:same], gain[0], rtol=1e-12)
    np.testing.assert_allclose(found[same:], loss[0], rtol=1e-12)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", ("beta", 4.0, 1.0)], ids=str)
def test_many_owners_agree_with_sampled_coalitions(semivalue):
    """2,000 draws for one of 200 owners; five standard errors, so one false alarm in 1.7 million.

    One of 200: who has 1,000 points, and 30 % of them right.
    """
    rng = np.random.default_rng(8)
    near, same = drawn(rng, 200, 40)
    near[0], same[0] = 1000, 300
    n, c = np.array(near), np.array(same)
    players = int((n > 0).sum())
    if semivalue == "banzhaf":
        sizes = None
    else:
        sizes = coalition_sizes(Beta(1, 1) if semivalue == "shapley" else named(semivalue), players)
    rest, found = np.flatnonzero(n[1:]) + 1, []
    for _ in range(2000):
        if sizes is None:
            others = rest[rng.random(len(rest)) < 0.5]
        else:
            others = rng.permutation(rest)[: rng.choice(players, p=sizes)]
        points, label = n[others].sum(), c[others].sum()
        found.append((label + 300) / (points + 1000) - (label / points if points else 1 / 2))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(values(near, same, 2, semivalue)[0] - np.mean(found)) < 5 * error


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=30))
def test_axioms(pairs):
    """Efficiency, null players, symmetry."""
    near = [max(pair) for pair in pairs]
    same = [min(pair) for pair in pairs]
    found = values(near, same, 2)
    gain = (sum(same) / sum(near) if sum(near) else 0.5) - 0.5
    assert abs(found.sum() - gain) < 1e-12
    assert all(value == 0 for value, points in zip(found, near) if points == 0)
    for value, pair in zip(found, pairs):
        assert abs(value - found[pairs.index(pair)]) < 1e-15


def test_values_add_up_over_games_with_weights():
    """Several judges in one cell are one game with the sum of what they like."""
    near, rng = np.array([[5, 3, 9]]), np.random.default_rng(0)
    first, second = rng.binomial(near, 0.5).astype(float), rng.binomial(near, 0.3).astype(float)
    alone = [owner_values(near, each, np.ones(1), 0.25, "shapley") for each in (first, second)]
    both = owner_values(near, 2 * first + 3 * second, np.array([5.0]), 0.25, "shapley")
    np.testing.assert_allclose(both, 2 * alone[0] + 3 * alone[1], atol=1e-15)
    games = np.repeat(near, 2, axis=0), np.concatenate([first, second])
    np.testing.assert_allclose(
        owner_values(*games, np.ones(2), 0.25, "shapley"), sum(alone), atol=1e-15
    )
    gain = OwnerGames(*games, np.ones(2), 0.25).utility() - 0.5
    assert abs(sum(alone).sum() - gain) < 1e-15


def test_the_kernel_as_plain_python(monkeypatch):
    near, same = drawn(np.random.default_rng(3), 4, 3)
    compiled = values(near, same, 2)
    for name in ("_groups", "_integrate", "_choose", "_add_to_owners"):
        monkeypatch.setattr(integrals, name, getattr(integrals, name).py_func)
    monkeypatch.setattr(
        "thresher.games.owner_values.add_owner_values", integrals.add_owner_values.py_func
    )
    np.testing.assert_allclose(values(near, same, 2), compiled, atol=1e-15)


def test_nobody_near_and_games_without_judges_add_nothing():
    near, carry = np.array([[0, 0], [3, 4]]), np.zeros((2, 2))
    assert owner_values(near, carry, np.array([1.0, 0.0]), 0.5, "shapley").tolist() == [0.0, 0.0]


def test_parameters_of_beta_that_cannot_be_integrated_are_refused():
    with pytest.raises(InputError, match=r"a of Beta .* at least 0\.01|a of Beta"):
        values([3, 4], [1, 2], 2, ("beta", 1e-9, 1.0))
