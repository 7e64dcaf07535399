"""`thresher clean`: a table without the rows that hurt, or with better labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from thresher.cli.options import Delimiter, Encoding, Force, Id, Json, TableFile, given
from thresher.cli.streams import as_typed, is_standard_output, put_out, spooled, stand_in
from thresher.cli.words import say, show_json
from thresher.errors import InputError
from thresher.version import __version__


def clean(
    file: TableFile,
    out: Annotated[
        Path,
        given(
            "Where the cleaned table goes; the same kind of file as the input, or - (text only).",
            "--out",
            "-o",
        ),
    ],
    decisions: Annotated[
        str | None, given("The decisions.csv that you saved from the report.")
    ] = None,
    values: Annotated[
        str | None, given("The file that thresher value wrote: .csv or .parquet.")
    ] = None,
    drop: Annotated[
        str | None,
        given(
            "Rows to drop: rows:3,17,20-29, or ids:a7,b9, or @file with one on each line. With "
            "--values also suggestions, such as drop,outlier."
        ),
    ] = None,
    relabel: Annotated[
        str | None,
        given(
            "Rows to relabel: rows:3=cat, or ids:a7=cat, or @file. With --values also suggestions, "
            "such as relabel."
        ),
    ] = None,
    correct: Annotated[
        str | None,
        given(
            "Rows whose target to correct: rows:3=17.5, or ids:a7=0.4, or @file. With --values "
            "also the suggestion correct."
        ),
    ] = None,
    label: Annotated[
        str | None, given("The column of labels (y if not given), or a file of them.")
    ] = None,
    id: Id = None,  # noqa: A002
    log: Annotated[
        Path | None,
        given("Where to list the changes: .csv, or .json, which also says how they were made."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Drop, relabel or correct rows of a table, and leave everything else as it is.

    Choose the rows by your decisions in the report, by the suggestions of thresher value, or one by
    one. The output is a file of the same kind. Unchanged lines of text are copied byte for byte.

    Example: thresher clean train.csv --decisions decisions.csv --label y --out cleaned.csv

    Example: thresher clean train.csv --values values.parquet --drop drop --relabel relabel
    --label y --out cleaned.csv --log changes.csv

    Example: thresher clean houses.csv --values values.csv --correct correct --label price
    --out cleaned.csv

    Example: thresher clean train.parquet --drop rows:3,17,20-29 --out cleaned.parquet

    Example: thresher clean train.csv --id name --relabel ids:a7=cat,b9=dog --out cleaned.csv
    """
    from thresher.tables.changes import read_decisions, read_suggestions
    from thresher.tables.clean_copy import OldLabels, write_change_log, write_cleaned
    from thresher.tables.columns import check_ids
    from thresher.tables.paths import check_text_options
    from thresher.tables.reader import input_digest, read_table

    _check_asked(decisions, values, drop, relabel, correct)
    stored = spooled(file)
    check_text_options([stored], delimiter=delimiter, encoding=encoding)
    table = read_table(stored, delimiter=delimiter, encoding=encoding)
    if printed := is_standard_output(out, json=json):
        out = _stand_in(table)
    label = _label(table, label, needed=bool(relabel or correct or values or decisions))
    _check_targets(table, label, out, log, decisions or values, force=force)
    ids = None if id is None else check_ids(table, id)
    old = OldLabels.of(table, label)
    suggested = None
    if values is not None:
        suggested = read_suggestions(read_table(values), table, old.entries, ids, old.kind)
    if decisions is None:
        decided = _decided(len(table), suggested, ids, drop, relabel, correct)
    else:
        decided = read_decisions(read_table(decisions), table, old.entries, old.kind, ids)
    about = {
        "input": [str(path) for path in table.files],
        "input_digest": input_digest(table.files),
        "decisions": decisions, "values": values, "drop": drop, "relabel": relabel,
        "correct": correct,
        "label": label, "id": id, "thresher": __version__,
    }  # fmt: skip
    changes = write_cleaned(
        table, out, drop=decided.drop, relabel=decided.relabel, label=label, id=id, force=force
    )
    changes = [
        change | ({"action": "correct"} if change["row"] in decided.corrected else {})
        for change in changes
    ]
    counts = _counts(len(table), changes, numbers=bool(decided.corrected or correct))
    if printed:
        put_out(out)
    if log is not None:
        write_change_log(log, changes, as_typed(about | counts), force=force)
    if decided.counts:
        say("decisions: " + ", ".join(f"{n} {word}" for word, n in decided.counts.items()))
    new = {change["new_label"] for change in changes if change["action"] == "relabel"}
    _say(out, log, counts, new - {None, *old.entries})
    if json:
        targets = {"out": str(out), "log": None if log is None else str(log)}
        show_json(as_typed(targets | counts | about))


