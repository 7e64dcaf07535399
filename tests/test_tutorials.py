"""The tutorials, as a newcomer follows them: page by page, in an empty folder, from the top."""

from __future__ import annotations

import csv
import doctest
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from tabular import thresher

import thresher as th

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "tutorials").glob("[!i]*.md"))
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


def test_the_readme_prints_what_it_shows_on_a_file_of_the_repository(tmp_path, monkeypatch):
    """Its examples in Python are doctests."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    commands = [source for kind, source in blocks if kind == "console"]
    assert commands
    failures = "".join(map(run_console, commands))
    assert not failures, failures


def test_the_readme_counts_what_the_example_finds(tmp_path, monkeypatch):
    """All nine rows to relabel are wrong, and two of the four to inspect."""
    monkeypatch.chdir(tmp_path)
    table = str(ROOT / "examples" / "iris.csv")
    assert not thresher("value", table, "--label", "species", "--out", "v.csv").returncode
    with Path("v.csv").open(newline="") as file:
        marks = {int(row["row"]): row["suggestion"] for row in csv.DictReader(file)}
    names = load_iris().target_names[load_iris().target]
    wrong = th.flip_labels(names, fraction=0.08, seed=4)[1]
    found = {word: [wrong[row] for row, mark in marks.items() if mark == word] for word in CALLED}
    assert {word: (sum(each), len(each)) for word, each in found.items()} == CALLED
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "All nine rows to relabel are wrong, and so are two of the four to inspect." in text


CALLED = {"relabel": (9, 9), "inspect": (2, 4)}  # how many are wrong, of how many


def test_the_labels_of_the_example_are_wrong_where_its_page_says():
    flowers = load_iris()
    names = flowers.target_names[flowers.target]
    labels, wrong = th.flip_labels(names, fraction=0.08, seed=4)
    with (ROOT / "examples" / "iris.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["species"] for row in rows] == labels.tolist()
    assert [list(map(float, list(row.values())[:4])) for row in rows] == flowers.data.tolist()
    listed = (ROOT / "examples" / "README.md").read_text().rpartition(":")[2]
    assert list(map(int, re.findall(r"\d+", listed))) == np.flatnonzero(wrong).tolist()
