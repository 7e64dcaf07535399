"""`thresher value --players owners`: a value for each owner, and what is said about it."""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from pathlib import Path
from typing import Any

from thresher.cli.streams import as_typed
from thresher.cli.valuing import (
    Files,
    by_what,
    check_targets,
    counted,
    raise_failed,
    written,
)
from thresher.cli.words import say, say_owners


def value_players(
    settings: Any, out: Path | None, report: Path | None, scheduler: str | None,
    checkpoint: str | None, *, force: bool, json: bool,
) -> dict[str, Any]:  # fmt: skip
    """Value owners, wherever their points are; the outcome for programs."""
    from thresher.runs.inspection import explained
    from thresher.runs.next_step import rounded
    from thresher.runs.owner_run import value_owners
    from thresher.runs.roles import guesses_in_words

    check_targets(settings, out, report, force=force)
    with explained(settings, out=out, report=report, scheduler=scheduler):
        valued = value_owners(
            settings, scheduler=scheduler, checkpoint=checkpoint, progress=sys.stderr.isatty()
        )
    valued = dataclasses.replace(valued, record=as_typed(dict(valued.record)))
    found = valued.valuation
    files: Files = {} if out is None else {out: partial(valued.write, out, force=force)}
    if report is not None:
        files[report] = partial(found.report, report, force=force)
    wrote, failed = written(files)
    if out is None and not json:
        valued.write(None)
    about = found.params
    judges = about["validation_points"]
    by = counted(judges, "validation ") if judges else "each other"
    say(
        f"valued {len(found)} owners of {counted(about['points'])} by {by}: "
        f"{found.method}{by_what(about)}"
    )
    if guessed := guesses_in_words(valued.record["guessed"]):
        say(f"guessed: {guessed}")
    say_owners(found.by_owner(), rounded)
    for path in wrote:
        say(f"wrote {path}")
    outcome = {
        "method": found.method,
        "params": dict(about),
        "owners": {str(owner): value for owner, value in found.by_owner().items()},
        "utility_all": found.utility_all,
        "utility_none": found.utility_none,
        "wrote": [str(path) for path in wrote],
        "record": dict(valued.record),
    }
    raise_failed(failed, outcome, json=json)
    return outcome
