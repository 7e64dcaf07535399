"""PriceList: what a point is worth, to anyone who holds the list and the point."""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.arrays import pack_array, unpack_array
from thresher.checks import check_features, check_flag, check_metric, check_radius
from thresher.errors import InputError, ScaleWarning, option
from thresher.files import check_sealed, portable, reading, sealed, write_whole
from thresher.games.classes import ClassGame, RelabelGame
from thresher.games.label_sums import LabelGame
from thresher.games.semivalues import (
    Semivalue,
    check_semivalue,
    prices_between,
    rest_prices,
    semivalue_name,
)
from thresher.inputs import Points, Validation, check_points
from thresher.labels import Classes
from thresher.metrics import measure
from thresher.neighbors.ball import Ball, Neighbors
from thresher.passes.walk import value, visit

FORMAT = "thresher.games.semivalues/1"
CARRIES, LACKS, NEWCOMER = 0, 1, 2  # who is priced: a member with v's label, without it, a newcomer
UNSCALED = (
    "values by this price list have the right order but are too large: it is of a private release "
    f"that did not know how many points an owner has ({option('points_per_owner')}), or that "
    "counted a sample"
)
NOISE = (
    "this price list is of a private release that cannot be told from noise: it says nothing of "
    "what points are worth, so nobody should be paid by it"
)
GAIN, LOSS = 0, 1  # the label under which it is priced: v's own, or another


@dataclass(frozen=True, eq=False)
class PriceList:
    """The prices that each validation point pays for a point near it.

    A point's value is the sum, over the validation points it is near, of `gain` where it carries
    their label and `loss` where it does not. The list holds the public validation set and prices,
    no training point.

    Parameters
    ----------
    validation
        The validation set, the class list and the metric.
    radius
        The distance up to which a point is near, inclusive.
    semivalue
        The semivalue in words, as in `tknn_shapley`.
    table
        Prices, shape (3, 2, M): for a member that carries the validation point's label, a member
        that lacks it, a newcomer; each under that label and under another one.
    scaled
        False for prices of a private release that did not know how many points an owner has, or
        that counted a sample: values have the right order but are too large, and come with a
        `ScaleWarning`.
    noise
        True for prices of a private release whose table is no larger than noise alone would be:
        `thresher appraise` warns of them.

    Examples
    --------
    >>> import thresher as th
    >>> counts = th.NeighborCounts([[0.0], [4.0]], ["a", "b"], radius=1, metric="euclidean")
    >>> prices = counts.add([[0.5], [0.9]], ["a", "b"]).price_list()
    >>> prices.values([[0.5], [0.9]], ["a", "b"]).tolist()
    [0.5, -0.5]
    >>> prices.values([[0.9]], ["b"], label="a").round(3).tolist()  # if that row were relabeled
    [0.25]
    >>> prices.newcomer_values([[3.5]], ["b"]).tolist()
    [0.5]
    """

    validation: Validation
    radius: float
    semivalue: str
    table: NDArray[np.float64]
    scaled: bool = True
    noise: bool = False

    def __post_init__(self) -> None:
        table = np.array(self.table, np.float64)
        if table.shape != (3, 2, len(self.validation)) or not np.isfinite(table).all():
            raise InputError(f"table must hold 3 x 2 x {len(self.validation)} prices")
        table.flags.writeable = False
        object.__setattr__(self, "table", table)

    @classmethod
    def of_counts(
        cls, validation: Validation, radius: float, counts: tuple[NDArray[Any], NDArray[Any]],
        semivalue: Semivalue,
    ) -> PriceList:  # fmt: skip
        """The prices that follow from the counts (same, other); estimated ones may be fractions."""
        semivalue = check_semivalue(semivalue)
        same, other = counts
        rests = [(np.maximum(same - 1, 0), other), (same, np.maximum(other - 1, 0)), (same, other)]
        classes = len(validation.classes)
        price = rest_prices if same.dtype.kind == "i" else prices_between
        table = [price(*rest, classes, semivalue) for rest in rests]
        return cls(validation, radius, semivalue_name(semivalue), np.array(table))

    @property
    def classes(self) -> list[Hashable]:
        """The classes, in the order of the columns of `label_values`."""
        return list(self.validation.classes.labels)

    @property
    def member_prices(self) -> NDArray[np.float64]:
        """`gain` and `loss`, as the walk pays them."""
        return np.array([self.gain, self.loss])

    @property
    def gain(self) -> NDArray[np.float64]:
        """What each validation point pays a member that carries its label (> 0 for Shapley)."""
        return self.table[CARRIES, GAIN]

    @property
    def loss(self) -> NDArray[np.float64]:
        """What each validation point charges a member that lacks its label (< 0 for Shapley)."""
        return self.table[LACKS, LOSS]

    def __repr__(self) -> str:
        about = f"{self.semivalue}, {len(self.validation)} validation points"
        return f"PriceList({about}, {self.validation.metric} radius {self.radius:g})"

    def values(self, X: object, y: object, *, label: object = None) -> NDArray[np.float64]:
        """The values of points that are among the counted ones.

        Parameters
        ----------
        X, y
            The points and the labels under which they were counted.
        label
            If given, the values the same points would have under this label, all else equal.
        """
        points = check_points(X, _spread(y, X), self.validation)
        code = None if label is None else self.validation.classes.code("label", label)
        return self._sum(points, code, member=True)

    def newcomer_values(self, X: object, y: object) -> NDArray[np.float64]:
        """What each point would be worth if it alone were added; `y` may be one label for all."""
        points = check_points(X, _spread(y, X), self.validation)
        return self._sum(points, None, member=False)

    def label_values(self, X: object, y: object = None) -> NDArray[np.float64]:
        """The value of each point under each class: one row a point, one column for each class.

        With `y` the points are members that were counted under these labels, without it newcomers.
        """
        placeholder = self.validation.classes.labels[0]
        labels = [placeholder] * _count(X) if y is None else _spread(y, X)
        points = check_points(X, labels, self.validation)
        self._warn_of_scale(3)
        values = np.zeros((len(points), len(self.validation.classes)))
        self.add_label_values(points, values, member=y is not None)
        return values

    def add_label_values(
        self, points: Points, values: NDArray[np.float64], counts: NDArray[np.int32] | None = None,
        neighbors: Neighbors = "auto", *, member: bool = True,
    ) -> None:  # fmt: skip
        """Add `label_values` to `values`, and to `counts` the near ones with each label."""
        prices = self.table[[CARRIES, LACKS] if member else [NEWCOMER, NEWCOMER]]
        game = LabelGame(self.validation.codes, len(self.validation.classes))
        groups = game.groups(points.codes)
        near = Ball.around(self.validation, self.radius, neighbors)

        def pay(block: Any) -> None:
            game.pay(block, groups, prices[..., block.columns], values, counts)

        visit(points, near, groups, pay)

    def _sum(self, points: Points, label: int | None, *, member: bool) -> NDArray[np.float64]:
        """Values under `label`, where None is the point's own."""
        self._warn_of_scale(4)
        public, near = self.validation, Ball.around(self.validation, self.radius)
        if label is not None:
            game = RelabelGame(public.codes, len(public.classes), label=label)
            return value(points, near, game, self.table[[CARRIES, LACKS]])
        prices = self.member_prices if member else self.table[NEWCOMER]
        return value(points, near, ClassGame.of(public), prices)

    def _warn_of_scale(self, stacklevel: int) -> None:
        if not self.scaled:
            warnings.warn(UNSCALED, ScaleWarning, stacklevel=stacklevel)

    def document(self) -> dict[str, Any]:
        """All of it as JSON can hold it, sealed by a digest."""
        rows = self.validation.rows
        about = {
            "format": FORMAT,
            "semivalue": self.semivalue,
            "metric": self.validation.metric,
            "radius": self.radius,
            "columns": self.validation.columns,
            "classes": portable("label", self.validation.classes.labels),
            "labels": self.validation.codes.tolist(),
            "features": None if rows is None else pack_array(rows.array),
            "prices": self.table.tolist(),
        }
        marks = ({} if self.scaled else {"scaled": False}) | ({"noise": True} if self.noise else {})
        return sealed(about | marks)

    def save(self, path: str | Path) -> None:
        """Write one JSON file that anyone can value points with; an existing file is replaced."""
        text = json.dumps(self.document())
        write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))

    @classmethod
    def load(cls, path: str | Path) -> PriceList:
        """The price list that `save` wrote, equal to the last bit; also that of a saved release."""
        with reading(path, "price list") as found:
            document: Any = json.loads(found.read_text(encoding="utf-8"))
            if isinstance(document, dict) and "prices" in document and "record" in document:
                document = document["prices"]  # of a private release
            check_sealed(document, FORMAT)
            packed = document["features"]
            validation = stored_validation(
                document, None if packed is None else unpack_array(packed), document["labels"]
            )
            semivalue = semivalue_name(check_semivalue(document["semivalue"]))
            marks = {
                name: check_flag(name, document.get(name, usual))
                for name, usual in (("scaled", True), ("noise", False))
            }
            radius = check_radius(document["radius"])
            return cls(validation, radius, semivalue, document["prices"], **marks)


