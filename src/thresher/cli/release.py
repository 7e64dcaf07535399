"""`thresher release`: a private price list."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from thresher.cli import options
from thresher.cli.options import argument, given
from thresher.cli.private_pay import PrivatePay
from thresher.cli.streams import STREAM, spooled
from thresher.cli.words import say, show_json, split_names
from thresher.errors import InputError, in_options, message_of, require


def release(
    points: Annotated[
        Path,
        argument(
            "Private points: .csv or .tsv (also .gz), .parquet, .arrow, .feather or .npz; "
            "or - (standard input)."
        ),
    ],
    validation: options.PublicValidation,
    epsilon: Annotated[float, given("The budget's epsilon.")],
    delta: Annotated[float, given("The budget's delta.")],
    ledger: Annotated[Path, given("The ledger that is charged.")],
    out_prices: Annotated[Path, given("Where to write the public price list.")],
    label: options.Label = "y",
    radius: options.Radius = "0.5",
    metric: options.Metric = "cosine",
    kernel: Annotated[
        str,
        given("How much near points count: box (all alike), gaussian, triangular or epanechnikov."),
    ] = "box",
    rings: options.Rings = None,
    trees: options.Trees = None,
    leaves: options.Leaves = None,
    task: Annotated[
        Literal["classification", "regression"], given("Whether labels are classes or numbers.")
    ] = "classification",
    bounds: Annotated[
        str | None,
        given(
            "Required for regression: the public range of targets, such as 0,100. Targets outside "
            "are clipped."
        ),
    ] = None,
    empty: Annotated[
        float | None,
        given("For regression: the prediction if no point is near; the mean if not given."),
    ] = None,
    mechanism: Annotated[
        Literal["table", "cells", "paper"],
        given(
            "table: noisy counts near each validation point; cells: noisy label counts in public "
            "cells (allows delta 0); paper: the paper's sampled counts, for comparison."
        ),
    ] = "table",
    owner: Annotated[
        str | None, given("The column of owners, who are then protected instead of points.")
    ] = None,
    points_per_owner: Annotated[
        int | None, given("With --owner: about how many points an owner has, a public number.")
    ] = None,
    about_points: Annotated[
        int | None,
        given(
            "About how many points there are, a public number. With it, a release that would be "
            "mere noise is refused before it is charged.",
            "--points",
        ),
    ] = None,
    counted: Annotated[
        bool,
        given(
            "Spend 3 % of the budget on a noisy count of the points, and fit the table to it: "
            "use it if no number for --points is public.",
            "--counted",
        ),
    ] = False,
    anyway: Annotated[
        bool, given("Release even if --points predicts nothing but noise.", "--anyway")
    ] = False,
    ignore: options.Ignore = None,
    standardize: options.Standardize = None,
    fill: options.PublicFill = None,
    categorical: options.Categorical = None,
    version: Annotated[
        str, given("A public name for the state of the points: change it if they have changed.")
    ] = "",
    report: Annotated[
        Path | None, given("Where to write a page about the release that may be published: .html.")
    ] = None,
    unusable: Annotated[
        Path | None, given("Where to list the rows that count for nothing: .csv, private.")
    ] = None,
    statements: Annotated[
        Path | None,
        given(
            "A new folder for what owners are paid: a file for each owner, one for everybody, and "
            "the operator's part. With --owner and --pot-cents."
        ),
    ] = None,
    pot_cents: Annotated[
        str | None, given("The amount to pay out, in whole cents.", metavar="INTEGER")
    ] = None,
    pay: Annotated[
        Literal["estimate", "lower"],
        given("Pay the estimate, or the lower end of its interval now and the rest later."),
    ] = "estimate",
    basis: Annotated[
        Literal["gains", "total"],
        given("What the pot is divided by: gains stay below the pot, total may exceed it."),
    ] = "gains",
    players: Annotated[
        Literal["points", "owners"],
        given(
            "points: pay an owner by the sum of the owner's points; owners: pay by the game among "
            "owners, approximated."
        ),
    ] = "points",
    within: Annotated[
        float | None,
        given(
            "With --statements: tell the operator which owners have equal rows (0), or rows within "
            "this distance."
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    force: options.Force = False,
) -> None:
    """Release a private price list, charged to a ledger.

    You may publish the list. With it, owners value their own rows (thresher appraise), and nobody
    learns more about a point than epsilon and delta allow. Create the ledger first (thresher ledger
    create), and see what to expect from a budget (thresher plan).

    Example: thresher release points.csv --validation val.csv --epsilon 1 --delta 1e-6
    --ledger ledger.db --out-prices prices.json --report release.html

    With --owner, all points of an owner are protected together. With --statements, owners are paid
    by the release.

    Example: thresher release points.csv --validation val.csv --epsilon 8 --delta 1e-6
    --owner clinic --points-per-owner 40 --ledger ledger.db --out-prices prices.json
    --pot-cents 1000000 --statements pay

    With --trees, rows are near if they fall into the same leaf of a tree, and --radius plays no
    part. The trees are grown on the public validation set, with seed 0, and the price list carries
    them.

    Example: thresher release points.csv --validation val.csv --epsilon 1 --delta 1e-6 --trees 4
    --ledger ledger.db --out-prices prices.json

    With --standardize validation, --fill and --categorical, a raw table becomes numbers by rules
    that are fitted on the public validation set. The price list carries the rules, and thresher
    appraise follows them, so nobody has to scale or encode by hand.

    A row that cannot be used counts for nothing, without a message, because an error would reveal
    something about it. For example, no validation point has its label, one of its cells is not a
    number, or its line does not fit the header. --unusable FILE lists these rows for you. The list
    is as private as the points: only you can read the file, and you should not publish it. Each
    line of text is a row, so a cell in quotes cannot contain a line break.
    """
    if owner is not None and points_per_owner is None:
        say(
            "thresher: Missing --points-per-owner: with --owner, say roughly how many points "
            "each owner has (a public number or a guess; 1 if each has one); nothing was charged"
        )
        raise typer.Exit(2)
    from thresher.privacy.dp_tknn import dp_tknn_shapley
    from thresher.runs.public_encoding import Preparation, read_bounds, read_radius
    from thresher.tables.labeled import columns_left_out, read_labeled, read_private, same_columns
    from thresher.tables.paths import check_text_options

    asked = PrivatePay(statements, options.number(pot_cents), pay, basis, players, within)
    rings, leaves = options.rings_and_leaves(kernel, rings, trees, leaves)
    plain = kernel == "box" and trees is None and task == "classification"
    asked.check(owner, mechanism, plain=plain)
    chosen = table_or_counted(mechanism, about_points, counted=counted)
    points, validation = Path(spooled(str(points))), Path(spooled(str(validation)))
    check_text_options([points, validation], delimiter=delimiter)
    _check_targets(out_prices, report, unusable, [points, validation, ledger], force=force)
    private = read_private(points, label, owner, delimiter=delimiter, numbered=unusable is not None)
    X_val, y_val = read_labeled(validation, label, delimiter=delimiter)
    y, y_val = _labels(task, private.y, validation, y_val)
    left_out = columns_left_out(split_names(ignore), private.X, X_val, roles=(label, owner))
    left_out += [] if owner is None else [owner]
    preparation = Preparation.of(standardize, fill, split_names(categorical))
    encoder = preparation and preparation.fit(validation, label, left_out, delimiter)
    X, X_val = (
        (encoder.private(points, private.X), encoder.rows)
        if encoder
        else same_columns(private.X, X_val, left_out)
    )
    reach = read_radius(radius, X_val, y_val, metric=metric, kernel=kernel, rings=rings, task=task)
    found = dp_tknn_shapley(
        X, y, X_val, y_val, epsilon=epsilon, delta=delta, radius=reach, metric=metric,
        mechanism=chosen, ledger=ledger, owners=private.owners,
        points_per_owner=points_per_owner, version=version, points=about_points, anyway=anyway,
        kernel=kernel, rings=rings, task=task, bounds=read_bounds(bounds), empty=empty,
        forest=forest_of(X_val, y_val, trees, leaves),
    )  # fmt: skip
    try:
        replace(found.price_list, encoding=encoder and encoder.record).save(out_prices)
        if unusable is not None:
            _write_unusable(unusable, *private.unusable(found.unusable))
        if report is not None:
            found.report(report, force=force)
    except InputError as refused:
        raise InputError(
            f"{message_of(refused)}; the ledger keeps the answer: to write it at no further "
            "charge, run the same command again, with --force if the files already exist"
        ) from None
    if found.stored:
        say(
            "the ledger had already answered this request: nothing was charged, and the points "
            "were not used"
        )
        say("if the points have changed, pass another --version")
    else:
        _say_charge(ledger, found.record)
    if mechanism == "cells" and delta > 0:
        say(f"the release has delta 0: --mechanism cells makes no use of --delta {delta:g}")
    if not found.price_list.scaled:
        say("its values have the right order but are too large: nobody should be paid by them")
    say(f"wrote {out_prices}{'' if report is None else f' and {report}'}{_error(found)}")
    asked.write(found)
    show_json(dict(found.record))


def forest_of(X_val: Any, y_val: Any, trees: int | None, leaves: int) -> Any:
    """A forest that is grown on the validation set, if there is to be one."""
    from thresher.privacy.leaf_setting import public_forest

    return None if trees is None else public_forest(X_val, y_val, trees=trees, leaves=leaves)


def table_or_counted(mechanism: str, points: int | None, *, counted: bool) -> Any:
    """The mechanism, with a noisy count first if `counted`."""
    from thresher.privacy.table_mechanism import Table

    if not counted:
        return mechanism
    if mechanism != "table":
        raise InputError(f"--counted needs --mechanism table, got {mechanism}")
    if points is not None:
        raise InputError(
            "--counted cannot be used with --points: a public number needs no noisy count"
        )
    return Table(bound="counted")


def _labels(task: str, y: Any, validation: Path, y_val: Any) -> tuple[Any, Any]:
    """Private and public labels of the task's type; gives a hint about the public ones."""
    from thresher.inputs.labels import check_labels
    from thresher.runs.hints import missing_labels
    from thresher.tables.labeled import private_targets, public_targets

    if task == "regression":
        return private_targets(y), public_targets(validation, y_val)
    if doubt := missing_labels(check_labels("y_val", y_val)):
        say(f"hint: in {validation} {doubt}")
    return y, y_val


