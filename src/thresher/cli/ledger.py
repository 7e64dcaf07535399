"""`thresher ledger`: privacy budgets."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.options import Adjacency, Json, argument, given
from thresher.cli.words import in_words, say, show_json
from thresher.errors import BudgetError, printing

if TYPE_CHECKING:
    from thresher.privacy.ledger import Verified

app = typer.Typer(
    no_args_is_help=True, help="Keep track of a privacy budget: create, show or verify a ledger."
)

CLOSED = "nothing can be charged until you put it back, or verify with --adopt"
LedgerPath = Annotated[Path, argument("The ledger's file.", show_default=False)]


@app.command("create")
def create(
    path: LedgerPath,
    epsilon: Annotated[float, given("The cap's epsilon, for all releases together.")],
    delta: Annotated[float, given("The cap's delta; with 0, only releases by cells fit.")],
    adjacency: Adjacency = "add-remove",
    unit: Annotated[str, given("What is protected: point or owner.")] = "point",
    data_set: Annotated[str, given("What the ledger protects, in words.")] = "",
    filter_: Annotated[
        str | None,
        given(
            "How costs add up. gaussian, the default if delta is above 0, fits more releases, but "
            "only by table or cells. basic accepts all mechanisms, and adds up epsilon and delta.",
            "--filter",
        ),
    ] = None,
) -> None:
    """Create a ledger, with terms that are fixed forever.

    Thresher also writes the ledger's witness, a file that shows if somebody replaces the ledger by
    an older copy. Keep both on a local disk.

    Example: thresher ledger create ledger.db --epsilon 1 --delta 1e-6 --data-set "clinic 2026"
    """
    from thresher.privacy.ledger import Ledger

    terms: Any = {"adjacency": adjacency, "unit": unit, "data_set": data_set, "filter": filter_}
    with Ledger.create(path, epsilon=epsilon, delta=delta, **terms) as ledger:
        say(f"created {ledger}")


@app.command("show")
def show(
    path: LedgerPath, json: Annotated[bool, given("Print everything as JSON.", "--json")] = False
) -> None:
    """Print the cap, what is spent and what is left, and the entries.

    Example: thresher ledger show ledger.db

    Example: thresher ledger show ledger.db --json
    """
    from thresher.privacy.ledger import Ledger

    with Ledger.open(path) as ledger:
        terms = ("epsilon", "delta", "adjacency", "unit", "data_set", "filter")
        shown: dict[str, Any] = {name: getattr(ledger, name) for name in terms}
        shown |= {"remaining": ledger.remaining(), "witnessed": ledger.witnessed}
        shown["entries"] = ledger.entries()
        if json:
            show_json(shown)
        else:
            with printing() as out:
                out.write(_page(shown, ledger.spent().stated(ledger.delta)))


def _page(shown: dict[str, Any], spent: str) -> str:
    """A ledger for people: its terms, then a line for each entry."""
    terms = f"{shown['adjacency']} of one {shown['unit']}, {shown['filter']} filter"
    lines = [
        f"data set   {_short(shown['data_set'], 60) or '-'}",
        f"cap        epsilon={shown['epsilon']:g}, delta={shown['delta']:g} ({terms})",
        f"spent      {spent}",
        f"remaining  epsilon={shown['remaining']:g} for one more release",
        f"entries    {len(shown['entries'])}",
        *([] if shown["witnessed"] else [f"witness    missing: {CLOSED}"]),
        "",
        f"{'entry':>5}  {'kind':7}  {'time':25}  {'request':16}  cost",
    ]
    for entry in shown["entries"]:
        seq, kind, time = entry["seq"], entry["kind"], entry["time"]
        cost = "" if entry["cost"] is None else entry["cost"].stated(shown["delta"])
        lines.append(f"{seq:5}  {kind:7}  {time:25}  {_short(entry['request'], 16):16}  {cost}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _short(text: str, most: int) -> str:
    """`text` in one line of at most `most` letters, without control characters."""
    line = "".join(letter if letter.isprintable() else "?" for letter in text)
    return line if len(line) <= most else f"{line[: most - 3]}..."


@app.command("verify")
def verify(
    path: LedgerPath,
    head: Annotated[
        str | None, given("A hash that a release recorded: it must be in the ledger.")
    ] = None,
    adopt: Annotated[
        bool,
        given(
            "If the ledger is in order but its witness is lost, make a new witness. Only for the "
            "newest copy: what an older one does not know of could be spent again.",
            "--adopt",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check that no entry was changed, removed or added by hand, and that the cap was kept.

    If it is not so, the exit code is 4.

    Example: thresher ledger verify ledger.db
    """
    from thresher.privacy.ledger import Ledger

    with Ledger.open(path) as ledger:
        try:
            found = ledger.verify(head=head)
            if adopt:
                Ledger.adopt(path)
                found = ledger.verify(head=head)
        except BudgetError as violated:  # not a budget that is too small
            say(f"thresher: {in_words(violated)}")
            sys.exit(4)
        left = ledger.remaining()
        there = ledger.witnessed
    say(f"{found.entries} entries in order, epsilon={left:g} left{_doubt(found, there=there)}")
    if json:
        show_json(asdict(found))


def _doubt(found: Verified, *, there: bool) -> str:
    """What speaks against this being the newest copy, for the end of a line."""
    if not there:
        return f"; its witness file is missing, so it may be an older copy: {CLOSED}"
    if found.witnessed:
        return ""
    times = f" and it was adopted {found.adopted} time{'s' * (found.adopted != 1)}"
    adopted = times if found.adopted else ""
    return f"; its witness file was missing{adopted}: it may be an older copy"
