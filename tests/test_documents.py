"""Whatever a document names is there: commands, options, extras, files, make targets, names."""

from __future__ import annotations

import doctest
import importlib
import re
import tomllib
from functools import cache, reduce
from pathlib import Path

import pytest
import typer.main

import thresher as th
from thresher.cli import app

ROOT = Path(__file__).parent.parent
MADE = {"_build", "api", "gallery", "results"}  # by `make docs`
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "benchmarks" / "README.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(path.parts)),
]
COMMAND = typer.main.get_command(app)
CODE = re.compile(r"```.*?\n(.*?)```|((?:^ {4}[^\n]*\n)+)|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
REACHED = {*th.__all__, "__version__", "federate"}  # by `th.` alone, whatever was imported before
OTHERS = {  # options of other programs, and of our own scripts
    "--data", "--extras", "--fit", "--force-reinstall", "--help", "--pythons", "--sections",
}  # fmt: skip


@cache
def code(path):
    """What a document sets in code: blocks and spans, continued lines joined."""
    found = ["".join(each) for each in CODE.findall(path.read_text(encoding="utf-8"))]
    return [text.replace("\\\n", " ") for text in found]


@cache
def command_lines(path):
    """Every command line of a document as (the words of the verb, its options)."""
    return lines_of(code(path))


def lines_of(texts):
    """Every command line of some texts as (the words of the verb, its options)."""
    lines = []
    for text in texts:
        for line in re.findall(r"(?:^|[\s$;])thresher (?!as )([a-z][a-z-]*.*)", text):
            words = re.split(r"  +|#|\|", line)[0].split()
            verb = words[:1] if not hasattr(verbs().get(words[0]), "commands") else words[:2]
            verb = [word for word in verb if not word.startswith("-")]
            lines.append((tuple(verb), re.findall(r"(?<!\S)--[a-z][a-z-]*", " ".join(words))))
    return lines


def verbs():
    return COMMAND.commands


def verb_options(verb):
    """The options of a verb, or None if there is no such verb."""
    found = reduce(lambda group, word: getattr(group, "commands", {}).get(word), verb, COMMAND)
    if found is None:
        return None
    return {
        "--help",
        *(name for each in found.params for name in (*each.opts, *each.secondary_opts)),
    }


def all_options(group=COMMAND):
    own = {name for each in group.params for name in (*each.opts, *each.secondary_opts)}
    return own.union(*(all_options(each) for each in getattr(group, "commands", {}).values()))


def unknown_in_command_lines(lines):
    """Verbs and options of command lines that the command does not have."""
    wrong = []
    for verb, options in lines:
        known = verb_options(verb)
        if known is None:
            wrong.append("thresher " + " ".join(verb))
        else:
            wrong += [f"thresher {' '.join(verb)} {name}" for name in options if name not in known]
    return wrong


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_options_exist(path):
    assert not unknown_in_command_lines(command_lines(path))
    alone = {word for text in code(path) for word in re.findall(r"^--[a-z][a-z-]*", text)}
    assert alone <= all_options() | OTHERS


def examples(group=COMMAND):
    """The examples in the help of all verbs, each on one line."""
    own = re.findall(r"Example: (.*?)(?=\n *\n|\Z)", group.help or "", re.DOTALL)
    deeper = (examples(each) for each in getattr(group, "commands", {}).values())
    return [" ".join(each.split()) for each in own] + [line for lines in deeper for line in lines]


def test_examples_in_the_help_exist():
    assert len(examples()) > 60
    assert not unknown_in_command_lines(lines_of(examples()))


def test_commands_in_the_gallery_exist():
    shown = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/examples").glob("*.py")]
    spans = [span for text in shown for span in re.findall(r"``([^`\n]+)``", text)]
    lines = lines_of(spans)
    assert lines
    assert not unknown_in_command_lines(lines)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_links_exist(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(
        r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    ):
        if "://" not in target:
            assert (path.parent / target).exists(), target
    for name in re.findall(r"(?<![\w/.])((?:\w+/)+\w+\.(?:py|md|svg|lock|toml))\b", text):
        assert ends_a_path(name), name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_extras_targets_and_names_exist(path):
    text = path.read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extras in re.findall(r"(?:thresher|\.)\[([a-z, ]+)\]", text):
        assert set(extras.replace(" ", "").split(",")) <= set(project["optional-dependencies"])
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for each in code(path):
        assert set(re.findall(r"^ *make ([a-z]+)\b", each, re.MULTILINE)) <= targets
        for name in re.findall(r"\bth\.([A-Za-z_]\w*)", each):
            assert name in REACHED, f"th.{name}"
        for name in re.findall(r"\bthresher((?:\.[a-z_]\w*)+)\(", each):
            assert resolves(name.strip(".").split(".")), f"thresher{name}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_and_their_options_exist(path):
    assert not unknown_in_scripts(path)


def unknown_in_scripts(path):
    """Scripts of ours that a document names and that do not exist, and options they do not have."""
    wrong = []
    for text in code(path):
        for name, rest in re.findall(r"(?<![\w/])((?:\w+/)?\w+\.py)\b([^\n]*)", text):
            if not ends_a_path(name):
                wrong.append(name)
            elif (script := ROOT / name).exists():
                options = re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)
                source = script.read_text(encoding="utf-8")
                wrong += [f"{name} {each}" for each in options if f'"{each}"' not in source]
    return wrong


def test_every_figure_is_shown():
    text = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    figures = {path.name for path in (ROOT / "docs" / "_static").glob("*.svg")}
    assert figures
    assert {name for name in figures if f"_static/{name}" not in text} == set()


@cache
def files():
    return [
        "/" + str(path.relative_to(ROOT))
        for folder in ("src", "tests", "docs", "benchmarks", "packaging")
        for path in (ROOT / folder).rglob("*")
    ]


def ends_a_path(name):
    """Whether a file of the project is called that, or lies so in some folder of it."""
    return any(each.endswith("/" + name) for each in files()) or (ROOT / name).exists()


def resolves(names):
    """Whether a dotted name below `thresher` can be reached by imports and attributes."""
    try:
        reached(names)
    except ImportError:
        return False
    return True


def reached(names):
    """What a dotted name below `thresher` names."""
    found = th
    for depth, name in enumerate(names, 1):
        if not hasattr(found, name):
            importlib.import_module(".".join(("thresher", *names[:depth])))
        found = getattr(found, name)
    return found


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


def test_what_does_not_exist_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "    $ thresher value a.csv --labels y\n\n`thresher valeu`, `thresher ledger shew`\n"
    )
    wrong = ["thresher value --labels", "thresher valeu", "thresher ledger shew"]
    assert unknown_in_command_lines(command_lines(page)) == wrong
    assert not ends_a_path("docs/nothing.md")
    assert not resolves(["paper", "nothing"])
    page.write_text(
        "`benchmarks/owners.py --parts speed`\n\n    python docs/figures.py --all\n\n`no.py`"
    )
    code.cache_clear()
    assert unknown_in_scripts(page) == ["docs/figures.py --all", "no.py"]


