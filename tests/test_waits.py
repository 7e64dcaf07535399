"""Every wait has a limit: the helpers keep it, and every test uses them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import waits

ENDLESS = [sys.executable, "-c", "import time; print('on', flush=True); time.sleep(1000)"]


def test_a_command_that_never_ends_is_an_error():
    with pytest.raises(subprocess.TimeoutExpired):
        waits.run(ENDLESS, limit=0.2)


def test_reading_from_a_process_that_says_no_more_ends():
    def read():
        with waits.started(ENDLESS, limit=0.5, stdout=subprocess.PIPE) as process:
            process.stdout.read()

    with pytest.raises(TimeoutError, match="was killed after 0.5 seconds"):
        read()


def test_a_process_does_not_outlive_its_block():
    with waits.started(ENDLESS, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"on\n"
    assert process.returncode == -9


def test_what_was_waited_for_is_named():
    with pytest.raises(TimeoutError, match="waited 0.05 seconds for rain"):
        waits.until(lambda: False, "rain", limit=0.05)
    assert waits.until(lambda: 7, "seven") == 7


def test_a_thread_that_never_ends_is_an_error():
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait, daemon=True)
    thread.start()
    with pytest.raises(TimeoutError, match="did not end within 0.05 seconds"):
        waits.join(thread, limit=0.05)
    ends.set()
    waits.join(thread)


MAY_WAIT = re.compile(
    r"subprocess\.(?:run|call|check_\w+|Popen)\(|\.join\(\)|^( *)while .*\n(?:\1 .*\n)*?\1 .*time\.sleep",
    re.MULTILINE,
)


def endless(text):
    """The lines of a program that could wait for ever; programs within strings have a limit."""
    found = [text.count("\n", 0, each.start()) + 1 for each in MAY_WAIT.finditer(text)]
    if not found:
        return []
    strings = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Constant)]
    return [
        line for line in found if not any(each.lineno < line < each.end_lineno for each in strings)
    ]


def test_waits_without_a_limit_are_found():
    program = (
        "subprocess.run(x, timeout=1)\nthread.join()\nwhile not x:\n    time.sleep(1)\n'.'.join(x)"
    )
    assert endless(program) == [1, 2, 3]


def test_every_test_waits_with_a_limit():
    found = [
        f"{path.name}:{line}"
        for path in Path(__file__).parent.glob("*.py")
        if path.name not in {"waits.py", "test_waits.py"} and "market" not in path.name
        for line in endless(path.read_text())
    ]
    assert found == []
