"""What a release gives: values for owners, prices and record for everyone, and its own error."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from thresher.array_types import Array, Floats, Integers
from thresher.errors import InputError
from thresher.files import write_text
from thresher.hooks import write_page
from thresher.privacy.contributions import Contributions
from thresher.privacy.design import Design
from thresher.privacy.names import number_owners
from thresher.privacy.private_points import PrivatePoints
from thresher.ranking import rank_agreement

FORMAT = "thresher.release/1"
MOST_MISFIT = 4.0  # of points and validation set, as a multiple of what chance gives
UNLIKE = (
    "the points differ from the validation set by more than chance, so that it does not show how "
    "far off their values are"
)
TAILS, WIDE = (0.1, 0.9), 3.0  # errors within them may differ by this factor
UNSURE = (
    "it leaves too much open for a figure: errors that differ by more than a factor of "
    f"{WIDE:g} are likely"
)
NO_BETTER = "zero_budget_score, which is free, may rank points as well or better"
STEPS = 2.0  # expected errors on each side of an interval; measured to hold about 9 in 10


@dataclass(frozen=True)
class Error:
    """How far off private values are, estimated from the release itself at no cost."""

    # the expected root mean square error over the root mean square value, for points like the
    # validation points
    relative: float | None
    deviation: Floats  # the expected error of each value
    # low, high: the ends of an interval of two expected errors on each side. With epsilon up to
    # 1 and up to 2,000 points it held the exact value about 9 times in 10 (docs/privacy.md).
    # NaN where a mechanism cannot tell.
    low: Floats
    high: Floats
    # why no error can be told, where `relative` is None: the paper's samples, no prior, owners
    # of unknown size, a table that cannot be told from noise, points unlike the validation set,
    # validation points near no other, or likely errors that differ too much
    why: str = ""

    def __repr__(self) -> str:
        if self.relative is None:
            return f"Error(unknown: {self.why})"
        return f"Error(relative={self.relative:.3g}, {len(self.low)} intervals)"


class _Outcome:
    """What a release and a seeded release have in common."""

    stored = False
    record: Mapping[str, Any]
    price_list: Any
    _private: PrivatePoints
    values: Floats  # one a point, in input order; each is for the owner of that point alone

    def __init__(
        self, design: Design, table: Integers, record: dict[str, Any],
        private: PrivatePoints, contributions: Contributions, owners: tuple[Hashable, ...] | None,
        *, stored: bool = False,
    ) -> None:  # fmt: skip
        self.stored = stored
        self._design, self._private, self._contributions = design, private, contributions
        self._owners = owners
        table.flags.writeable = False
        self.table = table
        self.record = MappingProxyType(record)
        self.price_list = replace(design.prices(table), noise=self.is_noise)
        self.values = self._frozen(contributions.values([self.price_list])[0])

    def __repr__(self) -> str:
        about = self.record
        budget = f"epsilon={about['epsilon']:g}, delta={about['delta']:g}"
        what = f"{about['mechanism']}, {budget}, {about['adjacency']}, {about['unit']}"
        more = f"{', stored' if self.stored else ''}{', ' if self.warning else ''}{self.warning}"
        return f"{type(self).__name__}({what}{more})"

    @property
    def unusable(self) -> dict[int, str]:
        """The rows that counted for nothing, and why.

        This is as private as the points: never publish it, not even the number of such rows.
        """
        return self._private.unusable()

    @cached_property
    def personal_epsilon(self) -> Floats:
        """For every point, the epsilon that its owner's actual points are exposed to.

        It holds whatever points other owners have. It is computed from the owner's own points, so
        show it only to that owner. A row that counts for nothing has the epsilon of its owner's
        other rows. If there are none, it is 0, or under replacement that of whoever may come.
        """
        design, units = self._design, self._contributions.units
        found = design.personal_epsilon(self._contributions)
        if found is None:
            found = np.full(len(units), self.record["epsilon"])
        numbers = self._unit_numbers()
        each = np.full(len(numbers), design.idle_epsilon)  # by unit; as many as rows will do
        each[numbers[self._private.where]] = units.each(found)
        each = each[numbers]
        each.flags.writeable = False
        return each

    def _unit_numbers(self) -> Integers:
        """For each row of the input, the number of its unit, below the number of rows."""
        if self._owners is not None:
            return number_owners(self._owners)
        rows = np.arange(self._private.total)
        return rows if self._design.setting.unit == "point" else np.zeros_like(rows)  # one silo

    @cached_property
    def _drawn(self) -> list[Any]:
        return self._design.drawn_prices(self.table)

    @cached_property
    def error(self) -> Error:
        """The expected relative error, and an interval for every value, at no cost."""
        values = self.values[self._private.where]
        drawn = self._contributions.values(self._drawn)
        deviation = self._frozen(np.sqrt(((drawn - values) ** 2).mean(axis=0)))
        stated = self.relative_error
        if stated is None:
            deviation = np.full(len(deviation), np.nan)
        ends = interval(self.values, deviation)
        return Error(stated, deviation, *ends, self.why_untold)

    @cached_property
    def why_untold(self) -> str:
        """Why the release cannot state its error; an empty string if it can."""
        if self._design.untold:
            return self._design.untold
        if self._design.setting.public() is None:
            return "there are no validation points to stand in for the points"
        if self.is_noise:
            return "its table cannot be told from noise"
        if self._design.misfit(self.table) > MOST_MISFIT:
            return UNLIKE
        low, high = np.quantile(self._drawn_errors, TAILS)
        return UNSURE if high > WIDE * low else ""

    @cached_property
    def _drawn_errors(self) -> Floats:
        drawn = np.array([each.member_prices for each in self._drawn])
        return self._design.drawn_errors(self.table, self.price_list.member_prices, drawn)

    @cached_property
    def relative_error(self) -> float | None:
        """The expected relative error, for points like the validation points; None if unknown.

        `error.why` says why it is unknown.
        """
        return None if self.why_untold else float(np.sqrt((self._drawn_errors**2).mean()))

    @cached_property
    def ranks(self) -> tuple[float, float] | None:
        """The rank agreement with exact values to expect, of these values and of the free score.

        None if it is unknown. Validation points stand in for points, and price lists that the
        noise leaves as likely for the exact one: nothing private is looked at.
        """
        setting = self._design.setting
        public = setting.public()
        if public is None or self._design.untold:
            return None
        truths = [public.worth(each.member_prices) for each in self._drawn]
        both = (self.price_list.member_prices, setting.free_prices())
        with np.errstate(invalid="ignore"):
            ours, free = (
                float(np.mean([rank_agreement(public.worth(prices), each) for each in truths]))
                for prices in both
            )
        return None if math.isnan(ours) else (ours, free)

    @property
    def warning(self) -> str:
        """That the zero-budget score may rank points as well or better; or "".

        So it does if the table cannot be told from noise: what is left is the validation set.
        """
        worse = self.ranks is not None and self.ranks[0] <= self.ranks[1]
        return NO_BETTER if worse or self.is_noise else ""

    @property
    def is_noise(self) -> bool:
        """Whether the released table is no larger than noise alone would be."""
        return is_noise(self._design, self.table)

    def values_of(self, owner: Hashable) -> Floats:
        """The values of one owner's points, in input order."""
        if self._owners is None:
            raise InputError("the release has no owners: pass owners= to dp_tknn_shapley")
        rows = [row for row, name in enumerate(self._owners) if name == owner]
        if not rows:
            raise InputError(f"owner {owner!r} has no points")
        return self.values[rows]

    def to_json(self) -> str:
        """All that may be published, as one JSON document: record, table, prices.

        Without `publish="values"` the values are not in it: a value is computed from its owner's
        own point, exactly, so a list of everybody's values is not private.
        """
        document = {
            "format": release_format(self.record),
            "record": dict(self.record),
            "table": self.table.tolist(),
            "relative_error": self.relative_error,
            "prices": self.price_list.document(),
        }
        if self.record["published"] == "values":
            document["values"] = self.values.tolist()
        return json.dumps(document)

    def save(self, path: str | Path) -> None:
        """Write `to_json()` to a file; an existing file is replaced."""
        write_text(path, self.to_json())

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Write a page that may be published: the budget spent, what it bought, the prices.

        Parameters
        ----------
        path
            Where to write it: one HTML file.
        force
            Replace a file that is there.
        """
        write_page(None, path, release=self, force=force)

    def _frozen(self, usable: Floats) -> Floats:
        values = self._private.in_input_order(usable)
        values.flags.writeable = False
        return values


class Release(_Outcome):
    """Private values, and what may be published about them.

    The noisy table of counts (`table`) is what is released. The `price_list` follows from it, and
    is public, too. Together with an owner's own points, it gives that owner's `values`.

    Attributes
    ----------
    values
        One value per point, in input order; show each only to its owner.
    price_list
        The public prices; anyone can value points with them.
    record
        Mechanism, adjacency, unit, epsilon under both adjacencies, delta, sigma, bound, sampling
        scheme, digests, version, ledger entry.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> th.dp_tknn_shapley(X[:300], y[:300], X[300:], y[300:], epsilon=1, delta=1e-5)
    Release(table, epsilon=1, delta=1e-05, add-remove, point)
    """


class SeededRelease(_Outcome):
    """A release from a seed, for tests and experiments: it protects nobody, and no ledger takes it.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> th.dp_tknn_shapley(X[:300], y[:300], X[300:], y[300:], epsilon=1, delta=1e-5, seed=0)
    SeededRelease(table, epsilon=1, delta=1e-05, add-remove, point)
    """


def is_noise(design: Design, table: Integers) -> bool:
    """Whether a released table is no larger than noise alone would be.

    If so, the release says no more than the validation set does, and its error cannot be estimated.
    The threshold is three standard deviations above the mean square of pure noise, which noise
    exceeds in about one of a thousand cases.
    """
    return over_noise(design, table) < 1 + 3 * math.sqrt(2 / table.size)


def is_hidden(design: Design, exact: Floats) -> bool:
    """Whether an exact table would, on average, give a release for which `is_noise` is true."""
    return over_noise(design, exact) < 3 * math.sqrt(2 / exact.size)


def over_noise(design: Design, table: Array) -> float:
    """The mean square of the numbers in a table, each divided by its noise's deviation."""
    return float(((table / design.deviations) ** 2).mean())


def release_format(record: Mapping[str, Any]) -> str:
    """The format name of a published release; seeded releases have a different one."""
    return f"{FORMAT} seeded: protects nobody" if record["seeded"] else FORMAT


def interval(values: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The ends of intervals: two expected errors on each side."""
    return values - STEPS * deviation, values + STEPS * deviation
