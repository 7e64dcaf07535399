"""Finding corrupted points: the lowest values against the truth, by five methods."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ThresherWarning
from thresher.knn import knn_shapley
from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome, Scope
from thresher.paper.datasets import TABULAR, DataSet
from thresher.paper.draws import draw_problem
from thresher.paper.printed import Figure, lookup, read_noisy_knn
from thresher.retrain.methods import data_banzhaf, data_shapley, leave_one_out
from thresher.tknn import tknn_shapley

NEAREST = ("tknn", "knn")
RETRAINED = ("data-shapley", "leave-one-out", "data-banzhaf")
SAMPLED = {"data-shapley", "data-banzhaf"}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tknn": tknn_shapley, "knn": knn_shapley, "knn k=11": knn_shapley,
    "data-shapley": data_shapley, "leave-one-out": leave_one_out, "data-banzhaf": data_banzhaf,
}  # fmt: skip
EMBEDDINGS = (
    " The image and text sets are other embeddings than the paper's (their 32 leading components, "
    "for at radius 0.5 hardly anybody is near in all of them): they can be compared in kind only."
)
ABOUT = (
    "AUROC of finding the corrupted tenth of the points by their low values: TKNN-Shapley at "
    "radius 0.5 (the paper's tau = -0.5) and KNN-Shapley at k = 5, cosine; Data Shapley "
    "(permutations), leave-one-out and Data Banzhaf (MSR) of the accuracy of a logistic "
    "regression, by the number of trained models named below, on the tabular sets."
)


def auroc(bad: NDArray[np.bool_], values: NDArray[np.float64]) -> float:
    """How well low values tell the corrupted points: 0.5 is guessing, 1 is perfect."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(bad, -values))


def quietly(call: Callable[[], Any]) -> Any:
    """The result of a call whose warnings (twins, above all) belong to the protocol."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ThresherWarning)
        return call()


def cells(task: str, scope: Scope) -> list[Cell]:
    """All methods on all sets, but retraining on the tabular ones alone."""
    nearest = (*NEAREST, "knn k=11") if task == "noisy" else NEAREST
    found: list[Cell] = []
    for protocol in scope.protocols:
        for name in scope.sets:
            for method in nearest + (RETRAINED if name in TABULAR else ()):
                random = method in SAMPLED
                options = (("subsets", scope.subsets),) if random else ()
                found += scope.cells(task, name, protocol, method, random=random, options=options)
    return found


def run(cell: Cell, data: DataSet | None) -> Outcome:
    """Draw, value, and see what low values find."""
    assert data is not None  # noqa: S101
    problem = draw_problem(data, cell.task, cell.protocol, cell.draw)
    classes = np.unique(problem.y_val).tolist()
    narrow = problem.X.shape[1] <= 100  # for random coalitions of wider rows nothing is gained
    common: Any = {
        "evaluations": dict(cell.options).get("subsets"),
        "seed": cell.draw,
        "mean": True,
    }
    calls: dict[str, Callable[[], Any]] = {
        "tknn": lambda: tknn_shapley(*problem.data, classes=classes),
        "knn": lambda: knn_shapley(*problem.data, classes=classes, k=5),
        "knn k=11": lambda: knn_shapley(*problem.data, classes=classes, k=11),
        "data-shapley": lambda: data_shapley(*problem.data, accelerate=True, **common),
        "leave-one-out": lambda: leave_one_out(*problem.data, accelerate=True),
        "data-banzhaf": lambda: data_banzhaf(*problem.data, accelerate=narrow, **common),
    }
    values = quietly(calls[cell.method]).values
    return {"AUROC": auroc(problem.bad, values), HIDDEN: len(values)}


def uses(cell: Cell) -> tuple[Callable[..., Any], ...]:
    """The code behind a cell: its method, and the draw."""
    return FUNCTIONS[cell.method], draw_problem


def printed(cell: Cell, _measure: str) -> Figure | None:
    """The paper's figure for a cell, read right."""
    if cell.task == "noisy" and cell.method.startswith("knn"):
        return read_noisy_knn(cell.set, 5 if cell.method == "knn" else 11)
    return lookup(cell.task, cell.set, cell.method)


MISLABEL = Experiment(
    "mislabel", "Mislabeled points", "tables 3 and 9", ABOUT + EMBEDDINGS,
    functools.partial(cells, "mislabel"), run, printed=printed, uses=uses,
)  # fmt: skip
NOISY = Experiment(
    "noisy", "Points with noisy features", "table 10",
    ABOUT + " The noise in a column has the standard deviation of the column's L2 norm. The "
    "paper's KNN column of this table is compared with k = 11, which it shows; k = 5 is compared "
    "with its ablation table." + EMBEDDINGS,
    functools.partial(cells, "noisy"), run, printed=printed, uses=uses,
)  # fmt: skip
