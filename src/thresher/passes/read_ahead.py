"""Read-ahead: the next part is read by a thread while the one before it is computed on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")


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
    if not threaded:
        yield iter(source)
        return
    reader = _Reader(source)
    reader.thread.start()
    try:
        yield reader.items()
    finally:
        reader.stop()


class _Reader(Generic[Item]):
    """A thread that reads one item, waits until it is taken, and reads the next."""

    def __init__(self, source: Iterable[Item]) -> None:
        self.source = source
        self.done: SimpleQueue[Callable[[], Item] | None] = SimpleQueue()  # None at the end
        self.wanted = threading.Semaphore(1)
        self.stopped = False
        self.thread = threading.Thread(target=self._read, name="thresher-ahead", daemon=True)

    def items(self) -> Iterator[Item]:
        while (found := self.done.get()) is not None:
            self.wanted.release()  # the next may be read now
            yield found()

    def stop(self) -> None:
        """Let the thread end, after the item it is reading, and wait for it."""
        self.stopped = True
        self.wanted.release()
        self.thread.join()

    def _read(self) -> None:
        items: Any = None
        try:
            items = iter(self.source)
            while True:
                self.wanted.acquire()
                if self.stopped:
                    break
                self.done.put(_Held(next(items)))
        except StopIteration:
            pass
        except BaseException as failure:  # noqa: BLE001 - raised again by who asks for the item
            self.done.put(_raising(failure))
        finally:
            close: Any = getattr(items, "close", None)
            if close is not None:
                close()
            self.done.put(None)


class _Held(Generic[Item]):
    """An item that is given away once, so that nothing here keeps it alive."""

    def __init__(self, item: Item) -> None:
        self.items = [item]

    def __call__(self) -> Item:
        return self.items.pop()


def _raising(failure: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise failure

    return fail
