"""A page of a few tables about owners: what they are worth, or what they are paid."""

from __future__ import annotations

from pathlib import Path

from thresher.files import write_text
from thresher.owner_valuation import OwnerValuation
from thresher.report.page import check_target, render_page
from thresher.report.phrases import brief, count_of, short
from thresher.statement_page import StatementPage, Table


def render_statement(page: StatementPage) -> str:
    """One HTML document that needs nothing else."""
    return render_page("statement.html.jinja", page=page)


def write_statement(page: StatementPage, path: str | Path, *, force: bool = False) -> None:
    """Write it to a file, whole or not at all."""
    check_target(path, force=force)
    write_text(path, render_statement(page), replace=force)


def owner_page(valuation: OwnerValuation) -> StatementPage:
    """The page of the values of owners.

    Examples
    --------
    >>> import numpy as np
    >>> found = OwnerValuation(np.array([0.5, 0.25]), "example", {}, 1.25, 0.5, ("ann", "bob"))
    >>> "2 owners raise utility from 0.5 to 1.25" in render_statement(owner_page(found))
    True
    """
    pairs = sorted(valuation.by_owner().items(), key=lambda entry: -entry[1])
    total = sum(max(value, 0.0) for _, value in pairs) or 1.0
    rows = [
        (brief(owner), short(value), f"{100 * max(value, 0.0) / total:.2f}%")
        for owner, value in pairs
    ]
    lead = (
        f"{count_of(len(pairs), 'owner')} raise utility from {short(valuation.utility_none)} to "
        f"{short(valuation.utility_all)}. The players of the game are the owners: each is worth "
        "what it adds to coalitions of the others, with all of its points."
    )
    about = {"method": valuation.method, "params": dict(valuation.params)}
    columns = "owner", "value", "share of the positive values"
    table = Table.of("Owners by value", columns, rows)
    return StatementPage(valuation.method, "What owners are worth", lead, (table,), record=about)
