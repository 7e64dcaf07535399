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
SOURCES = sorted((ROOT / "src").rglob("*.py"))  # whose docstrings and comments are read
SCRIPTS = [
    *(path for name in ("benchmarks", "packaging") for path in (ROOT / name).glob("*.py")),
    ROOT / "docs" / "figures.py",
]
RUN = {  # block by block
    ROOT / "README.md", ROOT / "docs" / "command.md", *(ROOT / "docs" / "tutorials").glob("*.md"),
}  # fmt: skip
COMMAND = typer.main.get_command(app)
MEANINGS = " ".join(HELP.split("Exit codes:")[1].split())
EXITS = re.findall(r"\d+", MEANINGS)
EXPERIMENTS = {"all", *(path.stem for path in (ROOT / "docs" / "reproduction").glob("*.md"))}
REACHED = {*th.__all__, "__version__", "federate"}  # by `th.` alone, whatever was imported before
OTHERS = {"--force-reinstall", "--help", "--strict"}  # options of other programs
ELSEWHERE = {  # names, symbols and examples
    "H_", "Phi", "RssAnon", "SecAggPlusWorkflow", "p017", "pid", "tol", "userid", "w_o",
}  # fmt: skip

CODE = re.compile(  # blocks in fences, indented blocks, spans
    r"```.*?\n(.*?)```|((?:^ {4}[^\n]*\n)+)|(?<!`)`((?:[^`\n]|\n(?! *\n))+)`(?!`)",
    re.MULTILINE | re.DOTALL,
)
LINE = re.compile(
    r"(?:^|[\s$;*])thresher (?!as |import )([a-z](?:(?! \| |  | #|[;*]).)*)", re.MULTILINE
)
OPTION = re.compile(r"--?[A-Za-z][\w-]*")
LINK = re.compile(r"\]\((?!\w+://)([^)#\s]*)#?([^)\s]*)[^)]*\)")
FILE = re.compile(
    r"(?<![\w/.<-])((?:[\w-]+/)+[\w-]+\.(?:py|md|svg|lock|toml|json)\b"
    r"|(?:benchmarks|docs|packaging|src|tests)/[\w./-]*\w"
    r"|\w+\.(?:md|cff|lock|toml)\b)"
)
NAME = re.compile(
    r"\b[A-Za-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w+|(?<=\.)[A-Za-z]\w+|[A-Za-z]\w+(?=\(|=)"
    r'|^[A-Za-z_]\w+$|(?<==")\w+(?=")'
)


@cache
def prose(path):
    """What a file says to its readers: a page all of it, a program its docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    described = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, described)]
    notes = re.findall(r"(?:^# .*\n)+", text, re.MULTILINE)
    said = [*(ast.get_docstring(node) or "" for node in nodes), *notes]
    return "\n\n".join(re.sub("^# ", "", each, flags=re.MULTILINE) for each in said).replace(
        "``", "`"
    )


@cache
def code(path):
    """What a file sets in code: (blocks, spans), continued lines joined; a program to read is one."""
    found = CODE.findall(prose(path))
    blocks = [re.sub(r"\\\n\s*", " ", fenced + indented) for fenced, indented, _ in found]
    if path in GALLERY:
        _, *program = ast.parse(path.read_text(encoding="utf-8")).body
        blocks += [ast.unparse(program)]
    return [block for block in blocks if block], [" ".join(s.split()) for *_, s in found if s]


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


def commands(group=COMMAND):
    """Every command, with the verbs of groups."""
    below = (commands(each) for each in getattr(group, "commands", {}).values())
    return [group, *(each for found in below for each in found)]


def options_of(command):
    """The options of a command, and the words that each takes; none if it takes any."""
    hints = get_type_hints(command.callback) if command.callback else {}
    return {"--help": set()} | {
        name: set(re.findall(r"'([\w-]+)'(?=[],])", str(hints.get(each.name))))
        for each in command.params
        for name in (*each.opts, *each.secondary_opts)
    }


@cache
def every_option():
    """The options of all commands and scripts, and the words that some command takes."""
    found = {name: set() for name in OTHERS}
    for script in SCRIPTS:
        names = re.findall(r'"(--[a-z-]+)"', script.read_text(encoding="utf-8"))
        found |= {name: set() for name in names}
    for command in commands():
        for name, words in options_of(command).items():
            found[name] = found.get(name, set()) | words
    return found


def wrong_words(words, options):
    """Options that are not there, and words that an option does not take."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, equals, given = word.partition("=")
        if OPTION.fullmatch(name):
            value, choices = given if equals else following, options.get(name)
            if choices is None:
                yield name
            elif choices and re.match("[a-z]", value) and not choices.issuperset(value.split("|")):
                yield f"{name} {value}"


