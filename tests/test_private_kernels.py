"""Private releases where near points weigh by their distance: a table with an entry a ring."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from releases import X_VAL, Y_VAL, X, Y, release
from scipy.special import digamma
from scipy.stats import spearmanr

import thresher as th
from thresher.attack import DPTKNN
from thresher.errors import InputError
from thresher.games.ring_prices import ring_prices
from thresher.privacy import Table
from thresher.privacy.accountants import Budget
from thresher.privacy.contributions import Units
from thresher.privacy.design import MOVED
from thresher.privacy.private_points import read_points
from thresher.privacy.release_setting import Game, design_release, release_setting
from thresher.privacy.reopened import reopen

KERNEL = {"kernel": "gaussian", "radius": 0.8, "rings": 4}


@pytest.fixture(scope="module")
def released():
    return release(**KERNEL)


@pytest.fixture(scope="module")
def exact():
    return th.tknn_shapley(X, Y, X_VAL, Y_VAL, **KERNEL).values


def harmonic(n):
    return digamma(n + 1) + np.euler_gamma


@pytest.mark.parametrize(("low", "high", "error"), [(0.001, 2, 4e-5), (2, 40, 3e-8)])
def test_prices_of_counts_that_are_not_whole(low, high, error):
    """With one ring the integral is lack (H_n/n - H_(n+1)/(n+1)), for any real n."""
    rng = np.random.default_rng(0)
    near, share = rng.uniform(low, high, (1, 3000)), rng.uniform(0, 1, (1, 3000))
    found = ring_prices(near * share, near * (1 - share), np.ones(1), 2, "shapley")
    whole = np.floor(near + 1)
    alone = 1 / whole + (near + 1 - whole) * (1 / (whole + 1) - 1 / whole)
    more = near * (1 - share) * (harmonic(near) / near - harmonic(near + 1) / (near + 1))
    np.testing.assert_allclose(found[2, 0], alone / 2 + more, atol=error)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", th.Beta(4, 1)])
def test_prices_meet_those_of_whole_counts_and_are_smooth_between(semivalue):
    rng = np.random.default_rng(1)
    same, other = rng.integers(0, 6, (2, 3, 20))
    weights = np.array([1.0, 0.4, 0.05])
    whole = ring_prices(same, other, weights, 3, semivalue)
    met = ring_prices(same * 1.0, other * 1.0, weights, 3, semivalue)
    np.testing.assert_allclose(met, whole, atol=2e-8)
    some = np.maximum(same, 1)
    steps = [ring_prices(some + s, other + 1.0, weights, 3, semivalue) for s in (0.0, 0.5, 1.0)]
    assert (steps[0][0, 0] >= steps[1][0, 0] - 1e-7).all()  # more of the label: each worth less
    assert (steps[1][0, 0] >= steps[2][0, 0] - 1e-7).all()


def design(bound, unit="point", adjacency="add-remove", places=(0.0, 0.3, 0.6)):
    game = Game(
        np.array(places)[:, None], list("aba")[: len(places)], 0.9, "euclidean", ["a", "b"],
        kernel="triangular", rings=3,
    )  # fmt: skip
    return design_release(
        Table(bound=bound), release_setting(game, Budget(1.0, 1e-4), adjacency, unit)
    )


def table(found, rows, owners=None):
    X = [[place] for place, _ in rows] or np.empty((0, 1))
    private = read_points(X, [label for _, label in rows], found.setting.validation)
    units = Units.of(None if owners is None else np.array(owners), len(private))
    return found.footprint(found.setting.contributions(private.points, units))


UNIVERSE = list(itertools.product([-0.3, 0.0, 0.2, 0.3, 0.6, 0.9, 9.0], "ab"))


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_no_point_moves_the_table_by_more_than_at_the_outer_radius(bound):
    found = design(bound)
    alone = {row: table(found, [row]) for row in UNIVERSE}
    limits = {each: found.length(each) ** 2 * (1 + 1e-12) for each in ("add-remove", "replace-one")}
    moves = [((one - two) ** 2).sum() for one, two in itertools.product(alone.values(), repeat=2)]
    added = [(each**2).sum() for each in alone.values()]
    assert 0.9 * limits["add-remove"] < max(added) <= limits["add-remove"]
    assert 0.9 * limits["replace-one"] < max(moves) <= limits["replace-one"]
    for one, other in itertools.combinations(UNIVERSE[::3], 2):  # tables add up
        np.testing.assert_array_equal(table(found, [one, other]), alone[one] + alone[other])


def test_no_owner_moves_the_table_by_more_than_the_bound():
    found = design(2, unit="owner", places=(0.0, 0.4))
    rows = list(itertools.product([0.0, 0.2, 0.5], "ab"))
    owners = [mine for size in (0, 1, 2) for mine in itertools.combinations(rows, size)]
    alone = {mine: table(found, mine, [0] * len(mine)) for mine in owners}
    for adjacency, (one, two) in itertools.product(MOVED["owner", "owner"], alone.items()):
        for other, less in alone.items():
            move = ((two - less) ** 2).sum()
            if adjacency == "replace-one" or not other:
                assert move <= found.length(adjacency) ** 2 * (1 + 1e-12)
            changed = len(set(one) ^ set(other))
            if changed <= (1 if adjacency == "add-remove" else 2):
                assert move <= found.length(adjacency, "point") ** 2 * (1 + 1e-12)


def test_replaying_without_a_point_changes_the_noised_sum_and_nothing_else(released):
    less = th.dp_tknn_shapley(
        X[1:], Y[1:], X_VAL, Y_VAL, epsilon=1, delta=1e-4, seed=0, **KERNEL
    )  # fmt: skip
    moved = (released.table - less.table).astype(float)
    assert 0 < (moved**2).sum() <= released._design.length("add-remove") ** 2
    ours, theirs = ({**each.record, "table_digest": 0} for each in (released, less))
    assert ours == theirs


def test_an_unclipped_table_gives_the_exact_values(released, exact):
    setting, inside = released._design.setting, released._contributions
    values = inside.values([setting.exact_prices(inside)])[0]
    np.testing.assert_allclose(values, exact, atol=1e-6 * np.abs(exact).max())


def test_private_values_follow_the_exact_ones(released, exact):
    assert released.table.shape == (8, 100)
    assert spearmanr(released.values, exact)[0] > 0.97
    free = th.zero_budget_score(X, Y, X_VAL, Y_VAL, radius=0.8).values
    assert spearmanr(released.values, exact)[0] > spearmanr(free, exact)[0]
    off = np.sqrt(((released.values - exact) ** 2).mean() / (exact**2).mean())
    assert off / 2 < released.error.relative < 4 * off


def test_the_published_prices_say_all(released, tmp_path):
    assert (released.record["kernel"], released.record["rings"]) == ("gaussian", 4)
    released.save(tmp_path / "release.json")
    prices = th.PriceList.load(tmp_path / "release.json")
    np.testing.assert_allclose(prices.values(X, Y), released.values, atol=1e-12)
    assert prices.kernel.name == "gaussian"
    again = reopen(json.loads(released.to_json()), X[:9], Y[:9], X_VAL, Y_VAL, owners=None)
    np.testing.assert_allclose(again.values, released.values[:9], atol=1e-12)
    released.report(tmp_path / "page.html")
    assert "gaussian" in (tmp_path / "page.html").read_text()


def test_a_ledger_is_charged_for_owners_with_a_kernel(tmp_path):
    about = KERNEL | {"owners": np.arange(len(X)) // 3, "points_per_owner": 3, "seed": None}
    th.Ledger.create(tmp_path / "ledger", epsilon=3, delta=1e-4, unit="owner")
    first, again = (release(**about, ledger=tmp_path / "ledger") for _ in range(2))
    assert again.stored
    assert not first.stored
    np.testing.assert_array_equal(again.table, first.table)


def test_a_plan_for_a_kernel():
    (plan,) = th.plan_release(X_VAL, Y_VAL, points=800, epsilon=1, delta=1e-4, **KERNEL)
    assert plan.rank_agreement > plan.zero_budget
    assert not plan.is_noise


def test_an_audit_of_a_kernel_finds_enough_noise_and_what_too_little_would_be(monkeypatch):
    about = {"epsilon": 4, "delta": 1e-5, "kernel": "gaussian", "seed": 0}
    about |= {"runs": 2000, "canaries": 0, "near": 9}
    found = th.audit_mechanism(Table(bound=6), **about)
    assert found.passed
    assert found.gaussian_bound > 2.5
    monkeypatch.setitem(MOVED["point", "point"], "add-remove", 0.5)
    assert not th.audit_mechanism(Table(bound=6), **about).passed


def test_an_attack_on_a_private_kernel_stays_below_the_ceiling():
    sizes = {"members": 60, "nonmembers": 60, "shadow": 60, "shadow_sets": 2}
    against = DPTKNN(epsilon=1, delta=1e-4, **KERNEL)
    found = th.membership_attack(X, Y, X_VAL, Y_VAL, against=against, **sizes)
    assert all(roc.auroc < 0.588 + 3 * roc.standard_error for roc in found.rocs.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "cells"}, "only by the mechanism 'table'"),
        ({"kernel": "round"}, "kernel must be"),
        ({"radius": 0.0}, "must be positive"),
        ({"rings": 0}, "rings must be"),
        ({"task": "regression", "bounds": (0, 1)}, "kernel cannot be used with task='regression'"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options, message):
    with pytest.raises(InputError, match=message):
        release(**(KERNEL | options))
