"""The table mechanism with a noisy count first: the bound fits the number of units it tells.

A part of mu^2 is spent on the number of units, points or owners. What follows is chosen by that
noisy number and public data, as with `points=`, so that the two add up to the budget (T16).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from thresher.errors import InputError, option
from thresher.privacy.accountants import discrete_sigma
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import Setting
from thresher.privacy.entry_weights import EntryWeights
from thresher.privacy.fitting import usual_bound
from thresher.privacy.noise import Noise
from thresher.privacy.public_rows import Public
from thresher.privacy.table_design import TableDesign

SPARED = 0.03  # of mu^2, for the count


@dataclass(frozen=True)
class CountedDesign(TableDesign):
    """A table whose bound waits for the count; until then it has the usual one."""

    count: int | None = None  # with noise

    @property
    def count_sigma(self) -> float:
        """Of the noise on the count: every change of one unit moves it by at most 1."""
        return discrete_sigma(1.0, self.budget_mu * math.sqrt(self.spared))

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says of it: bound and sigma only once they are known."""
        known = super().record | {"count": self.count, "count_sigma": self.count_sigma}
        return known if self.count is not None else known | {"bound": None, "sigma": None}

    def settled(self, contributions: Contributions, source: Noise) -> CountedDesign:
        """With the bound that fits a noisy count of the units."""
        noise = int(source.gaussian(self.count_sigma, 1)[0])
        return self._at(len(contributions.units) + noise)

    def recorded(self, record: Mapping[str, Any]) -> CountedDesign:
        """The design of a release with this record."""
        return self._at(int(record["count"]))

    def _at(self, count: int) -> CountedDesign:
        points = max(1, count) * (self.setting.points_per_owner or 1)
        return replace(self.fitted(points), count=count)


def counted_design(setting: Setting, public: Public | None, entries: EntryWeights) -> CountedDesign:
    """The design before anything is counted."""
    if setting.points is not None:
        raise InputError(
            f"bound='counted' cannot be used with {option('points')}: "
            "a public number needs no noisy count"
        )
    if public is None:
        raise InputError("bound='counted' needs the prior, and features of the validation points")
    bound = usual_bound(public, entries, setting.points_per_owner or 1)
    return CountedDesign(setting, bound, public, entries, spared=SPARED)
