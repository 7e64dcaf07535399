"""A few rows far from all others cost no more than their own pairs, and change no bit."""

from __future__ import annotations

import numpy as np
import pytest
from test_near import near_matrix, oracle_matrix

import thresher as th
from thresher.kernels.masks import put_columns
from thresher.metrics import alike, measure
from thresher.neighbors import blocks as near
from thresher.neighbors import tiles
from thresher.neighbors.coordinates import Space
from thresher.neighbors.groups import Groups
from thresher.neighbors.tree import BoxTree
from thresher.neighbors.visits import tree_blocks

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")
METRICS = ["cosine", "euclidean"]
KINDS = {
    "none": ({}, {}),
    "point": ({7: 1e24}, {}),
    "validation": ({}, {70: 1e24}),
    "both": ({7: 1e24}, {70: 1e24}),
    "several": ({7: 1e24, 8: 1e10, 300: 1e40}, {70: -1e15, 71: 1e30, 72: 1e71}),
    "beyond float32": ({7: 1e60}, {}),
    "tiny": ({7: 1e-30}, {70: 1e-30}),
}


def problem(width, kind, points=400, validation=150):
    rng = np.random.default_rng(width)
    X, V = rng.standard_normal((points, width)), rng.standard_normal((validation, width))
    y, y_val = rng.integers(0, 3, points), rng.integers(0, 3, validation)
    for rows, found in zip((X, V), KINDS[kind], strict=True):
        for row, size in found.items():
            rows[row] = size / width
    return X, y, V, y_val


def radius_of(metric, width):
    return 0.8 if metric == "cosine" else 0.9 * width**0.5


def count_settled(monkeypatch):
    """The pairs that float32 could not decide."""
    counted = []
    honest = near.settle

    def settle(notes, *rest):
        counted.append(int(np.bitwise_count(notes[:, 2]).sum()))
        honest(notes, *rest)

    monkeypatch.setattr(near, "settle", settle)
    return counted


@pytest.mark.parametrize("kind", [*KINDS][1:])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [5, 50])
def test_outliers_put_no_other_pair_in_doubt(kind, metric, width, monkeypatch):
    """All 60,000 pairs were decided by the pair rule for one row of 1e24."""
    counted, settled = count_settled(monkeypatch), {}
    for each in ("none", kind):
        counted.clear()
        data = problem(width, each)
        th.tknn_shapley(*data, radius=radius_of(metric, width), metric=metric, neighbors="all")
        settled[each] = sum(counted)
    assert settled["none"] < 600
    assert settled[kind] <= settled["none"] + 9  # pairs of one outlier with another


def test_rows_and_columns_of_many_sizes_are_decided_by_float32(monkeypatch, rng):
    counted = count_settled(monkeypatch)
    X, V = rng.standard_normal((500, 5)), rng.standard_normal((200, 5))
    X[::2], V[1::2] = X[::2] * 1e30, V[1::2] * 1e30
    data = X, rng.integers(0, 2, 500), V, rng.integers(0, 2, 200)
    for radius in (1.5, 1.5e30):
        th.tknn_shapley(*data, radius=radius, metric="euclidean", neighbors="all")
    assert sum(counted) < 0.01 * 2 * 500 * 200


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [2, 20])
def test_pairs_of_every_size_are_decided_as_by_the_oracle(metric, width, rng):
    V = rng.standard_normal((70, width)) * 10.0 ** rng.integers(-60, 60, (70, 1))
    V[3] = V[0]
    X = V[rng.integers(0, 70, 120)] * (1 + 10.0 ** rng.integers(-9, 1, (120, 1)))
    for radius in (0.3, 1.0) if metric == "cosine" else (0.0, 1e-40, 1.0, 1e20, 1e59):
        got = near_matrix(X, V, metric, radius)
        np.testing.assert_array_equal(got, oracle_matrix(X, V, metric, radius), f"radius {radius}")


