"""`thresher value`: from a file to what each row is worth, and what to do about it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from thresher.cli.words import say, show_json, split_names
from thresher.errors import InputError

COLUMNS, VALIDATION, METHOD, OUTPUT = "Columns", "Validation set", "Method", "Output"
WORST = 5  # rows that are told in words

Method = Literal[
    "tknn", "knn", "zero-budget", "leave-one-out", "data-shapley", "beta-shapley", "data-banzhaf"
]


def value(
    file: Annotated[
        str,
        typer.Argument(
            help="The points: .csv, .tsv, .parquet, .arrow, .feather, .npz or .npy; a file, a "
            "folder, or a pattern in quotes."
        ),
    ],
    label: Annotated[
        str,
        typer.Option(
            help="The column of labels; for an .npy file, the file of them.",
            rich_help_panel=COLUMNS,
        ),
    ] = "y",
    features: Annotated[
        str | None,
        typer.Option(
            help="Names or patterns, such as age,x*; all other columns if not given.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(help="Columns to leave out.", rich_help_panel=COLUMNS)
    ] = None,
    id: Annotated[  # noqa: A002
        str | None, typer.Option(help="The column of ids.", rich_help_panel=COLUMNS)
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="The column of owners.", rich_help_panel=COLUMNS)
    ] = None,
    categorical: Annotated[
        str | None,
        typer.Option(
            help="Columns of categories: a column of 0 and 1 for each.", rich_help_panel=COLUMNS
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="The column of texts, to be embedded; needs sentence-transformers.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The name or folder of the model that embeds texts.", rich_help_panel=COLUMNS
        ),
    ] = None,
    fill: Annotated[
        str | None,
        typer.Option(
            help="What stands for missing numbers: median, zero or a number.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Bring columns to mean 0 and deviation 1 over the points.",
            rich_help_panel=COLUMNS,
        ),
    ] = False,
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="Between cells of text: a comma or a tab if not given.", rich_help_panel=COLUMNS
        ),
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(help="A table of the same columns.", rich_help_panel=VALIDATION),
    ] = None,
    validation_label: Annotated[
        str | None,
        typer.Option(
            help="Its column or file of labels, if another one.", rich_help_panel=VALIDATION
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="Instead, hold out this share of each class; 0.1 if not given.",
            rich_help_panel=VALIDATION,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of the rows held out, and of sampling.", rich_help_panel=VALIDATION)
    ] = 0,
    method: Annotated[
        Method, typer.Option(help="How points are valued.", rich_help_panel=METHOD)
    ] = "tknn",
    radius: Annotated[
        str,
        typer.Option(
            help="Distance up to which a point counts: a number, or auto, which asks the "
            "validation set.",
            rich_help_panel=METHOD,
        ),
    ] = "auto",
    metric: Annotated[
        Literal["cosine", "euclidean"], typer.Option(help="Distance.", rich_help_panel=METHOD)
    ] = "cosine",
    semivalue: Annotated[
        str,
        typer.Option(
            help="shapley, banzhaf, leave-one-out or 'beta(4, 1)'.",
            rich_help_panel=METHOD,
            autocompletion=lambda: ["shapley", "banzhaf", "leave-one-out"],
        ),
    ] = "shapley",
    k: Annotated[int, typer.Option(help="Neighbors, for knn.", rich_help_panel=METHOD)] = 5,
    utility: Annotated[
        Literal["soft-label", "jia2019"], typer.Option(help="For knn.", rich_help_panel=METHOD)
    ] = "soft-label",
    evaluations: Annotated[
        int | None,
        typer.Option(help="Models to train, for the last three methods.", rich_help_panel=METHOD),
    ] = None,
    mean: Annotated[
        bool,
        typer.Option(
            "--mean", help="Means over the validation set, not sums.", rich_help_panel=METHOD
        ),
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            help="The most memory to use, such as 2GB: the points are read in parts; needs "
            "--validation and --out.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="With --memory, a folder that a broken run goes on from by the same command.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    engine: Annotated[
        Literal["local", "dask"],
        typer.Option(
            help="dask: each file is read, counted and judged by a worker, and --out is a folder.",
            rich_help_panel=METHOD,
        ),
    ] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="With --engine dask, its scheduler, such as tcp://host:8786; a cluster of this "
            "machine if not given.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where the table goes: .parquet, .csv, .tsv, .arrow or .feather; to standard "
            "output, as .csv, if not given.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Where the page goes that shows it: .html.", rich_help_panel=OUTPUT),
    ] = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print the outcome as JSON.", rich_help_panel=OUTPUT),
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace files that are there.", rich_help_panel=OUTPUT),
    ] = False,
) -> None:
    """Say what each row is worth, which rows hurt, and what to do about them.

    The table has, for each row: value, rank (1 is the lowest), how many validation points are near,
    which share of them agrees with its label, the best other label and what the row would be worth
    under it, and a suggestion: keep, relabel, inspect, drop, or outlier (nobody is near). What was
    computed, and from which files, is kept with it.

    Example: thresher value train.csv --label species --standardize --out values.parquet
    --report report.html

    Example: thresher value train.csv --validation val.csv --label y --radius 0.5 --out values.csv

    Example: thresher value 'parts/*.parquet' --id name --owner clinic --categorical sex,city
    --fill median --out values.parquet

    Example: thresher value features.npy --label labels.npy --method knn --k 5 --out values.csv

    Example: thresher value 'parts/*.parquet' --validation val.parquet --memory 2GB --checkpoint run
    --out values.parquet

    Example: thresher value 'parts/*.parquet' --validation val.parquet --engine dask
    --scheduler tcp://host:8786 --out values
    """
    from thresher.runs import Settings

    given = {key: entry for key, entry in locals().items() if key in Settings.__dataclass_fields__}
    settings = _settings(given)
    if memory is None and checkpoint is not None:
        raise InputError("--checkpoint goes with --memory: points are read in parts then")
    if engine == "local" and scheduler is not None:
        raise InputError("--scheduler goes with --engine dask")
    if engine == "dask":
        done = _on_cluster(settings, out, report, scheduler, force=force)
    elif memory is not None:
        done = _stream(settings, out, report, checkpoint, force=force)
    else:
        done = _at_once(settings, out, report, force=force, json=json)
    if json:
        show_json(done)


def _at_once(
    settings: Any, out: Path | None, report: Path | None, *, force: bool, json: bool
) -> dict[str, Any]:
    """Value points that fit in memory; the outcome for programs."""
    from thresher.runs import value_files, write_results

    _check_targets(settings, out, report, force=force)
    show = sys.stderr.isatty()
    valued = value_files(settings, progress=show)
    wrote = _write(valued, out, report, force=force, progress=show)
    _say(valued, wrote, out)
    if out is None and not json:
        write_results(None, valued)
    return _document(valued, wrote, rows=out is None) if json else {}


def _stream(
    settings: Any, out: Path | None, report: Path | None, checkpoint: str | None, *, force: bool
) -> dict[str, Any]:
    """Value points that are read in parts; the outcome for programs."""
    from thresher.runs import stream_files

    _check_targets(settings, out, report, force=force)
    if report is not None:
        raise InputError(
            "--report shows all rows, which --memory does not keep: leave it out, or make a report "
            "of a part of the table without --memory"
        )
    if out is None:
        raise InputError("--memory needs --out, the file that the table goes to")
    done = stream_files(
        settings, out, checkpoint=checkpoint, force=force, progress=sys.stderr.isatty()
    )
    say(_headline(done.valuation, done.rows, done.validation_points))
    for hint in done.hints:
        say(f"hint: {hint}")
    _say_suggestions(done.suggestions, done.worst)
    for path in done.wrote:
        say(f"wrote {path}")
    return {
        "method": done.valuation.method,
        "params": dict(done.valuation.params),
        "points": done.rows,
        "utility_all": done.valuation.utility_all,
        "utility_none": done.valuation.utility_none,
        "suggestions": dict(done.suggestions),
        "by_owner": None
        if done.by_owner is None
        else {str(owner): worth for owner, worth in done.by_owner.items()},
        "hints": done.hints,
        "wrote": [str(path) for path in done.wrote],
        "record": dict(done.record),
    }


def _on_cluster(
    settings: Any, out: Path | None, report: Path | None, scheduler: str | None, *, force: bool
) -> dict[str, Any]:
    """Value points on a cluster; the outcome for programs."""
    from thresher.runs import cluster_files

    if report is not None:
        raise InputError("--report shows all rows, which no worker has: leave it out")
    if out is None:
        raise InputError("--engine dask needs --out, the folder that the workers write to")
    done = cluster_files(settings, out, scheduler=scheduler, force=force)
    params = dict(done.valuation.params)
    say(_headline(done.valuation, done.rows, params["validation_points"]))
    _say_suggestions(done.suggestions, done.worst)
    say(f"wrote {len(done.wrote)} file{'s' * (len(done.wrote) != 1)} to {out}")
    return {
        "method": done.valuation.method,
        "params": params,
        "points": done.rows,
        "suggestions": dict(done.suggestions),
        "wrote": [str(path) for path in done.wrote],
        "record": dict(done.record),
    }


def _say_suggestions(suggestions: Any, worst: list[dict[str, Any]]) -> None:
    say(f"suggestions: {', '.join(f'{n} {word}' for word, n in suggestions.items())}")
    say("lowest values:")
    for found in worst:
        name = f" ({found['id']})" if "id" in found else ""
        to = f" to {found['best_label']}" if found["suggestion"] == "relabel" else ""
        what = " ".join(f"label {found['label']}, {found['suggestion']}{to}".split())
        say(f"  row {found['row']}{name}: {found['value']:.4g}, {what}")


def _headline(valuation: Any, points: int, validation: int, beside: str = "") -> str:
    """What was done, in one line."""
    about = valuation.params
    kind = about.get("semivalue", "shapley")
    kind = "" if kind == "shapley" else f" (semivalue {kind})"
    radius = f" within {about['metric']} radius {about['radius']:.4g}" if "radius" in about else ""
    return (
        f"valued {points} points by {validation} validation points{beside}: "
        f"{valuation.method}{kind}{radius}"
    )


def _settings(given: dict[str, Any]) -> Any:
    from thresher.runs import Settings

    for name in ("features", "ignore", "categorical"):
        given[name] = split_names(given[name])
    if given["model"] is None:
        del given["model"]
    return Settings(**given)


def _check_targets(settings: Any, out: Path | None, report: Path | None, *, force: bool) -> None:
    """Refuse files that cannot be written, and packages that are not there, before the work."""
    from thresher.errors import require
    from thresher.runs import check_results
    from thresher.tables.finding import find_files
    from thresher.tables.reading import record_path
    from thresher.tables.writing import check_apart, check_free

    files = list(find_files(settings.file))
    if settings.validation is not None:
        files += find_files(settings.validation)
    named = (settings.label, settings.validation_label)
    files += [Path(name) for name in named if name is not None and Path(name).is_file()]
    if out is not None:
        check_results(out, files, force=force)
    if report is not None:
        from thresher.report import check_target

        require("jinja2", purpose="the HTML report", extra="report")
        check_apart(report, [*files, *([] if out is None else [out, record_path(out)])])
        check_free(report, force=force)
        check_target(report, force=force)


def _write(
    valued: Any, out: Path | None, report: Path | None, *, force: bool, progress: bool
) -> list[Path]:
    from thresher.runs import write_results

    wrote = [] if out is None else write_results(out, valued, force=force)
    if report is not None:
        valued.report(report, force=force, progress=progress)
        wrote.append(report)
    return wrote


def _say(valued: Any, wrote: list[Path], out: Path | None) -> None:
    """The outcome in words."""
    held = valued.record["validation"].get("held_out")
    beside = "" if held is None else ", held out of the table"
    say(_headline(valued.valuation, len(valued.points), len(valued.validation), beside))
    for hint in valued.hints():
        say(f"hint: {hint}")
    for line in _worst_lines(valued):
        say(line)
    for path in wrote:
        say(f"wrote {path}")
    fixable = valued.findings is not None and sum(
        valued.findings.counts()[word] for word in ("relabel", "drop")
    )
    if out is not None and fixable:
        say(f"to act on it: {_next_command(valued, out)}")


def _next_command(valued: Any, out: Path) -> str:
    settings = valued.settings
    words = ["thresher", "clean", settings.file, "--values", str(out)]
    for name in ("label", "id", "delimiter"):
        if name in settings.given():
            words += [f"--{name}", getattr(settings, name)]
    suffix = Path(valued.record["points"]["files"][0]).suffix
    return shlex.join([*words, "--drop", "drop", "--relabel", "relabel", "--out", f"clean{suffix}"])


def _worst_lines(valued: Any) -> list[str]:
    """How many rows got each suggestion, and the lowest values."""
    found = []
    if valued.findings is not None:
        told = ", ".join(f"{count} {name}" for name, count in valued.findings.counts().items())
        found.append(f"suggestions: {told}")
    found.append("lowest values:")
    for place in valued.valuation.suspects(min(WORST, len(valued.points))):
        row, what = valued.points.rows[place], f"label {valued.points.labels[place]}"
        name = "" if valued.points.ids is None else f" ({valued.points.ids[place]})"
        if valued.findings is not None:
            what += f", {advice(valued.findings, place)}"
        what = " ".join(what.split())  # a label may have line feeds
        found.append(f"  row {row}{name}: {valued.valuation.values[place]:.4g}, {what}")
    return found


def advice(findings: Any, place: int) -> str:
    """A suggestion in words, with the label to be taken."""
    word = findings.suggestion[place]
    return f"relabel to {findings.best_label[place]}" if word == "relabel" else str(word)


def _document(valued: Any, wrote: list[Path], *, rows: bool) -> dict[str, Any]:
    valuation = valued.valuation
    found: dict[str, Any] = {
        "method": valuation.method,
        "params": dict(valuation.params),
        "points": len(valuation),
        "utility_all": _known(valuation.utility_all),
        "utility_none": _known(valuation.utility_none),
        "suggestions": None if valued.findings is None else valued.findings.counts(),
        "by_owner": None if valuation.owners is None else _owners(valuation),
        "hints": valued.hints(),
        "wrote": [str(path) for path in wrote],
        "record": dict(valued.record),
    }
    if rows:
        columns, _ = valuation.stored(valued.columns(), {})
        lists = [list(map(_plain, entries)) for entries in columns.values()]
        found["rows"] = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
    return found


def _owners(valuation: Any) -> dict[str, float]:
    return {str(owner): worth for owner, worth in valuation.by_owner().items()}


def _plain(entry: Any) -> Any:
    plain = entry.item() if hasattr(entry, "item") else entry
    return _known(plain) if isinstance(plain, float) else plain


def _known(number: float) -> float | None:
    return number if number == number else None  # noqa: PLR0124
