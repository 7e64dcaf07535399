"""Put the tables of folders that `thresher reproduce` made into docs/reproduction.

    .venv/bin/thresher reproduce all --out reproduction
    .venv/bin/python benchmarks/reproduction.py reproduction [more folders]

Each experiment gets a page of its own, docs/reproduction/NAME.md. The list of these pages replaces
everything below the line "## Tables" of docs/reproduction.md; what stands above is written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import fill

from thresher.paper import EXPERIMENTS

DOCS = Path(__file__).parent.parent / "docs"
TABLES = "\n## Tables\n"


def without_figures(text):
    """A page of an experiment in short lines, without figures, which the repository does not keep."""
    parts = re.sub(r"!\[.*?\]\(.*?\)\n+", "", text).strip().split("\n\n")
    return "\n\n".join(part if part[0] in "|#" else fill(part, 100) for part in parts) + "\n"


def contents(docs):
    """What stands below "## Tables": a link to the page of each experiment, in their order."""
    pages = {name: docs / "reproduction" / f"{name}.md" for name in EXPERIMENTS}
    titles = {n: p.read_text().split("\n")[0][2:] for n, p in pages.items() if p.is_file()}
    links = [f"- [{title}](reproduction/{name}.md)" for name, title in titles.items()]
    tree = ["```{toctree}", ":hidden:", "", *(f"reproduction/{name}" for name in titles), "```"]
    return "\n".join(["`thresher reproduce` wrote each of these pages.", "", *links, "", *tree, ""])


def write_tables(folders, docs):
    """Copy the pages of experiments into `docs`, and list them on the page about the paper."""
    (docs / "reproduction").mkdir(exist_ok=True)
    for file in (Path(folder) / f"{name}.md" for folder in folders for name in EXPERIMENTS):
        if file.is_file():
            (docs / "reproduction" / file.name).write_text(without_figures(file.read_text()))
    story = docs / "reproduction.md"
    kept = story.read_text().split(TABLES)[0]
    story.write_text(f"{kept}{TABLES}\n{contents(docs)}")


if __name__ == "__main__":
    write_tables(sys.argv[1:], DOCS)
