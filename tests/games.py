"""Small games, and what their values are by going through all coalitions."""

from __future__ import annotations

import warnings

import numpy as np
from oracles import semivalues
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from thresher.retrain.utility import Outcome


def eight_points(seed=0, classes=2):
    """Eight noisy points on a plane, and forty to validate on."""
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(8, 2)), rng.normal(size=(40, 2))
    y, y_val = (np.digitize(A[:, 0], [0.0] if classes == 2 else [-0.4, 0.4]) for A in (X, V))
    y[:classes] = range(classes)
    return X, y, V, y_val


def accuracy_game(X, y, V, y_val, model=None):
    """Utility by its definition: retrain, predict, compare."""
    classes = np.unique(np.concatenate([y, y_val]))

    def utility(coalition):
        members = sorted(coalition)
        if not members:
            return 1 / len(classes)
        if len(set(y[members])) == 1:
            return float(np.mean(y_val == y[members[0]]))
        found = (model or LogisticRegression()).fit(X[members], y[members]).predict(V)
        return float(np.mean(found == y_val))

    return remembered(utility)


def remembered(utility):
    known = {}

    def lookup(coalition):
        key = frozenset(coalition)
        if key not in known:
            known[key] = utility(key)
        return known[key]

    return lookup


def values_of(game, n, semivalue):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return semivalues(game, n, semivalue)


class FromFunction:
    """A utility for the estimators from any function of a set of points."""

    def __init__(self, function, points):
        self.function, self.points = function, points

    def evaluate(self, masks, enough=None, known=None):
        outcome = Outcome()
        for mask in masks:
            outcome.add(float(self.function(np.flatnonzero(mask).tolist())))
            if enough is not None and enough(outcome.utilities[-1]):
                break
        return outcome


class Moody(ClassifierMixin, BaseEstimator):
    """A nearest-mean classifier that cannot be fitted on fewer than `least` points."""

    def __init__(self, least=4, warn=False):
        self.least = least
        self.warn = warn

    def fit(self, X, y):
        if len(X) < self.least:
            raise RuntimeError("too few points for me")
        if self.warn:
            words = self.warn if isinstance(self.warn, str) else "I am not happy"
            warnings.warn(words, UserWarning, stacklevel=2)
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        gaps = ((X[:, None] - self.means_) ** 2).sum(axis=2)
        return self.classes_[gaps.argmin(axis=1)]
