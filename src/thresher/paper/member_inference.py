"""Who is in the data? The paper's four tables of membership inference, and a stronger attack."""

from __future__ import annotations

from typing import Any

from thresher.attack.membership import membership_attack
from thresher.attack.targets import DPTKNN, KNN, TKNN
from thresher.paper.ablation import RADII
from thresher.paper.cells import HIDDEN, Cell, Experiment, Outcome, Scope
from thresher.paper.datasets import TABULAR, DataSet
from thresher.paper.detection import quietly
from thresher.paper.draws import scale, seed_of, split
from thresher.paper.printed import Figure, lookup

KS = tuple(float(k) for k in range(1, 16, 2))
MEMBERS = NONMEMBERS = 200
SHADOW = 400
EPSILONS = {"dp-tknn-0.5": 0.5, "dp-tknn-1": 1.0, "table-0.5": 0.5, "table-1": 1.0}
STEPS = {"knn": KS, "tknn": RADII, "dp-tknn-0.5": RADII, "dp-tknn-1": RADII,
         "table-0.5": (0.5,), "table-1": (0.5,)}  # fmt: skip
ABOUT = (
    "AUROC of telling members from non-members: 200 members, 200 non-members, 400 shadow points "
    "(or as many as are left where a set has too few distinct rows), 32 shadow sets, 200 "
    "validation points. AUROC is that of the paper's attack, which hands in a copy of the "
    "candidate; strong AUROC is that of ours, which crafts points and knows a list of candidates. "
    "knn runs over k, the others over the radius. dp-tknn-0.5 and dp-tknn-1 are the paper's "
    "mechanism at epsilon 0.5 and 1 and delta 1e-4; table-0.5 and table-1 are ours. By the "
    "protocol paper a non-member may be a copy of a member."
)


def cells(scope: Scope) -> list[Cell]:
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


def run(cell: Cell, data: DataSet | None) -> Outcome:
    """Both attacks on one draw."""
    assert data is not None  # noqa: S101
    points = split(data, cell.protocol, cell.draw, MEMBERS + NONMEMBERS + SHADOW)
    problem = scale(data, points)
    shadow = len(problem.y) - MEMBERS - NONMEMBERS
    seed = seed_of(cell.method, cell.set, cell.protocol, cell.step, cell.draw)
    attack = quietly(
        lambda: membership_attack(*problem.data, against=_target(cell), shadow=shadow, seed=seed)
    )
    return {
        HIDDEN: len(problem.y),
        "AUROC": attack.rocs["paper"].auroc,
        "strong AUROC": attack.rocs["strong"].auroc,
    }


def printed(cell: Cell, measure: str) -> Figure | None:
    """The paper's figure for a cell."""
    return lookup("membership", cell.set, cell.method, cell.step) if measure == "AUROC" else None


def _target(cell: Cell) -> Any:
    assert cell.step is not None  # noqa: S101
    if cell.method == "knn":
        return KNN(int(cell.step))
    if cell.method == "tknn":
        return TKNN(cell.step)
    mechanism = "paper" if cell.method.startswith("dp-tknn") else "table"
    return DPTKNN(EPSILONS[cell.method], 1e-4, mechanism, cell.step)


MEMBERSHIP = Experiment(
    "membership",
    "Membership inference",
    "tables 1, 4, 5 and 6",
    ABOUT,
    cells,
    run,
    "k or radius",
    "step",
    printed,
)
