"""What the command says: data to stdout, words to stderr."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from thresher.cli.streams import as_given
from thresher.errors import ThresherWarning, in_options, message_of, plain_text, printing, shortened

SHOWN = 10  # owners, or pairs of them, that are told in words


def say(line: str) -> None:
    """Print words on one line, whatever they quote."""
    sys.stderr.write(f"{plain_text(as_given(line))}\n")


def say_whole(line: str) -> None:
    """Print a line that must not be cut, such as a command; unprintable characters are escaped."""
    given = as_given(line)
    sys.stderr.write("".join(x if x.isprintable() else ascii(x)[1:-1] for x in given) + "\n")


@contextlib.contextmanager
def flushed() -> Iterator[None]:
    """Write all data to standard output at the end; raise if that fails.

    Otherwise Python would try again when it exits, and nothing could catch the error.
    """
    try:
        yield
    finally:
        try:
            with printing() as out:
                out.flush()
        except OSError:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise


def in_words(failure: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(failure, MemoryError):
        return f"there is not enough memory{f': {failure}' if str(failure) else ''}"
    if isinstance(failure, FileNotFoundError) and failure.filename is None:
        return "the working folder was removed: change to another one"
    if isinstance(failure, OSError) and failure.errno is not None:
        what, where = str(failure.strerror), str(failure.filename or "")
        return what if what.startswith(where) else f"{where}: {what}"
    return in_options(message_of(failure))


def show_json(document: Any) -> None:
    """Print data as JSON; labels that JSON has no type for, such as dates, are text."""
    with printing() as out:
        out.write(json.dumps(document, indent=1, default=_in_json) + "\n")


def _in_json(entry: Any) -> Any:
    return vars(entry) if dataclasses.is_dataclass(entry) else str(entry)


_said = set[str]()


def say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning once: Thresher's own in words, those of others with their kind."""
    text = message if isinstance(message, str) else message_of(message)
    message = " ".join(in_options(text).split())
    if message in _said:
        return
    _said.add(message)
    kind = "" if issubclass(category, ThresherWarning) else f"{category.__name__}: "
    say(f"warning: {kind}{message}")


def say_owners(amounts: Mapping[Any, Any], written: Callable[[Any], object] = str) -> None:
    """Print what owners get or are worth, the largest first; of many, only the first."""
    ranked = sorted(amounts.items(), key=lambda entry: -entry[1])
    for owner, amount in ranked[:SHOWN]:
        say(f"  {shortened(str(owner), 60)}: {written(amount)}")
    if len(ranked) > SHOWN:
        say(f"  and {len(ranked) - SHOWN} more")


def split_names(listed: str | None) -> tuple[str, ...]:
    """The names in a list with commas; an empty one is a column without a name."""
    return () if listed is None else tuple(name.strip() for name in listed.split(","))
