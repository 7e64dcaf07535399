"""Read-ahead: the next part is read by a thread while the one before it is computed on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
END: Any = object()


@contextlib.contextmanager
def read_ahead(source: Iterable[Item], *, threaded: bool = True) -> Iterator[Iterator[Item]]:
    """Yield the items of `source` in their order, one of them read ahead by a thread.

    Two items are alive at most: the one in use, and the one that is being read or waits. Whatever
    the reader raises is raised here, in its place. When the block is left the thread has ended,
    however it was left. Without `threaded` items are read as they are asked for.

    Examples
    --------
    >>> with read_ahead(range(3)) as items:
    ...     list(items)
    [0, 1, 2]
    """
    items = iter(source)
    if not threaded:
        yield items
        return
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="thresher-ahead") as reader:
            yield _items(items, reader)
    finally:
        close: Any = getattr(items, "close", None)
        if close is not None:
            close()


def _items(items: Iterator[Item], reader: ThreadPoolExecutor) -> Iterator[Item]:
    waiting = reader.submit(next, items, END)
    while (item := waiting.result()) is not END:
        waiting = reader.submit(next, items, END)
        yield item
