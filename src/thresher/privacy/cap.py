"""The cap of a ledger and the filter that keeps it.

A *filter* bounds the total of releases, even if each is chosen after seeing the ones before. A
ledger keeps the filter that it was created with, because the two bounds do not add up:

"gaussian"   sum of mu^2 <= mu^2 of the cap, for mu-GDP releases (Smith and Thakurta 2022). An
             epsilon-DP release is mu-GDP with mu = 2 Phi^-1(1 / (1 + e^-epsilon)).
"basic"      sums of epsilon and of delta, for any releases.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any

from thresher.errors import InputError, option, quoted
from thresher.inputs.checks import check_number
from thresher.privacy.accountants import (
    SLACK,
    Adjacency,
    Cost,
    Filter,
    Unit,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    last_that_holds,
)

SCALE = 10**24  # units in 1: so fine that no cost a mechanism can have is rounded much
LEAST = 1e-6  # the smallest epsilon of a release
SPENT = 1e-3  # of the cap: less than this is practically nothing
LARGEST_COST = 1e300


@dataclass(frozen=True, slots=True)
class Units:
    """A cost in whole units of 10^-24, rounded up, so that sums are exact.

    A number counts as the decimal that it prints as: three times 0.1 is 0.3.
    """

    mu_squared: int = 0
    epsilon: int = 0
    delta: int = 0

    @classmethod
    def of(cls, cost: Cost) -> Units:
        """The units of a cost."""
        if not isinstance(cost, Cost):
            raise InputError(f"cost must be a Cost, got {quoted(cost)}")
        parts = {
            name: check_number(f"cost.{name}", part, least=0.0, most=LARGEST_COST)
            for name, part in asdict(cost).items()
        }
        return cls(**{name: math.ceil(_exact(part)) for name, part in parts.items()})

    @classmethod
    def stored(cls, parts: Any) -> Units:
        """The units that an entry holds; raise unless they are whole numbers >= 0."""
        for name, number in parts.items():
            if type(number) is not int or number < 0:
                raise InputError(f"cost.{name} must be a whole number >= 0, got {quoted(number)}")
        return cls(**parts)

    @property
    def cost(self) -> Cost:
        """The cost that these units are."""
        return Cost(self.mu_squared / SCALE, self.epsilon / SCALE, self.delta / SCALE)

    def __add__(self, other: Units) -> Units:
        return Units(*map(operator.add, astuple(self), astuple(other)))


@dataclass(frozen=True, eq=False)
class Terms:
    """What a ledger was created with, forever."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: Unit
    data_set: str
    filter: Filter


