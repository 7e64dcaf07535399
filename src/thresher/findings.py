"""Findings: what a valuation by a radius says about each row, and what to do about it.

For each point: how many validation points are near, how many of them carry its label, which other
label would make it worth most, and a suggestion:

    outlier   no validation point is near: nothing can be said
    keep      its value is not negative, or at least half of the near ones agree with its label
    relabel   it hurts, would help under another label, and near validation points clearly say so:
              none is more frequent among them, and at most one in five of those with either label
              has the point's own, which is more than two standard deviations from even odds
    drop      as clearly wrong, but it would hurt under every other label too
    inspect   it hurts, and most near ones disagree, but not clearly; or no validation point at all
              has its label, so that none could agree
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_features, rows_text
from thresher.counts import NeighborCounts
from thresher.errors import InputError
from thresher.inputs import Points, check_points
from thresher.labels import Classes, Codes, check_labels, class_list
from thresher.neighbors import Exact
from thresher.price_list import GAIN, PriceList, label_sums
from thresher.threads import cut
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
    >>> X_val = [*([(i + 0.5) / 40] for i in range(8)), [20.0]]
    >>> data = X, y, X_val, [*["cat"] * 8, "dog"]
    >>> valuation = th.tknn_shapley(*data, radius=1, metric="euclidean")
    >>> found = explain(valuation, *data)
    >>> found.suggestion, found.best_label[2]
    (('keep', 'keep', 'relabel', 'outlier'), 'cat')
    """
    prices = _prices(valuation, X, y, X_val, y_val)
    classes = prices.validation.classes
    codes = classes.encode("y", check_labels("y", y))
    rows = check_features("X", X)
    scale = len(prices.validation) if valuation.params.get("mean") else 1
    parts = []
    for lo, hi in cut(0, len(rows), CHUNK):
        labels = [classes.labels[code] for code in codes[lo:hi]]
        points = check_points(rows[lo:hi], labels, prices.validation, first=lo)
        parts.append(judge(prices, points, scale))
    found = Judged(*(np.concatenate(part) for part in zip(*map(_fields, parts), strict=True)))
    _check_fit(valuation.values, found.value)
    return Findings(
        tuple(classes.labels[code] for code in codes),
        valuation.values,
        valuation.ranks(),
        valuation.percentiles(),
        found.near,
        found.agree,
        tuple(classes.labels[code] for code in found.best),
        found.best_value,
        tuple(SUGGESTIONS[number] for number in found.suggestion),
    )


@dataclass(frozen=True)
class Judged:
    """What is found about points of which others need not be known, one entry a point.

    Labels and suggestions are numbers: those of the classes, and places in `SUGGESTIONS`.
    """

    value: NDArray[np.float64]
    near: NDArray[np.int64]
    agree: NDArray[np.float64]
    best: NDArray[np.int64]
    best_value: NDArray[np.float64]
    suggestion: NDArray[np.int64]


@dataclass(frozen=True)
class Worth:
    """What points are worth under each label, and to how many validation points near them.

    One row a point and one column a class: the value under that label, and how many of the near
    validation points have it.
    """

    values: NDArray[np.float64]
    near: NDArray[np.float64]

    @classmethod
    def of(
        cls, prices: PriceList, points: Points, before: Worth | None = None,
        neighbors: Exact = "auto",
    ) -> Worth:  # fmt: skip
        """By the prices of some validation points, added to those of the ones before them."""
        ones = np.zeros_like(prices.table)
        ones[:, GAIN] = 1.0
        counted = dataclasses.replace(prices, table=ones)
        start = None if before is None else [before.values, before.near]
        return cls(*label_sums([prices, counted], points, start, neighbors))


def judge(
    prices: PriceList, points: Points, scale: float = 1.0, neighbors: Exact = "auto"
) -> Judged:
    """What prices say about points that were counted; values are divided by `scale`."""
    worth = Worth.of(prices, points, None, neighbors)
    return judge_worth(worth, points.codes, classes_present(prices), scale)


def classes_present(prices: PriceList) -> NDArray[np.bool_]:
    """Whether each class has a validation point."""
    return np.bincount(prices.validation.codes, minlength=len(prices.classes)) > 0


