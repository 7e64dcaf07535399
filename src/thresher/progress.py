"""A progress bar on standard error, or none."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Protocol


class Advance(Protocol):
    """What a bar gives to those who make progress."""

    def __call__(self, done: int, *, total: int | None = None) -> None:
        """So much more is done; and so much there is in all, where that changes."""


@contextlib.contextmanager
def progress_bar(
    title: str, total: int, *, show: bool, unit: str = "pairs"
) -> Iterator[Advance | None]:
    """Yield a function to be told how many pairs are done, or None if nothing is to be shown."""
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
    """80 columns and 24 rows for a terminal that says it has none; else what is found there."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if not os.get_terminal_size(sys.stderr.fileno()).columns:
            return {"ncols": 80, "nrows": 24}
    return {}