def test_validation_points_of_one_size_share_a_score():
    rows = measure("X", np.array([[1.0], [1000.0], [0.5], [2.0], [1e9], [0.0]]), cosine=False)
    found = [places.tolist() for places in alike(rows, "euclidean", 1.0)]
    assert found[0] == [0, 2, 3, 5]
    assert sorted(found[1:]) == [[1], [4]]
    assert [places.tolist() for places in alike(rows, "euclidean", np.inf)] == [[0, 1, 2, 3, 4, 5]]
    assert [places.tolist() for places in alike(rows, "cosine", 1.0)] == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize("kernel", [put_columns, put_columns.py_func], ids=["jit", "python"])
def test_columns_are_put_in_their_places(kernel, rng):
    found = rng.random((9, 64)) < 0.3
    places = np.sort(rng.permutation(128)[:40])
    found[:, 40:] = False
    found[4] = False
    others = rng.random((9, 128)) < 0.2
    others[:, places] = False
    words = np.packbits(others, axis=1, bitorder="little").view(np.uint32)
    kernel(np.packbits(found, axis=1, bitorder="little").view(np.uint32), places, words)
    others[:, places] = found[:, :40]
    np.testing.assert_array_equal(
        np.unpackbits(words.view(np.uint8), axis=1, bitorder="little"), others
    )


@pytest.mark.parametrize("kind", ["point", "validation", "beyond float32", "several"])
@pytest.mark.parametrize("width", [3, 20])
def test_a_tree_visits_no_more_boxes_for_an_outlier(kind, width, monkeypatch):
    monkeypatch.setattr("thresher.neighbors.tree.LEAF", 32)
    visits = {}
    for each in ("none", kind):
        X, _, V, _ = problem(width, each)
        points, validation = (measure("X", A, cosine=False) for A in (X, V))
        space = Space.of(points, validation, "euclidean", 0.2 * width**0.5)
        tree, groups = BoxTree.of(points, space), Groups.of(np.zeros(len(X), np.int32), 1)
        blocks = tree_blocks(tree, points, groups.positions, groups.starts, validation)
        visits[each] = sum(len(block.visits) for block in blocks)
    assert visits[kind] < 1.2 * visits["none"] < 0.8 * len(V) * len(tree.columns)


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("width", [3, 20])
def test_a_tree_gives_the_bits_of_all_pairs_with_outliers(kind, width, monkeypatch):
    monkeypatch.setattr("thresher.neighbors.tree.LEAF", 32)
    data = problem(width, kind)
    for radius in (0.0, 0.2 * width**0.5, 2e24):
        options = {"radius": radius, "metric": "euclidean"}
        by_all, by_tree = (
            th.tknn_shapley(*data, **options, neighbors=each).values for each in ("all", "tree")
        )
        assert by_all.tobytes() == by_tree.tobytes()


def test_rows_that_are_near_none_are_told_by_their_length():
    space = Space.of(
        measure("X", np.array([[1.0], [2.0], [50.0], [1e9]]), cosine=False),
        measure("X", np.array([[3.0], [1e20]]), cosine=False), "euclidean", 1.0,
    )  # fmt: skip
    assert 3 <= space.longest < 3.001
    everything = Space.of(
        measure("X", np.array([[1.0], [50.0]]), cosine=False),
        measure("X", np.array([[3.0]]), cosine=False), "euclidean", 47.0,
    )  # fmt: skip
    assert 50 <= everything.longest < 50.001


@pytest.mark.parametrize("width", [5, 50])
@pytest.mark.parametrize("function", [th.tknn_shapley, th.knn_shapley])
def test_how_far_an_outlier_is_changes_no_bit(function, width):
    """It is the farthest point of all, near to nobody: at 1e6 as at 1e60."""
    options = {"radius": 0.9 * width**0.5} if function is th.tknn_shapley else {"k": 5}
    found = set()
    for size in (1e6, 1e24, 1e60):
        X, y, V, y_val = problem(width, "none")
        X[7], X[300] = size, -2 * size
        found.add(function(X, y, V, y_val, metric="euclidean", **options).values.tobytes())
    assert len(found) == 1


def count_compared(monkeypatch):
    """The distances of products that the pair rule had to tell apart."""
    compared = []
    honest = tiles.ProductTiles.pair_keys

    def pair_keys(self, v, which):
        compared.append(len(which))
        return honest(self, v, which)

    monkeypatch.setattr(tiles.ProductTiles, "pair_keys", pair_keys)
    return compared


