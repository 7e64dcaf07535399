"""What a privacy budget buys where targets are numbers: private values against exact ones.

    python benchmarks/privacy_regression.py [--seeds 3]     the page results/privacy-regression.md

For every set 200 rows are the public validation set and at most 5,000 others the private points, a
tenth of them with the target of another point. Columns are scaled by the validation set, the bounds
are the range of its targets, and the radius holds a twentieth of its pairs. Exact values are those
of targets clipped to the bounds.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from provenance import store
from scipy.stats import spearmanr
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.metrics import pairwise_distances

import thresher as th

FOLDER = Path(__file__).parent / "results"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
POINTS, VALIDATION = 5000, 200


def sets(seed):
    """Names, rows and targets."""
    rng, size = np.random.default_rng(seed), POINTS + VALIDATION
    yield "diabetes", *load_diabetes(return_X_y=True)
    yield "friedman1", *make_friedman1(size, n_features=6, noise=1.0, random_state=seed)
    yield "friedman2", *make_friedman2(size, noise=100.0, random_state=seed)
    yield "friedman3", *make_friedman3(size, noise=0.1, random_state=seed)
    X = rng.normal(size=(size, 3))
    yield "smooth3", X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=size)
    X = rng.random((size, 2))
    yield "steps2", X, np.floor(4 * X[:, 0]) + (X[:, 1] > 0.5) + 0.1 * rng.normal(size=size)
    X = rng.normal(size=(size, 8))
    yield "linear8", X, X @ np.arange(8.0) + rng.normal(size=size)


def problem(X, y, seed):
    """Points with some wrong targets, validation set, and what is public about them."""
    rng = np.random.default_rng([seed, 3])
    order = rng.permutation(len(y))
    val, rest = order[:VALIDATION], order[VALIDATION:]
    scale = X[val].std(axis=0)
    X = (X - X[val].mean(axis=0)) / np.where(scale > 0, scale, 1)
    points, low, high = y[rest].copy(), y[val].min(), y[val].max()
    bad = rng.random(len(rest)) < 0.1
    points[bad] = rng.permutation(y[rest])[bad]
    radius = np.quantile(pairwise_distances(X[val])[np.triu_indices(len(val), 1)], 0.05)
    about = {"metric": "euclidean", "radius": float(radius), "task": "regression"}
    return (X[rest], points, X[val], y[val]), about | {"bounds": (float(low), float(high))}


def measure(name, X, y, seed):
    """Spearman and relative error of all contenders."""
    data, about = problem(X, y, seed)
    clipped = data[0], np.clip(data[1], *about["bounds"]), *data[2:]
    exact = th.tknn_shapley(*clipped, **about).values
    free = th.zero_budget_score(*clipped, **about).values
    rows = [{"set": name, "seed": seed, "epsilon": 0.0, **scores(free, exact)}]
    for epsilon in EPSILONS:
        release = th.dp_tknn_shapley(*data, epsilon=epsilon, delta=DELTA, seed=seed, **about)
        statement = {"stated": release.relative_error, "bound": release.record["bound"]}
        found = scores(release.values, exact) | statement
        rows.append({"set": name, "seed": seed, "epsilon": epsilon, **found})
    return rows


def scores(values, exact):
    """Spearman with the exact values, and relative error."""
    error = np.sqrt(((values - exact) ** 2).mean() / (exact**2).mean())
    return {"spearman": float(spearmanr(values, exact)[0]), "relative error": float(error)}


def render(rows, seeds):
    """A page with tables of ranks, of errors, and of errors that releases state."""
    lines = [
        "# What a privacy budget buys where targets are numbers", "",
        f"Released values are compared with exact ones, for {seeds} seeds, delta = {DELTA:g} and seeded "
        "noise. A tenth of the points have the target of another point. The zero-budget score spends "
        "no budget.", "",
    ]  # fmt: skip
    heads = ["zero budget", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    for title, column in (("Spearman with the exact values", "spearman"), ("Relative error", "relative error")):  # fmt: skip
        lines += [
            f"## {title}",
            "",
            f"| set | {' | '.join(heads)} |",
            "|---" * (len(heads) + 1) + "|",
        ]
        for name in dict.fromkeys(row["set"] for row in rows):
            cells = [
                np.mean([r[column] for r in rows if (r["set"], r["epsilon"]) == (name, epsilon)])
                for epsilon in (0.0, *EPSILONS)
            ]
            lines.append(f"| {name} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
        lines.append("")
    return "\n".join([*lines, *stated_errors(rows)])


def stated_errors(rows):
    """A table of the errors that releases state, divided by the true ones."""
    lines = ["## Stated error divided by the true one", ""]
    lines += ["| epsilon | runs | that state one | median | smallest | largest |", "|---|---|---|---|---|---|"]  # fmt: skip
    for epsilon in EPSILONS:
        runs = [row for row in rows if row["epsilon"] == epsilon]
        ratios = [
            row["stated"] / row["relative error"] for row in runs if row["stated"] is not None
        ]
        cells = [f"{each:.2f}" for each in (np.median(ratios), min(ratios), max(ratios))]
        lines.append(f"| {epsilon:g} | {len(runs)} | {len(ratios)} | {' | '.join(cells)} |")
    return [*lines, ""]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    rows = [
        row for seed in range(seeds) for each in sets(seed) for row in measure(*each, seed=seed)
    ]
    page = render(rows, seeds)
    store("privacy-regression", {"rows": rows}, page + "\n")
    print(page)


if __name__ == "__main__":
    main()
