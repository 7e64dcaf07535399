"""`thresher value`: from a file to what each row is worth, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from thresher.cli.streams import is_standard_output, spooled
from thresher.cli.valuing import value_in_memory, value_in_parts, value_on_cluster
from thresher.cli.words import show_json, split_names
from thresher.errors import InputError

COLUMNS, VALIDATION, METHOD, OUTPUT = "Columns", "Validation set", "Method", "Output"

Method = Literal[
    "tknn", "knn", "zero-budget", "leave-one-out", "data-shapley", "beta-shapley", "data-banzhaf"
]


def value(
    file: Annotated[
        str,
        typer.Argument(
            help="The points: .csv, .tsv, .parquet, .arrow, .feather, .npz or .npy; a file, a "
            "folder, a pattern in quotes, or - for standard input."
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
    keep_na: Annotated[
        bool,
        typer.Option(
            "--keep-na",
            help="Labels such as NA and null are classes: no hint that they may be missing.",
            rich_help_panel=COLUMNS,
        ),
    ] = False,
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
    error: Annotated[
        float,
        typer.Option(
            help="For knn, how far each validation point's value of a row may be off: faster.",
            rich_help_panel=METHOD,
        ),
    ] = 0.0,
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
            help="With --memory, a file that a broken run goes on from by the same command; it is "
            "removed at the end.",
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
            "--out",
            "-o",
            help="Where the table goes: .parquet, .csv, .tsv, .arrow or .feather; to standard "
            "output, as .csv, if it is - or not given.",
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

    Example: zcat train.csv.gz | thresher value - --validation val.csv -o - > values.csv

    Example: thresher value 'parts/*.parquet' --validation val.parquet --memory 2GB --checkpoint run
    --out values.parquet

    Example: thresher value 'parts/*.parquet' --validation val.parquet --engine dask
    --scheduler tcp://host:8786 --out values
    """
    from thresher.runs import Settings

    given = {key: entry for key, entry in locals().items() if key in Settings.__dataclass_fields__}
    out = None if is_standard_output(out, json=json) else out
    settings = _settings(given)
    if memory is None and checkpoint is not None:
        raise InputError("--checkpoint goes with --memory: points are read in parts then")
    if engine == "local" and scheduler is not None:
        raise InputError("--scheduler goes with --engine dask")
    if engine == "dask":
        done = value_on_cluster(settings, out, report, scheduler, force=force)
    elif memory is not None:
        done = value_in_parts(settings, out, report, checkpoint, force=force)
    else:
        done = value_in_memory(settings, out, report, force=force, json=json)
    if json:
        show_json(done)


def _settings(given: dict[str, Any]) -> Any:
    from thresher.runs import Settings

    at_once = given["memory"] is None and given["engine"] == "local"
    for name in ("file", "validation"):
        if given[name] is not None:
            given[name] = spooled(given[name], allowed=at_once)
    for name in ("features", "ignore", "categorical"):
        given[name] = split_names(given[name])
    if given["model"] is None:
        del given["model"]
    return Settings(**given)
