"""Data, references and limits: what the contenders of the benchmark have in common."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

SHAPES = [
    (2_000, 200, 10),
    (10_000, 100, 10),
    (100_000, 100, 10),
    (100_000, 1_000, 10),
    (1_000_000, 100, 10),
    (50_000, 1_000, 1024),
    (50_000, 5_000, 1024),
]
K = 5
SHARE = 0.05  # of the points are within the radius


@dataclass(frozen=True)
class Case:
    X: np.ndarray
    y: np.ndarray
    V: np.ndarray
    y_val: np.ndarray
    radius: dict[str, float]

    @property
    def shape(self):
        return len(self.X), len(self.V), self.X.shape[1]


def make(n, m, d, seed=0):
    """The paper's synthetic data: normal features, label the sign of the first two together."""
    rng = np.random.default_rng(seed)
    X, V = (rng.standard_normal((size, d), dtype=np.float32) for size in (n, m))
    labels = [(A[:, :2].sum(axis=1) > 0).astype(np.int64) for A in (X, V)]
    radius = {metric: quantile(X[:2000], V[:50], metric) for metric in ("euclidean", "cosine")}
    return Case(X, labels[0], V, labels[1], radius)


def make_grid(n=20_000, m=200, d=10, seed=1):
    """Small integers: very many pairs exactly on the radius, and very many equal distances."""
    rng = np.random.default_rng(seed)
    X, V = (rng.integers(0, 3, (size, d)).astype(np.float32) for size in (n, m))
    X[:, 0], V[:, 0] = 1, 1  # no zero rows
    labels = [rng.integers(0, 3, size) for size in (n, m)]
    return Case(X, labels[0], V, labels[1], {"euclidean": 3.0, "cosine": 0.25})


def quantile(X, V, metric):
    return float(np.quantile(distances(X, V, metric), SHARE))


def distances(X, V, metric):
    """Float64: exact differences for few features, a product for many."""
    X, V = X.astype(np.float64), V.astype(np.float64)
    if metric == "cosine":
        return 1 - X @ V.T / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(V, axis=1)
    if X.shape[1] > 64:
        expanded = (X**2).sum(axis=1)[:, None] + (V**2).sum(axis=1) - 2 * (X @ V.T)
        return np.sqrt(np.maximum(expanded, 0))
    return np.sqrt(squares(X, V))


def squares(X, V):
    """Squared euclidean distances by differences, feature after feature."""
    total = np.zeros((len(X), len(V)))
    for k in range(X.shape[1]):
        total += (X[:, k, None].astype(np.float64) - V[:, k]) ** 2
    return total


def near_matrix(X, V, metric, radius):
    """Which pairs are within the radius; for whole numbers in exact arithmetic."""
    whole = all((np.round(A) == A).all() for A in (X, V))
    if not whole:
        return distances(X, V, metric) <= radius
    X, V = X.astype(np.int64), V.astype(np.int64)
    if metric == "euclidean":
        return squares(X, V) <= radius**2
    least = Fraction(1) - Fraction(radius)
    product, lengths = X @ V.T, (X**2).sum(axis=1)[:, None] * (V**2).sum(axis=1)
    inside = (product * least.denominator) ** 2 >= least.numerator**2 * lengths
    return (product >= 0) & inside


def blocks(case, pairs=20_000_000):
    step = max(1, pairs // len(case.X))
    for lo in range(0, len(case.V), step):
        yield case.V[lo : lo + step], case.y_val[lo : lo + step]


def reference_tknn(case, metric, classes):
    """Threshold values in plain float64."""
    n = len(case.X)
    harmonic = np.concatenate([[0], np.cumsum(1 / np.arange(1, n + 1))])
    total = np.zeros(n)
    for V, y_val in blocks(case):
        near = near_matrix(case.X, V, metric, case.radius[metric])
        for v, label in enumerate(y_val):
            inside = np.flatnonzero(near[:, v])
            c = len(inside)
            if not c:
                continue
            match = (case.y[inside] == label).astype(float)
            rest = (match.sum() - match) / max(c - 1, 1)
            W = (harmonic[c] - 1) / c if c > 1 else 0.0
            total[inside] += (match - 1 / classes) / c + W * (match - rest)
    return total


def reference_knn(case, metric, utility, classes, k=K):
    """Nearest-neighbor values in plain float64, ties by position."""
    n = len(case.X)
    consulted = min(k, n)
    excess = (1 / np.arange(2, consulted + 1)).sum()
    rank = np.arange(1, n)
    steps = 1 / np.maximum(k, rank) if utility == "jia2019" else None
    if steps is None:
        steps = 1 / np.maximum(consulted, rank) + excess / (n - 1)
    total = np.zeros(n)
    for V, y_val in blocks(case):
        table = order_numbers(case.X, V, metric)
        for v, label in enumerate(y_val):
            order = np.argsort(table[:, v], kind="stable")
            match = (case.y[order] == label).astype(float)
            if utility == "jia2019":
                last = match[-1] / max(k, n)
            else:
                last = (match[-1] - 1 / classes) / n
                last += (match[-1] - match[:-1].mean()) * excess / n
            jumps = (match[:-1] - match[1:]) * steps
            total[order] += np.concatenate([last + jumps[::-1].cumsum()[::-1], [last]])
    return total


def order_numbers(X, V, metric):
    """Numbers that sort as distances do, exact on the grid: no square root, no quotient of sums."""
    if metric == "euclidean" and X.shape[1] <= 64:
        return squares(X, V)
    return distances(X, V, metric)


def numpy_tknn(X, y, V, y_val, radius):
    """Euclidean threshold values as a careful NumPy user would write them, a block at a time."""
    n, classes = len(X), int(y.max()) + 1
    half = 0.5 * np.einsum("ij,ij->i", X, X)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    out = np.zeros(n)
    step = max(1, (1 << 24) // n)
    for lo in range(0, len(V), step):
        block, labels = V[lo : lo + step], y_val[lo : lo + step]
        level = 0.5 * (np.einsum("ij,ij->i", block, block) - radius * radius)
        near = X @ block.T - half[:, None] >= level
        match = y[:, None] == labels
        c, same = near.sum(axis=0), (near & match).sum(axis=0)
        c1 = np.maximum(c, 1)
        W = np.where(c > 1, (harmonic[c] - 1) / c1, 0)
        others = np.maximum(c - 1, 1)
        gain = (1 - 1 / classes) / c1 + W * (1 - (same - 1) / others)
        loss = (0 - 1 / classes) / c1 - W * same / others
        out += (near & match) @ gain + (near & ~match) @ loss
    return out


def numpy_knn(X, y, V, y_val, k=K):
    """Euclidean values of the 2019 utility as a careful NumPy user would write them."""
    n = len(X)
    steps = 1 / np.maximum(k, np.arange(1, n))
    half = 0.5 * np.einsum("ij,ij->i", X, X)
    out = np.zeros(n)
    step = max(1, (1 << 24) // n)
    for lo in range(0, len(V), step):
        order = np.argsort(half - V[lo : lo + step] @ X.T, axis=1)
        match = (y[order] == y_val[lo : lo + step, None]).astype(np.float64)
        value = np.empty_like(match)
        value[:, -1] = match[:, -1] / max(k, n)
        value[:, :-1] = (match[:, :-1] - match[:, 1:]) * steps
        value = value[:, ::-1].cumsum(axis=1)[:, ::-1]
        for row, entries in zip(order, value, strict=True):
            out[row] += entries
    return out
