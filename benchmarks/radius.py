"""Which radius finds wrong labels: 0.5, and ways of choosing one from the validation set alone.

A tenth of the labels is flipped; values at each radius are judged by the AUROC of the flips. What `suggest_radius` does was
chosen on the first half of the data sets; the second half shows what it is worth. Usage: python benchmarks/radius.py [FOLDER
OF .npz]; else THRESHER_DATA. Writes results/radius.json and results/radius.md.
"""

import numpy as np
from halves import CHOOSING, HELD_OUT, compare, means
from sklearn.metrics import roc_auc_score

import thresher as th
from thresher.paper.datasets import TABULAR

POINTS, VALIDATION, FLIPPED, SEEDS = 2000, 200, 0.1, 5
ABOUT = (
    f"The tables show how well low values of `tknn_shapley` find flipped labels ({FLIPPED:.0%}), as AUROC: the mean of {SEEDS} draws "
    f"of {POINTS:,} points and {VALIDATION} validation points with right labels, with cosine distances. The columns are ways to "
    "choose the radius. *most accurate* is what `suggest_radius` did in version 0.1, and *suggested* is what it does now. *most "
    "likely* is the radius with the best leave-one-out log-likelihood, where four even votes smooth the shares. *hindsight* is "
    "the best of 18 radii for each draw. We used the sets of the first table to choose how `suggest_radius` works. The sets "
    "of the second table were held out."
)


def draw(data, seed):
    """Points with some labels flipped, validation points, and which; columns of tables have deviation 1."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(data.X))
    X, y = data.X[rows], data.y[rows]
    V, y_val = X[POINTS:], y[POINTS:]
    if data.validation is not None:
        own = rng.permutation(len(data.validation[0]))
        V, y_val = (part[own] for part in data.validation)
    X, V, y_val = X[:POINTS].astype(float), V[:VALIDATION].astype(float), y_val[:VALIDATION]
    if data.name in TABULAR:
        spread = X.std(axis=0)
        center, spread = X.mean(axis=0), np.where(spread > 0, spread, np.inf)
        X, V = (X - center) / spread, (V - center) / spread
    classes = np.unique(data.y)
    noisy, wrong = th.flip_labels(y[:POINTS], fraction=FLIPPED, seed=seed, classes=classes)
    return X, noisy, V, y_val, wrong


def most_likely(V, y_val, radii, votes=4.0):
    """The radius of the best leave-one-out log-likelihood, with shares smoothed by even votes."""
    unit = V / np.linalg.norm(V, axis=1, keepdims=True)
    distances = 1 - unit @ unit.T
    np.fill_diagonal(distances, np.inf)
    same, classes = y_val[:, None] == y_val, len(np.unique(y_val))
    fit = []
    for radius in radii:
        near = distances <= radius
        own, others = (near & same).sum(axis=1), near.sum(axis=1)
        fit.append(np.log((own + votes / classes) / (others + votes)).mean())
    return float(radii[int(np.argmax(fit))])


def try_radii(data, seed):
    """The AUROC of each way of choosing a radius, in one draw."""
    X, y, V, y_val, wrong = draw(data, seed)
    found = th.suggest_radius(V, y_val)
    most_right = np.lexsort((found.radii, -found.coverage, -found.accuracy))[0]
    ways = {
        "0.5": 0.5,
        "most accurate": float(found.radii[most_right]),
        "most likely": most_likely(V, y_val, found.radii),
        "suggested": float(found),
    }
    tried = {*ways.values(), *found.radii[::4].tolist()}
    auroc = {
        radius: roc_auc_score(wrong, -th.tknn_shapley(X, y, V, y_val, radius=radius).values)
        for radius in tried
    }
    return {way: auroc[radius] for way, radius in ways.items()} | {"hindsight": max(auroc.values())}


def measure(data):
    return means([try_radii(data, seed) for seed in range(SEEDS)])


if __name__ == "__main__":
    title = "Which radius finds wrong labels"
    compare(
        "radius", title, ABOUT, {"choosing": (CHOOSING, measure), "held out": (HELD_OUT, measure)}
    )
