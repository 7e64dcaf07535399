"""Tables and pages: a Markdown file for each experiment, and an HTML page for a whole folder."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from thresher.errors import InputError, require
from thresher.files import read_table, reading, write_table, write_text
from thresher.paper.cells import Experiment
from thresher.paper.records import Record

LEGEND = (
    "An entry is our figure ± its deviation over the runs (the paper's figure, the difference). "
    "A star (*) marks a difference of more than two standard errors. If the authors' own rows "
    "are replayed and nothing is random, it marks a difference that rounding cannot explain. A "
    "question mark (?) marks a difference that cannot be judged, because there are fewer than "
    "three random runs or other embeddings than the paper's."
)
TO_ONE = {"AUROC", "strong AUROC", "rank correlation"}
WIDE = 6  # more columns than this, and ours, the paper's and the difference get lines of their own


def write_tables(
    path: Path, experiment: Experiment, records: Sequence[Record], about: Mapping[str, Any]
) -> None:
    """Write the tables of an experiment as Markdown."""
    parts = [f"# {experiment.title}", f"In the paper: {experiment.place}.", experiment.about]
    parts += [how(about), LEGEND, *(f"![{name}]({name}.svg)" for name in about["figures"])]
    parts += [f"Missing: {name} ({why})." for name, why in about["missing"].items()]
    for grid in make_grids(experiment, records):
        parts += [f"## {grid.title}", grid.markdown()]
    text = "\n\n".join(parts) + "\n"
    write_text(path, text)


def how(about: Mapping[str, Any]) -> str:
    """Describe the settings in a few sentences."""
    models = f", {about['subsets']} trained models a valuation" if about["subsets"] else ""
    lines = [
        "A QUICK RUN: fewer draws, sets, steps and models than the paper's." * about["quick"],
        "A PART: not all sets or not both protocols." * about["partial"],
        f"{about['runs']} run{'s' * (about['runs'] != 1)} where something is random{models}.",
        f"{'; '.join(about['made'])}; Python {about['python']}, thresher {about['version']}; "
        f"{about['seconds']} seconds of computing.",
    ]
    if about["replayed"]:
        lines.append(f"The authors' own rows are replayed for {', '.join(about['replayed'])}.")
    for protocol, sizes in about["points"].items():
        lines.append(f"Points under {protocol}: {_grouped(sizes)}.")
    lines.append(f"Data: {_origins(about['sources'])}.")
    return " ".join(line for line in lines if line)


def _grouped(sizes: Mapping[str, int]) -> str:
    """Sizes of data sets; the most frequent size stands last, without its names."""
    names: dict[int, list[str]] = {}
    for name, count in sizes.items():
        names.setdefault(count, []).append(name)
    *others, (usual, most) = sorted(names.items(), key=lambda each: len(each[1]))
    shown = [f"{count:,} ({', '.join(of)})" for count, of in others]
    rest = "each" if not others else "all others" if len(most) > 1 else most[0]
    return ", ".join([*shown, f"{usual:,} ({rest})"])


def _origins(sources: Mapping[str, str]) -> str:
    if sources and all(source == f"{name}.npz" for name, source in sources.items()):
        return "a file NAME.npz for each set"
    return ", ".join(f"{name} ({source})" for name, source in sources.items()) or "made up"


def write_page(folder: Path, experiments: Mapping[str, Experiment]) -> None:
    """Write index.html, with every experiment whose table is in the folder."""
    require("jinja2", purpose="the page of results", extra="report")
    from jinja2 import Environment

    template = resources.files("thresher.paper").joinpath("page.html.jinja").read_text("utf-8")
    parts, broken = [], []
    for name, experiment in experiments.items():
        if (folder / f"{name}.parquet").is_file():
            try:
                parts.append(_part(folder, experiment))
            except (InputError, OSError, KeyError, TypeError) as damage:
                broken.append(f"{name}: {damage}")
    page = Environment(autoescape=True).from_string(template)
    text = page.render(parts=parts, broken=broken, legend=LEGEND)
    write_text(folder / "index.html", text)


def _part(folder: Path, experiment: Experiment) -> dict[str, Any]:
    with reading(folder / f"{experiment.name}.parquet", "table of results") as path:
        columns, about = read_table(path)
        rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
        records = [Record(**dict(zip(columns, row, strict=True))) for row in rows]
    return {
        "experiment": experiment,
        "title": experiment.title + " (quick)" * about["quick"] + " (a part)" * about["partial"],
        "how": how(about),
        "missing": about["missing"],
        "figures": {
            name: base64.b64encode((folder / f"{name}.svg").read_bytes()).decode("ascii")
            for name in about["figures"]
        },
        "grids": make_grids(experiment, records),
        "compared": sum(record.paper is not None for record in records),
        "beyond": sum(record.beyond for record in records),
    }


@dataclass(frozen=True)
class Grid:
    """A table: a title, a header, and rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [self.header, ("---",) * len(self.header), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def make_grids(experiment: Experiment, records: Iterable[Record]) -> list[Grid]:
    """Make a table for each task, measure and protocol; a missing set gets a row that says so."""
    parts: dict[tuple[str, str, str], list[Record]] = {}
    absent: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        if record.ours is None:
            absent.setdefault((record.task, record.protocol), {})[record.set] = None
        else:
            key = (record.task, record.measure, record.protocol)
            parts.setdefault(key, []).append(record)
    for task, protocol in absent:
        if not any((task, protocol) == (key[0], key[2]) for key in parts):
            parts[task, "nothing could be computed", protocol] = []
    return [
        _grid(experiment, key, found, absent.get((key[0], key[2]), {}))
        for key, found in parts.items()
    ]


def write_records(path: Path, records: Sequence[Record], about: dict[str, object]) -> None:
    """Write all records as Parquet, with the settings in its metadata."""
    names = [each.name for each in fields(Record)]
    columns = {name: [getattr(record, name) for record in records] for name in names}
    write_table(path, columns, about)


def _grid(
    experiment: Experiment, key: tuple[str, str, str], records: list[Record], missing: Iterable[str]
) -> Grid:
    task, measure, protocol = key
    by_step, axis = experiment.columns == "step", experiment.axis
    columns: dict[str, None] = {}
    found: dict[tuple[str, ...], dict[str, Record]] = {}
    for each in records:
        step = "" if each.step is None else f"{each.step:g}"
        column, *row = (step,) if by_step else (each.method, *([step] if axis else []))
        columns[column] = None
        found.setdefault((each.set, *row), {})[column] = each
    layout = _stack if len(columns) > WIDE else _line
    rows = [
        (*left, *entries)
        for row, cells in found.items()
        for left, entries in layout(row, [_texts(cells.get(column)) for column in columns])
    ]
    first, *others = columns or [""]
    head = ["set", *([] if by_step or not axis else [axis]), *([""] if layout is _stack else [])]
    header = (*head, f"{axis} {first}" if by_step and columns else first, *others)
    rows += [(name, "missing", *([""] * (len(header) - 2))) for name in missing]
    under = protocol if protocol == "made up" else f"protocol {protocol}"
    runs = sorted({each.runs for each in records}) or [0]
    draws = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    draws += " run" if runs == [1] else " runs"
    return Grid(f"{task}: {measure}, {draws}, {under}", header, tuple(rows))


class _Texts(NamedTuple):
    """The texts about one figure, with a deviation and a comparison if there are any."""

    ours: str = "-"
    spread: str = ""
    paper: str = "-"
    difference: str = "-"


def _texts(record: Record | None) -> _Texts:
    if record is None:
        return _Texts()
    kind = ".3f" if record.measure in TO_ONE else ".3g"  # up to 1, or three digits that count
    spread = "" if record.deviation is None else f"{record.deviation:{kind}}"
    ours = _Texts(f"{record.ours:{kind}}", spread)
    if record.paper is None or record.difference is None:
        return ours
    judged = record.standard_error is not None and not record.note
    mark = "*" if record.beyond else "" if judged else "?"
    signed = f"{round(record.difference, 3) + 0.0:+.3f}"  # no negative zero
    return ours._replace(paper=f"{record.paper:.3f}", difference=f"{signed}{mark}")


Lines = list[tuple[tuple[str, ...], list[str]]]  # the left end of each line, and its entries


def _line(row: tuple[str, ...], cells: list[_Texts]) -> Lines:
    """Our figure, and in parentheses the paper's and the difference, in one entry."""
    return [(row, [
        cell.ours
        + (f" ± {cell.spread}" if cell.spread else "")
        + (f" ({cell.paper}, {cell.difference})" if cell.paper != "-" else "")
        for cell in cells
    ])]  # fmt: skip


def _stack(row: tuple[str, ...], cells: list[_Texts]) -> Lines:
    """Ours, the paper's and the difference on separate lines, if there are any."""
    ours, spreads, paper, differences = (list(texts) for texts in zip(*cells, strict=True))
    blank = ("",) * len(row)
    lines = [((*row, "ours"), ours)]
    if any(spreads):
        lines.append(((*blank, "±"), spreads))
    if any(text != "-" for text in paper):
        lines += [((*blank, "paper"), paper), ((*blank, "difference"), differences)]
    return lines
