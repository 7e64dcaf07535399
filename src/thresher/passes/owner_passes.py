"""owner_shapley of points in parts or on Dask: an owner's sums add up over parts as all sums do.

The first pass reads labels and owners. The second one counts, part by part. If the sums of all
owners do not fit, it counts some cells at a time and reads the points again for the next cells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError, require
from thresher.files import portable
from thresher.inputs.checks import column_names
from thresher.inputs.labels import Codes, check_owners
from thresher.neighbors.ball import Neighbors
from thresher.owner_valuation import OwnerValuation
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.in_parts import Run, points_changed, source_of
from thresher.passes.memory import check_memory
from thresher.passes.on_dask import read_partition
from thresher.passes.owner_sums import METHOD, TABLE, OwnedPoints, OwnerNames, OwnerSum, cell_ranges
from thresher.passes.partitions import Partition, in_tree, names_of, outcomes, partitions
from thresher.passes.parts import Labels, Part, Place, PlainLabels
from thresher.passes.problem import Meaning, Problem, named
from thresher.passes.tally import Tally, add_prints, part_print
from thresher.passes.walk import count
from thresher.progress import Advance, progress_bar
from thresher.sides.forest_side import ForestSide
from thresher.sides.protocol import PublicSide

READ, NAMES, SUMS = "read", "names", "sums"  # pieces of a checkpoint
OWNER = 12  # bytes of the owner of a row, as a code, twice


def owners_in_parts(
    X: Any, y: Any, problem: Problem, owners: Any, neighbors: Neighbors,
    memory: int | str | None, checkpoint: Any = None, *, progress: bool,
) -> OwnerValuation:  # fmt: skip
    """`owner_shapley` of an array, a memmap or a `Scan`, read in parts."""
    leaves = isinstance(problem.side, ForestSide)
    precomputed = not leaves and problem.validation.rows is None
    source = source_of(X, y, precomputed=precomputed, missing=leaves)
    problem.side.named(X.names if hasattr(X, "names") else column_names(X))
    most = None if memory is None else check_memory(memory)
    problem = replace(problem, neighbors=neighbors)
    known = None if source.count is None else check_owners(owners, source.count)
    known = known or check_owners(owners, len(owners))
    whose = hashlib.sha256(repr(known).encode()).hexdigest()
    about = {**problem.identity(), "points": source.identity(), "owners": whose}
    with Checkpoint(checkpoint, about) as kept:
        run = Run(problem, source, kept, most, held=OWNER)
        return OwnerRun(run, known, progress=progress).valuation()


@dataclass(frozen=True)
class OwnerRun:
    """All passes over the parts of a source, in this process."""

    run: Run  # how parts are read
    # the owner of each row; None where parts have a column of them
    owners: tuple[Hashable, ...] | None = None
    progress: bool = False  # whether a bar is shown

    def valuation(self) -> OwnerValuation:
        """The values of all owners."""
        problem = self.run.problem
        with progress_bar(METHOD, 0, show=self.progress, unit="rows") as advance:
            names, tally = self._read(advance)
            side, meaning = problem.settle(self.run.source, tally)
            names.warn(side, stacklevel=6)
            total, kept = OwnerSum(len(names), problem.semivalue), self.run.checkpoint
            done = total.load(kept)
            for block in cell_ranges(side, len(names), self._room(), done):
                some = side.some(block)
                sums = self._count(block, some, names, meaning, tally, advance)
                total.add(some, slice(0, sums.shape[1]), sums)
                total.save(kept, block.stop)
        problem.warn(side, tally, meaning, reached=total.reached, stacklevel=5)
        found = total.valuation(side, names.known, tally.points, mean=problem.mean)
        kept.finish()
        return found

    def _room(self) -> int:
        """The most bytes that the sums of owners may take."""
        return TABLE if self.run.memory is None else max(1 << 20, self.run.memory // 8)

    def _read(self, advance: Advance | None) -> tuple[OwnerNames, Tally]:
        """The first pass: owners and labels."""
        problem, names = self.run.problem, OwnerNames()
        public, strangers = problem.as_read(self.run.source), problem.classes is None
        kept, before = self.run.checkpoint, Tally.load(self.run.checkpoint, READ, public)
        if before is not None and (found := kept.load(NAMES)) is not None:
            return OwnerNames(found[0]["names"]), before
        tally = Tally.of_nothing(public)
        with closing(self.run.parts(Place(), advance)) as parts:
            for part, _ in parts:
                names.codes(self._owners(part))
                tally.merge(Tally.of_rows(part, part.points(public, strangers=strangers), public))
        if not tally.points:
            raise InputError("X is empty: at least one row is needed")
        if self.owners is not None:
            check_owners(self.owners, tally.points)
        if kept:
            tally.save(kept, READ)
            kept.save(NAMES, {"names": portable("owner", names.known)})
        return names, tally

    def _count(
        self, block: slice, side: PublicSide, names: OwnerNames, meaning: Meaning, seen: Tally,
        advance: Advance | None,
    ) -> NDArray[np.int64]:  # fmt: skip
        """What all points add to the cells of a side, by owner; `block` are these cells."""
        game, kept = side.owner_counting(len(names)), self.run.checkpoint
        sums = np.zeros((game.entries, side.shape[1]), np.int64)
        place, prints, cells = Place(), 0, [block.start, block.stop]
        found = kept.load(SUMS)
        if found is not None and found[0]["cells"] == cells:
            place, prints = Place(*found[0]["place"]), found[0]["prints"]
            sums.ravel()[:] = np.frombuffer(next(iter(found[1])), np.int64)
        with closing(self.run.parts(place, advance)) as parts:
            for part, way in parts:
                points = named(part, meaning).points(side, strangers=False)
                codes = names.codes(self._owners(part))
                sums += count(OwnedPoints.of(points, codes, side), side.near(way), game)
                prints = add_prints(prints, part_print(part, points, side))
                entry = {"cells": cells, "place": list(part.after), "prints": prints}
                kept.save(SUMS, entry, [sums.ravel()])
        if prints != reduce(add_prints, seen.prints.values(), 0):
            raise points_changed()
        return sums

    def _owners(self, part: Part) -> tuple[Hashable, ...]:
        """The owners of the rows of a part."""
        if self.owners is not None:
            return self.owners[part.first : part.first + len(part)]
        found: Any = check_owners(part.beside["owner"], len(part))
        return tuple(found)


def owners_on_dask(
    X: Any, y: Any, problem: Problem, owners: Any, neighbors: Neighbors, *, progress: bool
) -> OwnerValuation:
    """`owner_shapley` of Dask arrays and frames; `owners` may be a Dask collection, too."""
    require("dask", purpose="owner_shapley on Dask collections", extra="dask")
    parts, theirs = partitions(X, y), [each.y for each in partitions(X, owners)]
    problem = replace(problem, side=problem.side.named(names_of(X)), neighbors=neighbors)
    return run_owners_on_dask(problem, parts, theirs, progress=progress)


def run_owners_on_dask(
    problem: Problem, parts: list[Partition], theirs: list[Any], labels: Labels | None = None, *,
    progress: bool = False,
) -> OwnerValuation:  # fmt: skip
    """The values of the owners of partitions, whose labels mean the same as in `source`."""
    import dask

    labels, neighbors = labels or PlainLabels(), problem.neighbors
    public = dask.delayed(problem.as_read(labels), pure=True, traverse=False)
    read = dask.delayed(partial(_read_owners, strangers=problem.classes is None), pure=True)
    tasks = [
        read(part.number, part.X, part.y, each, public)
        for part, each in zip(parts, theirs, strict=True)
    ]
    found = outcomes(tasks, tasks, title="read", progress=progress)
    known = OwnerNames()
    for names_of_part, _ in found:
        known.codes(names_of_part)
    nothing = Tally.of_nothing(problem.as_read(labels))
    tally = reduce(Tally.merge, (each for _, each in found), nothing)
    if not tally.points:
        raise InputError("X is empty: at least one row is needed")
    side, meaning = problem.settle(labels, tally)
    known.warn(side, stacklevel=5)
    total = OwnerSum(len(known), problem.semivalue)
    for block in cell_ranges(side, len(known)):
        some = side.some(block)
        sums = _summed(parts, theirs, some, known, meaning, neighbors, progress=progress)
        total.add(some, slice(0, sums.shape[1]), sums)
    problem.warn(side, tally, meaning, reached=total.reached, stacklevel=5)
    return total.valuation(side, known.known, tally.points, mean=problem.mean)


def _summed(
    parts: list[Partition], owners: list[Any], side: PublicSide, names: OwnerNames,
    meaning: Meaning, neighbors: Neighbors, *, progress: bool,
) -> NDArray[np.int64]:  # fmt: skip
    """What all partitions add to the cells of a side, added up in a tree."""
    import dask

    shared = [
        dask.delayed(each, pure=True, traverse=False)
        for each in (side, list(names.known), dict(meaning))
    ]
    add = dask.delayed(partial(_count_owners, neighbors=neighbors), pure=True)
    merge = dask.delayed(_merge, pure=True)
    tasks = [
        add(part.number, part.X, part.y, each, *shared)
        for part, each in zip(parts, owners, strict=True)
    ]
    return outcomes([in_tree(tasks, merge)], tasks, title="count", progress=progress)[0]


def _read_owners(
    number: int, X: Any, y: Any, owners: Any, side: PublicSide, *, strangers: bool
) -> tuple[list[Hashable], Tally]:
    """The owners and the labels of a partition."""
    if not len(X):
        nothing = Tally.of_nothing(side)
        return [], replace(nothing, rows={number: 0}, prints={number: 0})
    part, points = read_partition(number, X, y, {}, side, strangers=strangers)
    known: Any = check_owners(owners, len(points))
    return list(dict.fromkeys(known)), Tally.of_rows(part, points, side)


def _count_owners(
    number: int, X: Any, y: Any, owners: Any, side: PublicSide, names: Iterable[Hashable],
    meaning: Meaning, *, neighbors: Neighbors,
) -> NDArray[np.int64]:  # fmt: skip
    """What a partition adds to the cells of a side, by owner."""
    known = OwnerNames(names)
    game = side.owner_counting(len(known))
    if not len(X):
        return np.zeros((game.entries, side.shape[1]), np.int64)
    _, points = read_partition(number, X, y, meaning, side, strangers=False)
    codes: Codes = known.codes(check_owners(owners, len(points)) or ())
    return count(OwnedPoints.of(points, codes, side), side.near(neighbors), game)


def _merge(tables: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(tables, axis=0)
