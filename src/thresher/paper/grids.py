"""Tables to read: records laid out in rows and columns, as Markdown, and all of them as Parquet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from thresher.files import write_table
from thresher.paper.cells import Experiment
from thresher.paper.records import Record

TO_ONE = {"AUROC", "strong AUROC", "rank correlation"}
WIDE = 6  # more columns than this, and ours, the paper's and the difference get lines of their own


@dataclass(frozen=True)
class Grid:
    """One table: a title, a header, rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [self.header, ("---",) * len(self.header), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def make_grids(experiment: Experiment, records: Iterable[Record]) -> list[Grid]:
    """One table for each task, measure and protocol; what is missing is a row that says so."""
    parts: dict[tuple[str, str, str], list[Record]] = {}
    absent: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.ours is None:
            names = absent.setdefault((record.task, record.protocol), [])
            names += [record.set] if record.set not in names else []
        else:
            key = (record.task, record.measure, record.protocol)
            parts.setdefault(key, []).append(record)
    for task, protocol in absent:
        if not any((task, protocol) == (key[0], key[2]) for key in parts):
            parts[task, "nothing could be computed", protocol] = []
    return [
        _grid(experiment, key, found, absent.get((key[0], key[2]), []))
        for key, found in parts.items()
    ]


def write_records(path: Path, records: Iterable[Record], about: dict[str, object]) -> None:
    """All records as Parquet, with the settings in its metadata."""
    rows = [asdict(record) for record in records]
    columns = {each.name: [row[each.name] for row in rows] for each in fields(Record)}
    write_table(path, columns, about)


def _grid(
    experiment: Experiment, key: tuple[str, str, str], records: list[Record], missing: list[str]
) -> Grid:
    task, measure, protocol = key
    by_step = experiment.columns == "step"
    columns = list(dict.fromkeys(_step(each) if by_step else each.method for each in records))
    found: dict[tuple[str, ...], dict[str, Record]] = {}
    for each in records:
        row = (each.set,) if by_step or not experiment.axis else (each.set, _step(each))
        found.setdefault(row, {})[_step(each) if by_step else each.method] = each
    title = f"{task}: {measure}, {_runs(records)}, {_named(protocol)}"
    head = ("set",) if by_step or not experiment.axis else ("set", experiment.axis)
    stacked = len(columns) > WIDE
    rows = [
        line
        for row, cells in found.items()
        for line in (_stack if stacked else _line)(row, [cells.get(c) for c in columns])
    ]
    axis = f"{experiment.axis} " if by_step else ""
    named = [f"{axis}{column}" if i == 0 else column for i, column in enumerate(columns)]
    header = (*head, *(("",) if stacked else ()), *(named or [""]))
    rows += [(name, "missing", *([""] * (len(header) - 2))) for name in missing]
    return Grid(title, header, tuple(rows))


def _runs(records: list[Record]) -> str:
    runs = sorted({each.runs for each in records}) or [0]
    told = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"{told} {'run' if runs == [1] else 'runs'}"


def _named(protocol: str) -> str:
    return protocol if protocol == "made up" else f"protocol {protocol}"


def _step(record: Record) -> str:
    return "" if record.step is None else f"{record.step:g}"


def _line(row: tuple[str, ...], cells: list[Record | None]) -> list[tuple[str, ...]]:
    """Ours (the paper's, the difference) in one entry."""
    return [(*row, *(_entry(cell) for cell in cells))]


def _entry(record: Record | None) -> str:
    if record is None:
        return "-"
    ours = _ours(record) + (f" ± {_spread(record)}" if record.runs > 1 else "")
    if record.paper is None:
        return ours
    return f"{ours} ({_paper(record)}, {_difference(record)})"


def _stack(row: tuple[str, ...], cells: list[Record | None]) -> list[tuple[str, ...]]:
    """Ours, the paper's and the difference in lines of their own, where there are any."""
    blank = ("",) * len(row)
    lines = [(*row, "ours", *(_ours(cell) for cell in cells))]
    if any(cell is not None and cell.runs > 1 for cell in cells):
        lines.append((*blank, "±", *(_spread(cell) for cell in cells)))
    if any(cell is not None and cell.paper is not None for cell in cells):
        lines.append((*blank, "paper", *(_paper(cell) for cell in cells)))
        lines.append((*blank, "difference", *(_difference(cell) for cell in cells)))
    return lines


def _ours(record: Record | None) -> str:
    return "-" if record is None else _number(record.ours, record.measure)


def _spread(record: Record | None) -> str:
    return "" if record is None else _number(record.deviation, record.measure)


def _paper(record: Record | None) -> str:
    return "-" if record is None or record.paper is None else f"{record.paper:.3f}"


def _difference(record: Record | None) -> str:
    if record is None or record.difference is None:
        return "-"
    judged = record.standard_error is not None and not record.note
    return f"{_signed(record.difference)}{'*' if record.beyond else '' if judged else '?'}"


def _number(figure: float | None, measure: str) -> str:
    """Three digits after the point for what goes up to 1, else three that count."""
    if figure is None:
        return ""
    return f"{figure:.3f}" if measure in TO_ONE else f"{figure:.3g}"


def _signed(difference: float) -> str:
    """A difference with its sign, and no negative zero."""
    return f"{round(difference, 3) + 0.0:+.3f}"
