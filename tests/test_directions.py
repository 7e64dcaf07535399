"""By the cosine, points in the same direction up to rounding are equally far: ties by position."""

import fractions
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import thresher as th
from thresher.kernels.directions import find_leaders, mark_candidates, same_direction
from thresher.metrics import measure
from thresher.neighbors import parallel_rows
from thresher.neighbors.parallel_rows import leaders_of

KINDS = [np.float64, np.float32]


def scaled_copies(n, width, kind, seed=0, spread=50.0):
    """Rows, then positive multiples of them in another order, and which row each comes from."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, width)).astype(kind)
    of = rng.permutation(n)
    limit = min(spread, 30.0) if kind is np.float32 else spread
    factors = np.exp(rng.uniform(-limit, limit, (n, 1)))
    return np.concatenate([rows, (factors * rows[of]).astype(kind)]), np.r_[np.arange(n), of]


def judged(width, seed=1, m=40):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, width)), rng.integers(0, 3, m)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [2, 5, 24, 25, 40, 200])
@pytest.mark.parametrize(
    "options", [{}, {"k": 1, "error": 0.1}, {"task": "regression", "k": 2}], ids=str
)
def test_multiples_of_a_row_have_the_values_of_copies(kind, width, options):
    X, first = scaled_copies(300, width, kind)
    y = np.random.default_rng(2).integers(0, 3, 600)
    V, W = judged(width)
    if "task" in options:
        y, W = y.astype(float), W.astype(float)
    found = th.knn_shapley(X, y, V, W, **options)
    wanted = th.knn_shapley(X[first], y, V, W, **options)
    assert found.values.tobytes() == wanted.values.tobytes()
    assert found.params == wanted.params


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [3, 40])
def test_no_multiple_comes_before_the_row_itself(kind, width):
    """With k=1 and a judge in that direction, all of the value goes to the first of the two."""
    X, _ = scaled_copies(300, width, kind)
    for row in range(0, 600, 37):
        pair = np.stack([X[row], (3.7 * X[row]).astype(kind)])
        for some in (pair, pair[::-1], np.ascontiguousarray(pair[::-1]), pair * kind(1e-3)):
            found = th.knn_shapley(some, ["a", "b"], X[row : row + 1] / 3, ["a"], k=1)
            assert found.values.tolist() == pytest.approx([0.75, -0.25]), row


@pytest.mark.parametrize("width", [4, 40])
def test_so_it_is_for_points_that_judge_each_other_and_sparse_rows(width):
    X, first = scaled_copies(70, width, np.float64)
    X[np.abs(X) < 0.3 * np.abs(X).max(axis=1, keepdims=True)] = 0.0
    y = np.random.default_rng(2).integers(0, 3, 140)
    order = np.random.default_rng(5).permutation(140)
    X, y, first = X[order], y[order], np.argsort(order)[first[order]]
    first = np.minimum(first, np.arange(140))  # the earlier one of the two stands for both
    other = {int(a): int(b) for b, a in enumerate(first) if a != b}
    leader = np.array([min(i, other.get(int(first[i]), i), int(first[i])) for i in range(140)])
    X_copied, (V, W) = X[leader], judged(width)
    wanted = th.knn_shapley(X_copied, y, V, W).values
    for rows in (X, sp.csr_array(X), np.asfortranarray(X), X.tolist()):
        assert th.knn_shapley(rows, y, V, W).values.tobytes() == wanted.tobytes()
    alone = th.knn_shapley(X, y).values
    swapped = th.knn_shapley(X * 2.0 ** (np.arange(140) % 9)[:, None], y).values
    assert alone.tobytes() == swapped.tobytes()  # powers of two change no direction


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [3, 10, 60])
def test_values_of_other_rows_have_the_same_bits(kind, width, monkeypatch):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(2000, width)).astype(kind), rng.integers(0, 3, 2000)
    X[1000:1100] = X[:100]  # equal rows tied before
    V, W = judged(width)
    found = [th.knn_shapley(X, y, V, W, **o).values for o in ({}, {"error": 0.1})]
    monkeypatch.setattr(parallel_rows, "leaders_of", lambda _: None)
    before = [th.knn_shapley(X, y, V, W, **o).values for o in ({}, {"error": 0.1})]
    assert [each.tobytes() for each in found] == [each.tobytes() for each in before]


whole = st.lists(
    st.lists(st.integers(-4, 4), min_size=3, max_size=3).filter(any), min_size=2, max_size=12
)


def exactly_alike(a, b):
    """By rational numbers: (a.b)^2 = |a|^2 |b|^2, and a.b > 0."""
    a, b = ([fractions.Fraction(x) for x in each] for each in (a, b))
    product = sum(x * z for x, z in zip(a, b, strict=True))
    sizes = [sum(x * x for x in each) for each in (a, b)]
    return product > 0 and product**2 == sizes[0] * sizes[1]


@given(
    rows=whole,
    kind=st.sampled_from([np.float64, np.float32, np.int16, np.int64]),
    big=st.booleans(),
)
def test_whole_numbers_are_compared_exactly(rows, kind, big):
    rows = [[x * 30_011 + (x > 0) * big for x in row] for row in rows] if kind is np.int64 else rows
    X = np.array(rows, kind)
    checked = measure("X", X.astype(np.float64 if kind is np.int64 else np.float32), cosine=True)
    found = leaders_of(checked)
    wanted = [
        min(j for j in range(i + 1) if exactly_alike(rows[j], rows[i])) for i in range(len(X))
    ]
    assert (list(range(len(X))) if found is None else found.tolist()) == wanted


def test_directions_that_differ_by_more_than_rounding_stay_apart():
    near = np.array([[1.0, 1.0], [1.0, 1 + 2.0**-40], [1.0, 1 + 2.0**-50], [-1.0, -1.0]])
    found = leaders_of(measure("X", near, cosine=True))
    assert found.tolist() == [0, 1, 0, 3]
    near32 = np.array([[0.1, 1.0], [0.1, 1 + 2.0**-18], [0.1, 1 + 2.0**-23]], np.float32)
    assert leaders_of(measure("X", near32, cosine=True)).tolist() == [0, 1, 0]
    whole = np.array([[30_000, 29_999], [29_999, 29_998], [15_000, 14_999.5]], np.float32)
    assert leaders_of(measure("X", whole, cosine=True)).tolist() == [0, 1, 0]
    zeros = np.array([[1.0, 0.0, 0.0], [1.0, 1e-30, 0.0], [2.0, 2e-30, 0.0], [7.0, 0.0, 0.0]])
    assert leaders_of(measure("X", zeros, cosine=True)).tolist() == [0, 1, 1, 0]


def test_kernels_as_plain_python_find_the_same():
    X, _ = scaled_copies(40, 3, np.float64)
    rows = measure("X", X, cosine=True)
    lines = parallel_rows._projected(rows)
    order = np.argsort(lines[:, 0], kind="stable")
    marks, plain = np.zeros(80, bool), np.zeros(80, bool)
    mark_candidates(lines[order], 1e-12, marks)
    mark_candidates.py_func(lines[order], 1e-12, plain)
    assert marks.all()
    assert plain.all()
    out = np.full((2, 80), -1)
    for kernel, found in zip((find_leaders, find_leaders.py_func), out, strict=True):
        kernel(X, order, np.argsort(order), lines[order], 1e-12, 2.0**-48, 2.0**30, 9, found)
    assert out[0].tolist() == out[1].tolist()
    with np.errstate(all="ignore"):
        for a, b in ((0, 1), (0, 0), (3, 50)):
            same = same_direction(X[a], X[b], 1e-14, 100.0)
            assert same == same_direction.py_func(X[a], X[b], 1e-14, 100.0) == (a == b)


@given(
    exponents=st.lists(st.floats(-60, 60), min_size=4, max_size=4), seed=st.integers(0, 99),
    width=st.sampled_from([2, 3, 30]),
)  # fmt: skip
def test_any_factors_of_any_size(exponents, seed, width):
    """Factors from 1e-60 to 1e60: rows beyond 1e72 are refused."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(2, width))
    X = np.array([10.0**e * base[i % 2] for i, e in enumerate(exponents)])
    y, (V, W) = [0, 1, 1, 0], judged(width, m=5)
    V = V + 1e-9  # from another draw than the rows
    found = th.knn_shapley(X, y, V, W, k=1, classes=[0, 1, 2]).values
    wanted = th.knn_shapley(base[[0, 1, 0, 1]], y, V, W, k=1, classes=[0, 1, 2]).values
    assert found.tobytes() == wanted.tobytes()


def test_rows_that_are_nearly_alike_in_a_large_table_take_no_time():
    rng = np.random.default_rng(0)
    rows = (1e6 + rng.normal(size=(5_000, 4))).astype(np.float32)
    leaders = leaders_of(measure("X", rows, cosine=True))
    assert leaders is not None
    many = rng.integers(1, 3, (200_000, 6)).astype(np.float32)
    assert len(np.unique(leaders_of(measure("X", many, cosine=True)))) == 2**6 - 1


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_one_feature_has_two_directions_and_a_warning_says_so(task):
    X, y = [[1.0], [2.0], [-3.0], [0.5]], [1, 0, 1, 0]
    with pytest.warns(
        th.ThresherWarning, match="one feature.*same sign are equally far.*euclidean"
    ) as caught:
        found = th.knn_shapley(X, y, [[4.0]], [1.0 if task == "regression" else 1], k=1, task=task)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = th.knn_shapley([[7.0], [0.1], [-1.0], [9.0]], y, [[2.0]], [1], k=1, task=task)
    assert found.values.tolist() == same.values.tolist()
    th.knn_shapley(X, y, [[4.0]], [1], metric="euclidean", task=task)
