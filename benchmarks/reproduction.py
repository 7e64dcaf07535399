"""Put the tables of folders that `thresher reproduce` made into docs/reproduction.md.

    .venv/bin/thresher reproduce all --out reproduction
    .venv/bin/python benchmarks/reproduction.py reproduction [more folders]

Everything below the line "## Tables" is replaced; what stands above is written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from thresher.paper import EXPERIMENTS
from thresher.paper.pages import LEGEND

PAGE = Path(__file__).parent.parent / "docs" / "reproduction.md"


def tables(path):
    """A page of an experiment, one level deeper, without figures and legend."""
    text = path.read_text().replace(f"{LEGEND}\n", "")
    text = re.sub(r"!\[.*?\]\(.*?\)\n+", "", text)
    return re.sub(r"^(#+) ", r"##\1 ", text, flags=re.MULTILINE).strip()


def main():
    files = [Path(folder) / f"{name}.md" for folder in sys.argv[1:] for name in EXPERIMENTS]
    kept = PAGE.read_text().split("\n## Tables\n")[0]
    parts = [tables(file) for file in files if file.is_file()]
    PAGE.write_text(f"{kept}\n## Tables\n\n{LEGEND}\n\n" + "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
