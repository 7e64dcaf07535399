"""What counts, price lists, passes and live stores know about the public side of a valuation.

The public side is all that is fixed before the first point is counted: who judges the points, what
near means, and the classes. It consists of cells, such as one for each validation point. A cell
keeps sums and sets prices. Code that is built on this protocol works for every side, and does not
need to know about balls, leaves or formulas.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from thresher.games.owner_values import OwnerGames
from thresher.games.semivalues import Semivalue
from thresher.inputs.labels import Classes, Codes, RawLabels
from thresher.neighbors.ball import Neighbors
from thresher.passes.walk import Game, Neighborhood, Part, Sums

Who = Literal["members", "newcomers"]


class SidePoints(Part, Protocol):
    """Points that a side has checked."""

    def __len__(self) -> int: ...


class LabelSums(Protocol):
    """A game that pays points under every label at once."""

    def groups(self, codes: Codes) -> Any:
        """How points are laid out."""

    def pay(
        self, block: Any, groups: Any, prices: Any, values: NDArray[np.float64],
        counts: NDArray[np.int32] | None = None,
    ) -> None:  # fmt: skip
        """Add to values[i, c] what point i is worth under label c, to counts[i, c] those near."""


class Mover(Protocol):
    """Counts one row at a time, fast."""

    def fingerprint(self, row: NDArray[np.float64], code: int) -> int:
        """The fingerprint of a row and its class, as `PublicSide.prints` has it."""

    def move(
        self, row: NDArray[np.float64], leave: int, enter: int, counts: NDArray[Any], *,
        twins: bool,
    ) -> bool:  # fmt: skip
        """Count a row out of one class and into another, where -1 is none.

        Changes nothing and returns False if a table of this one row would be refused or warned of.
        """


@dataclass(frozen=True)
class Footprint:
    """What a side takes in memory."""

    width: int  # numbers in a row
    # row, standing: bytes for each row that is computed on, and bytes whatever the number of
    # rows
    row: int = 0
    standing: int = 0
    tree: bool = False  # whether near pairs may be found by a tree over the points


class PublicSide(Protocol):
    """Who judges the points, and what near means."""

    method: ClassVar[str]  # what values by it are called
    dtype: ClassVar[Any]  # of the table of counts

    @property
    def kind(self) -> str:
        """Its name in files."""

    @property
    def classes(self) -> Classes:
        """The classes."""

    @property
    def codes(self) -> Codes:
        """The class of each validation point."""

    @property
    def width(self) -> int:
        """The number of features of a point."""

    @property
    def shape(self) -> tuple[int, int]:
        """The table of counts: how many numbers a cell keeps, and how many cells there are."""

    @property
    def holds_points(self) -> bool:
        """Whether points judge each other, so that prices tell of single points."""

    def __len__(self) -> int:
        """How many validation points there are."""

    def __str__(self) -> str:
        """Who judges, in a few words."""

    def judges(self, points: int) -> int:
        """How many judges there are for `points` points."""

    def check_points(
        self, X: Any, y: Any, labels: RawLabels | None = None, *, strangers: bool = False,
        first: int = 0, name: str = "X",
    ) -> SidePoints:  # fmt: skip
        """Points that match this side in width and classes; see `inputs.check_points`."""

    def plain_row(self, X: Any) -> NDArray[np.float64] | None:
        """The row of a plain array that has one, as `Mover.move` needs it; None for any other X."""

    def stored_points(self, rows: NDArray[Any], codes: Codes) -> SidePoints:
        """Points whose features a store has kept."""

    def prints(self, rows: Any, salt: NDArray[np.int64]) -> NDArray[np.uint64]:
        """A fingerprint of each row and of its integer in `salt`."""

    def twins(self, points: Any) -> NDArray[np.bool_]:
        """Which validation rows also occur among the points, if the side looks for that."""

    def warn_of_reach(self, *, stacklevel: int) -> None:
        """Warn that no point is in any cell."""

    def mover(self) -> Mover | None:
        """What counts single rows; None if they are counted as tables."""

    def near(self, neighbors: Neighbors = "auto") -> Neighborhood:
        """Which cells each point is in."""

    def counting(self) -> Sums:
        """What a point adds to its cells."""

    def owner_codes(self, owners: Codes, codes: Codes) -> NDArray[Any]:
        """Codes that say which owner and label a point has, as `owner_counting` needs them."""

    @property
    def owner_tables(self) -> int:
        """How many tables, each with the owners in order, make up the sums of a cell."""

    @property
    def owner_numbers(self) -> int:
        """How many numbers a cell takes for each owner while it is counted."""

    def owner_counting(self, owners: int) -> Sums:
        """What a point adds if `owners` owners are the players; see `games.owner_counts`."""

    def owner_games(self, sums: NDArray[Any], columns: slice, owners: int) -> Iterable[OwnerGames]:
        """The games among owners that these cells play when they have these sums."""

    def owner_cells(self) -> list[slice]:
        """The cells in fixed ranges, so that what owners are paid does not depend on the caller."""

    def with_counts(self, counts: NDArray[Any]) -> Self:
        """The same side, once all points were counted: `utility_none` may depend on them."""

    def utility(self, counts: NDArray[Any]) -> float:
        """The utility of all points that were counted."""

    def utility_none(self, judges: int) -> float:
        """The utility without points, for `judges` judges."""

    def prices(self, counts: NDArray[Any], semivalue: Semivalue) -> NDArray[Any]:
        """The table of a price list."""

    def check_prices(self, table: Any) -> NDArray[Any]:
        """`table`, if it can be that of a price list."""

    def read_counts(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts from a file, which an earlier version may have written."""

    def read_prices(self, table: Any) -> Any:
        """The table of a price list from a file, which an earlier version may have written."""

    def payment(
        self, table: NDArray[Any], semivalue: Semivalue, who: Who, label: int | None = None
    ) -> tuple[Game, NDArray[Any]]:
        """The game that pays points by the table of a price list, and the prices that it uses.

        With `label`, members are paid as if they had that class.
        """

    def label_payment(
        self, table: NDArray[Any], semivalue: Semivalue, who: Who
    ) -> tuple[LabelSums, NDArray[Any]]:
        """What `payment` returns, for every label at once."""

    def params(self, semivalue: str, *, mean: bool) -> dict[str, Any]:
        """What the record of a valuation says about the side."""

    def named(self, names: tuple[str, ...] | None) -> Self:
        """The same side, if the columns of the points may have these names."""

    def with_classes(
        self, classes: Classes, labels: Sequence[Hashable], *, strangers: bool = False
    ) -> Self:
        """The same side with other classes, and these labels of the validation points.

        With `strangers`, points may have labels that are not classes.
        """

    def settled(
        self, counts: NDArray[Any], before: Self, meaning: Mapping[Hashable, Hashable]
    ) -> NDArray[Any] | None:
        """Counts that were made with the classes of `before`, as this side would count.

        `meaning` says which class each label that was read stands for. None if everything must be
        counted again.
        """

    def identity(self) -> dict[str, Any]:
        """What tells it from other sides, in a few numbers and words, besides the classes."""

    def describe(self) -> dict[str, Any]:
        """What a file says about it, besides its arrays."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a file keeps of it."""

    def ranges(self) -> list[slice]:
        """Ranges of cells that go to workers one by one."""

    def some(self, block: slice) -> Self:
        """The side of some cells."""

    def footprint(self) -> Footprint:
        """What it takes in memory."""
