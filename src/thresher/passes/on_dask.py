"""tknn_shapley on Dask: parts are counted where they lie, prices go to them, values stay there.

A partition gives a table of two integers for each validation point; tables are added up in a tree,
eight at a time, and the driver gets one. The prices that follow are part of the graph of the second
pass, so a worker that is lost takes nothing with it that cannot be computed again.

Validation sets are cut in blocks of whole groups of 64, in which sums run (`kernels.bits`): the sum
of a point goes from block to block in order, and values are the same bits as on one machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_columns, column_names
from thresher.errors import InputError, require
from thresher.games.semivalues import Semivalue
from thresher.inputs import (
    Points,
    Validation,
    check_validation,
    tell_of_twins,
    warn_of_labels,
)
from thresher.labels import RawLabels, check_labels, check_owners, class_list
from thresher.metrics import Rows
from thresher.neighbors.ball import Neighbors
from thresher.passes.dask_valuation import DaskValuation
from thresher.passes.partitions import Partition, collected, partitions
from thresher.passes.parts import Part, Place
from thresher.passes.priced import Priced, pay
from thresher.passes.result import warn_of_reach
from thresher.passes.tally import Tally, part_print
from thresher.passes.tasks import outcomes
from thresher.price_list import PriceList
from thresher.valuation import Valuation

LANES = 64  # validation points whose prices are summed at a time
BLOCK_BYTES = 4 << 20  # of validation rows that go to workers at a time
FAN = 8  # tables that are added up at a time

Floats = NDArray[np.float64]


def value_on_dask(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
    classes: Any, owners: Any, mean: bool, progress: bool, neighbors: Neighbors = "auto",
) -> DaskValuation:  # fmt: skip
    """`tknn_shapley` of Dask arrays and frames: counted at once, valued when asked for.

    Parameters
    ----------
    X, y
        A Dask array or frame, and labels: a Dask array or series with the same partitions, or any
        labels of this process.
    """
    require("dask", purpose="tknn_shapley on Dask collections", extra="dask")
    priced = price_partitions(
        partitions(X, y), collected(X_val), collected(y_val), radius=radius, metric=metric,
        semivalue=semivalue, classes=classes, mean=mean, neighbors=neighbors, progress=progress,
        names=None if hasattr(X, "chunks") else column_names(X._meta),
    )  # fmt: skip
    known = check_owners(owners, sum(priced.lengths))
    tasks = _value_tasks(priced, len(priced.priced.prices.validation) if mean else 1)
    return DaskValuation.of(tasks, priced.lengths, priced.like, known)


@dataclass(frozen=True, eq=False)
class PricedPartitions:
    """What the first pass leaves to the second.

    Parameters
    ----------
    parts
        The partitions.
    priced
        The prices, and what was met.
    blocks
        The ranges of validation points that go to workers one by one.
    neighbors
        How each partition finds near pairs.
    like
        The valuation, but for the values.
    """

    parts: Sequence[Partition]
    priced: Priced
    blocks: list[slice]
    neighbors: Neighbors
    like: Valuation

    @property
    def lengths(self) -> list[int]:
        """How many rows each partition has."""
        return [self.priced.tally.rows[part.number] for part in self.parts]

    def print_of(self, part: Partition) -> int:
        """A number that follows from all that is in a partition."""
        return self.priced.tally.prints[part.number]

    def prices_by_block(self) -> Iterator[PriceList]:
        """The prices that go to workers one by one."""
        prices = self.priced.prices
        for block in self.blocks:
            validation, table = _cut(prices.validation, block), prices.table[:, :, block]
            yield dataclasses.replace(prices, validation=validation, table=table)


def price_partitions(
    parts: Sequence[Partition], X_val: Any, y_val: Any, *, radius: float, metric: str,
    semivalue: Semivalue, classes: Any, mean: bool, neighbors: Neighbors = "auto",
    progress: bool = False, names: tuple[str, ...] | None = None,
) -> PricedPartitions:  # fmt: skip
    """The first pass: count all partitions, which have these `names`, and set the prices."""
    public = check_validation(X_val, y_val, metric=metric, classes=classes)
    if public.rows is None:
        raise InputError("metric must be 'cosine' or 'euclidean' with Dask, which needs features")
    check_columns("X", names, "X_val", public.columns)
    public = dataclasses.replace(public, columns=public.columns or names)
    blocks = _blocks(public)
    cut = [_cut(public, block) for block in blocks]
    how = {"radius": radius, "neighbors": neighbors, "strangers": classes is None}
    tally = _count(parts, cut, how, progress=progress)
    if not tally.points:
        raise InputError("X is empty: at least one row is needed")
    labels = check_labels("y_val", y_val)
    final = _with_classes(public, classes, tally, labels)
    _warn(tally, final, labels, radius, given=classes is not None)
    priced = Priced.of(tally, final, radius, semivalue)
    like = priced.valuation(np.zeros(0), semivalue, mean=mean)
    return PricedPartitions(parts, priced, blocks, neighbors, like)


def count_partition(
    number: int, X: Any, y: Any, validation: Validation, *, radius: float,
    neighbors: Neighbors = "auto", strangers: bool,
) -> Tally:  # fmt: skip
    """The tally of one partition."""
    if not len(X):
        return dataclasses.replace(
            Tally.of_nothing(validation), rows={number: 0}, prints={number: 0}
        )
    part, points = _read(number, X, y, validation, strangers=strangers)
    return Tally.of_part(part, points, validation, radius, neighbors)


def same_points(number: int, X: Any, y: Any, prices: PriceList, wanted: int | None) -> Points:
    """The points of a partition, if they are those that were counted, where that is to be seen."""
    part, points = _read(number, X, y, prices.validation, strangers=False)
    if wanted is not None and part_print(part, points) != wanted:
        raise InputError(
            f"partition {number} changed after it was counted: leave its source alone, and value "
            "the points again"
        )
    return points


def merge_tallies(tallies: list[Tally]) -> Tally:
    """One tally of them all; they stay as they are."""
    first = tallies[0]
    nothing = Tally(np.zeros_like(first.counts), np.zeros_like(first.twins))
    return reduce(Tally.merge, tallies, nothing)


def add_values(
    number: int, X: Any, y: Any, prices: PriceList, sums: Floats | None, wanted: int,
    divisor: float, neighbors: Neighbors = "auto",
) -> Floats:  # fmt: skip
    """What the points of a partition are worth to one block more, divided by `divisor`."""
    points = same_points(number, X, y, prices, wanted if sums is None else None)
    return pay(prices, points, before=sums, divisor=divisor, neighbors=neighbors)


def _read(
    number: int, X: Any, y: Any, validation: Validation, *, strangers: bool
) -> tuple[Part, Points]:
    """A partition, and its points, checked."""
    try:
        labels = check_labels("y", y)
        part = Part(0, X, labels, Place(len(labels), number, len(labels)))
        return part, part.points(validation, strangers=strangers)
    except InputError as refused:
        raise InputError(f"partition {number}: {refused}") from None


def _blocks(validation: Validation) -> list[slice]:
    """Ranges of validation points, of whole groups but for the last."""
    assert validation.rows is not None  # noqa: S101 - by those who call
    size = max(1, BLOCK_BYTES // (8 * validation.rows.width * LANES)) * LANES
    count = len(validation)
    return [slice(start, min(count, start + size)) for start in range(0, count, size)]


def _cut(validation: Validation, block: slice) -> Validation:
    rows = validation.rows
    assert rows is not None  # noqa: S101 - by those who call
    some = Rows(np.ascontiguousarray(rows.array[block]), rows.squares[block].copy())
    return dataclasses.replace(validation, rows=some, codes=validation.codes[block].copy())


def _count(
    parts: Sequence[Partition], blocks: Sequence[Validation], how: Mapping[str, Any], *,
    progress: bool,
) -> Tally:  # fmt: skip
    """The first pass: all partitions against all blocks, then one tree for each block."""
    import dask

    count, merge = dask.delayed(count_partition, pure=True), dask.delayed(merge_tallies, pure=True)
    roots, steps = [], []
    for block in blocks:
        validation = dask.delayed(block, pure=True, traverse=False)
        level = [count(part.number, part.X, part.y, validation, **how) for part in parts]
        steps += level
        while len(level) > 1:
            level = [merge(level[i : i + FAN]) for i in range(0, len(level), FAN)]
        roots += level
    found: list[Tally] = outcomes(roots, steps, title="count", progress=progress)
    counts = np.concatenate([each.counts for each in found], axis=1)
    twins = np.concatenate([each.twins for each in found])
    return dataclasses.replace(found[0], counts=counts, twins=twins)


def _with_classes(public: Validation, classes: Any, tally: Tally, labels: RawLabels) -> Validation:
    """The validation set with the classes of all points."""
    known = class_list(classes, list(tally.first_rows()), labels)
    return dataclasses.replace(public, classes=known, codes=known.encode("y_val", labels))


def _value_tasks(priced: PricedPartitions, divisor: float) -> list[Any]:
    """For each partition the task of its values."""
    import dask

    add = dask.delayed(add_values, pure=True)
    listed = [dask.delayed(some, pure=True, traverse=False) for some in priced.prices_by_block()]
    found = []
    for part in priced.parts:
        sums, wanted = None, priced.print_of(part)
        for some in listed:
            last = divisor if some is listed[-1] else 1.0
            sums = add(part.number, part.X, part.y, some, sums, wanted, last, priced.neighbors)
        found.append(sums)
    return found


def _warn(
    tally: Tally, final: Validation, labels: RawLabels, radius: float, *, given: bool
) -> None:
    """The warnings of `tknn_shapley`, once all points were seen."""
    theirs = list(labels)
    if not given:
        warn_of_labels(list(tally.first_rows()), theirs, stacklevel=6)
    tell_of_twins(int(tally.twins.sum()), final, stacklevel=6)
    if not tally.counts.any():
        warn_of_reach(radius, stacklevel=6)
