"""What must hold of the built site.

It needs no network, its search finds every public name, and no two files differ only in capitals.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

import thresher

# what a browser loads by itself; a link that a reader may follow is no such thing
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:)?//[^\"]*\""
    r"|<link\b(?=[^>]*\brel=\"(?:stylesheet|preload|icon)\")[^>]*\bhref=\"(https?:)?//[^\"]*\""
)


def network_uses(folder: Path) -> list[str]:
    """Every tag of every page that makes a browser load something from elsewhere."""
    return [
        f"{path.relative_to(folder)}: {found[0]}"
        for path in sorted(folder.rglob("*.html"))
        for found in LOADED.finditer(path.read_text(encoding="utf-8"))
    ]


def unfindable_names(folder: Path) -> list[str]:
    """Public names that the search index of the site does not have."""
    index = (folder / "searchindex.js").read_text(encoding="utf-8").lower()
    return [name for name in thresher.__all__ if name.lower() not in index]


def colliding_files(folder: Path) -> list[str]:
    """Files that are one file on disks that do not tell capitals from small letters."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    seen: dict[str, str] = {}
    return [
        f"{name} and {first} differ only in capitals"
        for name in names
        if (first := seen.setdefault(name.lower(), name)) != name
    ]


def check_site(app: Any, exception: Exception | None) -> None:
    """Fail the build if something of that does not hold."""
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    wrong = network_uses(folder) + colliding_files(folder)
    wrong += [f"search misses {name}" for name in unfindable_names(folder)]
    if wrong:
        raise ExtensionError("the site is not complete by itself:\n" + "\n".join(wrong[:20]))


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("build-finished", check_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
