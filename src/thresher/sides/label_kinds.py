"""What sides have in common if labels are classes, and if they are numbers to predict."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.games.owner_counts import OwnerTargets, owned_codes, target_codes
from thresher.games.semivalues import Semivalue
from thresher.games.targets import (
    CENTER,
    MEMBERS,
    NEWCOMERS,
    PRICES,
    Retargeted,
    check_kept,
    moved,
    with_changes,
    with_slopes,
)
from thresher.inputs.grids import Grid
from thresher.inputs.labels import Codes
from thresher.kernels.target_sums import ENTRIES, FIRSTS
from thresher.passes.walk import value
from thresher.sides.protocol import Who


def check_table(table: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """`table`, if it can be a table of prices of this shape."""
    found = np.array(table, np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise InputError(f"table must hold {' x '.join(map(str, shape))} prices")
    return found


class ClassSide:
    """Sides by classes: the utility is that of a vote, and owners count points by class."""

    rings: ClassVar[int] = 1  # in which a cell counts its points

    def __len__(self: Any) -> int:
        return len(self.codes)

    def task_record(self: Any) -> dict[str, Any]:
        """What results say about labels."""
        return {"classes": list(self.classes.labels)}

    def owner_codes(self: Any, owners: Codes, codes: Codes) -> NDArray[Any]:
        """Codes that say which owner and which class a point has."""
        return owned_codes(owners, codes, len(self.classes) + 1)

    @property
    def owner_numbers(self: Any) -> int:
        """How many numbers a cell takes for an owner: two counts per class, and sums, per ring."""
        return int((2 * (len(self.classes) + 1) + 4) * self.rings)

    def with_counts(self, counts: NDArray[Any]) -> Self:
        """The same side, whatever was counted."""
        del counts
        return self

    def read_counts(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts from a file."""
        return counts

    def read_prices(self, table: Any) -> Any:
        """Prices from a file."""
        return table

    def utility_none(self: Any, judges: int) -> float:
        """The utility without points: 1/C for each judge."""
        return float(judges / len(self.classes))


