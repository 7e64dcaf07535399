"""Which distance method finds corrupted points best: box, nearest neighbors or a kernel.

    python benchmarks/kernel_detection.py [--draws 5]     the page results/kernel-detection.md

The thirteen sets and both protocols of the paper, mislabeled and noisy points, AUROC as the mean
over draws. Of the four embedded sets each draw takes 2,000 points and 200 validation points. A run
that was broken off goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from provenance import store

import thresher as th
from thresher.paper.datasets import SETS, Shelf
from thresher.paper.detection import auroc, quietly
from thresher.paper.draws import POINTS, PROTOCOLS, TASKS, VALIDATION, draw_problem, seed_of

FOLDER = Path(__file__).parent / "results"
METHODS = [
    "box 0.5", "box suggested", "knn k=5", "gaussian 0.8", "gaussian suggested", "triangular 0.8",
]  # fmt: skip
TABLES = 9  # the first sets; the others are embeddings


def problems(data, task, protocol, draws):
    """The problems of one cell: one alone where the authors' own draw is replayed."""
    once = protocol == "paper" and data.replay is not None
    return [
        smaller(draw_problem(data, task, protocol, i), data.name, i)
        for i in range(1 if once else draws)
    ]


def smaller(problem, name, number):
    """At most as many points and validation points as the tables have, drawn at random."""
    rng = np.random.default_rng(seed_of("kernel detection", name, number))
    some = rng.permutation(len(problem.y))[:POINTS]
    judges = rng.permutation(len(problem.y_val))[:VALIDATION]
    return replace(
        problem, X=problem.X[some], y=problem.y[some], bad=problem.bad[some],
        X_val=problem.X_val[judges], y_val=problem.y_val[judges],
    )  # fmt: skip


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
    draws, shelf, path = (
        parser.parse_args().draws,
        Shelf(fetch=False),
        FOLDER / "partial.kernel-detection.json",  # an interrupted run goes on from here
    )
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in SETS:
        for protocol in PROTOCOLS:
            for task in TASKS:
                key = f"{protocol}/{task}/{name}"
                if key not in found:
                    cell = problems(shelf.get(name), task, protocol, draws)
                    found[key] = {
                        method: [round(auroc(each, values(each, method)), 5) for each in cell]
                        for method in METHODS
                    }
                    path.write_text(json.dumps(found) + "\n")
                    print(key, flush=True)
    store("kernel-detection", {"auroc": found}, render(found, draws))
    path.unlink()


def render(found, draws):
    """A Markdown page."""
    page = [
        "# Which kernels find corrupted points", "",
        "A tenth of the points is corrupted: by a wrong label (`mislabel`) or by noise on the features (`noisy`). The tables "
        "show how well low values find these points, as AUROC: mean ± standard deviation of "
        f"{draws} draws. Where the authors' own draw is replayed, there is only one. A draw has at most 2,000 points and "
        "200 validation points, a random part of the embedded sets. Distances are cosine. Each column names a kernel and its "
        "radius, where *suggested* is that of `suggest_radius`. *knn* is `knn_shapley`. The last rows say on how many sets a "
        "column is better than `box 0.5` and `knn k=5`.", "",
    ]  # fmt: skip
    for protocol in PROTOCOLS:
        for task in TASKS:
            page += table(found, protocol, task)
    return "\n".join(page) + "\n"


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
    for kind, part in (("tables", means[:TABLES]), ("embeddings", means[TABLES:])):
        lines.append(
            f"| mean of the {kind} | {' | '.join(f'{each:.3f}' for each in part.mean(axis=0))} |"
        )
    for other in (0, 2):
        ahead = [int((means[:, place] > means[:, other]).sum()) for place in range(len(METHODS))]
        lines.append(f"| sets above {METHODS[other]} | {' | '.join(map(str, ahead))} |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
