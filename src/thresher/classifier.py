"""TKNNClassifier: label shares among the points within a radius, as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.checks import check_metric, check_radius
from thresher.errors import InputError
from thresher.metrics import Rows, measure
from thresher.near import Groups
from thresher.neighbors import search


class TKNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict by the shares of labels within `radius`, uniform where there is nobody.

    The classifier whose soft accuracy is the utility of `tknn_shapley`.

    Parameters
    ----------
    radius
        Distance up to which a point counts, inclusive.
    metric
        "cosine" or "euclidean". As elsewhere in scikit-learn, and unlike in `tknn_shapley`, a row
        of zeros is no error under cosine: its similarity to every row is 0, its distance 1.

    Examples
    --------
    >>> classifier = TKNNClassifier(radius=1.5, metric="euclidean")
    >>> classifier = classifier.fit([[0.0], [1.0], [5.0]], ["a", "b", "b"])
    >>> classifier.predict_proba([[0.0], [5.0], [9.0]]).tolist()
    [[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]
    """

    def __init__(self, radius: float = 0.5, metric: str = "cosine") -> None:
        self.radius = radius
        self.metric = metric

    def fit(self, X: Any, y: Any) -> TKNNClassifier:
        """Keep the points, sorted by class."""
        check_radius(self.radius)
        if check_metric(self.metric) == "precomputed":
            raise InputError("metric must be 'cosine' or 'euclidean' for TKNNClassifier")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        X = np.array(X)  # our own: its norms are computed once
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._points = self._measure(X)
        self._groups = Groups.of(codes.astype(np.int32), len(self.classes_))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """One row a query, one column a class, in the order of `classes_`."""
        check_is_fitted(self)
        queries = self._measure(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))
        every = np.arange(len(self.classes_))
        counts = np.zeros((len(self.classes_), len(queries)), np.int64)
        way = search(
            self._points,
            queries,
            metric=check_metric(self.metric),
            radius=check_radius(self.radius),
        )  # fmt: skip
        segments = self._groups.segments(every)  # each class of a fitted classifier has points
        for block in way.blocks(self._groups):
            counts[:, block.columns] = block.count(segments)
        near = counts.sum(axis=0)
        shares = np.where(near > 0, counts / np.maximum(near, 1), 1 / len(every))
        return np.ascontiguousarray(shares.T)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most frequent label within the radius; the first of `classes_` among equals."""
        shares = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[np.argmax(shares, axis=1)]
        return labels

    def _measure(self, X: NDArray[Any]) -> Rows:
        return measure("X", X, cosine=self.metric == "cosine", zero_rows=True)
