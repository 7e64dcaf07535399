"""How often the suggestion `relabel` is right, and whether the report foretells it.

Labels of real tables are flipped, the tables are written as .csv and valued by the command's own
functions. Usage: python benchmarks/suggestions.py [FOLDER OF .npz]; else THRESHER_DATA. Writes
results/suggestions.json and results/suggestions.md; where data sets are missing it says so and
leaves them as they are.
"""

import csv
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.paper import Shelf
from thresher.paper.datasets import MissingSetError
from thresher.report import gather
from thresher.runs import Settings, value_files

FOLDER = Path(__file__).parent / "results"
SETS = ("phoneme", "wind", "pol", "cpu", "creditcard")
POINTS, VALIDATION, FLIPPED = 2000, 500, 0.08


def write_csv(path, X, y):
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(f"f{j}" for j in range(X.shape[1])), "y"])
        for row, label in zip(X.tolist(), y):
            table.writerow([*row, f"class{label}"])


def measure(data, folder):
    rows = np.random.default_rng(7).permutation(len(data.X))[: POINTS + VALIDATION]
    X, y = data.X[rows], data.y[rows]
    points, wrong = th.flip_labels(y[:POINTS], fraction=FLIPPED, seed=3)
    write_csv(folder / "points.csv", X[:POINTS], points)
    write_csv(folder / "val.csv", X[POINTS:], y[POINTS:])
    settings = Settings(
        str(folder / "points.csv"), validation=str(folder / "val.csv"), standardize=True
    )
    valued = value_files(settings)
    suggestion = np.array(valued.findings.suggestion)
    evidence = gather(valued.valuation, *valued.data)
    marked = suggestion == "relabel"
    right = evidence.suggestions.count_right()
    return {
        "AUROC": f"{roc_auc_score(wrong, -valued.valuation.values):.3f}",
        "rows marked relabel": int(marked.sum()),
        "of these wrong": int(wrong[marked].sum()),
        "foretold": int(marked.sum()) - right,
        "wrong among inspect": f"{wrong[suggestion == 'inspect'].sum()} of {(suggestion == 'inspect').sum()}",
        "wrong among keep": f"{wrong[suggestion == 'keep'].sum()} of {(suggestion == 'keep').sum()}",
    }


def render(table):
    columns = list(table[SETS[0]])
    lines = [f"| data set | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for name, row in table.items():
        lines.append(f"| {name} | {' | '.join(str(row[column]) for column in columns)} |")
    return "\n".join(lines) + "\n"


def main():
    shelf = Shelf(*sys.argv[1:2], fetch=False)
    try:
        sets = {name: shelf.get(name) for name in SETS}
    except MissingSetError as missing:
        print(f"suggestions.py was skipped, its results are kept: {missing}")
        return
    with tempfile.TemporaryDirectory() as folder:
        table = {name: measure(data, Path(folder)) for name, data in sets.items()}
    (FOLDER / "suggestions.json").write_text(json.dumps(table, indent=1) + "\n")
    (FOLDER / "suggestions.md").write_text("# Suggestions\n\n" + render(table))
    print(render(table))


if __name__ == "__main__":
    main()
