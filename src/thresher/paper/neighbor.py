"""What one neighbor tells: the value of a point against k, with and without its neighbor."""

from __future__ import annotations

import numpy as np

from thresher.attack.curves import neighbor_effect
from thresher.paper.ablation import KS
from thresher.paper.cells import Cell, Experiment, Outcome, Scope
from thresher.paper.datasets import TABULAR, DataSet
from thresher.paper.detection import quietly
from thresher.paper.draws import draw_problem, seed_of

UTILITIES = ("soft-label", "jia2019")


def cells(scope: Scope) -> list[Cell]:
    """Both utilities, every k, one random point of each set."""
    return [
        Cell(utility, name, protocol, utility, k)
        for utility in UTILITIES
        for protocol in scope.protocols
        for name in scope.sets
        if name in TABULAR
        for k in scope.thin(KS)
    ]


def run(cell: Cell, data: DataSet | None) -> Outcome:
    """One point's value for one k, with and without its nearest neighbor."""
    assert data is not None  # noqa: S101
    assert cell.step is not None  # noqa: S101
    problem, k = draw_problem(data, "intact", cell.protocol, cell.draw), int(cell.step)
    rng = np.random.default_rng(seed_of("point", cell.set, cell.protocol))
    point = int(rng.integers(len(problem.X)))
    effect = quietly(
        lambda: neighbor_effect(*problem.data, point=point, grid=[k], utility=cell.method)
    )
    return {"with neighbor": float(effect.beside[0]), "without": float(effect.alone[0])}


NEIGHBOR = Experiment(
    "neighbor-effect", "The value of a point against k, with and without its nearest neighbor",
    "figures 3 and 4",
    "KNN-Shapley of one random point of each set, by the soft-label utility and by that of 2019. "
    "The gap between the curves is what the value tells about the neighbor. The paper shows the "
    "curves of points of its own choice and prints no figures.",
    cells, run, "k", "step",
)  # fmt: skip
