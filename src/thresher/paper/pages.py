"""Pages to read: one Markdown file an experiment, one HTML page for all that a folder holds."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from thresher.errors import InputError, require
from thresher.files import read_table, reading, write_whole
from thresher.paper.cells import Experiment
from thresher.paper.grids import make_grids
from thresher.paper.records import Record

LEGEND = (
    "An entry is ours ± its deviation over the runs (the paper's figure, the difference). * marks "
    "a difference of more than two standard errors; where the authors' own rows are replayed and "
    "nothing is random, of more than rounding. ? marks one that cannot be judged: fewer than "
    "three random runs, or other embeddings than the paper's."
)


def write_text(
    path: Path, experiment: Experiment, records: Sequence[Record], about: Mapping[str, Any]
) -> None:
    """The tables of an experiment as Markdown."""
    parts = [f"# {experiment.title}", f"In the paper: {experiment.place}.", experiment.about]
    parts += [how(about), LEGEND, *(f"![{name}]({name}.svg)" for name in about["figures"])]
    parts += [f"Missing: {name} ({why})." for name, why in about["missing"].items()]
    for grid in make_grids(experiment, records):
        parts += [f"## {grid.title}", grid.markdown()]
    text = "\n\n".join(parts) + "\n"
    write_whole(path, lambda to: to.write_text(text, "utf-8"))


def how(about: Mapping[str, Any]) -> str:
    """The settings in a few sentences."""
    models = f", {about['subsets']} trained models a valuation" if about["subsets"] else ""
    told = [
        "A QUICK RUN: fewer draws, sets, steps and models than the paper's." * about["quick"],
        "A PART: not all sets or not both protocols." * about["partial"],
        f"{about['runs']} runs where something is random{models}.",
        f"{'; '.join(about['made'])}; Python {about['python']}, thresher {about['version']}; "
        f"{about['seconds']} seconds of computing.",
    ]
    if about["replayed"]:
        told.append(f"The authors' own rows are replayed for {', '.join(about['replayed'])}.")
    for protocol, sizes in about["points"].items():
        shown = ", ".join(f"{name} {count}" for name, count in sizes.items())
        told.append(f"Points under {protocol}: {shown}.")
    sources = (f"{name} ({source})" for name, source in about["sources"].items())
    told.append(f"Data: {', '.join(sources) or 'made up'}.")
    return " ".join(line for line in told if line)


def write_page(folder: Path, experiments: Mapping[str, Experiment]) -> None:
    """index.html: every experiment of which the folder has a table."""
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
    write_whole(folder / "index.html", lambda to: to.write_text(text, "utf-8"))


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
