"""Tables to read: records laid out in rows and columns, as Markdown, and all of them as Parquet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from thresher.files import write_table
from thresher.paper.cells import Experiment
from thresher.paper.records import Record

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
    """One table for each task, measure and protocol."""
    parts: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if record.measure:
            key = (record.task, record.measure, record.protocol)
            parts.setdefault(key, []).append(record)
    return [_grid(experiment, key, found) for key, found in parts.items()]


def write_records(path: Path, records: Iterable[Record], about: dict[str, object]) -> None:
    """All records as Parquet, with the settings in its metadata."""
    rows = [asdict(record) for record in records]
    columns = {each.name: [row[each.name] for row in rows] for each in fields(Record)}
    write_table(path, columns, about)


def _grid(experiment: Experiment, key: tuple[str, str, str], records: list[Record]) -> Grid:
    task, measure, protocol = key
    by_step = experiment.columns == "step"
    columns = list(dict.fromkeys(_step(each) if by_step else each.method for each in records))
    found: dict[tuple[str, ...], dict[str, Record]] = {}
    for each in records:
        row = (each.set,) if by_step or not experiment.axis else (each.set, _step(each))
        found.setdefault(row, {})[_step(each) if by_step else each.method] = each
    runs = sorted({each.runs for each in records})
    told = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    plural = "run" if runs == [1] else "runs"
    title = f"{task}: {measure}, protocol {protocol}, {told} {plural}"
    head = ("set",) if by_step or not experiment.axis else ("set", experiment.axis)
    stacked = len(columns) > WIDE
    rows = [
        line
        for row, cells in found.items()
        for line in (_stack if stacked else _line)(row, [cells.get(c) for c in columns])
    ]
    axis = f"{experiment.axis} " if by_step else ""
    named = [f"{axis}{column}" if i == 0 else column for i, column in enumerate(columns)]
    return Grid(title, (*head, *(("",) if stacked else ()), *named), tuple(rows))


def _step(record: Record) -> str:
    return "" if record.step is None else f"{record.step:g}"


def _line(row: tuple[str, ...], cells: list[Record | None]) -> list[tuple[str, ...]]:
    """Ours (the paper's, the difference) in one entry."""
    return [(*row, *(_entry(cell) for cell in cells))]


def _entry(record: Record | None) -> str:
    if record is None or record.ours is None:
        return "-"
    ours = number(record.ours)
    if record.runs > 1:
        ours += f" ± {number(record.deviation)}"
    if record.paper is None or record.difference is None:
        return ours
    star = "*" if record.beyond else ""
    return f"{ours} ({record.paper:.3f}, {record.difference:+.3f}{star})"


def _stack(row: tuple[str, ...], cells: list[Record | None]) -> list[tuple[str, ...]]:
    """Ours, the paper's and the difference in lines of their own, where there are any."""
    blank = ("",) * len(row)
    lines = [(*row, "ours", *(_ours(cell) for cell in cells))]
    if any(cell is not None and cell.runs > 1 for cell in cells):
        lines.append((*blank, "±", *("" if c is None else number(c.deviation) for c in cells)))
    if any(cell is not None and cell.paper is not None for cell in cells):
        lines.append((*blank, "paper", *(_paper(cell) for cell in cells)))
        lines.append((*blank, "difference", *(_difference(cell) for cell in cells)))
    return lines


def _ours(record: Record | None) -> str:
    return "-" if record is None or record.ours is None else number(record.ours)


def _paper(record: Record | None) -> str:
    return "-" if record is None or record.paper is None else f"{record.paper:.3f}"


def _difference(record: Record | None) -> str:
    if record is None or record.difference is None:
        return "-"
    return f"{record.difference:+.3f}{'*' if record.beyond else ''}"


def number(figure: float) -> str:
    """Three digits after the point, or three that count.

    Examples
    --------
    >>> number(0.91349), number(0.000123), number(1234.5), number(0.0)
    ('0.913', '0.000123', '1.23e+03', '0.000')
    """
    return f"{figure:.3f}" if figure == 0 or 0.01 <= abs(figure) < 100 else f"{figure:.3g}"
