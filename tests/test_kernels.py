"""Kernels that no other test runs both compiled and as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.kernels import codes as labels
from thresher.kernels import pairs

BOTH = pytest.mark.parametrize("plain", [False, True], ids=["jit", "python"])
WIDTHS = [1, 3, 7, 8, 9, 16, 17, 127, 128, 129, 200]


def form(plain):
    return (lambda kernel: kernel.py_func) if plain else (lambda kernel: kernel)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_a_pair_have_the_same_bits_compiled_and_not(width, dtype, rng):
    x, v = (rng.standard_normal(width).astype(dtype) for _ in range(2))
    x64, v64 = x.astype(np.float64), v.astype(np.float64)
    for kernel, want in [
        (pairs.dot, x64 @ v64),
        (pairs.squared_distance, ((x64 - v64) ** 2).sum()),
    ]:
        found = {float(f(a, b)) for f in (kernel, kernel.py_func) for a, b in [(x, v), (x64, v64)]}
        assert len(found) == 1  # neither the dtype nor the compiler changes a bit
        np.testing.assert_allclose(found.pop(), want, rtol=1e-13, atol=1e-13)
    x2, v2 = pairs.dot(x, x), pairs.dot(v, v)
    for kernel in (pairs.distance, pairs.order_key):
        for cosine in (False, True):
            assert kernel(x, v, x2, v2, cosine) == kernel.py_func(x, v, x2, v2, cosine)
    assert pairs.squared_distance(x, x) == 0.0
    assert pairs.distance(x, x, x2, x2, True) == 0.0


@BOTH
@pytest.mark.parametrize("width", WIDTHS)
def test_norms_are_products_of_a_row_with_itself_to_the_bit(plain, width, rng):
    X = rng.standard_normal((5, width))
    want = [pairs.dot(x, x) for x in X]
    for dims in ((), (0,) * width) if width <= 16 else ((),):
        out = np.empty(5)
        form(plain)(pairs.squared_norms)(X, dims, out)
        assert out.tolist() == want


@BOTH
def test_near_at_the_edges_of_the_radius(plain):
    is_near = form(plain)(pairs.is_near)
    x, v = np.array([3.0, 4.0]), np.array([1.0, 0.0])
    for cosine, radius, want in [
        (True, 0.4, True), (True, 0.39, False), (True, 2.0, True), (False, np.sqrt(20), True),
        (False, 4.4, False), (False, np.inf, True),
    ]:  # fmt: skip
        assert bool(is_near(x, v, 25.0, 1.0, cosine, radius)) is want
    zero = np.zeros(2)
    assert not is_near(zero, v, 0.0, 1.0, True, 0.9)
    assert is_near(zero, v, 0.0, 1.0, True, 1.0)


@BOTH
def test_fingerprints_tell_rows_and_labels_apart(plain, rng):
    X = rng.integers(0, 3, (60, 3)).astype(np.float64)
    X[0], X[1] = 0.0, -0.0
    salt = rng.integers(0, 2, 60)
    salt[:2] = 1
    out = np.empty(60, np.uint64)
    with np.errstate(over="ignore"):
        form(plain)(pairs.fingerprints)(X, salt, out)
    rows = [(*(row + 0.0).tolist(), int(mark)) for row, mark in zip(X, salt, strict=True)]
    assert len(set(out.tolist())) == len(set(rows)) < 60
    assert len(set(zip(out.tolist(), rows, strict=True))) == len(set(rows))
    assert out[0] == out[1]


@BOTH
def test_integer_labels_are_coded_by_a_table(plain):
    f = form(plain)
    seen = np.zeros(4, np.bool_)
    f(labels.present_integers)(np.array([7, 5, 7], np.int16), 5, seen)
    assert seen.tolist() == [True, False, True, False]
    table, codes = np.array([0, -1, 1], np.int32), np.empty(3, np.int32)
    with np.errstate(over="ignore"):
        f(labels.codes_of_integers)(np.array([7, 5, 7]), 5, table, codes)
        assert codes.tolist() == [1, 0, 1]
        f(labels.codes_of_integers)(np.array([7, 6, 9]), 5, table, codes)
    assert codes.tolist() == [1, -1, -1]


@BOTH
def test_points_go_to_their_class_and_back(plain, rng):
    codes = rng.integers(0, 4, 50).astype(np.int32)
    starts, positions = np.empty(6, np.int64), np.empty(50, np.uint32)
    form(plain)(labels.class_positions)(codes, starts, positions)
    order = np.argsort(codes, kind="stable")
    np.testing.assert_array_equal(order[positions], np.arange(50))
    assert starts.tolist() == [0, *np.cumsum(np.bincount(codes, minlength=5)).tolist()]
    out = np.empty(50)
    form(plain)(labels.gather)(np.arange(50.0)[order] * 2, positions, 2.0, out)
    assert out.tolist() == list(range(50))


@BOTH
def test_marked_numbers_are_all_found(plain, rng):
    f = form(plain)
    numbers = rng.integers(0, 2**63, 400).astype(np.uint64)
    marks, shift = np.zeros(1 << 12, np.bool_), np.uint64(52)
    with np.errstate(over="ignore"):
        f(labels.mark)(numbers[::7], marks, shift)
        found = f(labels.maybe_members)(numbers, marks, shift)
    assert set(range(0, 400, 7)) <= set(found.tolist())
    assert len(found) < 100  # 58 marks among 4096: about 5 others are expected


def test_a_negative_label_is_no_class():
    codes = np.empty(1, np.int32)
    table = np.array([0, 1], np.int32)
    labels.codes_of_integers(np.array([-1]), 0, table, codes)
    assert codes.tolist() == [-1]
