"""The command `thresher`, or `python -m thresher`, which reacts to Ctrl-C from the start."""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys

INTERRUPTED, TERMINATED = 130, 143


class Closed(io.TextIOBase):
    """A stand-in for standard output if the caller has closed it."""

    def write(self, _: str, /) -> int:
        """Raise, because there is nowhere to write to."""
        raise OSError(errno.EBADF, "standard output is closed")


def main() -> None:
    """Run the command; even an interruption during its import gives one line and an exit code."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if heeded:  # else whoever started it wants it ignored
            signal.signal(signal.SIGINT, _leave)  # KeyboardInterrupt is lost in some imports
        signal.signal(signal.SIGTERM, _leave)
        _open_streams()
        gc.set_threshold(10_000)  # imports make many objects and no garbage: less to search for
        from thresher.cli import main as run

        sys.unraisablehook = _interrupt_again
        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        _leave(signal.SIGINT)
    finally:
        if heeded:  # the outcome is known
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        exec("")  # noqa: S102 - Python forgets interruptions within exec, else it dies of one


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Send Ctrl-C once more if Python had to ignore it, as in callbacks of imports."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    from threading import Timer

    again = Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))  # not here: it would be lost, too
    again.daemon = True
    again.start()


def _leave(number: int, *_: object) -> None:
    """Exit at once: nothing was begun, or nothing is left to do."""
    os.write(2, b"thresher: interrupted; no file was left half written\n")
    os._exit(INTERRUPTED if number == signal.SIGINT else TERMINATED)


def _open_streams() -> None:
    """Fill the places of closed standard streams, which the next opened file would get."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    if sys.stdout is None:
        sys.stdout = Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


if __name__ == "__main__":
    main()
