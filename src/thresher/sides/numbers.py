"""What sides have in common where targets are numbers: sums, prices, and best targets."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.games.owner_targets import OwnerTargets, target_codes
from thresher.games.semivalues import Semivalue
from thresher.games.target_changes import Retargeted, growth
from thresher.games.targets import ENTRIES, Grid
from thresher.inputs.labels import Codes
from thresher.sides.protocol import Who

MEMBERS, NEWCOMERS, CHANGES = 0, 1, 2  # who is priced; how the value of a member changes


class NumberSide:
    """What sides have in common where targets are numbers: owners' sums, and pay by a table."""

    @property
    def grid(self: Any) -> Grid:
        """The grid of targets."""
        return self.classes.grid

    @property
    def empty_steps(self: Any) -> int:
        """The prediction where nobody is near, on the grid."""
        return int(self.grid.steps(np.array([self.empty]))[0])

    def target_record(self: Any) -> dict[str, Any]:
        """What files and results say of targets."""
        return {
            "task": "regression",
            "empty": self.empty,
            "bounds": list(self.classes.bounds),
            "grid": self.grid.record(),
        }

    def owner_codes(self, owners: Codes, codes: Codes) -> NDArray[Any]:
        """Codes that say whose a point is, and its target."""
        return target_codes(owners, codes)

    @property
    def owner_tables(self) -> int:
        """One for each sum."""
        return ENTRIES

    @property
    def owner_numbers(self) -> int:
        """Four sums, and what is made of them."""
        return 3 * ENTRIES

    def owner_counting(self, owners: int) -> OwnerTargets:
        """A point is one more of its owner, with its target."""
        return OwnerTargets(owners)

    def mover(self) -> Any:
        """Single rows are counted as tables."""

    def plain_row(self, X: Any) -> None:
        """Single rows are counted as tables."""
        del X

    def label_payment(self, *_: Any) -> NoReturn:
        """There are no classes."""
        raise InputError(
            "label_values is for classes: use best_targets, which gives the best target of each "
            "point, or values(..., label=) with another target"
        )

    @property
    def price_shape(self: Any) -> tuple[int, ...]:
        """Of one coefficient of all prices: one for each cell."""
        return (self.shape[1],)

    def check_prices(self: Any, table: Any) -> NDArray[np.float64]:
        """A table of prices."""
        found = np.array(table, np.float64)
        shape = 3, 3, *self.price_shape
        if found.shape != shape or not np.isfinite(found).all():
            raise InputError(f"table must hold {' x '.join(map(str, shape))} prices")
        return found

    def payment(
        self: Any, table: NDArray[Any], semivalue: Semivalue, who: Who, label: int | None = None
    ) -> tuple[Any, NDArray[Any]]:
        """The game that pays points by a table of prices, and what it pays by."""
        if label is not None:
            game = Retargeted(self.codes.astype(np.int64), self.empty_steps, target=label)
            return game, np.concatenate([table[MEMBERS], table[CHANGES]])
        return self.counting(semivalue), table[MEMBERS if who == "members" else NEWCOMERS]

    @property
    def low(self: Any) -> float:
        """The lowest target."""
        return float(self.classes.bounds[0])

    def best(self: Any, paid: Floats, codes: Codes, who: Who) -> tuple[Floats, Floats]:
        """The targets with the largest values within the bounds, and these values.

        `paid` is what `payment` pays, for members with `label`. NaN where nobody pays.
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
