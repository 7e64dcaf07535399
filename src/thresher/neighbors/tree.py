"""Who is near whom, by a tree of boxes over the points: most pairs are never looked at.

A block of validation points walks the tree; each meets the leaves whose boxes its ball may touch
(`Space.limit`): a *visit*. The pairs of a visit are decided as everywhere, by float32 within a
proven error and by the pair rule where that is in doubt, and kept as bits. Sums run in the order of
`kernels.bits`, so that values are the same to the last bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.kernels.bits import add_visits, count_visits
from thresher.kernels.boxes import fill_leaves, fill_parents, group_by_leaf, split_nodes, touch
from thresher.kernels.masks import product_words, visit_words
from thresher.kernels.pairs import settle_visits
from thresher.kernels.target_sums import sum_visits
from thresher.metrics import CHUNK, UNIT, Rows, aligned
from thresher.neighbors.coordinates import Space, lengths
from thresher.neighbors.groups import clear_bits
from thresher.threads import cut, one_blas_thread, run, thread_count

LEAF = 256  # points in a leaf
FIRST_BLOCK = 512  # validation points of the first block
MOST_BLOCK = 1 << 14  # and of any
VISITS = 1 << 18  # visits after which a block ends: 32 bytes of bits each, and 24 beside them
CELLS = 1 << 20  # numbers for each validation point and class that a block has at most
NUMBERS = 1 << 20  # features of validation points that a block has at most
QUERIES = 512  # validation points that walk the tree in one job, at most
ROOM = 1 << 14  # visits that one walk has room for at first
JOB_VISITS = 1 << 12  # visits whose words one job writes
JOB_LEAVES = 64

Segments = list[tuple[int, int, int]]
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Tree:
    """Points by leaves, with the boxes of leaves and of all nodes above them."""

    space: Space
    order: NDArray[np.uint32]  # points, leaf by leaf
    columns: NDArray[np.float32]  # leaves x directions x points: points as columns, padded
    norms: NDArray[np.float64]  # of the points' coordinates, in the order of the leaves
    low: NDArray[np.float32]  # nodes x directions
    high: NDArray[np.float32]
    offsets: NDArray[np.int64]  # where the nodes of each level begin; the leaves are level 0
    most: int  # visits after which a block ends

    @classmethod
    def of(cls, points: Rows, space: Space, leaf: int | None = None) -> Tree:
        """The tree over these points, with `leaf` of them in a leaf: a multiple of 32."""
        leaf = LEAF if leaf is None else leaf
        flat, norms = space.flat_points(points)
        order = np.arange(len(points), dtype=np.uint32)
        offsets = _offsets(-(-len(points) // leaf))
        keys = np.empty(len(points), np.float32)
        parallel = len(points) > 1 << 14
        for level in range(len(offsets) - 2, 0, -1):
            nodes, span = int(offsets[level + 1] - offsets[level]), leaf << level

            def split(lo: int, hi: int, span: int = span) -> None:
                split_nodes(flat, order, keys, lo, hi, span)

            run(split, cut(0, nodes, max(1, (1 << 12) // span)), parallel=parallel)
        columns = aligned((int(offsets[1]), flat.shape[1], leaf), np.float32)
        low, high = (np.empty((int(offsets[-1]), flat.shape[1]), np.float32) for _ in range(2))

        def fill(lo: int, hi: int) -> None:
            fill_leaves(flat, order, lo, hi, columns, low, high)

        run(fill, cut(0, len(columns), JOB_LEAVES), parallel=parallel)
        fill_parents(low, high, offsets)
        return cls(space, order, columns, norms[order], low, high, offsets, VISITS)

    @property
    def leaf(self) -> int:
        """The points in a leaf."""
        return int(self.columns.shape[2])

    def visits(self, queries: NDArray[np.float64], limit: float) -> tuple[Visits, int]:
        """The leaves that each query may have near points in, and for how many queries.

        Those after more than `most` visits are left out; what is done is a multiple of 64.
        """
        step, threads = self._step(), thread_count()
        found: list[NDArray[np.uint32]] = []
        done = made = 0
        while done < len(queries) and made <= self.most:
            pieces = cut(done, min(len(queries), done + step * threads), step)
            walked: list[list[NDArray[np.uint32]]] = [[] for _ in pieces]

            def walk(piece: int, lo: int, hi: int, walked: Any = walked) -> None:
                walked[piece] = self._walk(queries[:hi], lo, limit)

            run(walk, [(i, *piece) for i, piece in enumerate(pieces)], parallel=len(pieces) > 1)
            found += [part for parts in walked for part in parts]
            done, made = pieces[-1][1], sum(part.shape[1] for part in found)
        written = np.concatenate(found, axis=1)
        found.clear()  # memory is dear
        starts = np.empty(int(self.offsets[1]) + 1, np.int64)
        leaf_of, query_of = np.empty_like(written)
        group_by_leaf(written[0], written[1], starts, leaf_of, query_of)
        return Visits(starts, leaf_of, query_of), done

    def most_visits(self, queries: int) -> int:
        """The most visits that `visits` returns at once, of so many queries."""
        return int(self.offsets[1]) * min(
            queries, self.most // int(self.offsets[1]) + 1 + self._step() * thread_count()
        )

    def _step(self) -> int:
        """The queries that walk the tree in one job."""
        share = self.most // (int(self.offsets[1]) * thread_count())
        return max(64, min(QUERIES, share) // 64 * 64)

    def _walk(
        self, queries: NDArray[np.float64], first: int, limit: float
    ) -> list[NDArray[np.uint32]]:
        """The visits (leaf, query) of the queries from `first` on, in pieces."""
        found, room = [], max(ROOM, int(self.offsets[1]))
        while first < len(queries):
            written = np.empty((2, room), np.uint32)
            first, used = touch(
                queries, first, self.low, self.high, self.offsets, limit, written[0], written[1]
            )
            found.append(written[:, :used].copy())
        return found

    def place_of(self) -> NDArray[np.uint32]:
        """The place of each point in the order of the leaves."""
        found = np.empty_like(self.order)
        found[self.order] = np.arange(len(found), dtype=np.uint32)
        return found

    def places(self) -> NDArray[np.int64]:
        """The point in each place of each leaf, 0 in the padding."""
        padded = np.zeros(len(self.columns) * self.leaf, np.int64)
        padded[: len(self.order)] = self.order
        return padded.reshape(-1, self.leaf)


def _offsets(leaves: int) -> NDArray[np.int64]:
    counts = [leaves]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // 2))
    return np.cumsum([0, *counts])


@dataclass(frozen=True)
class Visits:
    """Which leaf meets which validation point of the block; those of leaf j from starts[j] on."""

    starts: NDArray[np.int64]
    leaf_of: NDArray[np.uint32]
    query_of: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.leaf_of)

    def by_leaf(self, lo: int, hi: int) -> list[tuple[int, int, int]]:
        """The visits lo to hi leaf by leaf: the first of them, their end, and the leaf."""
        ends = [lo, *(np.flatnonzero(np.diff(self.leaf_of[lo:hi])) + lo + 1).tolist(), hi]
        return [(a, b, int(self.leaf_of[a])) for a, b in itertools.pairwise(ends)]


@dataclass(frozen=True)
class TreeBlock:
    """The bits of the visits of one block of validation points: one row a visit."""

    columns: slice
    words: NDArray[Any]
    visits: Visits
    codes: NDArray[np.int32]  # the class of each place of each leaf
    positions: NDArray[np.uint32]  # and its row where points are sorted by class
    class_starts: NDArray[np.int64]  # the first of those rows of each class

    def count(self, segments: Segments) -> NDArray[np.int64]:
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

    def add(
        self, segments: Segments, weights: NDArray[np.float64], out: NDArray[np.float64]
    ) -> None:
        """Add to each point in `out` (sorted by class) its segment's weights where it is near."""
        segment_of, by_query = self._segment_of(segments), np.ascontiguousarray(weights.T)

        def job(lo: int, hi: int) -> None:
            add_visits(
                self.words, self.visits.starts, lo, hi, self.visits.query_of, self.codes,
                segment_of, self.positions, by_query, out,
            )  # fmt: skip

        run(job, cut(0, len(self.codes), JOB_LEAVES), parallel=len(self.visits) > JOB_VISITS)

    def sum_targets(
        self, targets: NDArray[np.int64], groups: NDArray[np.int64], count: int
    ) -> NDArray[np.int64]:
        """Sums of the targets near each validation point, by group; see `kernels.target_sums`."""
        found = np.zeros((4, count, self.columns.stop - self.columns.start), np.int64)
        sum_visits(
            self.words, self.visits.leaf_of, self.visits.query_of, self.positions, targets, groups,
            found,
        )  # fmt: skip
        return found

    def take_out(self, places: NDArray[np.uint32]) -> None:
        """Say of one point for each validation point that it is not near: the one in `places`."""
        clear_bits(self.words, *self._own_visits(places))

    def _own_visits(
        self, places: NDArray[np.uint32]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """The visits in which a validation point meets its place of `places`, and where."""
        size, wanted = self.codes.shape[1], places[self.visits.query_of]
        met = np.flatnonzero(wanted // size == self.visits.leaf_of)
        return met, wanted[met] % size

    def moved(self, rows: NDArray[np.uint32], starts: NDArray[np.int64]) -> TreeBlock:
        """The same pairs with points laid out anew: row r goes to `rows[r]`."""
        positions = rows[self.positions]
        codes = np.searchsorted(starts, positions, side="right").astype(np.int32) - np.int32(1)
        return TreeBlock(self.columns, self.words, self.visits, codes, positions, starts)

    def _segment_of(self, segments: Segments) -> NDArray[np.int64]:
        """The segment of each class: the one that its first row is in."""
        ends = [hi for _, hi, _ in segments]
        found = np.searchsorted(ends, self.class_starts[:-1], side="right")
        return np.minimum(found, len(segments) - 1)  # the last classes may have no points


def tree_blocks(
    tree: Tree, points: Rows, positions: NDArray[np.uint32], class_starts: NDArray[np.int64],
    validation: Rows, *, advance: Advance | None = None, task: type[VisitTask] | None = None,
    edges: tuple[float, ...] = (),
) -> Iterator[Any]:  # fmt: skip
    """Yield the visits of all validation points, a block of them at a time.

    Blocks begin at multiples of 64, and end where there are enough visits: what is aimed at follows
    the visits that the last one made. The words of a block are overwritten by the next one, so that
    memory does not grow with the validation set. A `task` may write something else than bits, by
    the `edges` within the radius.
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

    tree: Tree
    points: Rows
    validation: Rows
    longest: float  # of the coordinates of points, and of validation points
    longest_query: float
    edges: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, tree: Tree, points: Rows, validation: Rows, edges: tuple[float, ...] = ()
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
    def room(visits: int, leaf: int) -> NDArray[Any]:
        """Where visits are written: a bit for each pair."""
        return np.empty((visits, leaf // 32), np.uint32)

    @staticmethod
    def block(*about: Any, edges: tuple[float, ...]) -> TreeBlock:
        """What was written."""
        del edges
        return TreeBlock(*about)

    @property
    def most(self) -> float:
        """A radius, as coordinates are scaled: a larger one takes in nothing more."""
        return 4 * (self.longest + self.longest_query) + 1

    @cached_property
    def score(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Levels and numbers of each leaf."""
        return leaf_score(self.tree, self.points, self.tree.space.radius, self.most)

    def fill(
        self, visits: Visits, block: slice, coordinates: NDArray[np.float64], words: NDArray[Any]
    ) -> None:
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
        self, visits: Visits, lo: int, hi: int, Q: NDArray[np.float32], norms: NDArray[np.float32],
        block: slice, V: NDArray[np.float64], words: NDArray[Any],
    ) -> None:  # fmt: skip
        """Write the words of the visits lo to hi, and settle what is in doubt."""
        notes = np.empty(((hi - lo) * self.tree.leaf // 32, 3), np.uint32)
        write = self._direct if self.is_direct else self._product
        count = write(visits, lo, hi, Q, norms, words, notes)
        if count:
            self._settle(notes[:count], visits, block, V, words)

    def leaf_columns(self, leaf: int) -> NDArray[np.float32]:
        """The points of a leaf as columns; wide ones are gathered when they are visited."""
        if self.is_direct:
            columns: NDArray[np.float32] = self.tree.columns[leaf]
            return columns
        rows = self.tree.order[leaf * self.tree.leaf : (leaf + 1) * self.tree.leaf]
        found = self.tree.space.coordinates(self.points, rows.astype(np.int64))
        return found.astype(np.float32).T

    def _direct(
        self, visits: Visits, lo: int, hi: int, Q: NDArray[np.float32], norms: NDArray[np.float32],
        words: NDArray[np.uint32], notes: NDArray[np.uint32],
    ) -> int:  # fmt: skip
        return int(
            visit_words(
                visits.leaf_of[lo:hi], visits.query_of[lo:hi], lo, Q, (0,) * Q.shape[1], norms,
                self.tree.columns, *self.score, words[lo:hi], notes,
            )
        )  # fmt: skip

    def _product(
        self, visits: Visits, lo: int, hi: int, Q: NDArray[np.float32], norms: NDArray[np.float32],
        words: NDArray[np.uint32], notes: NDArray[np.uint32],
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
        self, notes: NDArray[np.uint32], visits: Visits, block: slice, V: NDArray[np.float64],
        words: NDArray[np.uint32],
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


def leaf_score(
    tree: Tree, points: Rows, radius: float, most: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The level of each place of each leaf, and the numbers of each leaf; see `metrics.Score`.

    A radius beyond `most`, as coordinates are scaled, takes in nothing more.
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
