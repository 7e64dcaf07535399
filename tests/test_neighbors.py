"""A tree gives the bits that all pairs give."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher as th
from thresher.explained import explain
from thresher.kernels.bits import add_by_bits, add_visits, count_visits
from thresher.kernels.boxes import (
    fill_leaves,
    fill_parents,
    gaps,
    group_by_leaf,
    split_nodes,
    touch,
)
from thresher.kernels.masks import visit_words
from thresher.kernels.pairs import distance, settle_visits, similarity
from thresher.metrics import measure
from thresher.neighbors import ball as neighbors
from thresher.neighbors import costs, tree, visits
from thresher.neighbors.ball import Ball
from thresher.neighbors.blocks import near_blocks
from thresher.neighbors.coordinates import Space, bent
from thresher.neighbors.groups import Groups
from thresher.neighbors.tree import Tree
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


@contextmanager
def by(way):
    """Let "auto" be one way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "tree_pays", lambda *_: way == "tree")
        yield


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
        whole = Tree.of(rows[0], Space.of(*rows, "euclidean", radius))
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
    whole = Tree.of(rows[0], Space.of(*rows, "euclidean", 50.0))
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
    whole = Tree.of(rows[0], Space.of(*rows, "euclidean", 0.1))
    blocks = tree_blocks(whole, rows[0], groups.positions, groups.starts, rows[1])
    assert {block.columns.stop - block.columns.start for block in blocks} == {64, 600 % 64}
    found = [th.tknn_shapley(*data, radius=0.1, metric="euclidean", neighbors=way)
             for way in ("all", "tree")]  # fmt: skip
    assert found[0] == found[1]


@pytest.mark.parametrize("radius", [1e154, 1e200, 1.7e308, np.inf])
def test_auto_takes_radii_whose_squares_are_too_large(radius, rng):
    rows = [measure("X", rng.standard_normal((n, 3)), cosine=False) for n in (50_000, 3000)]
    assert costs.tree_pays(*rows, "euclidean", radius) is False


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


def test_names_of_ways_are_checked(rng):
    X, y = rng.random((4, 2)), [0, 1, 0, 1]
    for name in ("brute", "approximate"):
        with pytest.raises(th.InputError, match="neighbors must be one of 'auto', 'all', 'tree'"):
            th.tknn_shapley(X, y, X + 1, y, neighbors=name)
    with pytest.raises(th.InputError, match="neighbors='tree' needs features"):
        th.tknn_shapley(X, y, None, [0, 1], metric="precomputed", neighbors="tree")


def everywhere(X, y, V, y_val, folder):
    """What the rest of the library computes from near pairs, as bytes."""
    data, kept = (X, y, V, y_val), {"metric": "euclidean", "radius": 0.4}
    valuation = th.tknn_shapley(*data, **kept)
    live = th.LiveCounts.create(folder, V, y_val, classes=[0, 1], **kept)
    with live:
        live.add_many(range(len(X)), X, y)
        present = live.values()
    lazy = th.tknn_shapley(da.from_array(X, chunks=(100, -1)), y, V, y_val, **kept)
    findings = explain(valuation, *data)
    classifier = th.TKNNClassifier(**kept).fit(X, y)
    found = {
        "parts": th.tknn_shapley(*data, memory="64GB", **kept).values,
        "dask": lazy.compute().values,
        "live": present.values,
        "live utility": np.array(present.utility_all),
        "zero budget": th.zero_budget_score(*data, **kept).values,
        "near": findings.near,
        "best": findings.best_value,
        "shares": classifier.predict_proba(V),
    }
    return valuation, {name: array.tobytes() for name, array in found.items()}


def test_whatever_is_computed_from_near_pairs_is_the_same_by_a_tree(rng, tmp_path):
    X, V = rng.standard_normal((400, 3)), rng.standard_normal((700, 3))
    data = X, rng.integers(0, 2, 400), V, rng.integers(0, 2, 700)
    with by("all"):
        valuation, want = everywhere(*data, tmp_path / "all")
    with by("tree"):
        by_tree, got = everywhere(*data, tmp_path / "tree")
    assert by_tree == valuation  # its record, too
    assert want["parts"] == want["dask"] == want["live"] == valuation.values.tobytes()
    assert want["live utility"] == np.array(valuation.utility_all).tobytes()
    for name in want:
        assert got[name] == want[name], name


def test_counts_removed_through_a_tree_leave_no_trace(rng):
    X, y = rng.standard_normal((300, 2)), rng.integers(0, 2, 300)
    V, y_val = rng.standard_normal((90, 2)), rng.integers(0, 2, 90)
    with by("tree"):
        counts = th.NeighborCounts(V, y_val, radius=0.3).add(X, y)
        assert counts.same.any()
        counts.remove(X[:100], y[:100])
    with by("all"):
        counts.remove(X[100:], y[100:])
    assert not counts.same.any()
    assert not counts.other.any()


def compiled_and_plain(kernel):
    return [kernel, kernel.py_func]


