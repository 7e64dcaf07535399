"""The site: generated pages and the reference have all that they should, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from functools import cached_property
from pathlib import Path

import pytest
from test_documents import COMMAND, DOCUMENTS, reached

import thresher as th

ROOT = Path(__file__).parent.parent


def reference():
    """The full name of everything that has a page in the reference."""
    module, names = "thresher", []
    for line in (ROOT / "docs/api.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif found := re.fullmatch(r" {3}([A-Za-z_][\w.]*)", line):
            names.append(f"{module}.{found[1]}")
    return names


def failing_examples(documented, name):
    """What the examples of a docstring and of its methods print if run in a fresh interpreter."""
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(documented, name, module=False, globs={}):
        runner.run(test, out=said.append)
    return said


@pytest.mark.parametrize("name", reference())
def test_examples_of_the_reference_run_as_printed(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert not failing_examples(reached(name.split(".")[1:]), name)


def test_examples_that_lack_an_import_are_found():
    def public():
        """Something.

        >>> cache
        1
        """

    assert any("NameError" in each for each in failing_examples(public, "public"))


@pytest.mark.parametrize("name", reference())
def test_no_property_is_shown_as_a_type(name):
    """Sphinx takes what is before a colon in the first line for the type of the property."""
    documented = reached(name.split(".")[1:])
    if isinstance(documented, type):
        for member, found in inspect.getmembers(documented):
            if isinstance(found, (property, cached_property)) and not member.startswith("_"):
                assert ": " not in inspect.getdoc(found).partition("\n")[0], member


def test_every_figure_is_shown():
    shown = [*DOCUMENTS, ROOT / "docs" / "conf.py"]  # which names the site's icon
    text = "".join(path.read_text(encoding="utf-8") for path in shown)
    figures = {path.name for path in (ROOT / "docs" / "_static").glob("*.svg")}
    assert figures
    assert {name for name in figures if f"_static/{name}" not in text} == set()


def test_generated_pages_have_the_texts_of_the_code():
    """The tables took hours; what is said about them must not be left behind by the code."""
    paper = pytest.importorskip("thresher.paper")
    pages = importlib.import_module("thresher.paper.pages")
    for name, experiment in paper.EXPERIMENTS.items():
        text = (ROOT / "docs/reproduction" / f"{name}.md").read_text(encoding="utf-8")
        said = f"# {experiment.title} In the paper: {experiment.place}. {experiment.about}"
        assert " ".join(text.split()).startswith(" ".join(said.split())), name
        assert pages.LEGEND in " ".join(text.split()), name


def below(group=COMMAND, words=("thresher",)):
    """Every command as (what calls it, the command itself)."""
    yield " ".join(words), group
    for name, inner in getattr(group, "commands", {}).items():
        yield from below(inner, (*words, name))


def test_the_reference_has_every_command_and_option(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    source = [(ROOT / "docs/cli.md").read_text(encoding="utf-8")]
    importlib.import_module("command_pages").fill(None, "cli", source)
    sections = re.split(r"^##+ (thresher.*)\n", source[0], flags=re.MULTILINE)[1:]
    found = dict(zip(sections[::2], sections[1::2]))
    assert set(found) == {name for name, _ in below()}
    for name, command in below():
        for each in command.params:
            for written in [each.metavar] if each.metavar else [*each.opts, *each.secondary_opts]:
                assert re.search(rf"^`(.*[, /])?{written}\b.*`\n: \S", found[name], re.M), written


def test_the_site_says_how_to_cite_the_software_and_the_paper():
    text = (ROOT / "docs/about.md").read_text(encoding="utf-8")
    assert "  author = {{The Thresher developers}},\n" in text
    assert f"  version = {{{th.__version__}}},\n" in text
    assert "@inproceedings{wang2023,\n  author = {Wang, Jiachen T. and Zhu, Yuqing and" in text


def test_the_search_knows_only_pages_that_exist():
    text = (ROOT / "docs/search_order.js").read_text(encoding="utf-8")
    pages = re.findall(r'^  "(.*)": /', text, flags=re.MULTILINE)
    assert pages
    assert {page for page in pages if not (ROOT / f"docs/{page}.md").exists()} == set()


def test_every_page_of_results_is_in_the_list_of_measurements():
    text = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "benchmarks" / "results").glob("*.md")}
    assert pages == set(re.findall(r"\(../benchmarks/results/(.*?)\)", text))


def test_guides_and_tutorials_are_called_by_their_titles():
    for index in (ROOT / "docs" / "guides.md", ROOT / "docs" / "tutorials" / "index.md"):
        links = re.findall(r"\[(.*)\]\((.*\.md)\)", index.read_text(encoding="utf-8"))
        assert links
        for name, file in links:
            assert (index.parent / file).read_text(encoding="utf-8").startswith(f"# {name}\n"), file
