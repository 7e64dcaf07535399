"""Finding corrupted points by their low values: by five methods, and over radii and k."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from thresher.array_types import Floats
from thresher.errors import ThresherWarning
from thresher.knn import knn_shapley
from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome, Scope
from thresher.paper.datasets import TABULAR, DataSet
from thresher.paper.draws import TASKS, Problem, draw_problem
from thresher.paper.printed import Figure, lookup, read_k, read_noisy_knn
from thresher.retrain.methods import data_banzhaf, data_shapley, leave_one_out
from thresher.tknn import tknn_shapley

RADII = tuple(round(0.1 * step, 1) for step in range(1, 10))
KS = tuple(float(k) for k in range(1, 16))
RETRAINED = ("data-shapley", "leave-one-out", "data-banzhaf")
SAMPLED = {"data-shapley", "data-banzhaf"}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tknn": tknn_shapley, "knn": knn_shapley, "knn k=11": knn_shapley,
    "data-shapley": data_shapley, "leave-one-out": leave_one_out, "data-banzhaf": data_banzhaf,
}  # fmt: skip
EMBEDDINGS = (
    " The image and text sets have other embeddings than in the paper, so their figures can be "
    "compared in kind only. Values use the 32 leading components, because with all of them hardly "
    "any point is within radius 0.5."
)
ABOUT = (
    "A tenth of the points are corrupted. The tables show how well low values find them, as "
    "AUROC: the chance that a corrupted point has a lower value than another one. TKNN-Shapley "
    "has radius 0.5 (the paper's tau = -0.5), and KNN-Shapley has k = 5, both with cosine "
    "distances. On the tabular sets there are also Data Shapley (permutations), leave-one-out and "
    "Data Banzhaf (MSR) for the accuracy of a logistic regression. The next paragraph says how "
    "many models each of them trains."
)


def auroc(problem: Problem, values: Floats) -> float:
    """How well low values find the corrupted points: 0.5 is guessing, 1 is perfect."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(problem.bad, -values))


def quietly(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function without its warnings, which the protocol expects (about twins, above all)."""
    with warnings.catch_warnings(action="ignore", category=ThresherWarning):
        return call(*arguments, **options)


def cells(task: str, scope: Scope) -> list[Cell]:
    """All methods on all sets, except for retraining, which is only for the tabular ones."""
    nearest = ("tknn", "knn", *(["knn k=11"] if task == "noisy" else []))
    sampled: Any = {"random": True, "options": (("subsets", scope.subsets),)}
    return [
        cell
        for protocol in scope.protocols
        for name in scope.sets
        for method in nearest + (RETRAINED if name in TABULAR else ())
        for more in [sampled if method in SAMPLED else {}]
        for cell in scope.cells(task, name, protocol, method, **more)
    ]


def ablation_cells(method: str, steps: tuple[float, ...], scope: Scope) -> list[Cell]:
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


def run(cell: Cell, data: DataSet) -> Outcome:
    """Draw a problem, value its points, and see how many corrupted ones low values find."""
    problem = draw_problem(data, cell.task, cell.protocol, cell.draw)
    subsets = dict(cell.options).get("subsets")
    sampled = {"evaluations": subsets, "seed": cell.draw, "mean": True}
    narrow = problem.X.shape[1] <= 100  # for random coalitions of wider rows nothing is gained
    options: dict[str, dict[str, Any]] = {
        "tknn": {"classes": problem.classes, "radius": cell.step or 0.5},
        "knn": {"classes": problem.classes, "k": int(cell.step or 5)},
        "knn k=11": {"classes": problem.classes, "k": 11},
        "data-shapley": sampled | {"accelerate": True},
        "leave-one-out": {"accelerate": True},
        "data-banzhaf": sampled | {"accelerate": narrow},
    }
    found = quietly(FUNCTIONS[cell.method], *problem.data, **options[cell.method])
    return {"AUROC": auroc(problem, found.values), HIDDEN: len(problem.y)}


def uses(cell: Cell) -> tuple[Callable[..., Any], ...]:
    """The code behind a cell: its method, and the draw."""
    return FUNCTIONS[cell.method], draw_problem


def printed(cell: Cell, _measure: str) -> Figure | None:
    """The paper's figure for a cell, from the right column."""
    if cell.step is not None and cell.method == "knn":
        return read_k(cell.task, cell.set, cell.step)
    if cell.step is not None:
        return lookup(f"radius-{cell.task}", cell.set, "tknn", cell.step)
    if cell.task == "noisy" and cell.method.startswith("knn"):
        return read_noisy_knn(cell.set, 5 if cell.method == "knn" else 11)
    return lookup(cell.task, cell.set, cell.method)


MISLABEL = Experiment(
    "mislabel", "Mislabeled points", "tables 3 and 9", ABOUT + EMBEDDINGS,
    functools.partial(cells, "mislabel"), run, printed=printed, uses=uses,
)  # fmt: skip
NOISY = Experiment(
    "noisy", "Points with noisy features", "table 10",
    ABOUT + " The noise in a column has the column's L2 norm as its standard deviation. The "
    "paper's KNN column shows k = 11, so that is what we compare it with. We compare k = 5 with "
    "the paper's ablation table." + EMBEDDINGS,
    functools.partial(cells, "noisy"), run, printed=printed, uses=uses,
)  # fmt: skip
RADIUS = Experiment(
    "radius-ablation", "The choice of the radius", "tables 11 and 12",
    "The tables show the AUROC of TKNN-Shapley for both tasks and several radii. A radius is "
    "1 + tau in the paper's notation.",
    functools.partial(ablation_cells, "tknn", RADII), run, "radius", "step", printed,
)  # fmt: skip
K = Experiment(
    "k-ablation", "The choice of k", "tables 13 and 14",
    "The tables show the AUROC of KNN-Shapley for both tasks and several k. The paper prints the "
    "columns of both tables in reverse order: its column K holds 16 - K. We compare with the "
    "right columns.",
    functools.partial(ablation_cells, "knn", KS), run, "k", "step", printed,
)  # fmt: skip
