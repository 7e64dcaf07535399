"""How many labels are wrong, as far as the label shares of the others can tell.

The others in a point's leaves prefer one label, its own or another. Where they are most at one,
classes do not overlap, so that a point with another label is probably mislabeled. So, for each
class: of the points for which the others prefer it, the quarter where its share is largest shows
how often such points carry each other label. That rate is taken for all of them, up to as many as
the others contradict.

Where classes overlap everywhere, there is no such quarter, and the forecast is too high. It is
called poor if the others prefer another label for more than a quarter of all points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.games.label_shares import LabelShares
from thresher.labels import Codes

SUREST = 0.25  # of the points of a class, those where its share is largest
OVERLAP = 0.25  # of all points, whose others prefer another label: more, and classes overlap

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Forecast:
    """How many labels are expected to be wrong.

    Parameters
    ----------
    by_label
        How many points of each class are expected to carry its label wrongly.
    contradicted
        The share of points for which the others prefer another label.
    """

    by_label: Floats
    contradicted: float

    @property
    def wrong(self) -> float:
        """How many labels are expected to be wrong."""
        return float(self.by_label.sum())

    @property
    def poor(self) -> bool:
        """Whether classes overlap so much that the forecast is probably too high."""
        return self.contradicted > OVERLAP


def forecast_errors(shares: LabelShares, codes: Codes, classes: int) -> Forecast:
    """How many points of each class are mislabeled.

    Parameters
    ----------
    shares
        What the others say about each point.
    codes, classes
        The label of each point as a number, and how many classes there are.

    Examples
    --------
    Eight points whose others are sure that they are cats (0); one of them is called a dog (1).

    >>> shares = LabelShares(
    ...     own=np.array([0.9] * 7 + [0.1]), other=np.array([0.1] * 7 + [0.9]),
    ...     best=np.array([1] * 7 + [0]), near=np.full(8, 5.0))
    >>> forecast_errors(shares, np.array([0] * 7 + [1]), 2)
    Forecast(by_label=array([0., 1.]), contradicted=0.125)
    """
    own = codes.astype(np.int64)
    contradicted = shares.other > shares.own
    preferred = np.where(contradicted, shares.best, own)
    surest = _highest(np.maximum(shares.own, shares.other), preferred, classes)
    every, counted = (
        np.bincount(preferred[which], minlength=classes) for which in (slice(None), surest)
    )
    times = every / np.maximum(counted, 1)  # the points that one of the surest ones stands for
    wrong = surest & contradicted
    by_label = np.bincount(own[wrong], times[preferred[wrong]], minlength=classes)
    most = np.bincount(own[contradicted], minlength=classes)
    return Forecast(np.minimum(by_label, most).astype(np.float64), float(contradicted.mean()))


def _highest(numbers: Floats, groups: NDArray[np.int64], classes: int) -> Flags:
    """A quarter of each group, those with the highest numbers; more where numbers are equal."""
    counts = np.ceil(SUREST * np.bincount(groups, minlength=classes))
    return lowest(-numbers, groups, counts)


def lowest(numbers: Floats, groups: NDArray[np.int64], counts: NDArray[Any]) -> Flags:
    """So many members of each group, those with the lowest numbers; more where these are equal.

    Examples
    --------
    >>> lowest(np.array([3.0, 1.0, 1.0, 2.0]), np.array([0, 0, 0, 1]), np.array([1, 0]))
    array([False,  True,  True, False])
    """
    order = np.lexsort((numbers, groups))
    sizes = np.bincount(groups, minlength=len(counts))
    last = np.minimum(counts, sizes).astype(np.int64) - 1
    some = last >= 0
    limits = np.full(len(counts), -np.inf)
    limits[some] = numbers[order][(np.cumsum(sizes) - sizes + last)[some]]
    return np.asarray(numbers <= limits[groups], np.bool_)
