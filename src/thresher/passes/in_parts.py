"""Two passes over points that are read in parts: count, then value.

Counts are integers, and a point's value is a sum over validation points in one fixed order, so the
result is the same to the last bit however rows are cut. Both passes add up fingerprints of all
points and their numbers: a source that changed between the passes is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from thresher.errors import InputError
from thresher.games.semivalues import Semivalue
from thresher.inputs.checks import column_names
from thresher.inputs.labels import check_owners
from thresher.neighbors.ball import Neighbors
from thresher.neighbors.kernel import Kernel
from thresher.passes.checkpoint import Checkpoint, Chunk
from thresher.passes.memory import FEWEST, Account, check_memory, in_use
from thresher.passes.parts import ArrayParts, Part, Place, Source, read_ahead
from thresher.passes.problem import Meaning, Priced, Problem, named
from thresher.passes.tally import Tally, add_prints, part_print
from thresher.passes.target_span import span_of_parts, with_bounds
from thresher.price_list import PriceList
from thresher.progress import Advance, progress_bar
from thresher.sides.protocol import PublicSide, SidePoints
from thresher.valuation import Valuation

TEXTS = 2  # times that labels, ids and owners are held while they are read, or computed on
VALUE = 8  # bytes of a value, all of which are held

Work = Callable[[Part, SidePoints, Neighbors], Iterable[Chunk]]
Piece = tuple[int, Iterable[Chunk]]


def value_in_parts(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
    classes: Any, owners: Any, mean: bool, progress: bool, neighbors: Neighbors = "auto",
    kernel: Kernel | None = None, targets: Mapping[str, Any] | None = None,
    memory: int | str | None, checkpoint: str | PathLike[str] | None, threaded: bool = True,
) -> Valuation:  # fmt: skip
    """`tknn_shapley` in two passes over parts; `threaded` reads the next part ahead."""
    most = None if memory is None else check_memory(memory)
    scanned, precomputed = hasattr(X, "source_of_parts"), metric == "precomputed"
    if scanned and precomputed:
        raise InputError("a Scan has features: metric must be 'cosine' or 'euclidean'")
    check = partial(
        Problem.check, X_val, y_val, radius=radius, metric=metric, semivalue=semivalue, mean=mean,
        neighbors=neighbors, kernel=kernel,
    )  # fmt: skip
    if targets is None:
        problem = check(classes=classes)
        source = source_of(X, y, precomputed=precomputed)
    else:
        source = source_of(X, y, precomputed=precomputed, numbers=True)
        find = partial(span_of_parts, source, most, threaded=threaded)
        problem = check(targets=with_bounds(targets, y_val, find))
    problem.side.named(X.names if scanned else column_names(X))
    about = {**problem.identity(), "points": source.identity()}
    with Checkpoint(checkpoint, about) as kept:
        run = Run(problem, source, kept, most, held=VALUE, threaded=threaded)
        return run.valuation(owners, progress=progress)


def source_of(
    X: Any, y: Any, *, precomputed: bool = False, missing: bool = False, numbers: bool = False
) -> Source:
    """Where the points come from; missing cells of files are refused unless `missing`.

    Labels of files are numbers to predict if `numbers`, otherwise classes.
    """
    if hasattr(X, "source_of_parts"):
        if y is not None:
            raise InputError("y must be None if X is a Scan: the Scan names the column of labels")
        return X.source_of_parts(missing=missing, numbers=numbers)
    return ArrayParts(X, y, precomputed=precomputed)


@dataclass(frozen=True)
class Run:
    """Both passes over the parts of a source, in this process."""

    # problem, source: what the points are valued by, and the points
    problem: Problem
    source: Source
    checkpoint: Checkpoint  # where progress is kept
    memory: int | None = None  # the most bytes that this process may take
    held: int = 0  # bytes for each of all rows that the run holds in the end
    threaded: bool = True  # whether parts are read ahead

    def valuation(self, owners: Any, *, progress: bool) -> Valuation:
        """Both passes, with all values in memory; removes the checkpoint."""
        source = self.source
        known_owners = None if source.count is None else check_owners(owners, source.count)
        passes, title = 2 * (source.count or 0), self.problem.side.method
        with progress_bar(title, passes, show=progress, unit="rows") as advance:
            priced = self.count(advance)
            if advance is not None:
                advance(0, total=2 * priced.rows)
            values = np.empty(priced.rows)
            work: Work = lambda _, points, way: [priced.values(points, way)]  # noqa: E731
            with closing(self.value(priced, work, advance)) as pieces:
                for row, chunks in pieces:
                    some = np.frombuffer(*chunks)
                    values[row : row + len(some)] = some
        known_owners = known_owners or check_owners(owners, len(values))
        priced.warn()
        found = priced.valuation(values, known_owners)
        self.checkpoint.finish()
        return found

    def count(self, advance: Advance | None) -> Priced:
        """The first pass."""
        return self.problem.price(self.source, partial(self._tally, advance))

    def value(
        self, priced: Priced, work: Work, advance: Advance | None, *, row_bytes: int = 0
    ) -> Generator[Piece, None, None]:
        """The second pass: yield what `work` makes of each part, and the number of its first row.

        What the checkpoint has is not made again. `row_bytes` is what a row takes in addition. At
        the end, all points must have been those of the first pass.
        """
        place, prints = Place(), 0
        while (found := self.checkpoint.load(f"values-{place.row}")) is not None:
            entry, chunks = found
            yield place.row, chunks
            place, prints = Place(*entry["after"]), entry["prints"]
        if advance is not None:
            advance(place.row)
        with closing(self.parts(place, advance, work=row_bytes, rows=priced.rows)) as parts:
            for part, way in parts:
                as_class = named(part, priced.meaning)
                points = as_class.points(priced.side, strangers=False)
                found_print = part_print(part, points, priced.side)
                place, prints = part.after, add_prints(prints, found_print)
                if place.row > priced.rows:
                    raise points_changed()
                made = work(as_class, points, way)
                entry = {"after": list(place), "prints": prints}
                self.checkpoint.save(f"values-{part.first}", entry, made)
                yield part.first, made
        if (place.row, prints) != (priced.rows, priced.print):
            raise points_changed()

    def _tally(
        self, advance: Advance | None, name: str, public: PublicSide, meaning: Meaning
    ) -> Tally:
        state = Tally.load(self.checkpoint, name, public) or Tally.of_nothing(public)
        if advance is not None:
            advance(state.place.row)
        if state.whole:
            return state
        strangers = self.problem.classes is None
        with closing(self.parts(state.place, advance)) as parts:
            for part, way in parts:
                points = named(part, meaning).points(public, strangers=strangers)
                state.merge(Tally.of_part(part, points, public, way))
                state.save(self.checkpoint, name)
        state.whole = True
        state.save(self.checkpoint, name)
        return state

    def parts(
        self, start: Place, advance: Advance | None, *, work: int = 0, rows: int | None = None
    ) -> Generator[tuple[Part, Neighbors], None, None]:
        """The parts, and how near pairs are to be found in them.

        `rows` is how many rows there are in all, if that is known.
        """
        size, way = self._plan(work, rows)
        with read_ahead(self.source.read(start, size), threaded=self.threaded) as parts:
            for part in parts:
                yield part, way
                if advance is not None:
                    advance(len(part))

    def _plan(self, work: int, rows: int | None) -> tuple[int, Neighbors]:
        """The rows of a part, and how to find near pairs.

        "auto" takes no tree if that would halve the parts, because memory is scarce.
        """
        fixed = self.held * (rows or self.source.count or 0)
        features, others = self.source.row_bytes
        public, neighbors = self.problem.side.footprint(), self.problem.neighbors
        work, fixed = work + public.row, fixed + public.standing
        if self.memory is not None:
            others = max(others, self._try_out())
        without, by_tree = (
            Account(features, others, public.width, work, fixed + self.source.reading, tree=tree)
            for tree in (False, public.tree)
        )
        given = self.memory, in_use()
        scarce = by_tree.room(*given) < max(FEWEST, without.room(*given) // 2)
        if neighbors == "all" or (neighbors == "auto" and scarce):
            return without.rows(*given), "all"
        return by_tree.rows(*given), neighbors

    def _try_out(self) -> int:
        """Run on a few rows to load and compile what a pass needs, so that memory can be measured.

        Returns the bytes that their labels, ids and owners take.
        """
        public, size = self.problem.as_read(self.source), 0
        with read_ahead(self.source.read(Place(), FEWEST), threaded=False) as parts:
            part = next(parts, None)
            if part is not None:
                points: Any = part.points(public, strangers=self.problem.classes is None)
                state = Tally.of_part(part, points, public, "all")
                known = np.minimum(points.codes, len(public.classes) - 1)
                prices = PriceList.over(public, state.counts, self.problem.semivalue)
                prices.pay(replace(points, codes=known), neighbors="all")
                size = TEXTS * part.text_bytes() // len(part)
        return size


def points_changed() -> InputError:
    """The error if both passes did not see the same points."""
    return InputError(
        "the points changed while they were valued: leave the files alone, remove the checkpoint "
        "if there is one, and run it again"
    )
