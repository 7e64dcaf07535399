"""Which points are near which, by the leaves of a tree that validation points visit.

The pairs of a visit are decided as everywhere else: by float32 within a proven error, and by the
pair rule if that leaves doubt. They are kept as bits. Sums run in the order of `kernels.bits`, so
that values are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Array, Floats, Integers, Single, Words
from thresher.kernels.bits import add_visits, count_visits
from thresher.kernels.masks import product_words, visit_words
from thresher.kernels.pairs import settle_visits
from thresher.kernels.target_pay import pay_visits
from thresher.kernels.target_sums import ENTRIES, sum_visits
from thresher.metrics import CHUNK, UNIT, Rows
from thresher.neighbors.coordinates import lengths
from thresher.neighbors.groups import Segments, by_entry, clear_bits
from thresher.neighbors.tree import JOB_LEAVES, BoxTree, Visits
from thresher.progress import Advance
from thresher.threads import cut, one_blas_thread, run

FIRST_BLOCK = 512  # validation points of the first block
MOST_BLOCK = 1 << 14  # and of any
CELLS = 1 << 20  # numbers for each validation point and class that a block has at most
NUMBERS = 1 << 20  # features of validation points that a block has at most
JOB_VISITS = 1 << 12  # visits whose words one job writes


@dataclass(frozen=True)
class TreeBlock:
    """The bits of the visits of one block of validation points: one row per visit."""

    columns: slice
    words: Array
    visits: Visits
    codes: NDArray[np.int32]  # the class of each place of each leaf
    positions: Words  # and its row where points are sorted by class
    class_starts: Integers  # the first of those rows of each class

    def count(self, segments: Segments) -> Integers:
        """Near points in each segment, for each validation point of the block."""
        segment_of = self._segment_of(segments)
        size = self.columns.stop - self.columns.start
        pieces = cut(0, len(self.visits), max(JOB_VISITS, len(self.visits) // 4 + 1))
        partial = np.zeros((len(pieces), len(segments), size), np.int64)

        def job(piece: int, lo: int, hi: int) -> None:
            count_visits(
                self.words[lo:hi], self.visits.leaf_of[lo:hi], self.visits.query_of[lo:hi],
                self.codes, segment_of, partial[piece],
            )  # fmt: skip

        run(job, [(i, *piece) for i, piece in enumerate(pieces)], parallel=True)
        return partial.sum(axis=0)

    def add(self, segments: Segments, weights: Floats, out: Floats) -> None:
        """Add to each point in `out` (sorted by class) its segment's weights where it is near."""
        segment_of, by_query = self._segment_of(segments), np.ascontiguousarray(weights.T)

        def job(lo: int, hi: int) -> None:
            add_visits(
                self.words, self.visits.starts, lo, hi, self.visits.query_of, self.codes,
                segment_of, self.positions, by_query, out,
            )  # fmt: skip

        run(job, cut(0, len(self.codes), JOB_LEAVES), parallel=len(self.visits) > JOB_VISITS)

    def sum_targets(self, targets: Floats, groups: Integers, count: int, scale: float) -> Integers:
        """Sums of the targets near each validation point, by group; see `kernels.target_sums`."""
        size = self.columns.stop - self.columns.start
        found = np.zeros((count * size, ENTRIES), np.int64)
        sum_visits(
            self.words, self.visits.leaf_of, self.visits.query_of, self.positions, targets, scale,
            groups, size, found,
        )  # fmt: skip
        return by_entry(found, count)

    def pay_targets(self, targets: Floats, prices: Floats, out: Floats) -> None:
        """Add to each point in `out` what it is paid by its target; see `kernels.target_pay`."""
        by_cell = np.ascontiguousarray(prices.T)

        def job(lo: int, hi: int) -> None:
            pay_visits(
                self.words, self.visits.starts, lo, hi, self.visits.query_of, self.positions,
                targets, by_cell, out,
            )  # fmt: skip

        run(job, cut(0, len(self.codes), JOB_LEAVES), parallel=len(self.visits) > JOB_VISITS)

    def take_out(self, places: Words) -> None:
        """Mark one point for each validation point, the one in `places`, as not near."""
        clear_bits(self.words, *self._own_visits(places))

    def _own_visits(self, places: Words) -> tuple[Integers, Words]:
        """The visits in which a validation point meets its place of `places`, and where."""
        size, wanted = self.codes.shape[1], places[self.visits.query_of]
        met = np.flatnonzero(wanted // size == self.visits.leaf_of)
        return met, wanted[met] % size

    def moved(self, rows: Words, starts: Integers) -> TreeBlock:
        """The same pairs with points in another order: row r goes to `rows[r]`."""
        positions = rows[self.positions]
        codes = np.searchsorted(starts, positions, side="right").astype(np.int32) - np.int32(1)
        return replace(self, codes=codes, positions=positions, class_starts=starts)

    def _segment_of(self, segments: Segments) -> Integers:
        """The segment of each class: the one that its first row is in."""
        ends = [hi for _, hi, _ in segments]
        found = np.searchsorted(ends, self.class_starts[:-1], side="right")
        return np.minimum(found, len(segments) - 1)  # the last classes may have no points


def tree_blocks(
    tree: BoxTree, points: Rows, positions: Words, class_starts: Integers,
    validation: Rows, *, advance: Advance | None = None, task: type[VisitTask] | None = None,
    edges: tuple[float, ...] = (),
) -> Iterator[Any]:  # fmt: skip
    """Yield the visits of all validation points, a block of them at a time.

    Blocks begin at multiples of 64, and end where there are enough visits: the size that is aimed
    at follows the visits of the last block. The words of a block are overwritten by the next one,
    so that memory does not grow with the validation set. A `task` may write something other than
    bits, by the `edges` within the radius.
    """
    kind = VisitTask if task is None else task
    places = tree.places()
    codes = np.searchsorted(class_starts, positions, side="right").astype(np.int32) - np.int32(1)
    by_place = codes[places], positions[places]
    filler = kind.of(tree, points, validation, edges)
    limit = tree.space.limit(filler.longest, filler.longest_query)
    most = min(MOST_BLOCK, CELLS // (2 * len(class_starts)), NUMBERS // points.width)
    room = kind.room(tree.most_visits(len(validation)), tree.leaf)
    start, size = 0, FIRST_BLOCK
    while start < len(validation):
        size = max(64, min(most, size) // 64 * 64)
        coordinates = tree.space.coordinates(validation, slice(start, start + size))
        far = tree.space.too_long(validation, slice(start, start + size))  # makes no visit
        flat = np.where(far[:, None], np.inf, tree.space.flat(coordinates))
        visits, count = tree.visits(flat, limit)
        coordinates, block = coordinates[:count], slice(start, start + count)
        words = room[: len(visits)]
        filler.fill(visits, block, coordinates, words)
        yield kind.block(block, words, visits, *by_place, class_starts, edges=edges)
        if advance is not None:
            advance(len(points) * count)
        start = block.stop
        size = tree.most * count // max(1, len(visits))


@dataclass(frozen=True)
class VisitTask:
    """Fill the words of visits: propose in float32, note what is in doubt, settle it.

    `level` and `numbers` are those of `metrics.Score` for each leaf, with the two sides exchanged:
    points are the columns. Its proof holds word for word, as coordinates are rounded to float64 by
    less than 2^-28 of what it allows for.
    """

    tree: BoxTree
    points: Rows
    validation: Rows
    longest: float  # of the coordinates of points, and of validation points
    longest_query: float
    edges: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, tree: BoxTree, points: Rows, validation: Rows, edges: tuple[float, ...] = ()
    ) -> VisitTask:
        """The task of all visits."""
        longest = float(tree.norms.max())
        longest_query = max(
            (
                float(lengths(tree.space.coordinates(validation, slice(lo, hi))).max())
                for lo, hi in cut(0, len(validation), max(1, CHUNK // validation.width))
            ),
            default=0.0,
        )
        return cls(tree, points, validation, longest, longest_query, edges)

    @staticmethod
    def room(visits: int, leaf: int) -> Array:
        """The memory that visits are written to: a bit for each pair."""
        return np.empty((visits, leaf // 32), np.uint32)

    @staticmethod
    def block(*about: Any, edges: tuple[float, ...]) -> TreeBlock:
        """What was written."""
        del edges
        return TreeBlock(*about)

    @property
    def most(self) -> float:
        """A radius in scaled coordinates that takes in everything: a larger one adds nothing."""
        return 4 * (self.longest + self.longest_query) + 1

    @cached_property
    def score(self) -> tuple[Single, Single]:
        """Levels and numbers of each leaf."""
        return leaf_score(self.tree, self.points, self.tree.space.radius, self.most)

    def fill(self, visits: Visits, block: slice, coordinates: Floats, words: Array) -> None:
        """Fill the words of all visits of a block."""
        Q, norms = coordinates.astype(np.float32), lengths(coordinates).astype(np.float32)
        V = self.validation.as_float64(block)

        def job(lo: int, hi: int) -> None:
            self.propose(visits, lo, hi, Q, norms, block, V, words)

        with nullcontext() if self.is_direct else one_blas_thread():
            run(job, cut(0, len(visits), JOB_VISITS), parallel=len(visits) > JOB_VISITS)

    @property
    def is_direct(self) -> bool:
        """Whether distances are summed directly, without a product."""
        return self.tree.space.directions is None

    def propose(
        self, visits: Visits, lo: int, hi: int, Q: Single, norms: Single,
        block: slice, V: Floats, words: Array,
    ) -> None:  # fmt: skip
        """Write the words of the visits lo to hi, and settle doubtful pairs."""
        notes = np.empty(((hi - lo) * self.tree.leaf // 32, 3), np.uint32)
        write = self._direct if self.is_direct else self._product
        count = write(visits, lo, hi, Q, norms, words, notes)
        if count:
            self._settle(notes[:count], visits, block, V, words)

    def leaf_columns(self, leaf: int) -> Single:
        """The points of a leaf as columns; wide ones are gathered when they are visited."""
        if self.is_direct:
            return self.tree.columns[leaf]
        rows = self.tree.order[leaf * self.tree.leaf : (leaf + 1) * self.tree.leaf]
        found = self.tree.space.coordinates(self.points, rows.astype(np.int64))
        return found.astype(np.float32).T

    def _direct(
        self, visits: Visits, lo: int, hi: int, Q: Single, norms: Single,
        words: Words, notes: Words,
    ) -> int:  # fmt: skip
        return int(
            visit_words(
                visits.leaf_of[lo:hi], visits.query_of[lo:hi], lo, Q, (0,) * Q.shape[1], norms,
                self.tree.columns, *self.score, words[lo:hi], notes,
            )
        )  # fmt: skip

    def _product(
        self, visits: Visits, lo: int, hi: int, Q: Single, norms: Single,
        words: Words, notes: Words,
    ) -> int:  # fmt: skip
        """The same for wide rows."""
        count, (level, numbers) = 0, self.score
        for first, last, leaf in visits.by_leaf(lo, hi):
            some = visits.query_of[first:last]
            found = product_words(
                np.dot(Q[some], self.leaf_columns(leaf)), norms[some], level[leaf], numbers[leaf],
                np.arange(last - first, dtype=np.uint32), words[first:last], notes[count:],
            )  # fmt: skip
            notes[count : count + found, 0] += np.uint32(first)
            count += found
        return count

    def _settle(
        self, notes: Words, visits: Visits, block: slice, V: Floats,
        words: Words,
    ) -> None:  # fmt: skip
        X, squares, order = self.points.array, self.points.squares, self.tree.order
        leaves = visits.leaf_of[notes[:, 0]].astype(np.int64)
        first_rows = leaves * self.tree.leaf
        if X.dtype == np.float16 or not X.flags.c_contiguous:  # only the leaves in question
            wanted, leaves = np.unique(leaves, return_inverse=True)
            places = wanted[:, None] * self.tree.leaf + np.arange(self.tree.leaf)
            rows = order[np.minimum(places, len(order) - 1)].ravel().astype(np.int64)
            X, squares = self.points.as_float64(rows), squares[rows]
            first_rows, order = leaves * self.tree.leaf, np.arange(len(rows), dtype=np.uint32)
        settle_visits(
            notes, first_rows, visits.query_of, order, X, squares, V,
            self.validation.squares[block], self.tree.space.metric == "cosine",
            self.tree.space.radius, words,
        )  # fmt: skip


def leaf_score(tree: BoxTree, points: Rows, radius: float, most: float) -> tuple[Single, Single]:
    """The level of each place of each leaf, and the numbers of each leaf; see `metrics.Score`.

    A radius beyond `most`, in scaled coordinates, takes in nothing more.
    """
    leaves, width = len(tree.columns), len(tree.space.center)
    level = np.full(leaves * tree.leaf, np.inf)
    share = (width + 16) * UNIT
    slack = share / (1 - share) * 1.001 if share < 0.5 else 1e6
    reach = np.maximum.reduceat(tree.norms, np.arange(0, len(tree.norms), tree.leaf))
    if tree.space.metric == "cosine":
        a, far = 0.0, max(1.0 - radius, -2.0)
        level[: len(tree.norms)] = far
        largest = np.full(leaves, abs(far) + 1.0)
    else:
        a, radius = 0.5, min(radius * tree.space.scale, most)
        level[: len(tree.norms)] = (tree.norms**2 - radius**2) / 2
        largest = (reach**2 + radius**2) / 2
    level[: len(points)][tree.space.too_long(points, tree.order)] = np.inf
    tiny = (width + 16) * 2.0**-126 * (1 + reach)
    shared = np.ones(leaves)
    numbers = np.column_stack([a * shared, 0 * shared, slack * shared, reach, largest, tiny])
    numbers[:, 2:] *= 1 + 2.0**-20
    return level.astype(np.float32).reshape(leaves, tree.leaf), numbers.astype(np.float32)
