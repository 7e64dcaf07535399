"""What a tester's tables brought up: odd encodings, labels, ids, dates and options."""

from __future__ import annotations

import pytest
from tabular import put, thresher


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows_of(count, *more):
    """Lines of a table with columns x and y, in two clear classes, and what is put in besides."""
    lines = [f"{row % 2 * 100 + row},{'cat dog'.split()[row % 2]}" for row in range(count)]
    return [",".join([line, *(each(row) for each in more)]) for row, line in enumerate(lines)]


def said_by(code, *words):
    """What the command says, if it ends with this code."""
    done = thresher(*words)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("encoding", ["nonsense", "latin-2"])
@pytest.mark.parametrize("verb", ["inspect", "value", "clean --drop rows:1 --out b.csv"])
def test_an_unknown_encoding_is_refused_alike_by_all_verbs(verb, encoding):
    put("a.csv", "x,y\n1,a\n2,b\n")
    name, *more = verb.split()
    said = said_by(1, name, "a.csv", "--encoding", encoding, *more)
    wanted = f"--encoding must be one such as latin-1, cp1252 or utf-16, got {encoding!r}"
    assert said == f"thresher: {wanted}\n"
