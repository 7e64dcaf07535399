"""What rings cost: against the bare product, against the box, and the prices alone.

    python benchmarks/rings.py            the page results/rings.md

Figures are elapsed time on a quiet machine, the best of turns that the contenders take.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

import thresher as th
from thresher.games.ring_prices import ring_prices
from thresher.neighbors.kernel import check_kernel
from thresher.threads import thread_count

sys.path.insert(0, str(Path(__file__).parent))
from provenance import store

TURNS = 5
LIMITS = {"wide": 1.3, "narrow": 4.0, "prices": 1.0}


def best(*contenders):
    """The least elapsed time of each contender, which take turns."""
    found = [np.inf] * len(contenders)
    for _ in range(TURNS):
        for place, contender in enumerate(contenders):
            start = time.perf_counter()
            contender()
            found[place] = min(found[place], time.perf_counter() - start)
    return found


def data(n, m, d, seed=0):
    rng = np.random.default_rng(seed)
    X, V = (rng.standard_normal((k, d), dtype=np.float32) for k in (n, m))
    return X, rng.integers(0, 2, n), V, rng.integers(0, 2, m)


def wide():
    X, y, V, y_val = data(50_000, 1_000, 1024)
    bare, rings = best(
        lambda: X @ V.T, lambda: th.tknn_shapley(X, y, V, y_val, kernel="gaussian", radius=1.0)
    )
    return {"bare product": bare, "16 rings": rings, "ratio": rings / bare}


def narrow():
    X, y, V, y_val = data(100_000, 1_000, 10)
    box, rings = best(
        lambda: th.tknn_shapley(X, y, V, y_val, neighbors="all"),
        lambda: th.tknn_shapley(X, y, V, y_val, neighbors="all", kernel="gaussian"),
    )
    return {"box": box, "16 rings": rings, "ratio": rings / box}


def prices(near):
    rng = np.random.default_rng(0)
    weights = np.array(check_kernel("gaussian", 16, 0.5)[1].weights)
    same, other = (rng.integers(0, near // 16 + 1, (16, 1000)) for _ in range(2))
    ring_prices(same[:, :8], other[:, :8], weights, 2, "shapley")
    (used,) = best(lambda: ring_prices(same, other, weights, 2, "shapley"))
    return used


def main():
    warnings.simplefilter("ignore")
    th.tknn_shapley(*data(200, 70, 10), kernel="gaussian")
    result = {
        "threads": thread_count(),
        "wide": wide(),
        "narrow": narrow(),
        "prices": {near: prices(near) for near in (100, 10_000, 1_000_000)},
        "limits": LIMITS,
    }
    store("rings", result, render(result))
    print(render(result))


def render(result):
    """A Markdown page."""
    lines = [
        "# What kernels cost", "",
        "A kernel divides the ball around a validation point into rings. Its cost is compared with the bare float32 matrix "
        "product, and with the box, which counts all near points alike. Shapes are (points, validation points, features). Times "
        f"are elapsed times, the best of {TURNS} turns.", "",
        "| what | measured | target |", "|---|---|---|",
        f"| 16 rings over the bare float32 product, (50,000, 1,000, 1024) | "
        f"{result['wide']['ratio']:.2f} | at most {LIMITS['wide']} |",
        f"| 16 rings over the box, (100,000, 1,000, 10) | {result['narrow']['ratio']:.2f} | "
        f"at most {LIMITS['narrow']:g} |",
    ]  # fmt: skip
    lines += [
        f"| prices of 1,000 validation points with {int(near):,} near points, on two cores | {used:.2f} s | "
        f"at most {LIMITS['prices']:g} s |"
        for near, used in result["prices"].items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
