"""What may be said about a private release: its budget, its prices, and how good they are.

Nothing here looks at a private point: all of it follows from the record, the noisy table and the
public validation set, so that two sets of points with the same release have the same page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from thresher.price_list import PriceList
from thresher.report.charts import Chart, bars
from thresher.report.distribution import bar_counts, bar_edges
from thresher.report.phrases import brief, fixed, percent
from thresher.report.subject import shortlist
from thresher.report.verdict import Verdict
from thresher.sides.ball_side import BALL

MOST_CLASSES = 30


@dataclass(frozen=True)
class Bought:
    """How good the released values are expected to be, as far as the release itself says."""

    relative_error: float  # root mean square error over the root mean square value
    rank_agreement: float  # rank correlation of released and exact values
    zero_budget: float  # the same for the score that costs no budget at all


@dataclass(frozen=True)
class Priced:
    """What the validation points of one class pay a point near them, on average."""

    label: str
    validation_points: int
    gain: float
    loss: float


@dataclass(frozen=True)
class PriceSpread:
    """The released prices, class by class and in bars."""

    classes: tuple[Priced, ...]  # by class of the validation point
    left_out: int  # further classes
    edges: tuple[float, ...]
    gains: tuple[int, ...]  # how many validation points pay so much to a point with their label
    losses: tuple[int, ...]  # and to others
    name: ClassVar[str] = "prices"
    title: ClassVar[str] = "Prices"

    def charts(self) -> list[tuple[str, Chart]]:
        """The released prices in bars."""
        found, said = [], "Distribution of what validation points pay a row with"
        for counts, label, whom in (
            (self.gains, "the same label", "their label"),
            (self.losses, "another label", "another label"),
        ):
            chart = bars(self.edges, counts, f"{said} {whom}", "price", "validation points")
            found.append((f"Paid to a point with {label}", chart))
        return found


@dataclass(frozen=True)
class PrivateRelease:
    """A release as it may be shown to anyone."""

    record: Mapping[str, Any]  # what is guaranteed, and by what
    bought: Bought | None
    why_not: str  # where the release cannot tell what the budget bought
    prices: PriceSpread | None  # None for releases without prices
    no_better: bool = False  # in ranks, than the score that costs no budget
    name: ClassVar[str] = "bought"
    title: ClassVar[str] = "What the budget bought"

    def tiles(self) -> list[tuple[str, str, str]]:
        """The numbers at the top of the page."""
        about = self.record
        return [
            ("epsilon", f"{about['epsilon']:g}", ""),
            ("delta", f"{about['delta']:g}", ""),
            ("adjacency", about["adjacency"], ""),
            ("protects each", about["unit"], ""),
            ("mechanism", about["mechanism"], about.get("noise", "")),
        ]

    def cautions(self) -> tuple[str, ...]:
        """What speaks against relying on it."""
        found, caveat = [], self.record.get("caveat", "")
        if self.record["seeded"]:
            found.append(
                "A seed was given, so this release protects nobody: it is for trials only."
            )
        if caveat:
            found.append(f"The mechanism {self.record['mechanism']} {caveat}.")
        if self.bought is None:
            found.append(f"It is not known what the budget bought: {self.why_not}.")
        if self.no_better:
            found.append(
                "The score that costs no budget may rank points as well or better: spend more, or "
                "nothing."
            )
        return tuple(found)

    def verdict(self) -> Verdict:
        """The result in a sentence, and what to do."""
        about = self.record
        budget = f"epsilon = {about['epsilon']:g}, delta = {about['delta']:g}"
        said = f"A release at {budget}, {about['adjacency']}, that protects each {about['unit']}"
        steps: tuple[str, ...] = (
            "Publish the price list: it is what was released, and anyone may hold it.",
            "Let each owner value its own points with it (thresher appraise); a list of "
            "everybody's values is not covered by the guarantee.",
        )
        if self.prices is None:
            steps = ("Tell each owner the values of its own points, and nobody else.",)
        if about["seeded"]:
            said = f"A trial release at {budget} that protects nobody, since a seed was given"
            steps = ("Release again without a seed before anything leaves your hands.",)
        bought = self.bought
        if bought is None:
            return Verdict(f"{said}; it is not known how good its values are.", steps)
        against = "better" if bought.rank_agreement > bought.zero_budget else "no better"
        return Verdict(
            f"{said}: values are expected to be off by {percent(bought.relative_error)} and to "
            f"rank points with an agreement of {fixed(bought.rank_agreement)} with the exact ones, "
            f"{against} than the {fixed(bought.zero_budget)} that costs no budget at all.",
            steps,
        )


def describe_release(release: Any) -> PrivateRelease:
    """All that the page of a release may show."""
    prices: PriceList | None = release.price_list
    bought, why_not = _bought(release, prices)
    spread = _spread_prices(prices) if prices is not None and prices.side.kind == BALL else None
    no_better = prices is not None and bool(release.warning)
    return PrivateRelease(release.record, bought, why_not, spread, no_better)


def _bought(release: Any, prices: PriceList | None) -> tuple[Bought | None, str]:
    """How good the values are, or why that is not known.

    Validation points stand in for points.
    """
    if prices is None:
        return None, "every value has its own noise, and what they have in common is not public"
    error = release.relative_error
    if release.is_noise:
        return None, (
            "its table cannot be told from noise, so it says only what the validation set says: "
            "the budget is too small for so few near points"
        )
    if error is None:
        return None, release.why_untold
    if release.ranks is None:
        return None, "all validation points would be worth the same"
    return Bought(error, *release.ranks), ""


def _spread_prices(prices: PriceList) -> PriceSpread:
    codes, labels = prices.validation.codes, prices.validation.classes.labels
    sizes = np.bincount(codes, minlength=len(labels))
    present = np.flatnonzero(sizes)
    shown = shortlist(present, sizes[present], MOST_CLASSES)
    lines, sides = [], (prices.gain, prices.loss)
    for code in shown.tolist():
        means = (float(side[codes == code].mean()) for side in sides)
        lines.append(Priced(brief(labels[code]), int(sizes[code]), *means))
    edges = bar_edges(np.concatenate(sides))
    gains, losses = (tuple(bar_counts(side, edges).tolist()) for side in sides)
    left_out = len(present) - len(shown)
    return PriceSpread(tuple(lines), left_out, tuple(edges.tolist()), gains, losses)
