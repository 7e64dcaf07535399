"""Real people's files: each ends as its owner would expect."""

from __future__ import annotations

import shlex

import pytest
from tabular import put
from typer.testing import CliRunner
from ugly import UGLY

from thresher.cli import app
from thresher.errors import InputError, UndecidedError, in_options, message_of
from thresher.runs.inspection import inspect_files
from thresher.runs.settings import Settings

ROLES = ("label", "id", "owner")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*words):
    """The exit code of the command and what it says, in this process."""
    done = CliRunner().invoke(app, [*words, "--trees", "2"])
    refused = done.exception if isinstance(done.exception, InputError) else None
    if refused is None:
        return done.exit_code, done.output
    notes = [message_of(refused), *getattr(refused, "__notes__", ())]
    return 2 if isinstance(refused, UndecidedError) else 1, "\n".join(map(in_options, notes))


def left_out(command):
    """The columns that a line leaves out; a pattern for all features leaves out none."""
    words = shlex.split(command)
    given = dict(zip(words, [*words[1:], ""], strict=True))
    assert given.get("--features", "*") == "*"
    return tuple(given["--ignore"].split(",")) if "--ignore" in given else ()


@pytest.mark.parametrize("name", UGLY)
def test_an_ugly_table_ends_as_its_owner_would_expect(name):
    ugly = UGLY[name]
    if ugly.content is None:
        pytest.skip("openpyxl is not installed")
    put(ugly.name, ugly.content)
    code, said = run("value", ugly.name)
    assert code == (ugly.code if ugly.refused else 0), said
    assert all(word in said for word in ugly.refused), said
    if ugly.ready == "no":
        assert "this line solves" not in said
        assert "--ignore" not in said.splitlines()[-1]
        return
    found = inspect_files(Settings(ugly.name, guess=ROLES))
    assert not ugly.kinds or [each.kind for each in found.profiles] == ugly.kinds.split()
    assert ugly.ready in found.command
    assert bool(found.problems) == bool(ugly.refused)
    assert ("--categorical" in found.command) == ("--categorical" in ugly.ready)
    assert left_out(found.command) == ugly.without
    if ugly.refused:
        assert found.advice() in said.replace(" --trees 2", "")
        assert run(*shlex.split(found.command)[1:])[0] == 0, found.command
