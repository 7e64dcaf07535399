"""Ways to find near points: which is taken, what it may cost, and that none leaves a trace."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
from tree_cases import by

import thresher as th
from thresher.findings.explanation import explain
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
from thresher.kernels.pairs import settle_visits, similarity
from thresher.metrics import measure
from thresher.neighbors import tree, visits
from thresher.neighbors.blocks import near_blocks
from thresher.neighbors.coordinates import Space
from thresher.neighbors.groups import Groups
from thresher.neighbors.tree import BoxTree
from thresher.neighbors.visits import tree_blocks

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
    whole = BoxTree.of(rows, Space.of(rows, rows, "euclidean", 1.0))
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
            whole = BoxTree.of(points, Space.of(points, validation, "euclidean", 1.0))
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
