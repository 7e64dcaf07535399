"""`thresher release`: a private price list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from thresher.cli.words import say, show_json, split_names
from thresher.errors import InputError, require


def release(
    points: Annotated[Path, typer.Argument(help="Private points: .csv, .parquet or .npz.")],
    validation: Annotated[Path, typer.Option(help="The public validation set.")],
    epsilon: Annotated[float, typer.Option(help="The budget's epsilon.")],
    delta: Annotated[float, typer.Option(help="The budget's delta.")],
    ledger: Annotated[Path, typer.Option(help="The ledger that is charged.")],
    out_prices: Annotated[Path, typer.Option(help="Where the public price list is written.")],
    label: Annotated[str, typer.Option(help="The column of labels.")] = "y",
    radius: Annotated[float, typer.Option(help="Distance up to which a point counts.")] = 0.5,
    metric: Annotated[Literal["cosine", "euclidean"], typer.Option(help="Distance.")] = "cosine",
    mechanism: Annotated[
        Literal["table", "cells", "paper"], typer.Option(help="What is released.")
    ] = "table",
    owner: Annotated[str | None, typer.Option(help="The column of owners.")] = None,
    points_per_owner: Annotated[
        int | None, typer.Option(help="About how many points an owner has, as is public.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out.")] = None,
    version: Annotated[str, typer.Option(help="A public name for the state of the points.")] = "",
    report: Annotated[
        Path | None, typer.Option(help="Where the public page goes that shows it: .html.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Release a private price list, charged to a ledger.

    Rows that cannot be used (a label that no validation point has, a cell that is no number) are
    left out without a word, since an error would tell something of them: look at your table first,
    for instance by thresher value, whose outcome stays with you.

    Example: thresher release points.csv --validation val.csv --epsilon 1 --delta 1e-6
    --ledger ledger.db --out-prices prices.json --report release.html
    """
    from thresher.privacy.release import dp_tknn_shapley
    from thresher.tables import read_labeled, same_columns

    _check_targets(out_prices, report, [points, validation, ledger], force=force)
    X, y, owners = read_labeled(points, label, owner)
    X_val, y_val, _ = read_labeled(validation, label)
    X, X_val = same_columns(X, X_val, [*split_names(ignore), *([] if owner is None else [owner])])
    found = dp_tknn_shapley(
        X, y, X_val, y_val, epsilon=epsilon, delta=delta, radius=radius, metric=metric,
        mechanism=mechanism, ledger=ledger, owners=owners, points_per_owner=points_per_owner,
        version=version,
    )  # fmt: skip
    found.price_list.save(out_prices)
    if report is not None:
        found.report(report, force=force)
    if found.stored:
        say("the ledger had answered this before: nothing was charged, the points were not used")
        say("if the points have changed, give them another --version")
    told = found.relative_error
    error = "" if told != told else f"; expected relative error {told:.3g}"  # noqa: PLR0124
    if found.is_noise:
        error = "; how good it is cannot be told: its table cannot be told from noise"
    say(f"wrote {out_prices}{'' if report is None else f' and {report}'}{error}")
    show_json(dict(found.record))


def _check_targets(
    out_prices: Path, report: Path | None, inputs: list[Path], *, force: bool
) -> None:
    """Refuse what cannot be written, before anything is charged."""
    from thresher.files import check_writable
    from thresher.report import check_target
    from thresher.tables.writing import check_apart, check_free

    for option, path in (("--out-prices", out_prices), ("--report", report)):
        if path is None:
            continue
        try:
            check_writable(path)
        except InputError as refused:
            raise InputError(f"{option}: {refused}; nothing was charged") from None
        check_apart(path, inputs)
        check_free(path, force=force)
    if report is not None:
        check_apart(report, [out_prices])
        check_target(report, force=force)
        require("jinja2", purpose="the HTML report", extra="report")