def _check_asked(decisions: str | None, values: str | None, *changes: str | None) -> None:
    """Refuse a call that asks for no change, and suggestions that no option uses."""
    from thresher.tables.changes import OUTRIGHT

    if decisions is not None and (values or any(changes)):
        raise InputError(
            "--decisions says what to do about each row: leave out --values, --drop, --relabel and "
            "--correct"
        )
    given = [text for text in changes if text is not None]
    if decisions is None and not given:
        raise InputError(
            "nothing to do: say which rows with --decisions, --drop, --relabel or --correct"
        )
    if values is not None and all(text.startswith(OUTRIGHT) for text in given):
        raise InputError(
            "--values has suggestions, but none is asked for: name some, such as --relabel "
            "relabel, or leave --values out"
        )


def _stand_in(table: Any) -> Path:
    if not table.is_text:
        raise InputError(
            f"--out - works only for tables of text, and {table.name} is a .{table.kind} file: "
            "name a file for the cleaned one"
        )
    return stand_in(f".{table.kind}")


def _label(table: Any, label: str | None, *, needed: bool) -> str | None:
    """The column of labels; None if there is none and none is needed."""
    from thresher.inputs.spelling import first_names
    from thresher.tables.columns import column_of

    names = table.data.column_names
    if table.kind == "npy":
        if label is None:
            raise InputError(
                f"{table.name} has no labels: name the file that has them with --label"
            )
        return label
    if label is None and "y" not in names:
        if not needed:
            return None
        raise InputError(
            f"which column of {table.name} holds the labels? Name it with --label; it has "
            f"{first_names(names)}"
        )
    column_of(table, label or "y", "label")
    return label or "y"


def _check_targets(
    table: Any, label: str | None, out: Path, log: Path | None, values: str | None, *, force: bool
) -> None:
    """Refuse files that cannot be written, before anything is done."""
    from thresher.files import check_apart
    from thresher.tables.clean_copy import check_log, check_target

    target = check_target(table, out, label=label, force=force)
    findings = [] if values is None else [Path(values)]
    check_apart(target, findings)
    if log is not None:
        check_apart(check_log(log, force=force), [target, *table.files, *findings])


def _decided(
    count: int, suggested: Any, ids: Any, drop: str | None, relabel: str | None,
    correct: str | None,
) -> Any:  # fmt: skip
    """What the options ask for: the rows to drop, and the new labels and numbers by row."""
    from thresher.tables.changes import Decisions, rows_to_drop, rows_to_relabel

    rows = [] if drop is None else rows_to_drop(drop, count, ids, suggested)
    labels = {} if relabel is None else rows_to_relabel(relabel, count, ids, suggested)
    numbers = {}
    if correct is not None:
        numbers = rows_to_relabel(correct, count, ids, suggested, "correct")
    return Decisions(rows, labels | numbers, {}, set(numbers))


def _counts(rows: int, changes: list[dict[str, Any]], *, numbers: bool) -> dict[str, int]:
    actions = [change["action"] for change in changes]
    dropped, relabeled = actions.count("drop"), actions.count("relabel")
    found = {"rows": rows, "kept": rows - dropped, "dropped": dropped, "relabeled": relabeled}
    return found | ({"corrected": actions.count("correct")} if numbers else {})


def _say(out: Path, log: Path | None, counts: dict[str, int], new: set[Any]) -> None:
    for label in sorted(new, key=str):
        say(f"no row had the label {label!r} before: it may be a typo")
    dropped = f"dropped {counts['dropped']} row{'' if counts['dropped'] == 1 else 's'}"
    wrote = f"wrote {out}" + ("" if log is None else f" and {log}")
    words = [word for word in ("relabeled", "corrected") if counts.get(word)] or ["relabeled"]
    if "corrected" in counts and not counts["relabeled"]:
        words = ["corrected"]
    changed = ", ".join(f"{word} {counts[word]}" for word in words)
    say(f"{dropped}, {changed} of {counts['rows']}: {wrote}")