def wrong_command_lines(texts):
    """Verbs, options and words of command lines that the command does not have."""
    for verb, words in lines_of(texts):
        found = reduce(lambda group, word: getattr(group, "commands", {}).get(word), verb, COMMAND)
        if found is None:
            yield " ".join(verb)
        else:
            yield from (
                f"{' '.join(verb)} {each}" for each in wrong_words(words, options_of(found))
            )
        if verb == ("reproduce",):
            wanted = re.match(r"(?:[a-z][a-z-]* ?)*", " ".join(words))[0].split()
            yield from set(wanted) - EXPERIMENTS


def wrong_in_prose(text):
    """Verbs, options and exit codes that a text names anywhere, also outside of code."""
    verbs = re.findall(r"(?<![\w./-])thresher\s+(?!as |import )([a-z][a-z-]*)", text)
    options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)
    exits = re.findall(r"\bexit(?:s|ed)?(?: with)?(?: code| status)?\s(\d+)", text)
    yield from set(verbs) - set(COMMAND.commands)
    yield from set(options) - set(every_option())
    yield from set(exits) - set(EXITS)
    listed = re.findall(r"(?i)exit codes: ([^.]*)", " ".join(text.split()))
    yield from (each for each in listed if each not in MEANINGS)


def wrong_commands(path):
    yield from wrong_command_lines(all_code(path))
    yield from wrong_in_prose(prose(path))
    for span in code(path)[1]:
        if span.startswith("-"):
            yield from wrong_words(span.split(), every_option())


def wrong_links(path):
    """Links to pages and headings that are not there."""
    for target, anchor in LINK.findall(re.sub(r"```.*?```", "", prose(path), flags=re.DOTALL)):
        page = path.parent / target if target else path
        if not page.exists() or (anchor and anchor not in anchors(page)):
            yield f"{target}#{anchor}"


def wrong_entries(path):
    """Pages in tables of contents and on cards that are not there; some are made with the site."""
    contents = "".join(re.findall(r"^```\{toctree\}\n(.*?)^```", prose(path), re.M | re.S))
    entries = re.findall(r"^(?::link: )?([\w/-]+)$", contents, re.M)
    entries += re.findall(r"^:link: (.*)", prose(path), re.M)
    for entry in entries:
        if entry.split("/")[0] not in MADE and not (path.parent / f"{entry}.md").exists():
            yield entry


