"""`thresher value`: from a file to what each row is worth, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from thresher.cli.options import argument, panel
from thresher.cli.streams import is_standard_output, spooled
from thresher.cli.value_owners import value_players
from thresher.cli.valuing import value_in_memory, value_in_parts, value_on_cluster
from thresher.cli.words import show_json, split_names
from thresher.errors import InputError

_column, _text, _validation = panel("Columns"), panel("Text files"), panel("Validation set")
_method, _output = panel("Method"), panel("Output")

USUAL = (  # options that are None if they were not typed, and then what `Settings` has
    "label", "model", "scaling", "trees", "folds", "radius", "kernel", "rings", "metric", "k",
    "utility", "error", "seed",
)  # fmt: skip
Method = Literal[
    "auto",
    "forest",
    "tknn",
    "knn",
    "zero-budget",
    "leave-one-out",
    "data-shapley",
    "beta-shapley",
    "data-banzhaf",
]


def value(
    file: Annotated[
        str,
        argument(
            "The points: .csv, .tsv, .txt, .parquet, .arrow, .feather, .xlsx, .jsonl, .npz or "
            ".npy, also as .gz or .zip; a file, a folder, a pattern in quotes, or - for standard "
            "input."
        ),
    ],
    label: Annotated[
        str | None,
        _column("The column of labels; guessed if not given. For .npy, the file of labels."),
    ] = None,
    task: Annotated[
        Literal["classification", "regression"] | None,
        _column(
            "What labels are; classification if they are text, or few different numbers. With "
            "regression they are numbers to predict."
        ),
    ] = None,
    empty: Annotated[
        float | None,
        _column(
            "With --task regression: the prediction if no point is near; if not given, the mean "
            "of the validation targets, or of all targets without a validation set."
        ),
    ] = None,
    features: Annotated[
        str | None, _column("Names or patterns, such as age,x*; all other columns if not given.")
    ] = None,
    ignore: Annotated[str | None, _column("Columns to leave out.")] = None,
    id: Annotated[  # noqa: A002
        str | None, _column("The column of ids; guessed if not given.")
    ] = None,
    owner: Annotated[str | None, _column("The column of owners; guessed if not given.")] = None,
    categorical: Annotated[
        str | None,
        _column(
            "Columns of categories, such as sex,city. A forest takes each as one column; for other "
            "methods, each category becomes a column of 0 and 1."
        ),
    ] = None,
    text: Annotated[
        str | None, _column("The column of texts, to be embedded; needs sentence-transformers.")
    ] = None,
    image: Annotated[
        str | None,
        _column("The column of picture files, which the report shows; it is not a feature."),
    ] = None,
    model: Annotated[
        str | None,
        _column(
            "The name or folder of the model that embeds texts; all-MiniLM-L6-v2 if not given."
        ),
    ] = None,
    fill: Annotated[
        str | None,
        _column("How to fill missing numbers: median, zero or a number. A forest needs no --fill."),
    ] = None,
    standardize: Annotated[
        bool,
        _column("Bring all columns to one scale, computed from the points alone.", "--standardize"),
    ] = False,
    scaling: Annotated[
        Literal["robust", "plain", "ranks"] | None,
        _column(
            "With --standardize. robust (if not given): mean 0 and standard deviation 1, computed "
            "without the lowest and the highest 0.5 % of a column; plain: the same, computed with "
            "all rows; ranks: ranks in place of numbers."
        ),
    ] = None,
    date: Annotated[
        str | None,
        _column("Columns of dates, to be used as numbers; with a format: born=%d/%m/%Y."),
    ] = None,
    unlabeled: Annotated[
        Literal["skip"] | None,
        _column("skip: rows without a label get a suggested label and no value."),
    ] = None,
    delimiter: Annotated[
        str | None, _text("What separates cells of text: a comma or a tab if not given.")
    ] = None,
    encoding: Annotated[
        str | None, _text("The encoding of text, such as latin-1 or utf-16; UTF-8 if not given.")
    ] = None,
    na: Annotated[
        str | None, _text("Words that mean that a cell is missing, such as ?,-999.")
    ] = None,
    decimal: Annotated[Literal[".", ","], _text("The mark before decimals.")] = ".",
    thousands: Annotated[
        str | None,
        _text("The mark between thousands: a comma, a period, ', _ or space; none if not given."),
    ] = None,
    keep_na: Annotated[
        bool,
        _column(
            "Treat labels such as NA and null as classes, and say nothing about them.", "--keep-na"
        ),
    ] = False,
    validation: Annotated[
        str | None, _validation("The validation set: a table with the same columns.")
    ] = None,
    validation_label: Annotated[
        str | None, _validation("Its column or file of labels, if that has another name.")
    ] = None,
    holdout: Annotated[
        float | None,
        _validation(
            "Without --validation: the share of each class to hold out. If not given, it is 0.1, "
            "but nothing is held out for a forest or from an .npz with X_val."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        _validation(
            "The seed for the rows held out, for the folds and trees of a forest, and for "
            "sampling; 0 if not given."
        ),
    ] = None,
    method: Annotated[
        Method,
        _method(
            "How points are valued. auto is forest. But it is tknn with --radius, --metric, "
            "--kernel, --rings, --fill, --standardize or a calibrated semivalue, and for classes "
            "with --memory or --engine dask."
        ),
    ] = "auto",
    trees: Annotated[int | None, _method("How many trees, for forest; 200 if not given.")] = None,
    folds: Annotated[
        int | None,
        _method(
            "For forest: a row is judged by trees that were grown on the other folds; 2 if not "
            "given."
        ),
    ] = None,
    radius: Annotated[
        str | None,
        _method(
            "Distance up to which a point counts: a number, or auto (if not given), which finds it "
            "from the validation set."
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        _method(
            "For tknn with classes: how much near points count: box (all alike), gaussian, "
            "triangular or epanechnikov. If not given, it is box if --radius is a number, with "
            "--players owners and with a calibrated semivalue, and otherwise gaussian."
        ),
    ] = None,
    rings: Annotated[
        int | None,
        _method("For tknn with classes: into how many rings a kernel is divided; 16 if not given."),
    ] = None,
    metric: Annotated[
        Literal["cosine", "euclidean"] | None, _method("Distance; cosine if not given.")
    ] = None,
    semivalue: Annotated[
        str,
        _method(
            "How coalitions are weighted: shapley, banzhaf, leave-one-out, 'beta(4, 1)', or "
            "'calibrated(5)' for tknn.",
            autocompletion=lambda: ["shapley", "banzhaf", "leave-one-out"],
        ),
    ] = "shapley",
    k: Annotated[int | None, _method("Neighbors, for knn; 5 if not given.")] = None,
    utility: Annotated[
        Literal["soft-label", "jia2019"] | None,
        _method(
            "For knn: the share of the nearest points that agree (soft-label, if not given), or "
            "their number divided by k (jia2019)."
        ),
    ] = None,
    error: Annotated[
        float | None,
        _method(
            "For knn: how far off a value may be for each validation point; more is faster. 0 if "
            "not given."
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        _method(
            "Models to train for data-shapley, beta-shapley and data-banzhaf. If not given, "
            "10,000; for the first two, at least two permutations of the points."
        ),
    ] = None,
    players: Annotated[
        Literal["points", "owners"],
        _method("owners: one value for each owner, by the game among owners."),
    ] = "points",
    mean: Annotated[
        bool, _method("Use means over the validation set instead of sums.", "--mean")
    ] = False,
    memory: Annotated[
        str | None,
        _method(
            "The most memory to use, such as 2GB: the points are read in parts. Needs --out and "
            "--validation; with --task regression, a forest needs no --validation."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        _method(
            "With --memory: a file from which the same command continues after an interruption; "
            "it is removed at the end."
        ),
    ] = None,
    engine: Annotated[
        Literal["local", "dask"],
        _method(
            "dask: workers read, count and judge a file each. Needs --out, a folder, and "
            "--validation as --memory does."
        ),
    ] = "local",
    scheduler: Annotated[
        str | None,
        _method(
            "With --engine dask, its scheduler, such as tcp://host:8786; a cluster on this machine "
            "if not given."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        _output(
            "Where the table goes: .parquet, .csv, .tsv, .arrow or .feather; to standard output, "
            "as .csv, if it is - or not given.",
            "--out",
            "-o",
        ),
    ] = None,
    report: Annotated[
        Path | None, _output("Where to write the report, a page for any browser: .html.")
    ] = None,
    json: Annotated[bool, _output("Print the outcome as JSON.", "--json")] = False,
    force: Annotated[bool, _output("Replace existing files.", "--force")] = False,
) -> None:
    """Say what each row is worth, which rows hurt, and what to do about them.

    The output has, for each row: its value, its rank (1 is the lowest), how many others are near,
    what share of them has its label, the best other label, and a suggestion: keep, relabel,
    inspect, drop, or outlier (nothing is near). With a forest, the others are the rows that share
    its leaves, and there is a list of rows to review. With distances, they are validation points.
    With --task regression, the output has the target that the others expect, and the suggestion
    correct replaces relabel. The method zero-budget and those that train models give only the
    value, rank and percentile. The output also records how it was computed, and from which files.

    Example: thresher value train.csv

    Example: thresher value train.csv --label species --out values.parquet --report report.html

    Example: thresher value train.csv --validation val.csv --label y --radius 0.5 --out values.csv

    Example: thresher value 'parts/*.parquet' --id name --owner clinic --categorical sex,city
    --fill median --out values.parquet

    Example: thresher value train.csv --validation val.csv --owner clinic --players owners
    --out owners.parquet

    Example: thresher value houses.csv --label price --task regression --out values.csv

    Example: thresher value features.npy --label labels.npy --method knn --k 5 --out values.csv

    Example: zcat train.csv.gz | thresher value - --validation val.csv -o - > values.csv

    Example: thresher value 'parts/*.parquet' --validation val.parquet --memory 2GB --checkpoint run
    --out values.parquet

    Example: thresher value 'parts/*.parquet' --validation val.parquet --engine dask
    --scheduler tcp://host:8786 --out values
    """
    from thresher.runs.settings import Settings

    given = {key: entry for key, entry in locals().items() if key in Settings.__dataclass_fields__}
    out = None if is_standard_output(out, json=json) else out
    settings = _settings(given, drawn=report is not None and players == "points")
    if memory is None and checkpoint is not None:
        raise InputError("--checkpoint needs --memory, which reads the points in parts")
    if engine == "local" and scheduler is not None:
        raise InputError("--scheduler needs --engine dask")
    if players == "owners":
        where = scheduler, checkpoint
        done = value_players(settings, out, report, *where, force=force, json=json)
    elif engine == "dask":
        done = value_on_cluster(settings, out, report, scheduler, force=force)
    elif memory is not None:
        done = value_in_parts(settings, out, report, checkpoint, force=force)
    else:
        done = value_in_memory(settings, out, report, force=force, json=json)
    if json:
        show_json(done)


def _settings(given: dict[str, Any], *, drawn: bool) -> Any:
    """The settings that were typed; a page that is `drawn` has a use for any seed."""
    from thresher.runs.settings import Settings
    from thresher.tables.paths import check_text_options

    at_once = given["memory"] is None and given["engine"] == "local"
    for name in ("file", "validation"):
        if given[name] is not None:
            given[name] = spooled(given[name], allowed=at_once)
    check_text_options(
        (given["file"], given["validation"]),
        delimiter=given["delimiter"], encoding=given["encoding"],
    )  # fmt: skip
    for name in ("features", "ignore", "categorical", "na", "date"):
        given[name] = split_names(given[name])
    given["guess"] = tuple(role for role in ("label", "id", "owner") if given[role] is None)
    typed = [name for name in USUAL if given[name] is not None]
    given["named"] = tuple(name for name in typed if name != "seed" or not drawn)
    given = {name: x for name, x in given.items() if name not in USUAL or x is not None}
    if given["method"] == "auto":  # an option says which, also where it is what is usual
        usual = {name for name in given["named"] if given[name] == getattr(Settings, name)}
        if {"radius", "metric", "kernel"} & {*given["named"]} or "rings" in usual:
            given["method"] = "tknn"
        elif {"trees", "folds"} & usual:
            given["method"] = "forest"
    return Settings(**given)
