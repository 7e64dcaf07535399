"""A progress bar on standard error, or none."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(title: str, total: int, *, show: bool) -> Iterator[Callable[[int], None] | None]:
    """Yield a function to be told how many pairs are done, or None if nothing is to be shown."""
    if not show:
        yield None
        return
    from tqdm import tqdm

    lock = threading.Lock()
    with tqdm(total=total, desc=title, unit=" pairs", unit_scale=True) as bar:

        def advance(pairs: int) -> None:
            with lock:
                bar.update(pairs)

        yield advance
