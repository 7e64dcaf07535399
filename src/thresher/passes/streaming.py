"""Two passes over points that are read in parts: count, then value.

Counts are integers and a point's value is a sum over validation points in one fixed order, so the
result is the same to the last bit however rows are cut. Both passes sum up fingerprints of all
points, numbered: a source that was not the same in both is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Hashable
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from thresher.errors import InputError
from thresher.games.semivalues import Semivalue
from thresher.inputs import Points, Validation
from thresher.labels import Classes, class_list
from thresher.neighbors.ball import Neighbors
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.memory import FEWEST, Account, in_use
from thresher.passes.parts import Part, Place, Source
from thresher.passes.priced import Meaning, Priced, named
from thresher.passes.read_ahead import read_ahead
from thresher.passes.tally import Tally, add_prints, part_print
from thresher.progress import Advance

TEXTS = 2  # times that labels, ids and owners are held while they are read, or computed on


@dataclass(frozen=True)
class Run:
    """What both passes need.

    Parameters
    ----------
    source
        The points.
    validation, labels
        The validation set, and its labels.
    classes
        All classes, if they were given: other labels are refused then.
    radius, semivalue
        As in `tknn_shapley`.
    checkpoint
        Where progress is kept.
    memory
        The most bytes that this process may take.
    neighbors
        How near pairs are found, as in `tknn_shapley`.
    held
        Bytes for each of all rows that the run holds in the end.
    threaded
        Whether parts are read ahead.
    """

    source: Source
    validation: Validation
    labels: list[Hashable]
    classes: object
    radius: float
    semivalue: Semivalue
    checkpoint: Checkpoint
    memory: int | None = None
    neighbors: Neighbors = "auto"
    held: int = 0
    threaded: bool = True

    def count(self, advance: Advance | None) -> Priced:
        """The first pass.

        Labels of text are counted as they are written. What they mean is known at the end only; in
        the rare case that this makes other labels equal, such as 1 and 1.0, all is counted again.
        """
        public = self._public()
        tally = self._pass("counts", public, {}, advance)
        if not tally.points:
            raise InputError("X is empty: at least one row is needed")
        given = self._given()
        meaning, labels = self.source.settle(
            tally.first_rows(), [*self.labels, *given], tally.points
        )
        labels, given = labels[: len(self.labels)], labels[len(self.labels) :]
        classes = class_list(given or None, list(meaning.values()), labels)
        final = self._with(classes, labels)
        if not _same_classes(public, final, meaning):
            tally = self._pass("counts-again", final, meaning, advance)
        return Priced.of(tally, final, self.radius, self.semivalue, meaning)

    def coded(
        self, priced: Priced, start: Place, prints: int, advance: Advance | None, *,
        work: int = 0,
    ) -> Generator[tuple[Part, Points, int, Neighbors], None, None]:  # fmt: skip
        """The parts of the second pass, each with the fingerprints up to its end.

        And how its near pairs are to be found. `work` is what a row takes besides, in bytes. At the
        end all points must have been those of the first pass.
        """
        place = start
        with closing(self._parts(start, advance, work=work, rows=priced.rows)) as parts:
            for part, way in parts:
                named = priced.named(part)
                points = named.points(priced.prices.validation, strangers=False)
                prints = add_prints(prints, part_print(part, points))
                yield named, points, prints, way
                place = part.after
        if (place.row, prints) != (priced.rows, priced.print):
            raise points_changed()

    def _pass(
        self, name: str, public: Validation, meaning: Meaning, advance: Advance | None
    ) -> Tally:
        state = Tally.load(self.checkpoint, name) or Tally.of_nothing(public)
        if advance is not None:
            advance(state.place.row)
        if state.whole:
            return state
        with closing(self._parts(state.place, advance)) as parts:
            for part, way in parts:
                points = named(part, meaning).points(public, strangers=self.classes is None)
                state.merge(Tally.of_part(part, points, public, self.radius, way))
                state.save(self.checkpoint, name)
        state.whole = True
        state.save(self.checkpoint, name)
        return state

    def _parts(
        self, start: Place, advance: Advance | None, *, work: int = 0, rows: int | None = None
    ) -> Generator[tuple[Part, Neighbors], None, None]:
        """The parts, and how near pairs are to be found in them.

        `rows` is how many there are in all, where that is known.
        """
        size, way = self._plan(work, rows)
        with read_ahead(self.source.read(start, size), threaded=self.threaded) as parts:
            for part in parts:
                yield part, way
                if advance is not None:
                    advance(len(part))

    def _plan(self, work: int, rows: int | None) -> tuple[int, Neighbors]:
        """The rows of a part, and the way: "auto" takes no tree where parts would be half as large.

        That is where memory is scarce.
        """
        fixed = self.held * (rows or self.source.count or 0)
        features, others = self.source.row_bytes
        public = self.validation.rows
        width = len(self.validation) if public is None else public.width
        if self.memory is not None:
            others = max(others, self._rehearse())
        without, by_tree = (
            Account(features, others, width, work, fixed + self.source.reading, tree=tree)
            for tree in (False, True)
        )
        given = self.memory, in_use()
        scarce = by_tree.room(*given) < max(FEWEST, without.room(*given) // 2)
        if self.neighbors == "all" or (self.neighbors == "auto" and scarce):
            return without.rows(*given), "all"
        return by_tree.rows(*given), self.neighbors

    def _rehearse(self) -> int:
        """Load and compile all that a pass needs, by a few rows: then memory can be measured.

        Returns the bytes of what their labels, ids and owners take.
        """
        public, size = self._public(), 0
        with read_ahead(self.source.read(Place(), FEWEST), threaded=False) as parts:
            part = next(parts, None)
            if part is not None:
                points = part.points(public, strangers=self.classes is None)
                state = Tally.of_part(part, points, public, self.radius, "all")
                priced = Priced.of(state, public, self.radius, self.semivalue)
                known = np.minimum(points.codes, len(public.classes) - 1)
                priced.values(Points(points.rows, known), 1.0, "all")
                size = TEXTS * part.text_bytes() // len(part)
        return size

    def _public(self) -> Validation:
        """The validation set as the first pass sees it, with classes as the source writes them."""
        labels, given = (self.source.keyed(each) for each in (self.labels, self._given()))
        return self._with(class_list(given or None, labels), labels)

    def _given(self) -> list[Hashable]:
        """The classes that were given, if any."""
        return [] if self.classes is None else list(class_list(self.classes).labels)

    def _with(self, classes: Classes, labels: list[Hashable]) -> Validation:
        codes = classes.encode("y_val", labels)
        return dataclasses.replace(self.validation, classes=classes, codes=codes)


def points_changed() -> InputError:
    """What to say when both passes did not see the same."""
    return InputError(
        "the points changed while they were valued: leave the files alone, remove the checkpoint "
        "if there is one, and run it again"
    )


def _same_classes(public: Validation, final: Validation, meaning: Meaning) -> bool:
    """Whether labels that agree now did so when they were counted, and no others did."""
    before = public.classes.known_codes(list(meaning))
    after = final.classes.known_codes(list(meaning.values()))
    pairs = set(zip(public.codes.tolist(), final.codes.tolist(), strict=True))
    carried, counted_as = {b for _, b in pairs}, {a for a, _ in pairs}
    if not len(counted_as) == len(carried) == len(pairs):
        return False
    found = zip(before.tolist(), after.tolist(), strict=True)
    return all(
        pair in pairs or (pair[0] not in counted_as and pair[1] not in carried) for pair in found
    )
