"""Whatever a document names is there: commands, options, extras, files, make targets, names."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import textwrap
import tomllib
from collections import defaultdict
from functools import cache, reduce
from pathlib import Path
from typing import get_type_hints

import pytest
import typer.main
from test_project import entries

import thresher as th
from thresher.cli import HELP, app

ROOT = Path(__file__).parent.parent
MADE = {"_build", "api", "gallery", "results"}  # by `make docs`
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "benchmarks" / "README.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(path.parts)),
]
GALLERY = sorted((ROOT / "docs" / "examples").glob("*.py"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
SCRIPTS = [
    *(path for name in ("benchmarks", "packaging") for path in (ROOT / name).glob("*.py")),
    ROOT / "docs" / "figures.py",
]
COMMAND = typer.main.get_command(app)
CODE = re.compile(  # blocks in fences, indented blocks, spans
    r"```.*?\n(.*?)```|((?:^ {4}[^\n]*\n)+)|(?<!`)`((?:[^`\n]|\n(?! *\n))+)`(?!`)",
    re.MULTILINE | re.DOTALL,
)
LINE = re.compile(
    r"(?:^|[\s$;*])thresher (?!as |import )([a-z](?:(?! \| |  | #|[;*]).)*)", re.MULTILINE
)
OPTION = re.compile(r"--?[A-Za-z][\w-]*")
REACHED = {*th.__all__, "__version__", "federate"}  # by `th.` alone, whatever was imported before
EXPERIMENTS = {"all", *(path.stem for path in (ROOT / "docs" / "reproduction").glob("*.md"))}
OTHERS = {"--force-reinstall", "--help", "--strict"}  # options of other programs
EXITS = re.findall(r"\d+", HELP.split("Exit codes:")[1])
named = pytest.mark.parametrize(
    "path", [*DOCUMENTS, *GALLERY], ids=lambda path: str(path.relative_to(ROOT))
)


@cache
def prose(path):
    """What a file says to its readers: a page all of it, a program its docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    said = re.findall(r'"""(.*?)"""|((?:^# .*\n)+)', text, re.MULTILINE | re.DOTALL)
    said = [
        inspect.cleandoc(words) or re.sub("^# ", "", notes, flags=re.M) for words, notes in said
    ]
    return "\n\n".join(said).replace("``", "`")


@cache
def code(path):
    """What a document sets in code: (blocks, spans), continued lines joined."""
    found = [(re.sub(r"\\\n\s*", " ", a + b), c) for a, b, c in CODE.findall(prose(path))]
    return [block for block, _ in found if block], [" ".join(c.split()) for _, c in found if c]


def all_code(path):
    return [text for texts in code(path) for text in texts]


def lines_of(texts):
    """Every command line of some texts as (the words of the verb, the other words)."""
    for text in texts:
        for line in LINE.findall(text):
            words = [word.strip("[](),.:'\"") for word in line.split()]
            length = 2 if hasattr(COMMAND.commands.get(words[0]), "commands") else 1
            verb = [word for word in words[:length] if not word.startswith("-")]
            for last in verb[-1].split("|"):  # one of several verbs
                yield (*verb[:-1], last), words[len(verb) :]


def options_of(command):
    """The options of a command, and the words that each takes; none if it takes any."""
    hints = get_type_hints(command.callback) if command.callback else {}
    return {"--help": set()} | {
        name: set(re.findall(r"'([\w-]+)'(?=[],])", str(hints.get(each.name))))
        for each in command.params
        for name in (*each.opts, *each.secondary_opts)
    }


def commands(group=COMMAND):
    """Every command, with the verbs of groups."""
    below = (commands(each) for each in getattr(group, "commands", {}).values())
    return [group, *(each for found in below for each in found)]


def every_option():
    """The options of all commands and scripts, and the words that each takes."""
    found = {name: set() for name in OTHERS}
    for script in SCRIPTS:
        names = re.findall(r'"(--[a-z-]+)"', script.read_text(encoding="utf-8"))
        found |= {name: set() for name in names}
    for command in commands():
        for name, words in options_of(command).items():
            known = found.get(name, words)
            found[name] = known | words if known and words else set()
    return found