def _error(found: Any) -> str:
    """What to say about the error of a release."""
    stated = found.relative_error
    more = f"; {found.warning}: spend more, or nothing" if found.warning else ""
    if stated is None:
        return f"; its error is unknown: {found.error.why}{more}"
    return f"; expected relative error {stated:.3g}{more}"


def _say_charge(path: Path, record: Mapping[str, Any]) -> None:
    """Print what was charged, if it is not what was asked for."""
    from thresher.privacy.cap import why_other
    from thresher.privacy.ledger import Ledger

    with Ledger.open(path) as ledger:
        entry = ledger.entries()[record["ledger"]["entry"]]
        why = why_other(ledger, record)
    if why:
        say(f"charged {entry['cost'].stated(ledger.delta)}: {in_options(why)}")


def _check_targets(
    out_prices: Path, report: Path | None, unusable: Path | None, inputs: list[Path], *, force: bool
) -> None:
    """Refuse what cannot be written, before anything is charged."""
    from thresher.files import check_apart, check_free
    from thresher.report import check_target

    targets = {"--out-prices": out_prices, "--report": report, "--unusable": unusable}
    for option, path in targets.items():
        if path is None:
            continue
        if str(path) == STREAM:
            raise InputError(f"{option} must be a file, got -; nothing was charged")
        try:
            check_apart(path, inputs)
            check_free(path, force=force)
        except InputError as refused:
            raise InputError(f"{option}: {message_of(refused)}; nothing was charged") from None
        inputs = [*inputs, path]
    if report is not None:
        check_target(report, force=force)
        require("jinja2", purpose="the HTML report", extra="report")


def _write_unusable(path: Path, kind: str, rows: Mapping[int, str]) -> None:
    """Write the rows that count for nothing to a file that only the holder of the points reads."""
    from thresher.files import write_whole

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([(kind, "why"), *rows.items()])

    write_whole(path, write, private=True)
