"""The result if owners are the players: one value per owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from thresher.errors import InputError
from thresher.valuation import Valuation


@dataclass(frozen=True, eq=False, repr=False)
class OwnerValuation(Valuation):
    """What each owner is worth in a game whose players are owners, not points.

    It is a `Valuation` with owners in place of points: `owners` has their names in order of first
    appearance, and `values` has one number for each. Files, frames and `efficiency_gap` are the
    same. `report(path)` writes a page of owners, for which it takes no points.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> found = th.OwnerValuation(np.array([0.5, 0.25]), "example", {}, 1.25, 0.5, ("ann", "bob"))
    >>> found
    OwnerValuation(example, 2 owners, sum=0.75)
    >>> found.by_owner()
    {'ann': 0.5, 'bob': 0.25}
    """

    file_format: ClassVar[str] = "thresher.owner-valuation/1"
    players: ClassVar[str] = "owners"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.owners is None or len(set(self.owners)) != len(self.values):
            raise InputError("an OwnerValuation has one value for each of its owners")

    def by_owner(self) -> dict[Any, float]:
        """The value of each owner in the game among owners, in order of appearance.

        It is not the sum of the values of the owner's points, which `Valuation.by_owner` gives.
        """
        assert self.owners is not None  # noqa: S101 - checked above
        return dict(zip(self.owners, self.values.tolist(), strict=True))
