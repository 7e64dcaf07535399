"""How `thresher value` runs, in memory, in parts or on a cluster, and what it says."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from thresher.cli.streams import as_typed
from thresher.cli.words import say, show_json
from thresher.errors import InputError, ThresherError, in_options, shortened

Files = dict[Path, Callable[[], list[Path] | None]]  # to be written, each by a call

PAGES = {".html", ".htm"}
LONGEST_CELL = 60  # characters of a label or an id in words


def value_in_memory(
    settings: Any, out: Path | None, report: Path | None, *, force: bool, json: bool
) -> dict[str, Any]:
    """Value points that fit in memory; the outcome for programs."""
    from thresher.runs.inspection import explained
    from thresher.runs.memory_run import value_files
    from thresher.runs.results import check_columns, write_results
    from thresher.runs.summary import Summary
    from thresher.runs.unlabeled import unlabeled_path

    check_targets(settings, out, report, force=force)
    show = sys.stderr.isatty()
    check = partial(check_columns, path=out, json=json)
    with explained(settings, out=out, report=report):
        valued = value_files(settings, progress=show, check=check)
    valued = dataclasses.replace(valued, record=as_typed(dict(valued.record)))
    files: Files = {}
    if out is not None:
        files[out] = partial(write_results, out, valued, force=force)
        if valued.suggested is not None:
            files[unlabeled_path(out)] = partial(_write_suggested, valued, out, force=force)
    if report is not None:
        files[report] = partial(valued.report, report, force=force, progress=show)
    wrote, failed = written(files)
    _say_suggested(valued)
    found = _said(Summary.of(valued, wrote), out if out in wrote else None)
    if out is None and json:
        columns, _ = valued.valuation.stored(valued.columns(), {})
        lists = [list(map(_plain, entries)) for entries in columns.values()]
        found["rows"] = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
        if valued.suggested is not None:
            found["unlabeled"] = {key: list(map(_plain, x)) for key, x in valued.suggested.items()}
    elif out is None:
        write_results(None, valued)
    raise_failed(failed, found, json=json)
    return found


def written(files: Files) -> tuple[list[Path], BaseException | None]:
    """Write each of the files that can be written: which ones, and the first failure.

    What was computed may have taken hours, so a disk that is full must not hide it.
    """
    wrote: list[Path] = []
    lacking: list[Path] = []
    failed: BaseException | None = None
    for path, write in files.items():
        try:
            wrote += write() or [path]
        except (ThresherError, OSError, MemoryError) as refused:
            failed = failed or refused
            lacking.append(path)
    if failed is not None:
        complete = f"complete: {', '.join(map(str, wrote))}; " if wrote else ""
        failed.add_note(
            f"{complete}not written: {', '.join(map(str, lacking))}; what is said above holds: "
            "make room, then run the same command with --force"
        )
    return wrote, failed


def raise_failed(failed: BaseException | None, found: dict[str, Any], *, json: bool) -> None:
    """Raise what kept a file from being written, after the outcome was printed."""
    if failed is not None:
        if json:
            show_json(found)
        raise failed


def _say_suggested(valued: Any) -> None:
    """Print the first of the labels that are suggested for rows without one."""
    if valued.suggested is None:
        return
    rows, labels = valued.suggested["row"], valued.suggested["best_label"]
    pairs = list(zip(rows, labels, strict=True))
    shown = ", ".join(f"row {row} {label}" for row, label in pairs[:5])
    more = f" and {len(pairs) - 5} more" if len(pairs) > 5 else ""
    say(f"rows without a label: {len(pairs)}, not valued; suggested labels: {shown}{more}")


def _write_suggested(valued: Any, out: Path, *, force: bool) -> list[Path]:
    from thresher.runs.results import write_columns
    from thresher.runs.unlabeled import unlabeled_path

    about = dict(valued.record)
    return write_columns(unlabeled_path(out), valued.suggested, about, force=force)


def value_in_parts(
    settings: Any, out: Path | None, report: Path | None, checkpoint: str | None, *, force: bool
) -> dict[str, Any]:
    """Value points that are read in parts; the outcome for programs."""
    from thresher.runs.inspection import explained
    from thresher.runs.table_file import value_to_file

    check_targets(settings, out, report, force=force)
    if report is not None:
        raise InputError(
            "--report shows all rows, which --memory does not keep: leave it out, or make a report "
            "of a part of the table without --memory"
        )
    if out is None:
        raise InputError(
            "--memory needs --out, the file that the table goes to: use --out values.parquet"
        )
    show = sys.stderr.isatty()
    with explained(settings, out=out, checkpoint=checkpoint):
        done = value_to_file(settings, out, checkpoint=checkpoint, force=force, progress=show)
    return _said(done, out)


def value_on_cluster(
    settings: Any, out: Path | None, report: Path | None, scheduler: str | None, *, force: bool
) -> dict[str, Any]:
    """Value points on a cluster; the outcome for programs."""
    from thresher.runs.inspection import explained
    from thresher.runs.table_folder import value_to_folder

    if report is not None:
        raise InputError("--report shows all rows, which no worker has: leave it out")
    if out is None:
        raise InputError("--engine dask needs --out, the folder that the workers write to")
    show = sys.stderr.isatty()
    with explained(settings, out=out, scheduler=scheduler):
        done = value_to_folder(settings, out, scheduler=scheduler, force=force, progress=show)
    return _said(done, out)


def _said(done: Any, out: Path | None) -> dict[str, Any]:
    """Print what came out of a run in words, and return it for programs."""
    from thresher.runs.roles import guesses_in_words

    say(_headline(done))
    chosen = done.record["chosen"]
    if "why" in chosen:
        say(f"method {chosen['method']}: {chosen['why']}")
    if "kernel" in chosen:
        say(f"kernel {chosen['kernel']}: {chosen['kernel_why']}")
    if guessed := guesses_in_words(done.record["guessed"]):
        say(f"guessed: {guessed}")
    hints = [in_options(hint) for hint in done.hints]
    for hint in hints:
        say(f"hint: {hint}")
    for line in done.copies:
        say(f"copies: {line}")
    _say_suggestions(done)
    _say_owners(done)
    if out is not None and out.is_dir():
        say(f"wrote {len(done.wrote)} file{'s' * (len(done.wrote) != 1)} to {out}")
    else:
        _say_next(done, out)
    return {
        "method": done.valuation.method,
        "params": dict(done.valuation.params),
        "points": done.rows,
        "utility_all": _known(done.valuation.utility_all),
        "utility_none": _known(done.valuation.utility_none),
        "suggestions": None if done.suggestions is None else dict(done.suggestions),
        "wrong_labels": None if done.forecast is None or done.leaks else round(done.forecast.wrong),
        "leaks": {name: vars(leak) for name, leak in done.leaks.items()},
        "forecast": None
        if done.forecast is None
        else {"poor": done.forecast.poor, "right": done.forecast.right},
        "why_look": done.why_look or None,
        "by_owner": None
        if done.by_owner is None
        else {str(owner): worth for owner, worth in done.by_owner.items()},
        "hints": hints,
        "wrote": [str(path) for path in done.wrote],
        "record": dict(done.record),
    }


def _written(entry: Any) -> str:
    return f"{entry:.6g}" if isinstance(entry, float) else str(entry)


def _say_suggestions(done: Any) -> None:
    """Print how many rows got each suggestion, if any did, and where to look first."""
    from thresher.runs.inspection import COUNTED
    from thresher.runs.next_step import CHANGING

    if done.suggestions is not None:
        say(f"suggestions: {', '.join(f'{n} {word}' for word, n in done.suggestions.items())}")
    if done.forecast is not None and done.leaks:
        say("wrong labels expected: unknown, as the label is repeated by a column")
    elif done.forecast is not None:
        poor = " (a poor forecast: classes overlap)" if done.forecast.poor else ""
        say(f"wrong labels expected: about {round(done.forecast.wrong)}{poor}")
    if done.worst:
        what = "look first at" if "score" in done.worst[0] else "lowest values"
        say(f"{what} ({COUNTED}):")
    for found in done.worst:
        id_, label, best = (
            shortened(_written(found.get(key)), LONGEST_CELL)
            for key in ("id", "label", "best_label")
        )
        name = f" ({id_})" if "id" in found else ""
        word = found.get("suggestion", "")
        advice = f"{word} to {best}" if word in CHANGING else word
        kind = "target" if done.settings.numbers else "label"
        what = f"{kind} {label}, {advice}".rstrip(", ")
        number = f"score {found['score']:.2f}" if "score" in found else f"{found['value']:.4g}"
        say(f"  row {found['row']}{name}: {number}, {what}")


def _say_owners(done: Any) -> None:
    from thresher.runs.next_step import owner_lines

    lines = owner_lines(done.by_owner)
    if lines:
        say("value of each owner:")
    for line in lines:
        say(f"  {shortened(line, LONGEST_CELL)}")


def _say_next(done: Any, out: Path | None) -> None:
    """Print the files that were written, and what to do with them."""
    from thresher.runs.next_step import fill_step, next_steps

    for path in done.wrote:
        say(f"wrote {path}")
    for line in fill_step(done.settings, done.record, out, done.wrote):
        say(line)
    page = next((path for path in done.wrote if path.suffix.lower() in PAGES), None)
    if done.suggestions is None:
        return
    facts = done.suggestions, done.settings, done.record
    for line in next_steps(*facts, out, page, done.why_look, done.leaks):
        say(line)


def counted(number: int, kind: str = "") -> str:
    """A number of points in words, such as "1 point"."""
    return f"{number} {kind}point{'' if number == 1 else 's'}"


def _headline(done: Any) -> str:
    """What was done, in one line."""
    about = done.valuation.params
    held = done.record["validation"].get("held_out")
    beside = "" if held is None else ", held out of the table"
    judges = "each other"
    if done.validation_points:
        judges = f"{counted(done.validation_points, 'validation ')}{beside}"
    return f"valued {counted(done.rows)} by {judges}: {done.valuation.method}{by_what(about)}"


def by_what(about: Any) -> str:
    """Words for the semivalue, if it is not Shapley's, and for what near means."""
    kind = about.get("semivalue", "shapley")
    kind = "" if kind == "shapley" else f" (semivalue {kind})"
    kernel = f", {about['kernel']} kernel" if "kernel" in about else ""
    within = f" within {about['metric']} radius {about['radius']:.4g}" if "radius" in about else ""
    within += kernel
    return f"{kind}{within}" + (f", {about['trees']} trees" if "trees" in about else "")


def check_targets(settings: Any, out: Path | None, report: Path | None, *, force: bool) -> None:
    """Refuse files that cannot be written, and missing packages, before the work begins."""
    from thresher.errors import require
    from thresher.files import check_apart, check_free, record_path
    from thresher.runs.results import check_results
    from thresher.runs.unlabeled import unlabeled_path
    from thresher.tables.paths import find_files

    files = list(find_files(settings.file))
    if settings.validation is not None:
        files += find_files(settings.validation)
    named = (settings.label, settings.validation_label)
    files += [Path(name) for name in named if name is not None and Path(name).is_file()]
    if out is not None:
        check_results(out, files, force=force)
        if settings.unlabeled is not None:
            check_results(unlabeled_path(out), files, force=force)
    if report is not None:
        from thresher.report import check_target

        require("jinja2", purpose="the HTML report", extra="report")
        check_apart(report, [*files, *([] if out is None else [out, record_path(out)])])
        check_free(report, force=force)
        check_target(report, force=force)


def _plain(entry: Any) -> Any:
    plain = entry.item() if hasattr(entry, "item") else entry
    return _known(plain) if isinstance(plain, float) else plain


def _known(number: float) -> float | None:
    return number if number == number else None  # noqa: PLR0124
