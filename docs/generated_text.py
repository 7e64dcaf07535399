"""Text of pages that is made from the code: a comment in a page says where it belongs.

A comment is invisible where the page is read as it is, such as `<!-- all commands -->`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from citation import bibtex
from command_pages import all_commands

import thresher

TEXTS: dict[str, Callable[[], str]] = {
    "<!-- all commands -->": all_commands,
    "<!-- how to cite -->": bibtex,
    "<!-- version -->": lambda: f"This is the site of version {thresher.__version__}.",
}


def fill(_: Any, __: str, source: list[str]) -> None:
    """Put texts where a page asks for them."""
    for comment, text in TEXTS.items():
        if comment in source[0]:
            source[0] = source[0].replace(comment, text())


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
