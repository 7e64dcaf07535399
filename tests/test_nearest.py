from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import nearest_values
from sklearn.neighbors import KNeighborsClassifier

import thresher as th
from thresher import knn as nearest
from thresher.kernels import order as kernels
from thresher.kernels.distances import direct_keys, product_keys
from thresher.kernels.order import (
    fill_patterns,
    mixed_runs,
    order_points,
    restore_order,
    run_points,
    sort_keys,
    sort_runs,
)
from thresher.kernels.pairs import pair_keys
from thresher.kernels.recursion import add_values

UTILITIES = ["soft-label", "jia2019"]
BOTH = pytest.mark.parametrize("plain", [False, True], ids=["jit", "python"])
pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


def form(plain):
    return (lambda kernel: kernel.py_func) if plain else (lambda kernel: kernel)


@given(
    entries=st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2)), min_size=1, max_size=8),
    checks=st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2)), min_size=1, max_size=2),
    k=st.integers(1, 11),
    utility=st.sampled_from(UTILITIES),
    width=st.sampled_from([1, 30]),
    classes=st.integers(3, 4),
)
@example([(0, 1)], [(0, 1)], 3, "soft-label", 1, 3)  # fewer points than neighbors
@example([(0, 1)], [(0, 0)], 1, "jia2019", 30, 3)
@example([(1, 0), (1, 1), (-1, 0), (-1, 1)], [(0, 0)], 2, "soft-label", 30, 3)  # all tied
@settings(max_examples=120)
def test_values_equal_enumeration_over_all_coalitions(entries, checks, k, utility, width, classes):
    X, y = (np.array(part) for part in zip(*entries, strict=True))
    X_val, y_val = (np.array(part) for part in zip(*checks, strict=True))
    X, X_val = (
        np.tile(X[:, None], width).astype(float),
        np.tile(X_val[:, None], width).astype(float),
    )
    got = th.knn_shapley(
        X, y, X_val, y_val, k=k, metric="euclidean", utility=utility, classes=range(classes)
    )
    want = nearest_values(X[:, :1], y, X_val[:, :1], y_val, k=k, classes=classes, version=utility)
    np.testing.assert_allclose(got.values, want, atol=1e-12)
    assert abs(got.efficiency_gap()) < 1e-12


def reference(D, y, y_val, k, utility, classes):
    """The recursion in plain NumPy, float64, stable sort; D is points x validation points."""
    n, total = len(y), np.zeros(len(y))
    for v, label in enumerate(y_val):
        order = np.argsort(D[:, v], kind="stable")
        match = (y[order] == label).astype(float)
        value = np.zeros(n)
        kk = min(k, n)
        excess = sum(1 / j for j in range(2, kk + 1))
        if utility == "jia2019":
            value[-1] = match[-1] / max(k, n)
        else:
            value[-1] = (match[-1] - 1 / classes) / n
            if n > 1:
                value[-1] += (match[-1] - match[:-1].sum() / (n - 1)) * excess / n
        for i in range(n - 1, 0, -1):
            step = 1 / max(k if utility == "jia2019" else kk, i)
            step += 0 if utility == "jia2019" else excess / (n - 1)
            value[i - 1] = value[i] + (match[i - 1] - match[i]) * step
        total[order] += value
    return total


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("width", [3, 24, 25, 64])
@pytest.mark.parametrize("grid", [False, True], ids=["smooth", "grid"])
def test_values_equal_a_plain_float64_recursion(utility, metric, width, grid, rng):
    """On the grid nearly all distances are tied and exact, so the order must be by position."""
    if grid:
        X = rng.integers(0, 2, (300, width)) * 2.0 - 1
        V = rng.integers(0, 2, (21, width)) * 2.0 - 1
    else:
        X, V = (rng.standard_normal((n, width)).astype(np.float32) for n in (300, 21))
    y, y_val = rng.integers(0, 3, 300), rng.integers(0, 3, 21)
    X64, V64 = X.astype(np.float64), V.astype(np.float64)
    if metric == "euclidean":
        D = ((X64[:, None] - V64) ** 2).sum(axis=2)
    else:
        # rows of the grid have one length, so that cosine orders as the integer product does
        D = -(X64 @ V64.T)
        if not grid:
            D = D / np.linalg.norm(X64, axis=1)[:, None]
    want = reference(D, y, y_val, 7, utility, 3)
    got = th.knn_shapley(X, y, V, y_val, k=7, metric=metric, utility=utility)
    np.testing.assert_allclose(got.values, want, atol=1e-12)


