"""Which distance method finds corrupted points best: box, nearest neighbors or a kernel.

    python benchmarks/kernel_detection.py [--draws 5]     the page results/kernel-detection.md

The thirteen sets and both protocols of the paper, mislabeled and noisy points, AUROC as the mean over draws.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import thresher as th
from thresher.paper.datasets import SETS, Shelf
from thresher.paper.detection import auroc, quietly
from thresher.paper.draws import PROTOCOLS, TASKS, draw_problem

FOLDER = Path(__file__).parent / "results"
METHODS = ["box 0.5", "box suggested", "knn k=5", "gaussian 0.8", "gaussian suggested"]


def values(problem, method):
    """What one method says of a problem; a suggested radius looks at the validation set alone."""
    kind, _, how = method.partition(" ")
    about = {"classes": problem.classes}
    if kind == "knn":
        return quietly(th.knn_shapley, *problem.data, k=5, **about).values
    kernel = {} if kind == "box" else {"kernel": kind}
    if how == "suggested":
        radius = float(quietly(th.suggest_radius, *problem.data[2:], **kernel))
    else:
        radius = float(how)
    return quietly(th.tknn_shapley, *problem.data, radius=radius, **kernel, **about).values


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=5)
    draws, shelf, found = parser.parse_args().draws, Shelf(fetch=False), {}
    for protocol in PROTOCOLS:
        for task in TASKS:
            for name in SETS:
                problems = [draw_problem(shelf.get(name), task, protocol, i) for i in range(draws)]
                found[f"{protocol}/{task}/{name}"] = {
                    method: [auroc(each, values(each, method)) for each in problems]
                    for method in METHODS
                }
                print(protocol, task, name, flush=True)
    (FOLDER / "kernel-detection.json").write_text(json.dumps(found, indent=1) + "\n")
    page = ["# Kernels and detection", "", f"AUROC, mean and deviation of {draws} draws.", ""]
    for protocol in PROTOCOLS:
        for task in TASKS:
            page += table(found, protocol, task)
    (FOLDER / "kernel-detection.md").write_text("\n".join(page) + "\n")


def table(found, protocol, task):
    """One table: a row for each set, and in how many sets each method is best."""
    rows = [found[f"{protocol}/{task}/{name}"] for name in SETS]
    means = np.array([[np.mean(row[method]) for method in METHODS] for row in rows])
    lines = [f"## {task}, protocol {protocol}", "", f"| set | {' | '.join(METHODS)} |"]
    lines.append("|---" * (len(METHODS) + 1) + "|")
    for name, row in zip(SETS, rows):
        cells = [f"{np.mean(row[m]):.3f} ± {np.std(row[m]):.3f}" for m in METHODS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append(f"| mean | {' | '.join(f'{each:.3f}' for each in means.mean(axis=0))} |")
    ahead = [int((means[:, place] > means[:, 0]).sum()) for place in range(len(METHODS))]
    lines.append(f"| sets above box 0.5 | {' | '.join(map(str, ahead))} |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
