"""Which ring each near pair is in: one byte per pair, for a block of validation points at a time.

The walk is the same as for one radius, with several edges: a pair's distance is computed once.
Edges are ascending, and the last one is the radius. Ring r lies between edge r - 1 and edge r, and
includes edge r. Counts and weights have one more axis than those of `BitBlock`: the rings, the
innermost first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from thresher.array_types import Array, Bytes, Flags, Floats, Integers, Single, Words
from thresher.kernels.pairs import pair_codes
from thresher.kernels.ring_codes import (
    UNSURE,
    add_codes,
    add_few_codes,
    add_visit_codes,
    count_codes,
    count_visit_codes,
    distance_codes,
    ring_codes,
    rows_of_visit_codes,
)
from thresher.kernels.target_pay import pay_codes, pay_visit_codes
from thresher.kernels.target_sums import ENTRIES, sum_codes, sum_visit_codes
from thresher.metrics import Rows, aligned
from thresher.neighbors.blocks import BitBlock, Task, pieces_of
from thresher.neighbors.groups import Segments, by_entry
from thresher.neighbors.tree import JOB_LEAVES, Visits
from thresher.neighbors.visits import JOB_VISITS, TreeBlock, VisitTask, leaf_score
from thresher.threads import cut, run, thread_count

BINS = 4096  # of distances, by which most pairs find their ring
EVEN = 1e-5  # widths by which edges may be off
# compare all edges; the 0 says that nothing is divided by the norm of a row, which may be 0
NO_SCALE = np.array([np.inf, 0.0, np.inf], np.float32)
NO_BINS = np.zeros(0, np.uint8)
SAMPLED, FEW = 97, 0.09  # one row in so many shows whether few pairs are near
LANES = 512  # validation points whose rings are held at once, at most
BYTES = 1 << 26  # and bytes, unless 64 validation points take more


def settled(
    pairs: tuple[Array, Array], points: Rows, V: Floats,
    squares: Floats, edges: tuple[float, ...], *, cosine: bool,
) -> Bytes:  # fmt: skip
    """The codes of some pairs (rows of the points, rows of V) by the pair rule."""
    wanted, where = np.unique(pairs[0], return_inverse=True)
    found = np.empty(len(where), np.uint8)
    X, queries = points.as_float64(wanted.astype(np.int64)), pairs[1].astype(np.int64)
    about = V, squares, cosine, np.array(edges)
    pair_codes(where.astype(np.int64), X, points.squares[wanted], queries, *about, found)
    return found


def ring_bins(depths: Floats) -> tuple[float, Bytes]:
    """A scale, and the codes of `BINS` bins of how far within the outermost edge a pair is.

    `depths` says how far each edge is within the outermost one, ascending from 0; its last entry is
    how far a pair can be. The first bin is for pairs that are outside by more than one bin.
    """
    scale = BINS / float(depths[-1])
    starts = np.arange(BINS + 3) - 2.0  # of the bins, in bins
    low, high = starts - 0.75, starts + 1.75  # what its pairs may truly be: wrong by half a bin
    low[0], high[-1] = -np.inf, np.inf
    edges = depths[:-1] * scale
    codes = (starts[:, None] >= edges).sum(axis=1).astype(np.uint8)
    unsure = ((low[:, None] <= edges) & (edges <= high[:, None])).any(axis=1)
    codes[unsure] = UNSURE
    return scale, codes


def even_step(edges: Floats, reach: float, scale: float) -> Array | None:
    """What `even_codes` needs to know about edges, the outermost first; None if widths differ.

    `scale` is that of squared distances, or 0 for cosine.
    """
    width = edges[0] / len(edges)
    off = float(np.abs(edges / width - np.arange(len(edges), 0, -1)).max())
    if off > EVEN or edges[0] > reach or len(edges) >= UNSURE:
        return None
    linear = [0.0, 1 / width] if scale == 0 else [2 / (scale * width) ** 2, 0.0]
    return np.array([*linear, off + EVEN], np.float32)


@dataclass(frozen=True)
class RingTask(Task):
    """Fill the codes of one block."""

    note: ClassVar[int] = 2

    @staticmethod
    def most_lanes(points: int) -> int:
        """The most validation points of a block."""
        return max(64, min(LANES, BYTES // max(points, 1)) // 64 * 64)

    @staticmethod
    def room(points: int, lanes: int) -> Bytes:
        """The memory that a block is written to: a byte for each pair."""
        return aligned((points, lanes), np.uint8)

    @staticmethod
    def put(found: Array, places: Integers, words: Array) -> None:
        """Move columns to their places."""
        words[:, places] = found[:, : len(places)]

    @staticmethod
    def block(
        columns: slice, words: Array, edges: tuple[float, ...], *, parallel: bool
    ) -> RingBlock:
        """What was written."""
        return RingBlock(columns, words, len(edges), parallel)

    @staticmethod
    def read(
        tile: Floats, radius: float, edges: tuple[float, ...],
        positions: Words, words: Array,
    ) -> None:  # fmt: skip
        """Write the codes that follow from a tile of distances."""
        del radius
        distance_codes(tile, np.array(edges), positions, words)

    def proposal(self) -> Callable[..., int]:
        """The kernel that writes the codes of a tile, and notes doubtful pairs."""
        outward = np.array(self.edges[::-1])
        scores = self.score.at_edges(self.validation, self.metric, outward)
        cosine, reach = self.metric == "cosine", min(outward[0], self.score.radius)
        step, bins = even_step(outward, reach, 0.0 if cosine else self.score.scale), NO_BINS
        if step is None:
            depths = np.append(outward[0] - outward, outward[0])
            if not cosine:
                inner = np.append(np.minimum(outward, reach), 0.0)
                depths = (reach**2 - inner**2) * (self.score.scale**2 / 2)
            scale, bins = ring_bins(depths)
            step = np.array([0.0, scale] if cosine else [scale, 0.0], np.float32)
        dims, columns = self.dims, self.score.columns

        def propose(tile: Any, norms: Any, positions: Any, words: Any, notes: Any) -> int:
            about = norms, *scores, step, bins, positions, words, notes
            return ring_codes(tile, dims, columns, *about)

        return propose

    def settle(self, lo: int, hi: int, notes: Array, V: Array, words: Array) -> None:
        """Decide every noted pair of the rows lo to hi."""
        row, column = notes.T
        cosine, squares = self.metric == "cosine", self.validation.squares
        pairs = row.astype(np.int64) + lo, column
        found = settled(pairs, self.points, V, squares, self.edges, cosine=cosine)
        words[self.positions[lo:hi][row], column] = found


@dataclass(frozen=True)
class RingBlock:
    """The codes of all points against one block of validation points."""

    columns: slice
    codes: Bytes
    rings: int
    parallel: bool

    @property
    def width(self) -> int:
        """How many validation points there are."""
        return self.columns.stop - self.columns.start

    def pairs(self) -> Flags:
        """Whether each point is near each validation point of the block."""
        return self.codes[:, : self.width] > 0

    def layers(self) -> Iterator[BitBlock]:
        """The bits of each ring on its own, the innermost first."""
        for code in range(self.rings, 0, -1):
            bits = np.packbits(self.codes == code, axis=1, bitorder="little")
            yield BitBlock(self.columns, bits.view(np.uint32), self.parallel)

    def copy(self) -> RingBlock:
        """The same block with its own copy of the codes."""
        return replace(self, codes=self.codes.copy())

    def count(self, segments: Segments) -> Integers:
        """Near points in each segment and ring, for each validation point of the block."""
        pieces = pieces_of(segments, parallel=self.parallel)
        partial = np.zeros((len(pieces), self.codes.shape[1], self.rings + 1), np.int64)

        def job(place: int, lo: int, hi: int) -> None:
            count_codes(self.codes, lo, hi, partial[place])

        run(job, [(i, lo, hi) for i, (_, lo, hi) in enumerate(pieces)], parallel=self.parallel)
        counts = np.zeros((len(segments), self.rings, self.width), np.int64)
        for found, (index, _, _) in zip(partial, pieces, strict=True):
            counts[index] += by_ring(found[: self.width], self.rings)
        return counts

    def add(self, segments: Segments, weights: Floats, out: Floats) -> None:
        """Add to each point in `out` (sorted by class) the weights of its segment and rings."""
        tables = by_code(weights, self.codes.shape[1])
        few = np.count_nonzero(self.codes[::SAMPLED]) < FEW * self.codes[::SAMPLED].size
        kernel = add_few_codes if few else add_codes

        def job(index: int, lo: int, hi: int) -> None:
            kernel(self.codes, lo, hi, tables[index], out)

        run(job, pieces_of(segments, parallel=self.parallel), parallel=self.parallel)

    def sum_targets(self, targets: Floats, groups: Integers, count: int, scale: float) -> Integers:
        """Sums of the targets in each ring, by group; see `kernels.target_sums`."""
        found = np.zeros((count * self.rings * self.width, ENTRIES), np.int64)

        def job(lo: int, hi: int) -> None:
            sum_codes(self.codes, lo, hi, self.rings, targets, scale, groups, self.width, found)

        run(job, cut(0, self.width, -(-self.width // thread_count())), parallel=self.parallel)
        return by_entry(found, count * self.rings)

    def pay_targets(self, targets: Floats, prices: Floats, out: Floats) -> None:
        """Add to each point in `out` what it is paid by its target; see `kernels.target_pay`."""
        codes, places = self.codes[:, : self.width], by_place(prices)

        def job(_: int, lo: int, hi: int) -> None:
            pay_codes(codes, lo, hi, self.rings, targets, places, out)

        run(job, pieces_of([(0, len(targets), 0)], parallel=self.parallel), parallel=self.parallel)

    def take_out(self, rows: Words) -> None:
        """Mark one point for each validation point, the one in `rows`, as not near."""
        self.codes[rows, np.arange(len(rows))] = 0

    def moved(self, rows: Words, _: Integers) -> RingBlock:
        """The same pairs with points in another order: row r goes to `rows[r]`."""
        codes = np.empty_like(self.codes)
        codes[rows] = self.codes
        return replace(self, codes=codes)

    def some(self, lo: int, hi: int, points: int) -> Bytes:
        """The codes of all points, and of some validation points of the block."""
        del points
        return self.codes[:, lo:hi]


def by_ring(found: Integers, rings: int) -> Integers:
    """Counts whose last axis is codes, rearranged so that their second axis is rings."""
    return np.moveaxis(found[..., rings:0:-1], -1, -2)


def by_code(weights: Floats, lanes: int) -> Floats:
    """Weights of each segment, ring and validation point as tables by code, padded with 0."""
    segments, rings, width = weights.shape
    tables = np.zeros((segments, lanes, rings + 1))
    tables[:, :width, rings:0:-1] = np.moveaxis(weights, 1, -1)
    return tables


def by_place(prices: Floats) -> Floats:
    """Prices[kind, ring, validation point] as a table with a row for each ring of each of these."""
    return np.ascontiguousarray(prices.transpose(2, 1, 0)).reshape(-1, len(prices))


@dataclass(frozen=True)
class RingVisitTask(VisitTask):
    """Fill the codes of visits."""

    @staticmethod
    def room(visits: int, leaf: int) -> Bytes:
        """The memory that visits are written to: a byte for each pair."""
        return np.empty((visits, leaf), np.uint8)

    @staticmethod
    def block(*about: Any, edges: tuple[float, ...]) -> RingTreeBlock:
        """What was written."""
        columns, words, visits, codes, positions, starts = about
        return RingTreeBlock(columns, words, visits, codes, positions, starts, len(edges))

    @cached_property
    def scores(self) -> tuple[Single, Single]:
        """Levels and numbers, edge by edge from the outermost, of each leaf."""
        found = [leaf_score(self.tree, self.points, edge, self.most) for edge in self.edges[::-1]]
        levels, numbers = zip(*found, strict=True)
        return np.stack(levels, axis=1), np.stack(numbers, axis=1)

    def propose(
        self, visits: Visits, lo: int, hi: int, Q: Single, norms: Single,
        block: slice, V: Floats, words: Array,
    ) -> None:  # fmt: skip
        """Write the codes of the visits lo to hi, and settle doubtful pairs."""
        levels, numbers = self.scores
        for first, last, leaf in visits.by_leaf(lo, hi):
            some, tile = visits.query_of[first:last], self.leaf_columns(leaf)
            product, rows = np.dot(Q[some], tile), np.arange(last - first)
            notes = np.empty((product.size, 2), np.uint32)
            about = levels[leaf], numbers[leaf], NO_SCALE, NO_BINS, rows, words[first:last], notes
            count = ring_codes(product, (), tile, norms[some], *about)
            row, place = notes[:count].T.astype(np.int64)
            kept = place + leaf * self.tree.leaf < len(self.tree.order)
            row, place = row[kept], place[kept]
            points = self.tree.order[leaf * self.tree.leaf + place]
            squares, cosine = self.validation.squares[block], self.tree.space.metric == "cosine"
            found = settled((points, some[row]), self.points, V, squares, self.edges, cosine=cosine)
            words[first + row, place] = found


@dataclass(frozen=True)
class RingTreeBlock(TreeBlock):
    """The codes of the visits of one block of validation points: one row per visit."""

    rings: int = 1

    def pairs(self) -> Flags:
        """Whether each point, sorted by class, is near each validation point of the block."""
        size = self.columns.stop - self.columns.start
        return self.some(0, size, int(self.class_starts[-1])) > 0

    def count(self, segments: Segments) -> Integers:
        """Near points in each segment and ring, for each validation point of the block."""
        size, segment_of = self.columns.stop - self.columns.start, self._segment_of(segments)
        counts = np.zeros((len(segments), size, self.rings + 1), np.int64)
        count_visit_codes(
            self.words, self.visits.leaf_of, self.visits.query_of, self.codes, segment_of, counts
        )
        return by_ring(counts, self.rings)

    def add(self, segments: Segments, weights: Floats, out: Floats) -> None:
        """Add to each point in `out` (sorted by class) the weights of its segment and rings."""
        segment_of, tables = self._segment_of(segments), by_code(weights, weights.shape[-1])

        def job(lo: int, hi: int) -> None:
            add_visit_codes(
                self.words, self.visits.starts, lo, hi, self.visits.query_of, self.codes,
                segment_of, self.positions, tables, out,
            )  # fmt: skip

        run(job, cut(0, len(self.codes), JOB_LEAVES), parallel=len(self.visits) > JOB_VISITS)

    def sum_targets(self, targets: Floats, groups: Integers, count: int, scale: float) -> Integers:
        """Sums of the targets in each ring, by group; see `kernels.target_sums`."""
        size = self.columns.stop - self.columns.start
        found = np.zeros((count * self.rings * size, ENTRIES), np.int64)
        sum_visit_codes(
            self.words, self.visits.leaf_of, self.visits.query_of, self.positions, self.rings,
            targets, scale, groups, size, found,
        )  # fmt: skip
        return by_entry(found, count * self.rings)

    def pay_targets(self, targets: Floats, prices: Floats, out: Floats) -> None:
        """Add to each point in `out` what it is paid by its target; see `kernels.target_pay`."""
        places = by_place(prices)

        def job(lo: int, hi: int) -> None:
            pay_visit_codes(
                self.words, self.visits.starts, lo, hi, self.visits.query_of, self.positions,
                self.rings, targets, places, out,
            )  # fmt: skip

        run(job, cut(0, len(self.codes), JOB_LEAVES), parallel=len(self.visits) > JOB_VISITS)

    def take_out(self, places: Words) -> None:
        """Mark one point for each validation point, the one in `places`, as not near."""
        met, place = self._own_visits(places)
        self.words[met, place] = 0

    def some(self, lo: int, hi: int, points: int) -> Bytes:
        """The codes of all points, and of some validation points of the block."""
        found = np.zeros((points, hi - lo), np.uint8)
        rows_of_visit_codes(
            self.words, self.visits.starts, (0, len(self.codes)), self.visits.query_of,
            self.positions, (lo, hi), found,
        )  # fmt: skip
        return found