@pytest.mark.parametrize("width", [3, 40])
def test_twins_keep_their_order_wherever_they_stand(width, rng):
    """A matrix product may give equal rows different last bits; position must decide all the same."""
    base = rng.standard_normal((37, width))
    X = np.concatenate([base, base[::-1], base])
    y = rng.integers(0, 2, len(X))
    V, y_val = rng.standard_normal((9, width)), rng.integers(0, 2, 9)
    D = np.tile(((base[:, None] - V) ** 2).sum(axis=2), (3, 1))
    D[37:74] = D[:37][::-1]
    want = reference(D, y, y_val, 3, "soft-label", 2)
    got = th.knn_shapley(X, y, V, y_val, k=3, metric="euclidean")
    np.testing.assert_allclose(got.values, want, atol=1e-12)


@pytest.mark.parametrize("width", [5, 40])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_dtype_layout_and_threads_change_nothing(width, metric, rng, monkeypatch):
    X, V = (
        rng.integers(-9, 10, (n, width)).astype(np.float16) + np.float16(0.5) for n in (200, 50)
    )
    y, y_val = rng.integers(0, 3, 200), rng.integers(0, 3, 50)

    def values(A):
        return th.knn_shapley(A, y, V, y_val, metric=metric).values.tobytes()

    want = values(X)
    for A in (X.astype(np.float32), X.astype(np.float64), np.asfortranarray(X, np.float32)):
        assert values(A) == want
    monkeypatch.setattr(nearest, "PARALLEL_PAIRS", 0)
    monkeypatch.setattr(nearest, "PARALLEL_POINTS", 0)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("THRESHER_THREADS", threads)
        assert values(X) == want


@pytest.mark.parametrize("utility", UTILITIES)
def test_precomputed_distances_of_any_sign_whole_and_in_blocks(utility, rng):
    D = rng.integers(-5, 6, (60, 33)) / 4
    y, y_val = rng.integers(0, 3, 60), rng.integers(0, 3, 33)
    want = reference(D, y, y_val, 4, utility, 3)
    for source in (D, D.astype(np.float32), (D[:, lo : lo + 10] for lo in range(0, 33, 10))):
        got = th.knn_shapley(source, y, None, y_val, k=4, metric="precomputed", utility=utility)
        np.testing.assert_allclose(got.values, want, atol=1e-12)


def test_utility_is_the_soft_accuracy_of_scikit_learns_classifier(rng):
    X, V = rng.standard_normal((300, 4)), rng.standard_normal((80, 4))
    y, y_val = rng.integers(0, 3, 300), rng.integers(0, 3, 80)
    shares = KNeighborsClassifier(7).fit(X, y).predict_proba(V)[np.arange(80), y_val]
    for utility in UTILITIES:
        valuation = th.knn_shapley(X, y, V, y_val, k=7, metric="euclidean", utility=utility)
        np.testing.assert_allclose(valuation.utility_all, shares.sum(), rtol=1e-12)


@pytest.mark.parametrize("width", [5, 40])
def test_float32_precision_is_close(width, rng):
    X, V = (rng.standard_normal((n, width)).astype(np.float32) for n in (500, 40))
    y, y_val = rng.integers(0, 3, 500), rng.integers(0, 3, 40)
    exact = th.knn_shapley(X, y, V, y_val)
    fast = th.knn_shapley(X, y, V, y_val, precision="float32")
    np.testing.assert_allclose(fast.values, exact.values, atol=2e-3)
    assert fast.params["precision"] == "float32"
    assert abs(fast.efficiency_gap()) < 1e-11


