"""How much the radius and k matter: detection over nine radii and fifteen values of k."""

from __future__ import annotations

import functools

import numpy as np

from thresher.knn import knn_shapley
from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome, Scope
from thresher.paper.datasets import TABULAR, DataSet
from thresher.paper.detection import auroc, quietly
from thresher.paper.draws import TASKS, draw_problem
from thresher.paper.printed import Figure, lookup, read_k
from thresher.tknn import tknn_shapley

RADII = tuple(round(0.1 * step, 1) for step in range(1, 10))
KS = tuple(float(k) for k in range(1, 16))


def cells(method: str, steps: tuple[float, ...], scope: Scope) -> list[Cell]:
    """Both tasks, on the tabular sets, as in the paper."""
    return [
        cell
        for task in TASKS
        for protocol in scope.protocols
        for name in scope.sets
        if name in TABULAR
        for step in scope.thin(steps)
        for cell in scope.cells(task, name, protocol, method, step)
    ]


def run(cell: Cell, data: DataSet | None) -> Outcome:
    """Detection at one radius or k."""
    assert data is not None  # noqa: S101
    assert cell.step is not None  # noqa: S101
    problem, step = draw_problem(data, cell.task, cell.protocol, cell.draw), cell.step
    classes = np.unique(problem.y_val).tolist()
    if cell.method == "tknn":
        found = quietly(lambda: tknn_shapley(*problem.data, radius=step, classes=classes))
    else:
        found = quietly(lambda: knn_shapley(*problem.data, k=int(step), classes=classes))
    return {"AUROC": auroc(problem.bad, found.values), HIDDEN: len(problem.y)}


def printed(cell: Cell, _measure: str) -> Figure | None:
    """The paper's figure for a cell; its columns over K are read in reverse."""
    assert cell.step is not None  # noqa: S101
    if cell.method == "knn":
        return read_k(cell.task, cell.set, cell.step)
    return lookup(f"radius-{cell.task}", cell.set, "tknn", cell.step)


RADIUS = Experiment(
    "radius-ablation", "The choice of the radius", "tables 11 and 12",
    "AUROC of TKNN-Shapley for both tasks over the radius (1 + tau of the paper).",
    functools.partial(cells, "tknn", RADII), run, "radius", "step", printed,
)  # fmt: skip
K = Experiment(
    "k-ablation", "The choice of k", "tables 13 and 14",
    "AUROC of KNN-Shapley for both tasks over k. The paper prints the columns of both tables in "
    "reverse (its column K is 16 - K); here they are read right.",
    functools.partial(cells, "knn", KS), run, "k", "step", printed,
)  # fmt: skip
