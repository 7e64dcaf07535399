"""`thresher release`: a private price list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thresher.cli.words import say, show_json
from thresher.errors import InputError


def release(
    points: Annotated[Path, typer.Argument(help="Private points: .csv, .parquet or .npz.")],
    validation: Annotated[Path, typer.Option(help="The public validation set.")],
    epsilon: Annotated[float, typer.Option(help="The budget's epsilon.")],
    delta: Annotated[float, typer.Option(help="The budget's delta.")],
    ledger: Annotated[Path, typer.Option(help="The ledger that is charged.")],
    out_prices: Annotated[Path, typer.Option(help="Where the public price list is written.")],
    label: Annotated[str, typer.Option(help="The column of labels.")] = "y",
    radius: Annotated[float, typer.Option(help="Distance up to which a point counts.")] = 0.5,
    metric: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    mechanism: Annotated[str, typer.Option(help="table, cells or paper.")] = "table",
    owner: Annotated[str | None, typer.Option(help="The column of owners.")] = None,
    points_per_owner: Annotated[
        int | None, typer.Option(help="About how many points an owner has, as is public.")
    ] = None,
    version: Annotated[str, typer.Option(help="A public name for the state of the points.")] = "",
) -> None:
    """Release a private price list, charged to a ledger.

    Example: thresher release points.csv --validation val.csv --epsilon 1 --delta 1e-6
    --ledger ledger.db --out-prices prices.json
    """
    from thresher.privacy.release import dp_tknn_shapley
    from thresher.tables import read_labeled

    if not out_prices.resolve().parent.is_dir() or out_prices.is_dir():
        raise InputError(f"--out-prices {out_prices} cannot be written: nothing was charged")
    X, y, owners = read_labeled(points, label, owner)
    X_val, y_val, _ = read_labeled(validation, label)
    if owner is not None and owner in getattr(X_val, "column_names", ()):
        X_val = X_val.drop_columns([owner])
    found = dp_tknn_shapley(
        X, y, X_val, y_val, epsilon=epsilon, delta=delta, radius=radius, metric=metric,
        mechanism=mechanism, ledger=ledger, owners=owners, points_per_owner=points_per_owner,
        version=version,
    )  # fmt: skip
    found.price_list.save(out_prices)
    if found.stored:
        say("the ledger had answered this before: nothing was charged, the points were not used")
        say("if the points have changed, give them another --version")
    told = found.relative_error
    error = "" if told != told else f"; expected relative error {told:.3g}"  # noqa: PLR0124
    say(f"wrote {out_prices}{error}")
    show_json(dict(found.record))
