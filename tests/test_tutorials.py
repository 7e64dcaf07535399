"""The tutorials, as a newcomer follows them: page by page, in an empty folder, from the top."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from tabular import thresher

PAGES = sorted((Path(__file__).parent.parent / "docs" / "tutorials").glob("[!i]*.md"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_python(source, names):
    """Run the examples of a block, and say which did not give what the page shows."""
    failures = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    test = doctest.DocTestParser().get_doctest(source, names, "page", None, 0)
    test.globs = names
    runner.run(test, out=failures.append, clear_globs=False)
    return "".join(failures)


def run_console(source):
    """Run the commands of a block, and say which did not print what the page shows."""
    failures = ""
    for step in ("\n" + source.replace("\\\n", "")).split("\n$ ")[1:]:
        command, _, wanted = step.partition("\n")
        done = thresher(*shlex.split(command)[1:])
        printed = done.stdout + done.stderr
        if done.returncode or not doctest.OutputChecker().check_output(wanted, printed, FLAGS):
            failures += f"$ {command}\nwanted:\n{wanted}\ngot:\n{printed}"
    return failures


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("default")
def test_a_tutorial_does_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    failures = ""
    for kind, source in BLOCK.findall(page.read_text(encoding="utf-8")):
        failures += run_python(source, names) if kind == "python" else run_console(source)
    assert not failures, failures