def unknown_words(words, options):
    """Options that are not there, and words that an option does not take."""
    wrong = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, equals, given = word.partition("=")
        if OPTION.fullmatch(name):
            value, choices = given if equals else following, options.get(name)
            if choices is None:
                wrong.append(name)
            elif choices and re.match("[a-z]", value) and not choices.issuperset(value.split("|")):
                wrong.append(f"{name} {value}")
    return wrong


def unknown_in_command_lines(texts):
    """Verbs and options of command lines that the command does not have."""
    wrong = []
    for verb, words in lines_of(texts):
        if verb == ("reproduce",):
            named = words[: next((i for i, word in enumerate(words) if word[:1] == "-"), None)]
            wrong += [each for each in named if re.match("[a-z]", each) and each not in EXPERIMENTS]
        found = reduce(lambda group, word: getattr(group, "commands", {}).get(word), verb, COMMAND)
        if found is None:
            wrong.append("thresher " + " ".join(verb))
        else:
            wrong += [f"thresher {' '.join(verb)} {each}"
                      for each in unknown_words(words, options_of(found))]  # fmt: skip
    return wrong


def unknown_in_prose(text):
    """Verbs, options and exit codes that a text names anywhere, also outside of code."""
    verbs = re.findall(r"(?<![\w./-])thresher\s+(?!as |import )([a-z][a-z-]*)", text)
    options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)
    codes = re.findall(r"\bexit(?:s|ed)?(?: with)?(?: code| status)?\s(\d+)", text)
    return [
        *(f"thresher {verb}" for verb in verbs if verb not in COMMAND.commands),
        *(name for name in options if name not in every_option()),
        *(f"exit code {each}" for each in codes if each not in EXITS),
    ]


@named
def test_commands_and_options_exist(path):
    assert not unknown_in_command_lines(all_code(path))
    assert not unknown_in_prose(prose(path))
    for span in code(path)[1]:
        if span.startswith("-"):
            assert not unknown_words(span.split(), every_option())


def test_commands_in_the_sources_exist():
    for path in SOURCES:
        said = prose(path)
        assert not unknown_in_command_lines(all_code(path)), path
        verbs = [each for each in unknown_in_prose(said) if each.startswith("thresher")]
        assert not verbs, path


def helps():
    """What the help of all commands shows as a command line, each on one line."""
    for command in commands():
        text = re.sub(r"\s+", " ", (command.help or "").replace("\n\n", " # "))
        yield from re.findall(r"(?:Example: |\*\*)(thresher .*?)(?: #|\*\*|$)", text)


def test_examples_in_the_help_exist():
    assert len(list(helps())) > 60
    assert not unknown_in_command_lines(helps())
    for command in commands():
        for each in (command, *command.params):
            assert not unknown_in_prose(getattr(each, "help", None) or ""), command.name


LINK = re.compile(r"\]\((?!\w+://)([^)#\s]*)#?([^)\s]*)[^)]*\)")
FILE = re.compile(
    r"(?<![\w/.<-])((?:[\w-]+/)+[\w-]+\.(?:py|md|svg|lock|toml)\b"
    r"|(?:benchmarks|docs|packaging|src|tests)/[\w./-]*\w"
    r"|\w+\.(?:md|cff|lock|toml)\b)"
)


@named
def test_files_and_links_exist(path):
    text = prose(path)
    for target, anchor in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        page = path.parent / target if target else path
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), f"{target}#{anchor}"
    for name in FILE.findall(text):
        made = MADE & set(name.split("/")) or name.startswith("NAME")
        assert made or ends_a_path(name), name


