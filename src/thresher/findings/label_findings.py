"""Findings: what a valuation says about each row, and what to do about it (`advice`).

By a radius: for each point, how many validation points are near, how many of them carry its label,
and which other label would make it worth most.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.findings.advice import SUGGESTIONS, Near, suggest_by_votes
from thresher.findings.forecast import Forecast
from thresher.findings.stability import Stability
from thresher.games.classes import ClassGame
from thresher.games.label_sums import LabelGame
from thresher.games.semivalues import Semivalue, check_semivalue
from thresher.inputs.checked_inputs import (
    Points,
    Validation,
    check_mutual,
    check_points,
    check_validation,
)
from thresher.inputs.checks import rows_text
from thresher.inputs.coded import Coded
from thresher.inputs.labels import Classes, Codes, check_labels, check_owners, class_list
from thresher.kernels.relabel import best_other_labels
from thresher.neighbors.ball import Ball, Neighbors
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import Kernel
from thresher.passes.result import side_valuation
from thresher.passes.walk import count, visit
from thresher.price_list import PriceList
from thresher.progress import Advance, progress_bar
from thresher.sides.ball_side import BallSide
from thresher.threads import cut, in_order
from thresher.valuation import Valuation

CHUNK = 1 << 16  # points whose values under every label are held at once, at most
AT_ONCE = 1 << 24  # the most points times labels whose values are all held at once
NUMBERS = 1 << 21  # and values of theirs, whatever the number of labels


@dataclass(frozen=True, eq=False)
class Findings:
    """What to do about each point, and the evidence for it: one entry per point, in input order.

    Parameters
    ----------
    values, rank, percentile
        The value, its place (1 is the lowest), and the share of points with a lower value, in
        percent.
    near, agree
        By a radius: how many validation points are near, and what share of them has the point's
        label (NaN if none is near). By a forest: how many other rows are in the point's leaf, and
        what share of them has its label, both as means over the trees that did not see the point.
    best_label
        By a radius: the other label under which the point would be worth most. By a forest: the
        other label with the largest share.
    best_value
        By a radius: what the point would be worth under that label if nothing else changed.
    best_share, score
        By a forest: the share of that label, and `agree / (agree + best_share)`. The lower the
        score, the more probably the label is wrong.
    suggestion
        What to do. "keep": nothing speaks against the point. "relabel": `best_label` fits better.
        "inspect": worth a look. "drop": its label looks wrong, and no other one fits. "outlier":
        too little is near to say anything.
    labels
        The labels of the points.
    best_codes
        The index of `best_label` among the classes.
    stability
        By a forest: how much of this would be found again with other random folds and trees.
    forecast
        By a forest: how many labels are expected to be wrong.
    forest
        By a forest: its structure.
    words
        All possible suggestions.

    Examples
    --------
    >>> import thresher as th
    >>> X, y = [[0.0], [0.1], [0.2], [9.0]], ["cat", "cat", "dog", "cat"]
    >>> data = X, y, [[0.05], [0.15], [20.0]], ["cat", "cat", "dog"]
    >>> th.explain(th.tknn_shapley(*data, radius=1, metric="euclidean"), *data)
    Findings(4 points: 2 keep, 1 inspect, 1 outlier)
    """

    labels: Coded
    values: NDArray[np.float64]
    rank: NDArray[np.int64]
    percentile: NDArray[np.float64]
    near: NDArray[Any]
    agree: NDArray[np.float64]
    best_label: Coded
    best_value: NDArray[np.float64] | None
    suggestion: Coded
    best_codes: NDArray[np.int64]
    best_share: NDArray[np.float64] | None = None
    score: NDArray[np.float64] | None = None
    stability: Stability | None = None
    forecast: Forecast | None = None
    forest: Forest | None = None
    words: Sequence[str] = SUGGESTIONS

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        times = ", ".join(f"{count} {name}" for name, count in self.counts().items() if count)
        return f"{type(self).__name__}({len(self)} points: {times})"

    def counts(self) -> dict[str, int]:
        """How many points got each suggestion."""
        times = np.bincount(self.suggestion.codes, minlength=len(self.suggestion.distinct))
        found = dict(zip(self.suggestion.distinct, times.tolist(), strict=True))
        return {name: found.get(name, 0) for name in self.words}

    def columns(self) -> dict[str, Any]:
        """The columns of a table, one row per point."""
        found = {
            "row": np.arange(len(self)),
            "label": self.labels,
            "value": self.values,
            "rank": self.rank,
            "percentile": self.percentile,
            "near": self.near,
            "agree": self.agree,
            "best_label": self.best_label,
            "best_value": self.best_value,
            "best_share": self.best_share,
            "score": self.score,
            "suggestion": self.suggestion,
        }
        return {name: column for name, column in found.items() if column is not None}


def explain_by_radius(valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any) -> Findings:
    """What a valuation by `tknn_shapley` says about each point."""
    points, validation = checked_data(valuation, X, y, X_val, y_val)
    about = valuation.params
    side = BallSide(validation, about["radius"], Kernel.recorded(about))
    semivalue = check_semivalue(about["semivalue"], calibrated=True)
    _, found = _judge_all(points, side, semivalue, mean=bool(about.get("mean")))
    check_fit(valuation.values, found.value)
    return _findings(valuation, validation.classes, points.codes, found)


def value_and_explain(
    points: Points, validation: Validation, *, radius: float, semivalue: Semivalue,
    owners: Any = None, mean: bool = False, progress: bool = False, kernel: Kernel | None = None,
) -> tuple[Valuation, Findings]:  # fmt: skip
    """What `tknn_shapley` and `explain` find, to the same bits, in one walk over the points."""
    known = check_owners(owners, len(points))
    side, pairs = BallSide(validation, radius, kernel), len(points) * len(validation)
    with progress_bar("tknn-shapley", pairs, show=progress) as advance:
        counts, found = _judge_all(points, side, semivalue, mean=mean, advance=advance)
    if not counts.any():
        side.warn_of_reach(stacklevel=3)
    valuation = side_valuation(
        side, found.value, semivalue, side.utility(counts), mean=mean, owners=known
    )
    return valuation, _findings(valuation, validation.classes, points.codes, found)


def _judge_all(
    points: Points, side: BallSide, semivalue: Semivalue, *, mean: bool,
    advance: Advance | None = None,
) -> tuple[NDArray[np.int64], Judged]:  # fmt: skip
    """The counts, and what they say about all points."""
    validation, near, game = side.validation, side.near(), side.counting(semivalue)
    scale = len(validation) if mean else 1
    if validation.mutual or len(points) * game.classes <= AT_ONCE:
        return _judge_at_once(points, validation, near, game, scale, advance)
    counts = count(points, near, game, advance)
    prices = PriceList.over(side, counts, semivalue)
    pieces = cut(0, len(points), max(1024, min(CHUNK, NUMBERS // game.classes)))
    return counts, _joined(judge(prices, points.take(lo, hi), scale) for lo, hi in pieces)


def _judge_at_once(
    points: Points, validation: Validation, near: Ball, game: ClassGame, scale: float,
    advance: Advance | None,
) -> tuple[NDArray[np.int64], Judged]:  # fmt: skip
    """Judge all in one walk: each block is counted, priced and paid before the next."""
    groups, labels = game.groups(points.codes), LabelGame(validation.codes, game.classes)
    worth = Worth.none(len(points), game.classes)
    counts = np.zeros((game.entries, len(validation)), np.int64)

    def add_and_pay(block: Any) -> None:
        counts[:, block.columns] = found = game.sums(block, groups)
        labels.pay(block, groups, game.label_prices(found), worth.values, worth.near)

    visit(points, near, groups, add_and_pay, advance)
    known, pieces = _present(validation), cut(0, len(points), CHUNK)
    parts = in_order(
        lambda lo, hi: judge_worth(worth.part(lo, hi), points.codes[lo:hi], known, scale), pieces,
        parallel=len(pieces) > 1,
    )  # fmt: skip
    return counts, _joined(parts)


def _joined(parts: Iterable[Judged]) -> Judged:
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return Judged(*map(np.concatenate, columns))


def _findings(valuation: Valuation, classes: Classes, codes: Codes, found: Judged) -> Findings:
    return Findings(
        Coded.numbered(codes, classes.labels),
        valuation.values,
        valuation.ranks(),
        valuation.percentiles(),
        found.near,
        found.agree,
        Coded.numbered(found.best, classes.labels),
        found.best_value,
        Coded.numbered(found.suggestion, SUGGESTIONS),
        found.best,
    )


@dataclass(frozen=True)
class Judged:
    """What can be found about a point without knowing the other points, one entry per point.

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
    """What points are worth under each label, and how many validation points are near them.

    One row per point and one column per class: the value under that label, and how many of the near
    validation points have it.
    """

    values: NDArray[np.float64]
    near: NDArray[np.int32]

    @classmethod
    def of(
        cls, prices: PriceList, points: Points, before: Worth | None = None,
        neighbors: Neighbors = "auto",
    ) -> Worth:  # fmt: skip
        """What points are worth by the prices of some validation points, added to `before`."""
        found = cls.none(len(points), len(prices.classes))
        if before is not None:
            found = cls(before.values.copy(), before.near.copy())
        prices.add_label_values(points, found.values, found.near, neighbors)
        return found

    @classmethod
    def none(cls, points: int, classes: int) -> Worth:
        """The zeros to start from, for this many points and classes."""
        return cls(np.zeros((points, classes)), np.zeros((points, classes), np.int32))

    def part(self, lo: int, hi: int) -> Worth:
        """The same for the points from row `lo` up to row `hi`."""
        return Worth(self.values[lo:hi], self.near[lo:hi])


