"""What to do after a run: the commands that act on it, and what to say if there are none."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thresher.runs.leak_hints import Leaks, leak_sentence, without_leaks
from thresher.runs.settings import Settings
from thresher.runs.unlabeled import unlabeled_path
from thresher.tables.packing import inner_name, is_packed

DECIDED = {"decisions": "decisions.csv"}
COLUMNS: tuple[str, ...] = ("label", "id", "delimiter", "encoding")
CHANGING = ("relabel", "correct")  # suggestions to change a label, and a number
FILES = {"out": "values.parquet", "report": "report.html"}
MOST_OWNERS = 5  # that are told at each end


def clean_command(
    settings: Settings, record: Mapping[str, Any], source: Mapping[str, str],
    changes: Mapping[str, str] | None = None, target: str = "clean",
) -> str:  # fmt: skip
    """The command that cleans the table of a run; empty if the table came from a stream.

    Examples
    --------
    >>> settings = Settings("a.csv", label="kind")
    >>> record = settings.record() | {"points": {"files": ["a.csv"]}}
    >>> clean_command(settings, record, {"decisions": "decisions.csv"})
    'thresher clean a.csv --decisions decisions.csv --label kind --out clean.csv'
    """
    if record["settings"]["file"] != settings.file:  # which stood for a stream
        return ""
    asked = settings.given()
    columns: dict[str, str] = {name: asked[name] for name in COLUMNS if name in asked}
    first = Path(record["points"]["files"][0])
    inside = Path(inner_name(first)).suffix
    suffix = f"{inside}{first.suffix}" if is_packed(first) else inside
    options = {**source, **columns, **(changes or {}), "out": f"{target}{suffix}"}
    pairs = [word for name, entry in options.items() for word in (f"--{name}", entry)]
    return shlex.join(["thresher", "clean", settings.file, *pairs])


def fill_step(
    settings: Settings, record: Mapping[str, Any], out: Path | None, wrote: Sequence[Path]
) -> list[str]:
    """How to fill in the labels that were suggested for rows without one, if any were."""
    path = None if out is None else unlabeled_path(out)
    if path is None or path not in wrote:
        return []
    source, changes = {"values": str(path)}, {"relabel": "relabel"}
    command = clean_command(settings, record, source, changes, "filled")
    return [f"to fill in the suggested labels: {command}"] if command else []


def next_steps(
    suggestions: Mapping[str, int], settings: Settings, record: Mapping[str, Any],
    out: Path | None, report: Path | None, why_look: str = "", leaks: Leaks | None = None,
) -> list[str]:  # fmt: skip
    """What to do next, line by line.

    If there is a reason to look at marked rows, `why_look`, no line changes them all at once.
    """
    if leaks:
        return [_leak_step(settings, record, out, report, leaks)]
    decided = clean_command(settings, record, DECIDED)
    change = next(word for word in CHANGING if word in suggestions)
    changes = {name: name for name in ("drop", change) if suggestions[name]}
    act = clean_command(settings, record, {"values": str(out)}, changes)
    marked = suggestions[change] + suggestions["drop"]
    found = [f"change no row without a look: {why_look}"] if marked and why_look else []
    if out is None and report is None:
        return (
            [*found, f"to keep this and review the rows: {_again(settings)}"] if decided else found
        )
    if report is not None and decided:
        found.append(f"to decide row by row: open {report}, save decisions.csv, then: {decided}")
    if marked and why_look:
        page = report is None and decided and not settings.in_parts
        return [*found, f"to review the rows: {_again(settings, out)}"] if page else found
    if marked:
        return [*found, f"to act on it: {act}"] if out is not None and act else found
    what = "target" if settings.numbers else "label"
    if suggestions["inspect"]:
        where = f"in {report}" if report is not None else f"in {out}" if out is not None else ""
        are = "row is" if suggestions["inspect"] == 1 else "rows are"
        look = f"{suggestions['inspect']} {are} worth a look {where}"
        advice = f"no {what} is clearly wrong, but {look}"
        return [advice.rstrip(), *found]
    return [f"no {what} stands out as wrong: nothing needs to be changed"]


def _leak_step(
    settings: Settings, record: Mapping[str, Any], out: Path | None, report: Path | None,
    leaks: Leaks,
) -> str:  # fmt: skip
    """That nothing is known about labels while a column repeats them, and the way out."""
    said = leak_sentence(leaks, "target" if settings.numbers else "label")
    lacking = len(leaks) >= len(record["encoder"]["columns"])
    if lacking or record["settings"]["file"] != settings.file:  # which stood for a stream
        return f"nothing is known yet: {said}"
    again = without_leaks(settings, leaks)
    line = again.command() if out is None and report is None else _again(again, out, report)
    return f"nothing is known yet: {said}; without it: {line}"


def _again(settings: Settings, out: Path | None = None, report: Path | None = None) -> str:
    """The command that values the table again and writes a page; what is there is replaced."""
    files = {"out": out or FILES["out"], "report": report or FILES["report"]}
    options = {name: [str(path)] for name, path in files.items()}
    if settings.in_parts:  # which keep no rows to show
        del options["report"]
    options |= {} if out is None and report is None else {"force": []}
    words = [word for name, entry in options.items() for word in (f"--{name}", *entry)]
    command = dataclasses.replace(settings, guess=()).command()
    return shlex.join([*shlex.split(command), *words])


def rounded(value: float) -> str:
    """A value with about four digits.

    Examples
    --------
    >>> rounded(0.123456), rounded(23244.7)
    ('0.1235', '23,245')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def owner_lines(by_owner: Mapping[Any, float] | None) -> list[str]:
    """What owners are worth, the largest value first; of many owners, those at both ends.

    Examples
    --------
    >>> owner_lines({"north": 1.5, "south": -0.25})
    ['north: 1.5', 'south: -0.25']
    """
    worth = sorted((by_owner or {}).items(), key=lambda pair: -pair[1])
    lines = [f"{owner}: {rounded(value)}" for owner, value in worth]
    if len(lines) <= 2 * MOST_OWNERS:
        return lines
    between = f"... {len(lines) - 2 * MOST_OWNERS} more ..."
    return [*lines[:MOST_OWNERS], between, *lines[-MOST_OWNERS:]]
