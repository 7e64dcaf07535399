"""What the command says: data to stdout, words to stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from thresher.errors import ReachWarning, ThresherWarning


def say(line: str) -> None:
    """Print words."""
    sys.stderr.write(f"{line}\n")


def show_json(document: Any) -> None:
    """Print data."""
    sys.stdout.write(json.dumps(document, indent=1, default=vars) + "\n")


IN_OPTIONS: dict[type[Warning], str] = {
    ReachWarning: "no point is within the radius of any validation point, so every value is 0: "
    "use a larger --radius, or auto",
}
_said = set[str]()


def say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning, once: of ours in words, of others with its kind."""
    message = IN_OPTIONS.get(category, str(message))
    if message in _said:
        return
    _said.add(message)
    kind = "" if issubclass(category, ThresherWarning) else f"{category.__name__}: "
    say(f"warning: {kind}{message}")


def split_names(listed: str | None) -> tuple[str, ...]:
    """Names between commas; an empty one is a column without a name."""
    return () if listed is None else tuple(name.strip() for name in listed.split(","))
