"""PriceList: what a point is worth, to anyone who holds the list and the point."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_features, check_metric, check_radius
from thresher.errors import InputError
from thresher.files import (
    check_sealed,
    pack_array,
    portable,
    reading,
    sealed,
    unpack_array,
    write_whole,
)
from thresher.inputs import Points, Validation, check_points
from thresher.labels import Classes
from thresher.metrics import measure
from thresher.near import Block, Groups
from thresher.neighbors import Exact
from thresher.prices import (
    Semivalue,
    check_semivalue,
    prices_between,
    rest_prices,
    semivalue_name,
)
from thresher.tree import TreeBlock

FORMAT = "thresher.prices/1"
CARRIES, LACKS, NEWCOMER = 0, 1, 2  # who is priced: a member with v's label, without it, a newcomer
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

    def __post_init__(self) -> None:
        table = np.array(self.table, np.float64)
        if table.shape != (3, 2, len(self.validation)) or not np.isfinite(table).all():
            raise InputError(f"table must hold 3 x 2 x {len(self.validation)} prices")
        table.flags.writeable = False
        object.__setattr__(self, "table", table)

    @classmethod
    def of_counts(
        cls,
        validation: Validation,
        radius: float,
        counts: tuple[NDArray[Any], NDArray[Any]],
        semivalue: Semivalue,
    ) -> PriceList:
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
        return self._sum(points, [code], member=True)[:, 0]

    def newcomer_values(self, X: object, y: object) -> NDArray[np.float64]:
        """What each point would be worth if it alone were added; `y` may be one label for all."""
        points = check_points(X, _spread(y, X), self.validation)
        return self._sum(points, [None], member=False)[:, 0]

    def label_values(self, X: object, y: object = None) -> NDArray[np.float64]:
        """The value of each point under each class: one row a point, one column for each class.

        With `y` the points are members that were counted under these labels, without it newcomers.
        """
        codes = list(range(len(self.validation.classes)))
        if y is not None:
            return self._sum(check_points(X, _spread(y, X), self.validation), codes, member=True)
        placeholder = self.validation.classes.labels[0]
        points = check_points(X, _spread(placeholder, X), self.validation)
        return self._sum(points, codes, member=False)

    def _sum(
        self, points: Points, labels: Sequence[int | None], *, member: bool
    ) -> NDArray[np.float64]:
        """Values under each of `labels`, where None is the point's own."""
        return _sums([self], points, labels, member=member)[0]

    def add_block(
        self,
        block: Block | TreeBlock,
        groups: Groups,
        out: NDArray[np.float64],
        label: int | None = None,
        *,
        member: bool = True,
    ) -> None:
        """Add what the validation points of one block pay to each point in `out`, by class."""
        segments = groups.segments(np.unique(self.validation.codes[block.columns]))
        weights = [
            self._weights(block.columns, code, label, member=member) for _, _, code in segments
        ]
        block.add(segments, np.array(weights), out)

    def _weights(
        self, columns: slice, code: int, label: int | None, *, member: bool
    ) -> NDArray[np.float64]:
        """Prices for a point of class `code` priced under `label`, for each validation point."""
        codes, table = self.validation.codes[columns], self.table[:, :, columns]
        under = codes == (code if label is None else label)
        if not member:
            return np.where(under, table[NEWCOMER, GAIN], table[NEWCOMER, LOSS])
        carries = np.where(under, table[CARRIES, GAIN], table[CARRIES, LOSS])
        lacks = np.where(under, table[LACKS, GAIN], table[LACKS, LOSS])
        return np.where(codes == code, carries, lacks)

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
        return sealed(about)

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
            return cls(validation, check_radius(document["radius"]), semivalue, document["prices"])


def label_sums(
    lists: Sequence[PriceList], points: Points, start: Sequence[NDArray[np.float64]] | None,
    neighbors: Exact = "auto",
) -> list[NDArray[np.float64]]:  # fmt: skip
    """`label_values` of counted points by several lists of one public side, in one pass.

    Sums begin at `start`, if validation points before these have paid already.
    """
    codes = list(range(len(lists[0].validation.classes)))
    return _sums(lists, points, codes, start, neighbors, member=True)


def _sums(
    lists: Sequence[PriceList], points: Points, labels: Sequence[int | None],
    start: Sequence[NDArray[np.float64]] | None = None, neighbors: Exact = "auto", *, member: bool,
) -> list[NDArray[np.float64]]:  # fmt: skip
    """For each list, values under each of `labels`, where None is the point's own."""
    public, radius = lists[0].validation, lists[0].radius
    groups = Groups.of(points.codes, len(public.classes))
    sums = np.zeros((len(lists), len(labels), len(points)))
    for outs, begun in zip(sums, start or (), strict=False):
        outs[:, groups.positions] = begun.T
    for block in public.search(points.rows, radius, neighbors).blocks(groups):
        for prices, outs in zip(lists, sums, strict=True):
            for label, out in zip(labels, outs, strict=True):
                prices.add_block(block, groups, out, label, member=member)
    return [np.column_stack([groups.in_input_order(out) for out in outs]) for outs in sums]


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
    if not isinstance(y, str | bytes | bool | int | float | np.generic):
        return y
    return [y] * (len(X) if hasattr(X, "__len__") else 1)
