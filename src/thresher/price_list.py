"""`PriceList`: anyone who holds the list and a point can compute what the point is worth."""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Array, Floats
from thresher.errors import InputError, ScaleWarning, either, option
from thresher.files import reading, sealed, write_text
from thresher.games.semivalues import Semivalue, check_semivalue, semivalue_name
from thresher.inputs.arrays import pack_array, unpack_array
from thresher.inputs.checked_inputs import Validation
from thresher.inputs.checks import check_flag, row_count, rows_text
from thresher.inputs.labels import check_labels
from thresher.inputs.spelling import first_names
from thresher.neighbors.ball import Neighbors
from thresher.neighbors.kernel import Kernel
from thresher.passes.walk import value, visit
from thresher.sides.ball_side import BALL, CARRIES, GAIN, LACKS, LOSS, NEWCOMER, BallSide, only_ball
from thresher.sides.label_kinds import NumberSide
from thresher.sides.protocol import PublicSide, SidePoints, Who

__all__ = ["CARRIES", "GAIN", "LACKS", "LOSS", "NEWCOMER", "NOISE", "UNSCALED", "PriceList"]

FORMATS = {
    "ball": "thresher.games.semivalues/1",
    "rings": "thresher.ring-prices/1",
    "forest": "thresher.forest-prices/1",
    "targets": "thresher.target-prices/2",
    "ring-targets": "thresher.ring-target-prices/2",
    "forest-targets": "thresher.forest-target-prices/2",
}
UNSCALED = (
    "values by this price list have the right order but are too large: it comes from a private "
    f"release that did not know how many points an owner has ({option('points_per_owner')}), or "
    "that counted a sample"
)
NOISE = (
    "this price list comes from a private release that cannot be told from noise: it says "
    "nothing about what points are worth, so do not pay anyone by it"
)
WRITTEN_BY = either(
    "PriceList.save and Release.save write one",
    f"thresher release {option('out_prices')} writes one",
)


