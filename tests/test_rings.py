"""Kernels in rings: values by their definition, the same bits everywhere, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from mpmath import quad as integral
from oracles import coalition_weight, semivalues

import thresher as th
from thresher.games.ring_prices import ring_prices
from thresher.games.semivalues import rest_prices
from thresher.neighbors.kernel import check_kernel
from thresher.passes.memory import Account

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")

EVERY = ["shapley", "banzhaf", "leave-one-out", ("beta", 4, 1), ("beta", 0.3, 2.5)]
RINGS = [(0.4, 1.0), (0.9, 0.3), (1.4, 0.01), (2.0, 1e-6)]


def named(semivalue):
    return th.Beta(*semivalue[1:]) if isinstance(semivalue, tuple) else semivalue


def problem(seed=0, points=60, validation=70, width=3, classes=3):
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(points, width)), rng.normal(size=(validation, width))
    return X, rng.integers(0, classes, points), V, rng.integers(0, classes, validation)


def ring_weights(X, v, metric, rings):
    """The weight of each point for one validation point: 0 out of reach."""
    if metric == "euclidean":
        distances = np.sqrt(((X - v) ** 2).sum(axis=1))
    else:
        distances = 1 - X @ v / np.linalg.norm(X, axis=1) / np.linalg.norm(v)
    edges, weights = zip(*rings)
    within = [np.searchsorted(edges, distance) for distance in distances]
    return [Fraction(weights[ring]) if ring < len(edges) else Fraction(0) for ring in within]


def weighted_share(coalition, weights, match, classes):
    mass = sum(weights[i] for i in coalition)
    carried = sum(weights[i] for i in coalition if match[i])
    return carried / mass if mass else Fraction(1, classes)


# By the definition


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_values_equal_enumeration_of_all_coalitions(metric, semivalue):
    X, y, V, y_val = problem(points=7, validation=4)
    wanted = np.zeros(len(X))
    for v, label in zip(V, y_val):
        weights = ring_weights(X, v, metric, RINGS)
        wanted += semivalues(
            lambda some, w=weights, m=y == label: weighted_share(some, w, m, 3), len(X), semivalue
        )
    about = {"metric": metric, "semivalue": named(semivalue), "classes": [0, 1, 2]}
    for neighbors in ("all", "tree"):
        got = th.tknn_shapley(X, y, V, y_val, kernel=RINGS, neighbors=neighbors, **about)
        np.testing.assert_allclose(got.values, wanted, rtol=0, atol=1e-12 * abs(wanted).max())


def by_compositions(same, other, weights, classes, semivalue, ring, carries):
    """What one more point of a ring is worth: over how many of each ring a coalition has."""
    counts = [a + b for a, b in zip(same, other)]
    n, total = sum(counts) + 1, 0
    w = Fraction(weights[ring])
    for chosen in product(*(range(count + 1) for count in counts)):
        ways = math.prod(math.comb(count, k) for count, k in zip(counts, chosen))
        mass = sum(k * Fraction(each) for k, each in zip(chosen, weights))
        carried = sum(
            k * Fraction(each) * Fraction(mine, count)
            for k, each, mine, count in zip(chosen, weights, same, counts)
            if count
        )
        before = carried / mass if mass else Fraction(1, classes)
        gained = (carried + w * carries) / (mass + w) - before
        total += coalition_weight(semivalue, n, sum(chosen)) * ways * gained
    return float(total)


@given(
    counts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=3),
    exponents=st.lists(st.floats(-6, 0), min_size=3, max_size=3),
    semivalue=st.sampled_from(EVERY),
)
@settings(max_examples=25, deadline=None)
def test_prices_equal_rational_sums_over_weights_of_six_orders(counts, exponents, semivalue):
    same, other = (list(each) for each in zip(*counts))
    weights = [10.0**exponent for exponent in exponents[: len(same)]]
    sums = np.array(same)[:, None], np.array(other)[:, None]
    table = ring_prices(*sums, np.array(weights), 3, named(semivalue))[..., 0]
    ring = len(same) - 1
    wanted = []
    for who, (less_same, less_other) in enumerate([(1, 0), (0, 1), (0, 0)]):
        rest = list(same), list(other)
        if same[ring] >= less_same and other[ring] >= less_other:
            rest[0][ring] -= less_same
            rest[1][ring] -= less_other
        wanted.append(
            [by_compositions(*rest, weights, 3, semivalue, ring, carries) for carries in (1, 0)]
        )
        np.testing.assert_allclose(table[who, :, ring], wanted[who], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("semivalue", [*EVERY, ("beta", 2, 20), ("beta", 40, 0.05)], ids=str)
def test_one_ring_equals_the_closed_form_for_any_number_of_points(semivalue):
    near = np.array([0, 1, 2, 5, 30, 54, 57, 100, 1000, 10**5, 10**6])
    same = near * 2 // 3
    table = ring_prices(same[None], (near - same)[None], np.array([0.7]), 4, named(semivalue))
    wanted = rest_prices(same, near - same, 4, named(semivalue))
    np.testing.assert_allclose(table[2, :, 0], wanted, rtol=1e-12)


def test_a_heavy_newcomer_beside_one_light_point():
    """What it is worth beside one point that lacks the label: alone or not, half and half."""
    same, other = np.array([[0], [0]]), np.array([[0], [1]])
    table = ring_prices(same, other, np.array([1.0, 1e-9]), 2, "shapley")[..., 0]
    joined = 1.0 / (1.0 + 1e-9)
    assert table[2, 0, 0] == pytest.approx((0.5 + joined) / 2, rel=1e-13)


def heavy_and_light(light, weight, same_light, valued, carries):
    """Shapley beside two points of weight 1, which disagree, and many light ones, by sizes."""
    c, h = light + 3, 2
    sizes = np.arange(c)  # of coalitions of the c - 1 others
    parts = []
    for heavy in range(h + 1):
        chance = math.comb(h, heavy) * np.ones(c) / c
        for i in range(heavy):
            chance *= (sizes - i) / (c - 1 - i)
        for i in range(h - heavy):
            chance *= (c - 1 - sizes - i) / (c - 1 - heavy - i)
        few = sizes - heavy
        mass = heavy + weight * few
        carried = heavy / 2 + weight * few * (same_light / light)
        fine = (mass > 0) & (few >= 0)
        against = (mass - carried) if carries else -carried
        safe = np.where(fine, mass, 1.0)
        gains = np.where(fine, against / safe * (valued / (safe + valued)), 0.0)
        parts += (chance * gains).tolist()
    return math.fsum([*parts, (carries - 0.5) / c])


@pytest.mark.parametrize("light", [3, 1000, 10**6])
@pytest.mark.parametrize("weight", [1e-6, 1e-3])
def test_prices_of_a_million_points_with_weights_of_six_orders(light, weight):
    half = light // 3
    same, other = np.array([[1], [half]]), np.array([[1], [light - half]])
    table = ring_prices(same, other, np.array([1.0, weight]), 2, "shapley")[..., 0]
    for ring, valued in enumerate((1.0, weight)):
        for carries in (1, 0):
            wanted = heavy_and_light(light, weight, half, valued, carries)
            assert table[2, 1 - carries, ring] == pytest.approx(wanted, rel=1e-12)


def test_prices_equal_the_integral_by_mpmath():
    a, b = 2.5, 0.5
    same, other, weights = [3, 40], [2, 7], [1.0, 0.05]
    table = ring_prices(
        np.array(same)[:, None], np.array(other)[:, None], np.array(weights), 2, th.Beta(a, b)
    )
    with mp.workdps(20):

        def inner(p, s):
            E = [mp.exp(-mpf(w) * s) for w in weights]
            g = [1 - p + p * each for each in E]
            Q = mp.fprod(each ** (m + n) for each, m, n in zip(g, same, other))
            R = sum(mpf(w) * n * e / each for w, n, e, each in zip(weights, other, E, g))
            return p * (1 - E[1]) * Q * R

        def density(u):  # p = u^2, so that nothing is singular at 0
            p = u * u
            mass = p ** (mpf(b) - 1) * (1 - p) ** (mpf(a) - 1) * 2 * u / mp.beta(a, b)
            return mass * integral(lambda s: inner(p, s), [0, 1, 8, 64, 512])

        wanted = integral(density, [0, 0.25, 1])
    alone = mp.beta(mpf(b), mpf(a) + 52) / mp.beta(a, b)
    assert table[2, 0, 1, 0] == pytest.approx(float(wanted + alone / 2), rel=1e-12)


# Edges


def test_a_point_on_an_edge_is_within_it_as_the_pair_rule_has_it():
    X = np.array([[0.25], [0.5], [np.nextafter(0.5, 1)], [1.0], [np.nextafter(1.0, 2)]])
    about = {"metric": "euclidean", "kernel": [(0.5, 2.0), (1.0, 1.0)]}
    counts = th.NeighborCounts([[0.0]], ["a"], **about).add(X, ["a"] * 5)
    assert counts.table[:, 0].tolist() == [2, 2, 0, 0]
    assert counts.same.tolist() == [4]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_float32_proposes_and_the_pair_rule_decides_at_every_edge(metric):
    rng = np.random.default_rng(3)
    V = rng.integers(-3, 4, (64, 20)) + 0.5
    X = np.concatenate([V + np.eye(20)[rng.integers(0, 20, 64)] * k for k in (1, 2, 3)])
    edges = [1.0, 2.0, 3.0] if metric == "euclidean" else [0.01, 0.02, 0.05]
    side = th.NeighborCounts(V, ["a"] * 64, metric=metric, kernel=[(e, 1.0) for e in edges])
    for edge in range(3):
        box = th.NeighborCounts(V, ["a"] * 64, metric=metric, radius=edges[edge])
        within = side.__copy__().add(X, ["a"] * len(X)).table[: edge + 1].sum(axis=0)
        assert within.tolist() == box.add(X, ["a"] * len(X)).same.tolist()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_rings_of_equal_width_are_those_that_a_table_finds(metric, scale, monkeypatch):
    rng = np.random.default_rng(4)
    X, V = (scale * rng.integers(-4, 5, (count, 6)) for count in (300, 70))
    X[:, 0] += scale / 2  # no zero rows
    V[:, 0] += scale / 2
    X[:70] = V
    radius = 1.5 if metric == "cosine" else 8 * scale
    about = {"metric": metric, "radius": radius, "kernel": "triangular", "rings": 16}

    def table():
        return th.NeighborCounts(V, [0] * 70, classes=[0, 1], **about).add(X, [0] * 300).table

    even = table()
    monkeypatch.setattr("thresher.neighbors.rings.even_step", lambda *_: None)
    assert even.tolist() == table().tolist()
    assert (even[:16].sum(axis=1) > 0).sum() >= 8


def test_equal_weights_are_the_box():
    data = problem()
    box = th.tknn_shapley(*data, radius=1.5, metric="euclidean")
    rings = [(r, 3.0) for r in (0.5, 1.0, 1.5)]
    found = th.tknn_shapley(*data, metric="euclidean", kernel=rings)
    np.testing.assert_allclose(found.values, box.values, rtol=0, atol=1e-12)
    assert found.utility_all == pytest.approx(box.utility_all, rel=1e-14)


# Everywhere the same bits


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("width", [3, 40])
def test_every_way_gives_the_same_bits(metric, width, monkeypatch, tmp_path):
    X, y, V, y_val = data = problem(points=300, validation=150, width=width)
    reach = {"euclidean": 0.9 * math.sqrt(2 * width), "cosine": 0.8}[metric]
    about = {"metric": metric, "kernel": "gaussian", "radius": reach, "rings": 5}
    wanted = th.tknn_shapley(*data, **about, neighbors="all")
    assert (wanted.values != 0).mean() > 0.9
    assert wanted.efficiency_gap() < 1e-10
    assert (
        th.tknn_shapley(*data, **about, neighbors="tree").values.tolist() == wanted.values.tolist()
    )
    counts = th.NeighborCounts(V, y_val, **about).add(X[:100], y[:100])
    rest = th.NeighborCounts(V, y_val, **about).add(X[90:], y[90:]).remove(X[90:100], y[90:100])
    counts.merge(rest).save(tmp_path / "counts.npz")
    prices = th.NeighborCounts.load(tmp_path / "counts.npz").price_list()
    prices.save(tmp_path / "prices.json")
    again = th.PriceList.load(tmp_path / "prices.json")
    assert again.values(X, y).tolist() == wanted.values.tolist()
    with th.LiveCounts.create(tmp_path / "live", V, y_val, **about) as live:
        for i in range(len(X)):
            live.add(i, X[i], int(y[i]) if i else 1)
        live.relabel(0, int(y[0]))
        assert live.values().values.tolist() == wanted.values.tolist()
    monkeypatch.setattr(Account, "rows", lambda *_: 77)
    parts = th.tknn_shapley(*data, **about, memory="1TB")
    assert parts == wanted


def test_precomputed_distances_and_dask_and_points_that_judge_each_other():
    X, y, V, y_val = data = problem()
    rings = [(0.7, 1.0), (1.6, 0.2)]
    wanted = th.tknn_shapley(*data, metric="euclidean", kernel=rings).values
    D = np.sqrt(((X[:, None] - V) ** 2).sum(axis=2))
    found = th.tknn_shapley(D, y, None, y_val, metric="precomputed", kernel=rings)
    assert found.values.tolist() == wanted.tolist()
    da = pytest.importorskip("dask.array")
    lazy = th.tknn_shapley(da.from_array(X, 25), y, V, y_val, metric="euclidean", kernel=rings)
    assert np.asarray(lazy.values).tolist() == wanted.tolist()
    alone = th.tknn_shapley(X, y, metric="euclidean", kernel=rings, neighbors="all")
    assert alone == th.tknn_shapley(X, y, metric="euclidean", kernel=rings, neighbors="tree")
    first = np.delete(np.arange(len(X)), 0)
    judged = [
        th.tknn_shapley(
            np.delete(X, i, 0), np.delete(y, i), X[i : i + 1], y[i : i + 1], metric="euclidean",
            kernel=rings, classes=[0, 1, 2],
        ).values
        for i in range(len(X))
    ]  # fmt: skip
    others = sum(np.insert(each, i, 0.0) for i, each in enumerate(judged))
    np.testing.assert_allclose(alone.values[first], others[first], rtol=0, atol=1e-12)


# Price lists and findings


def test_members_newcomers_and_labels_are_priced_as_if_they_were_there():
    X, y, V, y_val = problem(points=30, validation=20)
    about = {"metric": "euclidean", "kernel": "triangular", "radius": 2.0, "rings": 4}
    whole = {**about, "classes": [0, 1, 2]}
    prices = th.NeighborCounts(V, y_val, **whole).add(X, y).price_list("banzhaf")
    table = prices.label_values(X, y)
    newcomers = prices.label_values(X[:3] + 0.1)
    for i in range(3):
        for label in range(3):
            changed = np.concatenate([[label], np.delete(y, i)])
            rows = np.concatenate([X[i : i + 1], np.delete(X, i, 0)])
            wanted = th.tknn_shapley(rows, changed, V, y_val, semivalue="banzhaf", **whole)
            assert table[i, label] == pytest.approx(wanted.values[0], abs=1e-12)
            again = prices.values(X[i : i + 1], y[i : i + 1], label=label)
            assert again[0] == pytest.approx(wanted.values[0], abs=1e-12)
            rows, labels = np.concatenate([X[i : i + 1] + 0.1, X]), [label, *y]
            wanted = th.tknn_shapley(rows, labels, V, y_val, semivalue="banzhaf", **whole)
            assert newcomers[i, label] == pytest.approx(wanted.values[0], abs=1e-12)


def test_explain_knows_the_kernel():
    data = problem(points=50, validation=60)
    valuation = th.tknn_shapley(*data, metric="euclidean", kernel="epanechnikov", radius=2.5)
    assert valuation.params["kernel"] == "epanechnikov"
    found = th.explain(valuation, *data)
    np.testing.assert_allclose(found.values, valuation.values)
    best = th.NeighborCounts(
        data[2], data[3], metric="euclidean", kernel="epanechnikov", radius=2.5
    )
    table = best.add(data[0], data[1]).price_list().label_values(data[0], data[1])
    some = [i for i, label in enumerate(found.best_label) if found.best_value[i] > table[i].min()]
    assert some


# Calibrated


@pytest.mark.parametrize("t", [1, 2, 3, 6, 9])
def test_calibrated_is_the_mean_over_large_enough_coalitions(t):
    from itertools import combinations

    match = [1, 0, 0, 1, 1, 0, 1]
    X, y = [[0.0]] * 7, ["a" if each else "b" for each in match]
    about = {"metric": "euclidean", "radius": 1.0, "classes": ["a", "b"]}
    got = th.tknn_shapley(X, y, [[0.5]], ["a"], semivalue=th.Calibrated(t), **about).values

    def share(some):
        return Fraction(sum(match[i] for i in some), len(some))

    for i in range(7):
        others, means = [j for j in range(7) if j != i], []
        for size in range(t, 7):
            gains = [share((*S, i)) - share(S) for S in combinations(others, size)]
            means.append(sum(gains) / len(gains))
        assert got[i] == pytest.approx(float(sum(means) / len(means)) if means else 0.0, abs=1e-15)


def test_calibrated_is_exact_for_many_points_and_for_the_box_alone():
    near, t = np.array([1001, 10**6]), 1000
    _, W = th.games.semivalues.weights(th.Calibrated(t), near)
    for c, found in zip(near.tolist(), W):
        wanted = math.fsum(1 / i for i in range(t + 1, c + 1)) / (c - t)
        assert found == pytest.approx(wanted, rel=1e-13)
    data = problem()
    prices = th.NeighborCounts(data[2], data[3]).add(data[0], data[1])
    assert prices.price_list(th.Calibrated(3)).semivalue == "calibrated(3)"
    with pytest.raises(th.InputError, match="without a kernel"):
        th.tknn_shapley(*data, semivalue=th.Calibrated(3), kernel="gaussian")
    with pytest.raises(th.InputError, match="without a kernel"):
        th.forest_shapley(*data, semivalue=th.Calibrated(3))
    with pytest.raises(th.InputError, match="t of Calibrated must be an integer >= 1"):
        th.Calibrated(0)


# Bad input


@pytest.mark.parametrize(
    ("kernel", "radius", "message"),
    [
        ("cubic", 0.5, "kernel must be 'box', 'gaussian'"),
        (7, 0.5, "or a sequence of"),
        ([], 0.5, "or a sequence of"),
        ([(0.5, 0.0)], 0.5, "positive, finite weights"),
        ([(0.5, -1.0)], 0.5, "positive, finite weights"),
        ([(0.5, math.nan)], 0.5, "positive, finite weights"),
        ([(0.5, 1.0), (0.5, 0.5)], 0.5, "finite radii that are above 0"),
        ([(0.0, 1.0), (0.5, 0.5)], 0.5, "finite radii that are above 0"),
        ([(0.5, 1.0), (math.inf, 0.5)], 0.5, "finite radii that are above 0"),
        ([(0.3, 1.0), (0.6, 0.5)], 0.7, "contradicts the kernel"),
        ("gaussian", 0.0, "rings have a width"),
        ("gaussian", math.inf, "rings have a width"),
        ("gaussian", 5e-324, "must be 0 or at least"),
        ("gaussian", 1e308, "is too large for rings"),
    ],
)  # fmt: skip
def test_kernels_that_are_none(kernel, radius, message):
    with pytest.raises(th.InputError, match=message):
        th.tknn_shapley(*problem(), kernel=kernel, radius=radius)


def test_rings_and_beta_have_limits():
    with pytest.raises(th.InputError, match="rings must be an integer >= 1"):
        check_kernel("gaussian", 0, 0.5)
    with pytest.raises(th.InputError, match="at most 254"):
        check_kernel("gaussian", 255, 0.5)
    with pytest.raises(
        th.InputError, match="of Beta for kernels and owners must be a number between"
    ):
        th.tknn_shapley(*problem(), kernel="gaussian", semivalue=th.Beta(1e6, 1))


def test_a_validation_point_at_the_center_of_a_leaf():
    """Its norm is 0 there, and nothing may be divided by it."""
    about = {"metric": "euclidean", "kernel": RINGS}
    data = [[1.0, 0.0]], [0], [[1.0, 0.0], [0.0, -2.0], [-2.0, -2.0]], [0, 1, 0]
    found = [th.tknn_shapley(*data, neighbors=each, **about) for each in ("all", "tree")]
    assert found[0].values.tolist() == found[1].values.tolist() == [0.5]


def test_rings_need_a_kernel_with_a_name():
    for more in ({}, {"kernel": RINGS}):
        with pytest.raises(th.InputError, match="rings=5 needs kernel with a name"):
            th.tknn_shapley(*problem(), rings=5, **more)
    for rings in (4, 16):  # what is meant where no number is named, and what these are
        th.tknn_shapley(*problem(), kernel=RINGS, rings=rings)


@pytest.mark.filterwarnings("default::thresher.ThresherWarning")
def test_weights_that_increase_outward_are_allowed_with_a_warning():
    with pytest.warns(th.ThresherWarning, match="increase outward"):
        th.tknn_shapley(*problem(), kernel=[(0.5, 1.0), (1.0, 2.0)])


# Every price of a list by its definition


@pytest.mark.parametrize("semivalue", EVERY, ids=str)
@given(seed=st.integers(0, 2**16), points=st.integers(1, 5), rings=st.sampled_from([1, 4]))
@settings(max_examples=8, deadline=None)
def test_relabeled_members_and_newcomers_equal_enumeration(semivalue, seed, points, rings):
    """Of rings, and of one ring, which is the box."""
    X, y, V, y_val = problem(seed, points + 1, 3, width=2)
    kernel, members = RINGS[-rings:], slice(points)

    def enumerated(rows, labels):
        total = np.zeros(len(labels))
        for v, label in zip(V, y_val):
            weights = ring_weights(X[rows], v, "euclidean", kernel)
            total += semivalues(
                lambda some, w=weights, m=labels == label: weighted_share(some, w, m, 3),
                len(labels), semivalue,
            )  # fmt: skip
        return total

    about = {"metric": "euclidean", "classes": [0, 1, 2]}
    counts = th.NeighborCounts(V, y_val, kernel=kernel, **about).add(X[members], y[members])
    lists = [counts.price_list(named(semivalue))]
    if rings == 1:
        box = th.NeighborCounts(V, y_val, radius=kernel[-1][0], **about)
        lists.append(box.add(X[members], y[members]).price_list(named(semivalue)))
    whole = enumerated(slice(points + 1), y)
    for label in range(3):
        changed = np.concatenate([[label], y[1:points]])
        wanted = enumerated(members, changed)[0]
        for prices in lists:
            found = prices.values(X[:1], y[:1], label=label)[0]
            assert found == pytest.approx(wanted, abs=1e-12)
            assert prices.label_values(X[:1], y[:1])[0, label] == pytest.approx(wanted, abs=1e-12)
    for prices in lists:
        new = prices.newcomer_values(X[points:], y[points:])[0]
        assert new == pytest.approx(whole[-1], abs=1e-12)
