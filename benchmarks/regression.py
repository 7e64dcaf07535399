"""How well values find replaced targets: a tenth of the numbers of a table are those of other rows.

Usage: python benchmarks/regression.py [--data FOLDER] [--draws 3]; else THRESHER_DATA. Writes
results/regression.json and results/regression.md. Without data sets, tables that scikit-learn has.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from provenance import store
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.metrics import roc_auc_score

import thresher as th

RESULTS = Path(__file__).parent / "results"
POINTS, VALIDATION, REPLACED = 300, 100, 0.1
COLUMNS = {"wind": "BEL", "cpu": "vflt"}  # a numeric column of a set of the paper, to be predicted
WAYS = ("forest", "radius", "nearest", "leave-one-out", "Data Shapley")
EVALUATIONS = 3_000
ABOUT = (
    f"A tenth of the targets of {POINTS} points was replaced by those of other rows, and {VALIDATION} "
    "validation points judge. The table shows how well low values find the replaced targets, as "
    "AUROC: mean ± standard deviation over the draws. *forest*, *radius* and *nearest* are "
    "`forest_shapley`, `tknn_shapley` and `knn_shapley`. The other columns retrain a ridge regression."
)


def tables(folder):
    """Features and targets by name; of the paper's sets, whose targets are classes, a column."""
    found = {"diabetes": load_diabetes(return_X_y=True)}
    for name, make in (("1", make_friedman1), ("2", make_friedman2), ("3", make_friedman3)):
        noise = {"1": 1.0, "2": 100.0, "3": 0.1}[name]
        found[f"friedman {name}"] = make(1000, noise=noise, random_state=0)
    folder = folder or os.environ.get("THRESHER_DATA")
    for name, column in COLUMNS.items():
        path = Path(folder or "", f"{name}.npz")
        if folder is None or not path.is_file():
            print(f"{name} was skipped: {path.name} is not in a folder of data sets")
            continue
        data = np.load(path)
        place = data["feature_names"].tolist().index(column)
        rows = data["X"].astype(np.float64)
        found[f"{name}, {column}"] = np.delete(rows, place, axis=1), rows[:, place]
    return found


def draw(X, y, seed):
    """Points with replaced targets, validation set, and which targets were replaced."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))[: POINTS + VALIDATION]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    ours, theirs = order[VALIDATION:], order[:VALIDATION]
    wrong = rng.permutation(len(ours)) < REPLACED * len(ours)
    targets = np.where(wrong, rng.choice(y, len(ours)), y[ours])
    return X[ours], targets, X[theirs], y[theirs], wrong


def judge(X, y, V, y_val):
    """The values by every way."""
    distance = {"metric": "euclidean", "task": "regression"}
    radius = th.suggest_radius(V, y_val, **distance)
    about = {"task": "regression", "workers": 1}
    return {
        "forest": th.forest_shapley(X, y, V, y_val, trees=200, task="regression"),
        "radius": th.tknn_shapley(X, y, V, y_val, radius=float(radius), **distance),
        "nearest": th.knn_shapley(X, y, V, y_val, k=5, **distance),
        "leave-one-out": th.leave_one_out(X, y, V, y_val, **about),
        "Data Shapley": th.data_shapley(X, y, V, y_val, evaluations=EVALUATIONS, **about),
    }


def page(found):
    """The table of means and deviations."""
    head = ("table", *WAYS)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, by_way in found.items():
        cells = [f"{np.mean(by_way[way]):.2f} ± {np.std(by_way[way]):.2f}" for way in WAYS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return f"# Finding replaced targets\n\n{ABOUT}\n\n" + "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data")
    arguments.add_argument("--draws", type=int, default=3)
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for name, (X, y) in tables(given.data).items():
        for seed in range(given.draws):
            *data, wrong = draw(X, y, seed)
            for way, valuation in judge(*data).items():
                score = roc_auc_score(wrong, -valuation.values)
                found.setdefault(name, {}).setdefault(way, []).append(round(float(score), 4))
        print(name, {way: round(float(np.mean(each)), 3) for way, each in found[name].items()})
    about = {"points": POINTS, "validation": VALIDATION, "replaced": REPLACED, "draws": given.draws}
    store("regression", {**about, "evaluations": EVALUATIONS, "auroc": found}, page(found))


if __name__ == "__main__":
    main()
