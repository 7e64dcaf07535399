"""Do values by leaves buy more for the same epsilon than values by a radius?

.venv/bin/python benchmarks/leaf_tables.py [--data FOLDER] [--seeds 2]

Trees are grown on the public validation set ("grown") or cut at random ("random"). A point enters
one leaf a tree, so a table of points by leaf and class moves by sqrt(trees) and nothing is clipped.
Noise is Gaussian, and a count is at least two of its deviations, as in the table of a radius. The
points and sets are those of benchmarks/privacy.py. Spearman is against exact values of the same
game; AUROC is that of finding flipped labels.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from privacy import DELTA, EPSILONS, problem
from scipy.special import digamma
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.paper.datasets import TABULAR, Shelf
from thresher.privacy import Table
from thresher.privacy.accountants import gaussian_mu

HERE = Path(__file__).parent
TREES, LEAVES = (1, 4, 16), 16
KINDS = {"grown": RandomForestClassifier, "random": ExtraTreesClassifier}


def prices(same, other):
    """What a member is worth that agrees with a validation point, and one that does not."""
    total = np.maximum(same + other, 1e-9)
    lone = total < 2
    harmonic = digamma(np.maximum(total, 2) + 1) + np.euler_gamma - 1
    rest = np.maximum(total - 1, 1)
    agree = np.where(lone, 0.5, (harmonic * (1 - (same - 1) / rest) + 0.5) / total)
    differ = np.where(lone, -0.5, (harmonic * (-same / rest) - 0.5) / total)
    return agree, differ


def leaf_values(leaves, y, leaves_val, y_val, sigma, random):
    """Values of points, from counts by leaf and class with noise of this deviation."""
    values, trees = np.zeros(len(y)), leaves.shape[1]
    for tree in range(trees):
        names = np.unique(np.concatenate([leaves[:, tree], leaves_val[:, tree]]))
        mine, judges = (np.searchsorted(names, each[:, tree]) for each in (leaves, leaves_val))
        counts = np.zeros((len(names), 2))
        np.add.at(counts, (mine, y), 1)
        counts = np.maximum(counts + sigma * random.standard_normal(counts.shape), 0)
        total = np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
        counts *= np.maximum(total, 2 * np.sqrt(2) * sigma) / total
        for label in (0, 1):
            agree, differ = prices(counts[:, label], counts[:, 1 - label])
            near = np.bincount(judges[y_val == label], minlength=len(names))
            values += near[mine] * np.where(y == label, agree[mine], differ[mine]) / trees
    return values


def measure(stored, seed):
    """Spearman and AUROC of every way on one data set."""
    X, y, X_val, y_val, flipped = problem(stored.X, stored.y, seed)
    data, ways = (X, y, X_val, y_val), {}
    exact = th.tknn_shapley(*data, classes=[0, 1]).values
    for epsilon in EPSILONS:
        for name, prior in (("radius", True), ("radius, no prior", False)):
            found = th.dp_tknn_shapley(
                *data, classes=[0, 1], epsilon=epsilon, delta=DELTA, seed=seed,
                mechanism=Table(prior=prior),
            )  # fmt: skip
            ways[name, epsilon] = found.values, exact
        mu = gaussian_mu(epsilon, DELTA)
        for (kind, forest), trees in ((k, t) for k in KINDS.items() for t in TREES):
            grown = forest(trees, max_leaf_nodes=LEAVES, random_state=seed).fit(X_val, y_val)
            leaves = grown.apply(X), y, grown.apply(X_val), y_val
            random = np.random.default_rng(seed)
            truth = leaf_values(*leaves, 0.0, random)
            noisy = leaf_values(*leaves, np.sqrt(trees) / mu, random)
            ways[f"{trees} {kind}", epsilon] = noisy, truth
    for (way, epsilon), (found, truth) in ways.items():
        yield {
            "set": stored.name, "seed": seed, "way": way, "epsilon": epsilon,
            "spearman": float(np.nan_to_num(spearmanr(found, truth)[0])),
            "auroc": float(roc_auc_score(flipped, -found)),
        }  # fmt: skip


def render(result):
    """A Markdown page: means over sets and seeds."""
    lines = [
        "# Values by leaves and by a radius",
        "",
        f"`benchmarks/leaf_tables.py`; {result['date']}.",
    ]
    lines += ["", "| table | Spearman at epsilon 0.1 / 0.5 / 1 | AUROC of flipped labels |"]
    lines += ["|---|---|---|"]
    for way in dict.fromkeys(row["way"] for row in result["rows"]):
        shown = []
        for column in ("spearman", "auroc"):
            own = [
                [r[column] for r in result["rows"] if (r["way"], r["epsilon"]) == (way, epsilon)]
                for epsilon in EPSILONS
            ]
            shown.append(" / ".join(f"{np.mean(each):.3f}" for each in own))
        lines.append(f"| {way} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines) + "\n"


def main():
    """Measure and write results/leaf-tables.json and .md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    shelf = Shelf(arguments.data)
    jobs = [(shelf.get(name), seed) for name in TABULAR for seed in range(arguments.seeds)]
    rows = [row for job in jobs for row in measure(*job)]
    result = {"date": time.strftime("%Y-%m-%d"), "version": th.__version__, "rows": rows}
    (HERE / "results" / "leaf-tables.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "results" / "leaf-tables.md").write_text(render(result))
    print(render(result))


if __name__ == "__main__":
    main()
