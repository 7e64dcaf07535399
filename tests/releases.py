"""Made-up points, and releases of them, for the tests of private values."""

from __future__ import annotations

import numpy as np

import thresher as th
from thresher.privacy import Paper

RANDOM = np.random.default_rng(0)
X_ALL = RANDOM.normal(size=(900, 3))
Y_ALL = np.where(X_ALL[:, 0] + 0.3 * RANDOM.normal(size=900) > 0, "up", "down")
X, Y, X_VAL, Y_VAL = X_ALL[100:], Y_ALL[100:], X_ALL[:100], Y_ALL[:100]
FAST = Paper(rate=0.01, sample="fresh")


def release(epsilon=1.0, delta=1e-4, points=slice(None), **options):
    options = {"seed": 0} | options
    return th.dp_tknn_shapley(
        X[points], Y[points], X_VAL, Y_VAL, epsilon=epsilon, delta=delta, **options
    )


def exact(points=slice(None)):
    return th.tknn_shapley(X[points], Y[points], X_VAL, Y_VAL).values


def relative(values, truth):
    return float(np.sqrt(((values - truth) ** 2).mean() / (truth**2).mean()))
