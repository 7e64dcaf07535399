"""`private_payout`: pay based on a private release, without revealing what it protects.

Pay that is scaled to add up to a pot reveals the exact total to anyone who knows one value. So here

    rate  = pot / total,   total = sum over the table of (estimated count x price)

follows from the release alone, and an owner is paid by the rate, the prices and its own points. All
pay together does not add up to the pot: a reserve takes the difference. T11 of
docs/privacy-proofs.md says what nobody learns, and why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from thresher.array_types import Floats
from thresher.errors import InputError
from thresher.files import write_text
from thresher.inputs.checks import check_choice, check_count
from thresher.passes.owner_sums import OwnedPoints
from thresher.passes.walk import count
from thresher.payouts.alike_owners import alike_values
from thresher.privacy.public_rows import priceable, total_deviations
from thresher.privacy.release import STEPS, Release, SeededRelease, interval
from thresher.privacy.table_design import TableDesign
from thresher.sides.ball_side import BallSide

FORMAT = "thresher.private-payout/1"
CLEAR = 3.0  # standard deviations that the predicted total has to be above zero


@dataclass(frozen=True)
class OwnerLine:
    """What one owner learns about their pay, which nobody else may see."""

    owner: Hashable  # whose line it is
    # cents, later: what is paid now, and what may follow after a later release
    cents: int
    later: int
    # low, high: the ends of an interval for the pay in cents, before rounding: two expected
    # errors on each side. NaN where the release cannot tell its error.
    low: float
    high: float
    # the share of the owner's value that the privacy bound cut off, and that is not paid
    clipped: float


@dataclass(frozen=True, eq=False)
class PrivatePayout:
    """Pay under noise: a public rate, a line for each owner, and a reserve for the operator.

    Parameters
    ----------
    pot, rate, total
        Public: the cents to pay, the cents for each unit of value, and the total of values that the
        release predicts.
    overshoot
        Public: by how many cents the total pay is expected to exceed the pot. This assumes that
        owners with negative values are as rare as the public rows suggest. For the basis "gains" it
        is an upper bound.
    ceiling
        Public: the most that all pay may come to in cents, apart from noise, no matter who owns the
        wrong labels. For the basis "gains", it is the pot.
    paid_low, paid_high
        Public: as far as the release shows, the total pay is between these amounts, in cents. The
        low end is right if no owner has a negative value, and the high end if wrong labels belong
        to owners who have only wrong labels. Both leave room for two standard deviations of the
        noise, which is not enough in about one release in twenty.
    pay, basis, players
        As in `private_payout`.
    record
        The record of the release.
    lines
        Private: one line for each owner, in order of first appearance.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> release = th.dp_tknn_shapley(X[:300], y[:300], X[300:], y[300:], epsilon=8, delta=1e-5,
    ...     owners=np.arange(300) // 3, points_per_owner=3, seed=0)  # never in production
    >>> paid = th.private_payout(release, pot=1_000_000)
    >>> len(paid.lines), "rate" in paid.public(), "lines" in paid.public()
    (100, True, False)
    """

    pot: int
    rate: float
    total: float
    overshoot: float
    ceiling: float
    paid_low: float
    paid_high: float
    pay: str
    basis: str
    players: str
    record: Mapping[str, Any]
    lines: tuple[OwnerLine, ...]
    _draws: Floats

    def __repr__(self) -> str:
        return f"PrivatePayout({len(self.lines)} owners, {self.rate:.6g} cents a unit)"

    @cached_property
    def cents(self) -> Mapping[Any, int]:
        """Whole cents of each owner, for the operator alone."""
        return MappingProxyType({line.owner: line.cents for line in self.lines})

    @property
    def reserve(self) -> int:
        """What is left of the pot, or negative if pay exceeds it.

        It is for the operator alone, because it is exact: anyone who knows it and the pay of all
        owners but one can compute that one.
        """
        return self.pot - sum(line.cents for line in self.lines)

    def line(self, owner: Hashable) -> OwnerLine:
        """What one owner may see."""
        for line in self.lines:
            if line.owner == owner:
                return line
        raise InputError(f"owner {owner!r} has no points")

    def wrong_order(self, one: Hashable, other: Hashable) -> float:
        """The chance that two owners are ranked in the wrong order: for the operator alone."""
        places = [self.lines.index(self.line(owner)) for owner in (one, other)]
        first, second = self._draws[:, places].T
        apart = self._draws[:, places].mean(axis=0)
        turned = (first < second) if apart[0] >= apart[1] else (first > second)
        return float(turned.mean())

    def public(self) -> dict[str, Any]:
        """Everything that may be published: it follows from the release alone."""
        return {
            "format": FORMAT, "pot": self.pot, "rate": self.rate, "total": self.total,
            "overshoot": self.overshoot, "ceiling": self.ceiling, "paid_low": self.paid_low,
            "paid_high": self.paid_high, "pay": self.pay, "basis": self.basis,
            "players": self.players, "release": dict(self.record),
        }  # fmt: skip

    def save_line(self, owner: Hashable, path: str | Path) -> None:
        """Write what one owner may see, with the public part, as a .json file."""
        about = self.public() | {"line": line_of(self.line(owner))}
        text = json.dumps(about, indent=1, default=str) + "\n"
        write_text(path, text, replace=False, private=True)


def line_of(line: OwnerLine) -> dict[str, Any]:
    """The line as a document for JSON."""
    return {
        name: None if isinstance(entry, float) and math.isnan(entry) else entry
        for name, entry in asdict(line).items()
    }


def private_payout(
    release: Any, *, pot: int, pay: str = "estimate", basis: str = "gains",
    players: str = "points",
) -> PrivatePayout:  # fmt: skip
    """Pay owners based on a private release: a public rate, a line for each owner, and a reserve.

    Parameters
    ----------
    release
        A `Release` with owners, made with the mechanism "table".
    pot
        As in `payout`, but only a target: all pay together comes close to it, and a reserve takes
        the difference.
    pay
        "estimate" pays the estimated value. "lower" pays the lower end of its interval now; the
        rest may follow after a later release.
    basis
        What the rate divides the pot by. "gains" is what the release predicts for correct labels
        alone. Then pay stays below the pot, apart from noise, no matter who owns the wrong labels,
        and the reserve is large. "total" subtracts what wrong labels cost. Then pay comes close to
        the pot if few owners have negative values. Otherwise it exceeds the pot, because those
        owners do not pay in. All pay may come to `ceiling`, so have that much available.
    players
        "points" pays the sum of an owner's points. "owners" pays by the game among owners, and
        assumes that all other owners are alike. It is an approximation; see docs/payouts.md. It
        needs classes within a radius, without a kernel, and `points_per_owner`.

    Returns
    -------
    PrivatePayout
        `.line(owner)` is for that owner, `.public()` for everybody, the rest for the operator.

    Raises
    ------
    InputError
        If an argument cannot be used, or the release is too uncertain to pay by.

    Notes
    -----
    The rate follows from the release alone, and an owner's line from the release and that owner's
    own points. So everything that others see is as private as the release: T11 of
    docs/privacy-proofs.md.
    The privacy bound clips large contributions, and the clipped part is not paid. So an owner of
    many points gains by splitting them among several names: verify identities. Nothing is scaled
    afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher as th
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> y, owners = X[:, 0] > 0, np.arange(800) // 8
    >>> release = th.dp_tknn_shapley(
    ...     X[200:], y[200:], X[:200], y[:200], epsilon=8, delta=1e-5, seed=0, owners=owners,
    ...     points_per_owner=8,
    ... )
    >>> found = th.private_payout(release, pot=100_000)
    >>> 0 < found.reserve < 100_000  # the basis "gains" stays below the pot
    True
    """
    pay = check_choice("pay", pay, ("estimate", "lower"))
    pot = check_count("pot", pot, least=0)
    design, owners = _checked(release)
    total, drawn = predicted_totals(release, design, basis)
    deviation = _deviation(total, drawn)
    if total < CLEAR * deviation:
        raise InputError(
            f"the release predicts a total of {total:.3g} with a standard deviation of "
            f"{deviation:.3g}: too uncertain to pay by. Spend more epsilon, or pay equal shares"
        )
    rate = pot / total
    names = [owner for owner in dict.fromkeys(owners) if owner is not None]
    values, draws, kept = paid_values(release, design, owners, names, players)
    spread = _spreads(draws, values)
    why = release.why_untold
    low, high = interval(values, np.full(len(spread), np.nan) if why else spread)
    if pay == "lower" and why:
        raise InputError(f"pay='lower' needs a release that states its error, but {why}")
    lines = tuple(
        _line(owner, rate, (values[i], low[i], high[i]), float(kept[i]), pay)
        for i, owner in enumerate(names)
    )
    overshoot = float(np.maximum(rate * drawn - pot, 0.0).mean())
    most, drawn = predicted_totals(release, design, "gains")
    ends = _least(release, design, pay), most + STEPS * _deviation(most, drawn)
    public = pot, rate, total, overshoot, rate * most, rate * ends[0], rate * ends[1]
    return PrivatePayout(*public, pay, basis, players, release.record, lines, draws)


def _least(release: Any, design: TableDesign, pay: str) -> float:
    """The least total value that owners are paid for, unless noise is larger than usual."""
    if pay == "lower":
        return 0.0
    worth = design.setting.entry_prices(release.price_list) * design.kept_shares()
    mean, draws = design.estimates(release.table)
    net = float(mean @ worth)
    return max(0.0, net - STEPS * _deviation(net, draws @ worth))


def _deviation(mean: float, draws: Floats) -> float:
    return float(np.sqrt(((draws - mean) ** 2).mean()))


def _spreads(draws: Floats, values: Floats) -> Floats:
    """The root mean square error of each owner's draws; no bit of it depends on others."""
    squares = ((draws - values) ** 2).T.tolist()
    return np.array([math.sqrt(math.fsum(own) / len(own)) for own in squares])


def predicted_totals(
    release: Any, design: TableDesign, basis: str = "gains"
) -> tuple[float, Floats]:
    """The total value that owners are paid for, as the release predicts it, and draws of it.

    It is counts times prices times the share of each count that clipping is expected to leave.
    Owners with a negative value are paid nothing, so what they would have taken away is added.
    """
    setting = design.setting
    if check_choice("basis", basis, ("total", "gains")) == "gains":
        worth = setting.gain_prices(release.price_list) * design.kept_shares()
    else:
        prices = setting.entry_prices(release.price_list)
        worth = prices * design.kept_shares() * _without_negative(design, prices)
    mean, draws = design.estimates(release.table)
    return float(mean @ worth), draws @ worth


def _without_negative(design: TableDesign, prices: Floats) -> float:
    """The sum of made-up owners' positive values, divided by the sum of all their values."""
    size = design.setting.points_per_owner
    if design.public is None or size is None:
        return 1.0
    vectors = design.public.grouped(size)
    kept = design.clipping.shares(design.entries.lengths(vectors))
    values = kept * (vectors @ prices)
    return float(np.maximum(values, 0.0).sum() / max(values.sum(), np.maximum(values, 0.0).max()))


def _checked(release: Any) -> tuple[TableDesign, tuple[Hashable, ...]]:
    """The design and the owners of a release; raise if it cannot be paid by."""
    if not isinstance(release, Release | SeededRelease):
        raise InputError(f"release must be a Release, got {type(release).__name__}")
    design, owners = release._design, release._owners
    if owners is None:
        raise InputError("the release has no owners: pass owners= to dp_tknn_shapley")
    if not release.price_list.scaled:
        raise InputError(
            "the release was made without points_per_owner, so the values of owners with many "
            "points are too large to pay by: pass points_per_owner= to dp_tknn_shapley"
        )
    if not isinstance(design, TableDesign):
        raise InputError(
            f"release must be made with mechanism='table', got {release.record['mechanism']!r}"
        )
    return design, owners


def paid_values(
    release: Any, design: TableDesign, owners: tuple[Hashable, ...], names: list[Hashable],
    players: str = "points",
) -> tuple[Floats, Floats, Floats]:  # fmt: skip
    """For each owner, the value that is paid, the same for each drawn list, and the share kept.

    Sums run over an owner's own points in their order, so that no bit of them depends on others.
    """
    contributions, where = release._contributions, release._private.where
    weights = design.weights(design.squares(contributions)) / design.parts
    kept_of = contributions.units.each(weights)
    rows: dict[Hashable, list[int]] = {owner: [] for owner in names}
    for place, row in enumerate(where.tolist()):
        rows[owners[row]].append(place)
    kept = np.array([kept_of[some[0]] if (some := rows[owner]) else 1.0 for owner in names])
    if check_choice("players", players, ("points", "owners")) == "owners":
        found = _game_values(release, design, rows)
    else:
        of_points = contributions.values([release.price_list, *release._drawn])
        found = np.array(
            [[math.fsum(each[some].tolist()) for some in rows.values()] for each in of_points]
        ).reshape(len(of_points), len(names))
    return found[0] * kept, found[1:] * kept, kept


def _game_values(release: Any, design: TableDesign, rows: Mapping[Hashable, list[int]]) -> Floats:
    """The values in the game among owners, for the release and for each draw."""
    setting, contributions = design.setting, release._contributions
    plain = type(setting.side) is BallSide and setting.side.kernel is None
    known = design.public is not None and setting.points_per_owner is not None
    if not (plain and known and setting.semivalue == "shapley"):
        raise InputError(
            "players='owners' needs a release of classes within a radius (no kernel, forest or "
            "regression), with points_per_owner, a prior and Shapley values; players='points' "
            "works with any release of owners"
        )
    codes = np.empty(len(contributions.points), np.int32)
    for code, some in enumerate(rows.values()):
        codes[some] = code
    side = BallSide(setting.validation, setting.side.radius)
    owned = OwnedPoints.of(contributions.points, codes, side)
    sums = count(owned, side.near("all"), side.owner_counting(len(rows)))
    same, near = sums.reshape(2, len(rows), -1).astype(np.float64)
    mean, draws = design.estimates(release.table)
    owners = float(mean.sum() / design.owner_mean().sum())  # as the release predicts
    deviation, classes = total_deviations(draws), len(setting.validation.classes)
    return np.array(
        [
            alike_values(near, same, priceable(each, deviation), max(owners - 1, 1.0), classes)
            for each in (mean, *draws)
        ]
    )


def _line(
    owner: Hashable, rate: float, value: tuple[float, float, float], kept: float, pay: str
) -> OwnerLine:
    """The line of one owner; cents are rounded down."""
    estimate, low, high = (rate * max(float(each), 0.0) for each in value)
    whole = math.floor(estimate)
    now = whole if pay == "estimate" else math.floor(low)
    return OwnerLine(owner, now, whole - now, low, high, 1.0 - kept)
