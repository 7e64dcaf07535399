"""Findings: what a valuation by a radius says about each row, and what to do about it.

For each point: how many validation points are near, how many of them carry its label, which other
label would make it worth most, and a suggestion:

    outlier   no validation point is near: nothing can be said
    keep      its value is not negative, or at least half of the near ones agree with its label
    relabel   it hurts, would help under another label, and near validation points clearly say so:
              at most one in five of those with either label has its own, which is more than two
              standard deviations from even odds
    drop      as clearly wrong, but it would hurt under every other label too
    inspect   it hurts, and most near ones disagree, but not clearly
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_features
from thresher.counts import NeighborCounts
from thresher.errors import InputError
from thresher.labels import check_labels
from thresher.price_list import GAIN, PriceList
from thresher.valuation import Valuation

SUGGESTIONS = ("keep", "relabel", "inspect", "drop", "outlier")
CHUNK = 1 << 16  # points whose values under every label are held at once
CLEAR = 2.0  # standard deviations of even odds
FEW = 0.2  # share of votes for the own label


@dataclass(frozen=True, eq=False)
class Findings:
    """One entry a point, in input order.

    Parameters
    ----------
    values, rank, percentile
        The value, its place (1 is the lowest), and the share of points with a lower value, in
        percent.
    near, agree
        How many validation points are near, and which share of them carries the point's label (NaN
        where nobody is near).
    best_label, best_value
        The other label under which the point would be worth most, and that worth, all else equal.
    suggestion
        What to do: one of `SUGGESTIONS`.
    labels
        The labels as they are.
    """

    labels: tuple[Hashable, ...]
    values: NDArray[np.float64]
    rank: NDArray[np.int64]
    percentile: NDArray[np.float64]
    near: NDArray[np.int64]
    agree: NDArray[np.float64]
    best_label: tuple[Hashable, ...]
    best_value: NDArray[np.float64]
    suggestion: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {name}" for name, count in self.counts().items() if count)
        return f"Findings({len(self)} points: {told})"

    def counts(self) -> dict[str, int]:
        """How many points got each suggestion."""
        return {name: self.suggestion.count(name) for name in SUGGESTIONS}

    def columns(self) -> dict[str, Any]:
        """The columns of a table, one row a point."""
        return {
            "row": np.arange(len(self)),
            "label": list(self.labels),
            "value": self.values,
            "rank": self.rank,
            "percentile": self.percentile,
            "near": self.near,
            "agree": self.agree,
            "best_label": list(self.best_label),
            "best_value": self.best_value,
            "suggestion": list(self.suggestion),
        }


def explain(valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any) -> Findings:
    """What a valuation by `tknn_shapley` says about each point.

    Parameters
    ----------
    valuation
        Made by `tknn_shapley` from the other four arguments, with features or embeddings.
    X, y, X_val, y_val
        The points and the validation set.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [0.1], [0.2], [9.0]], ["cat", "cat", "dog", "cat"]
    >>> data = X, y, [[(i + 0.5) / 40] for i in range(8)], ["cat"] * 8
    >>> valuation = th.tknn_shapley(*data, radius=1, metric="euclidean")
    >>> found = explain(valuation, *data)
    >>> found.suggestion, found.best_label[2]
    (('keep', 'keep', 'relabel', 'outlier'), 'cat')
    """
    prices = _prices(valuation, X, y, X_val, y_val)
    labels = check_labels("y", y)
    classes = prices.validation.classes
    codes = classes.encode("y", labels).astype(np.int64)
    rows = check_features("X", X)
    parts = [
        _best(prices, rows[lo : lo + CHUNK], codes[lo : lo + CHUNK])
        for lo in range(0, len(rows), CHUNK)
    ]
    near, own, best, votes, best_value = (np.concatenate(part) for part in zip(*parts, strict=True))
    scale = len(prices.validation) if valuation.params.get("mean") else 1
    best_value = best_value / scale
    return Findings(
        tuple(classes.labels[code] for code in codes),
        valuation.values,
        valuation.ranks(),
        valuation.percentiles(),
        near,
        np.divide(own, near, out=np.full(len(near), np.nan), where=near > 0),
        tuple(classes.labels[code] for code in best),
        best_value,
        _suggest(valuation.values, near, own, votes, best_value),
    )


def _prices(valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any) -> PriceList:
    about = valuation.params
    if valuation.method != "tknn-shapley" or about["metric"] == "precomputed":
        raise InputError(
            f"explain needs a valuation by tknn_shapley with features, got {valuation.method} "
            f"with metric {about.get('metric')}"
        )
    if about["validation_points"] != len(y_val) or len(valuation) != len(y):
        raise InputError(
            f"the valuation is of {len(valuation)} points and {about['validation_points']} "
            f"validation points, but y has {len(y)} and y_val {len(y_val)} labels"
        )
    counts = NeighborCounts(
        X_val, y_val, radius=about["radius"], metric=about["metric"], classes=about["classes"]
    )
    return counts.add(X, y).price_list(about["semivalue"])


def _best(
    prices: PriceList, rows: NDArray[Any], codes: NDArray[np.int64]
) -> tuple[NDArray[Any], ...]:
    """Near validation points, those of the own label, the best other one, its votes and worth."""
    y = [prices.validation.classes.labels[code] for code in codes]
    worth = prices.label_values(rows, y)
    ones = np.zeros_like(prices.table)
    ones[:, GAIN] = 1.0
    votes = dataclasses.replace(prices, table=ones).label_values(rows, y).round().astype(np.int64)
    each = np.arange(len(codes))
    others = worth.copy()
    others[each, codes] = -np.inf
    best = others.argmax(axis=1) if worth.shape[1] > 1 else codes
    return votes.sum(axis=1), votes[each, codes], best, votes[each, best], worth[each, best]


def _suggest(
    values: NDArray[np.float64],
    near: NDArray[np.int64],
    own: NDArray[np.int64],
    votes: NDArray[np.int64],
    best_value: NDArray[np.float64],
) -> tuple[str, ...]:
    clear = (votes - own > CLEAR * np.sqrt(votes + own)) & (own <= FEW * (votes + own))
    fine = (values >= 0) | (2 * own >= near)
    conditions = [near == 0, fine, clear & (best_value > 0), clear]
    return tuple(np.select(conditions, ["outlier", "keep", "relabel", "drop"], "inspect").tolist())
