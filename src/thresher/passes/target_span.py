"""The range of targets that come in parts, from which the grid of all targets follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.passes.memory import Account, in_use
from thresher.passes.partitions import Partition, outcomes
from thresher.passes.parts import Place, Source, read_ahead
from thresher.regression import check_differ, check_empty, check_range, check_targets

DIGITS, HALF = 53, 27  # of a float64, and of one of two parts that add up in 64 bits
SMALLEST = 1074 + DIGITS  # no float is smaller than 2^-1074


@dataclass
class TargetSpan:
    """The smallest and the largest of the targets seen so far, how many there are, and their sum.

    The sum is kept as a whole multiple of the smallest float, so that nothing is rounded.
    """

    rows: int = 0
    low: float = np.inf
    high: float = -np.inf
    total: int = 0

    def see(self, targets: Any) -> Self:
        """See more targets; returns itself."""
        found = check_targets("y", targets, first=self.rows)
        ends = float(found.min()), float(found.max())
        return self.join(TargetSpan(len(found), *ends, _exact_sum(found)))

    def join(self, other: TargetSpan) -> Self:
        """See what `other` saw; returns itself."""
        self.rows, self.total = self.rows + other.rows, self.total + other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        return self

    def mean(self) -> float:
        """The mean, which is rounded only once: neither order nor parts matter.

        Examples
        --------
        >>> TargetSpan().see([0.5, 1.0]).see([1e-300, 3.0]).mean()
        1.125
        """
        return float(Fraction(self.total, max(self.rows, 1) << SMALLEST))

    def bounds(self, judges: Any, empty: float) -> tuple[float, float]:
        """The range, including the targets of judges, if there are any, and `empty`."""
        if not self.rows:
            raise InputError("X is empty: at least one row is needed")
        low, high = self.low, self.high
        if len(judges):
            low, high = min(low, float(judges.min())), max(high, float(judges.max()))
        check_differ(low, high, both=len(judges) > 0)
        low, high = min(low, empty), max(high, empty)
        check_range(low, high)
        return low, high


def _exact_sum(targets: NDArray[np.float64]) -> int:
    """The sum, as a multiple of 2^-SMALLEST."""
    parts, exponents = np.frexp(targets)
    whole = np.ldexp(parts, DIGITS).astype(np.int64)
    total = 0
    for exponent in np.unique(exponents).tolist():
        some = whole[exponents == exponent]
        high, low = int((some >> HALF).sum()), int((some & ((1 << HALF) - 1)).sum())
        total += ((high << HALF) + low) << (SMALLEST + exponent - DIGITS)
    return total


def with_bounds(
    targets: Mapping[str, Any], y_val: Any, find: Callable[[], TargetSpan]
) -> dict[str, Any]:
    """`empty` and `bounds` as `tknn_shapley` takes them; `find` is called if bounds are None."""
    if targets["bounds"] is not None:
        return dict(targets)
    judges = check_targets("y_val", y_val)
    empty = check_empty(targets["empty"], judges)
    return {"empty": empty, "bounds": find().bounds(judges, empty)}


def span_of_parts(source: Source, memory: int | None, *, threaded: bool = True) -> TargetSpan:
    """The range of all targets of a source, by a pass of its own."""
    features, others = source.row_bytes
    rows = Account(features, others, 0, 0, source.reading).rows(memory, in_use())
    span = TargetSpan()
    with read_ahead(source.read(Place(), rows), threaded=threaded) as parts:
        for part in parts:
            span.see(part.y)
    return span


def span_on_dask(parts: list[Partition], *, progress: bool = False) -> TargetSpan:
    """The range of all targets of partitions."""
    import dask

    task = dask.delayed(_span, pure=True)
    tasks = [task(part.y) for part in parts]
    return reduce(TargetSpan.join, outcomes(tasks, tasks, title="range", progress=progress))


def _span(targets: Any) -> TargetSpan:
    return TargetSpan().see(targets) if len(targets) else TargetSpan()
