"""tknn_shapley on Dask: parts are counted where they lie, prices go to them, values stay there.

A partition gives a table of two integers for each validation point; tables are added up in a tree,
eight at a time, and the driver gets one. The prices that follow are part of the graph of the second
pass, so a worker that is lost takes nothing with it that cannot be computed again.

Validation sets are cut in blocks of whole groups of 64, in which sums run (`kernels.bits`): the sum
of a point goes from block to block in order, and values are the same bits as on one machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_columns, column_names
from thresher.counts import count_points, point_prints
from thresher.engines.awaited import outcomes
from thresher.engines.lazy import DaskValuation
from thresher.engines.partitions import Partition, collected, partitions
from thresher.errors import InputError, require
from thresher.inputs import (
    Points,
    Validation,
    check_points,
    check_validation,
    find_twins,
    tell_of_twins,
    warn_of_labels,
)
from thresher.labels import RawLabels, check_labels, check_owners, class_list
from thresher.metrics import Rows
from thresher.near import Groups
from thresher.neighbors import Exact
from thresher.price_list import PriceList
from thresher.prices import Semivalue, utility
from thresher.threshold import valuation_of, warn_of_reach
from thresher.valuation import Valuation

LANES = 64  # validation points whose prices are summed at a time
BLOCK_BYTES = 4 << 20  # of validation rows that go to workers at a time
FAN = 8  # tables that are added up at a time

Floats = NDArray[np.float64]


def value_on_dask(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
    classes: Any, owners: Any, mean: bool, progress: bool, neighbors: Exact = "auto",
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
    tasks = _value_tasks(priced, len(priced.prices.validation) if mean else 1)
    return DaskValuation.of(tasks, priced.lengths, priced.like, known)


@dataclass(frozen=True, eq=False)
class Priced:
    """What the first pass leaves to the second.

    Parameters
    ----------
    parts, lengths, prints
        The partitions, how many rows each has, and what `print_of` says of each.
    prices, blocks
        The prices, and the ranges of validation points that go to workers one by one.
    neighbors
        How each partition finds near pairs.
    seen
        The labels of the points, and where each was seen first.
    like
        The valuation, but for the values.
    """

    parts: Sequence[Partition]
    lengths: list[int]
    prints: Mapping[int, int]
    prices: PriceList
    blocks: list[slice]
    neighbors: Exact
    seen: Mapping[Hashable, tuple[int, int]]
    like: Valuation

    def prices_by_block(self) -> Iterator[PriceList]:
        """The prices that go to workers one by one."""
        for block in self.blocks:
            validation, table = _cut(self.prices.validation, block), self.prices.table[:, :, block]
            yield dataclasses.replace(self.prices, validation=validation, table=table)


def price_partitions(
    parts: Sequence[Partition], X_val: Any, y_val: Any, *, radius: float, metric: str,
    semivalue: Semivalue, classes: Any, mean: bool, neighbors: Exact = "auto",
    progress: bool = False, names: tuple[str, ...] | None = None,
) -> Priced:  # fmt: skip
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
    if not sum(tally.lengths.values()):
        raise InputError("X is empty: at least one row is needed")
    labels = check_labels("y_val", y_val)
    final = _with_classes(public, classes, tally, labels)
    _warn(tally, final, labels, radius, given=classes is not None)
    same, other = tally.counts
    prices = PriceList.of_counts(final, radius, (same, other), semivalue)
    total = utility(same, other, len(final.classes))
    like = valuation_of(np.zeros(0), final, radius, semivalue, total, mean=mean)
    lengths = [tally.lengths[part.number] for part in parts]
    return Priced(parts, lengths, tally.prints, prices, blocks, neighbors, tally.seen, like)


@dataclass
class Tally:
    """What some partitions have in common with some validation points.

    Parameters
    ----------
    counts, twins
        For each validation point the near points with its label and with others, and whether it
        occurs among the points.
    lengths, prints
        Of each partition: its rows, and a number that follows from all that is in it.
    seen
        Labels, and the first partition and row that has each.
    """

    counts: NDArray[np.int64]
    twins: NDArray[np.bool_]
    lengths: dict[int, int] = field(default_factory=dict)
    prints: dict[int, int] = field(default_factory=dict)
    seen: dict[Hashable, tuple[int, int]] = field(default_factory=dict)


def count_part(
    number: int, X: Any, y: Any, validation: Validation, *, radius: float,
    neighbors: Exact = "auto", strangers: bool,
) -> Tally:  # fmt: skip
    """The tally of one partition."""
    size = len(validation)
    if not len(X):
        none = np.zeros((2, size), np.int64)
        return Tally(none, np.zeros(size, np.bool_), {number: 0}, {number: 0})
    points = points_of(number, X, y, validation, strangers=strangers)
    assert isinstance(points.rows, Rows) and validation.rows is not None  # noqa: S101, PT018
    labels = check_labels("y", y)
    entries = labels if isinstance(labels, list) else labels.tolist()
    seen: dict[Hashable, tuple[int, int]] = {}
    for row, label in enumerate(entries):
        if label not in seen:
            seen[label] = (number, row)
    twins = find_twins(points.rows, validation.rows)
    counts = count_points(points, validation, radius, neighbors)
    prints = {number: print_of(points, entries)}
    return Tally(counts, twins, {number: len(points)}, prints, seen)


def print_of(points: Points, labels: Any) -> int:
    """A number that tells whether rows, their order and their labels are the same."""
    entries = labels if isinstance(labels, list) else labels.tolist()
    salts = {label: crc32(repr(label).encode()) >> 1 for label in dict.fromkeys(entries)}
    codes = np.array([salts[label] for label in entries], np.int32)
    return int(point_prints(Points(points.rows, codes), 0).sum(dtype=np.uint64))


def same_points(number: int, X: Any, y: Any, prices: PriceList, wanted: int | None) -> Points:
    """The points of a partition, if they are those that were counted, where that is to be seen."""
    points = points_of(number, X, y, prices.validation, strangers=False)
    if wanted is not None and print_of(points, check_labels("y", y)) != wanted:
        raise InputError(
            f"partition {number} changed after it was counted: leave its source alone, and value "
            "the points again"
        )
    return points


def merge_tallies(tallies: list[Tally]) -> Tally:
    """One tally of them all."""
    first = tallies[0]
    merged = Tally(
        first.counts.copy(), first.twins.copy(), dict(first.lengths), dict(first.prints),
        dict(first.seen),
    )  # fmt: skip
    for tally in tallies[1:]:
        merged.counts += tally.counts
        merged.twins |= tally.twins
        merged.lengths |= tally.lengths
        merged.prints |= tally.prints
        for label, place in tally.seen.items():
            merged.seen[label] = min(place, merged.seen.get(label, place))
    return merged


def add_values(
    number: int, X: Any, y: Any, prices: PriceList, sums: Floats | None, wanted: int,
    neighbors: Exact = "auto",
) -> Floats:  # fmt: skip
    """What the points of a partition, sorted by class, are worth to one block more."""
    points = same_points(number, X, y, prices, wanted if sums is None else None)
    validation = prices.validation
    groups = Groups.of(points.codes, len(validation.classes))
    total = np.zeros(len(points)) if sums is None else sums.copy()
    for block in validation.search(points.rows, prices.radius, neighbors).blocks(groups):
        prices.add_block(block, groups, total)
    return total


def in_input_order(y: Any, prices: PriceList, sums: Floats, divisor: float) -> Floats:
    """Sums sorted by class as values in input order."""
    classes = prices.validation.classes
    groups = Groups.of(classes.encode("y", check_labels("y", y)), len(classes))
    return groups.in_input_order(sums, divisor)


def points_of(number: int, X: Any, y: Any, validation: Validation, *, strangers: bool) -> Points:
    """The points of a partition, checked."""
    try:
        return check_points(X, y, validation, strangers=strangers)
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

    count, merge = dask.delayed(count_part, pure=True), dask.delayed(merge_tallies, pure=True)
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
    met = sorted(tally.seen, key=lambda label: tally.seen[label])
    known = class_list(classes, met, labels)
    return dataclasses.replace(public, classes=known, codes=known.encode("y_val", labels))


def _value_tasks(priced: Priced, divisor: float) -> list[Any]:
    """For each partition the task of its values."""
    import dask

    add, order = dask.delayed(add_values, pure=True), dask.delayed(in_input_order, pure=True)
    listed = [dask.delayed(some, pure=True, traverse=False) for some in priced.prices_by_block()]
    found = []
    for part in priced.parts:
        sums = None
        for some in listed:
            wanted = priced.prints[part.number]
            sums = add(part.number, part.X, part.y, some, sums, wanted, priced.neighbors)
        found.append(order(part.y, listed[0], sums, divisor))
    return found


def _warn(
    tally: Tally, final: Validation, labels: RawLabels, radius: float, *, given: bool
) -> None:
    """The warnings of `tknn_shapley`, once all points were seen."""
    theirs = list(labels)
    if not given and not set(tally.seen) & set(theirs):
        warn_of_labels(next(iter(tally.seen)), theirs[0], stacklevel=6)
    tell_of_twins(int(tally.twins.sum()), final, stacklevel=6)
    if not tally.counts.any():
        warn_of_reach(radius, stacklevel=6)