def test_an_outlier_makes_no_other_distances_near_ties(monkeypatch):
    compared = count_compared(monkeypatch)
    for kind in ("point", "beyond float32"):
        th.knn_shapley(*problem(50, kind), metric="euclidean")
    assert sum(compared) < 100  # of 120,000


def test_an_outlier_takes_no_room_in_float32_from_others():
    """With its distance as the largest number of float32 all others were 0, and sorted again."""
    for kind in ("point", "validation", "beyond float32", "several"):
        factors = []
        for each in ("none", kind):
            X, _, V, _ = problem(5, each)
            rows = [measure("X", A, cosine=False) for A in (X, V)]
            factors.append(tiles.range_factor(*rows, "float64", cosine=False))
        assert factors == [1.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [5, 50])
def test_rows_far_from_the_origin_put_no_pair_in_doubt(width, dtype, monkeypatch):
    """Times, say, as seconds since 1970: all pairs were decided by the pair rule, 60 times slower.

    All numbers are exact in both places, so that values have the same bits.
    """
    settled, compared = count_settled(monkeypatch), count_compared(monkeypatch)
    X, y, V, y_val = problem(width, "none")
    X, V = np.rint(X * 2**9) / 2**9, np.rint(V * 2**9) / 2**9
    V[70] = 1e4  # far from the others, which no center may follow
    found, work = set(), []
    for far in (0.0, 2.0**14):
        data = (X + far).astype(dtype), y, (V + far).astype(dtype), y_val
        settled.clear(), compared.clear()
        near = th.tknn_shapley(*data, radius=0.9 * width**0.5, metric="euclidean", neighbors="all")
        order = th.knn_shapley(*data, metric="euclidean")
        found.add((near.values.tobytes(), order.values.tobytes()))
        work.append((sum(settled), sum(compared)))
    assert len(found) == 1
    assert work[1][0] <= work[0][0] + 60  # of 60,000
    assert work[1][1] <= work[0][1] + 60


def test_nearest_rows_are_told_apart_where_squares_underflow():
    """One row of a usual length hides that the others are tiny."""
    rows = np.array([[0.7] * 25, [-1.9] * 25]) * 2.0**-537
    judges = np.array([[-0.7 * 2.0**-537] * 25, [1.0] * 25])
    found = th.knn_shapley(rows, [0, 1], judges, [0, 0], k=1, metric="euclidean")
    narrow = th.knn_shapley(rows[:, :24], [0, 1], judges[:, :24], [0, 0], k=1, metric="euclidean")
    np.testing.assert_array_equal(found.values, [1, -1])
    np.testing.assert_array_equal(narrow.values, [1, -1])


@pytest.mark.parametrize("n", [63, 64, 200])
def test_rows_that_are_all_alike_are_no_tiny_rows(n):
    """From their center they are 0."""
    y, judges = np.arange(n) % 2, np.ones((2, 25))
    with pytest.warns(th.TwinWarning):
        found = th.knn_shapley(np.ones((n, 25)), y, judges, [0, 0], k=1, metric="euclidean")
    with pytest.warns(th.TwinWarning):
        narrow = th.knn_shapley(
            np.ones((n, 24)), y, judges[:, :24], [0, 0], k=1, metric="euclidean"
        )
    np.testing.assert_array_equal(found.values, narrow.values)


def test_tiny_columns_beside_a_constant_one_are_told_apart():
    rng = np.random.default_rng(0)
    rows, judges = (np.c_[np.ones(n), rng.normal(size=(n, 25)) * 1e-60] for n in (100, 5))
    y = rng.integers(0, 2, 100)
    found = th.knn_shapley(rows, y, judges, [0, 1, 0, 1, 0], metric="euclidean")
    rows[:, 0] = judges[:, 0] = 0
    scaled = th.knn_shapley(rows * 1e60, y, judges * 1e60, [0, 1, 0, 1, 0], metric="euclidean")
    np.testing.assert_allclose(found.values, scaled.values, atol=1e-12)