def judge(
    prices: PriceList, points: Points, scale: float = 1.0, neighbors: Neighbors = "auto"
) -> Judged:
    """What prices say about points that were counted; values are divided by `scale`."""
    worth = Worth.of(prices, points, None, neighbors)
    return judge_worth(worth, points.codes, classes_present(prices), scale)


def classes_present(prices: PriceList) -> NDArray[np.bool_]:
    """Whether each class has a validation point."""
    return _present(prices.validation)


def _present(validation: Validation) -> NDArray[np.bool_]:
    """Whether each class has a validation point, or two if points judge each other."""
    least = 2 if validation.mutual else 1
    return np.bincount(validation.codes, minlength=len(validation.classes)) >= least


def judge_worth(worth: Worth, codes: Codes, known: NDArray[np.bool_], scale: float = 1.0) -> Judged:
    """What follows for points with these labels; `known`: classes that validation points have."""
    near = _near(worth, codes)
    values = near.value / scale
    agree = np.divide(near.own, near.near, out=np.full(len(codes), np.nan), where=near.near > 0)
    suggestion = suggest_by_votes(values, near, known[codes])
    return Judged(values, near.near, agree, near.best, near.best_value / scale, suggestion)


def checked_data(
    valuation: Valuation, X: Any, y: Any, X_val: Any, y_val: Any
) -> tuple[Points, Validation]:
    """The points and the validation set that were valued, checked against the valuation."""
    about = valuation.params
    if about["metric"] == "precomputed":
        raise no_features()
    classes = stored_classes(valuation, y, y_val)
    if X_val is None and y_val is None:
        return check_mutual(X, y, metric=about["metric"], classes=classes)
    validation = check_validation(X_val, y_val, metric=about["metric"], classes=classes)
    return check_points(X, y, validation), validation