def described(validation: Validation) -> dict[str, Any]:
    """What a file says of a validation set, besides its rows and labels."""
    return {
        "metric": validation.metric,
        "columns": validation.columns,
        "classes": portable("label", validation.classes.labels),
    }


def stored_validation(about: Any, features: Any, codes: Any) -> Validation:
    """The validation set that a file describes."""
    metric = check_metric(about["metric"])
    rows = None
    if features is not None:
        rows = measure("X_val", check_features("X_val", features), cosine=metric == "cosine")
    columns = None if about["columns"] is None else tuple(about["columns"])
    classes, labels = Classes(tuple(about["classes"])), np.array(codes, np.int32)
    if labels.ndim != 1 or not len(labels) or labels.min() < 0 or labels.max() >= len(classes):
        raise InputError("it has labels that are not among its classes")
    if rows is not None and len(rows) != len(labels):
        raise InputError(f"it has {len(rows)} rows but {len(labels)} labels")
    return Validation(rows, labels, classes, metric, columns)


def _spread(y: object, X: object) -> object:
    """`y`, or, where it is one label, that label once for every row of X."""
    several = hasattr(y, "__len__") or hasattr(y, "__iter__")
    return y if several and not isinstance(y, str | bytes) else [y] * _count(X)


def _count(X: Any) -> int:
    """The number of rows of a table, or of blocks of distances that are in a list."""
    if isinstance(X, list | tuple) and X and getattr(X[0], "ndim", 0) == 2:
        return len(X[0])
    return len(X) if hasattr(X, "__len__") else 1
