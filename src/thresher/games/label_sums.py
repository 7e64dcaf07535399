"""What points are worth under every label, and how many near validation points carry each.

The work grows with the near pairs and, lightly, with points times labels, since each point has a
sum for each label. Values are the same to the last bit as those of one label at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.inputs import Points, Validation
from thresher.kernels.bits import byte_tables, rows_of_visits
from thresher.kernels.relabel import add_label_values, count_labels, label_slots, label_weights
from thresher.labels import Codes
from thresher.neighbors.ball import Ball, Neighbors
from thresher.neighbors.blocks import Block
from thresher.neighbors.groups import Groups
from thresher.neighbors.tree import JOB_LEAVES, TreeBlock
from thresher.threads import cut, run

STRIP = 256  # validation points whose tables are held at once: at most 5 MB
ROWS = 2048  # points of one job


@dataclass(frozen=True)
class _Strip:
    """The bits of all points, sorted by class, against a few validation points of a block."""

    columns: slice
    words: NDArray[np.uint64]
    first: int  # the word in which they begin


@dataclass(frozen=True)
class _Labels:
    """The labels of the validation points of a strip, as the kernels want them."""

    codes: NDArray[np.int64]
    labels: NDArray[np.int64]
    masks: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    slots: NDArray[np.uint8]

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

    def tables(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        padded = np.zeros((2, 2, len(self.codes)))
        padded[:, :, : prices.shape[2]] = prices
        weights = np.empty((int((self.sizes**2).sum()), 8))
        label_weights(self.codes, padded, self.sizes, self.slots, weights)
        tables = np.empty((len(weights), 256))
        byte_tables(weights.ravel(), tables)
        return tables


def add_label_sums(
    public: Validation,
    radius: float,
    points: Points,
    prices: NDArray[np.float64],
    values: NDArray[np.float64],
    counts: NDArray[np.int32] | None = None,
    neighbors: Neighbors = "auto",
) -> None:
    """Add to values[i, c] what point i is worth under label c, to counts[i, c] who is near.

    prices[own, under, v] is what validation point v pays for a point: `own` is 0 where the point
    carries the label of v, else 1; `under` is 0 where it is priced under that label, else 1.
    """
    groups = Groups.of(points.codes, len(public.classes))
    rows = np.empty(len(points), np.uint32)
    rows[groups.positions] = np.arange(len(points), dtype=np.uint32)
    sums = LabelSums(points.codes[rows], rows, values, counts)
    for block in Ball.around(public, radius, neighbors).blocks(points.rows, groups):
        sums.add(block, public.codes[block.columns], prices[:, :, block.columns])


@dataclass(frozen=True)
class LabelSums:
    """The sums of points that lie sorted by class.

    Parameters
    ----------
    own
        The class of each point, sorted.
    rows
        The row of each in `values` and in `counts`.
    values, counts
        What a point is worth under each label, and how many near validation points carry it.
    """

    own: Codes
    rows: NDArray[np.uint32]
    values: NDArray[np.float64]
    counts: NDArray[np.int32] | None

    def add(self, block: Block | TreeBlock, judges: Codes, prices: NDArray[np.float64]) -> None:
        """Add what the validation points of a block pay, by their classes and prices."""
        own, rows, values, counts = self.own, self.rows, self.values, self.counts
        for strip in _strips(block, len(rows)):
            labels = _Labels.of(judges[strip.columns], values.shape[1])
            tables = labels.tables(prices[:, :, strip.columns])

            def job(
                lo: int, hi: int, strip: _Strip = strip, labels: _Labels = labels,
                tables: NDArray[np.float64] = tables,
            ) -> None:  # fmt: skip
                add_label_values(
                    strip.words, strip.first, lo, hi, own, rows, labels.labels, labels.sizes,
                    labels.slots, tables, values,
                )  # fmt: skip
                if counts is not None:
                    count_labels(
                        strip.words, strip.first, lo, hi, rows, labels.labels, labels.masks, counts
                    )

            run(job, cut(0, len(rows), ROWS), parallel=len(rows) > ROWS)


def _strips(block: Block | TreeBlock, points: int) -> Iterator[_Strip]:
    for lo, hi in cut(0, block.columns.stop - block.columns.start, STRIP):
        if isinstance(block, Block):
            yield _Strip(slice(lo, hi), block.words.view(np.uint64), lo // 64)
        else:
            yield _Strip(slice(lo, hi), _words_of_tree(block, lo, hi, points), 0)


def _words_of_tree(block: TreeBlock, lo: int, hi: int, points: int) -> NDArray[np.uint64]:
    """The bits that visits found, row by row as those of all pairs."""
    words = np.zeros((points, -(-(hi - lo) // 64)), np.uint64)

    def job(first: int, last: int) -> None:
        rows_of_visits(
            block.words, block.visits.starts, (first, last), block.visits.query_of,
            block.positions, (lo, hi), words,
        )  # fmt: skip

    run(job, cut(0, len(block.codes), JOB_LEAVES), parallel=points > ROWS)
    return words
