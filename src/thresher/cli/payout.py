"""`thresher payout`: from a file of values to a statement of what each owner is paid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from thresher.cli.options import Force, Json, argument, given, number
from thresher.cli.words import SHOWN, say, say_owners, show_json
from thresher.errors import shortened


def payout(
    values: Annotated[Path, argument("The values that thresher value wrote: .parquet.")],
    pot_cents: Annotated[str, given("The amount to pay out, in whole cents.", metavar="INTEGER")],
    floor_cents: Annotated[
        str, given("The least that every owner is paid.", metavar="INTEGER")
    ] = "0",
    minimum_cents: Annotated[
        str,
        given("Payments below this are not made; the other owners share them.", metavar="INTEGER"),
    ] = "0",
    cap_cents: Annotated[
        str | None,
        given("The most that an owner is paid; no limit if not given.", metavar="INTEGER"),
    ] = None,
    flooring: Annotated[
        Literal["owner", "point"],
        given("What is raised to 0 if it is negative: an owner's sum, or each point."),
    ] = "owner",
    within: Annotated[
        float | None,
        given(
            "Show which owners have rows in common: equal rows (0), or rows within this distance. "
            "The points are read again."
        ),
    ] = None,
    out: Annotated[
        Path | None, given("Where the statement goes: .csv, .parquet or .json.", "--out", "-o")
    ] = None,
    report: Annotated[
        Path | None, given("Where to write a page that shows the statement: .html.")
    ] = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Share a pot among owners by exact values, in whole cents that add up to it.

    The rule is in the record of the values: the sum of an owner's points, or the game among owners
    (thresher value --players owners). Owners with a negative value are paid nothing, or the floor
    if there is one. The statement has everything that is needed to compute it again.

    Example: thresher payout values.parquet --pot-cents 1000000 --out payout.csv
    --report payout.html
    """
    from thresher.files import check_apart
    from thresher.report import check_target
    from thresher.runs.payout_run import pay_file

    for target in (out, report):
        if target is not None:
            check_apart(target, [values])
    if report is not None:
        check_target(report, force=force)
    found = pay_file(
        values, pot=number(pot_cents), floor=number(floor_cents), minimum=number(minimum_cents),
        cap=number(cap_cents), flooring=flooring, within=within,
    )  # fmt: skip
    wrote = [] if out is None else found.save(out, force=force)
    if report is not None:
        found.report(report, force=force)
        wrote.append(report)
    _say(found, wrote, within)
    if json:
        show_json(found.record() | {"wrote": [str(path) for path in wrote]})


def _say(found: Any, wrote: list[Path], within: float | None) -> None:
    """Print who is paid what."""
    say(f"{found.paid} of {found.terms.pot} cents to {len(found.owners)} owners, by {found.rule}")
    for caution in found.cautions():
        say(f"hint: {caution}")
    say_owners(found.cents)
    for each in found.shared[:SHOWN]:
        pair = f"{shortened(str(each.owner), 40)} and {shortened(str(each.other), 40)}"
        say(f"in common: {pair}: {each.exact} equal, {each.near} close")
    if within is not None and not found.shared:
        which = f"rows within {within:g} of each other" if within else "equal rows"
        say(f"in common: no two owners have {which}")
    for path in wrote:
        say(f"wrote {path}")
