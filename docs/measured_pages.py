"""The pages that benchmarks wrote, as pages of the site: links to them work there as on disk.

The search leaves them out, so that it shows first the pages that explain something.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
MEASURED = DOCS.parent / "benchmarks" / "results"


def copy_results(_: Any) -> None:
    """Copy what was measured below docs, where Sphinx finds it."""
    folder = DOCS / "results"
    folder.mkdir(exist_ok=True)
    for path in MEASURED.glob("*.svg"):
        shutil.copy(path, folder)
    for path in MEASURED.glob("*.md"):
        page = "---\norphan: true\nnosearch: true\n---\n\n" + path.read_text(encoding="utf-8")
        if not (copy := folder / path.name).exists() or copy.read_text(encoding="utf-8") != page:
            copy.write_text(page, encoding="utf-8")


def follow_links(_: Any, __: str, source: list[str]) -> None:
    """Point links of a page at the copies."""
    source[0] = source[0].replace("(../benchmarks/results/", "(results/")


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("builder-inited", copy_results)
    app.connect("source-read", follow_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
