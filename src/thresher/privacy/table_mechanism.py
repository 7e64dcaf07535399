"""The table mechanism: one joint release of the M x 2 counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from thresher.errors import InputError, option
from thresher.inputs.checks import check_choice, check_count, check_flag, check_number
from thresher.privacy.accountants import discrete_sigma
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import Setting
from thresher.privacy.entry_weights import EXPONENT, EntryWeights
from thresher.privacy.fitting import fitted, usual_bound
from thresher.privacy.noise import Noise
from thresher.privacy.public_rows import Public
from thresher.privacy.table_design import TableDesign

SPARED = 0.03  # of mu^2, for the count of units


@dataclass(frozen=True)
class Table:
    """One joint release of the M x 2 counts, with each unit clipped to sqrt(B) and Gaussian noise.

    Parameters
    ----------
    bound
        B, the squared length by which one unit may move the table. It is a number chosen without
        looking at the points, "usual", "certified" or "counted". "usual" fits the public number of
        points (`points=`) by a simulation on the validation set. Without that number, or without a
        prior, it is chosen so that a quarter of the validation points are near no more than B
        others, and `points=` changes nothing. "certified" is so large that nothing is ever clipped.
        "counted" fits a noisy count of the units, which takes a small part of the budget (T16).
    prior
        Whether to use the public validation set as a prior for the counts. A validation set that is
        too small, or without features, is not used. Then the record says "none".
    weights
        How much less noise counts get where few points are near, and how much more where many are,
        from 0 (the same noise everywhere) to 1. The noise is sigma / s_v with s_v = (p_v +
        1/R)^(-weights) for a share p_v of the R public rows near validation point v. B is then a
        squared weighted length (T15). The default is 0 if the bound is a number or "certified",
        which refer to unweighted lengths; otherwise 1/4, or epsilon if that is less.

    Examples
    --------
    >>> import thresher as th
    >>> from thresher.privacy import Table
    >>> release = th.dp_tknn_shapley(
    ...     [[1.0, 0.1], [0.1, 1.0]], ["yes", "no"], [[1.0, 0.0], [0.0, 1.0]], ["yes", "no"],
    ...     epsilon=1, delta=1e-5, mechanism=Table(bound="certified"), seed=0,
    ... )
    >>> release.record["mechanism"]
    'table'
    """

    bound: int | Literal["usual", "certified", "counted"] = "usual"
    prior: bool = True
    weights: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.bound, str):
            check_choice("bound", self.bound, ("usual", "certified", "counted"))
        else:
            object.__setattr__(self, "bound", check_count("bound", self.bound))
        object.__setattr__(self, "prior", check_flag("prior", self.prior))
        if self.weights is not None:
            object.__setattr__(
                self, "weights", check_number("weights", self.weights, least=0.0, most=1.0)
            )
        if self.weights and self.bound == "certified":
            raise InputError("weights cannot be used with bound='certified', which has no weights")

    def design(self, setting: Setting) -> TableDesign:
        """The mechanism fitted to a setting."""
        public = setting.public()
        entries = self._entries(setting, public)
        prior = public if self.prior else None
        if self.bound == "counted":
            _check_countable(setting, prior)
        bound = self._bound(setting, public, entries)
        if self.bound == "counted":
            return CountedDesign(setting, bound, prior, entries, spared=SPARED)
        return TableDesign(setting, bound, prior, entries)

    def _entries(self, setting: Setting, public: Public | None) -> EntryWeights:
        exponent = self.exponent
        if self.weights is None:  # less where noise drowns the counts: benchmarks/privacy.py
            exponent = min(exponent, setting.budget.epsilon)
        if exponent and public is not None:
            return EntryWeights.by_density(public.near, exponent)
        return EntryWeights.alike(setting.cells)

    @property
    def exponent(self) -> float:
        """The exponent of the weights of validation points; 0 if all weigh the same."""
        if self.weights is None:
            return EXPONENT if self.bound in {"usual", "counted"} else 0.0
        return self.weights

    def _bound(self, setting: Setting, public: Public | None, entries: EntryWeights) -> int:
        if not isinstance(self.bound, str):
            return self.bound
        if setting.validation.rows is None:
            raise InputError("bound must be given with metric='precomputed': Table(bound=...)")
        if self.bound == "certified":
            return setting.certified_bound()
        if public is None:
            return setting.plain_bound
        if setting.points is not None and self.prior:
            return fitted(TableDesign(setting, 1, public, entries), setting.points).bound
        return usual_bound(public, entries, setting.points_per_owner or 1)


def _check_countable(setting: Setting, prior: Public | None) -> None:
    if setting.points is not None:
        raise InputError(
            f"bound='counted' cannot be used with {option('points')}: "
            "a public number needs no noisy count"
        )
    if prior is None:
        raise InputError("bound='counted' needs the prior, and features of the validation points")


@dataclass(frozen=True)
class CountedDesign(TableDesign):
    """A table design whose bound follows from a noisy count; until then it has the usual bound.

    A part of mu^2 is spent on that count of the units. Everything after it depends on the noisy
    number and public data, as with `points=`, so the two costs add up to the budget (T16).
    """

    count: int | None = None  # with noise

    @property
    def count_sigma(self) -> float:
        """The sigma of the noise on the count: any change of one unit moves it by at most 1."""
        return discrete_sigma(1.0, self.budget_mu * math.sqrt(self.spared))

    @property
    def record(self) -> dict[str, Any]:
        """What the release record says; bound and sigma are None until they are known."""
        known = super().record | {"count": self.count, "count_sigma": self.count_sigma}
        return known if self.count is not None else known | {"bound": None, "sigma": None}

    def settled(self, contributions: Contributions, source: Noise) -> CountedDesign:
        """The design with the bound that fits a noisy count of the units."""
        noise = int(source.gaussian(self.count_sigma, 1)[0])
        return self._at(len(contributions.units) + noise)

    def recorded(self, record: Mapping[str, Any]) -> CountedDesign:
        """The design of a release with this record."""
        return self._at(int(record["count"]))

    def _at(self, count: int) -> CountedDesign:
        points = max(1, count) * (self.setting.points_per_owner or 1)
        return replace(fitted(self, points), count=count)