def no_features() -> InputError:
    """The error of a valuation whose data say nothing about single features."""
    return InputError(
        "explain needs features, and the valuation was made from precomputed distances"
    )


def stored_classes(valuation: Valuation, y: Any, y_val: Any) -> list[Hashable]:
    """The classes of a valuation; if its record has them as text only, those of the labels."""
    about, stored = valuation.params, valuation.params["classes"]
    labels = [check_labels("y", y)] + ([] if y_val is None else [check_labels("y_val", y_val)])
    mine, there = len(labels[0]), sum(map(len, labels[1:]))
    if (len(valuation), about["validation_points"]) != (mine, there):
        raise InputError(
            f"the valuation has {len(valuation)} points and {about['validation_points']} "
            f"validation points, but y has {mine} labels and y_val has {there}"
        )
    found = Classes(tuple(stored))
    if all(found.known_codes(each).min(initial=0) >= 0 for each in labels):
        return list(stored)
    read = list(class_list(None, *labels).labels)
    if [repr(label) for label in read] != [x if isinstance(x, str) else repr(x) for x in stored]:
        raise InputError(f"y and y_val have other labels than the valuation, which has {stored}")
    return read


class UnfitError(InputError):
    """The data are not those that were valued."""


def check_fit(values: NDArray[np.float64], found: NDArray[np.float64], otherwise: str = "") -> None:
    """Refuse data whose values differ from those of the valuation."""
    if len(values) != len(found):
        raise UnfitError(f"the valuation has {len(values)} points, but X has {len(found)} rows")
    apart = np.flatnonzero(~np.isclose(values, found, rtol=1e-6, atol=1e-9))
    if len(apart):
        raise UnfitError(
            f"the valuation was not computed from these points in this order: {rows_text(apart)} "
            f"would have other values{otherwise}"
        )


def _near(worth: Worth, labels: Codes) -> Near:
    """How many are near each point, and its value under its own label and the best other one."""
    numbers, worths = np.empty((5, len(labels)), np.int64), np.empty((2, len(labels)))
    best_other_labels(worth.values, worth.near, labels, numbers, worths)
    near, own, best, votes, most = numbers
    return Near(near, own, worths[0], best, votes, most, worths[1])