NOTE = re.compile(r"  # (?:noqa|type: ignore).*")  # to a linter


def long_lines(path):
    """Lines of more than 100 characters; tables, links, code and notes to linters cannot be cut."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(
            r"^ *```.*?^ *```", lambda cut: "\n" * cut[0].count("\n"), text, flags=re.M | re.S
        )
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if len(NOTE.sub("", line)) > 100
        and not (
            path.suffix == ".md" and re.search(r"^ *\||^ {4}|^(>>>|\.\.\.) |\]\(|https?://", line)
        )
    ]


WRITTEN = [path for path in DOCUMENTS[1:] if path.parent.name != "reproduction"]  # not generated


@pytest.mark.parametrize("path", [*WRITTEN, ROOT / "src"], ids=lambda path: path.name)
def test_lines_are_short_enough_to_read(path):
    files = path.rglob("*.py") if path.is_dir() else [path]
    assert {file.name: found for file in files if (found := long_lines(file))} == {}


def test_long_lines_are_found(tmp_path):
    page, words = tmp_path / "page.md", "word " * 25
    page.write_text(
        f"{words}\n| {words} |\n```\n{words}\n```\n    {words}\n[{words}](x)\n{words}\n"
    )
    assert long_lines(page) == [1, 8]


def test_generated_pages_have_the_texts_of_the_code():
    """The tables took hours; what is said about them must not be left behind by the code."""
    paper = pytest.importorskip("thresher.paper")
    pages = importlib.import_module("thresher.paper.pages")
    for name, experiment in paper.EXPERIMENTS.items():
        text = (ROOT / "docs/reproduction" / f"{name}.md").read_text(encoding="utf-8")
        start = f"# {experiment.title}\n\nIn the paper: {experiment.place}.\n\n{experiment.about}\n"
        assert text.startswith(start), name
        assert pages.LEGEND in text, name