def judge_worth(worth: Worth, codes: Codes, known: NDArray[np.bool_], scale: float = 1.0) -> Judged:
    """What follows for points of these classes, some of which are `known` to the validation set."""
    near = _Near.of(worth, codes)
    values = near.value / scale
    agree = np.divide(near.own, near.near, out=np.full(len(codes), np.nan), where=near.near > 0)
    suggestion = _suggest(values, near, known[codes])
    return Judged(values, near.near, agree, near.best, near.best_value / scale, suggestion)


def _prices(valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any) -> PriceList:
    about = valuation.params
    if valuation.method != "tknn-shapley" or about["metric"] == "precomputed":
        raise InputError(
            f"explain needs a valuation by tknn_shapley with features, got {valuation.method} "
            f"with metric {about.get('metric')}"
        )
    if "recall" in about:
        raise InputError(
            "explain needs an exact valuation: value the points without neighbors='approximate', "
            "which missed near pairs"
        )
    if about["validation_points"] != len(y_val) or len(valuation) != len(y):
        raise InputError(
            f"the valuation is of {len(valuation)} points and {about['validation_points']} "
            f"validation points, but y has {len(y)} and y_val {len(y_val)} labels"
        )
    counts = NeighborCounts(
        X_val, y_val, radius=about["radius"], metric=about["metric"],
        classes=_classes(about["classes"], y, y_val),
    )  # fmt: skip
    return counts.add(X, y).price_list(about["semivalue"])


def _classes(stored: list[Any], y: Any, y_val: Any) -> list[Hashable]:
    """The classes of a valuation; where its record has them as text only, those of the labels."""
    labels = check_labels("y", y), check_labels("y_val", y_val)
    found = Classes(tuple(stored))
    if all(found.known_codes(each).min(initial=0) >= 0 for each in labels):
        return stored
    read = list(class_list(None, *labels).labels)
    if [repr(label) for label in read] != [x if isinstance(x, str) else repr(x) for x in stored]:
        raise InputError(f"y and y_val have other labels than the valuation, which has {stored}")
    return read


def _check_fit(values: NDArray[np.float64], found: NDArray[np.float64]) -> None:
    """Refuse data that have other values than the valuation says."""
    apart = np.flatnonzero(~np.isclose(values, found, rtol=1e-6, atol=1e-9))
    if len(apart):
        raise InputError(
            f"the valuation is not of these points in this order: {rows_text(apart)} would have "
            "other values"
        )


@dataclass(frozen=True)
class _Near:
    """Who is near each point, and what it is worth under its own label and the best other one."""

    near: NDArray[np.int64]
    own: NDArray[np.int64]  # of them with the own label
    value: NDArray[np.float64]
    best: NDArray[np.int64]  # the best other label
    votes: NDArray[np.int64]  # of near ones for it
    most: NDArray[np.int64]  # of near ones for any other label
    best_value: NDArray[np.float64]

    @classmethod
    def of(cls, worth: Worth, labels: Codes) -> _Near:
        values, votes = worth.values, worth.near.round().astype(np.int64)
        each, codes = np.arange(len(labels)), labels.astype(np.int64)
        others, theirs = values.copy(), votes.copy()
        others[each, codes], theirs[each, codes] = -np.inf, 0
        best = others.argmax(axis=1) if values.shape[1] > 1 else codes
        return cls(
            votes.sum(axis=1), votes[each, codes], values[each, codes], best, votes[each, best],
            theirs.max(axis=1), values[each, best],
        )  # fmt: skip


def _fields(near: Judged) -> tuple[NDArray[Any], ...]:
    """The arrays, in the order of the fields."""
    return tuple(vars(near).values())


def _suggest(
    values: NDArray[np.float64], near: _Near, known: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """What to do, as places in `SUGGESTIONS`; `known` are points with a label of the public."""
    both = near.votes + near.own
    clear = (near.votes - near.own > CLEAR * np.sqrt(both)) & (near.own <= FEW * both)
    clear &= known & (near.votes == near.most)
    fine = (values >= 0) | (2 * near.own >= near.near)
    conditions = [near.near == 0, fine, clear & (near.best_value > 0), clear]
    words = [SUGGESTIONS.index(word) for word in ("outlier", "keep", "relabel", "drop", "inspect")]
    return np.select(conditions, words[:4], words[4])
