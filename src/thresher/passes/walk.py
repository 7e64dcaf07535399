"""The walk: count what is near each cell, set prices, pay them to the points.

Every valuation by a neighborhood is this walk. Four words describe it:

- a *cell* keeps a few whole numbers and sets prices, such as one validation point;
- a *neighborhood* says which cells each point is in, a block of cells at a time (`neighbors`);
- a *game* says what a point adds to its cells, and which prices follow (`games`);
- a *part* is some of the points.

Each function is one loop over the blocks of a neighborhood. `visit` is that loop for any other use
of a block of cells.

The table of sums adds up over parts, so parts may be counted anywhere and in any order. The value
of a point is a sum over cells in one fixed order, so its bits depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from thresher.array_types import Bytes, Flags, Floats, Integers
from thresher.inputs.labels import Codes
from thresher.neighbors.groups import Block, Groups
from thresher.progress import Advance


class Neighborhood(Protocol):
    """Which cells each point is in."""

    @property
    def cells(self) -> int:
        """How many cells there are."""

    def blocks(self, rows: Any, groups: Groups, advance: Advance | None = None) -> Iterator[Block]:
        """Yield the cells with their points, block after block; points lie as in `groups`."""


class Sums(Protocol):
    """What a point adds to the cells that it is in."""

    @property
    def entries(self) -> int:
        """How many numbers a cell keeps."""

    def groups(self, codes: Codes) -> Groups:
        """How points are sorted: those that add the same are next to each other."""

    def sums(self, block: Block, groups: Groups) -> Integers:
        """What all points add to the cells of a block: one row for each entry."""


class Game(Sums, Protocol):
    """What a point adds to its cells, and which prices follow.

    A game with `columns` pays each point that many sums, one row each. At the end, its value
    follows from them by `total(out, groups)`.
    """

    def prices(self, sums: Integers, columns: slice) -> Floats:
        """What these cells pay if they have these sums, as `pay` needs it."""

    def pay(self, block: Block, groups: Groups, prices: Floats, out: Floats) -> None:
        """Add what the cells of a block pay to each point in `out`."""


def _room(game: Game, points: int) -> Floats:
    """An array of zeros to add payments to; it has several rows for a game with `columns`."""
    columns = getattr(game, "columns", 0)
    return np.zeros((columns, points) if columns else points)


class Part(Protocol):
    """Some points: their rows, and a code that says what each of them is."""

    @property
    def rows(self) -> Any:
        """Features, distances, or anything else that the neighborhood looks at."""

    @property
    def codes(self) -> Codes:
        """The class of each point."""


def count(
    part: Part, near: Neighborhood, game: Sums, advance: Advance | None = None, *,
    dtype: Any = np.int64,
) -> Integers:  # fmt: skip
    """What the points add to all cells: one row for each entry."""
    table, groups = np.zeros((game.entries, near.cells), dtype), game.groups(part.codes)
    for block in near.blocks(part.rows, groups, advance):
        table[:, block.columns] = game.sums(block, groups)
    return table


def show_sums(
    part: Part, near: Neighborhood, game: Sums, see: Callable[[slice, Integers], None],
    advance: Advance | None = None,
) -> None:  # fmt: skip
    """Count what the points add, and show it to `see`: the sums of one block of cells at a time."""
    groups = game.groups(part.codes)
    for block in near.blocks(part.rows, groups, advance):
        see(block.columns, game.sums(block, groups))


def value(
    part: Part, near: Neighborhood, game: Game, prices: Floats, *, before: Floats | None = None,
    divisor: float = 1.0, last: bool = True,
) -> Floats:  # fmt: skip
    """What the cells pay to each point, in input order, divided by `divisor`.

    Sums begin at `before`, if cells before these have paid already. If `last` is false, more cells
    pay afterwards: then what was paid is returned as it is, to be their `before`.
    """
    groups = game.groups(part.codes)
    sums = _room(game, len(part.codes))
    if before is not None:
        sums[..., groups.positions] = before
    for block in near.blocks(part.rows, groups):
        game.pay(block, groups, prices[..., block.columns], sums)
    if not last:
        return sums[..., groups.positions]
    return values_of(game, sums, groups, divisor)


def count_and_value(
    part: Part, near: Neighborhood, game: Game, *, divisor: float = 1.0,
    advance: Advance | None = None, show: Callable[[Floats], None] | None = None,
) -> tuple[Integers, Floats]:  # fmt: skip
    """The table of sums and the value of each point, if these are all the points.

    `show` sees what was paid, before that becomes values.
    """
    table = np.zeros((game.entries, near.cells), np.int64)

    def keep(columns: slice, found: Integers) -> None:
        table[:, columns] = found

    sums, groups = pay_while_counting(part, near, game, keep, advance=advance)
    if show is not None:
        show(sums)
    return table, values_of(game, sums, groups, divisor)


def values_of(game: Any, sums: Floats, groups: Groups, divisor: float = 1.0) -> Floats:
    """The value of each point in input order, by what it was paid."""
    paid = game.total(sums, groups) if sums.ndim == 2 else sums
    return groups.in_input_order(paid, divisor)


def pay_while_counting(
    part: Part, near: Neighborhood, game: Game, see: Callable[[slice, Integers], None], *,
    advance: Advance | None = None,
) -> tuple[Floats, Groups]:  # fmt: skip
    """What was paid to each point, in the order of the groups, if these are all the points.

    A block of cells is counted, priced and paid before the next. So near pairs are found only once,
    and only the sums of one block are held at a time. `see` gets the sums of cells.
    """
    groups = game.groups(part.codes)
    sums = _room(game, len(part.codes))
    for block in near.blocks(part.rows, groups, advance):
        found = game.sums(block, groups)
        see(block.columns, found)
        game.pay(block, groups, game.prices(found, block.columns), sums)
    return sums, groups


def visit(
    part: Part, near: Neighborhood, groups: Groups, act: Callable[[Any], None],
    advance: Advance | None = None,
) -> None:  # fmt: skip
    """Hand each block of cells, with the points that are in them, to `act`."""
    for block in near.blocks(part.rows, groups, advance):
        act(block)


def near_pairs(part: Part, near: Neighborhood) -> Flags:
    """Whether each point is in each cell, if the blocks can tell (`Block.pairs`)."""
    return _all_pairs(part, near, np.bool_, lambda block: block.pairs())


def ring_pairs(part: Part, near: Neighborhood, rings: int) -> Bytes:
    """The ring around each cell that each point is in: 0 is the innermost, `rings` means in none.

    The neighborhood looks at all pairs (`RingBlock`).
    """
    return _all_pairs(part, near, np.uint8, lambda block: rings - block.codes[:, : block.width])


def _all_pairs(part: Part, near: Neighborhood, dtype: Any, of: Callable[[Any], Any]) -> Any:
    """What blocks say about all pairs, by `of`."""
    found = np.empty((len(part.codes), near.cells), dtype)
    for block in near.blocks(part.rows, Groups.of(np.zeros(len(found), np.int32), 1)):
        found[:, block.columns] = of(block)
    return found
