"""Private releases where points have targets."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import spearmanr
from tabular import thresher

import thresher as th
from thresher.attack import DPTKNN
from thresher.errors import InputError
from thresher.kernels.units import LONGEST
from thresher.privacy import Table
from thresher.privacy.accountants import Budget
from thresher.privacy.contributions import Units
from thresher.privacy.noise import Seeded
from thresher.privacy.private_points import read_points
from thresher.privacy.release_setting import Game, design_release, release_setting
from thresher.privacy.target_contributions import ENTRIES, ONE, OPPOSED, G, basis, steps, sums
from thresher.privacy.target_setting import TargetSetting
from thresher.runs.appraisal import appraise_files

RNG = np.random.default_rng(0)
X_ALL = RNG.random((700, 2))
Y_ALL = 3 * X_ALL[:, 0] + np.sin(4 * X_ALL[:, 1]) + 0.2 * RNG.normal(size=700)
X, Y, V, W = X_ALL[100:], Y_ALL[100:], X_ALL[:100], Y_ALL[:100]
ABOUT = {"radius": 0.25, "metric": "euclidean", "task": "regression", "bounds": (-1.5, 4.5)}
BUDGET = {"epsilon": 1, "delta": 1e-5, "seed": 0}


def release(X=X, Y=Y, **options):
    return th.dp_tknn_shapley(X, Y, V, W, **(ABOUT | BUDGET | options))


def design(bound, unit="point", adjacency="add-remove", places=(0.0, 0.3, 0.6)):
    judges = np.array(places)[:, None], np.linspace(-1, 1, len(places))
    game = Game(*judges, 0.5, "euclidean", task="regression", bounds=(-1.0, 1.0))
    setting = release_setting(game, Budget(1.0, 1e-4), adjacency, unit)
    return design_release(Table(bound=bound), setting)


def table(found, rows, owners=None):
    X = [[place] for place, _ in rows] or np.empty((0, 1))
    private = read_points(X, [target for _, target in rows], found.setting.validation)
    numbers = None if owners is None else np.array(owners)[private.where]
    units = Units.of(numbers, len(private))
    return found.footprint(found.setting.contributions(private.points, units))


def test_a_point_adds_at_most_one_and_the_sums_come_back():
    k = np.arange(-G, G + 1)
    adds = basis(k)
    assert ((adds**2).sum(axis=0) <= ONE**2).all()
    count, first, second = sums(adds / ONE)
    np.testing.assert_array_equal(count, 1)
    np.testing.assert_array_equal(first, k / G)
    np.testing.assert_array_equal(second, (k / G) ** 2)


def test_no_two_points_are_more_opposed_than_claimed():
    k = np.arange(-G, G + 1)
    adds = basis(k) / np.sqrt((basis(k) ** 2).sum(axis=0))
    cosines = adds.T @ adds
    assert -OPPOSED <= cosines.min() < -0.1497
    assert math.sqrt(2 * (1 + OPPOSED)) == pytest.approx(1.5164, abs=1e-4)


def bernstein(coefficients):
    """A polynomial in a and b on the unit square, in the basis whose coefficients bound it."""
    n, m = (size - 1 for size in coefficients.shape)
    out = np.zeros_like(coefficients)
    for i, j in np.ndindex(*out.shape):
        out[i, j] = sum(
            coefficients[p, q]
            * Fraction(math.comb(i, p) * math.comb(j, q), math.comb(n, p) * math.comb(m, q))
            for p in range(i + 1)
            for q in range(j + 1)
        )
    return out


def halves(c):
    """The same polynomial on the two halves of its first variable (de Casteljau)."""
    left, right, work = c.copy(), c.copy(), c.copy()
    for step in range(len(c)):
        left[step], right[len(c) - 1 - step] = work[0], work[-1]
        work = (work[:-1] + work[1:]) / 2
    return left, right


def holds(dot, slack, depth=0):
    """Whether on a box `dot` >= 0 everywhere or `slack` >= 0 everywhere, after cutting it up."""
    if dot.min() >= 0 or slack.min() >= 0:
        return True
    if depth == 24:
        return False
    pairs = zip(halves(dot), halves(slack), strict=True)
    return all(holds(d.T, s.T, depth + 1) for d, s in pairs)


def test_the_smallest_cosine_by_exact_arithmetic():
    """T13: for u = -a, v = b, either L(u).L(v) >= 0 or its square is at most c^2 |L|^2 |L|^2."""
    dot, square = (np.full((5, 5), Fraction(0), object) for _ in range(2))
    dot[0, 0], dot[2, 0], dot[0, 2] = Fraction(1), Fraction(-1), Fraction(-1)
    dot[1, 1], dot[2, 2] = Fraction(-1, 2), Fraction(3, 2)
    length = [Fraction(1), 0, Fraction(-3, 2), 0, Fraction(3, 2)]
    square = np.full((9, 9), Fraction(0), object)
    for i, j in itertools.product(range(5), repeat=2):
        square[i, j] += Fraction(OPPOSED).limit_denominator(10**6) ** 2 * length[i] * length[j]
        for p, q in itertools.product(range(5), repeat=2):
            square[i + p, j + q] -= dot[i, j] * dot[p, q]
    assert holds(bernstein(dot), bernstein(square))


PLACES = [0.0, 0.3, 9.0]
TARGETS = [-1.0, -0.4, 0.0, 0.558, 1.0, 7.0, math.nan]  # one is clipped, one cannot be used
UNIVERSE = list(itertools.product(PLACES, TARGETS))


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_no_point_moves_the_table_by_more_than_the_bound(bound):
    found = design(bound)
    limits = {each: found.length(each) ** 2 * (1 + 1e-12) for each in ("add-remove", "replace-one")}
    alone = [table(found, [row]) for row in UNIVERSE]
    worst = max(int((each**2).sum()) for each in alone)
    assert 0.9 * limits["add-remove"] < worst <= limits["add-remove"]
    moves = [((a - b) ** 2).sum() for a, b in itertools.product(alone, repeat=2)]
    assert max(moves) <= limits["replace-one"]
    assert bound == 3 or max(moves) > 0.95 * limits["replace-one"]  # it is not a loose one
    for one, other in itertools.combinations(UNIVERSE[::3], 2):  # tables add up
        both = table(found, [one, other])
        np.testing.assert_array_equal(both, table(found, [one]) + table(found, [other]))


def test_a_point_whose_squared_length_exceeds_64_bits_counts_for_nothing():
    """With weights of this size the product would be 2^64, which wraps to 0."""
    setting = design(4, places=np.zeros(4)).setting
    private = read_points([[0.0]], [1.0], setting.validation)
    inside = setting.contributions(private.points, Units.of(None, 1))
    assert inside.squares().tolist() == [4 * ONE**2]
    assert inside.squares(np.full(4, 2**36)).tolist() == [LONGEST]


def test_no_owner_moves_the_table_by_more_than_the_bound():
    found = design(1, unit="owner", places=(0.0, 0.4))
    rows = list(itertools.product([0.0, 0.4], [-1.0, 0.0, 0.6, 1.0]))
    owners = [mine for size in (0, 1, 2) for mine in itertools.combinations(rows, size)]
    alone = {mine: table(found, mine, [0] * len(mine)) for mine in owners}
    for unit, adjacency in itertools.product(("owner", "point"), ("add-remove", "replace-one")):
        limit = found.length(adjacency, unit) ** 2
        for one, other in itertools.product(owners, repeat=2):
            changed = len(set(one) ^ set(other)) if unit == "point" else 0
            if changed <= (1 if adjacency == "add-remove" else 2):
                near = adjacency == "replace-one" or unit == "point" or not other
                if near:
                    assert ((alone[one] - alone[other]) ** 2).sum() <= limit


def test_replaying_without_a_point_changes_the_noised_sum_and_nothing_else(monkeypatch):
    tapes = []
    draw = Seeded.gaussian
    monkeypatch.setattr(Seeded, "gaussian", lambda *a: tapes.append(a[1:]) or draw(*a))
    rows = [(X[3], math.nan), (X[4], 1e9), (X[5], -math.inf), (X[6], "text"), (X[7], 2.0)]
    whole = release()
    for row, target in rows:
        first, tapes[:] = list(tapes), []
        more = release(np.vstack([X, row]), [*Y.tolist(), target])
        assert tapes == first
        moved = (more.table - whole.table) * whole._design.entries.roots
        limit = whole._design.length("add-remove")
        assert (moved**2).sum() <= limit**2
        ours, theirs = ({**r.record, "table_digest": 0} for r in (whole, more))
        assert ours == theirs
        if not isinstance(target, float) or not math.isfinite(target):
            np.testing.assert_array_equal(more.table, whole.table)
            np.testing.assert_array_equal(more.values[:-1], whole.values)
            assert list(more.unusable) == [len(X)]
            assert more.values[-1] == 0


def test_a_table_without_clipping_and_noise_gives_the_exact_values():
    found = release()
    inside = found._contributions
    low, high = ABOUT["bounds"]
    rounded = (low + high) / 2 + (high - low) / 2 * steps(
        inside.points.codes / found._design.setting._half
    ) / G
    inside.points = replace(inside.points, codes=found._design.setting.side.grid.codes(rounded))
    values = inside.values([found._design.setting.exact_prices(inside)])[0]
    exact = th.tknn_shapley(X, rounded, V, W, **ABOUT).values
    np.testing.assert_allclose(values, exact, atol=1e-9 * np.abs(exact).max())


def test_the_private_table_beats_the_score_that_costs_nothing():
    exact = th.tknn_shapley(X, Y, V, W, **ABOUT).values
    free = th.zero_budget_score(X, Y, V, W, **ABOUT)
    found = release()
    ranks = [spearmanr(each, exact)[0] for each in (found.values, free.values)]
    assert ranks[0] > max(0.9, ranks[1])
    assert np.isfinite(found.error.low).all()
    assert math.isnan(free.utility_all)
    assert free.params["task"] == "regression"


def test_the_zero_budget_score_is_the_value_of_a_point_alone():
    free = th.zero_budget_score(X[:9], Y[:9], V, W, **ABOUT).values
    alone = [th.tknn_shapley(X[i : i + 1], Y[i : i + 1], V, W, **ABOUT).values[0] for i in range(9)]
    np.testing.assert_allclose(free, alone, atol=1e-9)


def test_the_record_and_the_published_prices_say_all(tmp_path):
    found = release(adjacency="replace-one")
    assert found.record["task"] == "regression"
    assert found.record["bounds"] == [-1.5, 4.5]
    assert found.record["scale"] == 64 * ONE
    assert found.table.shape == (ENTRIES, len(V))
    assert found.record["epsilon_replace_one"] == 1 > found.record["epsilon_add_remove"]
    assert found.personal_epsilon.max() <= 1
    found.save(tmp_path / "release.json")
    assert json.loads((tmp_path / "release.json").read_text())["record"]["task"] == "regression"
    prices = th.PriceList.load(tmp_path / "release.json")
    np.testing.assert_allclose(prices.values(X, Y), found.values, atol=1e-12)
    found.report(tmp_path / "page.html")
    assert "epsilon" in (tmp_path / "page.html").read_text()


def test_owners_with_targets_are_protected_as_a_whole(tmp_path):
    owners = np.arange(len(X)) // 3
    th.Ledger.create(tmp_path / "ledger", epsilon=3, delta=1e-5, unit="owner")
    found = release(
        owners=owners, points_per_owner=3, ledger=tmp_path / "ledger", seed=None, version="1"
    )
    assert found.record["epsilon_replace_one_point"] > found.record["epsilon_replace_one"] > 1
    again = release(
        owners=owners, points_per_owner=3, ledger=tmp_path / "ledger", seed=None, version="1"
    )
    assert again.stored
    np.testing.assert_array_equal(again.table, found.table)


def test_a_plan_for_targets():
    about = {name: ABOUT[name] for name in ("radius", "metric", "task", "bounds")}
    (plan,) = th.plan_release(V, W, points=600, epsilon=1, delta=1e-5, **about)
    assert plan.mechanism == "table"
    assert plan.rank_agreement > plan.zero_budget
    assert not plan.is_noise


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": None}, "bounds is missing"),
        ({"bounds": (2.0, 1.0)}, "two numbers, the lower first"),
        ({"bounds": (0.0, 1.0)}, "outside the bounds"),
        ({"mechanism": "cells"}, "only by the mechanism 'table'"),
        ({"classes": [1, 2]}, "classes cannot be used with"),
        ({"task": "classification"}, "need task='regression'"),
        ({"empty": math.nan}, "empty must be a finite number"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options, message):
    with pytest.raises(InputError, match=message):
        release(**options)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_an_audit_of_targets_finds_enough_noise_and_what_too_little_would_be(
    adjacency, monkeypatch
):
    about = {"epsilon": 4, "delta": 1e-5, "adjacency": adjacency, "task": "regression", "seed": 0}
    about |= {"runs": 2000, "canaries": 0, "near": 9}
    found = th.audit_mechanism(Table(bound=6), **about)
    assert found.passed
    assert found.gaussian_bound > 2.5
    monkeypatch.setitem(TargetSetting.moved["point", "point"], adjacency, 0.5)
    assert not th.audit_mechanism(Table(bound=6), **about).passed


def test_an_attack_on_private_targets_stays_below_the_ceiling():
    against = DPTKNN(epsilon=1, delta=1e-4, **ABOUT)
    sizes = {"members": 60, "nonmembers": 60, "shadow": 60, "shadow_sets": 2}
    found = th.membership_attack(X, Y, V, W, against=against, **sizes)
    assert all(roc.auroc < 0.588 + 3 * roc.standard_error for roc in found.rocs.values())


def test_the_command_releases_targets_and_appraises_those_outside_of_the_bounds(tmp_path):
    def write(name, rows, targets):
        lines = [f"{a!r},{b!r},{t}" for (a, b), t in zip(rows.tolist(), targets, strict=True)]
        (tmp_path / name).write_text("\n".join(["a,b,y", *lines]) + "\n")
        return tmp_path / name

    points = write("p.csv", X[:300], [*Y[:298].tolist(), "9", "none"])  # one clipped, one unusable
    val, prices = write("v.csv", V, W.tolist()), tmp_path / "prices.json"
    th.Ledger.create(tmp_path / "l.db", epsilon=1, delta=1e-5)
    budget = "--epsilon", 1, "--delta", 1e-5, "--ledger", tmp_path / "l.db"
    about = "--task", "regression", "--metric", "euclidean", "--radius", 0.25
    done = thresher("release", points, "--validation", val, *budget, *about, "--out-prices", prices)
    assert (done.returncode, "bounds" in done.stderr) == (1, True)
    about = *about, "--bounds=-1.5,4.5", "--unusable", tmp_path / "bad.csv"
    done = thresher("release", points, "--validation", val, *budget, *about, "--out-prices", prices)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bounds"] == [-1.5, 4.5]
    assert (tmp_path / "bad.csv").read_text().splitlines()[1].startswith('301,"its target is')
    listed = th.PriceList.load(prices)
    mine = write("m.csv", X[290:299], [*Y[290:298].tolist(), 9.0])
    with pytest.warns(th.ThresherWarning, match=r"outside the bounds .* in row 8: each is valued"):
        found = appraise_files(mine, prices).values
    wanted = listed.values(X[290:299], [*Y[290:298].tolist(), 4.5])
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    with pytest.raises(InputError, match="entries that are not numbers"):
        appraise_files(write("bad2.csv", X[:1], ["high"]), prices)


def test_what_entries_of_the_table_are_paid_is_what_points_are_paid():
    found = release()
    setting, inside = found._design.setting, found._contributions
    table = inside.counts(np.ones(len(inside.units), np.int64)) / ONE
    prices = setting.prices(table)
    values = inside.values([prices])[0]
    total = setting.entry_prices(prices) @ table.ravel()
    assert total == pytest.approx(values.sum(), abs=1e-2 * np.abs(values).sum())  # of the grid
    assert setting.gain_prices(prices) @ table.ravel() > np.maximum(values, 0).sum()


def test_owners_of_targets_are_paid_from_a_release():
    owners = np.arange(len(X)) // 4
    found = release(owners=owners, points_per_owner=4, epsilon=8)
    exact = np.bincount(owners, th.tknn_shapley(X, Y, V, W, **ABOUT).values)
    paid = th.private_payout(found, pot=100_000)
    cents = np.array([paid.line(owner).cents for owner in range(len(exact))])
    assert 0 < cents.sum() <= 100_000
    assert spearmanr(cents, exact)[0] > 0.8