class Cap(Terms):
    """The terms as a limit: what fits, what is left, and why something does not fit."""

    def fits(self, total: Units) -> bool:
        """Whether releases of this total cost are within the cap, however they were chosen."""
        if self.filter == "basic":
            within = total.epsilon <= _exact(self.epsilon) and total.delta <= _exact(self.delta)
            return within and not total.mu_squared
        if total.epsilon or total.delta:
            return False
        kept = self.delta * (1 - SLACK / 2)  # mu of a release leaves all of SLACK aside
        return gaussian_delta(self.epsilon, math.sqrt(total.cost.mu_squared)) <= kept

    def left(self, spent: Units) -> float:
        """The largest epsilon of one more release, at the cap's delta if Gaussian; rounded down."""
        if self.filter == "basic":
            rest = (_exact(self.epsilon) - spent.epsilon) / SCALE
            return _round_down(rest) if rest > 0 else 0.0

        def holds(epsilon: float) -> bool:
            mu = gaussian_mu(epsilon, self.delta)
            return self.fits(spent + Units.of(Cost(mu_squared=mu**2)))

        if not holds(LEAST):
            return 0.0
        left = last_that_holds(holds, LEAST, self.epsilon, tolerance=1e-10)
        return left if left == self.epsilon else max(LEAST, _round_down(Fraction(repr(left))))

    def refusal(self, name: str, asked: Cost, spent: Units, about: Mapping[str, Any]) -> str:
        """Why a charge does not fit, what is left, and the ways out.

        `about` has the public facts of the release; they say why it costs more than asked.
        """
        rest = self.left(spent)
        left = f"the ledger of {name} has epsilon={rest!r} of {self.epsilon!r} left"
        ways = "ask for a smaller epsilon, or protect new data with a new ledger"
        if rest < SPENT * self.epsilon:
            ways = "the budget is spent: protect new data with a new ledger"
        if self.filter == "gaussian":
            if asked.epsilon or asked.delta:
                return (
                    f"a sampled release does not fit a ledger of Gaussian releases: {left}; use "
                    f"another mechanism, or a ledger created with {option('filter', 'basic')} for "
                    "new data"
                )
            epsilon = gaussian_epsilon(math.sqrt(asked.mu_squared), self.delta)
            what = _refused(f"epsilon={epsilon:.5g}", self, about)
            return f"{what}{left} at delta={self.delta:g}; {ways}"
        if asked.mu_squared:
            return (
                f"a Gaussian cost does not fit a ledger of (epsilon, delta) pairs: {left}; charge "
                "epsilon and delta instead, or use a ledger created with "
                f"{option('filter', 'gaussian')} for new data"
            )
        own = f" and delta={asked.delta:.6g}" if asked.delta else ""
        if asked.delta * SCALE > _exact(self.delta) - spent.delta:
            ways = (
                f"ask for a smaller delta, or use {option('mechanism', 'cells')}, which needs none"
            )
        part = f", delta={float((_exact(self.delta) - spent.delta) / SCALE):g} of {self.delta:g}"
        what = _refused(f"epsilon={asked.epsilon:.6g}{own}", self, about)
        return f"{what}{left}{part}; {ways}"


def _refused(counted: str, terms: Terms, about: Mapping[str, Any]) -> str:
    """That a release does not fit: what was asked for and, if it is more, what it counts as."""
    why = _reasons(terms, about)
    if not why:
        return f"a release of {counted} does not fit: "
    asked = f"a release of epsilon={about['epsilon']:g} does not fit"
    return f"{asked}: {'; '.join(why)}; so it counts as {counted}, and "


def why_other(terms: Terms, about: Mapping[str, Any]) -> str:
    """Why a release counts for another epsilon than asked for, and the way out; "" if it does not.

    `about` is the record of the release.
    """
    why = _reasons(terms, about)
    return "; ".join([f"epsilon={about['epsilon']:g} was asked for", *why]) if why else ""


def _reasons(terms: Terms, about: Mapping[str, Any]) -> list[str]:
    """Why a release counts for another epsilon than was asked for."""
    epsilon, delta = about.get("epsilon"), about.get("delta")
    if not (isinstance(epsilon, float) and isinstance(delta, float)):
        return []  # not a record of ours
    pure, gaussian = about.get("mechanism") == "cells", terms.filter == "gaussian"
    ours, theirs = terms.adjacency, about.get("adjacency")
    reasons = {
        f"a release without delta, of {option('mechanism', 'cells')}, counts as more in a ledger "
        f"with {option('filter', 'gaussian')}: use one with {option('filter', 'basic')}": gaussian
        and pure,
        f"that is at delta={delta:g}, but the ledger counts at {terms.delta:g}": gaussian
        and not pure
        and delta != terms.delta,
        "one point can move a release of owners more than one owner can, so a ledger of points "
        "is charged more (T9 of docs/privacy-proofs.md): use one with "
        f"{option('unit', 'owner')}": not pure
        and (terms.unit, about.get("unit")) == ("point", "owner"),
        "each silo is clipped as a whole, and what changes in one can move the sum more than a "
        "whole silo can (T9 and T17 of docs/privacy-proofs.md)": about.get("unit") == "silo",
        f"that is for {theirs}, and the ledger counts for {ours}": ours != theirs,
    }
    return [reason for reason, holds in reasons.items() if holds]


def _exact(number: float) -> Fraction:
    """The number in units, read as the decimal that it prints as."""
    return Fraction(repr(number)) * SCALE


def _round_down(number: Fraction) -> float:
    digits = Context(prec=9, rounding=ROUND_DOWN)
    return float(digits.divide(Decimal(number.numerator), Decimal(number.denominator)))
