"""A tree gives the bits that all pairs give."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_cases import by

import thresher as th
from thresher.kernels.pairs import distance
from thresher.metrics import Rows, measure
from thresher.neighbors import costs, tree, visits
from thresher.neighbors.ball import Ball
from thresher.neighbors.coordinates import Space, bent
from thresher.neighbors.groups import Groups
from thresher.neighbors.tree import BoxTree
from thresher.neighbors.visits import tree_blocks

METRICS = ["cosine", "euclidean"]


SETTINGS = ["leaf of 32", "leaf of 256"]


pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


@pytest.fixture(autouse=True)
def small_leaves():
    """Leaves and blocks so small that little data has many of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "LEAF", 32)
        patch.setattr(visits, "FIRST_BLOCK", 128)
        patch.setattr(tree, "VISITS", 700)
        patch.setattr(tree, "ROOM", 4)
        patch.setattr(visits, "JOB_VISITS", 50)
        yield patch


def everything(X, y, V, y_val, metric, radius):
    """What is computed from near pairs by the core of the library, as bytes."""
    kept = {"metric": metric, "radius": radius, "classes": range(4)}
    valuation = th.tknn_shapley(X, y, V, y_val, **kept)
    counts = th.NeighborCounts(V, y_val, **kept).add(X, y)
    prices = counts.price_list("banzhaf")
    found = {
        "values": valuation.values,
        "utility_all": np.array(valuation.utility_all),
        "same": counts.same,
        "other": counts.other,
        "member": prices.values(X, y),
        "newcomer": prices.newcomer_values(X, y),
        "labels": prices.label_values(X),
    }
    return {name: array.tobytes() for name, array in found.items()}


def assert_same_bits(X, V, metric, radius, seed=0):
    rng = np.random.default_rng(seed)
    y, y_val = rng.integers(0, 3, len(X)), rng.integers(0, 4, len(V))
    with by("all"):
        want = everything(X, y, V, y_val, metric, radius)
    with by("tree"):
        got = everything(X, y, V, y_val, metric, radius)
    for name in want:
        assert got[name] == want[name], (name, metric, radius)


def near_counts(X, V, metric, radius, way):
    """Near points of each validation point, where rows may be zero."""
    points, validation = (
        measure("X", np.asarray(A), cosine=metric == "cosine", zero_rows=True) for A in (X, V)
    )
    groups = Groups.of(np.zeros(len(X), np.int32), 1)
    near = Ball(validation, len(validation), metric, radius, way)
    segments = groups.segments(np.array([0]))
    return np.concatenate([block.count(segments)[0] for block in near.blocks(points, groups)])


@pytest.mark.parametrize("metric", METRICS)
@given(
    shape=st.tuples(st.integers(1, 300), st.integers(1, 200), st.integers(1, 20)),
    radius=st.sampled_from([0.0, 1e-9, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0, np.inf]),
    kind=st.sampled_from(["normal", "grid", "twins", "offset", "line"]),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_a_tree_gives_the_bits_of_all_pairs(metric, shape, radius, kind, dtype, seed):
    rng = np.random.default_rng(seed)
    n, m, width = shape
    X, V = rng.standard_normal((n, width)), rng.standard_normal((m, width))
    if kind == "grid":  # thousands of pairs exactly on the radius
        X, V = rng.integers(1, 4, X.shape), rng.integers(1, 4, V.shape)
    if kind == "twins":  # distance 0, and boxes without extent
        X, V = X[rng.integers(0, 3, n) % n], X[rng.integers(0, n, m)]
    if kind == "offset":
        X, V = X + 1000, V + 1000
    if kind == "line":
        X, V = X[:, :1] * np.arange(1, width + 1), V[:, :1] * np.arange(1, width + 1)
    X, V = X.astype(dtype), V.astype(dtype)
    X[~X.any(axis=1)] = 1
    V[~V.any(axis=1)] = 1
    assert_same_bits(X, V, metric, radius, seed % 1000)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [2, 5, 17, 40, 150])
