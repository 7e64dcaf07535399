"""Which scaling finds wrong labels in messy tables: robust, plain or ranks.

Tables of the paper are made messy, a tenth of their labels is flipped, and values are judged by the AUROC of the flips. Usage:
python benchmarks/scaling.py [FOLDER OF .npz]; else THRESHER_DATA. Writes results/scaling.json and results/scaling.md.
"""

from functools import partial

import numpy as np
import pyarrow as pa
from halves import CHOOSING, HELD_OUT, compare, means
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.paper.datasets import TABULAR
from thresher.tables.columns import Columns
from thresher.tables.encoder import Encoder
from thresher.tables.scaling import SCALINGS

POINTS, VALIDATION, FLIPPED, SEEDS = 2000, 300, 0.1, 5
WILD, MISSING, CATEGORIES = 10, 0.02, 50
ABOUT = (
    f"The tables show how well low values find flipped labels ({FLIPPED:.0%}), as AUROC: the mean of {SEEDS} draws of {POINTS:,} points "
    f"and {VALIDATION} validation points with right labels. `tknn` uses the suggested radius and `knn` uses k = 5, both with cosine "
    f"distances. Messy tables have columns in other units, {WILD} wild cells, and {MISSING:.0%} missing cells, which are filled with "
    f"medians. They also have a category of {CATEGORIES} entries and an id, which mean nothing. We used the tables under *choosing* "
    "to choose the default scaling. Those under *held out* were not used."
)
METHODS = {
    "tknn": lambda X, y, V, y_val: th.tknn_shapley(
        X, y, V, y_val, radius=th.suggest_radius(V, y_val)
    ),
    "knn": lambda X, y, V, y_val: th.knn_shapley(X, y, V, y_val, k=5),
}


def make_messy(X, rng):
    """Columns in other units, some wild cells, missing cells; a category and an id that mean nothing."""
    X = X * 10.0 ** rng.uniform(-3, 3, X.shape[1])
    center, spread = X.mean(axis=0), X.std(axis=0)
    for row in rng.choice(len(X), WILD, replace=False):
        column = rng.integers(X.shape[1])
        far = rng.choice([-1, 1]) * 10.0 ** rng.uniform(2, 6)
        X[row, column] = center[column] + far * spread[column]
    X[rng.random(X.shape) < MISSING] = np.nan
    columns = {f"x{j}": pa.array(column, from_pandas=True) for j, column in enumerate(X.T)}
    columns["place"] = [f"p{code}" for code in rng.integers(0, CATEGORIES, len(X))]
    columns["number"] = rng.permutation(len(X)).astype(float)
    return pa.table(columns)


def draw(data, seed, *, messy):
    """Points and validation points as columns, labels with some flipped, and which ones."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(data.X))[: POINTS + VALIDATION]
    X, y = data.X[rows].astype(float), data.y[rows]
    table = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
    table = make_messy(X, rng) if messy else table
    sides = [
        Columns(tuple(range(part.num_rows)), part, categorical=("place",) if messy else ())
        for part in (table.slice(0, POINTS), table.slice(POINTS))
    ]
    noisy, wrong = th.flip_labels(y[:POINTS], fraction=FLIPPED, seed=seed)
    return *sides, noisy, y[POINTS:], wrong


def try_scalings(data, seed, *, messy):
    """The AUROC of each method with each scaling, in one draw."""
    points, validation, y, y_val, wrong = draw(data, seed, messy=messy)
    found = {}
    for scaling in SCALINGS:
        encoder = Encoder.fit(points, fill="median", standardize=True, scaling=scaling)
        X, V = encoder.transform(points), encoder.transform(validation)
        for name, method in METHODS.items():
            found[f"{name} {scaling}"] = roc_auc_score(wrong, -method(X, y, V, y_val).values)
    return dict(sorted(found.items(), reverse=True))


def measure(data, *, messy):
    return means([try_scalings(data, seed, messy=messy) for seed in range(SEEDS)])


def groups():
    for state, messy in (("messy", True), ("as they are", False)):
        for half, names in (("choosing", CHOOSING), ("held out", HELD_OUT)):
            tables = [name for name in names if name in TABULAR]
            yield f"{half}, {state}", (tables, partial(measure, messy=messy))


if __name__ == "__main__":
    compare("scaling", "Which scaling finds wrong labels", ABOUT, dict(groups()))
