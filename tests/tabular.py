"""What tests of tables and of the command share: files, refusals, runs."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

import pytest

import thresher as th
from thresher.cli import main
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


def with_last(*words):
    """The words of a command, with the last of each option that they have twice."""
    found = [str(word) for word in words]
    for name in [word for word in found if word.startswith("--")]:
        while found.count(name) > 1:
            place = found.index(name)
            del found[place : place + 2]
    return found


def thresher(*arguments, cwd="."):
    """The command, in this process: its exit code, and what it prints."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    words, handler = ["thresher", *map(str, arguments)], signal.getsignal(signal.SIGTERM)
    with (
        contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", words), mock.patch("thresher.cli.words._said", set()),
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", th.ThresherWarning)
        try:
            code = main()
        except SystemExit as stopped:
            code = stopped.code
        finally:
            signal.signal(signal.SIGTERM, handler)
    printed = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(words, code or 0, *printed)
