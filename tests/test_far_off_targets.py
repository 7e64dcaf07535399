"""Targets that are far off cost others no digit: values are compared with exact fractions.

The error of a value may be 1e-12 of the largest payment among the cells that the point is in, or
1e-15 of the largest squared error there. Cells are validation points, or leaves with a judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from oracles import coalition_weight

import thresher as th
from thresher.findings.explanation import nearest_findings

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")

X = np.array([[0.0], [0.1], [0.2], [50.0]])
V = np.array([[0.05], [0.15]])
ABOUT = {"metric": "euclidean", "task": "regression"}
NEAR = ABOUT | {"radius": 1}
WANTED = np.array([13 / 12, 1 / 3, -23 / 12, 0.0])
FAR = [4.0, -7.5, *(10.0**e for e in (4, 6, 8, 9, 10, 12)), -1e12, 999999999.0, 123456789.123]
EVERY = ["shapley", "banzhaf", "leave-one-out", ("beta", 0.3, 2.5)]
WITHIN = 1e-12


def named(semivalue):
    return th.Beta(*semivalue[1:]) if isinstance(semivalue, tuple) else semivalue


# The definition


@dataclass
class Cell:
    """Who is near a judge, with which weight, and what the judge looks for."""

    near: list
    target: float
    empty: float
    share: Fraction = Fraction(1)


def utility(cell, y, members):
    mass = sum(cell.near[i] for i in members)
    if not mass:
        return -cell.share * (Fraction(cell.empty) - Fraction(cell.target)) ** 2
    mean = sum(cell.near[i] * Fraction(y[i]) for i in members) / mass
    return -cell.share * (mean - Fraction(cell.target)) ** 2


def payments(cell, y, semivalue, players):
    """What each player is paid in a cell; a player is a list of points."""
    known = {}

    def worth(some):
        if some not in known:
            known[some] = utility(cell, y, [i for player in some for i in players[player]])
        return known[some]

    inside = [k for k, points in enumerate(players) if any(cell.near[i] for i in points)]
    found = [0.0] * len(players)
    for k in inside:
        others, total = [j for j in inside if j != k], 0
        for size in range(len(inside)):
            weight = coalition_weight(semivalue, len(inside), size)
            for some in combinations(others, size):
                gain = worth(tuple(sorted((*some, k)))) - worth(some)
                exact = not isinstance(weight, Fraction)
                gain = mpf(gain.numerator) / gain.denominator if exact else gain
                total += weight * gain
        found[k] = float(total)
    return found, inside


def check_values(found, cells, y, semivalue="shapley", players=None, changed=None):
    """Compare values with the definition, each by the payments of its own cells.

    Payments are differences of squared errors. Where these nearly cancel, the error may also be
    1e-15 of the squares.
    """
    players = [[i] for i in range(len(y))] if players is None else players
    wanted, allowed = np.zeros(len(players)), np.zeros(len(players))
    for cell in cells:
        paid, inside = payments(cell, y, semivalue, players)
        wanted += paid
        allowed[inside] += max((abs(each) for each in paid), default=0.0)
        squares = [utility(cell, y, each) for each in ([], *players)]
        allowed[inside] += 1e-3 * max(abs(float(each)) for each in squares)
    some = slice(None) if changed is None else changed
    off = np.abs(np.asarray(found) - wanted[some])
    assert (off <= WITHIN * allowed[some]).all(), (found, wanted[some], off, allowed[some])


def cells_of(rows, judges, y_val, empty, weights=((1.0, Fraction(1)),), left_out=False):
    cells = []
    for j, (v, t) in enumerate(zip(judges, y_val)):
        near = []
        for i, x in enumerate(rows):
            distance = abs(float(x[0]) - float(v[0]))
            inside = [Fraction(weight) for radius, weight in weights if distance <= radius]
            near.append(inside[0] if inside and not (left_out and i == j) else Fraction(0))
        cells.append(Cell(near, t, empty))
    return cells


SCALES = st.sampled_from([1e-9, 1e-3, 1.0, 1e5])
NUMBERS = st.floats(-1, 1).map(lambda x: x if abs(x) > 1e-6 else 0.0)


@st.composite
def problems(draw):
    """Points at four places, targets of one scale around some offset, some of them far off."""
    scale, offset = draw(SCALES), draw(st.sampled_from([0.0, 1.0, 37.0]))
    few = st.one_of(NUMBERS, st.sampled_from([-0.7, 0.1, 0.1, 0.3]))
    far = st.one_of(st.none(), st.none(), st.tuples(st.integers(0, 12), st.sampled_from([-1, 1])))
    one = st.tuples(st.sampled_from([0.0, 1.0, 2.0, 9.0]), few, far)

    def read(rows):
        targets = [
            scale * (offset + z + (0 if out is None else out[1] * 10.0 ** out[0]))
            for _, z, out in rows
        ]
        return np.array([[place] for place, *_ in rows]), np.array(targets)

    points, judges = (read(draw(st.lists(one, min_size=2, max_size=5))) for _ in range(2))
    empty = scale * draw(st.one_of(NUMBERS, st.just(1e7)))
    return *points, *judges, empty


def or_refused(function, *targets, times=1e12, said="would be rounded"):
    """What a function returns; None where it rightly refuses targets that would be rounded."""
    sizes = np.abs(np.concatenate([np.atleast_1d(each) for each in targets]))
    if sizes.max() <= times * min(sizes[sizes > 0], default=1.0):
        return function()
    try:
        return function()
    except th.InputError as error:
        if said not in str(error) and "would be rounded" not in str(error):
            raise
        return None


def differ(*targets):
    return len(np.unique(np.concatenate(targets))) > 1


# The example


@pytest.mark.parametrize("far", FAR)
def test_a_row_near_nothing_changes_no_value(far):
    y = [1.0, 2.0, 3.0, far]
    for more in ({}, {"neighbors": "tree"}, {"memory": "8GB"}, {"kernel": [(1.0, 3.0)]}):
        radius = {} if "kernel" in more else {"radius": 1}
        found = th.tknn_shapley(X, y, V, [1.0, 2.0], **ABOUT, **radius, **more)
        np.testing.assert_allclose(found.values, WANTED, rtol=1e-13, atol=1e-15)
    owners = th.owner_shapley(X, y, V, [1.0, 2.0], owners=list("abcd"), **NEAR)
    np.testing.assert_allclose(owners.values, WANTED, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("far", FAR)
def test_bounds_that_are_wide_change_no_price(far, tmp_path):
    wide = (-abs(far) - 9, abs(far) + 9)
    y = [1.0, 2.0, 3.0, far]
    narrow = th.NeighborCounts(V, [1.0, 2.0], bounds=(-9, 9), **NEAR).add(X[:3], y[:3])
    counts = th.NeighborCounts(V, [1.0, 2.0], bounds=wide, **NEAR).add(X, y)
    prices = counts.price_list()
    np.testing.assert_allclose(prices.values(X, y), WANTED, rtol=1e-13, atol=1e-15)
    for some in (X[:3],), (X[:3], y[:3]):
        for found, wanted in zip(
            prices.best_targets(*some), narrow.price_list().best_targets(*some), strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-13)
    prices.save(tmp_path / "prices")
    again = th.PriceList.load(tmp_path / "prices")
    assert again.values(X, y).tobytes() == prices.values(X, y).tobytes()
    moved = prices.values(X[:1], y[:1], label=far)
    np.testing.assert_allclose(
        moved,
        th.tknn_shapley(X, [far, 2.0, 3.0, 4.0], V, [1.0, 2.0], **NEAR).values[:1],
        rtol=1e-13,
    )
    assert (counts.remove(X[3:], y[3:]).table == narrow_table(wide, X[:3], y[:3])).all()
    with th.LiveCounts.create(tmp_path / "live", V, [1.0, 2.0], bounds=wide, **NEAR) as live:
        live.add_many(list("abcd"), X, y)
        live.relabel("a", far)
        live.relabel("a", 1.0)
        values = live.values().values
    np.testing.assert_allclose(values, WANTED, rtol=1e-13, atol=1e-15)
    with th.LiveCounts.open(tmp_path / "live") as live:
        assert live.values().values.tobytes() == values.tobytes()
        assert live.points()[1].tolist() == y


def narrow_table(bounds, rows, y):
    return th.NeighborCounts(V, [1.0, 2.0], bounds=bounds, **NEAR).add(rows, y).table


# By the definition


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(data=problems())
@settings(max_examples=40, deadline=None)
def test_values_within_a_radius_are_exact(semivalue, data):
    rows, y, judges, y_val, empty = data
    if not differ(y, y_val):
        return
    about = ABOUT | {"empty": empty, "semivalue": named(semivalue)}
    found = or_refused(
        lambda: th.tknn_shapley(rows, y, judges, y_val, radius=1.0, **about), y, y_val, empty
    )
    if found is None:
        return
    check_values(found.values, cells_of(rows, judges, y_val, empty), y, semivalue)
    tree = th.tknn_shapley(rows, y, judges, y_val, radius=1.0, neighbors="tree", **about)
    assert tree.values.tobytes() == found.values.tobytes()
    if differ(y):
        mutual = or_refused(lambda: th.tknn_shapley(rows, y, radius=1.0, **about), y, empty)
        if mutual is not None:
            cells = cells_of(rows, rows, y, empty, left_out=True)
            check_values(mutual.values, cells, y, semivalue)


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(data=problems())
@settings(max_examples=25, deadline=None)
def test_values_by_kernels_are_exact(semivalue, data):
    rows, y, judges, y_val, empty = data
    if not differ(y, y_val):
        return
    kernel = ((0.5, 1.0), (1.0, 0.25))
    about = ABOUT | {"empty": empty, "semivalue": named(semivalue), "kernel": kernel}
    found = or_refused(lambda: th.tknn_shapley(rows, y, judges, y_val, **about), y, y_val, empty)
    if found is None:
        return
    check_values(found.values, cells_of(rows, judges, y_val, empty, kernel), y, semivalue)


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(data=problems(), trees=st.integers(1, 3), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_values_in_leaves_are_exact(semivalue, data, trees, seed):
    y, y_val, empty = data[1], *data[3:]
    if not differ(y, y_val) or not differ(y):
        return
    rng = np.random.default_rng(seed)
    leaves, leaves_val = (rng.integers(0, 2, (len(each), trees)) for each in (y, y_val))
    about = {"task": "regression", "empty": empty, "semivalue": named(semivalue)}

    def cells(judging, targets, left_out):
        return [
            Cell(
                [Fraction(int(a == b and not (left_out and i == j))) for i, a in enumerate(column)],
                t, empty, Fraction(1, trees),
            )
            for column, theirs in zip(leaves.T, judging.T)
            for j, (b, t) in enumerate(zip(theirs, targets))
        ]  # fmt: skip

    found = or_refused(
        lambda: th.leaf_shapley(leaves, y, leaves_val, y_val, **about), y, y_val, empty
    )
    if found is None:
        return
    check_values(found.values, cells(leaves_val, y_val, left_out=False), y, semivalue)
    ends = abs(found.utility_all), abs(found.utility_none)
    assert semivalue != "shapley" or abs(found.efficiency_gap()) <= 1e-12 * max(ends)
    mutual = or_refused(lambda: th.leaf_shapley(leaves, y, **about), y, empty)
    if mutual is None:
        return
    check_values(mutual.values, cells(leaves, y, left_out=True), y, semivalue)
    ends = abs(mutual.utility_all), abs(mutual.utility_none)
    assert semivalue != "shapley" or abs(mutual.efficiency_gap()) <= 1e-12 * max(ends)


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(data=problems(), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_values_of_owners_are_exact(semivalue, data, seed):
    rows, y, judges, y_val, empty = data
    if not differ(y, y_val):
        return
    owners = np.random.default_rng(seed).integers(0, 3, len(y))
    about = NEAR | {"empty": empty, "semivalue": named(semivalue), "owners": owners}
    found = or_refused(lambda: th.owner_shapley(rows, y, judges, y_val, **about), y, y_val, empty)
    if found is None:
        return
    players = [np.flatnonzero(owners == owner).tolist() for owner in found.owners]
    check_values(found.values, cells_of(rows, judges, y_val, empty), y, semivalue, players)


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(data=problems(), new=NUMBERS, kernel=st.booleans())
@settings(max_examples=25, deadline=None)
def test_price_lists_are_exact(semivalue, data, new, kernel):
    """For members, for members with another target, and for newcomers."""
    rows, y, judges, y_val, empty = data
    largest = max(abs(np.concatenate([y, y_val, [empty, 1.0]])))
    weights = ((0.5, 1.0), (1.0, 0.25)) if kernel else ((1.0, 1.0),)
    way = {"kernel": weights} if kernel else {"radius": 1.0}
    about = ABOUT | {"empty": empty, "bounds": (-2 * largest, 3 * largest)}
    counts = or_refused(
        lambda: th.NeighborCounts(judges, y_val, **about, **way).add(rows, y), y, y_val, largest
    )
    if counts is None:
        return
    prices = counts.price_list(named(semivalue))
    cells = cells_of(rows, judges, y_val, empty, weights)
    check_values(prices.values(rows, y), cells, y, semivalue)
    other = y.copy()
    other[0] = new
    moved = or_refused(
        lambda: prices.values(rows[:1], y[:1], label=new),
        *(y, y_val, new, largest), times=1e4, said="lost to rounding",
    )  # fmt: skip
    if moved is None:
        return
    players, most, wanted = [[i] for i in range(len(y))], 0.0, 0.0
    for cell in cells:
        before, after = (payments(cell, each, semivalue, players)[0] for each in (y, other))
        most, wanted = most + max(map(abs, before + after)), wanted + after[0]
    assert abs(moved[0] - wanted) <= WITHIN * most
    joined, targets = np.concatenate([rows, rows[:1]]), np.append(y, new)
    newcomer = prices.newcomer_values(rows[:1], [new])  # not refused, as it was a label
    check_values(
        newcomer, cells_of(joined, judges, y_val, empty, weights), targets, semivalue,
        changed=slice(len(y), None),
    )  # fmt: skip


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(data=problems(), k=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_values_by_nearest_neighbors_lose_no_digit(semivalue, data, k):
    rows, y, judges, y_val, empty = data
    if not differ(y, y_val):
        return
    wanted, most = np.zeros(len(y)), 0.0
    for v, t in zip(judges, y_val):
        order = np.argsort(abs(rows[:, 0] - v[0]), kind="stable")

        cell = Cell([Fraction(1)] * len(y), t, empty)
        paid = nearest_payments(cell, order.tolist(), k, y, semivalue)
        wanted, most = wanted + paid, most + max(map(abs, paid))
    found = th.knn_shapley(
        rows, y, judges, y_val, k=k, empty=empty, semivalue=named(semivalue), **ABOUT
    )
    assert (abs(found.values - wanted) <= 4 * WITHIN * most).all()


def nearest_payments(cell, order, k, y, semivalue):
    def worth(some):
        nearest = [i for i in order if i in some][:k]
        return utility(cell, y, nearest)

    found = []
    for i in range(len(y)):
        total, others = 0, [j for j in range(len(y)) if j != i]
        for size in range(len(y)):
            weight = coalition_weight(semivalue, len(y), size)
            for some in combinations(others, size):
                gain = worth({*some, i}) - worth(set(some))
                exact = not isinstance(weight, Fraction)
                total += weight * (mpf(gain.numerator) / gain.denominator if exact else gain)
        found.append(float(total))
    return np.array(found)


@pytest.mark.parametrize("far", [1e6, 1e12])
def test_values_of_owners_in_a_forest_add_up(far):
    rng = np.random.default_rng(0)
    rows, y = rng.random((40, 2)), rng.normal(size=40)
    y[7] = far
    forest = th.grow_forest(rows, y, trees=4, task="regression")
    about = {"forest": forest, "task": "regression", "empty": 0.25, "owners": np.arange(40) % 7}
    found = th.owner_shapley(rows, y, **about)
    assert abs(found.efficiency_gap()) < 1e-12 * abs(found.utility_none)
    nobody = -sum((Fraction(each) - Fraction(0.25)) ** 2 for each in y)
    assert found.utility_none == pytest.approx(float(nobody), rel=1e-14)


# Parts, and what is refused


@given(data=problems(), cut=st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_parts_merge_and_shrink_to_the_same_bits(data, cut):
    rows, y, judges, y_val, empty = data
    largest = max(abs(np.concatenate([y, y_val, [empty, 1.0]])))
    about = NEAR | {"empty": empty, "bounds": (-largest, largest)}
    make = th.NeighborCounts
    counts = or_refused(lambda: make(judges, y_val, **about).add(rows, y), y, y_val, largest)
    if counts is None:
        return
    parts = th.NeighborCounts(judges, y_val, **about).add(rows[cut:], y[cut:])
    parts.merge(th.NeighborCounts(judges, y_val, **about).add(rows[:cut], y[:cut]))
    parts.add(rows, y).remove(rows[::-1], y[::-1])
    assert parts.table.tolist() == counts.table.tolist()
    if differ(y, y_val):
        here = th.tknn_shapley(rows, y, judges, y_val, **about).values
        assert counts.price_list().values(rows, y).tobytes() == here.tobytes()
    parts.remove(rows, y)
    assert not parts.table.any()


def test_parts_and_dask_give_the_bits_of_memory():
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    rows, y, judges, y_val = rng.random((90, 2)), rng.normal(size=90), rng.random((20, 2)), None
    y_val = rng.normal(size=20)
    y[3], y[50], y_val[4] = 1e9, -1e12, 3e7
    about = NEAR | {"radius": 0.3}
    wanted = th.tknn_shapley(rows, y, judges, y_val, **about)
    cut = da.from_array(rows, (20, 2)), da.from_array(y, 20)
    found = th.tknn_shapley(*cut, judges, y_val, **about)
    assert np.asarray(found.values).tobytes() == wanted.values.tobytes()
    in_parts = th.tknn_shapley(rows, y, judges, y_val, memory="8GB", **about)
    assert in_parts.values.tobytes() == wanted.values.tobytes()
    assert in_parts.params["grid"] == wanted.params["grid"]


@pytest.mark.parametrize(
    ("y", "y_val", "more", "said"),
    [
        ([1.0, 2.0, 3.0, 1e100], [1.0, 2.0], {}, r"y has 1e\+100 in row 3, so far off that other"),
        ([1.1, 2.2, 3.3, 1e18], [1.0, 2.0], {}, r"y has 1e\+18 in row 3, .*drop those rows"),
        ([1.1, 2.2, 3.3, 4.4], [1.0, -1e20], {}, r"y_val has -1e\+20 in row 1, so far off"),
        ([1.1, 2.2, 3.3, 4.4], [1.0, 2.0], {"empty": 1e20}, r"empty has 1e\+20, so far off"),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0], {"bounds": (-1e100, 1e100)}, r"too wide for 1 in y in"),
    ],
)
def test_targets_that_would_be_rounded_are_refused(y, y_val, more, said):
    with pytest.raises(th.InputError, match=said):
        th.tknn_shapley(X, y, V, y_val, **NEAR, **more)
    with pytest.raises(th.InputError, match="would be rounded"):
        th.tknn_shapley(X, y, V, y_val, memory="8GB", **NEAR, **more)
    leaves = np.array([[0], [0], [0], [1]])
    if "bounds" not in more:
        with pytest.raises(th.InputError, match=said):
            th.leaf_shapley(leaves, y, leaves[:2], y_val, task="regression", **more)


def test_bounds_that_are_too_wide_are_refused_where_points_are_counted():
    about = NEAR | {"bounds": (-1e30, 1e30)}
    with pytest.raises(th.InputError, match=r"too wide for 0.1 in y_val in row 0.*pass narrower"):
        th.NeighborCounts(V, [0.1, 0.2], **about)
    counts = th.NeighborCounts(V, [0.0, 2.0**40], **about)
    with pytest.raises(th.InputError, match="too wide for 1 in y in row 0"):
        counts.add(X[:2], [1.0, 2.0])
    assert not counts.table.any()


def test_what_a_far_off_member_would_be_worth_is_refused_or_right():
    rows, about = [[0.0], [0.1], [0.2], [0.3]], NEAR | {"bounds": (-1e10, 1e10)}
    wanted = th.tknn_shapley(rows, [1.0, 2.0, 3.0, 2.5], V, [1.0, 2.0], **NEAR).values[3]
    for far in (4.0, 100.0, 1e4, 1e9):
        counts = th.NeighborCounts(V, [1.0, 2.0], **about).add(rows, [1.0, 2.0, 3.0, far])
        prices = counts.price_list()
        if far < 1e5:
            found = prices.values(rows[3:], [far], label=2.5)
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
        else:
            with pytest.raises(th.InputError, match="row 0 with a target so far off.*relabel it"):
                prices.values(rows[3:], [far], label=2.5)
            with pytest.raises(th.InputError, match="lost to rounding"):
                prices.best_targets(rows[3:], [far])
        counts.relabel(rows[3:], [far], [2.5])
        found = counts.price_list().values(rows[3:], [2.5])
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("far", [1e9, 1e12])
def test_whole_numbers_and_fractions_are_not_refused(far):
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    y[7] = far
    found = th.tknn_shapley(rng.random((200, 2)), y, rng.random((20, 2)), y[:20], **NEAR)
    assert np.isfinite(found.values).all()


# What is found


def table(wrong=30, rows=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 5))
    y = 3 * X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=rows)
    places = rng.choice(rows, wrong, replace=False)
    y[places] += rng.choice([-1, 1], wrong) * rng.uniform(4, 8, wrong)
    V = rng.normal(size=(150, 5))
    return X, y, V, 3 * V[:, 0] + np.sin(2 * V[:, 1]) + 0.3 * rng.normal(size=150)


def explained(valuation, *data):
    return th.explain(valuation, *data)


def nearest(X, y, V, t):
    return nearest_findings(th.knn_shapley(X, y, V, t, **ABOUT), X, y, V, t)


WAYS = {
    "forest": lambda X, y, V, t: th.forest_findings(
        X, y, trees=60, task="regression", empty=float(y.mean())
    )[1],
    "forest by validation": lambda X, y, V, t: th.forest_findings(
        X, y, V, t, trees=60, task="regression"
    )[1],
    "radius": lambda X, y, V, t: explained(
        th.tknn_shapley(X, y, V, t, radius=1.5, **ABOUT), X, y, V, t
    ),
    "each other": lambda X, y, V, t: explained(
        th.tknn_shapley(X, y, radius=1.5, empty=float(y.mean()), **ABOUT), X, y
    ),
    "nearest": nearest,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("far", [1e4, 999999999.0, -1e12])
def test_a_sentinel_changes_no_suggestion_about_others(way, far):
    X, y, V, t = table()
    wanted = WAYS[way](X, y, V, t)
    rest = np.arange(len(y)) != 7
    y[7] = far
    found = WAYS[way](X, y, V, t)
    assert found.suggestion[7] in {"correct", "drop", "inspect"}
    assert found.score[7] == found.score.min() < 1e-2
    assert np.mean(np.array(found.suggestion)[rest] != np.array(wanted.suggestion)[rest]) < 0.01
    usual = np.nanmedian(wanted.usual)
    off = np.abs(found.expected - wanted.expected)
    assert np.nanmax(off) < usual
    assert abs(np.nanmedian(found.usual) / usual - 1) < 0.05


@pytest.mark.parametrize("way", ["forest by validation", "radius", "nearest"])
def test_a_sentinel_among_the_judges_changes_no_suggestion(way):
    X, y, V, t = table()
    wanted = WAYS[way](X, y, V, t)
    t[3] = 1e9
    found = WAYS[way](X, y, V, t)
    assert np.mean(np.array(found.suggestion) != np.array(wanted.suggestion)) < 0.02
    assert abs(np.nanmedian(found.usual) / np.nanmedian(wanted.usual) - 1) < 0.05


def test_several_sentinels_are_found():
    X, y, *_ = table()
    y[:12] = 999999999.0
    found = WAYS["forest"](X, y, None, None)
    assert set(np.array(found.suggestion)[:12]) <= {"correct", "drop", "inspect"}
    assert np.array_equal(np.sort(np.argsort(found.score, kind="stable")[:12]), np.arange(12))


def test_a_suggested_radius_is_not_that_of_a_sentinel():
    _, _, V, t = table()
    about = ABOUT
    wanted = th.suggest_radius(V, t, **about)
    t[3] = 1e9
    assert th.suggest_radius(V, t, **about) == pytest.approx(wanted, rel=0.2)