@dataclass(frozen=True, eq=False)
class PriceList:
    """The prices that each validation point pays for a point near it.

    A point's value is a sum over the validation points that it is near: `gain` if it carries their
    label, and `loss` if it does not. The list holds the public validation set and prices, and no
    training point.

    The list of a forest holds its structure and, for each leaf, how many points of each class are
    in it. With a validation set, it has only the leaves of validation points. If the points judge
    each other, it has all leaves. Such a list reveals nearly as much as the points themselves, and
    `holds_points` is True. Protect it as you protect the data.

    Parameters
    ----------
    side
        The validation set, the classes, and what near means.
    semivalue
        The semivalue in words, as in `tknn_shapley`.
    table
        Prices of shape (3, 2, M). The first axis is who is paid: a member (a point that was
        counted) with the validation point's label, a member with another label, or a newcomer (a
        point that was not counted). The second axis is the label it is paid for: the validation
        point's, or another one. With a kernel the shape is (3, 2, rings, M), the innermost ring
        first. For a forest, the table holds the class counts of leaves, from which prices follow:
        one row per class, one column per leaf. For regression, there are ten rows of what a
        validation point or a leaf pays, by r, the target of a point minus a center: the
        coefficients of 1, r and r^2 for members, the same for newcomers, G, K and H, by which the
        value of a member changes with its target (`games/targets.py`), and the center. The shape is
        (10, cells), and with a kernel (10, rings, M).
    scaled
        False for prices of a private release that did not know how many points an owner has, or
        that counted a sample: values have the right order but are too large, and come with a
        `ScaleWarning`.
    noise
        True for prices of a private release whose table is no larger than noise alone would be:
        `thresher appraise` warns about them.
    encoding
        How a table becomes the numbers that are priced: the record of an encoder that was fitted on
        public rows, if there is one. `thresher appraise` follows it.

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

    side: PublicSide
    semivalue: str
    table: Array
    scaled: bool = True
    noise: bool = False
    encoding: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        table = self.side.check_prices(self.table)
        table.flags.writeable = False
        object.__setattr__(self, "table", table)

    @classmethod
    def of_counts(
        cls, validation: Validation, radius: float, counts: Any,
        semivalue: Semivalue, kernel: Kernel | None = None,
    ) -> PriceList:  # fmt: skip
        """The prices that follow from counts (same, other); estimated counts may be fractions."""
        return cls.over(BallSide(validation, radius, kernel), counts, semivalue)

    @classmethod
    def over(cls, side: PublicSide, counts: Any, semivalue: Semivalue) -> PriceList:
        """The prices that follow from the table of counts of a public side."""
        semivalue = check_semivalue(semivalue, calibrated=side.kind == BALL)
        return cls(side, semivalue_name(semivalue), side.prices(counts, semivalue))

    @property
    def validation(self) -> Validation:
        """The validation set, the class list and the metric."""
        return only_ball(self.side).validation

    @property
    def radius(self) -> float:
        """The distance up to which a point is near, inclusive."""
        return only_ball(self.side).radius

    @property
    def kernel(self) -> Kernel | None:
        """The rings and their weights; None for the box."""
        return only_ball(self.side).kernel

    @property
    def classes(self) -> list[Hashable]:
        """The classes, in the order of the columns of `label_values`."""
        return list(self.side.classes.labels)

    @property
    def holds_points(self) -> bool:
        """Whether the list reveals single points, because they judge each other."""
        return self.side.holds_points

    @property
    def member_prices(self) -> Floats:
        """What members are paid (for classes, `gain` and `loss`)."""
        return np.asarray(self.side.payment(self.table, self._semivalue, "members")[1])

    @property
    def gain(self) -> Floats:
        """What each validation point pays a member that carries its label (> 0 for Shapley)."""
        return self._classes_of_ball[CARRIES, GAIN]

    @property
    def loss(self) -> Floats:
        """What each validation point charges a member that lacks its label (< 0 for Shapley)."""
        return self._classes_of_ball[LACKS, LOSS]

    @property
    def _classes_of_ball(self) -> Floats:
        """The table, if it is that of classes within a radius."""
        only_ball(self.side)
        if isinstance(self.side, NumberSide):
            raise InputError("gain and loss are for classes: use table with task='regression'")
        return self.table

    def __repr__(self) -> str:
        held = ", holds the points" if self.holds_points else ""
        return f"PriceList({self.semivalue}, {self.side}{held})"

    def values(self, X: object, y: object, *, label: object = None) -> Floats:
        """The values of points that are among the counted ones.

        Parameters
        ----------
        X, y
            The points and the labels under which they were counted.
        label
            If given, the values that the points would have under this label, or with this target,
            if nothing else changed.
        """
        points = self._check_points(X, _spread(y, X))
        code = None
        if label is not None:
            code = self.side.classes.code("label", self._known("label", [label])[0])
        return self._values(points, "members", code)

    def newcomer_values(self, X: object, y: object) -> Floats:
        """What each point would be worth as the only addition; `y` may be one label for all."""
        return self._values(self._check_points(X, _spread(y, X)), "newcomers")

    def best_targets(self, X: object, y: object = None) -> tuple[Floats, Floats]:
        """For regression: the target under which each point would be worth most, and its value.

        With `y`, the points are members that were counted with these targets; without it,
        newcomers. The value is a quadratic function of the target, and the best target is the one
        within the bounds with the highest value. Both are NaN for points that are near no judge.

        Examples
        --------
        >>> import thresher as th
        >>> about = {"radius": 1, "metric": "euclidean", "task": "regression"}
        >>> counts = th.NeighborCounts([[0.0], [0.2]], [1.0, 3.0], **about).add([[0.5]], [4.0])
        >>> target, worth = counts.price_list().best_targets([[0.1]])
        >>> target.round(3).tolist(), worth.round(3).tolist()
        ([1.6], [3.2])
        """
        side = self.side
        if not isinstance(side, NumberSide):
            raise InputError("best_targets needs a price list of task='regression'")
        who: Who = "newcomers" if y is None else "members"
        targets = [side.middle] * _count(X) if y is None else _spread(y, X)
        points = side.check_points(X, targets)
        self._warn_of_scale(3)
        return side.best(self.table, points, who)

    def label_values(self, X: object, y: object = None) -> Floats:
        """The value of each point under each class: one row per point, one column per class.

        With `y`, the points are members that were counted under these labels; without it,
        newcomers.
        """
        labels = [self.classes[0]] * _count(X) if y is None else _spread(y, X)
        points = self._check_points(X, labels)
        self._warn_of_scale(3)
        values = np.zeros((len(points), len(self.classes)))
        self.add_label_values(points, values, member=y is not None)
        return values

    def add_label_values(
        self, points: SidePoints, values: Floats,
        counts: NDArray[np.int32] | None = None, neighbors: Neighbors = "auto", *,
        member: bool = True,
    ) -> None:  # fmt: skip
        """Add `label_values` to `values`, and to `counts` the near points with each label."""
        who: Who = "members" if member else "newcomers"
        game, prices = self.side.label_payment(self.table, self._semivalue, who)
        groups = game.groups(points.codes)

        def pay(block: Any) -> None:
            game.pay(block, groups, prices[..., block.columns], values, counts)

        visit(points, self.side.near(neighbors), groups, pay)

    def pay(
        self, points: SidePoints, who: Who = "members", label: int | None = None, *,
        before: Floats | None = None, divisor: float = 1.0,
        neighbors: Neighbors = "auto", last: bool = True,
    ) -> Floats:  # fmt: skip
        """What the cells pay checked points, added to what was paid `before`.

        With `label`, members are paid as if they had the class with this code. See `walk.value` for
        `last`.
        """
        game, prices = self.side.payment(self.table, self._semivalue, who, label)
        near = self.side.near(neighbors)
        return value(points, near, game, prices, before=before, divisor=divisor, last=last)

    @property
    def _semivalue(self) -> Semivalue:
        return check_semivalue(self.semivalue, calibrated=self.side.kind == BALL)

    def _check_points(self, X: object, y: object) -> SidePoints:
        return self.side.check_points(X, self._known("y", y))

    def _known(self, name: str, y: Any) -> Any:
        """Labels, all of them classes of the list: nobody can add a class to it."""
        if isinstance(self.side, NumberSide):
            return y
        labels = check_labels(name, y)
        strange = np.flatnonzero(self.side.classes.known_codes(labels) < 0)
        if len(strange):
            label = labels[int(strange[0])]
            label = label.item() if isinstance(label, np.generic) else label
            raise unknown_labels(name, strange, label, self.classes)
        return labels

    def _values(self, points: SidePoints, who: Who, label: int | None = None) -> Floats:
        self._warn_of_scale(4)
        return self.pay(points, who, label)

    def _warn_of_scale(self, stacklevel: int) -> None:
        if not self.scaled:
            warnings.warn(UNSCALED, ScaleWarning, stacklevel=stacklevel)

    def document(self) -> dict[str, Any]:
        """The price list as a document for JSON, sealed by a digest."""
        about = {
            "format": FORMATS[self.side.kind],
            "semivalue": self.semivalue,
            **self.side.describe(),
            **_packed(self.side.arrays(), self.table, plain=self.side.kind == BALL),
        }
        marks: dict[str, Any] = {} if self.scaled else {"scaled": False}
        marks |= {"noise": True} if self.noise else {}
        marks |= {} if self.encoding is None else {"encoding": dict(self.encoding)}
        return sealed(about | marks)

    def save(self, path: str | Path) -> None:
        """Write one JSON file with which anyone can value points; an existing file is replaced."""
        write_text(path, json.dumps(self.document()))

    @classmethod
    def load(cls, path: str | Path) -> PriceList:
        """Load the price list that `save` wrote, equal to the last bit, or that of a release."""
        with reading(path, "price list of Thresher", otherwise=WRITTEN_BY) as found:
            document: Any = json.loads(found.read_text(encoding="utf-8"))
            if isinstance(document, dict) and "prices" in document and "record" in document:
                document = document["prices"]  # of a private release
            return cls.read(document)

    @classmethod
    def read(cls, document: Any) -> PriceList:
        """The price list from what `document()` returned."""
        from thresher.sides.stored import stored_kind, stored_side

        kind = stored_kind(document, FORMATS)
        arrays, table = _unpacked(document)
        semivalue = semivalue_name(check_semivalue(document["semivalue"], calibrated=kind == BALL))
        marks = {
            name: check_flag(name, document.get(name, usual))
            for name, usual in (("scaled", True), ("noise", False))
        }
        encoding = document.get("encoding")
        if encoding is not None and not isinstance(encoding, dict):
            raise InputError("its encoding is not a record")
        side = stored_side(kind, document, arrays)
        return cls(side, semivalue, side.read_prices(table), **marks, encoding=encoding)


def unknown_labels(
    name: str, rows: Sequence[int] | NDArray[Any], label: object, classes: Sequence[Hashable]
) -> InputError:
    """An error about rows whose labels a price list does not know; the first is `label`."""
    return InputError(
        f"{name} has labels that the price list does not know in {rows_text(rows)}, such as "
        f"{label!r}: it knows {first_names(classes)}; leave those rows out, or ask for a release "
        f"whose validation set{either(' or classes=', '')} has these labels"
    )


def _packed(arrays: dict[str, Array], table: Array, *, plain: bool) -> dict[str, Any]:
    """The arrays of a side and a table of prices as JSON; people can read `plain` numbers."""
    if plain:
        features = arrays.get("features")
        return {
            "labels": arrays["labels"].tolist(),
            "features": None if features is None else pack_array(features),
            "prices": table.tolist(),
        }
    packed = {name: pack_array(array, deflate=True) for name, array in arrays.items()}
    return {"arrays": packed, "prices": pack_array(table, deflate=True)}


def _unpacked(document: Any) -> tuple[dict[str, Any], Any]:
    """What `_packed` packed."""
    if "arrays" in document:
        arrays = {name: unpack_array(packed) for name, packed in document["arrays"].items()}
        return arrays, unpack_array(document["prices"])
    features = document["features"]
    more = {} if features is None else {"features": unpack_array(features)}
    return {"labels": document["labels"], **more}, document["prices"]


def _spread(y: object, X: object) -> object:
    """`y`, or, if it is one label, that label once for every row of X."""
    several = hasattr(y, "__len__") or hasattr(y, "__iter__")
    return y if several and not isinstance(y, str | bytes) else [y] * _count(X)


def _count(X: Any) -> int:
    """The number of rows of a table, or of blocks of distances in a list."""
    if isinstance(X, list | tuple) and X and getattr(X[0], "ndim", 0) == 2:
        return len(X[0])
    known = row_count(X)
    return 1 if known is None else known
