"""What the top of the library lends to the bottom, so that no import has to go up.

A result can write the page that shows it, though pages are made several layers above results. The
root of the package, which may import everything, says how.
"""

from __future__ import annotations

TYPE_CHECKING = False  # without the time that it takes to import `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_pages: list[Callable[..., None]] = []


def lend_pages(write: Callable[..., None]) -> None:
    """Let results write pages by this function."""
    _pages[:] = [write]


def write_page(*subject: Any, **options: Any) -> None:
    """Write the page of a result; see `thresher.report.report_valuation`."""
    _pages[0](*subject, **options)
