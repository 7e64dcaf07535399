"""A tree of boxes over the points, and the leaves that validation points visit.

Validation points walk the tree; each meets the leaves whose boxes its ball may touch
(`Space.limit`): a *visit*. Most pairs are never looked at.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.array_types import Floats, Integers, Single, Words
from thresher.kernels.boxes import fill_leaves, fill_parents, group_by_leaf, split_nodes, touch
from thresher.metrics import Rows, aligned
from thresher.neighbors.coordinates import Space
from thresher.threads import cut, run, thread_count

LEAF = 256  # points in a leaf
VISITS = 1 << 18  # visits after which a block ends: 32 bytes of bits each, and 24 beside them
QUERIES = 512  # validation points that walk the tree in one job, at most
ROOM = 1 << 14  # visits that one walk has room for at first
JOB_LEAVES = 64


@dataclass(frozen=True)
class BoxTree:
    """Points by leaves, with the boxes of leaves and of all nodes above them."""

    space: Space
    order: Words  # points, leaf by leaf
    columns: Single  # leaves x directions x points: points as columns, padded
    norms: Floats  # of the points' coordinates, in the order of the leaves
    low: Single  # nodes x directions
    high: Single
    offsets: Integers  # where the nodes of each level begin; the leaves are level 0
    most: int  # visits after which a block ends

    @classmethod
    def of(cls, points: Rows, space: Space, leaf: int | None = None) -> BoxTree:
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

    def visits(self, queries: Floats, limit: float) -> tuple[Visits, int]:
        """The leaves that each query may have near points in, and for how many queries.

        Queries after more than `most` visits are left out. If some are, the number of the others is
        a multiple of 64.
        """
        step, threads = self._step(), thread_count()
        found: list[Words] = []
        done = made = 0
        while done < len(queries) and made <= self.most:
            pieces = cut(done, min(len(queries), done + step * threads), step)
            walked: list[list[Words]] = [[] for _ in pieces]

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
        """The most visits that `visits` returns at once for this many queries."""
        return int(self.offsets[1]) * min(
            queries, self.most // int(self.offsets[1]) + 1 + self._step() * thread_count()
        )

    def _step(self) -> int:
        """The queries that walk the tree in one job."""
        share = self.most // (int(self.offsets[1]) * thread_count())
        return max(64, min(QUERIES, share) // 64 * 64)

    def _walk(self, queries: Floats, first: int, limit: float) -> list[Words]:
        """The visits (leaf, query) of the queries from `first` on, in pieces."""
        found, room = [], max(ROOM, int(self.offsets[1]))
        while first < len(queries):
            written = np.empty((2, room), np.uint32)
            first, used = touch(
                queries, first, self.low, self.high, self.offsets, limit, written[0], written[1]
            )
            found.append(written[:, :used].copy())
        return found

    def place_of(self) -> Words:
        """The place of each point in the order of the leaves."""
        found = np.empty_like(self.order)
        found[self.order] = np.arange(len(found), dtype=np.uint32)
        return found

    def places(self) -> Integers:
        """The point in each place of each leaf, 0 in the padding."""
        padded = np.zeros(len(self.columns) * self.leaf, np.int64)
        padded[: len(self.order)] = self.order
        return padded.reshape(-1, self.leaf)


def _offsets(leaves: int) -> Integers:
    counts = [leaves]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // 2))
    return np.cumsum([0, *counts])


@dataclass(frozen=True)
class Visits:
    """Which leaf meets which validation point of the block; visits of leaf j begin at starts[j]."""

    starts: Integers
    leaf_of: Words
    query_of: Words

    def __len__(self) -> int:
        return len(self.leaf_of)

    def by_leaf(self, lo: int, hi: int) -> list[tuple[int, int, int]]:
        """The visits lo to hi leaf by leaf: the first of them, their end, and the leaf."""
        ends = [lo, *(np.flatnonzero(np.diff(self.leaf_of[lo:hi])) + lo + 1).tolist(), hi]
        return [(a, b, int(self.leaf_of[a])) for a, b in itertools.pairwise(ends)]