def wrong_versions(path):
    """Versions of ours that the changelog does not have, and another oldest Python."""
    ours = re.findall(r"^## \[(.*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    yield from set(re.findall(r"\bversion (\d+\.\d+\.\d+)\b", prose(path))) - {"0.1.0", *ours}
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    yield from set(re.findall(r"\bPython (\d\.\d+) or later", prose(path))) - {oldest.strip(">=")}


def anchors(page):
    """What links to a page can end with: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}


def wrong_files(path):
    made = ("NAME", *(f"docs/{folder}" for folder in MADE))
    names = [name for name in FILE.findall(prose(path)) if not name.startswith(made)]
    return [name for name in names if not ends_a_path(name)]


def ends_a_path(name):
    """Whether a file of the project is called that, or lies so in some folder of it."""
    return any(each.endswith("/" + name) for each in files()) or (ROOT / name).exists()


@cache
def files():
    return [
        "/" + str(path.relative_to(ROOT))
        for folder in ("src", "tests", "docs", "benchmarks", "packaging")
        for path in (ROOT / folder).rglob("*")
    ]


@cache
def extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return set(project["optional-dependencies"])


def wrong_extras_and_targets(path):
    for several, one in re.findall(r"(?:thresher|\.)\[([\w, -]+)\]|\bextra `(\w+)`", prose(path)):
        yield from set(re.split(r", *", several + one)) - extras()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for text in all_code(path):
        for words in re.findall(r"(?:^|[$;&]) *make((?: [\w-]+)+)", text, re.MULTILINE):
            yield from set(words.split()) - targets


def wrong_names(path):
    """Names of ours that cannot be reached, and names in code that no program here has."""
    blocks, spans = code(path)
    text = "\n".join([prose(path), *blocks])
    yield from set(re.findall(r"(?<![\w/-])th\.([A-Za-z_]\w*)", text)) - REACHED
    dotted = re.findall(r"(?<![\w/.-])(?:th|thresher)\.([A-Za-z][\w.]*\w)(?![\w/])", text)
    members = re.findall(r"(?<![\w/.])([A-Z]\w+)\.([a-z]\w+)\b(?!\.)", " ".join(blocks + spans))
    dotted += [f"{name}.{member}" for name, member in members if name in th.__all__]
    yield from (name for name in dotted if not resolves(name.split(".")))
    known = words_of_programs() | set(re.findall(r"\w+", "".join(blocks))) | ELSEWHERE
    yield from {name for span in spans for name in NAME.findall(span)} - known


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
        if name in getattr(found, "__dataclass_fields__", ()):
            return found
        if not hasattr(found, name):
            importlib.import_module(".".join(("thresher", *names[:depth])))
        found = getattr(found, name)
    return found


@cache
def words_of_programs():
    """Every name in our programs, texts without spaces, words with an underscore, and names of files."""
    folders = ("src", "benchmarks", "packaging", "docs", "tests")
    paths = {path for name in folders for path in (ROOT / name).rglob("*.py")} - {Path(__file__)}
    found = set()
    for path in paths:
        text = path.read_text(encoding="utf-8")
        found |= {path.stem, *re.findall(r"\b[A-Za-z]*_\w+|\b[A-Z]+\b", text)}
        for node in ast.walk(ast.parse(text)):
            for field in ("id", "attr", "arg", "name", "module", "value"):
                word = getattr(node, field, None)
                if isinstance(word, str) and " " not in word:
                    found |= set(re.findall(r"\w+", word))
    return found


@cache
def parameters():
    """The parameters of what the reference lists, and of its members: by `name`, `Class.name`."""
    found = defaultdict(set)
    for module, listed in entries().items():
        for name in listed:
            inner, _, label = f"{module}.{name}".rpartition(".")
            things = {label: getattr(importlib.import_module(inner), label)}
            if inspect.isclass(things[label]):
                things |= {f"{label}.{m}": each for m, each in inspect.getmembers(things[label])}
            for full, each in things.items():
                with contextlib.suppress(TypeError, ValueError):  # no function, or not ours
                    own = set(inspect.signature(each).parameters)
                    found[full] |= own
                    found[full.split(".")[-1]] |= own
    return found


def wrong_arguments(path):
    """Arguments by name, in code that nobody runs, that a public function does not have."""
    anywhere = set().union(ELSEWHERE, *parameters().values())
    for text in all_code(path):
        yield from set(re.findall(r"^([a-z]\w*)=\S*$", text)) - anywhere
        filled = re.sub(r", \.\.\.(?=[,)])", "", re.sub(r"=(?=[,)])", "=0", textwrap.dedent(text)))
        try:
            calls = [node for node in ast.walk(ast.parse(filled)) if isinstance(node, ast.Call)]
        except SyntaxError:  # a command, a formula, a session, which runs
            continue
        for call in calls:
            names = ast.unparse(call.func).split(".")
            known = parameters().get(".".join(names[-2:])) or parameters().get(names[-1])
            if known and names[0] != "np":
                yield from {word.arg for word in call.keywords} - known - {None}


def wrong_scripts(path):
    """Scripts of ours that do not exist, and options and words that they do not have."""
    for text in all_code(path):
        for name, rest in re.findall(r"(?<![\w/])((?:\w+/)?\w+\.py)\b((?:(?!  | #)[^\n])*)", text):
            if not ends_a_path(name):
                yield name
            for script in SCRIPTS:
                if f"/{script.relative_to(ROOT)}".endswith(f"/{name}"):
                    known = re.findall(r"(?:--)?[a-z][\w-]*", script.read_text(encoding="utf-8"))
                    yield from set(re.findall(r"(?<![^\s,])(?:--)?[a-z][\w-]*", rest)) - set(known)


def wrong_variables_and_theorems(path):
    yield from set(re.findall(r"\bTHRESHER_[A-Z_]+", prose(path))) - words_of_programs()
    proved = re.findall(r"\*\*(T\d+) \(", (ROOT / "docs" / "privacy-proofs.md").read_text())
    yield from set(re.findall(r"\bT\d+\b", prose(path))) - set(proved)


def never_run(path):
    """Sessions that no test runs: pytest takes each `>>>`, two tests take blocks of some pages."""
    blocks = re.compile(r"^```(?:python|console)\n.*?^```$", re.MULTILINE | re.DOTALL)
    text = blocks.sub("", prose(path)) if path in RUN else prose(path).replace(">>>", "")
    return re.findall(r"^ *(?:\$|>>>) .*", text, re.MULTILINE)


CHECKS = [
    wrong_commands, wrong_links, wrong_files, wrong_extras_and_targets, wrong_names,
    wrong_arguments, wrong_scripts, wrong_variables_and_theorems, wrong_entries, wrong_versions,
    never_run,
]  # fmt: skip


def all_wrong(path):
    return {check.__name__: found for check in CHECKS if (found := list(check(path)))}


@pytest.mark.parametrize(
    "path", [*DOCUMENTS, *GALLERY, *SOURCES], ids=lambda path: str(path.relative_to(ROOT))
)
def test_what_a_document_names_exists(path):
    assert all_wrong(path) == {}


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
    "`--method threshold`",
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
    "Pass `depth=3` to it.",
    '`semivalue="banzahf"`',
    "`benchmarks/owners.py --part speed`",
    "`python benchmarks/owners.py --parts sped`",
    "    python docs/figures.py \\\n        --all",
    "`no.py`",
    "    $ thresher value a.csv",
    "Set THRESHER_THRAEDS.",
    "It is proved (T99).",
    "See `benchmarks/results/latset.json`.",
    "Exit codes: 0 done, 2 refused.",
    "```{toctree}\nguids\n```",
    ":link: tutorials/wrong-label",
    "You need Python 3.9 or later.",
    "Since version 0.9.9 it does.",
    "`metrics.Scorer` bounds it.",
    "Call `valuation.saves()` now.",
]


@pytest.mark.parametrize("text", WRONG)
def test_what_does_not_exist_is_found(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{text}\n")
    assert all_wrong(page) != {}


def shown_by_help():
    """Every command line that the help of some command shows."""
    for command in commands():
        text = re.sub(r"\s+", " ", (command.help or "").replace("\n\n", " # "))
        yield from re.findall(r"(?:Example: |\*\*)(thresher .*?)(?: #|\*\*|$)", text)


def test_what_the_help_names_exists():
    assert len(list(shown_by_help())) > 60
    assert not list(wrong_command_lines(shown_by_help()))
    for command in commands():
        for each in (command, *command.params):
            assert not list(wrong_in_prose(getattr(each, "help", None) or "")), command.name


def test_what_messages_name_exists():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                wrong = [*wrong_command_lines([node.value]), *wrong_in_prose(node.value)]
                assert not wrong, f"{path.name}:{node.lineno}"


def test_every_extra_is_where_installing_is_explained():
    install = (ROOT / "docs" / "index.md").read_text().split("## Install\n")[1].split("\n## ")[0]
    assert {name for name in extras() if not re.search(rf"['`\[]{name}['`\]]", install)} == set()


def test_labels_of_the_market_are_on_its_pages():
    """The guide sets them in italics."""
    guide = (ROOT / "docs" / "market.md").read_text()
    market = ROOT / "src" / "thresher" / "market"
    sources = [*market.glob("pages/*.jinja"), *market.glob("web*.py")]
    shown = " ".join(" ".join(path.read_text() for path in sources).split())
    labels = re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", guide)
    assert len(labels) > 20
    assert [each for each in labels if " ".join(each.split()) not in shown] == []


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


WRITTEN = [path for path in DOCUMENTS if path.parent.name != "reproduction"]  # not generated


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
