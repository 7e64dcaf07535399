"""Divide a pot in whole cents by weights, in exact arithmetic that anybody can repeat.

An owner is paid min(cap, max(floor, rate x weight)) with the one rate at which all pay adds up to
the pot. These amounts have fractions of cents. Rounding is by largest remainder: everybody gets the
whole cents, and the cents that are left go to the largest fractions. Equal fractions follow the
order of the owners. Weights are integers: floats times a power of two, without loss.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from thresher.errors import InputError, either, option, quoted
from thresher.inputs.checks import check_count


def money(cents: float) -> str:
    """An amount in cents as text for people.

    Examples
    --------
    >>> money(123456)
    '1,234.56'
    """
    return f"{cents / 100:,.2f}"


def in_cents(name: str) -> str:
    """The name of an amount in messages; the command's option says that it is in cents."""
    return either(name, option(f"{name}_cents"))


def check_cents(name: str, value: object) -> int:
    """An amount in whole cents, if it is one.

    Examples
    --------
    >>> check_cents("pot", 1250)
    1250
    """
    try:
        return check_count(name, value, least=0)
    except InputError:
        raise InputError(
            f"{in_cents(name)} must be a whole number of cents, at least 0, got {quoted(value)}: "
            "12.50 is 1250"
        ) from None


@dataclass(frozen=True)
class Terms:
    """How a pot is divided, in whole cents."""

    pot: int  # what there is to pay
    # floor, cap: the least and the most that any owner is paid; no cap if None
    floor: int = 0
    # payments below it are not made, and their cents go to others; the lowest is left out first
    minimum: int = 0
    cap: int | None = None

    def check(self, owners: int) -> None:
        """Raise unless this many owners can be paid like that."""
        pot, floor, minimum, cap = map(in_cents, ("pot", "floor", "minimum", "cap"))
        if self.floor * owners > self.pot:
            raise InputError(
                f"{floor} must be at most {self.pot // owners} for {owners} owners, got "
                f"{self.floor}: lower it, or raise {pot}"
            )
        if self.floor and self.minimum:
            raise InputError(
                f"{floor} cannot be used with {minimum}: all are paid at least the floor"
            )
        if self.cap is not None and self.cap < max(self.floor, self.minimum, 1):
            raise InputError(
                f"{cap} must be at least 1 cent, and no less than {floor} or {minimum}, got "
                f"{self.cap}"
            )


def integer_weights(values: Sequence[float]) -> list[int]:
    """Values as integers in exactly the same proportion; negative values become 0.

    Examples
    --------
    >>> integer_weights([0.5, 0.25, -1.0])
    [2, 1, 0]
    """
    pairs = [max(value, 0.0).as_integer_ratio() for value in values]
    most = max((below for _, below in pairs), default=1)
    return [above * (most // below) for above, below in pairs]


def whole_cents(weights: Sequence[int], terms: Terms) -> list[int]:
    """What each owner is paid, which adds up to the pot, or to all caps if that is less.

    Examples
    --------
    >>> whole_cents([1, 1, 1], Terms(100))
    [34, 33, 33]
    >>> whole_cents([50, 30, 1], Terms(100, minimum=10))
    [63, 37, 0]
    >>> whole_cents([50, 30, 1], Terms(100, floor=10, cap=50))
    [50, 40, 10]
    """
    terms.check(len(weights))
    if not any(weights):
        raise InputError(
            "no owner has a positive value: there is nothing to share the pot by. Keep the pot, or "
            "agree on equal shares beforehand"
        )
    order = sorted(range(len(weights)), key=lambda place: -weights[place])  # ties by order
    kept = order
    if terms.minimum:
        kept = order[
            : _largest(len(order), lambda count: _all_above(weights, order[:count], terms))
        ]
        if not kept:
            pot, minimum = map(in_cents, ("pot", "minimum"))  # no cap is below the minimum
            raise InputError(
                f"{minimum} must be at most {terms.pot}, got {terms.minimum}: lower it, or raise "
                f"{pot}"
            )
    above, below = _rate([weights[place] for place in kept], terms)
    most = terms.pot if terms.cap is None else terms.cap
    cents, rests = [0] * len(weights), []
    for place in sorted(kept):
        whole, rest = divmod(weights[place] * above, below)
        if whole >= most:
            whole, rest = most, 0
        elif whole < terms.floor:
            whole, rest = terms.floor, 0
        cents[place] = whole
        rests.append((-rest, place))
    payable = min(terms.pot, sum(most if weights[place] else terms.floor for place in kept))
    for rest, place in sorted(rests)[: payable - sum(cents)]:
        cents[place] += int(rest < 0)
    return cents


def _all_above(weights: Sequence[int], kept: Sequence[int], terms: Terms) -> bool:
    """Whether the last of these owners, who has the least weight, is paid the minimum."""
    if not kept:
        return True
    least = weights[kept[-1]]
    above, below = _rate([weights[place] for place in kept], terms)
    pay = least * above if terms.cap is None else min(least * above, terms.cap * below)
    return least > 0 and pay >= terms.minimum * below


def _largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number from 0 to `most` for which `holds`, as it does for all smaller ones."""
    return bisect_left(range(1, most + 1), x=True, key=lambda number: not holds(number))


def _rate(weights: Sequence[int], terms: Terms) -> tuple[int, int]:
    """The rate at which pay adds up to the pot: cents for each unit of weight, as a fraction."""
    floor, cap = terms.floor, terms.cap
    if not floor and cap is None:
        return terms.pot, max(sum(weights), 1)
    ascending = sorted(weight for weight in weights if weight)
    sums = [0, *accumulate(ascending)]
    count, beside = len(ascending), floor * (len(weights) - len(ascending))

    def bounds(above: int, below: int) -> tuple[int, int]:
        """How many are at the floor, and how many are below the cap."""
        if not above:
            return (count if floor else 0), count
        low = bisect_left(ascending, -(-floor * below // above))
        return low, count if cap is None else bisect_left(ascending, -(-cap * below // above))

    def left(low: int, high: int) -> int:
        return terms.pot - beside - floor * low - (cap or 0) * (count - high)

    def fits(above: int, below: int) -> bool:
        low, high = bounds(above, below)
        return (sums[high] - sums[low]) * above <= left(low, high) * below

    found = [(0, 1)]
    for bound in {floor, cap} - {0, None}:  # at these rates somebody meets a bound
        assert bound is not None  # noqa: S101 - taken out
        place = _largest(count, lambda k, b=bound: not k or fits(b, ascending[count - k]))  # type: ignore[misc]
        if place:
            found.append((bound, ascending[count - place]))
    above, below = max(found, key=lambda each: Fraction(*each))
    low, high = bounds(above, below)
    between = sums[high] - sums[low]
    return (left(low, high), between) if between and left(low, high) > 0 else (above, below)
