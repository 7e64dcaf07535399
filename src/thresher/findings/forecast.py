"""How many labels are wrong, as far as the label shares of the others can tell.

The others in a point's leaves prefer one label, its own or another. Where they agree most, classes
do not overlap, so a point with another label is probably mislabeled. So the forecast takes, for
each class, the points for which the others prefer it, and of these the quarter where its share is
largest. That quarter shows how often such points carry each other label. The same rate is assumed
for all of them, but for no more points than the others contradict.

A quarter is a small sample: if it shows k points with a wrong label, it might as well have shown
sqrt(k + 1) more or fewer. So the forecast may move by that number of points toward a plain count:
that of the points that are contradicted nearly as clearly as most are confirmed. A margin is the
difference of the two shares. A point is contradicted clearly if its margin is at least 0.7 of the
median margin of all points for which the others prefer the same label.

Where classes overlap everywhere, there is no such quarter, and the forecast is too high. It is
called poor if the others prefer another label for more than a quarter of all points.

The forecast also says how many of the points that are called wrong should be. The lower the score s
of a point, the likelier its label is wrong: the odds are in proportion to ((1 - s) / s)^2, and such
that the chances of all points add up to the forecast. No chance is taken to be above 0.85.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from thresher.array_types import Array, Flags, Floats, Integers
from thresher.games.label_shares import LabelShares
from thresher.inputs.labels import Codes

SUREST = 0.25  # of the points of a class, those where its share is largest
CLEAR = 0.7  # of the median margin
OVERLAP = 0.25  # of all points, whose others prefer another label: more, and classes overlap
SHARPNESS = 2.0  # the power of the odds by which a score says that a label is wrong
MOST_SURE = 0.85  # the highest chance: those that seem to be higher are right no more often
CERTAIN = 0.001  # scores nearer to 0 and 1 say no more than this
HALVINGS = 50  # of the range of the level of chances
LEAST_RIGHT = 0.5  # of the points called wrong, for changing them without a look
LEAST_MARKED = 5  # points called wrong: of fewer, chance may be all of them


@dataclass(frozen=True, eq=False)
class Forecast:
    """How many labels are expected to be wrong."""

    by_label: Floats  # how many points of each class are expected to carry its label wrongly
    contradicted: float  # the share of points for which the others prefer another label
    marked: int = 0  # points that are called wrong
    right: float = 1.0  # the share of these whose label is expected to be wrong indeed

    @property
    def wrong(self) -> float:
        """How many labels are expected to be wrong."""
        return float(self.by_label.sum())

    @property
    def poor(self) -> bool:
        """Whether classes overlap so much that the forecast is probably too high."""
        return self.contradicted > OVERLAP

    def why_look(self) -> str:
        """Why nobody should change the points called wrong without a look; empty if one may.

        Examples
        --------
        >>> wrong = np.array([0.0, 9.0])
        >>> Forecast(wrong, 0.1, 9, 0.75).why_look(), Forecast(wrong, 0.1, 9, 0.25).why_look()
        ('', 'by the forecast, only about 25 % of the marked rows are wrong')
        """
        if self.poor:
            return "the forecast is poor, so most of the marked rows may be right"
        if self.right < LEAST_RIGHT:
            share = f"{100 * self.right:.0f} %"
            return f"by the forecast, only about {share} of the marked rows are wrong"
        if self.marked < LEAST_MARKED:
            return "the marked rows are so few that chance may be all of them"
        return ""

    def with_marks(self, scores: Floats, marked: Flags) -> Forecast:
        """The same, with how many of the points called wrong should be."""
        chances = _chances(scores, self.wrong)
        right = float(chances[marked].mean()) if marked.any() else 1.0
        return replace(self, marked=int(marked.sum()), right=right)


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
    The others are sure that all eight points are cats (0), but one is labeled a dog (1).

    >>> shares = LabelShares(
    ...     own=np.array([0.9] * 7 + [0.1]), other=np.array([0.1] * 7 + [0.9]),
    ...     best=np.array([1] * 7 + [0]), near=np.full(8, 5.0))
    >>> forecast_errors(shares, np.array([0] * 7 + [1]), 2)
    Forecast(by_label=array([0., 1.]), contradicted=0.125, marked=0, right=1.0)
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
    slack = np.sqrt(np.bincount(own[wrong], minlength=classes) + 1)
    clear = _clearly(shares, contradicted, preferred)
    plain, most = (np.bincount(own[which], minlength=classes) for which in (clear, contradicted))
    by_label = np.clip(plain, np.maximum(by_label - slack, 0), np.minimum(by_label + slack, most))
    return Forecast(by_label.astype(np.float64), float(contradicted.mean()))


def _chances(scores: Floats, wrong: float) -> Floats:
    """How likely each label is wrong, by scores and the number of wrong labels.

    Examples
    --------
    >>> _chances(np.array([0.1, 0.5, 0.9, 0.9]), 1.0).round(2).tolist()
    [0.85, 0.1, 0.0, 0.0]
    """
    kept = np.clip(scores, CERTAIN, 1 - CERTAIN)
    odds, ends = SHARPNESS * np.log((1 - kept) / kept), [-40.0, 40.0]
    for _ in range(HALVINGS):
        level = sum(ends) / 2
        ends[int((1 / (1 + np.exp(-odds - level))).sum() > wrong)] = level
    return np.minimum(1 / (1 + np.exp(-odds - ends[0])), MOST_SURE)


def _clearly(shares: LabelShares, contradicted: Flags, preferred: Integers) -> Flags:
    """Whether the others contradict a point nearly as clearly as they confirm most points."""
    margins = np.abs(shares.other - shares.own)
    _, places, counts = np.unique(preferred, return_inverse=True, return_counts=True)
    ordered, ends = margins[np.lexsort((margins, preferred))], np.cumsum(counts)
    middles = ends - counts + (counts - 1) // 2, ends - counts + counts // 2
    medians = (ordered[middles[0]] + ordered[middles[1]]) / 2
    return np.asarray(contradicted & (margins >= CLEAR * medians[places]), np.bool_)


def _highest(numbers: Floats, groups: Integers, classes: int) -> Flags:
    """The quarter of each group with the highest numbers; more if numbers are equal."""
    counts = np.ceil(SUREST * np.bincount(groups, minlength=classes))
    return lowest(-numbers, groups, counts)


def lowest(numbers: Floats, groups: Integers, counts: Array) -> Flags:
    """The `counts` members of each group with the lowest numbers; more if numbers are equal.

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
