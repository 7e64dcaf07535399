"""Two passes over points that are read in parts: count, then value.

Counts are integers and a point's value is a sum over validation points in one fixed order, so the
result is the same to the last bit however rows are cut. Both passes sum up fingerprints of all
points, numbered: a source that was not the same in both is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Hashable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.engines.ahead import read_ahead
from thresher.engines.counted import Counted, more_prints
from thresher.engines.memory import FEWEST, Account, in_use
from thresher.engines.parts import Part, Place, Source
from thresher.engines.resume import Checkpoint
from thresher.errors import InputError
from thresher.inputs import Points, Validation
from thresher.labels import Classes, Codes, class_list
from thresher.near import Groups
from thresher.neighbors import Exact
from thresher.price_list import PriceList
from thresher.prices import Semivalue
from thresher.progress import Advance

TEXTS = 2  # times that labels, ids and owners are held while they are read, or computed on
Meaning = Mapping[Hashable, Hashable]


@dataclass(frozen=True)
class Priced:
    """What the first pass leaves to the second.

    Parameters
    ----------
    prices
        The prices, with all classes.
    counted
        The counts, and what was met on the way.
    meaning
        What the labels of the source are as classes.
    codes
        For each class, the code by which it was counted.
    """

    prices: PriceList
    counted: Counted
    meaning: Meaning
    codes: Codes

    @property
    def rows(self) -> int:
        """The number of points."""
        return self.counted.place.row

    def named(self, part: Part) -> Part:
        """A part with its labels as classes."""
        return _named(part, self.meaning)


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
    neighbors: Exact = "auto"
    held: int = 0
    threaded: bool = True

    def count(self, advance: Advance | None) -> Priced:
        """The first pass.

        Labels of text are counted as they are written. What they mean is known at the end only; in
        the rare case that this makes other labels equal, such as 1 and 1.0, all is counted again.
        """
        public = self._public()
        counted = self._pass("counts", public, {}, advance)
        if not counted.place.row:
            raise InputError("X is empty: at least one row is needed")
        given = self._given()
        meaning, labels = self.source.settle(
            counted.labels, [*self.labels, *given], counted.place.row
        )
        labels, given = labels[: len(self.labels)], labels[len(self.labels) :]
        classes = class_list(given or None, list(meaning.values()), labels)
        final = self._with(classes, labels)
        codes = _codes_before(public, final, meaning)
        if codes is None:
            counted = self._pass("counts-again", final, meaning, advance)
            codes = np.arange(len(final.classes), dtype=np.int32)
        counts = counted.counts[0], counted.counts[1]
        prices = PriceList.of_counts(final, self.radius, counts, self.semivalue)
        return Priced(prices, counted, meaning, codes)

    def coded(
        self, priced: Priced, start: Place, prints: int, advance: Advance | None, *,
        work: int = 0,
    ) -> Generator[tuple[Part, Points, int, Exact], None, None]:  # fmt: skip
        """The parts of the second pass, each with the fingerprints up to its end.

        And how its near pairs are to be found. `work` is what a row takes besides, in bytes. At the
        end all points must have been those of the first pass.
        """
        place = start
        with closing(self._parts(start, advance, work=work, rows=priced.rows)) as parts:
            for part, way in parts:
                named = priced.named(part)
                points = named.points(priced.prices.validation, strangers=False)
                prints = more_prints(prints, points, priced.codes[points.codes], part.first)
                yield named, points, prints, way
                place = part.after
        if (place.row, prints) != (priced.rows, priced.counted.prints):
            raise points_changed()

    def _pass(
        self, name: str, public: Validation, meaning: Meaning, advance: Advance | None
    ) -> Counted:
        state = Counted.load(self.checkpoint, name) or Counted.start(public)
        if advance is not None:
            advance(state.place.row)
        if state.whole:
            return state
        with closing(self._parts(state.place, advance)) as parts:
            for part, way in parts:
                points = _named(part, meaning).points(public, strangers=self.classes is None)
                state.add(part, points, public, self.radius, way)
                state.save(self.checkpoint, name)
        state.whole = True
        state.save(self.checkpoint, name)
        return state

    def _parts(
        self, start: Place, advance: Advance | None, *, work: int = 0, rows: int | None = None
    ) -> Generator[tuple[Part, Exact], None, None]:
        """The parts, and how near pairs are to be found in them.

        `rows` is how many there are in all, where that is known.
        """
        size, way = self._plan(work, rows)
        with read_ahead(self.source.read(start, size), threaded=self.threaded) as parts:
            for part in parts:
                yield part, way
                if advance is not None:
                    advance(len(part))

    def _plan(self, work: int, rows: int | None) -> tuple[int, Exact]:
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
                state = Counted.start(public)
                state.add(part, points, public, self.radius, "all")
                counts = state.counts[0], state.counts[1]
                prices = PriceList.of_counts(public, self.radius, counts, self.semivalue)
                known = np.minimum(points.codes, len(public.classes) - 1)
                part_values(prices, Points(points.rows, known), 1.0, "all")
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


def part_values(
    prices: PriceList, points: Points, divisor: float, neighbors: Exact
) -> NDArray[np.float64]:
    """The values of some of the counted points, divided by `divisor`."""
    validation = prices.validation
    groups = Groups.of(points.codes, len(validation.classes))
    sums = np.zeros(len(points))
    for block in validation.search(points.rows, prices.radius, neighbors).blocks(groups):
        prices.add_block(block, groups, sums)
    return groups.in_input_order(sums, divisor)


def _named(part: Part, meaning: Meaning) -> Part:
    if all(label == other and type(label) is type(other) for label, other in meaning.items()):
        return part
    y: list[Any] = part.y if isinstance(part.y, list) else part.y.tolist()
    return dataclasses.replace(part, y=[meaning.get(label, label) for label in y])


def _codes_before(public: Validation, final: Validation, meaning: Meaning) -> Codes | None:
    """For each class the code by which it was counted; None if other labels were equal then."""
    stranger = len(public.classes)
    before = public.classes.known_codes(list(meaning))
    after = final.classes.known_codes(list(meaning.values()))
    pairs = set(zip(public.codes.tolist(), final.codes.tolist(), strict=True))
    one_to_one = len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    carried, counted_as = {b for _, b in pairs}, {a for a, _ in pairs}
    for one, other in zip(before.tolist(), after.tolist(), strict=True):
        if (one, other) not in pairs and (one in counted_as or other in carried):
            return None
    codes = np.full(len(final.classes), stranger, np.int32)
    codes[after] = np.where(before < 0, stranger, before)
    return codes if one_to_one else None
