"""The command `thresher`, one file for each group of verbs: parse, call one function, print.

Data go to stdout, words to stderr. Exit codes: 0 done, 1 refused, 2 usage, 3 budget, 4 an audited
claim is violated.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import warnings
from typing import Annotated

import typer

from thresher.cli.appraise import appraise
from thresher.cli.attack import attack, audit
from thresher.cli.clean import clean
from thresher.cli.demo import demo
from thresher.cli.embed import embed
from thresher.cli.federate import app as federate
from thresher.cli.inspect import inspect
from thresher.cli.ledger import app as ledger
from thresher.cli.market import app as market
from thresher.cli.options import OnceCommand, given
from thresher.cli.payout import payout
from thresher.cli.plan import plan
from thresher.cli.release import release
from thresher.cli.reproduce import reproduce
from thresher.cli.serve import serve, work
from thresher.cli.value import value
from thresher.cli.words import flushed, in_words, say, say_warning, say_whole
from thresher.errors import BudgetError, ThresherError, UndecidedError, in_options
from thresher.version import versions

HELP = """What each training point is worth: exactly, fast, and privately.

See what is in a table, and how to value it: **thresher inspect train.csv**

Find the rows of a table that hurt, and why: **thresher value train.csv --label y
--out values.parquet --report report.html**

Fix them: **thresher clean train.csv --values values.parquet --relabel relabel --out cleaned.csv**

Publish prices, and keep the points private: **thresher release points.csv
--validation val.csv --epsilon 1 --delta 1e-6 --ledger ledger.db --out-prices prices.json**

Value your own points by published prices: **thresher appraise mine.csv --prices prices.json**

Every command has **--help** with examples. Exit codes: 0 done, 1 refused, 2 usage, 3 budget, 4 an
audited claim is violated, 130 and 143 interrupted.
"""

app = typer.Typer(
    no_args_is_help=True, help=HELP, pretty_exceptions_enable=False, rich_markup_mode="markdown"
)
app.add_typer(ledger, name="ledger")
app.add_typer(federate, name="federate")
app.add_typer(market, name="market")
for verb in (
    demo, inspect, value, clean, payout, plan, release, appraise, attack, audit, embed, reproduce,
    serve, work,
):  # fmt: skip
    app.command()(verb)
for group in (app, ledger, federate, market):
    for each in group.registered_commands:
        each.cls = OnceCommand

INTERRUPTED, TERMINATED = 130, 143


def _show_version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        sys.stdout.write(f"{versions()}\n")
        raise typer.Exit


@app.callback(help=HELP)
def without_verb(
    _version: Annotated[
        bool,
        given(
            "Print the versions of Thresher and of the main packages that it uses.",
            "--version",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Options that work without a verb."""


def main() -> None:
    """Run the command; turn Thresher's own errors into one line and an exit code."""
    warnings.showwarning = say_warning
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # as Ctrl-C
    try:
        with flushed():
            app()
    except SystemExit as stopped:
        if stopped.code in {INTERRUPTED, TERMINATED}:
            beside = "; run the same command again to continue from its --checkpoint"
            going_on = beside if "--checkpoint" in " ".join(sys.argv) else ""
            say(f"thresher: interrupted; no file was left half written{going_on}")
        raise
    except BudgetError as refused:
        say(f"thresher: {in_words(refused)}")
        sys.exit(3)
    except BrokenPipeError:  # whoever reads the output has read enough
        sys.exit(1)
    except (ThresherError, OSError, MemoryError) as refused:
        say(f"thresher: {in_words(refused)}")
        for note in getattr(refused, "__notes__", ()):
            say_whole(in_options(note))
        sys.exit(2 if isinstance(refused, UndecidedError) else 1)
