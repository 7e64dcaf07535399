"""Waits with a limit, so that no test waits for ever. `test_waits` sees that all use them."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time

LIMIT = 240.0
"""Seconds, enough for the slowest machine: nothing takes a tenth of it on a common one."""


def run(command, *, limit=LIMIT, **options):
    """What a command did and said: both streams as texts, unless the options say otherwise."""
    usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "check": False}
    return subprocess.run(command, timeout=limit, **usual | options)  # noqa: PLW1510, S603


@contextlib.contextmanager
def started(command, *, limit=LIMIT, **options):
    """A process that is killed at the end of the block, and at the limit: reading from it ends."""
    late = []
    process = subprocess.Popen(command, **options)  # noqa: S603
    clock = threading.Timer(limit, lambda: (late.append(True), process.kill()))
    clock.start()
    try:
        yield process
    finally:
        clock.cancel()
        process.kill()
        with contextlib.suppress(ValueError):  # its streams are closed
            process.communicate(timeout=limit)
        if late:
            raise TimeoutError(f"{command} was killed after {limit:g} seconds")


def until(condition, what, *, limit=LIMIT):
    """What the condition returns once it is true; an error names what it waited for."""
    ends = time.monotonic() + limit
    while not (found := condition()):
        if time.monotonic() > ends:
            raise TimeoutError(f"waited {limit:g} seconds for {what}")
        time.sleep(0.01)
    return found


def join(*threads, limit=LIMIT):
    """Wait for threads to end."""
    for thread in threads:
        thread.join(limit)
        if thread.is_alive():
            raise TimeoutError(f"{thread.name} did not end within {limit:g} seconds")


def together(*functions):
    """Call these functions in a thread each, and wait for all of them."""
    threads = [threading.Thread(target=function, daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    join(*threads)
