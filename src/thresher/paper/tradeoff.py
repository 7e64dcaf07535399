"""What a privacy budget buys: private values compared with the truth and with exact values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.knn import knn_shapley
from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome, Scope
from thresher.paper.datasets import EMBEDDED, DataSet
from thresher.paper.detection import EMBEDDINGS, auroc, quietly
from thresher.paper.draws import TASKS, draw_problem, seed_of
from thresher.paper.printed import Figure, lookup
from thresher.privacy.dp_knn import dp_knn_shapley
from thresher.privacy.dp_tknn import dp_tknn_shapley
from thresher.tknn import tknn_shapley, zero_budget_score

EPSILONS = (0.1, 0.5, 1.0)
RATE = 0.01  # of the paper's Poisson sampling
PRIVATE: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "dp-tknn": (dp_tknn_shapley, {"mechanism": "paper"}),
    "dp-knn": (dp_knn_shapley, {}),
    "dp-knn-sampled": (dp_knn_shapley, {"subsample": RATE}),
    "table": (dp_tknn_shapley, {}),
}
FREE: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "exact": (tknn_shapley, {}), "zero-budget": (zero_budget_score, {}),
}  # fmt: skip
METHODS = PRIVATE | FREE
ABOUT = (
    "The tables are about private values at radius 0.5 (or k = 5). Delta is 1e-4 for the tabular "
    "sets and 1e-5 for the others. dp-tknn is the paper's mechanism (Poisson sampling at rate "
    "0.01) with corrected accounting. dp-knn and dp-knn-sampled are its baselines. The paper does "
    "not have the other columns: table is our mechanism, exact has no privacy at all, and "
    "zero-budget is the score that uses nobody else's data and costs nothing. AUROC says how well "
    "low values find the corrupted points. Rank correlation (Spearman) and relative error (root "
    "mean square) compare values with the exact ones of the same method. The paper's mechanism "
    "prices a subsample, and the zero-budget score is not a value, so both are on other scales. "
    "The last measure is the error after the best single factor has put them on the right scale. "
    "Every run draws new noise, and new rows unless it replays the authors' own."
)


def cells(scope: Scope) -> list[Cell]:
    """Cells for private values at each epsilon, and for free ones once."""
    steps = EPSILONS[-1:] if scope.quick else EPSILONS
    settings = [(method, step) for step in steps for method in PRIVATE]
    return [
        cell
        for task in TASKS
        for protocol in scope.protocols
        for name in scope.sets
        for method, step in [*settings, *((method, None) for method in FREE)]
        for cell in scope.cells(task, name, protocol, method, step, random=method in PRIVATE)
    ]


def run(cell: Cell, data: DataSet) -> Outcome:
    """Draw a problem, value it privately, and compare."""
    problem = draw_problem(data, cell.task, cell.protocol, cell.draw)
    function, options = METHODS[cell.method]
    if cell.method in PRIVATE:
        seed = seed_of(cell.method, cell.set, cell.task, cell.protocol, cell.step, cell.draw)
        delta = 1e-5 if cell.set in EMBEDDED else 1e-4
        options = options | {"epsilon": cell.step, "delta": delta, "seed": seed}
    reference = {"utility": "jia2019"} if _exact(cell) is knn_shapley else {}
    values, exact = (
        quietly(call, *problem.data, classes=problem.classes, **more).values
        for call, more in ((function, options), (_exact(cell), reference))
    )
    return {"AUROC": auroc(problem, values), **agreement(values, exact), HIDDEN: len(values)}


def agreement(values: Floats, exact: Floats) -> Outcome:
    """The rank correlation, and the relative error before and after the best rescaling.

    Values that are all equal agree with nothing.

    Examples
    --------
    >>> found = agreement(np.array([2.0, 4.0, 0.0]), np.array([1.0, 2.0, 0.0]))
    >>> {name: round(figure, 3) for name, figure in found.items()}
    {'rank correlation': 1.0, 'relative error': 1.0, 'relative error, rescaled': 0.0}
    """
    from scipy.stats import spearmanr

    ranked = 0.0 if np.ptp(values) == 0 else float(spearmanr(values, exact)[0])
    power = float(values @ values)
    factor = float(values @ exact) / power if power else 0.0
    return {
        "rank correlation": ranked,
        "relative error": _relative(values, exact),
        "relative error, rescaled": _relative(factor * values, exact),
    }


def _relative(values: Floats, exact: Floats) -> float:
    return float(np.sqrt(((values - exact) ** 2).mean() / (exact**2).mean()))


def uses(cell: Cell) -> tuple[Callable[..., Any], ...]:
    """The code behind a cell: its method, the exact values beside it, and the draw."""
    return METHODS[cell.method][0], _exact(cell), draw_problem


def _exact(cell: Cell) -> Callable[..., Any]:
    return knn_shapley if cell.method.startswith("dp-knn") else tknn_shapley


def printed(cell: Cell, measure: str) -> Figure | None:
    """The paper's figure for a cell."""
    table = f"privacy-{cell.task}"
    return lookup(table, cell.set, cell.method, cell.step) if measure == "AUROC" else None


PRIVACY = Experiment(
    "privacy", "What a privacy budget buys", "tables 2 and 8", ABOUT + EMBEDDINGS,
    cells, run, "epsilon", "method", printed, uses,
)  # fmt: skip
