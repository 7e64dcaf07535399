"""tknn_shapley on Dask: parts are counted where they are, prices go to them, values stay there.

A partition gives a table of two integers for each validation point. Tables are added up in a tree,
eight at a time, and the driver gets one. The prices that follow are part of the graph of the second
pass, so everything that is lost with a worker can be computed again.

Validation sets are cut into blocks of whole groups of 64, because sums run over such groups
(`kernels.bits`). The sum of a point goes from block to block in order, so values are the same to
the last bit as on one machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError, message_of, require
from thresher.games.semivalues import Semivalue
from thresher.inputs.labels import check_labels, check_owners
from thresher.neighbors.ball import Neighbors
from thresher.neighbors.kernel import Kernel
from thresher.passes.dask_valuation import DaskValuation
from thresher.passes.partitions import (
    Partition,
    collected,
    in_tree,
    names_of,
    outcomes,
    partitions,
)
from thresher.passes.parts import Labels, Part, Place, PlainLabels
from thresher.passes.problem import Meaning, Priced, Problem, named
from thresher.passes.tally import Tally, part_print
from thresher.passes.target_span import span_on_dask, with_bounds
from thresher.price_list import PriceList
from thresher.sides.protocol import PublicSide, SidePoints

Add = Callable[[PriceList, Any, Any, bool], Any]


def value_on_dask(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
    classes: Any, owners: Any, mean: bool, progress: bool, neighbors: Neighbors = "auto",
    kernel: Kernel | None = None, targets: Mapping[str, Any] | None = None,
) -> DaskValuation:  # fmt: skip
    """`tknn_shapley` of Dask arrays and frames: counts now, computes values when asked for.

    Parameters
    ----------
    X, y
        A Dask array or frame, and labels: a Dask array or series with the same partitions, or any
        labels of this process.
    """
    require("dask", purpose="tknn_shapley on Dask collections", extra="dask")
    parts = partitions(X, y)
    y_val = collected(y_val)
    check = partial(
        Problem.check, collected(X_val), y_val, radius=radius, metric=metric, semivalue=semivalue,
        mean=mean, neighbors=neighbors, kernel=kernel,
    )  # fmt: skip
    if targets is None:
        problem = check(classes=classes)
    else:
        find = partial(span_on_dask, parts, progress=progress)
        problem = check(targets=with_bounds(targets, y_val, find))
    if problem.validation.rows is None:
        raise InputError("metric must be 'cosine' or 'euclidean' with Dask, which needs features")
    problem = dataclasses.replace(problem, side=problem.side.named(names_of(X)))
    return run_on_dask(problem, parts, owners, progress=progress)


def run_on_dask(
    problem: Problem, parts: Sequence[Partition], owners: Any, *, progress: bool
) -> DaskValuation:
    """Count the points of partitions now; their values are computed when asked for."""
    import dask.array as da

    run = DaskRun(problem, parts, progress=progress)
    priced = run.count()
    priced.warn()
    known = check_owners(owners, priced.rows)
    how = partial(add_values, divisor=priced.divisor, neighbors=problem.neighbors)
    tasks = run.value(priced, how)
    each = zip(tasks, run.lengths(priced), strict=True)
    values = [da.from_delayed(task, (rows,), np.float64) for task, rows in each if rows]
    like = priced.valuation()
    ends = like.utility_all, like.utility_none
    return DaskValuation(da.concatenate(values), like.method, like.params, *ends, known)


@dataclass(frozen=True, eq=False)
class DaskRun:
    """Both passes over partitions, wherever Dask runs them."""

    # problem, parts: what the points are valued by, and the points
    problem: Problem
    parts: Sequence[Partition]
    labels: Labels = dataclasses.field(default_factory=PlainLabels)  # what their labels mean
    progress: bool = False  # whether bars of partitions are shown

    def count(self) -> Priced:
        """The first pass."""
        return self.problem.price(self.labels, self._tally)

    def value(self, priced: Priced, add: Add) -> list[Any]:
        """The second pass: a task for each partition, which calls `add` for each block of prices.

        `add` is called with the prices of one block of validation points after another, the points,
        its result for the block before, and whether the block is the last. Partitions without rows
        get None.
        """
        import dask

        step = dask.delayed(_add_block, pure=True)
        blocks = [dask.delayed(some, pure=True, traverse=False) for some in cut(priced.prices)]
        meaning = dask.delayed(dict(priced.meaning), pure=True, traverse=False)
        found = []
        for part in self.parts:
            made, wanted = None, priced.tally.prints[part.number]
            for block in blocks:
                last = block is blocks[-1]
                made = step(part.number, part.X, part.y, meaning, block, made, wanted, add, last)
            found.append(made)
        return found

    def lengths(self, priced: Priced) -> list[int]:
        """How many rows each partition has."""
        return [priced.tally.rows[part.number] for part in self.parts]

    def _tally(self, _name: str, public: PublicSide, meaning: Meaning) -> Tally:
        """The sum of all partitions against all blocks, added up in one tree for each block."""
        import dask

        count, merge = dask.delayed(_count, pure=True), dask.delayed(_merge, pure=True)
        names = dask.delayed(dict(meaning), pure=True, traverse=False)
        how: dict[str, Any] = {
            "neighbors": self.problem.neighbors, "strangers": self.problem.classes is None
        }  # fmt: skip
        roots, steps = [], []
        for block in public.ranges():
            some = dask.delayed(public.some(block), pure=True, traverse=False)
            level = [count(part.number, part.X, part.y, names, some, **how) for part in self.parts]
            steps += level
            roots.append(in_tree(level, merge))
        found: list[Tally] = outcomes(roots, steps, title="count", progress=self.progress)
        counts = np.concatenate([each.counts for each in found], axis=1)
        twins = np.concatenate([each.twins for each in found])[: len(public)]
        return dataclasses.replace(found[0], counts=counts, twins=twins)


def add_values(
    prices: PriceList, points: SidePoints, before: Floats | None, last: bool, *,  # noqa: FBT001
    divisor: float, neighbors: Neighbors,
) -> Floats:  # fmt: skip
    """What points are worth to one more block; after the last, divided by `divisor`."""
    return prices.pay(points, before=before, divisor=divisor, neighbors=neighbors, last=last)


def cut(prices: PriceList) -> list[PriceList]:
    """The prices that go to workers one by one."""
    return [
        dataclasses.replace(prices, side=prices.side.some(block), table=prices.table[..., block])
        for block in prices.side.ranges()
    ]


def _count(
    number: int, X: Any, y: Any, meaning: Meaning, side: PublicSide, *, neighbors: Neighbors,
    strangers: bool,
) -> Tally:  # fmt: skip
    """The tally of one partition."""
    if not len(X):
        nothing = Tally.of_nothing(side)
        return dataclasses.replace(nothing, rows={number: 0}, prints={number: 0})
    part, points = read_partition(number, X, y, meaning, side, strangers=strangers)
    return Tally.of_part(part, points, side, neighbors)


def _merge(tallies: list[Tally]) -> Tally:
    """One tally of all these, which are not changed."""
    first = tallies[0]
    nothing = Tally(np.zeros_like(first.counts), np.zeros_like(first.twins))
    return reduce(Tally.merge, tallies, nothing)


def _add_block(
    number: int, X: Any, y: Any, meaning: Meaning, prices: PriceList, before: Any, wanted: int,
    add: Add, last: bool,  # noqa: FBT001
) -> Any:  # fmt: skip
    """The result of `add` for a partition, if its points are those that were counted."""
    if not len(X):
        return None
    part, points = read_partition(number, X, y, meaning, prices.side, strangers=False)
    if before is None and part_print(part, points, prices.side) != wanted:
        raise InputError(
            f"partition {number} changed after it was counted: leave its source alone, and value "
            "the points again"
        )
    return add(prices, points, before, last)


def read_partition(
    number: int, X: Any, y: Any, meaning: Meaning, side: PublicSide, *, strangers: bool
) -> tuple[Part, SidePoints]:
    """A partition and its checked points."""
    try:
        labels = check_labels("y", y)
        part = Part(0, X, labels, Place(len(labels), number, len(labels)))
        return part, named(part, meaning).points(side, strangers=strangers)
    except InputError as refused:
        raise InputError(f"partition {number}: {message_of(refused)}") from None
