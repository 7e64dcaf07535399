"""`thresher reproduce`: the paper's tables and figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from thresher.cli.options import argument, given
from thresher.cli.words import say, show_json, split_names


def reproduce(
    names: Annotated[
        list[str] | None, argument("Names of tables and figures, or all; see --list.")
    ] = None,
    out: Annotated[
        Path | None,
        given(
            "The folder for the results; if not given, reproduction, or reproduction-quick with "
            "--quick.",
            "--out",
            "-o",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        given(
            "The folder with the data sets, as NAME.npz; if not given, the one that THRESHER_DATA "
            "names."
        ),
    ] = None,
    fetch: Annotated[bool, given("Download from OpenML what the folder does not have.")] = True,
    sets: Annotated[
        str | None,
        given("Data sets, separated by commas; all if not given, or two with --quick."),
    ] = None,
    protocol: Annotated[
        str | None, given("How rows are drawn: paper or clean; both if not given.")
    ] = None,
    runs: Annotated[
        int | None, given("Draws for each number; if not given, 5, or 1 with --quick.")
    ] = None,
    subsets: Annotated[
        int | None,
        given(
            "Models to train for each valuation, at least 4,000; if not given, 10,000, or 4,000 "
            "with --quick."
        ),
    ] = None,
    quick: Annotated[bool, given("A small version, in a few minutes.", "--quick")] = False,
    list_: Annotated[bool, given("List all tables and figures, and stop.", "--list")] = False,
) -> None:
    """Compute the paper's tables and figures again, and show the printed numbers next to ours.

    An interrupted run continues where it stopped if you give it the same folder. The command
    prints the path of the page that shows everything.

    Example: thresher reproduce all --quick

    Example: thresher reproduce mislabel noisy --data datasets --out reproduction
    """
    from thresher.paper.reproduce import EXPERIMENTS
    from thresher.paper.reproduce import reproduce as run

    if list_:
        show_json({name: f"{each.title} ({each.place})" for name, each in EXPERIMENTS.items()})
        return
    out = out or Path("reproduction-quick" if quick else "reproduction")
    found = run(
        names or [], out, data=data, fetch=fetch, sets=split_names(sets) or None,
        protocols=split_names(protocol) or None, runs=runs, subsets=subsets, quick=quick,
        progress=sys.stderr.isatty(),
    )  # fmt: skip
    for done in found:
        say(repr(done))
        for name, reason in done.missing.items():
            say(f"missing: {name} ({reason})")
    sys.stdout.write(f"{out / 'index.html'}\n")
