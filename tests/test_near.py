"""The pair rule: near or not is a function of two rows, whatever surrounds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import is_near

import thresher as th
from thresher.inputs.checks import check_features
from thresher.inputs.precomputed import Distances
from thresher.kernels.bits import (
    add_by_bits,
    add_by_tables,
    byte_tables,
    count_columns,
)
from thresher.kernels.masks import direct_words, distance_words, product_words
from thresher.kernels.pairs import settle
from thresher.metrics import Scaled, measure, score
from thresher.neighbors import blocks as near_module
from thresher.neighbors.blocks import near_blocks
from thresher.neighbors.groups import Groups

METRICS = ["cosine", "euclidean"]


def near_matrix(X, V, metric, radius):
    """Near or not, points x validation points, as the library decides it."""
    points, validation = (
        measure("X", check_features("X", A), cosine=metric == "cosine", zero_rows=True)
        for A in (X, V)
    )
    groups = Groups.of(np.zeros(len(X), np.int32), 1)
    found = np.zeros((len(X), len(V)), bool)
    for block in near_blocks(points, groups, validation, metric=metric, radius=radius):
        bits = np.unpackbits(block.words.view(np.uint8), axis=1, bitorder="little")
        assert not bits[:, block.columns.stop - block.columns.start :].any()  # the padding
        found[:, block.columns] = bits[:, : block.columns.stop - block.columns.start]
    return found


def oracle_matrix(X, V, metric, radius):
    return np.array([[is_near(x, v, metric, radius) for v in V] for x in X])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 17, 40, 128, 150])
def test_points_exactly_on_the_radius_are_near(metric, width, rng):
    """Small integers: thousands of pairs lie exactly on the radius, and float64 holds them exactly."""
    X = rng.integers(-2, 3, (40, width))
    V = rng.integers(-2, 3, (20, width))
    X[(X == 0).all(axis=1)] += 1
    V[(V == 0).all(axis=1)] += 1
    for radius in (0.0, 0.5, 1.0, 1.5, 2.0) if metric == "cosine" else (0.0, 1.0, 2.0, 3.0, 4.0):
        got = near_matrix(X.astype(np.float32), V.astype(np.float32), metric, radius)
        np.testing.assert_array_equal(got, oracle_matrix(X, V, metric, radius), f"radius {radius}")


def test_a_distance_equal_to_the_radius_counts_though_its_square_is_rounded():
    for n in range(1, 200):
        assert near_matrix([[1.0] * n], [[0.0] * n], "euclidean", np.sqrt(n)).all(), n
    for a, b, c in [(3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29), (9, 40, 41)]:
        for leg in (a, b):
            x = [float(leg), float(np.sqrt(c * c - leg * leg))]
            radius = 1 - leg / c
            assert near_matrix([x], [[1.0, 0.0]], "cosine", radius).all(), (leg, c)
    for tenth in range(1, 10):  # similarities 0.1 to 0.9 at the radii a person would write
        x = [float(tenth), float(np.sqrt(100 - tenth**2))]
        x2 = x[0] ** 2 + x[1] ** 2
        if x2 == 100.0:
            assert near_matrix([x], [[1.0, 0.0]], "cosine", (10 - tenth) / 10).all(), tenth


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [3, 20])
def test_pairs_within_float32_rounding_of_the_radius_are_decided_in_float64(metric, width, rng):
    V = rng.standard_normal((8, width))
    X = rng.standard_normal((16, width))
    for x, v in zip(X[:8], V, strict=True):
        distance = (
            np.sqrt(((x - v) ** 2).sum())
            if metric == "euclidean"
            else 1 - x @ v / np.linalg.norm(x) / np.linalg.norm(v)
        )
        for radius in distance * (1 + np.array([-1e-7, -1e-12, 1e-12, 1e-7])):
            got = near_matrix(X, V, metric, radius)
            np.testing.assert_array_equal(got, oracle_matrix(X, V, metric, radius))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [5, 30])
def test_the_answer_does_not_depend_on_dtype_layout_or_other_rows(metric, width, rng, tmp_path):
    X = rng.integers(-8, 9, (90, width)).astype(np.float16)
    X[X.any(axis=1) == 0] = 1
    V = X[::3][::-1].copy()
    V[:, 0] += 1
    radius = 0.5 if metric == "cosine" else float(np.sqrt(width)) * 6
    want = near_matrix(X, V, metric, radius)
    assert 0 < want.mean() < 1
    memmap = np.memmap(tmp_path / "x.bin", np.float32, "w+", shape=X.shape)
    memmap[:] = X
    wide = np.zeros((180, width + 3), np.float64)
    wide[::2, 1:-2] = X
    forms = [X.astype(np.float32), X.astype(np.float64), np.asfortranarray(X, np.float32), memmap,
             wide[::2, 1:-2], X.astype(np.float64)[::-1][::-1]]  # fmt: skip
    for form in forms:
        np.testing.assert_array_equal(near_matrix(form, V, metric, radius), want)
    for i in (0, 44, 89):
        np.testing.assert_array_equal(near_matrix(X[i : i + 1], V, metric, radius)[0], want[i])
    np.testing.assert_array_equal(near_matrix(X, V[4:5], metric, radius)[:, 0], want[:, 4])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [2, 33])
@pytest.mark.parametrize("size", [1e-60, 1e-25, 1e-8, 1e8, 1e25, 1e60])
def test_huge_and_tiny_numbers_are_decided_rightly(metric, width, size, rng):
    X, V = rng.standard_normal((30, width)) * size, rng.standard_normal((20, width)) * size
    radius = 0.8 if metric == "cosine" else size * float(np.sqrt(2 * width))
    got = near_matrix(X, V, metric, radius)
    assert got.any()
    assert not got.all()
    np.testing.assert_array_equal(got, oracle_matrix(X, V, metric, radius))


@pytest.mark.parametrize("metric", METRICS)
def test_rows_of_very_different_length_are_decided_rightly(metric, rng):
    sizes = 10.0 ** rng.integers(-20, 21, (40, 1))
    X, V = rng.standard_normal((40, 4)) * sizes, rng.standard_normal((25, 4)) * sizes[:25]
    for radius in (0.7, 1.0, 1.3) if metric == "cosine" else (1e-10, 1.0, 1e10):
        got = near_matrix(X, V, metric, radius)
        np.testing.assert_array_equal(got, oracle_matrix(X, V, metric, radius))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [2, 33])
def test_an_infinite_radius_takes_in_everything_and_zero_only_equals(metric, width, rng):
    X = rng.standard_normal((20, width))
    V = np.concatenate([X[:3], -X[3:6], rng.standard_normal((3, width))])
    assert near_matrix(X, V, metric, np.inf).all()
    assert near_matrix(X, V, metric, 0.0).sum() == 3


@pytest.mark.parametrize("kernel", ["jit", "python"])
@pytest.mark.parametrize("metric", METRICS)
@given(data=st.data())
@settings(max_examples=25)
def test_mask_kernels_equal_the_oracle(kernel, metric, data):
    plain = (lambda f: f.py_func) if kernel == "python" else (lambda f: f)
    width, n, m = data.draw(st.sampled_from([(1, 3, 2), (3, 2, 33), (9, 4, 5)]))
    entry = st.integers(-2, 2).filter(bool) if width == 1 else st.integers(-2, 2)
    row = st.lists(entry, min_size=width, max_size=width).filter(any)
    X, V = (np.array(data.draw(st.lists(row, min_size=k, max_size=k)), np.float64) for k in (n, m))
    radius = data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.0]))
    points, validation = (measure("X", A, cosine=False) for A in (X, V))
    lanes = 64
    s = score(validation, lanes, metric, radius, points.largest_norm())
    scaled, positions = Scaled.of(points, s, metric), np.arange(n)[::-1].copy()
    norms, tile = scaled.norms, scaled.tile(0, n)
    for direct in (True, False):
        words = np.full((n, lanes // 32), 7, np.uint32)
        notes = np.empty((n * lanes // 32, 3), np.uint32)
        if direct:
            dims = (0,) * width
            count = plain(direct_words)(
                tile, dims, norms, s.columns, s.level, s.numbers, positions, words, notes
            )
        else:
            product = np.dot(tile, s.columns[:, :m])
            count = plain(product_words)(
                product, norms, s.level, s.numbers, positions, words, notes
            )
        where = notes[:count, 0].astype(np.int64)
        plain(settle)(
            notes[:count], where, X, points.squares, V, validation.squares, metric == "cosine", radius,
            positions, words,
        )  # fmt: skip
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[positions, :m]
        np.testing.assert_array_equal(bits.astype(bool), oracle_matrix(X, V, metric, radius))


@pytest.mark.parametrize("kernel", [count_columns, count_columns.py_func], ids=["jit", "python"])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 100])
def test_columns_are_counted(kernel, n, rng):
    words = rng.integers(0, 2**32, (n + 5, 3), np.uint32)
    counts = np.ones(96, np.int64)
    kernel(words, 2, n + 2, counts)
    bits = np.unpackbits(words[2 : n + 2].view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_array_equal(counts, 1 + bits.sum(axis=0))


def test_columns_are_counted_past_what_the_slices_hold(rng):
    words = np.full((100_003, 2), 0xFFFFFFFF, np.uint32)
    counts = np.zeros(64, np.int64)
    count_columns(words, 0, len(words), counts)
    assert (counts == 100_003).all()


@pytest.mark.parametrize("plain", [False, True], ids=["jit", "python"])
def test_sums_by_tables_and_by_bits_agree_to_the_last_bit(plain, rng):
    f = (lambda k: k.py_func) if plain else (lambda k: k)
    words = rng.integers(0, 2**63, (300, 2), np.uint64) * np.uint64(2)
    weights = rng.standard_normal(128)
    tables = np.empty((16, 256))
    f(byte_tables)(weights, tables)
    by_tables, by_bits = np.zeros(300), np.zeros(300)
    f(add_by_tables)(words, 1, 299, tables, by_tables)
    f(add_by_bits)(words, 1, 299, weights, by_bits)
    assert by_tables.tobytes() == by_bits.tobytes()
    assert by_tables[0] == by_tables[299] == 0.0
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_allclose(by_tables[1:299], (bits @ weights)[1:299], atol=1e-12)


@pytest.mark.parametrize("kernel", [distance_words, distance_words.py_func], ids=["jit", "python"])
def test_given_distances_are_compared_as_they_are(kernel, rng):
    D = rng.integers(0, 4, (5, 40)).astype(np.float64)
    words = np.full((5, 2), 9, np.uint32)
    kernel(D, 2.0, np.arange(5), words)
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_array_equal(bits[:, :40].astype(bool), D <= 2)
    assert not bits[:, 40:].any()


@pytest.mark.parametrize("size", [1, 63, 64, 65, 511, 512, 513, 1100])
def test_blocks_cover_the_validation_set_once(size):
    for points, most in ((10, near_module.SMALL_BLOCK), (10**7, near_module.BLOCK)):
        lanes = near_module.lanes_of(size, near_module.Task.most_lanes(points))
        assert lanes % 64 == 0
        assert lanes <= most
        assert -(-size // lanes) == -(-size // most)


def test_segments_keep_wanted_classes_apart_and_merge_the_rest():
    groups = Groups.of(np.array([2, 0, 4, 0, 2, 1], np.int32), 5)
    assert groups.positions.tolist() == [3, 0, 5, 1, 4, 2]
    assert groups.segments(np.array([2])) == [(0, 3, -1), (3, 5, 2), (5, 6, -1)]
    assert groups.segments(np.array([0, 3, 4])) == [(0, 2, 0), (2, 5, -1), (5, 6, 4)]


@pytest.mark.parametrize("width", [3, 30])
def test_the_same_bits_for_any_threads_tiles_and_blocks(width, rng, monkeypatch):
    X, V = rng.standard_normal((3000, width)), rng.standard_normal((700, width))
    groups = Groups.of(rng.integers(0, 3, 3000).astype(np.int32), 3)
    weights = rng.standard_normal((3, 700))

    def sums():
        out = np.zeros(3000)
        rows = [measure("X", A, cosine=True) for A in (X, V)]
        for block in near_blocks(rows[0], groups, rows[1], metric="cosine", radius=0.7):
            segments = groups.segments(np.arange(3))
            block.add(segments, weights[:, block.columns], out)
        return out.tobytes()

    want = sums()
    for name, number in [("SMALL_BYTES", 0), ("BLOCK", 64), ("BLOCK", 192), ("TILE", 100), ("TILE_NUMBERS", 1), ("PARALLEL_WORK", 0),
                         ("TABLE_ROWS", 10**9), ("DIRECT_WIDTH", 0), ("DIRECT_WORDS", 1)]:  # fmt: skip
        monkeypatch.setattr(near_module, name, number)
        assert sums() == want, name
    monkeypatch.setenv("THRESHER_THREADS", "3")
    assert sums() == want


def test_distances_in_blocks_equal_the_whole(rng):
    D = rng.random((20, 1100))
    groups = Groups.of(np.zeros(20, np.int32), 1)

    def counts(source):
        blocks = near_blocks(
            Distances(source, 20, 1100), groups, None, metric="precomputed", radius=0.5
        )
        return np.concatenate([b.count([(0, 20, 0)])[0] for b in blocks])

    want = (D <= 0.5).sum(axis=0)
    np.testing.assert_array_equal(counts(D), want)
    np.testing.assert_array_equal(counts(D[:, lo : lo + 130] for lo in range(0, 1100, 130)), want)


@pytest.mark.parametrize("count", [1, 100, 200, 241, 700])
@pytest.mark.parametrize("method", [th.tknn_shapley, th.knn_shapley], ids=["tknn", "knn"])
def test_no_bit_of_a_value_depends_on_how_distances_are_cut(method, count, rng):
    """Blocks of any width, of one width or of many, in an array that is filled again and again."""
    D = rng.random((61, count))
    y, y_val = rng.integers(0, 3, 61), rng.integers(0, 3, count)

    def values(X):
        return method(X, y, None, y_val, metric="precomputed").values.tobytes()

    def in_turn(ends):
        buffer = np.empty(D.shape)
        for part in np.split(D, ends, axis=1):
            block = buffer[:, : part.shape[1]]
            block[:] = part
            yield block

    want = values(D)
    for width in (1, 13, 50, 63, 64, 65, 127, 500, 513):
        assert values(D[:, lo : lo + width] for lo in range(0, count, width)) == want
    for _ in range(5):
        assert values(in_turn(np.sort(rng.integers(0, count + 1, 6)))) == want
    mixed = [D[:, : count // 2], D[:, count // 2 :].astype(np.float32)]
    assert values(mixed) == values(np.concatenate(mixed, axis=1))
