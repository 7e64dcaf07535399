"""What points are worth under every label, and how many near validation points carry it.

The work grows with the number of near pairs and, only slightly, with points times labels, because
each point has a sum for each label. Values are the same to the last bit as those of one label at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Bytes, Floats, Integers, LongWords
from thresher.inputs.labels import Codes
from thresher.kernels.bits import byte_tables, rows_of_visits
from thresher.kernels.relabel import add_label_values, count_labels, label_slots, label_weights
from thresher.neighbors.blocks import BitBlock
from thresher.neighbors.groups import Groups
from thresher.neighbors.tree import JOB_LEAVES
from thresher.neighbors.visits import TreeBlock
from thresher.threads import cut, run

STRIP = 512  # validation points whose tables are held at once: at most 10 MB
ROWS = 8192  # points of one job

_Bits = tuple[LongWords, int]  # words, and the one in which they begin


@dataclass(frozen=True)
class _Labels:
    """The labels of the validation points of a strip, in the form for the kernels."""

    codes: Integers
    labels: Integers
    masks: LongWords
    sizes: Integers
    slots: Bytes

    @classmethod
    def of(cls, codes: Codes, classes: int) -> _Labels:
        lanes = -(-len(codes) // 64) * 64
        padded = np.full(lanes, -1, np.int64)
        padded[: len(codes)] = codes
        shape = lanes // 64, 64
        labels, masks = np.empty(shape, np.int64), np.empty(shape, np.uint64)
        sizes, slots = np.empty(lanes // 8, np.int64), np.zeros((classes, lanes // 8), np.uint8)
        label_slots(padded, labels, masks, sizes, slots)
        return cls(padded, labels, masks, sizes, slots)

    def tables(self, prices: Floats) -> Floats:
        padded = np.zeros((2, 2, len(self.codes)))
        padded[:, :, : prices.shape[2]] = prices
        weights = np.empty((int((self.sizes**2).sum()), 8))
        label_weights(self.codes, padded, self.sizes, self.slots, weights)
        tables = np.empty((len(weights), 256))
        byte_tables(weights.ravel(), tables)
        return tables


@dataclass(frozen=True)
class LabelGame:
    """The game of classes for points under all labels: one column of sums for each label.

    prices[own, under, v] is what validation point v pays for a point. `own` is 0 if the point
    carries the label of v, and otherwise 1. `under` is 0 if it is priced under that label, and
    otherwise 1.
    """

    judges: Codes
    classes: int

    def groups(self, codes: Codes) -> Groups:
        """Points sorted by class."""
        return Groups.of(codes, self.classes)

    def pay(
        self, block: BitBlock | TreeBlock, groups: Groups, prices: Floats,
        values: Floats, counts: NDArray[np.int32] | None = None,
    ) -> None:  # fmt: skip
        """Add to values[i, c] what point i is worth under label c, and to counts[i, c] who is near.

        Points are in input order.
        """
        points, own, rows = len(groups.positions), groups.codes, groups.rows
        judges = self.judges[block.columns]
        for columns, bits, paid in _strips(block, points, prices):
            labels = _Labels.of(judges[columns], self.classes)
            tables = labels.tables(paid)

            def job(
                lo: int, hi: int, bits: _Bits = bits, labels: _Labels = labels,
                tables: Floats = tables,
            ) -> None:  # fmt: skip
                add_label_values(
                    *bits, lo, hi, own, rows, labels.labels, labels.sizes, labels.slots, tables,
                    values,
                )  # fmt: skip
                if counts is not None:
                    count_labels(*bits, lo, hi, rows, labels.labels, labels.masks, counts)

            run(job, cut(0, points, ROWS), parallel=points > ROWS)


def _strips(block: Any, points: int, prices: Floats) -> Iterator[tuple[slice, _Bits, Floats]]:
    """Yield a few validation points of a block at a time, with all points' bits and the prices."""
    if prices.ndim == 4:
        yield from _ring_strips(block, points, prices)
        return
    for lo, hi in cut(0, block.columns.stop - block.columns.start, STRIP):
        paid = prices[:, :, lo:hi]
        if isinstance(block, BitBlock):
            yield slice(lo, hi), (block.words.view(np.uint64), lo // 64), paid
        else:
            yield slice(lo, hi), (_words_of_tree(block, lo, hi, points), 0), paid


def _ring_strips(block: Any, points: int, prices: Floats) -> Iterator[tuple[slice, _Bits, Floats]]:
    """Yield the same ring by ring, for 64 validation points at a time, so sums have one order."""
    rings = prices.shape[2]
    for lo, hi in cut(0, block.columns.stop - block.columns.start, 64):
        codes = np.zeros((points, 64), np.uint8)
        codes[:, : hi - lo] = block.some(lo, hi, points)
        for ring in range(rings):
            bits = np.packbits(codes == rings - ring, axis=1, bitorder="little")
            yield slice(lo, hi), (bits.view(np.uint64), 0), prices[:, :, ring, lo:hi]


def _words_of_tree(block: TreeBlock, lo: int, hi: int, points: int) -> LongWords:
    """The bits that visits found, in rows like those of all pairs."""
    words = np.zeros((points, -(-(hi - lo) // 64)), np.uint64)

    def job(first: int, last: int) -> None:
        rows_of_visits(
            block.words, block.visits.starts, (first, last), block.visits.query_of,
            block.positions, (lo, hi), words,
        )  # fmt: skip

    run(job, cut(0, len(block.codes), JOB_LEAVES), parallel=points > ROWS)
    return words
