"""`payout`: divide a pot in whole cents by the values of owners."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from thresher.errors import InputError
from thresher.inputs.checks import check_choice, check_number
from thresher.owner_valuation import OwnerValuation
from thresher.passes.owner_sums import warn_of_names
from thresher.payouts.shared_rows import SharedRows, shared_rows
from thresher.payouts.shares import Terms, check_cents
from thresher.payouts.statement import Payout, finite_values
from thresher.valuation import Valuation


def payout(
    values: Any, *, pot: int, floor: int = 0, minimum: int = 0, cap: int | None = None,
    flooring: str = "owner", rows: Any = None, within: float = 0.0,
) -> Payout:  # fmt: skip
    """Divide a pot in proportion to owners' values, in whole cents that add up to the pot.

    Use it for exact values only: pay that is scaled to add up to a pot reveals everybody's total to
    anyone who knows one value. For private values, use `private_payout`.

    Parameters
    ----------
    values
        An `OwnerValuation`, a `Valuation` with owners (the values of their points are added up), or
        a mapping from owners to values.
    pot
        The money to pay, as a whole number of cents.
    floor
        The least that every owner is paid, in cents.
    minimum
        Payments below this many cents are not made. The lowest is left out first, and the others
        share what it leaves.
    cap
        The most that an owner is paid, in cents. What is left when all are capped is `unpaid`.
    flooring
        How negative values are cut off. "owner" counts an owner's negative sum as 0, so that owner
        gets only the floor. "point" counts negative points as 0, so that splitting good rows from
        poor ones gains nothing; it needs a `Valuation` of points.
    rows
        The rows of a `Valuation`'s points, as numbers on one scale. Then the statement shows the
        operator which owners have rows in common.
    within
        The Euclidean distance up to which such rows count as close; it needs `rows`.

    Returns
    -------
    Payout
        The statement: `.cents`, `.save(path)` and `.report(path)`.

    Raises
    ------
    InputError
        If an argument cannot be used, or no owner has a positive value.

    Notes
    -----
    An owner is paid min(cap, max(floor, rate x value)), with the one rate at which all pay adds up
    to the pot. Rounding is by largest remainder, in exact arithmetic; equal remainders follow the
    order of the owners.

    Examples
    --------
    >>> import thresher as th
    >>> th.payout({"ann": 2.0, "bob": 1.0, "eve": -0.5}, pot=1000).cents["ann"]
    667
    """
    terms = Terms(
        check_cents("pot", pot), check_cents("floor", floor), check_cents("minimum", minimum),
        None if cap is None else check_cents("cap", cap),
    )  # fmt: skip
    by_owner, about = _by_owner(values, flooring)
    if not by_owner:
        raise InputError("values has no owners: there is nobody to pay")
    warn_of_names(by_owner, stacklevel=3)
    shared: tuple[SharedRows, ...] = ()
    if rows is not None:
        if type(values) is not Valuation:
            raise InputError("rows needs a Valuation of points, which says who owns each row")
        shared = shared_rows(rows, values.owners, radius=within)
    elif check_number("within", within, least=0):
        raise InputError(f"within={within!r} needs the rows of the points: pass rows= too")
    found = Payout(tuple(by_owner), finite_values(by_owner), terms, about, shared)
    assert found.cents is not None  # noqa: S101 - computed here, so that errors come at once
    return found


def _by_owner(values: Any, flooring: str) -> tuple[dict[Hashable, float], dict[str, Any]]:
    """The value of each owner and, for the record, where it comes from."""
    by_point = check_choice("flooring", flooring, ("owner", "point")) == "point"
    if isinstance(values, Valuation):
        rule = "owners" if isinstance(values, OwnerValuation) else "points"
        about = {
            "rule": rule, "flooring": flooring, "method": values.method,
            "params": dict(values.params), "utility_all": values.utility_all,
            "utility_none": values.utility_none,
        }  # fmt: skip
        if by_point and rule == "points":
            ends = values.utility_all, values.utility_none
            kept = np.maximum(values.values, 0.0)
            values = Valuation(kept, values.method, {}, *ends, values.owners)
        elif by_point:
            raise InputError("flooring='point' needs a Valuation of points, got one of owners")
        return values.by_owner(), about
    if by_point:
        raise InputError("flooring='point' needs a Valuation of points, got values of owners")
    if hasattr(values, "price_list"):
        raise InputError("values must be exact: pay a private release with private_payout")
    if not isinstance(values, Mapping):
        raise InputError(
            "values must be an OwnerValuation, a Valuation with owners, or a mapping from owners "
            f"to values, got {type(values).__name__}"
        )
    return dict(values), {"rule": "given", "flooring": flooring}
