"""Do values by leaves buy more for the same epsilon than values by a radius?

.venv/bin/python benchmarks/leaf_tables.py [--data FOLDER] [--seeds 2]

Trees are grown on the public validation set ("grown") or cut at random ("random"). A point enters
one leaf a tree, so a table of points by leaf and class moves by sqrt(trees) and nothing is clipped.
With owners of 20 points each, an owner is what is protected, and owners are clipped. The points and
sets are those of benchmarks/privacy.py. Spearman and the relative error are against exact values of
the same game, of points or of owners; AUROC is that of finding flipped labels. Planned is the error
of points that `plan_release` predicts, over the true one.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from privacy import DELTA, EPSILONS, problem
from provenance import store
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.neighbors.forests import Forest
from thresher.neighbors.tree_columns import TreeColumns
from thresher.paper.datasets import TABULAR, Shelf
from thresher.privacy import Table

HERE = Path(__file__).parent
TREES, LEAVES = (1, 4, 16), 16
KINDS = {"grown": RandomForestClassifier, "random": ExtraTreesClassifier}
SIZE, BUDGETS = 20, {"point": EPSILONS, "owner": (1.0, 4.0, 10.0)}


def games(X_val, y_val, seed):
    """Name, arguments and mechanism of each way to say who is near."""
    yield "radius", {}, Table()
    yield "radius, size public", {}, Table()  # the bound fits the number of points
    yield "radius, no prior", {}, Table(prior=False)
    for kind, grower in KINDS.items():
        for trees in TREES:
            fitted = grower(trees, max_leaf_nodes=LEAVES, random_state=seed).fit(X_val, y_val)
            forest = Forest.as_fitted(fitted, TreeColumns(X_val.shape[1]))
            yield f"{trees} {kind}", {"forest": forest}, Table()


def measure(stored, seed):
    """Spearman, error and AUROC of every way on one data set."""
    X, y, X_val, y_val, flipped = problem(stored.X, stored.y, seed)
    owners = np.arange(len(y)) // SIZE
    units = {"point": {}, "owner": {"owners": owners, "points_per_owner": SIZE}}
    for way, near, mechanism in games(X_val, y_val, seed):
        counts = th.NeighborCounts(X_val, y_val, classes=[0, 1], **near).add(X, y)
        exact = counts.price_list().values(X, y)
        size = {"points": len(y), "anyway": True} if "public" in way else {}
        for unit, epsilon in ((u, e) for u in units for e in BUDGETS[u]):
            found = th.dp_tknn_shapley(
                X, y, X_val, y_val, classes=[0, 1], epsilon=epsilon, delta=DELTA, seed=seed,
                mechanism=mechanism, **near, **units[unit], **size,
            ).values  # fmt: skip
            planned = None
            if "grown" in way:
                about = {"epsilon": epsilon, "delta": DELTA, "classes": [0, 1], "points": len(y)}
                about |= {} if unit == "point" else {"points_per_owner": SIZE}
                planned = th.plan_release(X_val, y_val, **about, **near)[0].relative_error
                planned /= float(np.sqrt(((found - exact) ** 2).mean() / (exact**2).mean()))
            sums = [v if unit == "point" else np.bincount(owners, v) for v in (found, exact)]
            off = np.sqrt(((sums[0] - sums[1]) ** 2).mean() / (sums[1] ** 2).mean())
            yield {
                "set": stored.name, "seed": seed, "unit": unit, "way": way, "epsilon": epsilon,
                "spearman": float(np.nan_to_num(spearmanr(*sums)[0])), "error": float(off),
                "auroc": float(roc_auc_score(flipped, -found)), "planned": planned,
            }  # fmt: skip


def render(result):
    """A Markdown page: means over sets and seeds."""
    lines = [
        "# Private values by leaves and by a radius", "",
        "A private table counts near points within a radius, or in the leaves of a forest that was "
        "grown from the public validation set. *grown* is a random forest, and *random* one of "
        "extremely randomized trees. Each release is compared with the exact values of the same way "
        "to count: by their order (Spearman) and by the relative error. If owners are protected, "
        "these two compare the sums of each owner. AUROC is how well low released values find flipped "
        "labels. *planned* is the error that `plan_release` expects, divided by the true one of "
        "single points. Figures are means over data sets and seeds.",
    ]  # fmt: skip
    for unit, budgets in BUDGETS.items():
        at = " / ".join(f"{epsilon:g}" for epsilon in budgets)
        lines += ["", f"Each {unit} is protected.", ""]
        lines += [f"| table | Spearman at epsilon {at} | relative error | AUROC | planned |"]
        lines += ["|---|---|---|---|---|"]
        rows = [row for row in result["rows"] if row["unit"] == unit]
        for way in dict.fromkeys(row["way"] for row in rows):
            shown = [way]
            for column in ("spearman", "error", "auroc", "planned"):
                own = [
                    [r[column] for r in rows if (r["way"], r["epsilon"]) == (way, epsilon)]
                    for epsilon in budgets
                ]
                shown.append(
                    " / ".join(f"{np.mean(each):.3f}" for each in own if each[0] is not None)
                )
            lines.append(f"| {' | '.join(shown)} |")
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
    result = {"rows": rows}
    store("leaf-tables", result, render(result))
    print(render(result))


if __name__ == "__main__":
    main()
