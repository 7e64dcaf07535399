"""`thresher inspect`: what is in a table, what is in the way, and the command that values it."""

from __future__ import annotations

from typing import Annotated, Any

from thresher.cli.options import Delimiter, Encoding, Json, TableFile, given
from thresher.cli.streams import as_given, as_typed, spooled
from thresher.cli.words import show_json
from thresher.errors import in_options, plain_text, printing

MOST_ALIKE = 6  # columns of one kind in a row that are listed one by one


def inspect(
    file: TableFile,
    label: Annotated[str | None, given("The column of labels; guessed if not given.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Say what the columns of a table are, what is wrong with it, and how to value it.

    For each column: its kind (number, category, text, date, id, constant or empty), how many cells
    are missing, and how many different entries there are. Then the guesses for labels, ids and
    owners, all problems at once, and one command line that solves them.

    Example: thresher inspect train.csv

    Example: thresher inspect export.xlsx --label species --json
    """
    from thresher.runs.inspection import inspect_files
    from thresher.runs.settings import Settings
    from thresher.tables.paths import check_text_options

    wanted: dict[str, Any] = {} if label is None else {"label": label}
    guess = ("id", "owner", *(("label",) if label is None else ()))
    wanted |= {"delimiter": delimiter, "encoding": encoding, "guess": guess}
    file = spooled(file)
    check_text_options([file], delimiter=delimiter, encoding=encoding)
    found = inspect_files(Settings(file, **wanted))
    if json:
        show_json(as_typed(found.document()))
        return
    with printing() as out:
        for line in _lines(found):
            out.write(f"{as_given(line)}\n")


def _lines(found: Any) -> list[str]:
    """The lines that a person reads."""
    lines = [f"{found.source}: {found.rows} rows, {len(found.profiles)} columns"]
    lines += _table(found.profiles)
    lines += filter(None, [found.guessed()])
    lines += [f"problem: {plain_text(in_options(each))}" for each in found.problems]
    lines += [f"hint: {plain_text(in_options(each))}" for each in found.hints]
    return [*lines, *filter(None, [found.counted()]), found.advice()]


def _table(profiles: Any) -> list[str]:
    """A line for each column; a long run of columns of one kind is one line."""
    cells = [("column", "kind", "missing", "different", "")]
    place = 0
    while place < len(profiles):
        first = profiles[place]
        same = place
        while same < len(profiles) and _look(profiles[same]) == _look(first):
            same += 1
        if same - place > MOST_ALIKE:
            missing = sum(each.missing for each in profiles[place:same])
            name = f"{first.name} to {profiles[same - 1].name}"
            cells.append((name, first.kind, str(missing), "", f"{same - place} columns"))
        else:
            for each in profiles[place:same]:
                counts = str(each.missing), str(each.distinct)
                cells.append((each.name or "(no name)", each.kind, *counts, each.note))
        place = same
    plain = [tuple(plain_text(cell) for cell in row) for row in cells]
    widths = [max(len(row[at]) for row in plain) for at in range(4)]
    return [
        f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}  {e}".rstrip()
        for a, b, c, d, e in plain
    ]


def _look(column: Any) -> tuple[str, str]:
    return column.kind, column.note
