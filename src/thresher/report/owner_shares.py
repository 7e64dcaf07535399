"""What the owners of points are due: sums of values, and shares of a payout."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from thresher.errors import InputError
from thresher.report.phrases import brief
from thresher.valuation import Valuation

MOST_OWNERS = 200


@dataclass(frozen=True)
class OwnerLine:
    """One owner: its points, the sum of their values, and its share of a payout."""

    owner: str
    points: int
    value: float
    share: float


@dataclass(frozen=True)
class Owners:
    """Owners by value, the highest first."""

    lines: tuple[OwnerLine, ...]  # of more than 200 owners the first and the last hundred
    count: int  # owners in all
    negative: int  # those with a negative value, who are paid nothing
    total: float  # the sum of the positive values of owners, of which shares are taken
    name: ClassVar[str] = "owners"
    title: ClassVar[str] = "Owners"


def share_payout(valuation: Valuation) -> Owners:
    """Shares in proportion to the positive values of owners.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([3.0, 1.0, -2.0])
    >>> payout = share_payout(Valuation(values, "example", {}, 2.0, 0.0, ("a", "b", "c")))
    >>> [(line.owner, line.share) for line in payout.lines]
    [('a', 0.75), ('b', 0.25), ('c', 0.0)]
    """
    if valuation.owners is None:
        raise InputError("no owners were given")
    worth = valuation.by_owner()
    points = Counter(valuation.owners)
    total = sum(value for value in worth.values() if value > 0)
    lines = [
        OwnerLine(brief(owner), points[owner], value, max(value, 0.0) / total if total > 0 else 0.0)
        for owner, value in sorted(worth.items(), key=lambda entry: -entry[1])
    ]
    half = MOST_OWNERS // 2
    shown = lines if len(lines) <= MOST_OWNERS else lines[:half] + lines[-half:]
    negative = sum(line.value < 0 for line in lines)
    return Owners(tuple(shown), len(lines), negative, float(total))
