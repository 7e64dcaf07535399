"""A progress bar on standard error, or none."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Protocol


class Advance(Protocol):
    """The function by which a task reports its progress to a bar."""

    def __call__(self, done: int, *, total: int | None = None) -> None:
        """Report that `done` more is done and, if it has changed, the new `total`."""


@contextlib.contextmanager
def progress_bar(
    title: str, total: int, *, show: bool, unit: str = "pairs"
) -> Iterator[Advance | None]:
    """Yield a function that reports how many pairs are done, or None if nothing is shown."""
    if not show:
        yield None
        return
    from tqdm import tqdm

    lock = threading.Lock()
    with tqdm(total=total or None, desc=title, unit=f" {unit}", unit_scale=True, **_size()) as bar:

        def advance(done: int, *, total: int | None = None) -> None:
            with lock:
                bar.total = total or bar.total
                bar.update(done)

        yield advance


def _size() -> dict[str, int]:
    """The terminal's size, or 80 columns and 24 rows if it reports none."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if not os.get_terminal_size(sys.stderr.fileno()).columns:
            return {"ncols": 80, "nrows": 24}
    return {}
