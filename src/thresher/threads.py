"""Our own threads, with one BLAS thread each.

If the matrix product used its own threads and then ours in turn, both pools would wait for each
other; on a busy machine, that cost a factor of 3 to 30. Jobs are cut before they are handed out,
and each writes to its own places, so no result depends on the number of threads.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from thresher.errors import InputError

Result = TypeVar("Result")


def thread_count() -> int:
    """How many threads work at once: `THRESHER_THREADS`, or the cores this process may use.

    That is at most `NUMBA_NUM_THREADS`, with which joblib divides the cores among its workers.
    """
    setting = os.environ.get("THRESHER_THREADS")
    if setting:
        if not setting.isdigit() or int(setting) < 1:
            raise InputError(f"THRESHER_THREADS must be an integer >= 1, got {setting!r}")
        return int(setting)
    share = os.environ.get("NUMBA_NUM_THREADS", "")
    most = int(share) if share.isdigit() and int(share) else sys.maxsize
    if hasattr(os, "sched_getaffinity"):
        return min(most, max(1, len(os.sched_getaffinity(0))))
    return min(most, os.cpu_count() or 1)


def run(job: Callable[..., Any], pieces: Sequence[tuple[Any, ...]], *, parallel: bool) -> None:
    """Call `job(*piece)` for every piece, in our threads if `parallel`; if not, in this one."""
    if not parallel or len(pieces) < 2 or thread_count() < 2:
        for piece in pieces:
            job(*piece)
        return
    futures = [_pool(thread_count()).submit(job, *piece) for piece in pieces]
    try:
        for future in as_completed(futures):
            future.result()
    finally:
        for future in futures:
            future.cancel()


def in_order(
    job: Callable[..., Result], pieces: Iterable[tuple[Any, ...]], *, parallel: bool
) -> Iterator[Result]:
    """Yield `job(*piece)` for every piece, in order; only a few run at once."""
    count = thread_count() if parallel else 1
    if count < 2:
        for piece in pieces:
            yield job(*piece)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for piece in pieces:
            waiting.append(_pool(count).submit(job, *piece))
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def cut(lo: int, hi: int, size: int) -> list[tuple[int, int]]:
    """Cut the range lo..hi into pieces of at most `size`.

    Examples
    --------
    >>> cut(0, 10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    return [(start, min(hi, start + size)) for start in range(lo, hi, size)]


def take(queue: SimpleQueue[Result]) -> Result | None:
    """Take something that was put back before: threads reuse buffers, because memory is costly."""
    try:
        return queue.get_nowait()
    except Empty:
        return None


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="thresher")


@cache
def _blas() -> Any:
    import scipy.linalg  # noqa: F401 - has a BLAS of its own, which only counts once it is loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


_alone = [threading.RLock()]
_limits: list[Any] = []


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run matrix products inside on the calling thread alone.

    The limit holds for the whole process, so only one caller at a time may set and restore it;
    others wait, which costs them nothing: the one inside keeps all cores busy.
    """
    with _alone[0], _blas().limit(limits=1) as limit:
        _limits.append(limit)
        try:
            yield
        finally:
            _limits.pop()


def _after_fork() -> None:
    """Make new threads and locks after a fork, which they do not survive, and lift BLAS limits."""
    _pool.cache_clear()
    _alone[0] = threading.RLock()
    while _limits:
        _limits.pop().restore_original_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
