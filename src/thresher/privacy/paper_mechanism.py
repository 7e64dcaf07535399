"""The paper's mechanism, correctly accounted for, and its variants."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from thresher.array_types import Floats, Integers
from thresher.errors import InputError, either, option
from thresher.inputs.checks import check_choice, check_flag, check_number
from thresher.price_list import NEWCOMER, PriceList
from thresher.privacy.accountants import (
    Adjacency,
    Cost,
    Filter,
    Unit,
    discrete_sigma,
    sampled_epsilon,
    sampled_multiplier,
)
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import DRAWS, Design, Setting
from thresher.privacy.noise import Noise

SCALE = 16  # parts of one that the noise is a whole number of
CAVEAT = "prices points next to a sample, so values are too large, though their order holds"


@dataclass(frozen=True)
class Paper:
    """The paper's mechanism: counts of a Poisson sample, each with Gaussian noise, rounded.

    Parameters
    ----------
    rate
        The probability with which a point is in a sample.
    counts
        "three" counts the sample, near points, and near points with the label (sensitivity sqrt 3),
        as in the paper. "disjoint" counts near points with the label and near points with another
        label (sensitivity 1).
    sample
        "fresh" draws one sample for each validation point, so M releases compose. "shared" draws
        one for all.
    rescale
        Divide the noisy counts by the rate, so that values are those of all points, not of a
        sample. Otherwise every point is priced as an addition to the sample.

    Examples
    --------
    >>> import thresher as th
    >>> from thresher.privacy import Paper
    >>> release = th.dp_tknn_shapley(
    ...     [[1.0, 0.1], [0.1, 1.0]], ["yes", "no"], [[1.0, 0.0], [0.0, 1.0]], ["yes", "no"],
    ...     epsilon=1, delta=1e-5, mechanism=Paper(rate=0.5), seed=0,
    ... )
    >>> release.record["mechanism"]
    'paper'
    """

    rate: float = 0.01
    counts: Literal["three", "disjoint"] = "three"
    sample: Literal["fresh", "shared"] = "fresh"
    rescale: bool = False

    def __post_init__(self) -> None:
        rate = check_number("rate", self.rate, least=1e-6, most=0.999)
        object.__setattr__(self, "rate", rate)
        check_choice("counts", self.counts, ("three", "disjoint"))
        check_choice("sample", self.sample, ("fresh", "shared"))
        object.__setattr__(self, "rescale", check_flag("rescale", self.rescale))

    def design(self, setting: Setting) -> PaperDesign:
        """The mechanism fitted to a setting."""
        if setting.unit == "owner":
            ours = f"{option('mechanism', 'table')} and {either(repr('cells'), 'cells')}"
            raise InputError(f"only {ours} can protect all points of an owner together")
        return PaperDesign(setting, self)


@dataclass(frozen=True)
class PaperDesign(Design):
    """The paper's mechanism as planned: Gaussian counts of Poisson samples, composed over steps."""

    setting: Setting
    options: Paper

    @property
    def steps(self) -> int:
        """How many releases compose: one for each fresh sample."""
        return len(self.setting.validation) if self.options.sample == "fresh" else 1

    @property
    def sensitivity(self) -> float:
        """The sensitivity of one step to a point in its sample."""
        per_validation_point = 3 if self.options.counts == "three" else 1
        return math.sqrt(per_validation_point * len(self.setting.validation) / self.steps)

    @cached_property
    def multiplier(self) -> float:
        """The ratio of noise to sensitivity."""
        return sampled_multiplier(
            self.setting.budget, self.options.rate, self.steps, self.setting.adjacency
        )

    @property
    def sigma(self) -> float:
        """The sigma of the noise on the scaled counts."""
        return discrete_sigma(SCALE * self.sensitivity, 1 / self.multiplier)

    @property
    def untold(self) -> str:
        """Why there is no error: samples change values, and rescaled counts are mostly noise."""
        if self.options.rescale:
            return "counts divided by the rate are mostly noise, and no prior says what they were"
        return f"the paper's mechanism {CAVEAT}"

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says about the mechanism."""
        return {
            "mechanism": "paper",
            "noise": "discrete Gaussian",
            "sigma": self.sigma / SCALE,
            "bound": None,
            "scale": SCALE,
            "scheme": f"{self.options.sample} Poisson sample{'s' * (self.steps > 1)}",
            "rate": self.options.rate,
            "counts": self.options.counts,
            "rescaled": self.options.rescale,
            **({} if self.options.rescale else {"caveat": CAVEAT}),
        }

    def cost(self, adjacency: Adjacency, unit: Unit, filter: Filter) -> Cost:  # noqa: A002, ARG002
        """The cost as an (epsilon, delta) pair: a Gaussian filter cannot hold sampled releases."""
        return Cost(epsilon=self.epsilon(adjacency, unit), delta=self.setting.budget.delta)

    def epsilon(self, adjacency: Adjacency, unit: Unit) -> float:  # noqa: ARG002
        """The epsilon according to dp-accounting; the unit is always a point."""
        budget = self.setting.budget
        if adjacency == self.setting.adjacency:
            return budget.epsilon
        return sampled_epsilon(
            budget.delta, self.options.rate, self.multiplier, self.steps, adjacency
        )

    def noise(self, source: Noise) -> Integers:
        """Three or two discrete Gaussians for each validation point."""
        m = len(self.setting.validation)
        kinds = 3 if self.options.counts == "three" else 2
        return source.gaussian(self.sigma, kinds * m).reshape(kinds, m)

    def measure(self, contributions: Contributions, source: Noise) -> Integers:
        """The scaled counts over Poisson samples."""
        shared = self.options.sample == "shared"
        return self._scaled(*contributions.sampled_counts(source, self.options.rate, shared=shared))

    def footprint(self, contributions: Contributions) -> Integers:
        """The scaled counts over all points."""
        same, other = contributions.counts(np.ones(len(contributions.units), np.int64))
        return self._scaled(np.full_like(same, len(contributions.points)), same, other)

    def _scaled(self, sizes: Integers, same: Integers, other: Integers) -> Integers:
        rows = [sizes, same + other, same] if self.options.counts == "three" else [same, other]
        return SCALE * np.array(rows)

    def prices(self, release: Integers) -> PriceList:
        """Prices at the released counts, rounded to the nearest possible ones."""
        return self._prices(release / SCALE)

    def drawn_prices(self, release: Integers) -> list[PriceList]:
        """Prices at the released counts minus newly drawn noise."""
        found, random = release / SCALE, np.random.default_rng(0)
        spread = self.sigma / SCALE
        noisy = [found - spread * random.standard_normal(found.shape) for _ in range(DRAWS)]
        return [self._prices(draw) for draw in noisy]

    def _prices(self, found: Floats) -> PriceList:
        whole = np.maximum(np.rint(found), 0)
        if self.options.counts == "three":
            same = np.minimum(whole[2], whole[1])
            other = whole[1] - same
        else:
            same, other = whole
        if self.options.rescale:
            return self.setting.prices((same / self.options.rate, other / self.options.rate))
        plain = self.setting.prices((same, other))
        newcomer = np.repeat(plain.table[NEWCOMER][None], len(plain.table), axis=0)
        return replace(plain, table=newcomer, scaled=False)
