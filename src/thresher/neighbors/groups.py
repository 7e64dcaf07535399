"""Points sorted so that those of one class are together, and what a block of cells can do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats, Integers, Words
from thresher.errors import InputError
from thresher.inputs.labels import Codes
from thresher.kernels.codes import class_positions, gather
from thresher.threads import cut, run

GATHER = 1 << 17  # numbers put back in input order at a time

Segments = list[tuple[int, int, int]]


class Block(Protocol):
    """Some consecutive cells, and which points are in them."""

    @property
    def columns(self) -> slice:
        """The cells."""

    def count(self, segments: Segments) -> Integers:
        """How many points of each segment are in each cell."""

    def add(self, segments: Segments, weights: Floats, out: Floats) -> None:
        """Add to each point, for every cell that it is in, the weight of its segment there."""


@dataclass(frozen=True)
class Groups:
    """Points sorted by class: point i goes to `positions[i]`, class c begins at `starts[c]`."""

    positions: Words
    starts: Integers

    @classmethod
    def of(cls, codes: Codes, classes: int) -> Groups:
        """The groups of points with these class codes."""
        if len(codes) >= 1 << 32:
            raise InputError(
                f"X has {len(codes)} rows, more than 2^32: value them in parts, by memory="
            )
        positions = np.empty(len(codes), np.uint32)
        starts = np.empty(classes + 1, np.int64)
        class_positions(codes, starts, positions)
        return cls(positions, starts)

    @cached_property
    def rows(self) -> Words:
        """The point at each position."""
        rows = np.empty(len(self.positions), np.uint32)
        rows[self.positions] = np.arange(len(rows), dtype=np.uint32)
        return rows

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """The class of the point at each position."""
        classes = np.arange(len(self.starts) - 1, dtype=np.int32)
        return np.repeat(classes, np.diff(self.starts))

    def segments(self, wanted: Integers) -> Segments:
        """Row ranges (lo, hi, class) for the `wanted` classes; what lies between has class -1.

        `wanted` is sorted. Classes that no validation point of a block carries need not be told
        apart.
        """
        found: Segments = []
        end = 0
        for code in wanted.tolist():
            lo, hi = int(self.starts[code]), int(self.starts[code + 1])
            found += [(end, lo, -1), (lo, hi, code)]
            end = hi
        found.append((end, len(self.positions), -1))
        return [segment for segment in found if segment[0] < segment[1]]

    def in_input_order(self, sums: Floats, divisor: float = 1.0) -> Floats:
        """Numbers sorted by class as numbers in input order, divided by `divisor`."""
        out = np.empty(len(sums))

        def job(lo: int, hi: int) -> None:
            gather(sums, self.positions[lo:hi], divisor, out[lo:hi])

        run(job, cut(0, len(sums), GATHER), parallel=len(sums) > GATHER)
        return out


def by_entry(sums: Integers, groups: int) -> Integers:
    """Sums[group and cell, entry] as a table with an axis for each of entry, group and cell."""
    return np.ascontiguousarray(np.moveaxis(sums.reshape(groups, -1, sums.shape[1]), -1, 0))


def clear_bits(words: Words, rows: NDArray[np.integer[Any]], bits: Words) -> None:
    """Clear one bit of each of these rows, no two of which are the same."""
    words[rows, bits >> np.uint32(5)] &= ~(np.uint32(1) << (bits & np.uint32(31)))
