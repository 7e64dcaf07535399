"""`thresher appraise`: an owner's own value, offline, from a published price list."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any

from thresher.cli.options import Delimiter, Force, Id, Ignore, Json, argument, given
from thresher.cli.streams import as_typed, is_standard_output, spooled
from thresher.cli.words import say, show_json, split_names


def appraise(
    points: Annotated[
        str, argument("Your points: a file, a folder, a pattern in quotes, or - (standard input).")
    ],
    prices: Annotated[Path, given("The price list, as thresher release wrote it.")],
    label: Annotated[str, given("The column of labels; for .npy, the file of labels.")] = "y",
    id: Id = None,  # noqa: A002
    ignore: Ignore = None,
    newcomer: Annotated[
        bool,
        given("Value points that the list did not count: what each would add alone.", "--newcomer"),
    ] = False,
    fill: Annotated[
        str | None, given("How to fill missing numbers: median, zero or a number.")
    ] = None,
    delimiter: Delimiter = None,
    out: Annotated[
        Path | None,
        given(
            "Where the values go: .parquet, .csv, .tsv, .arrow or .feather; to standard output, as "
            ".csv, if it is - or not given.",
            "--out",
            "-o",
        ),
    ] = None,
    json: Json = False,
    force: Force = False,
    anyway: Annotated[
        bool, given("Continue even if the points or the list are on the wrong scale.", "--anyway")
    ] = False,
) -> None:
    """Say what your points are worth, from a published price list and nothing else.

    Nobody learns about your points: the list holds the prices and the public validation set. A
    point is worth the sum of what the validation points near it pay for its label, or charge for
    it. Points that are plainly on another scale than the validation set are refused.

    Example: thresher appraise mine.csv --prices prices.json

    Example: thresher appraise offered.csv --prices prices.json --newcomer --out worth.csv
    """
    from thresher.runs.appraisal import appraise_files
    from thresher.runs.results import check_results
    from thresher.tables.paths import check_text_options, find_files

    out = None if is_standard_output(out, json=json) else out
    points = spooled(points)
    check_text_options([points], delimiter=delimiter)
    if out is not None:
        check_results(out, [*find_files(points), prices], force=force)
    found = appraise_files(
        points, prices, label=label, id=id, ignore=split_names(ignore), newcomer=newcomer,
        delimiter=delimiter, fill=fill, anyway=anyway,
    )  # fmt: skip
    found = dataclasses.replace(found, record=as_typed(found.record))
    total = math.fsum(found.values)
    count = len(found.values)
    say(f"{count} {'point is' if count == 1 else 'points are'} worth {total:.6g} in all")
    if out is not None or not json:
        for path in found.write(out, force=force):
            say(f"wrote {path}")
    document: dict[str, Any] = {"points": len(found.values), "total": total}
    document |= {"out": None if out is None else str(out), "record": found.record}
    if json:
        rows = {} if out is not None else {"rows": found.rows()}
        show_json(document | rows)
