"""What the first pass knows about the points it has seen; tallies of parts add up in any order."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.files import portable
from thresher.inputs.labels import RawLabels
from thresher.neighbors.ball import Neighbors
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.parts import Part, Place
from thresher.passes.walk import count
from thresher.sides.protocol import PublicSide, SidePoints
from thresher.sides.target_side import TargetClasses

MOST_CLASSES = 1 << 18  # distinct labels that are kept


@dataclass
class Tally:
    """What some points add to the cells of a public side, and what tells them from others."""

    # counts, twins: the table of sums, and whether each validation point occurs among the
    # points
    counts: NDArray[Any]
    twins: NDArray[np.bool_]
    # rows, prints: of each piece, a file or a partition: how many rows, and a number that
    # follows from all that is in them
    rows: dict[int, int] = field(default_factory=dict)
    prints: dict[int, int] = field(default_factory=dict)
    # labels, and the piece and row in which each was first met
    labels: dict[Hashable, tuple[int, int]] = field(default_factory=dict)
    # place, whole: where the next part begins, and whether there is none
    place: Place = field(default_factory=Place)
    whole: bool = False

    @classmethod
    def of_nothing(cls, side: PublicSide) -> Tally:
        """No points."""
        return cls(np.zeros(side.shape, side.dtype), np.zeros(len(side), np.bool_))

    @classmethod
    def of_part(
        cls, part: Part, points: SidePoints, side: PublicSide, neighbors: Neighbors = "auto"
    ) -> Tally:  # fmt: skip
        """The tally of one part, whose points are `points`."""
        counts = count(points, side.near(neighbors), side.counting(), dtype=side.dtype)
        return replace(cls.of_rows(part, points, side), counts=counts)

    @classmethod
    def of_rows(cls, part: Part, points: SidePoints, side: PublicSide) -> Tally:
        """The tally of one part, whose points are not counted in cells."""
        counts, piece = np.zeros(side.shape, side.dtype), part.after.file
        numbers = isinstance(side.classes, TargetClasses)
        met = [] if numbers else _first_rows(part.y, part.inside)
        labels = {label: (piece, row) for label, row in met}
        rows, prints = {piece: len(part)}, {piece: part_print(part, points, side)}
        return cls(counts, side.twins(points), rows, prints, labels, part.after)

    @property
    def points(self) -> int:
        """How many points there are."""
        return sum(self.rows.values())

    def merge(self, other: Tally) -> Tally:
        """Add what another tally has; returns itself."""
        self.counts += other.counts
        self.twins |= other.twins
        for piece, rows in other.rows.items():
            self.rows[piece] = self.rows.get(piece, 0) + rows
            self.prints[piece] = add_prints(self.prints.get(piece, 0), other.prints[piece])
        for label, place in other.labels.items():
            self.labels[label] = min(place, self.labels.get(label, place))
        if len(self.labels) > MOST_CLASSES:
            raise InputError(
                f"y has more than {MOST_CLASSES} distinct labels: group them into fewer classes"
            )
        self.place = max(self.place, other.place)
        return self

    def first_rows(self) -> dict[Hashable, int]:
        """The labels in order of appearance, and the first row of each among all rows."""
        pieces = sorted(self.rows)
        starts = np.cumsum([0, *(self.rows[piece] for piece in pieces)]).tolist()
        before = dict(zip(pieces, starts[:-1], strict=True))
        places = sorted(self.labels.items(), key=lambda item: item[1])
        return {label: before[piece] + row for label, (piece, row) in places}

    def save(self, checkpoint: Checkpoint, name: str) -> None:
        """Save it."""
        if not checkpoint:
            return
        entry = {
            "place": list(self.place),
            "pieces": [[piece, self.rows[piece], self.prints[piece]] for piece in self.rows],
            "labels": portable("label", self.labels),
            "met": [list(place) for place in self.labels.values()],
            "whole": self.whole,
        }
        checkpoint.save(name, entry, [self.counts.ravel(), self.twins])

    @classmethod
    def load(cls, checkpoint: Checkpoint, name: str, side: PublicSide) -> Tally | None:
        """The tally that was saved; None if there is none."""
        found = checkpoint.load(name)
        if found is None:
            return None
        entry, (sums, met) = found
        counts = np.frombuffer(sums, side.dtype).reshape(side.shape).copy()
        twins = np.frombuffer(met, np.bool_).copy()
        rows = {piece: count for piece, count, _ in entry["pieces"]}
        prints = {piece: number for piece, _, number in entry["pieces"]}
        labels = dict(zip(entry["labels"], map(tuple, entry["met"]), strict=True))
        place = Place(*entry["place"])
        return cls(counts, twins, rows, prints, labels, place, entry["whole"])


def part_print(part: Part, points: SidePoints, side: PublicSide) -> int:
    """A number that tells whether rows, their places and their labels are the same."""
    rows = np.arange(part.inside, part.inside + len(part))
    salt = _label_numbers(part.y) + (rows << 31) + (part.after.file << 20)
    return int(side.prints(points.rows, salt).sum(dtype=np.uint64))


def add_prints(one: int, other: int) -> int:
    """The number of two parts together."""
    return (one + other) % 2**64


def _label_numbers(labels: RawLabels) -> NDArray[np.int64]:
    """A number for each label; equal labels have equal numbers."""
    if isinstance(labels, np.ndarray):
        found, where = np.unique(labels, return_inverse=True)
        return np.array([_number(label) for label in found.tolist()], np.int64)[where]
    numbers = {label: _number(label) for label in dict.fromkeys(labels)}
    return np.array([numbers[label] for label in labels], np.int64)


def _number(label: object) -> int:
    return crc32(repr(label).encode())


def _first_rows(labels: RawLabels, first: int) -> list[tuple[Any, int]]:
    """The distinct labels, and the row of each, counted from `first`."""
    if isinstance(labels, np.ndarray):
        found, rows = np.unique(labels, return_index=True)
        return list(zip(found.tolist(), (rows + first).tolist(), strict=True))
    met: dict[Hashable, int] = {}
    for row, label in enumerate(labels, first):
        met.setdefault(label, row)
    return list(met.items())
