"""What values reveal: who is in the data, and whether one neighbor is."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.attack.attacked_methods import DPTKNN, KNN, TKNN
from thresher.attack.curves import neighbor_effect
from thresher.attack.membership import membership_attack
from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome, Scope
from thresher.paper.datasets import TABULAR, DataSet
from thresher.paper.detection import KS, RADII, quietly
from thresher.paper.draws import draw_problem, scale, seed_of, split
from thresher.paper.printed import Figure, lookup

MEMBERS = NONMEMBERS = 200
SHADOW = 400
EPSILONS = {"dp-tknn-0.5": 0.5, "dp-tknn-1": 1.0, "table-0.5": 0.5, "table-1": 1.0}
STEPS = {"knn": KS[::2], "tknn": RADII, "dp-tknn-0.5": RADII, "dp-tknn-1": RADII,
         "table-0.5": (0.5,), "table-1": (0.5,)}  # fmt: skip
ABOUT = (
    "The tables show how well an attacker tells members of the data from others, as AUROC: 0.5 is "
    "guessing, 1 is certainty. There are 200 members, 200 non-members, 400 shadow points (or as "
    "many as are left if a set has too few distinct rows), 32 shadow sets and 200 validation "
    "points. AUROC is that of the paper's attack, which submits a copy of the candidate. Strong "
    "AUROC is that of our attack, which crafts points and knows a list of candidates. Rows of knn "
    "are for different k, and the others for different radii. dp-tknn-0.5 and dp-tknn-1 are the "
    "paper's mechanism at epsilon 0.5 and 1, with delta 1e-4. table-0.5 and table-1 are ours. In "
    "the protocol paper, a non-member may be a copy of a member."
)


def membership_cells(scope: Scope) -> list[Cell]:
    """The paper's four tables, and our mechanism at one radius."""
    return [
        Cell(method, name, protocol, method, step, draw)
        for method, steps in STEPS.items()
        for protocol in scope.protocols
        for name in scope.sets
        if name in TABULAR
        for step in (steps[len(steps) // 2 :][:1] if scope.quick else steps)
        for draw in range(scope.runs)
    ]


def attack(cell: Cell, data: DataSet) -> Outcome:
    """Both attacks on one draw."""
    points = split(data, cell.protocol, cell.draw, MEMBERS + NONMEMBERS + SHADOW)
    problem = scale(data, points)
    shadow = len(problem.y) - MEMBERS - NONMEMBERS
    seed = seed_of(cell.method, cell.set, cell.protocol, cell.step, cell.draw)
    options = {"against": _target(cell), "shadow": shadow, "seed": seed}
    rocs = quietly(membership_attack, *problem.data, **options).rocs
    found = {"AUROC": rocs["paper"].auroc, "strong AUROC": rocs["strong"].auroc}
    return {HIDDEN: len(problem.y), **found}


def printed(cell: Cell, measure: str) -> Figure | None:
    """The paper's figure for a cell."""
    return lookup("membership", cell.set, cell.method, cell.step) if measure == "AUROC" else None


def _target(cell: Cell) -> Any:
    if cell.method == "knn":
        return KNN(int(cell.step))
    if cell.method == "tknn":
        return TKNN(cell.step)
    mechanism = "paper" if cell.method.startswith("dp-tknn") else "table"
    return DPTKNN(EPSILONS[cell.method], 1e-4, mechanism, cell.step)


def neighbor_cells(scope: Scope) -> list[Cell]:
    """Both utilities, every k, one random point of each set."""
    return [
        Cell(utility, name, protocol, utility, k)
        for utility in ("soft-label", "jia2019")
        for protocol in scope.protocols
        for name in scope.sets
        if name in TABULAR
        for k in scope.thin(KS)
    ]


def compare(cell: Cell, data: DataSet) -> Outcome:
    """One point's value for one k, with and without its nearest neighbor."""
    problem = draw_problem(data, "intact", cell.protocol, cell.draw)
    rng = np.random.default_rng(seed_of("point", cell.set, cell.protocol))
    setting = {"point": int(rng.integers(len(problem.X))), "grid": [int(cell.step)]}
    effect = quietly(neighbor_effect, *problem.data, **setting, utility=cell.method)
    return {"with neighbor": float(effect.beside[0]), "without": float(effect.alone[0])}


MEMBERSHIP = Experiment(
    "membership", "Membership inference", "tables 1, 4, 5 and 6", ABOUT,
    membership_cells, attack, "k or radius", "step", printed,
)  # fmt: skip
NEIGHBOR = Experiment(
    "neighbor-effect", "The value of a point against k, with and without its nearest neighbor",
    "figures 3 and 4",
    "The tables show the KNN-Shapley value of one random point of each set, by the soft-label "
    "utility and by that of Jia et al. (2019). The difference with and without the neighbor is "
    "what the value reveals about the neighbor. The paper chose its own points. It shows their "
    "curves, but prints no figures.",
    neighbor_cells, compare, "k", "step",
)  # fmt: skip
