"""Private releases by leaves of a public forest: a table of points by class and leaf."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from releases import X_VAL, Y_VAL, X, Y, relative, release

import thresher as th
from thresher.attack import DPTKNN
from thresher.errors import InputError
from thresher.kernels.units import LONGEST
from thresher.privacy import Table, dp_tknn, public_forest
from thresher.privacy.accountants import Budget
from thresher.privacy.contributions import Units
from thresher.privacy.design import MOVED
from thresher.privacy.noise import Seeded
from thresher.privacy.private_points import read_points
from thresher.privacy.release_setting import Game, design_release, release_setting
from thresher.privacy.reopened import reopen

FOREST = public_forest(X_VAL, Y_VAL, trees=4, leaves=8)
OWNED = {"owners": np.arange(len(X)) // 8, "points_per_owner": 8, "epsilon": 8.0}


class Silence:
    """No noise at all."""

    def gaussian(self, sigma, size):
        return np.zeros(size, np.int64)


@pytest.fixture(scope="module")
def exact():
    return th.forest_shapley(X, Y, X_val=X_VAL, y_val=Y_VAL, forest=FOREST).values


@pytest.fixture(scope="module")
def released():
    return release(forest=FOREST)


def test_without_noise_values_are_those_of_the_forest(monkeypatch, exact):
    monkeypatch.setattr(dp_tknn, "noise_source", lambda _: Silence())
    found = release(forest=FOREST, epsilon=100.0)
    judges = FOREST.apply(X_VAL)
    by_hand = th.leaf_shapley(FOREST.apply(X), Y, judges, Y_VAL).values
    np.testing.assert_allclose(found.values, exact, atol=1e-12)
    np.testing.assert_allclose(found.values, by_hand, atol=1e-12)
    owned = release(forest=FOREST, mechanism=Table(bound=4 * 64), **OWNED)
    counts = th.NeighborCounts(X_VAL, Y_VAL, forest=FOREST).add(X, Y).table
    np.testing.assert_array_equal(owned.table, owned.record["scale"] * counts)


def test_with_the_same_noise_it_is_the_release_of_a_federation(released):
    pytest.importorskip("cryptography")
    from thresher.federate.round_release import Holding, outcome

    keys = [th.federate.Key(bytes([i]) * 32) for i in (1, 2, 3)]
    task = th.federate.Task.create(
        X_VAL, Y_VAL, silos={"a": keys[1].public, "b": keys[2].public}, key=keys[0], fewest=2,
        epsilon=1.0, delta=1e-4, forest=FOREST,
    )  # fmt: skip
    holding = Holding.of(task, X, Y)
    noise = released._design.noise(Seeded(0))
    np.testing.assert_array_equal(released.table, holding.table(task) + noise)
    theirs = outcome(task, released.table, [0, 1], bytes(32), holding)
    assert theirs.record["forest_digest"] == released.record["forest_digest"]
    central = replace(theirs._design, excess=1.0)  # as if one silo had added all noise
    same = holding.contributions.values([central.prices(released.table)])[0]
    np.testing.assert_array_equal(released.values, same)
    assert released._design.length("add-remove") == 64 * 2  # the root of four trees


def made_up(bound, unit="point"):
    places = [[0.0], [1.0], [2.0], [3.0]]
    forest = public_forest(places, list("abab"), trees=3, leaves=3)
    game = Game(places, list("abab"), classes=["a", "b"], forest=forest)
    setting = release_setting(game, Budget(1.0, 1e-4), "add-remove", unit)
    return design_release(Table(bound=bound), setting)


def table(found, rows, owners=None):
    X = [[place] for place, _ in rows] or np.empty((0, 1))
    private = read_points(X, [label for _, label in rows], found.setting.validation)
    units = Units.of(None if owners is None else np.array(owners), len(private))
    return found.footprint(found.setting.contributions(private.points, units))


UNIVERSE = list(itertools.product([-9.0, 0.4, 1.1, 1.6, 2.4, 2.6, 9.0], "ab"))


@pytest.mark.parametrize("bound", ["usual", 2])
def test_no_point_moves_the_table_by_more_than_the_root_of_the_trees(bound):
    found = made_up(bound)
    alone = [table(found, [row]) for row in UNIVERSE]
    limits = {each: found.length(each) ** 2 * (1 + 1e-12) for each in ("add-remove", "replace-one")}
    moves = [((one - two) ** 2).sum() for one, two in itertools.product(alone, repeat=2)]
    added = [(each**2).sum() for each in alone]
    assert 0.9 * limits["add-remove"] < max(added) <= limits["add-remove"]
    assert 0.9 * limits["replace-one"] < max(moves) <= limits["replace-one"]
    if bound == "usual":
        assert set(added) == {3 * 64**2}  # nothing is clipped
    np.testing.assert_array_equal(table(found, UNIVERSE[:2]), alone[0] + alone[1])


def test_no_owner_and_no_point_of_one_moves_the_table_by_more():
    found = made_up(5, "owner")
    rows = list(itertools.product([0.4, 1.1, 2.6], "ab"))
    owners = [mine for size in range(4) for mine in itertools.combinations(rows, size)]
    alone = {mine: table(found, mine, [0] * len(mine)).astype(float) for mine in owners}
    assert max((each**2).sum() for each in alone.values()) > 0.9 * found.length("add-remove") ** 2
    for (one, mine), (other, less) in itertools.product(alone.items(), repeat=2):
        move, changed = ((mine - less) ** 2).sum(), len(set(one) ^ set(other))
        assert move <= found.length("replace-one") ** 2 * (1 + 1e-12)
        if not other:
            assert move <= found.length("add-remove") ** 2 * (1 + 1e-12)
        if changed == 1:
            assert move <= found.length("add-remove", "point") ** 2 * (1 + 1e-12)


def test_an_owner_whose_squared_length_exceeds_64_bits_counts_for_nothing():
    """Three trees count its three rows, so its square of 27 times 2^60 would wrap."""
    setting = made_up(5, "owner").setting
    private = read_points([[0.4]] * 3, ["a"] * 3, setting.validation)
    inside = setting.contributions(private.points, Units.of(np.zeros(3, np.int64), 3))
    assert inside.squares().tolist() == [27]
    leaves = setting.side.shape[1]
    assert inside.squares(np.full(leaves, 2**60)).tolist() == [LONGEST]


def test_owners_are_clipped_to_what_three_of_four_made_up_ones_have():
    owned = release(forest=FOREST, **OWNED)
    bound = owned.record["bound"]
    assert 4 * 8 < bound < 4 * 64
    kept = owned._design.weights(owned._design.squares(owned._contributions)) / owned._design.parts
    assert 0.5 < (kept == 1).mean() < 0.95
    more = release(forest=FOREST, **OWNED | {"points_per_owner": 800}).record["bound"]
    assert more == pytest.approx(bound * 100**2, rel=0.3)  # owners of more rows than are drawn


def test_private_values_follow_the_exact_ones_and_no_error_is_told(released, exact):
    assert released.table.shape == (2, FOREST.starts[-1])
    assert relative(released.values, exact) < 0.3
    assert released.error.relative is None
    assert released.relative_error is None
    assert "without a prior" in released.error.why
    assert np.isnan(released.error.low).all()
    about = ("metric", "radius", "trees", "prior", "bound", "epsilon_add_remove")
    assert [released.record[name] for name in about] == ["leaves", None, 4, "none", 4, 1.0]


def test_the_published_prices_say_all(released, tmp_path):
    released.save(tmp_path / "release.json")
    prices = th.PriceList.load(tmp_path / "release.json")
    np.testing.assert_array_equal(prices.values(X, Y), released.values)
    document = json.loads(released.to_json())
    again = reopen(document, X[:9], Y[:9], X_VAL, Y_VAL, owners=None)
    np.testing.assert_array_equal(again.values, released.values[:9])
    document["record"]["forest_digest"] = "0" * 64
    with pytest.raises(InputError, match="not that of the release"):
        reopen(document, X[:9], Y[:9], X_VAL, Y_VAL, owners=None)
    with pytest.raises(InputError, match="not the validation set"):
        reopen(json.loads(released.to_json()), X, Y, X_VAL[:50], Y_VAL[:50], owners=None)
    released.report(tmp_path / "page.html")
    assert "it is not known how good its values are" in (tmp_path / "page.html").read_text()


def test_owners_are_charged_and_paid(tmp_path):
    about = OWNED | {"seed": None, "forest": FOREST, "ledger": tmp_path / "ledger"}
    th.Ledger.create(tmp_path / "ledger", epsilon=9, delta=1e-4, unit="owner")
    first, again = (release(**about) for _ in range(2))
    assert again.stored
    np.testing.assert_array_equal(again.table, first.table)
    paid = th.private_payout(first, pot=100_000)
    assert 0 < sum(paid.cents.values()) <= 110_000
    assert all(np.isnan(line.low) for line in paid.lines)
    with pytest.raises(InputError, match="states its error"):
        th.private_payout(first, pot=100_000, pay="lower")


@pytest.mark.parametrize("owned", [False, True])
def test_a_plan_predicts_the_error(owned, exact):
    about = {"epsilon": 2.0, "delta": 1e-4, "forest": FOREST}
    about |= {"points_per_owner": 8} if owned else {}
    (plan,) = th.plan_release(X_VAL, Y_VAL, points=800, **about)
    owners = {"owners": OWNED["owners"]} if owned else {}
    found = th.dp_tknn_shapley(X, Y, X_VAL, Y_VAL, seed=3, **about, **owners)
    assert 1 / 2 < plan.relative_error / relative(found.values, exact) < 2
    assert plan.rank_agreement > plan.zero_budget
    assert plan.record["bound"] == found.record["bound"]
    assert not plan.is_noise
    assert plan.mu_squared > 0
    (hopeless,) = th.plan_release(X_VAL, Y_VAL, points=8, **about | {"epsilon": 0.01})
    assert hopeless.is_noise


def test_an_audit_finds_enough_noise_and_what_too_little_would_be(monkeypatch):
    about = {"epsilon": 4, "delta": 1e-5, "leaves": True, "seed": 0, "runs": 400, "canaries": 0}
    found = th.audit_mechanism(**about)
    assert found.passed
    assert found.gaussian_bound > 2.5
    monkeypatch.setitem(MOVED["point", "point"], "add-remove", 0.5)
    assert not th.audit_mechanism(**about).passed


def test_an_attack_stays_below_the_ceiling():
    sizes = {"members": 60, "nonmembers": 60, "shadow": 60, "shadow_sets": 2}
    against = DPTKNN(epsilon=1, delta=1e-4, forest=FOREST)
    found = th.membership_attack(X, Y, X_VAL, Y_VAL, against=against, **sizes)
    assert all(roc.auroc < 0.588 + 3 * roc.standard_error for roc in found.rocs.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"mechanism": "cells"},
            "leaves can be released only by the mechanism 'table', got 'cells'",
        ),
        ({"radius": 1.0}, "near means in the same leaf"),
        ({"kernel": "gaussian"}, "near means in the same leaf"),
        ({"task": "regression", "bounds": (0, 1)}, "forest cannot be used with task='regression'"),
        ({"mechanism": Table(bound="counted")}, "needs the prior"),
        ({"forest": 4}, "forest must be a Forest"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options, message):
    with pytest.raises(InputError, match=message):
        release(**({"forest": FOREST} | options))