@pytest.mark.parametrize(
    ("plain", "n", "spread"),
    [(plain, 500, spread) for plain in (False, True) for spread in (0, 1, 12, 24, 31)]
    + [(False, kernels.MANY + 77, spread) for spread in (26, 28, 29, 30, 31, 32)],
)
def test_keys_sort_stably_for_any_span_of_bits(plain, n, spread, rng):
    patterns = (rng.integers(0, 2**spread - 5 * (spread == 32), n) + 5).astype(np.uint32)
    patterns[n // 2 :] = rng.choice(patterns[:9], n - n // 2)  # many are equal
    codes = rng.integers(0, 2, n).astype(np.int32)
    keys, spare = np.empty(n, np.uint64), np.empty(n, np.uint64)
    ends = patterns.min(), patterns.max()
    form(plain)(sort_keys)(patterns, *ends, codes, 1, keys, spare, np.empty((3, 4096), np.int64))
    order = np.argsort(patterns, kind="stable")
    low = keys & np.uint64(0xFFFFFFFF)
    np.testing.assert_array_equal(low >> np.uint64(1), order)
    np.testing.assert_array_equal(low & np.uint64(1), codes[order])


@BOTH
def test_patterns_sort_as_the_distances_do(plain):
    numbers = np.array([-np.inf, -1e30, -1.5, -1e-40, -0.0, 0.0, 1e-45, 1.0, 1e39, np.inf])
    patterns = np.empty(len(numbers), np.uint32)
    with np.errstate(over="ignore"):
        ends = form(plain)(fill_patterns)(numbers, 1.0, patterns)
    assert ends == (patterns[0], patterns[-1])
    assert (np.diff(patterns.astype(np.int64)) >= 0).all()
    assert patterns[4] == patterns[5]
    assert len(set(patterns.tolist())) >= 8


@BOTH
@pytest.mark.parametrize("size", [5, 31, 32, 33, 200])
def test_float64_order_is_restored_among_equal_float32(plain, size, rng):
    distances = 1 + rng.integers(0, 40, size) * 1e-12
    keys = (np.arange(size, dtype=np.uint64) << np.uint64(1)) | (np.uint64(7) << np.uint64(32))
    form(plain)(restore_order)(keys, distances)
    order = (keys & np.uint64(0xFFFFFFFF)) >> np.uint64(1)
    np.testing.assert_array_equal(order, np.argsort(distances, kind="stable"))


@BOTH
def test_runs_of_near_ties_are_found_and_sorted_by_the_given_distances(plain):
    f = form(plain)
    computed = np.array([1.0, 1.0 + 1e-15, 5.0, 5.0 + 1e-15, 9.0])
    match = np.array([1, 0, 1, 1, 0], np.uint64)
    keys = (np.arange(5, dtype=np.uint64) << np.uint64(1)) | match
    keys[:2] = keys[:2][::-1]
    runs = np.zeros((2, 2), np.int64)
    everything = np.array([0, 2**32 - 1], np.uint32)
    least = np.uint32(0)
    # equal matches need no order
    assert f(mixed_runs)(keys, computed, 1e-14, everything, least, runs) == (1, 2)
    assert runs[0].tolist() == [0, 2]
    found = np.empty(2, np.int64)
    f(run_points)(keys, runs[:1], found)
    assert sorted(found.tolist()) == [0, 1]
    f(sort_runs)(keys, runs[:1], np.array([3.0, 3.0, 0, 0, 0]))
    assert (keys[:2] >> np.uint64(1)).tolist() == [0, 1]
    f(sort_runs)(keys, runs[:1], np.array([3.0, 2.0, 0, 0, 0]))
    assert (keys[:2] >> np.uint64(1)).tolist() == [1, 0]


@BOTH
@pytest.mark.parametrize("error", [1e-14, 1e-9, 1e-3])
def test_patterns_spare_looking_up_distances_but_miss_no_run(plain, error, rng):
    """The same runs are found with the band that says where patterns are too dense, and without."""
    f = form(plain)
    distances = np.concatenate(
        [rng.integers(0, 9, 60) * 1e-9, 1 + rng.integers(0, 30, 60) * error / 2]
    )
    distances = np.concatenate([distances, -distances, rng.random(80)])
    n = len(distances)
    codes = rng.integers(0, 2, n).astype(np.int32)
    keys, spare, patterns = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint32)
    least = f(order_points)(
        distances, 1.0, True, codes, 1, patterns, keys, spare, np.empty((3, 4096), np.int64)
    )
    band = np.empty(2, np.uint32)
    f(fill_patterns)(np.array([-(2.0**25) * error, 2.0**25 * error]), 1.0, band)
    found = []
    for guard in (band, np.array([0, 2**32 - 1], np.uint32)):
        runs = np.zeros((n // 2, 2), np.int64)
        count, points = f(mixed_runs)(keys, distances, error, guard, least, runs)
        found.append((count, points, runs.tolist()))
    assert found[0] == found[1]
    assert found[0][0] > 0


@BOTH
def test_the_scan_adds_one_recursion(plain):
    keys = np.array([(2 << 1) | 1, 0 << 1, (1 << 1) | 1], np.uint64)
    out = np.ones(3)
    assert form(plain)(add_values)(keys, np.array([0.5, 0.25]), 0.125, -9.0, 2, out) == 1
    assert out.tolist() == [1 + 0.125 - 0.25, 1 + 0.125, 1 + 0.125 - 0.25 + 0.5]


@BOTH
@pytest.mark.parametrize("cosine", [False, True])
def test_key_kernels_agree(plain, cosine, rng):
    f = form(plain)
    X, V = rng.standard_normal((70, 11)), rng.standard_normal((4, 11))
    x2, v2 = (X**2).sum(axis=1), (V**2).sum(axis=1)
    by_product = np.empty((4, 70))
    f(product_keys)(V @ X.T, x2, v2, cosine, by_product)
    for v in range(4):
        direct, pair = np.empty(70), np.empty(70)
        f(direct_keys)(np.ascontiguousarray(X.T), (0,) * 11, x2, V[v], v2[v], cosine, direct)
        f(pair_keys)(X, x2, V[v], v2[v], cosine, pair)
        np.testing.assert_allclose(direct, pair, atol=1e-13)
        np.testing.assert_allclose(by_product[v], pair, atol=1e-13)
        alike = X @ V[v] / np.sqrt(x2 * v2[v])
        want = -alike * abs(alike) if cosine else ((X - V[v]) ** 2).sum(axis=1)
        np.testing.assert_allclose(pair, want, atol=1e-13)


@pytest.mark.parametrize("width", [2, 30])
def test_parallel_rows_are_tied_under_cosine(width, rng):
    """Multiples of integer rows have the same direction, whatever their length."""
    base = rng.integers(1, 9, (30, width)).astype(float)
    X = np.concatenate([base, 3 * base, 7 * base])
    y, y_val = rng.integers(0, 2, 90), rng.integers(0, 2, 12)
    V = rng.integers(1, 9, (12, width)).astype(float)
    D = np.tile(-((base @ V.T) ** 2) / (base**2).sum(axis=1)[:, None], (3, 1))
    want = reference(D, y, y_val, 4, "soft-label", 2)
    np.testing.assert_allclose(th.knn_shapley(X, y, V, y_val, k=4).values, want, atol=1e-12)


@pytest.mark.parametrize("width", [4, 40])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("size", [1e-60, 1e-25, 1e20, 1e60])
def test_scale_changes_nothing_in_either_precision(width, metric, size, rng):
    X, V = rng.standard_normal((200, width)), rng.standard_normal((20, width))
    y, y_val = rng.integers(0, 2, 200), rng.integers(0, 2, 20)
    want = th.knn_shapley(X, y, V, y_val, metric=metric).values
    for precision, gap in (("float64", 1e-12), ("float32", 2e-2)):
        got = th.knn_shapley(X * size, y, V * size, y_val, metric=metric, precision=precision)
        np.testing.assert_allclose(got.values, want, atol=gap)


def test_nearly_orthogonal_rows_keep_their_order_in_float32():
    X, y = [[-3e-4, 1], [3e-4, 1]], ["b", "a"]
    for precision in ("float64", "float32"):
        got = th.knn_shapley(X, y, [[1, 0]], ["a"], k=1, utility="jia2019", precision=precision)
        assert got.values.tolist() == [0.0, 1.0]


def test_numbers_too_small_to_square_are_refused():
    for size in (1e-100, 1e-170):
        with pytest.raises(th.InputError, match="X and X_val have only values below 1e-72"):
            th.knn_shapley([[size], [2 * size]], [0, 1], [[size]], [0], metric="euclidean")


def test_a_progress_bar_and_owners(rng, capsys):
    X, V = rng.standard_normal((90, 2)), rng.standard_normal((40, 2))
    y, y_val = rng.integers(0, 2, 90), rng.integers(0, 2, 40)
    owners = np.array(["a", "b", "c"])[rng.integers(0, 3, 90)]
    valuation = th.knn_shapley(X, y, V, y_val, owners=owners, progress=True, mean=True)
    assert "knn-shapley: 100%" in capsys.readouterr().err
    total = sum(valuation.by_owner().values())
    np.testing.assert_allclose(total, valuation.utility_all - valuation.utility_none)


def test_agrees_with_pydvl():
    pytest.importorskip("pydvl", reason="pyDVL is installed by the test group")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pydvl.valuation import Dataset, KNNShapleyValuation
    rng = np.random.default_rng(5)
    X, V = rng.standard_normal((120, 4)), rng.standard_normal((30, 4))
    y, y_val = rng.integers(0, 3, 120), rng.integers(0, 3, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = KNNShapleyValuation(
            KNeighborsClassifier(5), Dataset(V, y_val), progress=False, clone_before_fit=False
        )
        theirs = peer.fit(Dataset(X, y)).result
    by_row = np.empty(120)
    by_row[theirs.indices] = theirs.values
    ours = th.knn_shapley(X, y, V, y_val, k=5, metric="euclidean", utility="jia2019", mean=True)
    np.testing.assert_allclose(ours.values, by_row, atol=1e-12)
