"""Functions that upper layers lend to lower ones, so that lower layers never import upper ones.

A result can write the page that shows it, although pages are made several layers above results. The
root of the package, which may import everything, provides the function.
"""

from __future__ import annotations

TYPE_CHECKING = False  # without the time that it takes to import `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_pages: list[Callable[..., None]] = []


def lend_pages(write: Callable[..., None]) -> None:
    """Let results write pages with this function."""
    _pages[:] = [write]


def write_page(*subject: Any, **options: Any) -> None:
    """Write the page of a result; see `thresher.report.report_valuation`."""
    _pages[0](*subject, **options)
