"""Values under every label: the sums of one label at a time, for the work of the near pairs."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

import thresher as th
from thresher.findings.explanation import explain
from thresher.inputs.checked_inputs import check_points
from thresher.kernels import bits, relabel

pytestmark = pytest.mark.filterwarnings("ignore::thresher.ThresherWarning")


def sum_of_bits(bits, weights):
    """By 64 bits: bytes from the lowest bit up, then the eight bytes of each by a tree."""
    total = 0.0
    for start in range(0, len(bits), 64):
        b = [0.0] * 8
        for k in range(64):
            if bits[start + k]:
                b[k // 8] += weights[start + k]
        total += ((b[0] + b[1]) + (b[2] + b[3])) + ((b[4] + b[5]) + (b[6] + b[7]))
    return total


def weights_of(own, label, codes, prices):
    carries, under = np.where(codes == own, 0, 1), np.where(codes == label, 0, 1)
    return prices[carries, under, np.arange(len(codes))]


@pytest.mark.parametrize("plain", [False, True], ids=["jit", "python"])
@pytest.mark.parametrize(("classes", "density"), [(1, 0.5), (2, 0.9), (5, 0.3), (150, 0.1)])
def test_kernels_equal_one_label_at_a_time_to_the_last_bit(plain, classes, density, rng):
    f = (lambda kernel: kernel.py_func) if plain else (lambda kernel: kernel)
    n, lanes, padding = 21, 192, 50
    codes = rng.integers(0, classes, lanes)
    codes[lanes - padding :] = -1
    prices = rng.standard_normal((2, 2, lanes))
    own = np.sort(rng.integers(0, classes, n)).astype(np.int32)
    rows = rng.permutation(n).astype(np.uint32)
    near = rng.random((n, lanes)) < density
    near[3], near[:, lanes - padding :] = False, False
    words = np.hstack([np.ones((n, 1), np.uint64), pack(near)])  # the bits begin at word 1
    labels, masks = np.empty((3, 64), np.int64), np.empty((3, 64), np.uint64)
    sizes, slots = np.empty(24, np.int64), np.zeros((classes, 24), np.uint8)
    f(relabel.label_slots)(codes, labels, masks, sizes, slots)
    weights = np.empty(((sizes**2).sum(), 8))
    f(relabel.label_weights)(codes, prices, sizes, slots, weights)
    tables = np.empty((len(weights), 256))
    f(bits.byte_tables)(weights.ravel(), tables)
    values, counts = np.zeros((n, classes)), np.zeros((n, classes), np.int32)
    with np.errstate(over="ignore"):
        for lo, hi in ((0, 9), (9, n)):
            f(relabel.add_label_values)(
                words, 1, lo, hi, own, rows, labels, sizes, slots, tables, values
            )
            f(relabel.count_labels)(words, 1, lo, hi, rows, labels, masks, counts)
    want, votes = np.zeros((n, classes)), np.zeros((n, classes), int)
    for i in range(n):
        for c in range(classes):
            want[rows[i], c] = sum_of_bits(near[i], weights_of(own[i], c, codes, prices))
            votes[rows[i], c] = near[i][codes == c].sum()
    assert values.tobytes() == want.tobytes()
    np.testing.assert_array_equal(counts, votes)


@pytest.mark.parametrize("plain", [False, True], ids=["jit", "python"])
@pytest.mark.parametrize("classes", [1, 2, 6])
def test_the_best_other_label_is_the_first_of_the_most_worth(plain, classes, rng):
    kernel = relabel.best_other_labels.py_func if plain else relabel.best_other_labels
    n = 60
    values = rng.integers(-2, 3, (n, classes)) / 4  # many are equal
    near = rng.integers(0, 4, (n, classes)).astype(np.int32)
    codes = rng.integers(0, classes, n).astype(np.int32)
    numbers, worths = np.empty((5, n), np.int64), np.empty((2, n))
    kernel(values, near, codes, numbers, worths)
    for i, own in enumerate(codes):
        others = [c for c in range(classes) if c != own]
        best = max(others, key=lambda c, i=i: (values[i, c], -c), default=own)
        most = max((near[i, c] for c in others), default=0)
        want = near[i].sum(), near[i, own], best, near[i, best], most
        assert (*numbers[:, i], *worths[:, i]) == (*want, values[i, own], values[i, best])


def pack(bits):
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


@pytest.mark.parametrize("plain", [False, True], ids=["jit", "python"])
def test_visits_become_the_bits_of_rows(plain, rng):
    kernel = bits.rows_of_visits.py_func if plain else bits.rows_of_visits
    near = rng.random((64, 200)) < 0.2  # places of two leaves x validation points
    near[:32, ::3] = near[32:, 1::3] = False  # those that a leaf is not visited by
    visited = [(leaf, v) for leaf in (0, 1) for v in range(200) if v % 3 != leaf]
    leaves = np.array([leaf for leaf, _ in visited])
    words = np.array(
        [pack32(near[32 * leaf : 32 * leaf + 32, v]) for leaf, v in visited], np.uint32
    )[:, None]
    starts = np.searchsorted(leaves, [0, 1, 2])
    positions = rng.permutation(64).astype(np.uint32).reshape(2, 32)
    queries = np.array([v for _, v in visited], np.uint32)
    out = np.zeros((64, 2), np.uint64)
    kernel(words, starts, (0, 1), queries, positions, (64, 192), out)
    kernel(words, starts, (1, 2), queries, positions, (64, 192), out)
    want = np.zeros((64, 128), bool)
    want[positions.ravel()] = near[:, 64:192]
    np.testing.assert_array_equal(out, pack(want))


def pack32(bits):
    return int(np.packbits(bits, bitorder="little").view(np.uint32)[0])


def problem(classes, points=400, validation=700, width=2, seed=0):
    rng = np.random.default_rng(seed)
    X, V = rng.standard_normal((points, width)), rng.standard_normal((validation, width))
    return X, rng.integers(0, classes, points), V, rng.integers(0, classes, validation)


def price_list(X, y, V, y_val, classes, semivalue="shapley"):
    counts = th.NeighborCounts(
        V, y_val, radius=0.8, metric="euclidean", classes=list(range(classes))
    )
    return counts.add(X, y).price_list(semivalue)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", th.Beta(2, 3)], ids=str)
@pytest.mark.parametrize("classes", [1, 2, 7, 90])
def test_every_column_has_the_bits_of_values_under_that_label(classes, semivalue):
    X, y, V, y_val = problem(classes)
    prices = price_list(X, y, V, y_val, classes, semivalue)
    members, newcomers = prices.label_values(X, y), prices.label_values(X)
    own = members[np.arange(len(y)), y].copy()
    assert own.tobytes() == prices.values(X, y).tobytes()
    for label in {0, classes // 2, classes - 1}:
        assert members[:, label].tobytes() == prices.values(X, y, label=label).tobytes()
        assert newcomers[:, label].tobytes() == prices.newcomer_values(X, label).tobytes()


@pytest.mark.parametrize("classes", [3, 90])
def test_a_tree_gives_the_bits_of_all_pairs(classes, monkeypatch):
    monkeypatch.setattr("thresher.neighbors.tree.LEAF", 64)
    X, y, V, y_val = problem(classes)
    prices = price_list(X, y, V, y_val, classes)
    points = check_points(X, y, prices.validation)
    found = []
    for neighbors in ("all", "tree"):
        values, counts = np.zeros((400, classes)), np.zeros((400, classes), np.int32)
        prices.add_label_values(points, values, counts, neighbors)
        found.append((values.tobytes(), counts.tobytes()))
    assert found[0] == found[1]
    near = np.linalg.norm(X[:, None] - V[None], axis=2) <= 0.8
    np.testing.assert_array_equal(
        counts, [np.bincount(y_val[row], minlength=classes) for row in near]
    )


def calls(function):
    """How many functions and methods Python calls."""
    count = 0

    def note(*_):
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_ten_times_the_classes_are_not_a_hundred_times_the_work():
    """One label after the other, for points of one class after the other, were 70 times the calls."""
    made = []
    for classes in (20, 200):
        data = problem(classes, points=300, validation=400)
        prices = price_list(*data, classes)
        valuation = th.tknn_shapley(*data, radius=0.8, metric="euclidean")
        made.append(
            (
                calls(lambda p=prices, d=data: p.label_values(d[0], d[1])),
                calls(lambda v=valuation, d=data: explain(v, *d)),
            )
        )
    (few_values, few_findings), (many_values, many_findings) = made
    assert many_values < 2 * few_values
    assert many_findings < 10 * few_findings


def test_findings_do_not_hold_every_value_under_every_label_at_once():
    X, y, V, y_val = problem(1000, points=30_000, validation=64, width=1)
    valuation = th.tknn_shapley(X, y, V, y_val, radius=0.8, metric="euclidean")
    explain(valuation, X, y, V, y_val)
    tracemalloc.start()
    explain(valuation, X, y, V, y_val)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000 * 1000 * 8 / 2
