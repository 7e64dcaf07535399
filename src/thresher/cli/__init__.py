"""The command `thresher`, one file for each group of verbs: parse, call one function, print.

Data go to stdout, words to stderr. Exit codes: 0 done, 1 refused, 2 usage, 3 budget, 4 an audited
claim is violated.
"""

from __future__ import annotations

import sys

import typer

from thresher.cli.attack import attack, audit
from thresher.cli.embed import embed
from thresher.cli.ledger import app as ledger
from thresher.cli.release import release
from thresher.cli.reproduce import reproduce
from thresher.cli.words import say
from thresher.errors import BudgetError, ThresherError

app = typer.Typer(
    no_args_is_help=True,
    help="What each training point is worth: exactly, fast, and privately.",
    pretty_exceptions_enable=False,
)
app.add_typer(ledger, name="ledger")
for verb in (release, attack, audit, embed, reproduce):
    app.command()(verb)


def main() -> None:
    """Run the command; errors of ours are one line and an exit code."""
    try:
        app()
    except BudgetError as refused:
        say(f"thresher: {refused}")
        sys.exit(3)
    except ThresherError as refused:
        say(f"thresher: {refused}")
        sys.exit(1)
