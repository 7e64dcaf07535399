"""Stores of live counts, and what they must equal."""

from __future__ import annotations

import warnings

import numpy as np

import thresher as th

CLASSES = [0, 1, 2]
METRICS = ["cosine", "euclidean"]
WIDTHS = [1, 3, 4, 8, 9, 15, 100, 127, 128, 129, 200]

BAD = {
    "nan": ([[np.nan, 1.0, 1.0]], [1], "NaN or infinite values in row 0"),
    "infinite": ([[np.inf, 1.0, 1.0]], [1], "NaN or infinite values in row 0"),
    "huge": ([[1e100, 1.0, 1.0]], [1], "beyond 1e72"),
    "zero": ([[0.0, 0.0, 0.0]], [1], "zero rows"),
    "tiny": ([[1e-200, 0.0, 0.0]], [1], "too close to zero"),
    "narrow": ([[1.0, 1.0]], [1], "2 features but X_val has 3"),
    "deep": ([[[1.0, 1.0, 1.0]]], [1], "two dimensions"),
    "flat": ([1.0, 1.0, 1.0], [1], "two dimensions"),
    "stranger": ([[1.0, 1.0, 1.0]], [7], "labels not in classes|label must be a class"),
    "missing": ([[1.0, 1.0, 1.0]], [None], "missing labels|label must be a class"),
    "unhashable": ([[1.0, 1.0, 1.0]], [[1]], "not hashable|label must be a class"),
    "none": ([[1.0, 1.0, 1.0]], None, "sequence of labels"),
    "number": ([[1.0, 1.0, 1.0]], -1, "sequence of labels"),
    "two": ([[1.0, 1.0, 1.0]], [1, 1], "2 labels but there are 1 rows"),
}


def grid(rng, n, width, dtype=np.float64):
    """Rows on a coarse grid, where many pairs lie exactly at the radius; none is zero."""
    X = rng.integers(-2, 3, (n, width)) / 2
    X[:, 0] += np.where((X == 0).all(axis=1), 1, 0)
    return X.astype(dtype)


def validation(rng, m=70, width=3, dtype=np.float64):
    return grid(rng, m, width, dtype), rng.integers(0, 3, m)


def fresh(V, y_val, points, **options):
    X, y = np.array([row for row, _ in points.values()]), [label for _, label in points.values()]
    return th.tknn_shapley(X, y, V, y_val, classes=CLASSES, **options)


def check_same(live, points, V, y_val, **options):
    """The store holds these points, and values them as a fresh computation does."""
    assert live.ids == tuple(points)
    X, y = live.points()
    assert y.tolist() == [label for _, label in points.values()]
    live.verify()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", th.ReachWarning)
        got = live.values()
        if not points:
            assert len(got) == 0
            assert got.utility_all == got.utility_none
            return
        assert X.tolist() == [np.float64(row).tolist() for row, _ in points.values()]
        want = fresh(V, y_val, points, **options)
    assert got.values.tobytes() == want.values.tobytes()
    assert (got.utility_all, got.utility_none) == (want.utility_all, want.utility_none)
    assert got.params == want.params
    assert got.ids == tuple(points)


def create(path, public, **options):
    return th.LiveCounts.create(path, *public, **{"radius": 0.3, "classes": CLASSES, **options})


def fill(live, n=6, seed=0):
    """Some updates; what is there after them."""
    rng, points = np.random.default_rng(seed), {}
    for i in range(n):
        points[f"p{i}"] = (rng.standard_normal(3), int(rng.integers(3)))
        live.add(f"p{i}", *points[f"p{i}"])
    live.remove("p1")
    del points["p1"]
    live.relabel("p3", 2)
    points["p3"] = (points["p3"][0], 2)
    return points
