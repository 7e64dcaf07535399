"""Where `knn_shapley` spends its time: nanoseconds a pair, on one thread, stage by stage.

.venv/bin/python benchmarks/profile_knn.py
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict

os.environ["THRESHER_THREADS"] = "1"

import numpy as np

import thresher as th
from thresher import knn as nearest
from thresher.kernels import order as kernels
from thresher.neighbors import sorting as order

SHAPES = [(100_000, 200, 10), (1_000_000, 20, 10), (50_000, 256, 1024)]
seconds: dict[str, float] = defaultdict(float)


def timed(module, name, label):
    """Replace a function by one that adds up its time."""
    function = getattr(module, name)

    def wrapped(*arguments, **options):
        start = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            seconds[label] += time.perf_counter() - start

    setattr(module, name, wrapped)


def order_points(distances, factor, exact, codes, code, patterns, keys, spare, histogram):
    """`kernels.order.order_points`, its three steps called one by one."""
    least, most = kernels.fill_patterns(distances, factor, patterns)
    kernels.sort_keys(patterns, least, most, codes, code, keys, spare, histogram)
    if exact:
        kernels.restore_order(keys, distances)
    return least


def main() -> None:
    """Print one line a shape and metric, the best of five runs."""
    order.order_points = order_points
    timed(order, "direct_keys", "distances")
    timed(order._Table, "_fill", "distances")
    timed(kernels, "fill_patterns", "patterns")
    timed(kernels, "sort_keys", "sort")
    timed(kernels, "restore_order", "restore")
    timed(order, "settle_ties", "settle")
    timed(nearest, "add_values", "scan")
    random = np.random.default_rng(0)
    for n, m, d in SHAPES:
        X, V = (random.standard_normal((size, d)).astype(np.float32) for size in (n, m))
        y, w = X[:, 0] > 0, V[:, 0] > 0
        for metric in ("euclidean", "cosine"):
            best: dict[str, float] = {}
            for _ in range(5):
                seconds.clear()
                start = time.perf_counter()
                th.knn_shapley(X, y, V, w, metric=metric)
                seconds["all"] = time.perf_counter() - start
                best = {k: min(best.get(k, 1e9), v) for k, v in seconds.items()}
            line = ", ".join(f"{k} {v / n / m * 1e9:.2f}" for k, v in best.items())
            sys.stdout.write(f"({n}, {m}, {d}) {metric}: {line}\n")


if __name__ == "__main__":
    main()
