"""`TKNNClassifier`: label shares among the points within a radius, as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.errors import InputError
from thresher.games.classes import ClassCounts
from thresher.inputs.checked_inputs import Points
from thresher.inputs.checks import MAX_INTEGER, check_features, check_metric
from thresher.inputs.labels import kept_text
from thresher.metrics import Rows, measure
from thresher.neighbors.ball import Ball
from thresher.neighbors.kernel import BOX, check_kernel
from thresher.passes.walk import count


class TKNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier that predicts by the labels of the points within `radius`.

    If no point is near, all classes are equally likely. The soft accuracy of
    this classifier is the utility of `tknn_shapley`.

    Parameters
    ----------
    radius
        As in `tknn_shapley`.
    metric
        "cosine" or "euclidean". Unlike in `tknn_shapley`, a row of zeros is not an error under
        cosine. As elsewhere in scikit-learn, its similarity to every row is 0, and its distance is
        1.
    kernel, rings
        How much near points count, as in `tknn_shapley`.

    Notes
    -----
    Predicting uses all cores. In `GridSearchCV` leave `n_jobs` at 1: more jobs share the same
    cores, and each starts a process that takes seconds to import scikit-learn and Numba.

    Examples
    --------
    >>> import thresher as th
    >>> classifier = th.TKNNClassifier(radius=1.5, metric="euclidean")
    >>> classifier = classifier.fit([[0.0], [1.0], [5.0]], ["a", "b", "b"])
    >>> classifier.predict_proba([[0.0], [5.0], [9.0]]).tolist()
    [[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]
    """

    def __init__(
        self, radius: float = 0.5, metric: str = "cosine", kernel: Any = BOX, rings: int = 16
    ) -> None:
        self.radius = radius
        self.metric = metric
        self.kernel = kernel
        self.rings = rings

    def fit(self, X: Any, y: Any) -> TKNNClassifier:
        """Keep the points, sorted by class."""
        check_kernel(self.kernel, self.rings, self.radius)
        if check_metric(self.metric) == "precomputed":
            raise InputError(
                "metric must be 'cosine' or 'euclidean' for TKNNClassifier, got 'precomputed'"
            )
        given, y = X, kept_text(y)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        _check_rounded(given, X)
        X = np.array(X)  # our own: its norms are computed once
        with warnings.catch_warnings():  # many classes are fine
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._points = Points(self._measure(X), codes.astype(np.int32))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Shares of classes: one row per query, one column per class, ordered as `classes_`."""
        check_is_fitted(self)
        found = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        _check_rounded(X, found)
        queries = self._measure(found)
        radius, kernel = check_kernel(self.kernel, self.rings, self.radius, warn=False)
        edges, weights = ((), (1.0,)) if kernel is None else (kernel.edges, kernel.weights)
        about = check_metric(self.metric), radius
        near_queries = Ball(queries, len(queries), *about, edges=edges)
        counts = count(self._points, near_queries, ClassCounts(len(self.classes_), len(edges)))
        votes = np.einsum(
            "crq,r->cq", counts.reshape(len(self.classes_), -1, len(queries)), weights
        )
        near, even = votes.sum(axis=0), np.full(votes.shape, 1 / len(self.classes_))
        shares = np.divide(votes, near, out=even, where=near > 0)
        return np.ascontiguousarray(shares.T)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most frequent label within the radius; the first of `classes_` if some are tied."""
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]

    def _measure(self, X: NDArray[Any]) -> Rows:
        return measure("X", X, cosine=self.metric == "cosine", zero_rows=True)


def _check_rounded(given: Any, found: NDArray[Any]) -> None:
    """Raise for integers that no float can hold, because scikit-learn rounds them silently."""
    if float(np.abs(found).max()) >= MAX_INTEGER:
        check_features("X", given)
