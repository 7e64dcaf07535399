"""Which points are near which: one bit per pair, for a block of validation points at a time.

This is the step that counting and valuing share. Points are sorted by class (`Groups`), so that a
class is a range of rows, and each class needs only one weight per validation point. Memory is one
bit for each point and each validation point of the *current* block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers, Words
from thresher.inputs.checks import Metric
from thresher.inputs.precomputed import Distances, refuse_nan
from thresher.kernels.bits import add_by_bits, add_by_tables, byte_tables, count_columns
from thresher.kernels.masks import direct_words, distance_words, product_words, put_columns
from thresher.kernels.pairs import settle
from thresher.kernels.target_pay import pay_columns
from thresher.kernels.target_sums import ENTRIES, sum_columns
from thresher.metrics import DIRECT_WIDTH, Rows, Scaled, Score, aligned, alike, centered, score
from thresher.neighbors.groups import Groups, Segments, by_entry, clear_bits
from thresher.progress import Advance
from thresher.threads import cut, one_blas_thread, run, take, thread_count

BLOCK = 512  # validation points whose bits are held at once
SMALL_BLOCK = 1024  # the same for so few points that all bits are at most SMALL_BYTES
SMALL_BYTES = 8 << 20
GROUP = 64  # validation points whose weights are summed together: blocks hold whole groups
DIRECT_WORDS = 1 << 16  # words that one job of the fused loop writes
TILE = 1024  # points in one tile of the matrix product
TILE_NUMBERS = 1 << 21  # and numbers in it
PARALLEL_WORK = 4e7  # multiplications below which threads cost more than they bring
TABLE_ROWS = 64  # classes with fewer points are summed without byte tables


@dataclass(frozen=True)
class BitBlock:
    """The bits of all points against one block of validation points."""

    columns: slice
    words: Words
    parallel: bool

    def pairs(self) -> Flags:
        """Whether each point is near each validation point of the block."""
        bits = np.unpackbits(self.words.view(np.uint8), axis=1, bitorder="little")
        return bits[:, : self.columns.stop - self.columns.start].view(np.bool_)

    def count(self, segments: Segments) -> Integers:
        """Near points in each segment, for each validation point of the block."""
        counts = np.zeros((len(segments), self.words.shape[1] * 32), np.int64)
        pieces = pieces_of(segments, parallel=self.parallel)
        partial = np.zeros((len(pieces), counts.shape[1]), np.int64)

        def job(row: int, lo: int, hi: int) -> None:
            count_columns(self.words, lo, hi, partial[row])

        run(job, [(row, lo, hi) for row, (_, lo, hi) in enumerate(pieces)], parallel=self.parallel)
        for row, (index, _, _) in enumerate(pieces):
            counts[index] += partial[row]
        return counts[:, : self.columns.stop - self.columns.start]

    def add(
        self, segments: Segments, weights: Floats,
        out: Floats,
    ) -> None:  # fmt: skip
        """Add to each point in `out` (sorted by class) its segment's weights if it is near."""
        lanes = self.words.shape[1] * 32
        padded = np.zeros((len(segments), lanes))
        padded[:, : weights.shape[1]] = weights
        words = self.words.view(np.uint64)
        tables: dict[int, Floats] = {}

        def job(index: int, lo: int, hi: int) -> None:
            if segments[index][1] - segments[index][0] < TABLE_ROWS:
                add_by_bits(words, lo, hi, padded[index], out)
                return
            if index not in tables:
                table = np.empty((lanes // 8, 256))
                byte_tables(padded[index], table)
                tables[index] = table
            add_by_tables(words, lo, hi, tables[index], out)

        for index in range(len(segments)):
            pieces = pieces_of([segments[index]], parallel=self.parallel)
            run(job, [(index, lo, hi) for _, lo, hi in pieces], parallel=self.parallel)
            tables.clear()

    def sum_targets(self, targets: Floats, groups: Integers, count: int, scale: float) -> Integers:
        """Sums of the targets near each validation point, by group; see `kernels.target_sums`."""
        words = self.words.shape[1]
        found = np.zeros((count * words * 32, ENTRIES), np.int64)

        def job(lo: int, hi: int) -> None:
            sum_columns(self.words, lo, hi, targets, scale, groups, found)

        run(job, cut(0, words, -(-words // thread_count())), parallel=self.parallel)
        return by_entry(found, count)[..., : self.columns.stop - self.columns.start]

    def pay_targets(self, targets: Floats, prices: Floats, out: Floats) -> None:
        """Add to each point in `out` what it is paid by its target; see `kernels.target_pay`."""
        words, by_cell = self.words.view(np.uint64), np.ascontiguousarray(prices.T)

        def job(_: int, lo: int, hi: int) -> None:
            pay_columns(words, lo, hi, targets, by_cell, out)

        run(job, pieces_of([(0, len(targets), 0)], parallel=self.parallel), parallel=self.parallel)

    def layers(self) -> tuple[BitBlock]:
        """The bits of each ring; here all near points are in one ring."""
        return (self,)

    def copy(self) -> BitBlock:
        """The same block with its own copy of the bits."""
        return BitBlock(self.columns, self.words.copy(), self.parallel)

    def take_out(self, rows: Words) -> None:
        """Mark one point for each validation point, the one in `rows`, as not near."""
        clear_bits(self.words, rows, np.arange(len(rows), dtype=np.uint32))

    def moved(self, rows: Words, _: Integers) -> BitBlock:
        """The same pairs with points in another order: row r goes to `rows[r]`."""
        words = np.empty_like(self.words)
        words[rows] = self.words
        return BitBlock(self.columns, words, self.parallel)


def pieces_of(segments: Segments, *, parallel: bool) -> Segments:
    """The segments (index, lo, hi); long ones are cut so that every thread gets some."""
    total = sum(hi - lo for lo, hi, _ in segments)
    size = max(4096, -(-total // thread_count())) if parallel else total
    return [
        (index, *piece)
        for index, (lo, hi, _) in enumerate(segments)
        for piece in cut(lo, hi, max(1, size))
    ]


def near_blocks(
    points: Rows | Distances, groups: Groups, validation: Rows | None, *, metric: Metric,
    radius: float, advance: Advance | None = None, task: type[Task] | None = None,
    edges: tuple[float, ...] = (),
) -> Iterator[Any]:  # fmt: skip
    """Yield the bits of all points, a block of validation points at a time.

    The words of a block are overwritten by the next one. `advance` is called with the number of
    pairs done, for a progress bar. A `task` may write something other than bits, by the `edges`
    within the radius.
    """
    kind = Task if task is None else task
    if isinstance(points, Distances):
        yield from _distance_blocks(points, groups, radius, advance, kind, edges)
        return
    assert validation is not None  # noqa: S101 - the public functions check it
    if metric == "euclidean":
        points, validation = centered(points, validation)
    lanes = lanes_of(len(validation), kind.most_lanes(len(points)))
    words = kind.room(len(points), lanes)
    parallel = len(points) * len(validation) * max(10, points.width) >= PARALLEL_WORK
    longest = points.largest_norm()
    scaled: Scaled | None = None
    for start in range(0, len(validation), lanes):
        block = slice(start, min(len(validation), start + lanes))
        asked = validation.some(block)
        most, *few = alike(asked, metric, radius)
        scored = score(asked, lanes, metric, radius, longest, most)
        if scaled is None or not scaled.suits(scored):
            scaled = Scaled.of(points, scored, metric)
        filler = kind(scaled, groups.positions, asked, metric, radius, scored, edges)
        filler.fill(words, advance, parallel=parallel)
        for places in few:
            _fill_few(filler, places, words, longest, parallel=parallel)
        yield kind.block(block, words, edges, parallel=parallel)


def _fill_few(
    task: Task, places: Integers, words: Array, longest: float, *,
    parallel: bool,
) -> None:  # fmt: skip
    """Fill the columns `places` of a block, whose numbers differ in size from most."""
    asked, lanes = task.validation.some(places), -(-len(places) // 32) * 32
    scored = score(asked, lanes, task.metric, task.radius, longest)
    scaled = Scaled.of(task.points, scored, task.metric)
    found = task.room(len(words), lanes)
    few = type(task)(scaled, task.positions, asked, task.metric, task.radius, scored, task.edges)
    few.fill(found, None, parallel=parallel)
    task.put(found, places, words)


def lanes_of(count: int, most: int) -> int:
    """Validation points per block: a multiple of 64, so that blocks are of nearly equal size.

    No result depends on it: sums run over 64 validation points at a time.
    """
    blocks = -(-count // most)
    return -(-count // (blocks * 64)) * 64


@dataclass(frozen=True)
class Task:
    """Fill the words of one block: propose in float32, note what is in doubt, settle it."""

    scaled: Scaled
    positions: Words
    validation: Rows  # of the block
    metric: Metric
    radius: float
    score: Score
    edges: tuple[float, ...] = ()
    note: ClassVar[int] = 3  # numbers that a note has

    @staticmethod
    def most_lanes(points: int) -> int:
        """The most validation points of a block."""
        return SMALL_BLOCK if points * SMALL_BLOCK // 8 <= SMALL_BYTES else BLOCK

    @staticmethod
    def room(points: int, lanes: int) -> Array:
        """The memory that a block is written to: a bit for each pair."""
        return aligned((points, lanes // 32), np.uint32)

    @staticmethod
    def put(found: Array, places: Integers, words: Array) -> None:
        """Move columns to their places."""
        put_columns(found, places, words)

    @staticmethod
    def block(columns: slice, words: Array, edges: tuple[float, ...], *, parallel: bool) -> Any:
        """What was written."""
        del edges
        return BitBlock(columns, words, parallel)

    @staticmethod
    def read(
        tile: Floats, radius: float, edges: tuple[float, ...],
        positions: Words, words: Array,
    ) -> None:  # fmt: skip
        """Write the bits that follow from a tile of distances."""
        del edges
        distance_words(tile, radius, positions, words)

    @property
    def points(self) -> Rows:
        """The points."""
        return self.scaled.rows

    @property
    def dims(self) -> tuple[int, ...]:
        """An entry for each of a few features; none if a matrix product is used."""
        return (0,) * self.points.width if self.points.width <= DIRECT_WIDTH else ()

    def fill(self, words: Array, advance: Advance | None, *, parallel: bool) -> None:
        """Fill all words."""
        direct = len(self.dims) > 0
        step = max(TILE, DIRECT_WORDS // words.shape[1])
        if not direct:  # wide rows by fewer, so that a tile stays small
            step = max(64, min(TILE, TILE_NUMBERS // self.points.width))
        V, propose = self.validation.as_float64(slice(None)), self.proposal()
        columns = np.ascontiguousarray(self.score.columns[:, : len(V)])  # without the padding
        most = 0 if direct else step * len(V), (step * words.shape[1], self.note)
        spare: SimpleQueue[tuple[Any, Any]] = SimpleQueue()  # buffers are handed on to later jobs

        def job(lo: int, hi: int) -> None:
            buffer, notes = take(spare) or (
                aligned((most[0],), np.float32), np.empty(most[1], np.uint32)
            )  # fmt: skip
            tile = self.scaled.tile(lo, hi)
            if not direct:
                product = buffer[: (hi - lo) * len(V)].reshape(hi - lo, len(V))
                tile = np.dot(tile, columns, out=product)
            count = propose(tile, self.scaled.norms[lo:hi], self.positions[lo:hi], words, notes)
            if count:
                self.settle(lo, hi, notes[:count], V, words)
            spare.put((buffer, notes))
            if advance is not None:
                advance((hi - lo) * len(V))

        with nullcontext() if direct else one_blas_thread():
            run(job, cut(0, len(self.points), step), parallel=parallel)

    def proposal(self) -> Callable[..., int]:
        """The kernel that writes words from a tile or a product, and notes doubtful pairs."""
        dims, columns, level, numbers = (
            self.dims, self.score.columns, self.score.level, self.score.numbers
        )  # fmt: skip

        def propose(tile: Any, norms: Any, *about: Any) -> int:
            if not dims:
                return product_words(tile, norms, level, numbers, *about)
            return direct_words(tile, dims, norms, columns, level, numbers, *about)

        return propose

    def settle(self, lo: int, hi: int, notes: Array, V: Array, words: Array) -> None:
        """Decide every noted pair of the rows lo to hi."""
        X, where = self.points.array[lo:hi], notes[:, 0].astype(np.int64)
        if X.dtype == np.float16 or not X.flags.c_contiguous:  # only the rows in question
            wanted, where = np.unique(where, return_inverse=True)
            X = self.points.as_float64(wanted + lo)
        settle(
            notes, where, X, self.points.squares[lo:hi], V, self.validation.squares,
            self.metric == "cosine", self.radius, self.positions[lo:hi], words,
        )  # fmt: skip


def _distance_blocks(
    distances: Distances, groups: Groups, radius: float, advance: Advance | None,
    kind: type[Task], edges: tuple[float, ...],
) -> Iterator[Any]:  # fmt: skip
    for columns, part in distances.blocks(GROUP):
        width = part.shape[1]
        words = kind.room(len(distances), lanes_of(width, width))

        def job(
            lo: int, hi: int, part: Any = part, words: Any = words, start: int = columns.start
        ) -> None:
            tile = np.ascontiguousarray(part[lo:hi], np.float64)
            refuse_nan(tile, distances.first + lo, start)
            kind.read(tile, radius, edges, groups.positions[lo:hi], words)
            if advance is not None:
                advance(tile.size)

        run(job, cut(0, len(distances), TILE), parallel=len(distances) * width >= 1 << 22)
        yield kind.block(columns, words, edges, parallel=len(distances) * width >= 1 << 22)
