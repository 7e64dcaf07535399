"""`thresher ledger`: privacy budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.cli.words import say, show_json

app = typer.Typer(no_args_is_help=True, help="Privacy budgets: create, show, verify.")

LedgerPath = Annotated[Path, typer.Argument(help="The ledger's file.", show_default=False)]


@app.command("create")
def create(
    path: LedgerPath,
    epsilon: Annotated[float, typer.Option(help="The cap's epsilon.")],
    delta: Annotated[float, typer.Option(help="The cap's delta; 0 for pure releases only.")],
    adjacency: Annotated[str, typer.Option(help="add-remove or replace-one.")] = "add-remove",
    unit: Annotated[str, typer.Option(help="What is protected: point or owner.")] = "point",
    data_set: Annotated[str, typer.Option(help="What it protects, in words.")] = "",
    filter_: Annotated[
        str | None, typer.Option("--filter", help="How costs add up: gaussian or basic.")
    ] = None,
) -> None:
    """Create a ledger, whose terms are fixed forever.

    Example: thresher ledger create ledger.db --epsilon 1 --delta 1e-6 --data-set "clinic 2026"
    """
    from thresher.privacy.ledger import Ledger

    terms: Any = {"adjacency": adjacency, "unit": unit, "data_set": data_set, "filter": filter_}
    with Ledger.create(path, epsilon=epsilon, delta=delta, **terms) as ledger:
        say(f"created {ledger}")


@app.command("show")
def show(path: LedgerPath) -> None:
    """Print the cap, what is left, and every entry, as JSON.

    Example: thresher ledger show ledger.db
    """
    from thresher.privacy.ledger import Ledger

    with Ledger.open(path) as ledger:
        terms = ("epsilon", "delta", "adjacency", "unit", "data_set", "filter")
        shown = {name: getattr(ledger, name) for name in terms}
        shown |= {"remaining": ledger.remaining(), "entries": ledger.entries()}
        show_json(shown)


@app.command("verify")
def verify(
    path: LedgerPath,
    head: Annotated[
        str | None, typer.Option(help="A hash that a release recorded: it must be in the ledger.")
    ] = None,
) -> None:
    """Check that no entry was changed, dropped or put in, and that the cap was kept.

    Example: thresher ledger verify ledger.db
    """
    from thresher.privacy.ledger import Ledger

    with Ledger.open(path) as ledger:
        found = ledger.verify(head=head)
        left = ledger.remaining()
    witness = "" if found.witnessed else "; its witness file was missing: it may be an older copy"
    say(f"{found.entries} entries in order, epsilon={left:g} left{witness}")
    show_json({"entries": found.entries, "head": found.head, "witnessed": found.witnessed})