def anchors(page):
    """What links to a page can end with: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}


@named
def test_extras_and_targets_exist(path):
    for extras in re.findall(r"(?:thresher|\.)\[([\w, -]+)\]|\bextra `(\w+)`", prose(path)):
        assert set("".join(extras).replace(" ", "").split(",")) <= extras_of_project()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for each in all_code(path):
        for words in re.findall(r"(?:^|[$;&]) *make((?: [\w-]+)+)", each, re.MULTILINE):
            assert set(words.split()) <= targets


def extras_of_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return set(project["optional-dependencies"])


def test_every_extra_is_where_installing_is_explained():
    install = (ROOT / "docs" / "index.md").read_text().split("## Install\n")[1].split("\n## ")[0]
    assert {
        name for name in extras_of_project() if not re.search(rf"['`\[]{name}['`\]]", install)
    } == set()


@named
def test_names_exist(path):
    text = prose(path)
    for name in re.findall(r"(?<![\w/-])th\.([A-Za-z_]\w*)", text):
        assert name in REACHED, f"th.{name}"
    for name in re.findall(r"(?<![\w/.-])(?:th|thresher)\.([A-Za-z][\w.]*\w)", text):
        assert resolves(name.split(".")), f"thresher.{name}"
    for name in re.findall(r"(?<![\w/.])[A-Z]\w+\.[a-z]\w+\b(?!\.)", " ".join(all_code(path))):
        names = name.split(".")
        assert names[0] not in th.__all__ or resolves(names), name
    assert not unknown_names(path)


NAME = re.compile(
    r"\b[A-Za-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w+|(?<=\.)[a-z]\w+|[A-Za-z]\w+(?=\(|=)"
    r'|^[A-Za-z_]\w+$|(?<==")\w+(?=")'
)
ELSEWHERE = {"SecAggPlusWorkflow", "p017", "pid", "userid", "w_o"}  # and examples


def unknown_names(path):
    """Names that a document writes in code, and that no program here and none of its blocks has."""
    blocks, spans = code(path)
    known = words_of_programs() | set(re.findall(r"\w+", "".join(blocks))) | ELSEWHERE
    return {name for span in spans for name in NAME.findall(span) if name not in known}


@cache
def words_of_programs():
    """Every word of the sources, the benchmarks and the tests, and the names of these files."""
    folders = ("src", "benchmarks", "packaging", "docs", "tests")
    paths = {path for name in folders for path in (ROOT / name).rglob("*.py")} - {Path(__file__)}
    texts = [path.stem + " " + path.read_text(encoding="utf-8") for path in sorted(paths)]
    return set(re.findall(r"\w+", " ".join(texts)))


@cache
def parameters():
    """The parameters of what the reference lists, and of its members: by `name`, `Class.name`."""
    found = defaultdict(set)
    for module, listed in entries().items():
        for name in listed:
            inner, _, label = f"{module}.{name}".rpartition(".")
            thing = getattr(importlib.import_module(inner), label)
            things = {label: thing}
            if inspect.isclass(thing):
                public = (each for each in dir(thing) if not each.startswith("_"))
                things |= {f"{label}.{each}": getattr(thing, each) for each in public}
            for full, each in things.items():
                with contextlib.suppress(TypeError, ValueError):  # no function, or not ours
                    own = set(inspect.signature(each).parameters)
                    found[full] |= own
                    found[full.split(".")[-1]] |= own
    return found


def unknown_keywords(path):
    """Arguments by name, in code that nobody runs, that a public function does not have."""
    wrong = []
    for text in all_code(path):
        filled = re.sub(r", \.\.\.(?=[,)])", "", re.sub(r"=(?=[,)])", "=0", textwrap.dedent(text)))
        try:
            calls = [node for node in ast.walk(ast.parse(filled)) if isinstance(node, ast.Call)]
        except SyntaxError:  # a command, a formula, a session, which runs
            continue
        for call in calls:
            names = ast.unparse(call.func).split(".")
            known = parameters().get(".".join(names[-2:])) or parameters().get(names[-1])
            given = {word.arg for word in call.keywords}
            if known and names[0] != "np":
                wrong += [f"{names[-1]}({each}=)" for each in given - known]
    return wrong


@named
def test_arguments_exist(path):
    assert not unknown_keywords(path)


@named
def test_scripts_and_their_options_exist(path):
    assert not unknown_in_scripts(path)


def unknown_in_scripts(path):
    """Scripts of ours that a document names and that do not exist, and words they do not know."""
    wrong = []
    for text in all_code(path):
        for name, rest in re.findall(r"(?<![\w/])((?:\w+/)?\w+\.py)\b((?:(?!  | #)[^\n])*)", text):
            if not ends_a_path(name):
                wrong.append(name)
            for script in SCRIPTS:
                if f"/{script.relative_to(ROOT)}".endswith(f"/{name}"):
                    source = script.read_text(encoding="utf-8")
                    words = re.findall(r"(?<![^\s,])(?:--)?[a-z][a-z-]*", rest)
                    wrong += [f"{name} {each}" for each in words
                              if not re.search(rf"(?<![\w-]){each}(?![\w-])", source)]  # fmt: skip
    return wrong


def test_variables_of_the_environment_exist():
    for path in [*DOCUMENTS, *GALLERY, *SOURCES]:
        assert set(re.findall(r"THRESHER_[A-Z_]+", prose(path))) <= words_of_programs(), path


def test_theorems_exist():
    proved = re.findall(r"\*\*(T\d+) \(", (ROOT / "docs" / "privacy.md").read_text())
    for path in [*DOCUMENTS, *SOURCES]:
        assert set(re.findall(r"\bT\d+\b", prose(path))) <= set(proved), path


RUN = {ROOT / "docs" / "command.md", *(ROOT / "docs" / "tutorials").glob("*.md")}


@named
def test_what_is_shown_was_run(path):
    """Pytest runs each `>>> `; for tutorials and consoles there are tests, which look for blocks."""
    blocks = re.compile(r"^```(?:python|console)\n.*?^```$", re.MULTILINE | re.DOTALL)
    text = blocks.sub("", prose(path)) if path in RUN else prose(path).replace(">>>", "")
    assert not re.findall(r"^ *(?:\$|>>>) .*", text, re.MULTILINE)


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
    found = th
    for depth, name in enumerate(names, 1):
        if name in getattr(found, "__dataclass_fields__", ()):
            return True
        if not hasattr(found, name):
            try:
                importlib.import_module(".".join(("thresher", *names[:depth])))
            except ImportError:
                return False
        found = getattr(found, name)
    return True


WRONG = [
    "Use `thresher valve` now.",
    "Use thresher valve now.",
    "Use `thresher ledger\nshew a.db` now.",
    "    thresher value a.csv \\\n        --labels z",
    "    thresher value a.csv | thresher clean - --labels z",
    "`thresher value a.csv --newcomer`",
    "`thresher value a.csv [--label y] -z b.csv`",
    "`thresher value a.csv --method threshold`",
    "`thresher federate key|tusk`",
    "`thresher reproduce nosiy`",
    "Pass --labels now.",
    "`--label y --labels z`",
    "`--engine dusk`",
    "It ends with exit code 7.",
    "`pip install '.[Report2]'`",
    "It needs the extra `reprot`.",
    "`make tset`",
    "```console\n$ make test-all\n```",
    "See docs/tutorials/wrong-lables.md for it.",
    "See `CITATOIN.cff` for it.",
    "It lies in `benchmarks/resluts`.",
    "See [nothing](nothing.md).",
    "# Here\n\nSee [nothing](#there).",
    "See thresher.paper.nothing for it.",
    "Call th.foo_shapley now.",
    "Call `foo_shapley(X)`.",
    "Call `Ledger.creat` first.",
    "Call `Ledger.by_owner` first.",
    "`th.tknn_shapley(X, y, depth=1)`",
    "`tknn_shapley(depth=)`",
    "    values = th.tknn_shapley(\n        X, y, depth=1)",
    "Pass `semivlue=` to it.",
    '`semivalue="banzahf"`',
    "`benchmarks/owners.py --part speed`",
    "`python benchmarks/owners.py --parts sped`",
    "    python docs/figures.py \\\n        --all",
    "`no.py`",
    "    $ thresher value a.csv",
]


@pytest.mark.parametrize("text", WRONG)
def test_what_does_not_exist_is_found(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{text}\n")
    with pytest.raises(AssertionError):
        check_all(page)


def check_all(page):
    test_commands_and_options_exist(page)
    test_files_and_links_exist(page)
    test_extras_and_targets_exist(page)
    test_names_exist(page)
    test_arguments_exist(page)
    test_scripts_and_their_options_exist(page)
    test_what_is_shown_was_run(page)


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
