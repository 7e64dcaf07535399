"""The consistency theorem in action: the threshold rule's error as N grows and the radius shrinks.

Rows are uniform in the unit square, distances are euclidean, and the target is m(x) = (1 + sin(2 pi
x1) cos(2 pi x2)) / 2 with Lipschitz constant L = pi. The theorem requires that the radius goes to
0, and the expected number of neighbors to infinity. Its proof bounds the squared error of the
regressor by L^2 radius^2 + P(nobody near).
"""

from __future__ import annotations

import warnings

import numpy as np

from thresher.array_types import Floats
from thresher.classifier import TKNNClassifier
from thresher.paper.cells import Cell, Experiment, Outcome, Scope

SIZES = (1e2, 3e2, 1e3, 3e3, 1e4, 3e4, 1e5)
QUICK_SIZES = (1e2, 1e3, 1e4)
QUERIES = 2000
LEVELS = 256  # the regressor's targets are told in so many steps
LIPSCHITZ = np.pi
RULES = {  # radius = factor N^power; about 1.3 N^(1/3), 0.5 and, in the middle, 0.8 N neighbors
    "N^(-1/3)": (0.64, -1 / 3), "N^(-1/2)": (0.4, -1 / 2), "fixed": (0.5, 0),
}  # fmt: skip


def cells(scope: Scope) -> list[Cell]:
    """One radius rule that the theorem allows and two that it does not, for both estimators."""
    return [
        Cell(task, f"radius {rule}", "made up", "error", size, draw)
        for task in ("regressor", "classifier")
        for rule in RULES
        for size in (QUICK_SIZES if scope.quick else SIZES)
        for draw in range(scope.runs)
    ]


def run(cell: Cell, _data: object) -> Outcome:
    """Fit on N rows, and predict new ones."""
    n = int(cell.step)
    rng = np.random.default_rng([cell.draw, n])
    X, queries = rng.random((n, 2)), rng.random((QUERIES, 2))
    factor, power = RULES[cell.set.removeprefix("radius ")]
    model = TKNNClassifier(radius=factor * n**power, metric="euclidean")
    if cell.task == "regressor":
        return _regression(model, X, queries)
    model.fit(X, rng.random(n) < target(X))
    chance = target(queries)  # misclassification beyond that of the best rule
    excess = np.abs(2 * chance - 1) * (model.predict(queries) != (chance > 0.5))
    return {"error": float(excess.mean())}


def target(X: Floats) -> Floats:
    """The regression function, between 0 and 1; the probability of a label."""
    return np.asarray(0.5 + 0.5 * np.sin(2 * np.pi * X[:, 0]) * np.cos(2 * np.pi * X[:, 1]))


def _regression(model: TKNNClassifier, X: Floats, queries: Floats) -> Outcome:
    """The mean squared error of the mean target of near rows, or of 0 if no row is near."""
    from sklearn.neighbors import KDTree

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "could be regression": it is
        model.fit(X, np.round(target(X) * (LEVELS - 1)).astype(np.int64))
    alone = KDTree(X).query(queries, k=1)[0][:, 0] > model.radius
    predicted = np.where(alone, 0.0, model.predict_proba(queries) @ model.classes_ / (LEVELS - 1))
    error, empty = float(((predicted - target(queries)) ** 2).mean()), float(alone.mean())
    return {"error": error, "bound": LIPSCHITZ**2 * model.radius**2 + empty, "nobody near": empty}


CONSISTENCY = Experiment(
    "consistency", "The threshold rule is consistent", "the theorem of its appendix on TKNN",
    "The tables show two errors on new rows: the mean squared error of the threshold regressor, "
    "which predicts 0 if nobody is near, as in the theorem, and how much more often the threshold "
    "classifier errs than the best rule. Rows are uniform in the unit square, and the target is "
    "smooth, with Lipschitz constant L = pi. If the radius shrinks like N^(-1/3), the number of "
    "neighbors grows, and the error vanishes, below the proof's bound "
    "L^2 radius^2 + P(nobody near). If it shrinks like N^(-1/2), neighbors stay few. If it is "
    "fixed, the bias stays. These two do not meet the conditions of the theorem, and they do not "
    "converge.",
    cells, run, "N", "step",
)  # fmt: skip
