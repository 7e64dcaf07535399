"""Owners as players of the walk: their names, and what the sums of cells are worth to them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats
from thresher.errors import LabelWarning, ThresherWarning, either, option
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.inputs.labels import Codes
from thresher.inputs.spelling import NAMES, look_alikes, named
from thresher.neighbors.ball import Neighbors
from thresher.owner_valuation import OwnerValuation
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.walk import show_sums
from thresher.progress import Advance
from thresher.sides.ball_side import BallSide
from thresher.sides.protocol import PublicSide, SidePoints

METHOD = "owner-shapley"
SEEN = "values"  # the piece of a checkpoint that has the values so far
GROUP = 64  # cells that ranges hold a multiple of
TABLE = 256 << 20  # bytes of the sums of some cells
MANY = 100_000  # owners of whom the cost is told before


@dataclass(frozen=True)
class OwnedPoints:
    """Points with codes that say which owner and which label each has."""

    rows: Any
    codes: Any

    @classmethod
    def of(cls, points: SidePoints, owners: Codes, side: PublicSide) -> OwnedPoints:
        """These points as points of these owners."""
        return cls(points.rows, side.owner_codes(owners, points.codes))


class OwnerNames:
    """Owners in order of first appearance.

    Examples
    --------
    >>> names = OwnerNames()
    >>> names.codes(["bob", "ann", "bob"]).tolist(), list(names.known)
    ([0, 1, 0], ['bob', 'ann'])
    """

    def __init__(self, known: Iterable[Hashable] = ()) -> None:
        self.known: dict[Hashable, int] = {owner: code for code, owner in enumerate(known)}

    def __len__(self) -> int:
        return len(self.known)

    def codes(self, owners: Sequence[Hashable]) -> Codes:
        """The number of each owner; new owners get the next numbers."""
        known = self.known
        found = (known.setdefault(owner, len(known)) for owner in owners)
        return np.fromiter(found, np.int32, len(owners))

    def warn(self, side: PublicSide, *, stacklevel: int) -> None:
        """Warn of names that look alike, and of the cost of very many owners."""
        warn_of_names(self.known, stacklevel=stacklevel + 1)
        if len(self) > MANY:
            size = GROUP * cell_bytes(side, len(self))
            passes = len(cell_ranges(side, len(self)))
            by_points = either("Valuation.by_owner", option("players", "points"))
            warnings.warn(
                f"owners has {len(self):,} owners: their sums need about {size / 1e9:.1f} GB of "
                f"memory and {passes} passes over the points. If the sum of each owner's point "
                f"values is enough, use {by_points}, which needs neither",
                ThresherWarning,
                stacklevel=stacklevel,
            )


def warn_of_names(owners: Iterable[Hashable], *, stacklevel: int) -> None:
    """Warn of owners whose names look alike."""
    if alike := look_alikes(owners):
        shown = "; ".join(named(names) for names in alike[:NAMES])
        warnings.warn(
            f"owners has names that differ only by case, spaces or type ({shown}): they count as "
            "different owners. If that is not intended, give each owner one name",
            LabelWarning,
            stacklevel=stacklevel,
        )


def cell_bytes(side: PublicSide, owners: int) -> int:
    """The bytes that one cell takes while owners are counted."""
    return 8 * owners * side.owner_numbers


def cell_ranges(side: PublicSide, owners: int, most: int = TABLE, first: int = 0) -> list[slice]:
    """Ranges of cells from `first` whose sums fit, made of whole pieces of `side.owner_cells`."""
    found: list[slice] = []
    for piece in side.owner_cells():
        if piece.start < first:
            continue
        size = (piece.stop - (found[-1].start if found else 0)) * cell_bytes(side, owners)
        if found and size <= most:
            found[-1] = slice(found[-1].start, piece.stop)
        else:
            found.append(piece)
    return found


def value_owners(
    points: SidePoints, side: PublicSide, owners: Sequence[Hashable], semivalue: Semivalue, *,
    stacklevel: int, neighbors: Neighbors = "auto", mean: bool = False,
    advance: Advance | None = None,
) -> OwnerValuation:  # fmt: skip
    """The values of the owners of points that are in memory; there is at least one point."""
    names = OwnerNames()
    codes = names.codes(owners)
    names.warn(side, stacklevel=stacklevel + 1)
    total, owned = OwnerSum(len(names), semivalue), OwnedPoints.of(points, codes, side)
    for some in _sides(side, len(names)):
        total.count(owned, some, neighbors, advance)
    if not total.reached:
        side.warn_of_reach(stacklevel=stacklevel + 1)
    return total.valuation(side, names.known, len(points), mean=mean)


def _sides(side: PublicSide, owners: int) -> list[PublicSide]:
    """The side, in pieces if the sums of all owners would take too much memory."""
    ranges = cell_ranges(side, owners)
    whole = not isinstance(side, BallSide) or side.validation.mutual or side.validation.rows is None
    return [side] if whole or len(ranges) < 2 else [side.some(block) for block in ranges]


@dataclass
class OwnerSum:
    """What owners are worth to the cells that were seen up to now."""

    owners: int
    semivalue: Semivalue
    values: Floats = field(init=False)
    utility: float = 0.0
    reached: bool = False  # whether any point is near anybody
    # where points judge each other: each table of the sums, added up over owners and cells
    counted: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = np.zeros(self.owners)

    def add(self, side: PublicSide, columns: slice, sums: Array) -> None:
        """Add what the cells `columns` of a side pay if they have these sums."""
        self.reached |= bool(sums.any())
        if side.holds_points:
            tables = sums.reshape(side.owner_tables, -1).sum(axis=1).tolist()
            self.counted = [
                old + new for old, new in zip_longest(self.counted, tables, fillvalue=0)
            ]
        for piece in side.owner_cells():
            if columns.start <= piece.start < columns.stop:
                some = sums[:, piece.start - columns.start : piece.stop - columns.start]
                for games in side.owner_games(some, piece, self.owners):
                    games.add_values(self.semivalue, self.values)
                    self.utility += games.utility()

    def save(self, checkpoint: Checkpoint, cells: int) -> None:
        """Save it, and how many cells it has seen."""
        names = "utility", "reached", "counted"
        entry = {"cells": cells, **{name: getattr(self, name) for name in names}}
        checkpoint.save(SEEN, entry, [self.values])

    def load(self, checkpoint: Checkpoint) -> int:
        """Continue from what was saved; returns how many cells it has seen."""
        found = checkpoint.load(SEEN)
        if found is None:
            return 0
        entry, chunks = found
        self.values = np.frombuffer(next(iter(chunks))).copy()
        self.utility, self.reached = entry["utility"], entry["reached"]
        self.counted = entry["counted"]
        return int(entry["cells"])

    def count(
        self, points: OwnedPoints, side: PublicSide, neighbors: Neighbors,
        advance: Advance | None = None,
    ) -> None:  # fmt: skip
        """Count all points and add what follows, a block of cells at a time."""
        see: Callable[..., None] = lambda columns, sums: self.add(side, columns, sums)  # noqa: E731
        show_sums(points, side.near(neighbors), side.owner_counting(self.owners), see, advance)

    def valuation(
        self, side: PublicSide, names: Iterable[Hashable], points: int, *, mean: bool
    ) -> OwnerValuation:
        """The result for `points` points."""
        if self.counted:
            side = side.with_counts(np.array(self.counted, object)[:, None])
        judges = side.judges(points)
        divisor = max(judges, 1) if mean else 1
        params = {
            **side.params(semivalue_name(self.semivalue), mean=mean),
            "players": "owners",
            "points": points,
        }
        ends = self.utility / divisor, side.utility_none(judges) / divisor
        return OwnerValuation(self.values / divisor, METHOD, params, *ends, tuple(names))
