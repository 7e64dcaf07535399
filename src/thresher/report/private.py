"""What may be told of a private release: its budget, its prices, and what they are good for.

Nothing here looks at a private point: all of it follows from the record, the noisy table and the
public validation set, so that two sets of points with the same release have the same page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.price_list import PriceList
from thresher.privacy.prior import Public
from thresher.privacy.release import is_noise
from thresher.report.spread import bar_counts, bar_edges
from thresher.report.words import brief

MOST_CLASSES = 30
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bought:
    """How good the released values are expected to be, by what the release itself tells.

    Parameters
    ----------
    relative_error
        The expected root mean square error over the root mean square value.
    rank_agreement
        The expected rank correlation of released and exact values.
    zero_budget
        The same for the score that costs no budget at all.
    """

    relative_error: float
    rank_agreement: float
    zero_budget: float


@dataclass(frozen=True)
class Priced:
    """What the validation points of one class pay a point near them, on average."""

    label: str
    validation_points: int
    gain: float
    loss: float


@dataclass(frozen=True)
class PriceSpread:
    """The released prices, class by class and in bars.

    Parameters
    ----------
    classes, left_out
        By class of the validation point, and how many further classes there are.
    edges, gains, losses
        Bars: how many validation points pay so much to a point with their label, and to others.
    """

    classes: tuple[Priced, ...]
    left_out: int
    edges: tuple[float, ...]
    gains: tuple[int, ...]
    losses: tuple[int, ...]


@dataclass(frozen=True)
class Private:
    """A release as it may be told to anyone.

    Parameters
    ----------
    mechanism, noise, adjacency, unit, epsilon, delta, epsilon_add_remove, epsilon_replace_one
        What is guaranteed, and by what.
    seeded
        Whether a seed was given: such a release protects nobody.
    caveat
        What the guarantee does not cover; empty where there is nothing special.
    bought
        What the budget bought; None where the release cannot tell.
    why_not
        Then, the reason.
    prices
        The released prices; None for releases without prices.
    """

    mechanism: str
    noise: str
    adjacency: str
    unit: str
    epsilon: float
    delta: float
    epsilon_add_remove: float | None
    epsilon_replace_one: float | None
    seeded: bool
    caveat: str
    bought: Bought | None
    why_not: str
    prices: PriceSpread | None


def describe_release(release: Any) -> Private:
    """All that the page of a release may show."""
    about: Mapping[str, Any] = release.record
    prices: PriceList | None = release.price_list
    bought, why_not = _bought(release, prices)
    return Private(
        mechanism=str(about["mechanism"]),
        noise=str(about.get("noise", "")),
        adjacency=str(about["adjacency"]),
        unit=str(about["unit"]),
        epsilon=float(about["epsilon"]),
        delta=float(about["delta"]),
        epsilon_add_remove=about["epsilon_add_remove"],
        epsilon_replace_one=about["epsilon_replace_one"],
        seeded=bool(about["seeded"]),
        caveat=str(about.get("caveat", "")),
        bought=bought,
        why_not=why_not,
        prices=None if prices is None else _spread_prices(prices),
    )


def _bought(release: Any, prices: PriceList | None) -> tuple[Bought | None, str]:
    if prices is None:
        return None, "every value has noise of its own, and what they have in common is not public"
    error = release.relative_error
    public = Public.of(prices.validation, prices.radius)
    if public is None or math.isnan(error):
        return None, "the mechanism cannot tell its own error on this validation set"
    if is_noise(release.record, release.table):
        return None, (
            "its table cannot be told from noise, so that all it says is what the validation set "
            "says: the budget is too small for so few points near"
        )
    agreement, free = _agreements(release._drawn, prices, public)
    if math.isnan(agreement):
        return None, "all validation points would be worth the same"
    return Bought(error, agreement, free), ""


def _agreements(drawn: list[PriceList], prices: PriceList, public: Public) -> tuple[float, float]:
    """The expected rank agreement of the released prices, and of the zero-budget score.

    Validation points stand in for points. The exact prices are as likely to be any of those `drawn`
    as what the noise leaves possible.
    """
    share = 1 / len(prices.validation.classes)
    even = np.ones(len(prices.validation))
    released = public.values(prices.gain, prices.loss)
    free = public.values((1 - share) * even, -share * even)
    possible = [public.values(each.gain, each.loss) for each in drawn]
    with np.errstate(invalid="ignore"):
        found = [
            float(np.mean([rank_agreement(ours, truth) for truth in possible]))
            for ours in (released, free)
        ]
    return found[0], found[1]


def rank_agreement(ours: Floats, theirs: Floats) -> float:
    """Spearman's correlation, NaN where one side is constant.

    Examples
    --------
    >>> rank_agreement(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 4.0]))
    1.0
    """
    from scipy.stats import rankdata

    ranks, others = rankdata(ours), rankdata(theirs)
    if ranks.std() == 0 or others.std() == 0:
        return math.nan
    return float(np.corrcoef(ranks, others)[0, 1])


def _spread_prices(prices: PriceList) -> PriceSpread:
    codes, labels = prices.validation.codes, prices.validation.classes.labels
    sizes = np.bincount(codes, minlength=len(labels))
    shown = np.sort(np.argsort(-sizes, kind="stable")[: min(MOST_CLASSES, int((sizes > 0).sum()))])
    edges = bar_edges(np.concatenate([prices.gain, prices.loss]))
    return PriceSpread(
        tuple(_priced(brief(labels[code]), prices, codes == code) for code in shown.tolist()),
        int((sizes > 0).sum()) - len(shown),
        tuple(edges.tolist()),
        tuple(bar_counts(prices.gain, edges).tolist()),
        tuple(bar_counts(prices.loss, edges).tolist()),
    )


def _priced(label: str, prices: PriceList, which: NDArray[np.bool_]) -> Priced:
    gain, loss = (float(side[which].mean()) for side in (prices.gain, prices.loss))
    return Priced(label, int(which.sum()), gain, loss)
