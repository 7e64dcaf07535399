"""What the command says: data to stdout, words to stderr."""

from __future__ import annotations

import json
import sys
from typing import Any


def say(line: str) -> None:
    """Print words."""
    sys.stderr.write(f"{line}\n")


def show_json(document: Any) -> None:
    """Print data."""
    sys.stdout.write(json.dumps(document, indent=1, default=vars) + "\n")
