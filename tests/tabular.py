"""What tests of tables and of the command share: files, refusals, runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import thresher as th
from thresher.errors import in_options, message_of


def put(name, content):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def check_refused(call, *words):
    """That a call is refused in one line that has these words, options as the command has them."""
    with pytest.raises(th.InputError) as caught:
        call()
    said, shown = str(caught.value), in_options(message_of(caught.value))
    for word in words:
        assert word in (shown if "--" in word else said), shown
    assert "\n" not in said
    assert not re.search("--[a-z]", said), said
    return said


def thresher(*arguments):
    """The command, in a process of its own."""
    command = [sys.executable, "-m", "thresher", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