def test_a_radius_that_is_the_distance_of_a_pair_gives_the_same_bits(metric, width, rng):
    X, V = rng.standard_normal((150, width)), rng.standard_normal((70, width))
    points, validation = (measure("X", A, cosine=False) for A in (X, V))
    for i in range(6):
        exact = distance(X[i], V[i], points.squares[i], validation.squares[i], metric == "cosine")
        for radius in (exact, np.nextafter(exact, 0), np.nextafter(exact, 9)):
            assert_same_bits(X, V, metric, float(radius))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("size", [1e-60, 1e-25, 1e-8, 1e8, 1e25, 1e60])
@pytest.mark.parametrize("width", [3, 30])
def test_huge_and_tiny_numbers_give_the_same_bits(metric, size, width, rng):
    X, V = rng.standard_normal((200, width)) * size, rng.standard_normal((90, width)) * size
    assert_same_bits(X, V, metric, 0.6 if metric == "cosine" else size * width**0.5)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_of_very_different_length_give_the_same_bits(metric, rng):
    sizes = 10.0 ** rng.integers(-20, 21, (200, 1))
    X, V = rng.standard_normal((200, 4)) * sizes, rng.standard_normal((90, 4)) * sizes[:90]
    for radius in (0.7, 1.0, 1.3) if metric == "cosine" else (0.0, 1e-10, 1.0, 1e10):
        assert_same_bits(X, V, metric, radius)


def test_distances_that_underflow_are_found():
    """The pair rule computes 0 for rows that differ by 1e-170, and radius 0 takes them in."""
    X, V = np.zeros((100, 2)), np.zeros((5, 2))
    X[:, 0] = np.linspace(1e-170, 9e-170, 100)
    assert near_counts(X, V, "euclidean", 0.0, "tree").tolist() == [100] * 5
    assert near_counts(X, V, "euclidean", 0.0, "all").tolist() == [100] * 5


@pytest.mark.parametrize("radius", [0.0, 0.4, 0.9999, 1.0, 1.5, 2.0])
def test_zero_rows_have_cosine_distance_one_for_a_tree_too(radius, rng):
    X, V = rng.standard_normal((200, 3)), rng.standard_normal((50, 3))
    X[::7], V[::5] = 0.0, 0.0
    got, want = (near_counts(X, V, "cosine", radius, way) for way in ("tree", "all"))
    np.testing.assert_array_equal(got, want)


def copies(metric, rng):
    """One row a leaf, 32 times over: a box is that row, and the limit alone decides."""
    rows, V = rng.standard_normal((40, 5)), rng.standard_normal((60, 5))
    if metric == "cosine":
        V[:40] = rows[:40] * 3.7  # at distance 0 but for rounding
    radii = [0.0, 1e-16] if metric == "cosine" else []
    points, validation = (measure("X", A, cosine=False) for A in (rows, V))
    for i in range(12):
        pair = rows[i], V[i + 40 - 40 * (metric == "euclidean")]
        at = i + 40 - 40 * (metric == "euclidean")
        radii.append(distance(*pair, points.squares[i], validation.squares[at], metric == "cosine"))
    return np.repeat(rows, 32, axis=0), V, radii


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_on_the_radius_are_found_only_because_the_limit_is_enlarged(metric, rng, monkeypatch):
    X, V, radii = copies(metric, rng)

    def missed():
        return sum(
            int(abs(near_counts(X, V, metric, r, "tree") - near_counts(X, V, metric, r, "all")).sum())
            for r in radii
        )  # fmt: skip

    assert missed() == 0
    plain = {
        "cosine": lambda self, *_: 2 * self.radius,
        "euclidean": lambda self, *_: (self.radius * self.scale) ** 2,
    }
    monkeypatch.setattr(Space, "limit", plain[metric])
    assert missed() > 0


