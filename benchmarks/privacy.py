"""What a privacy budget buys: private values against exact ones, on the paper's tabular data sets.

.venv/bin/python benchmarks/privacy.py [--data FOLDER] [--seeds 5] [--only MECHANISM]

With --only one mechanism is measured anew, and the stored result keeps the others.

For every data set and seed 200 rows are the public validation set and at most 2,000 others, as many
of each class, the private points, a tenth of them with a flipped label. Columns are scaled by the
validation set alone. Files NAME.npz (X, y) come from --data, else THRESHER_DATA, else OpenML.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from provenance import store
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

import thresher as th
from thresher.inputs.checked_inputs import check_validation
from thresher.paper.datasets import TABULAR, Shelf
from thresher.privacy.entry_weights import Clipping, EntryWeights
from thresher.privacy.prior import Prior
from thresher.privacy.public_rows import Public

HERE = Path(__file__).parent
EPSILONS = (0.1, 0.5, 1.0)
DELTA = 1e-4
POINTS, VALIDATION = 2000, 200
KERNEL = {"kernel": "gaussian", "radius": 0.8, "rings": 4}
RINGS = "table, gaussian kernel"  # its exact values are those of the same kernel


def problem(X, y, seed):
    """Points with flipped labels, validation set, and which labels were flipped."""
    random = np.random.default_rng([seed, 7])
    order = random.permutation(len(y))
    val, rest = order[:VALIDATION], order[VALIDATION:]
    size = min(POINTS // 2, *(int((y[rest] == label).sum()) for label in (0, 1)))
    chosen = random.permutation(np.concatenate([rest[y[rest] == label][:size] for label in (0, 1)]))
    mean, deviation = X[val].mean(axis=0), X[val].std(axis=0)
    deviation = np.where(deviation > 1e-9, deviation, 1.0)
    scaled = np.clip((X - mean) / deviation, -10, 10)
    labels, flipped = th.flip_labels(y[chosen], fraction=0.1, seed=seed)
    return scaled[chosen], labels, scaled[val], y[val], flipped


def public_prior(points, y, X_val, y_val):
    """Values at the counts that the validation set alone predicts for so many points."""
    validation = check_validation(X_val, y_val, metric="cosine", classes=np.unique(y_val))
    unclipped = Clipping(len(validation), 64, EntryWeights.alike(len(validation)))
    prior = Prior(Public.of(validation, 0.5), unclipped)
    same, other = np.split(prior.mean * len(points), 2)
    prices = th.PriceList.of_counts(validation, 0.5, (same, other), "shapley")
    return prices.values(points, y)


def contenders(epsilon):
    """Name and values of everything that spends epsilon."""
    budget = {"epsilon": epsilon, "delta": DELTA, "classes": [0, 1]}
    return {
        "table": lambda *d, seed: th.dp_tknn_shapley(*d, **budget, seed=seed),
        RINGS: lambda *d, seed: th.dp_tknn_shapley(*d, **budget, **KERNEL, seed=seed),
        "cells": lambda *d, seed: th.dp_tknn_shapley(*d, **budget, mechanism="cells", seed=seed),
        "paper": lambda *d, seed: th.dp_tknn_shapley(*d, **budget, mechanism="paper", seed=seed),
        "knn": lambda *d, seed: th.dp_knn_shapley(*d, **budget, seed=seed),
        "knn sampled": lambda *d, seed: th.dp_knn_shapley(*d, **budget, subsample=0.01, seed=seed),
    }


def scores(values, exact, flipped):
    """Spearman with the exact values, relative error, AUROC of finding flipped labels."""
    constant = np.ptp(values) == 0
    return {
        "spearman": 0.0 if constant else float(spearmanr(values, exact)[0]),
        "relative error": float(np.sqrt(((values - exact) ** 2).mean() / (exact**2).mean())),
        "AUROC": float(roc_auc_score(flipped, -values)),
    }


def measure(stored, seed, only=None):
    """All scores of one data set and seed, or those of one mechanism."""
    *data, flipped = problem(stored.X, stored.y, seed)
    exact = th.tknn_shapley(*data, classes=[0, 1]).values
    rows = [("exact", 0.0, scores(exact, exact, flipped))]
    free = th.zero_budget_score(*data, classes=[0, 1]).values
    rows.append(("zero-budget score", 0.0, scores(free, exact, flipped)))
    rows.append(("public prior", 0.0, scores(public_prior(*data), exact, flipped)))
    truth = {"knn": th.knn_shapley(*data, classes=[0, 1], utility="jia2019").values}
    truth["knn sampled"] = truth["knn"]
    truth[RINGS] = th.tknn_shapley(*data, classes=[0, 1], **KERNEL).values
    rows.append(("exact, gaussian kernel", 0.0, scores(truth[RINGS], truth[RINGS], flipped)))
    for epsilon in EPSILONS:
        for mechanism, run in contenders(epsilon).items():
            if only not in (None, mechanism):
                continue
            release = run(*data, seed=1000 * seed + round(100 * epsilon))
            found = scores(release.values, truth.get(mechanism, exact), flipped)
            if mechanism in ("table", "cells", RINGS):
                error, real = release.error, truth.get(mechanism, exact)
                found["stated error"] = error.relative
                held = float(((error.low <= real) & (real <= error.high)).mean())
                found["held"] = None if error.relative is None else held
            rows.append((mechanism, epsilon, found))
    return [
        {"set": stored.name, "seed": seed, "mechanism": mechanism, "epsilon": epsilon, **found}
        for mechanism, epsilon, found in rows
    ]


def speed(repeats=5):
    """Seconds for 100,000 points, 1,000 validation points, 10 features: exact and private."""
    random = np.random.default_rng(0)
    X, V = (random.normal(size=(n, 10)).astype(np.float32) for n in (100_000, 1000))
    data = X, X[:, 0] > 0, V, V[:, 0] > 0
    runs = {
        "tknn_shapley": lambda: th.tknn_shapley(*data),
        "dp_tknn_shapley, values": lambda: th.dp_tknn_shapley(*data, epsilon=1, delta=1e-6).values,
        "plan_release": lambda: th.plan_release(
            *data[2:], points=100_000, epsilon=1, delta=1e-6, mechanisms=["table"]
        ),
    }
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def average(rows, mechanism, epsilon, column):
    """Mean over data sets and seeds."""
    found = [
        row[column]
        for row in rows
        if (row["mechanism"], row["epsilon"]) == (mechanism, epsilon)
        and row.get(column) is not None  # a table that is noise states no error
    ]
    return float(np.mean(found)) if found else float("nan")


def render(result):
    """A Markdown page."""
    rows = result["rows"]
    sets = sorted({row["set"] for row in rows})
    seeds = len({row["seed"] for row in rows})
    lines = [
        "# What a privacy budget buys",
        "",
        f"{len(sets)} data sets "
        f"({', '.join(sets)}), {seeds} seeds, delta = {DELTA:g}, seeded noise. Released values are "
        "compared with the exact values of the same method. *table*, *cells* and *paper* are "
        "mechanisms of `dp_tknn_shapley`, and *knn* is `dp_knn_shapley`. The rows without a budget "
        "are for comparison: the zero-budget score and the public prior use no private counts.",
        "",
    ]
    for title, column, digits in (
        ("Spearman with the exact values", "spearman", 3),
        ("Relative error", "relative error", 3),
        ("AUROC of finding flipped labels", "AUROC", 3),
        ("Relative error that the release states", "stated error", 3),
        ("Share of exact values inside their intervals", "held", 2),
    ):
        lines += [f"## {title}", "", "| | epsilon 0.1 | 0.5 | 1 |", "|---|---|---|---|"]
        for mechanism in ("exact", "exact, gaussian kernel", "zero-budget score", "public prior"):
            found = average(rows, mechanism, 0.0, column)
            if not np.isnan(found):
                lines.append(f"| {mechanism} (no budget) | {found:.{digits}f} | | |")
        for mechanism in contenders(1.0):
            found = [average(rows, mechanism, epsilon, column) for epsilon in EPSILONS]
            if not np.isnan(found).any():
                shown = " | ".join(f"{each:.{digits}f}" for each in found)
                lines.append(f"| {mechanism} | {shown} |")
        lines.append("")
    for mechanism in ("table", RINGS):
        lines += [f"## The mechanism {mechanism}, by data set: Spearman and relative error", ""]
        lines += ["| | epsilon 0.1 | 0.5 | 1 |", "|---|---|---|---|"]
        for name in sets:
            own = [row for row in rows if row["set"] == name]
            pairs = [
                f"{average(own, mechanism, e, 'spearman'):.3f}, "
                f"{average(own, mechanism, e, 'relative error'):.2f}"
                for e in EPSILONS
            ]
            lines.append(f"| {name} | {' | '.join(pairs)} |")
        lines.append("")
    lines += ["## Seconds at (100000, 1000, 10)", "", "| call | s |", "|---|---|"]
    lines += [f"| {name} | {seconds:.3f} |" for name, seconds in result["seconds"].items()]
    return "\n".join(lines) + "\n"


def main():
    """Measure and write results/privacy.json and .md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=list(contenders(1.0)))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", th.TwinWarning)
    shelf = Shelf(arguments.data)
    jobs = [(shelf.get(name), seed) for name in TABULAR for seed in range(arguments.seeds)]
    rows = [row for job in tqdm(jobs) for row in measure(*job, arguments.only)]
    result = {"rows": rows}
    folder = HERE / "results"
    if arguments.only is None:
        result["seconds"] = speed()
    else:
        old = json.loads((folder / "privacy.json").read_text())
        new = {row["mechanism"] for row in rows}
        result["rows"] = [row for row in old["rows"] if row["mechanism"] not in new] + rows
        result["seconds"] = old["seconds"]
    store("privacy", result, render(result))
    print(render(result))


if __name__ == "__main__":
    main()