class NumberSide:
    """Sides by numbers: targets on a grid, priced by three coefficients."""

    # where points judge each other: the sum of the squared errors of `empty`, once all points were
    # counted
    nobody: float = 0.0

    @property
    def grid(self: Any) -> Grid:
        """The grid of targets."""
        return self.classes.grid

    @property
    def none(self: Any) -> float:
        """The prediction where no point is near, on the grid and relative to its origin."""
        return float(self.grid.rounded(np.array([self.empty]))[0])

    @property
    def targets(self: Any) -> NDArray[np.float64]:
        """The targets of the judges, on the grid and relative to its origin."""
        return self.grid.numbers(self.codes)

    def task_record(self: Any) -> dict[str, Any]:
        """What files and results say about targets."""
        return {
            "task": "regression",
            "empty": self.empty,
            "bounds": list(self.classes.bounds),
            "grid": self.grid.record(),
        }

    def describe(self) -> dict[str, Any]:
        """What a file says about it, besides its arrays."""
        about: dict[str, Any] = super().describe()  # type: ignore[misc]
        return {**about, **self.task_record()}

    def owner_codes(self, owners: Codes, codes: Codes) -> NDArray[Any]:
        """Codes that say which owner and which target a point has."""
        return target_codes(owners, codes)

    @property
    def owner_tables(self) -> int:
        """How many tables there are: one for each sum."""
        return ENTRIES

    @property
    def owner_numbers(self: Any) -> int:
        """How many numbers a cell takes for an owner: sums and what follows, for each ring."""
        return int(3 * ENTRIES * self.rings)

    def owner_counting(self: Any, owners: int) -> OwnerTargets:
        """What a point adds: one more of its owner, with its target."""
        return OwnerTargets(owners, self.grid, self.rings)

    def mover(self) -> Any:
        """Single rows are counted as tables."""

    def plain_row(self, X: Any) -> None:
        """Single rows are counted as tables."""
        del X

    def label_payment(self, *_: Any) -> NoReturn:
        """Refused: there are no classes."""
        raise InputError(
            "label_values is for classes: use best_targets, which gives the best target of each "
            "point, or values(..., label=) with another target"
        )

    def settled(self, counts: NDArray[Any], *_: Any) -> NDArray[Any]:
        """The counts as they are: targets mean what they say."""
        return counts

    def price_cells(self) -> list[slice]:
        """The cells, in the ranges in which they are priced."""
        return [slice(None)]

    def prices(self: Any, counts: NDArray[Any], semivalue: Semivalue) -> NDArray[np.float64]:
        """What cells pay to members and newcomers, and what members gain by other targets."""
        game, sums = self.counting(semivalue), np.asarray(counts)
        each = [game.all_prices(sums[:, cells], cells) for cells in self.price_cells()]
        return np.concatenate(each, axis=-1)

    def utility(self: Any, counts: NDArray[Any]) -> float:
        """The utility of all points that were counted."""
        game = self.counting()
        found = sum(game.utility(counts[:, cells], cells) for cells in self.price_cells())
        return float(found)

    def utility_none(self: Any, judges: int) -> float:
        """The utility without points: minus the squared errors of `empty`."""
        del judges
        if self.holds_points:
            return -float(self.nobody)
        return -math.fsum((self.targets - self.none) ** 2)

    def check_prices(self: Any, table: Any) -> NDArray[np.float64]:
        """`table`, if it can be a table of prices."""
        return check_table(table, (PRICES, *self.price_shape))

    def read_counts(self: Any, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts from a file; of those that version 1 wrote, the sum had one part, squares two."""
        if counts.shape == tuple(self.shape):
            return counts
        number, first, high, low = counts.reshape(4, -1, counts.shape[-1])
        found = np.zeros((ENTRIES, *number.shape), np.int64)
        found[0], found[1], found[1 + FIRSTS], found[2 + FIRSTS] = number, first, low, high
        return found.reshape(self.shape)

    def read_prices(self: Any, table: Any) -> Any:
        """Prices from a file; version 1 had them in steps, around the center of the grid."""
        old = np.asarray(table, np.float64)
        if old.shape != (3, 3, *self.price_shape):
            return table
        step = self.grid.step
        units = np.array([[1.0, step, step**2]] * 2 + [[step**2, step, step**2]])
        found = old / units.reshape(3, 3, *(1,) * (old.ndim - 2))
        return np.concatenate(
            [found.reshape(9, *self.price_shape), np.zeros((1, *self.price_shape))]
        )

    def payment(
        self: Any, table: NDArray[Any], semivalue: Semivalue, who: Who, label: int | None = None
    ) -> tuple[Any, NDArray[Any]]:
        """The game that pays points by a table of prices, and the prices that it uses."""
        if label is not None:
            target = float(self.grid.numbers(np.array([label]))[0])
            game = Retargeted(self.targets, self.none, self.grid, target=target)
            return game, with_changes(table)
        rows = MEMBERS if who == "members" else NEWCOMERS
        return self.counting(semivalue), np.concatenate([table[rows], table[CENTER:]])

    def best(self: Any, table: NDArray[Any], points: Any, who: Who) -> tuple[Floats, Floats]:
        """The targets with the largest values within the bounds, and these values.

        NaN if no cell pays. What newcomers are paid is looked at from the middle of the judges, and
        then from near the best target: from far off, it would be lost to rounding.
        """
        game = Retargeted(self.targets, self.none, self.grid)
        prices = with_changes(table) if who == "members" else with_slopes(table)
        best, worth = self._best(game, points, prices, who)
        if who == "newcomers":
            near = np.where(np.isnan(best), self.middle, best)
            codes: Any = self.grid.codes(near)
            best, worth = self._best(game, dataclasses.replace(points, codes=codes), prices, who)
        return best, worth

    def _best(
        self: Any, game: Any, points: Any, prices: NDArray[Any], who: Who
    ) -> tuple[Floats, Floats]:
        """The best targets as seen from those that the points have."""
        paid = value(points, self.near(), game, prices, last=False)
        now, origin = self.grid.numbers(points.codes), self.grid.origin
        peak = np.divide(paid[1], 2 * paid[2], out=np.full(len(now), np.nan), where=paid[2] > 0)
        low, high = (bound - origin for bound in self.classes.bounds)
        best = np.clip(now + peak, low, high)
        some = ~np.isnan(best)
        if who == "members":
            known = np.append(self.targets, [*now, *best[some], self.none])
            check_kept(paid[:, some], (best - now)[some], known)
        return best + origin, moved(paid, best - now)

    @property
    def middle(self: Any) -> float:
        """A target in the middle of those of most judges, or the prediction of nobody."""
        found = np.median(self.targets) if len(self.targets) else self.none
        return float(found + self.grid.origin)