def test_projections_are_no_longer_than_rows(rng):
    X = rng.standard_normal((300, 60)) * np.linspace(3, 0.1, 60)
    rows = measure("X", X, cosine=False)
    space = Space.of(rows, rows, "euclidean", 1.0)
    assert space.directions.shape == (60, 16)
    assert bent(space.directions) < 1e-12
    C = space.coordinates(rows, slice(None))
    flat = space.flat(C)
    lost = 1 - (flat**2).sum() / (C**2).sum()
    assert (
        0 < lost < 0.45
    )  # of a random choice 0.73: the directions are those in which rows differ most
    apart = np.linalg.norm(flat[:, None] - flat, axis=2) - np.linalg.norm(C[:, None] - C, axis=2)
    assert apart.max() < 1e-12


def test_blocks_begin_at_multiples_of_64_and_follow_the_visits(rng, small_leaves):
    X, V = rng.standard_normal((2000, 2)), rng.standard_normal((1500, 2))
    rows = [measure("X", A, cosine=False) for A in (X, V)]
    groups = Groups.of(np.zeros(2000, np.int32), 1)
    sizes = {}
    for radius in (0.01, 5.0):
        whole = BoxTree.of(rows[0], Space.of(*rows, "euclidean", radius))
        blocks = list(tree_blocks(whole, rows[0], groups.positions, groups.starts, rows[1]))
        starts = [block.columns.start for block in blocks]
        assert all(start % 64 == 0 for start in starts)
        assert [b.columns.stop for b in blocks] == [*starts[1:], 1500]
        sizes[radius] = max(len(block.visits) for block in blocks)
        assert sizes[radius] <= tree.VISITS + tree.thread_count() * 64 * 63
    assert sizes[0.01] < sizes[5.0]
    assert sizes[5.0] % (64 * 63) == 0  # every leaf, for the least of blocks


def test_a_block_ends_after_enough_visits_whatever_the_one_before_it_made(rng, small_leaves):
    """Validation points that touch nothing at first, and then every leaf."""
    small_leaves.setattr(tree, "VISITS", 20_000)
    X, V = rng.standard_normal((2000, 2)), rng.standard_normal((4000, 2))
    V[:128] += 100
    rows = [measure("X", A, cosine=False) for A in (X, V)]
    groups = Groups.of(np.zeros(2000, np.int32), 1)
    whole = BoxTree.of(rows[0], Space.of(*rows, "euclidean", 50.0))
    blocks = list(tree_blocks(whole, rows[0], groups.positions, groups.starts, rows[1]))
    assert blocks[0].columns.stop == 128
    assert len(blocks[0].visits) == 0
    assert max(len(block.visits) for block in blocks) <= 2 * 20_000
    assert sum(len(block.visits) for block in blocks) == 63 * 3872


def test_many_classes_make_small_blocks(rng, small_leaves):
    small_leaves.setattr(visits, "CELLS", 1 << 14)
    X, V = rng.standard_normal((500, 2)), rng.standard_normal((600, 2))
    data = X, np.arange(500) % 100, V, np.arange(600) % 100
    rows = [measure("X", A, cosine=False) for A in (X, V)]
    groups = Groups.of(data[1].astype(np.int32), 100)
    whole = BoxTree.of(rows[0], Space.of(*rows, "euclidean", 0.1))
    blocks = tree_blocks(whole, rows[0], groups.positions, groups.starts, rows[1])
    assert {block.columns.stop - block.columns.start for block in blocks} == {64, 600 % 64}
    found = [th.tknn_shapley(*data, radius=0.1, metric="euclidean", neighbors=way)
             for way in ("all", "tree")]  # fmt: skip
    assert found[0] == found[1]


@pytest.mark.parametrize("radius", [1e154, 1e200, 1.7e308, np.inf])
def test_auto_takes_radii_whose_squares_are_too_large(radius, rng):
    rows = [measure("X", rng.standard_normal((n, 3)), cosine=False) for n in (50_000, 3000)]
    assert costs.tree_pays(*rows, "euclidean", radius) is False