@pytest.mark.parametrize("n", [5, 32, 33, 100, 257])
def test_the_tree_halves_and_its_boxes_hold_their_points(n, rng):
    C = rng.integers(0, 5, (n, 3)).astype(np.float32)
    found = []
    for split, fill, parents in zip(
        *map(compiled_and_plain, (split_nodes, fill_leaves, fill_parents))
    ):
        order, keys = np.arange(n, dtype=np.uint32), np.empty(n, np.float32)
        offsets = tree._offsets(-(-n // 32))
        for level in range(len(offsets) - 2, 0, -1):
            split(C, order, keys, 0, int(offsets[level + 1] - offsets[level]), 32 << level)
        columns = np.full((offsets[1], 3, 32), np.nan, np.float32)
        low, high = np.empty((offsets[-1], 3), np.float32), np.empty((offsets[-1], 3), np.float32)
        fill(C, order, 0, len(columns), columns, low, high)
        parents(low, high, offsets)
        found.append((order, columns, low, high))
    for ours, theirs in zip(*found):
        np.testing.assert_array_equal(ours, theirs)
    assert sorted(order) == list(range(n))
    for level in range(len(offsets) - 1):
        for node in range(offsets[level + 1] - offsets[level]):
            rows = C[order[node * (32 << level) : (node + 1) * (32 << level)]]
            np.testing.assert_array_equal(low[offsets[level] + node], rows.min(axis=0))
            np.testing.assert_array_equal(high[offsets[level] + node], rows.max(axis=0))
    if n == 257:  # one cut in the middle of the longest direction parts the rows
        half = order[:256]
        assert any(C[half, k].max() <= C[order[256:], k].min() for k in range(3))


def test_a_walk_finds_the_boxes_that_the_gaps_say(rng):
    rows = measure("X", rng.standard_normal((500, 3)), cosine=False)
    whole = Tree.of(rows, Space.of(rows, rows, "euclidean", 1.0))
    Q, leaves = rng.standard_normal((20, 3)) * 2, int(whole.offsets[1])
    every = np.repeat(np.arange(20), leaves), np.tile(np.arange(leaves), 20)
    for gap, walk, group in zip(*map(compiled_and_plain, (gaps, touch, group_by_leaf))):
        out = np.empty(20 * leaves)
        gap(Q, whole.low, whole.high, *every, out)
        want = np.argwhere((out <= 0.3).reshape(20, leaves))
        written = np.empty((2, 20 * leaves), np.uint32)
        done, used = walk(Q, 0, whole.low, whole.high, whole.offsets, 0.3, *written)
        assert done == 20
        starts = np.empty(leaves + 1, np.int64)
        leaf_of, query_of = np.empty((2, used), np.uint32)
        group(*written[:, :used], starts, leaf_of, query_of)
        np.testing.assert_array_equal(
            np.column_stack([leaf_of, query_of]), want[np.lexsort(want.T)][:, ::-1]
        )
        np.testing.assert_array_equal(np.diff(starts), np.bincount(want[:, 1], minlength=leaves))
        done, used = walk(
            Q, 3, whole.low, whole.high, whole.offsets, 0.3, *written[:, : leaves + 1]
        )
        assert done < 20
        assert set(written[1, :used]) <= set(range(3, done))


def test_visit_kernels_equal_the_words_of_all_pairs(rng):
    """Bits, counts and sums of the tree's kernels, compiled and plain, against the dense ones."""
    X, V = rng.integers(-2, 3, (70, 2)).astype(float), rng.integers(-2, 3, (130, 2)).astype(float)
    codes = rng.integers(0, 3, 70).astype(np.int32)
    points, validation = (measure("X", A, cosine=False) for A in (X, V))
    groups = Groups.of(codes, 3)
    (dense,) = near_blocks(points, groups, validation, metric="euclidean", radius=1.0)
    weights = rng.standard_normal((130, 3))
    want = np.zeros(70)
    for code in range(3):
        padded = np.zeros(dense.words.shape[1] * 32)
        padded[:130] = weights[:, code]
        rows = int(groups.starts[code]), int(groups.starts[code + 1])
        add_by_bits(dense.words.view(np.uint64), *rows, padded, want)
    segments = groups.segments(np.arange(3))
    for visit, settled, count, add in zip(
        *map(compiled_and_plain, (visit_words, settle_visits, count_visits, add_visits))
    ):
        with pytest.MonkeyPatch.context() as patch:
            for name, kernel in [
                ("visit_words", visit),
                ("settle_visits", settled),
                ("count_visits", count),
                ("add_visits", add),
            ]:
                patch.setattr(visits, name, kernel)
            patch.setattr(visits, "FIRST_BLOCK", 192)
            whole = Tree.of(points, Space.of(points, validation, "euclidean", 1.0))
            with warnings.catch_warnings():  # plain Python: integers that are meant to wrap around
                warnings.simplefilter("ignore", RuntimeWarning)
                (block,) = tree_blocks(whole, points, groups.positions, groups.starts, validation)
                np.testing.assert_array_equal(block.count(segments), dense.count(segments))
                out = np.zeros(70)
                block.add(segments, weights.T, out)
        assert out.tobytes() == want.tobytes()


def test_similarities_of_unit_rows_bound_the_cosine_limit(rng):
    """|x/|x| - v/|v||^2 is twice the cosine distance, within what the limit allows for."""
    X, V = rng.standard_normal((50, 7)) * 1e3, rng.standard_normal((50, 7))
    rows = [measure("X", A, cosine=True) for A in (X, V)]
    for i in range(50):
        c = 1 - similarity(X[i], V[i], rows[0].squares[i], rows[1].squares[i])
        space = Space.of(*rows, "cosine", c)
        units = [space.coordinates(r, slice(i, i + 1)).astype(np.float32) for r in rows]
        gap = float(((units[0].astype(float) - units[1]) ** 2).sum())
        assert gap <= space.limit(1.0, 1.0)
        assert space.limit(1.0, 1.0) < gap * (1 + 1e-5)
