"""The pages that benchmarks wrote, as pages of the site: links to them work there as on disk.

Their titles are the names that docs/measurements.md gives them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
MEASURED = DOCS.parent / "benchmarks" / "results"


def copy_results(_: Any) -> None:
    """Copy what was measured below docs, where Sphinx finds it."""
    folder = DOCS / "results"
    folder.mkdir(exist_ok=True)
    for copy in folder.iterdir():
        if not (MEASURED / copy.name).exists():
            copy.unlink()
    index = (DOCS / "measurements.md").read_text(encoding="utf-8")
    names = {file: name for name, file in re.findall(r"\[(.*)\]\(.*/results/(.*)\)", index)}
    for path in MEASURED.glob("*.svg"):
        shutil.copy(path, folder)
    for path in MEASURED.glob("*.md"):
        page = retitled(path.read_text(encoding="utf-8"), names[path.name])
        if not (copy := folder / path.name).exists() or copy.read_text(encoding="utf-8") != page:
            copy.write_text(page, encoding="utf-8")


def retitled(page: str, name: str) -> str:
    """A page under another title; what was its title comes below."""
    title, rest = page.removeprefix("# ").split("\n", 1)
    return f"# {name}\n\n{title}.\n{rest}"


def follow_links(_: Any, __: str, source: list[str]) -> None:
    """Point links of a page at the copies."""
    source[0] = source[0].replace("../benchmarks/results/", "results/")


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("builder-inited", copy_results)
    app.connect("source-read", follow_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