def test_asking_whether_a_tree_pays_takes_little_memory_for_wide_rows(rng):
    row = rng.standard_normal(1024).astype(np.float32)
    points, validation = (Rows(np.broadcast_to(row, (n, 1024)), np.full(n, row @ row))
                          for n in (50_000, 20_000))  # fmt: skip
    tracemalloc.start()
    assert not costs.tree_pays(points, validation, "euclidean", 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000  # 16 MB of them are the sample


def test_the_same_bits_for_any_threads_leaves_and_blocks(rng, small_leaves):
    X, V = rng.standard_normal((3000, 3)), rng.standard_normal((700, 3))
    y, y_val = rng.integers(0, 3, 3000), rng.integers(0, 4, 700)

    def values(way="tree"):
        return th.tknn_shapley(
            X, y, V, y_val, radius=0.5, metric="euclidean", neighbors=way
        ).values.tobytes()

    want = values("all")
    for name, number in [("LEAF", 256), ("LEAF", 96), ("VISITS", 1), ("FIRST_BLOCK", 64), ("QUERIES", 1),
                         ("JOB_VISITS", 1), ("JOB_LEAVES", 1), ("MOST_BLOCK", 64)]:  # fmt: skip
        for module in (tree, visits):
            if hasattr(module, name):
                small_leaves.setattr(module, name, number)
        assert values() == want, name
    small_leaves.setenv("THRESHER_THREADS", "3")
    assert values() == want


def big_problem(width, share, n=12_000, m=24_000):
    rng = np.random.default_rng(3)
    X, V = (rng.standard_normal((k, width)).astype(np.float32) for k in (n, m))
    apart = np.linalg.norm(X[:200, None] - V[None, :500], axis=2)
    radius = float(np.quantile(apart, share))
    return X, rng.integers(0, 2, n), V, rng.integers(0, 2, m), radius


@pytest.mark.parametrize(
    ("width", "share", "want"), [(2, 1e-4, "tree"), (2, 0.3, "all"), (12, 0.02, "all"), (20, 1e-3, "all")]
)  # fmt: skip
def test_auto_takes_a_tree_where_it_pays(width, share, want, small_leaves):
    small_leaves.setattr(tree, "LEAF", costs.LEAF)
    small_leaves.setattr(costs, "WORTH_ASKING", 0)
    X, _, V, _, radius = big_problem(width, share)
    rows = [measure("X", A, cosine=False) for A in (X, V)]
    for _ in range(3):
        found = Ball(rows[1], len(V), "euclidean", radius).tree(rows[0])
        assert ("all" if found is None else "tree") == want


def test_auto_looks_at_all_pairs_of_small_problems_without_a_sample(rng, monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr(costs, "expect", never)
    X, V = rng.standard_normal((5000, 2)), rng.standard_normal((5000, 2))
    rows = [measure("X", A, cosine=False) for A in (X, V)]
    assert Ball(rows[1], len(V), "euclidean", 1e-3).tree(rows[0]) is None


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [3, 24])
def test_a_sample_says_how_many_leaves_are_touched_and_pairs_near(metric, width, rng, small_leaves):
    small_leaves.setattr(tree, "LEAF", costs.LEAF)
    X, V = rng.standard_normal((40_000, width)), rng.standard_normal((2000, width))
    rows = [measure("X", A, cosine=metric == "cosine") for A in (X, V)]
    radius = {3: 0.3, 24: 4.5}[width] if metric == "euclidean" else {3: 0.01, 24: 0.4}[width]
    got = costs.expect(*rows, metric, radius)
    groups = Groups.of(np.zeros(40_000, np.int32), 1)
    blocks = list(Ball(rows[1], len(V), metric, radius, "tree").blocks(rows[0], groups))
    visits = sum(len(block.visits) for block in blocks) / 2000
    near = sum(int(block.count([(0, 40_000, 0)]).sum()) for block in blocks) / 8e7
    assert visits / 2 < got.visits < 2 * visits
    assert abs(got.near - near) < 0.5 * near + 1e-4
    assert costs.expect(*rows, metric, radius, most_near=near / 100) is None
