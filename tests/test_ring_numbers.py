"""Numbers as targets with kernels: by the definition, the same bits everywhere, bad input."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import dask.array as da
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from oracles import coalition_weight, mpf_of, semivalues

import thresher as th
from thresher.games.ring_targets import RingTargetGame
from thresher.games.targets import TargetGame, moved, sums_of, with_changes
from thresher.inputs.grids import Grid
from thresher.kernels.integrals import ring_target_integrals
from thresher.kernels.target_sums import ENTRIES, sum_codes, sum_visit_codes
from thresher.neighbors.groups import by_entry
from thresher.passes import in_parts

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")

EVERY = ["shapley", "banzhaf", "leave-one-out", ("beta", 4, 1), ("beta", 0.3, 2.5)]
RINGS = [(1.0, 1.0), (2.0, 0.3), (2.5, 0.01), (4.0, 1e-6)]
EMPTY, BOUNDS = 0.5, (-16.0, 16.0)  # a grid that has all eighths
NUMBERS = {"task": "regression", "empty": EMPTY, "metric": "euclidean"}


def named(semivalue):
    return th.Beta(*semivalue[1:]) if isinstance(semivalue, tuple) else semivalue


def problem(seed=0, points=7, validation=4, width=2):
    """Rows on a lattice, so that pairs are on the edges of rings; targets that grids hold."""
    rng = np.random.default_rng(seed)
    X, V = (rng.integers(-2, 3, (count, width)) * 1.0 for count in (points, validation))
    return X, rng.integers(-64, 65, points) / 8, V, rng.integers(-64, 65, validation) / 8


def weights_around(X, v, rings=RINGS):
    """The weight of each point for one validation point: 0 out of reach."""
    edges, weights = zip(*rings)
    within = np.searchsorted(edges, np.sqrt(((X - v) ** 2).sum(axis=1)))
    return [Fraction((*weights, 0.0)[ring]) for ring in within]


def utility_of(terms, y):
    """Minus squared errors of weighted means; terms are weights of points, and a target."""

    def utility(coalition):
        total = Fraction(0)
        for weights, t in terms:
            near = [i for i in coalition if weights[i]]
            mass = sum(weights[i] for i in near)
            guess = sum(weights[i] * Fraction(y[i]) for i in near) / mass if near else EMPTY
            total -= (Fraction(guess) - Fraction(t)) ** 2
        return total

    return utility


def enumerated(X, y, V, y_val, semivalue="shapley", rings=RINGS):
    terms = [(weights_around(X, v, rings), t) for v, t in zip(V, y_val)]
    return semivalues(utility_of(terms, y), len(X), semivalue)


def assert_close(found, wanted, within=1e-12):
    most = max(1.0, np.abs(wanted).max())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=within * most)


# By the definition


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(seed=st.integers(0, 2**16), points=st.integers(1, 6))
@settings(max_examples=10, deadline=None)
def test_values_equal_enumeration_of_all_coalitions(semivalue, seed, points):
    data = problem(seed, points, 3)
    wanted = enumerated(*data, semivalue)
    found = th.tknn_shapley(*data, kernel=RINGS, semivalue=named(semivalue), **NUMBERS)
    assert_close(found.values, wanted)
    tree = th.tknn_shapley(
        *data, kernel=RINGS, semivalue=named(semivalue), neighbors="tree", **NUMBERS
    )
    assert tree.values.tolist() == found.values.tolist()
    if semivalue == "shapley":
        assert abs(found.efficiency_gap()) <= 1e-12 * max(1.0, abs(found.utility_none))


def ring_prices(sums, judges, empty, weights, semivalue):
    about = np.asarray(judges, float), float(empty), Grid(1.0), semivalue
    game = RingTargetGame(*about, weights=tuple(weights))
    return game.all_prices(sums, slice(None))


def paid(prices, target):
    a, b, c, center = prices
    return a + (target - center) * (b + (target - center) * c)


def in_steps(rows, weights, u, t, empty):
    """The utility of a coalition of points on the grid; rows has the ring of each point."""

    def utility(coalition):
        mass = sum(Fraction(weights[rows[i]]) for i in coalition)
        total = sum(Fraction(weights[rows[i]]) * int(u[i]) for i in coalition)
        return -(((total / mass if coalition else empty) - t) ** 2)

    return utility


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(
    exponents=st.lists(st.floats(-6, 0), min_size=1, max_size=4),
    points=st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**31), 2**31)), min_size=1,
                    max_size=5),
    others=st.tuples(*[st.integers(-(2**31), 2**31)] * 4),
)  # fmt: skip
@example(exponents=[0.0, -6.0], points=[(0, 2**31), (1, -7), (1, 5)], others=(0, 1, 2, 3))
@settings(max_examples=15, deadline=None)
def test_prices_equal_enumeration_over_weights_of_six_orders(semivalue, exponents, points, others):
    """Of members, of members with another target, and of a newcomer in each ring."""
    weights = 10.0 ** np.array(exponents)
    rows, u = np.array(points, np.int64).T
    rows %= len(weights)
    t, empty, other, new = others
    sums = np.stack([sums_of(u[rows == ring]) for ring in range(len(weights))], axis=1)
    table = ring_prices(sums.reshape(-1, 1), [t], empty, weights, named(semivalue))[..., 0]
    size, members, newcomers = 2.0**66, [0, 1, 2, 9], [3, 4, 5, 9]
    wanted = semivalues(in_steps(rows, weights, u, t, empty), len(u), semivalue)
    found = [paid(table[members, ring], float(each)) for ring, each in zip(rows, u)]
    assert_close(np.array(found) / size, wanted / size)
    changed = np.array([other, *u[1:]])
    wanted = semivalues(in_steps(rows, weights, changed, t, empty), len(u), semivalue)[0]
    prices = with_changes(table[:, rows[:1]])[:, 0]
    now = [paid([*prices[k : k + 3], prices[-1]], float(u[0])) for k in (0, 3, 6)]
    assert_close(moved(now, float(other - u[0])) / size, wanted / size)
    for ring in range(len(weights)):
        joined = [*rows, ring], weights, [*u, new], t, empty
        wanted = semivalues(in_steps(*joined), len(u) + 1, semivalue)[-1]
        assert_close(paid(table[newcomers, ring], float(new)) / size, wanted / size)


def by_sizes(counts, first, weights, ring, own, empty, semivalue):
    """The value of a member by sums over how many of each of two rings are present.

    `first` and `own` are targets, and that of the judge is 0. Those of a ring are exchangeable, so
    that means over its members do.
    """
    others = [count - (k == ring) for k, count in enumerate(counts)]
    n, total = sum(counts), mpf(0)
    w = [mpf(each) for each in weights]
    one, square, pair = [], [], []
    for k, targets in enumerate(first):
        rest = list(targets)
        if k == ring:
            rest.remove(own)
        size, plain = max(len(rest), 1), sum(rest)
        squares = sum(each * each for each in rest)
        one.append(mpf(plain) / size)
        square.append(mpf(squares) / size)
        pair.append(mpf(plain * plain - squares) / max(size * (size - 1), 1))
    chance = [coalition_weight(semivalue, n, size) for size in range(n)]
    chance = [mpf_of(each) for each in chance]
    for i in range(others[0] + 1):
        for j in range(others[1] + 1):
            ways = comb(others[0], i) * comb(others[1], j)
            mean = w[0] * i * one[0] + w[1] * j * one[1]
            both = sum(
                w[k] ** 2 * (m * square[k] + m * (m - 1) * pair[k]) for k, m in ((0, i), (1, j))
            )
            both += 2 * w[0] * w[1] * i * j * one[0] * one[1]
            mass = w[0] * i + w[1] * j
            before = both / mass**2 if i + j else mpf(empty) ** 2
            after = both + 2 * w[ring] * own * mean + (w[ring] * own) ** 2
            total += ways * chance[i + j] * (before - after / (mass + w[ring]) ** 2)
    return total


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@pytest.mark.parametrize("counts", [(3, 200), (90, 60)], ids=str)
@pytest.mark.parametrize("ratio", [0.3, 1e-6])
def test_hundreds_of_near_points_equal_sums_in_forty_digits(semivalue, counts, ratio):
    mp.dps = 40
    rng = np.random.default_rng(0)
    first = [rng.integers(-(2**31), 2**31, count).tolist() for count in counts]
    weights, empty = (1.0, ratio), 2**30
    sums = np.stack([sums_of(np.array(each)) for each in first], axis=1)
    table = ring_prices(sums.reshape(-1, 1), [0], empty, weights, named(semivalue))[..., 0]
    own = [first[ring][0] for ring in (0, 1)]
    wanted = [
        float(by_sizes(counts, first, weights, ring, own[ring], empty, semivalue))
        for ring in (0, 1)
    ]
    found = [paid(table[[0, 1, 2, 9], k], float(u)) for k, u in enumerate(own)]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@pytest.mark.parametrize("near", [1, 2, 5, 40, 700, 30_000, 1_000_000])
def test_equal_weights_equal_the_closed_form_of_the_box(semivalue, near):
    rng = np.random.default_rng(near)
    rings = rng.integers(0, 3, near)
    u, judges, empty = rng.integers(-(2**31), 2**31, near), np.array([2.0**29]), -(2.0**28)
    sums = np.stack([sums_of(u[rings == ring]) for ring in range(3)], axis=1)
    game = TargetGame(judges, empty, Grid(1.0), named(semivalue))
    box = game.prices(sums.sum(axis=1), slice(None))[:, 0]
    for table, width in ((sums.sum(axis=1, keepdims=True), 1), (sums, 3)):
        found = ring_prices(
            table.reshape(-1, 1), judges, empty, [0.25] * width, named(semivalue)
        )[[0, 1, 2, 9], ..., 0]  # fmt: skip
        few = u[:20].astype(np.float64)
        own = found[:, rings[:20] if width > 1 else np.zeros(len(few), int)]
        got, wanted = (paid(each, few) for each in (own, box))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("semivalue", ["shapley", th.Beta(0.3, 2.5)], ids=str)
def test_kernels_are_the_same_in_plain_python(semivalue):
    from thresher.games.chances import chances

    counts, weights = np.array([[2, 0, 1]]), np.array([1.0, 0.4, 0.01])
    gains = np.array([[[3.0, 0.0, -0.02], [5.0, 0.0, 0.0004]]])
    found, plain = np.empty((1, 15, 3)), np.empty((1, 15, 3))
    about = counts, gains, weights, chances(semivalue)
    ring_target_integrals(*about, found)
    ring_target_integrals.py_func(*about, plain)
    np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-15)


def test_sums_of_rings_are_those_of_their_members():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (9, 5)).astype(np.uint8)
    u, whose = np.rint(rng.normal(size=9) * 2.0 ** rng.integers(0, 90, 9)), rng.integers(0, 2, 9)
    wanted = np.zeros((ENTRIES, 6, 5), np.int64)
    for owner in range(2):
        for ring in range(3):
            for v in range(5):
                some = u[(whose == owner) & (codes[:, v] == 3 - ring)]
                wanted[:, owner * 3 + ring, v] = sums_of(some)[:, 0]
    for kernel in (sum_codes, sum_codes.py_func):
        found = np.zeros((30, ENTRIES), np.int64)
        kernel(codes, 0, 2, 3, u, 1.0, whose, 5, found)
        kernel(codes, 2, 5, 3, u, 1.0, whose, 5, found)
        assert by_entry(found, 6).tolist() == wanted.tolist()
    leaf, query = np.zeros(5, np.uint32), np.arange(5, dtype=np.uint32)
    places = np.arange(9, dtype=np.uint32)[None]
    for kernel in (sum_visit_codes, sum_visit_codes.py_func):
        found = np.zeros((30, ENTRIES), np.int64)
        about = np.ascontiguousarray(codes.T), leaf, query, places, 3, u, 1.0, whose, 5
        kernel(*about, found)
        assert by_entry(found, 6).tolist() == wanted.tolist()


# Rings that are alike, judges, owners


def test_one_ring_is_the_box_and_two_equal_rings_are_one():
    data = problem(points=60, validation=20)
    box = th.tknn_shapley(*data, radius=2.0, **NUMBERS)
    for kernel in ([(2.0, 7.0)], [(1.0, 0.5), (2.0, 0.5)]):
        found = th.tknn_shapley(*data, kernel=kernel, **NUMBERS)
        assert_close(found.values, box.values)
        assert found.utility_all == pytest.approx(box.utility_all, rel=1e-13)
        assert found.utility_none == box.utility_none


@pytest.mark.parametrize("kernel", ["gaussian", "triangular", "epanechnikov"])
def test_values_add_up_and_the_record_names_the_kernel(kernel):
    data = problem(points=80, validation=30, width=3)
    found = th.tknn_shapley(*data, kernel=kernel, rings=5, radius=2.5, mean=True, **NUMBERS)
    assert abs(found.efficiency_gap()) < 1e-12 * abs(found.utility_none)
    assert (found.params["kernel"], found.params["rings"]) == (kernel, 5)
    assert found.params["grid"]["step"] > 0


def test_points_that_judge_each_other_are_left_out_of_their_own_game():
    X, y, _, _ = problem(points=6)
    terms = []
    for j in range(len(X)):
        weights = weights_around(X, X[j])
        weights[j] = Fraction(0)
        terms.append((weights, y[j]))
    wanted = semivalues(utility_of(terms, y), len(X))
    for neighbors in ("all", "tree"):
        found = th.tknn_shapley(X, y, kernel=RINGS, neighbors=neighbors, **NUMBERS)
        assert_close(found.values, wanted)


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
def test_games_among_owners_equal_enumeration(semivalue, monkeypatch):
    X, y, V, y_val = problem(3, points=9)
    owners = np.array([0, 1, 2, 3, 0, 1, 2, 0, 0])
    whole = utility_of([(weights_around(X, v), t) for v, t in zip(V, y_val)], y)
    wanted = semivalues(
        lambda some: whole([i for i in range(len(X)) if owners[i] in some]), 4, semivalue
    )
    about = {"kernel": RINGS, "owners": owners, "semivalue": named(semivalue), **NUMBERS}
    found = th.owner_shapley(X, y, V, y_val, **about)
    assert_close(found.values, wanted)
    monkeypatch.setattr(in_parts.Run, "_plan", lambda *_: (4, "auto"))
    given = {"bounds": BOUNDS, **about}
    assert th.owner_shapley(X, y, V, y_val, memory="64GB", **given) == th.owner_shapley(
        X, y, V, y_val, **given
    )


# Everywhere the walk goes


def test_parts_and_dask_give_the_same_bits(monkeypatch, tmp_path):
    X, y, V, y_val = problem(points=150, validation=70, width=3)
    about = {"kernel": "gaussian", "rings": 4, "radius": 3.0, **NUMBERS}
    wanted = th.tknn_shapley(X, y, V, y_val, **about)
    monkeypatch.setattr(in_parts.Run, "_plan", lambda *_: (37, "auto"))
    for how in ({"memory": "64GB"}, {"checkpoint": tmp_path / "kept"}):
        found = th.tknn_shapley(X, y, V, y_val, **how, **about)
        assert found == wanted
        assert found.values.tobytes() == wanted.values.tobytes()
    cut = [da.from_array(each, chunks=(60, *each.shape[1:])) for each in (X, y)]
    found = th.tknn_shapley(*cut, V, y_val, **about)
    assert np.asarray(found.values).tobytes() == wanted.values.tobytes()
    assert found.params == wanted.params
    assert found.utility_all == wanted.utility_all


def test_counts_merge_shrink_and_are_stored(tmp_path):
    X, y, V, y_val = problem(points=40, validation=20)
    about = {"kernel": RINGS, "bounds": BOUNDS, **NUMBERS}
    counts = th.NeighborCounts(V, y_val, **about).add(X, y)
    assert counts.table.shape == (40, 20)
    parts = th.NeighborCounts(V, y_val, **about).add(X[:15], y[:15])
    parts.merge(th.NeighborCounts(V, y_val, **about).add(X[15:], y[15:]))
    parts.add(X[:3] + 1, y[:3]).remove(X[:3] + 1, y[:3])
    assert parts.table.tolist() == counts.table.tolist()
    counts.save(tmp_path / "counts")
    again = th.NeighborCounts.load(tmp_path / "counts")
    assert again.table.tolist() == counts.table.tolist()
    prices = again.price_list()
    values = th.tknn_shapley(X, y, V, y_val, **about).values
    assert prices.values(X, y).tobytes() == values.tobytes()
    prices.save(tmp_path / "prices")
    read = th.PriceList.load(tmp_path / "prices")
    assert read.table.tobytes() == prices.table.tobytes()
    assert read.kernel == prices.kernel
    assert "4 rings" in repr(read)
    with pytest.raises(th.InputError, match="it differs in radius"):
        counts.merge(th.NeighborCounts(V, y_val, **about | {"kernel": RINGS[:3]}))
    with pytest.raises(th.InputError, match="table must hold 10 x 4 x 20 prices"):
        th.PriceList(prices.side, "shapley", prices.table[..., :-1])


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(seed=st.integers(0, 2**16), points=st.integers(1, 5), other=st.integers(-128, 128))
@settings(max_examples=6, deadline=None)
def test_price_lists_equal_enumeration(semivalue, seed, points, other):
    X, y, V, y_val = problem(seed, points + 1, 3)
    members, rest, target = X[:points], y[:points], other / 8
    counts = th.NeighborCounts(V, y_val, kernel=RINGS, bounds=BOUNDS, **NUMBERS)
    prices = counts.add(members, rest).price_list(named(semivalue))
    assert_close(prices.values(members, rest), enumerated(members, rest, V, y_val, semivalue))
    moved = prices.values(members, rest, label=target)
    for i in range(points):
        changed = rest.copy()
        changed[i] = target
        assert_close(moved[i], enumerated(members, changed, V, y_val, semivalue)[i])
    new = prices.newcomer_values(X[points:], y[points:])[0]
    assert_close(new, enumerated(X, y, V, y_val, semivalue)[-1])
    for theirs in (None, rest):
        best, worth = prices.best_targets(members, theirs)
        for guess in (-16.0, target, 16.0):
            given = np.full(points, guess)
            if theirs is None:
                there = prices.newcomer_values(members, given)
            else:
                there = prices.values(members, rest, label=guess)
            known = ~np.isnan(best)
            assert (there[known] <= worth[known] + 1e-9).all()


def test_live_stores_follow_every_change(tmp_path):
    X, y, V, y_val = problem(points=30, validation=20)
    about = {"kernel": RINGS, "bounds": BOUNDS, **NUMBERS}
    with th.LiveCounts.create(tmp_path / "live", V, y_val, **about) as live:
        for name, (row, target) in enumerate(zip(X, y)):
            live.add(name, row, target)
        live.remove(3)
        live.relabel(5, 7.5)
        live.commit()
    with th.LiveCounts.open(tmp_path / "live") as live:
        found = live.values()
    kept, changed = np.arange(len(X)) != 3, y.copy()
    changed[5] = 7.5
    wanted = th.tknn_shapley(X[kept], changed[kept], V, y_val, **about)
    assert found.values.tobytes() == wanted.values.tobytes()


def test_explain_knows_the_kernel():
    X, y, V, y_val = problem(points=50, validation=30)
    about = {"kernel": "epanechnikov", "radius": 2.5, **NUMBERS}
    valuation = th.tknn_shapley(X, y, V, y_val, **about)
    found = th.explain(valuation, X, y, V, y_val)
    assert_close(found.values, valuation.values)
    near = np.sqrt(((X[:, None] - V) ** 2).sum(axis=2)) <= 2.5
    assert found.near.tolist() == near.sum(axis=1).tolist()
    assert_close(found.expected, near @ y_val / near.sum(axis=1), 1e-7)  # of a part in 2^32
    prices = th.NeighborCounts(V, y_val, bounds=BOUNDS, **about).add(X, y).price_list()
    for i in range(5):
        wanted = prices.values(X[i : i + 1], y[i : i + 1], label=found.expected[i])
        assert found.best_value[i] == pytest.approx(wanted[0], abs=1e-6)


# What is refused


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"kernel": "cubic"}, "kernel must be 'box', 'gaussian'"),
        ({"kernel": [(1.0, 0.0)]}, "kernel must have positive, finite weights"),
        ({"kernel": [(1.0, 1.0), (1.0, 0.5)]}, "finite radii that are above 0 and increase"),
        ({"kernel": "gaussian", "radius": 0.0}, "radius must be positive and finite with kernel"),
        ({"kernel": "gaussian", "rings": 0}, "rings must be"),
        ({"kernel": [(1.0, 1.0)], "radius": 3.0}, "radius=3.0 contradicts the kernel"),
        ({"kernel": [(1.0, 1.0)], "rings": 5}, "rings=5 needs kernel with a name, .* 1 of its own"),
        ({"rings": 5}, "rings=5 needs kernel with a name, .*: the box has no rings"),
        ({"kernel": "gaussian", "semivalue": th.Calibrated(2)}, "alibrated"),
        ({"kernel": "gaussian", "classes": [1, 2]}, "classes cannot be used with task='reg"),
        ({"kernel": "gaussian", "empty": np.nan}, "empty must be a finite number"),
    ],
)  # fmt: skip
def test_bad_kernels_of_numbers(more, message):
    data = [[0.0], [1.0], [2.0]], [1.0, 2.0, 3.5], [[0.5]], [1.0]
    with pytest.raises(th.InputError, match=message):
        th.tknn_shapley(*data, **{"task": "regression", "metric": "euclidean", **more})


def test_where_kernels_of_numbers_are_still_refused():
    X, y, V, y_val = problem(points=20)
    with pytest.raises(th.InputError, match="kernel cannot be used with task='regression'"):
        th.dp_tknn_shapley(
            X, y, V, y_val, epsilon=1, delta=1e-6, task="regression", bounds=BOUNDS,
            kernel="gaussian", metric="euclidean", adjacency="add-remove",
        )  # fmt: skip
    with pytest.raises(th.InputError, match="kernel cannot be used with task='regression'"):
        th.suggest_radius(V, y_val, task="regression", kernel="gaussian")
