"""What sides have in common if labels are classes, and if they are numbers to predict."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.games.owner_counts import OwnerTargets, owned_codes, target_codes
from thresher.games.semivalues import Semivalue
from thresher.games.targets import ENTRIES, Grid, Retargeted, growth, squared_errors, sums_of
from thresher.inputs.labels import Codes
from thresher.sides.protocol import Who

MEMBERS, NEWCOMERS, CHANGES = 0, 1, 2  # who is priced; how the value of a member changes


def check_table(table: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """`table`, if it can be a table of prices of this shape."""
    found = np.array(table, np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise InputError(f"table must hold {' x '.join(map(str, shape))} prices")
    return found


class ClassSide:
    """Sides by classes: the utility is that of a vote, and owners count points by class."""

    rings: ClassVar[int] = 1  # in which a cell counts its points

    @property
    def unit(self) -> float:
        """What the payments of games are multiplied by."""
        return 1.0

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

    def utility_none(self: Any, judges: int) -> float:
        """The utility without points: 1/C for each judge."""
        return float(judges / len(self.classes))


class NumberSide:
    """Sides by numbers: targets on a grid, priced by three coefficients."""

    # where points judge each other: the sum of the squared errors of `empty`, in steps, once all
    # points were counted
    nobody: int = 0

    @property
    def grid(self: Any) -> Grid:
        """The grid of targets."""
        return self.classes.grid

    @property
    def unit(self) -> float:
        """The square of a step."""
        return self.grid.step**2

    @property
    def empty_steps(self: Any) -> int:
        """The prediction for a row that no point is near, on the grid."""
        return int(self.grid.steps(np.array([self.empty]))[0])

    @property
    def targets(self: Any) -> NDArray[np.int64]:
        """The targets of the judges, in steps of the grid."""
        return self.codes.astype(np.int64)

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
        """How many numbers a cell takes for an owner: four sums and what follows, for each ring."""
        return int(3 * ENTRIES * self.rings)

    def owner_counting(self: Any, owners: int) -> OwnerTargets:
        """What a point adds: one more of its owner, with its target."""
        return OwnerTargets(owners, self.rings)

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
        return np.concatenate(each, axis=-1) * self.unit

    def utility(self: Any, counts: NDArray[Any]) -> float:
        """The utility of all points that were counted."""
        game = self.counting()
        found = sum(game.utility(counts[:, cells], cells) for cells in self.price_cells())
        return float(found * self.unit)

    def utility_none(self: Any, judges: int) -> float:
        """The utility without points: minus the squared errors of `empty`."""
        del judges
        errors = self.nobody
        if not self.holds_points:
            errors = squared_errors(sums_of(self.targets), self.empty_steps)
        return float(-float(errors) * self.unit)

    def check_prices(self: Any, table: Any) -> NDArray[np.float64]:
        """`table`, if it can be a table of prices."""
        return check_table(table, (3, 3, *self.price_shape))

    def payment(
        self: Any, table: NDArray[Any], semivalue: Semivalue, who: Who, label: int | None = None
    ) -> tuple[Any, NDArray[Any]]:
        """The game that pays points by a table of prices, and the prices that it uses."""
        if label is not None:
            game = Retargeted(self.targets, self.empty_steps, target=label)
            return game, np.concatenate([table[MEMBERS], table[CHANGES]])
        return self.counting(semivalue), table[MEMBERS if who == "members" else NEWCOMERS]

    @property
    def low(self: Any) -> float:
        """The lowest target."""
        return float(self.classes.bounds[0])

    def best(self: Any, paid: Floats, codes: Codes, who: Who) -> tuple[Floats, Floats]:
        """The targets with the largest values within the bounds, and these values.

        `paid` is what `payment` pays, for members with `label`. NaN if no cell pays.
        """
        base, slope, bend = paid[:3]
        now = codes.astype(np.float64)
        square, pull = -bend, slope
        if who == "members":
            square, pull = paid[3], paid[4] - paid[5] * now
        known = square > 0
        peak = np.divide(pull, 2 * square, out=np.full(len(now), np.nan), where=known)
        best = np.clip(peak, *self.classes.code_range)
        if who == "members":
            worth = base + now * (slope + now * bend) + growth(paid[3:], now, best)
        else:
            worth = base + best * (slope + best * bend)
        return self.classes.decode(best), worth
