"""The project about itself: layers, public names, documents, tests that can fail."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path
from types import FunctionType

import pytest
import waits

import thresher as th

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "thresher"
TESTS = sorted((ROOT / "tests").glob("test_*.py"))

LAYERS = {
    "bottom": {"array_types", "drafts", "errors", "hooks", "kernels", "lazy_names", "progress", "version"},
    "inputs": {"files", "inputs", "keeper", "metrics", "ranking", "threads"},
    "mathematics": {"games", "neighbors"},
    "valuation": {
        "classifier", "corrupt", "counts", "forest", "growth", "knn", "live", "owner_valuation", "owners",
        "passes", "price_list", "privacy", "radius", "regression", "retrain", "sides", "tknn",
        "valuation",
    },
    "findings": {
        "attack", "embed", "federate", "findings", "paper", "payouts", "plots", "report", "tables",
    },
    "face": {"__init__", "__main__", "cli", "market", "runs"},
}  # fmt: skip
LEVELS = {module: level for level, names in enumerate(LAYERS.values()) for module in names}


def name_of(path):
    return ".".join(("thresher", *path.relative_to(SOURCE).with_suffix("").parts))


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, path.relative_to(SOURCE).with_suffix("").parts[0]


NAMES = {name_of(path).removesuffix(".__init__"): path for path, _ in modules()}


def imports(path):
    """Every module that a file imports: also late, and by name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in NAMES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (entry.value for entry in node.args if isinstance(entry, ast.Constant))


def test_a_module_imports_only_from_its_own_layer_or_below():
    for path, module in modules():
        for name in imports(path):
            if name.split(".")[0] == "thresher":
                target = [*name.split("."), "__init__"][1]
                assert LEVELS[target] <= LEVELS[module], f"{path.name} imports {name}"


def test_no_module_imports_itself_in_a_circle():
    below = {name: set(imports(path)) & set(NAMES) - {name} for name, path in NAMES.items()}
    below["thresher"] = set()  # the face, which imports everything
    while leaves := {name for name, names in below.items() if not names}:
        below = {name: names - leaves for name, names in below.items() if name not in leaves}
    assert not below


def test_kernels_call_kernels_of_their_own_file_only():
    """Numba's cache of a kernel outlives changes of other files; names of types do not matter."""
    for path, module in modules():
        if module == "kernels":
            theirs = {name for name in imports(path) if name.startswith("thresher")}
            assert theirs <= {"thresher.array_types"}, path


def test_only_the_walk_goes_over_near_pairs():
    """Whoever else asks for blocks of near pairs would be another walk to keep up."""
    for path, module in modules():
        calls = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
        ]
        called = {re.sub(r".*\.", ".", ast.unparse(node.func)) for node in calls}
        if module not in {"neighbors", "kernels"}:
            assert not called & {"near_blocks", "tree_blocks"}, path
            keeps = path.name in {
                "walk.py",
                "contributions.py",
            }  # the second keeps what it was given
            assert keeps or ".blocks" not in called, path


def test_messages_below_the_command_name_arguments_not_options():
    """They do so by `option`; in docstrings, a whole command line is no message."""
    found = []
    for path, package in modules():
        if package in {"cli", "errors", "report"}:  # a page is for readers of both
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                said = re.sub(r"(thresher [a-z]+|\.py)\b[^`]* --[a-z]", "", node.value)
                found += [(path.name, node.lineno)] * bool(re.search(r"(?<![\w-])--[a-z]", said))
    assert not found


def test_numba_is_used_in_kernels_only():
    for path, module in modules():
        if module != "kernels":
            assert not any(name.split(".")[0] == "numba" for name in imports(path)), path


def test_public_names_are_sorted_importable_and_complete():
    assert th.__all__ == sorted(th.__all__)
    for name in th.__all__:
        assert getattr(th, name).__module__.startswith("thresher")
    public = {name for name in vars(th) if not name.startswith("_")}
    public -= {path.stem for path in SOURCE.iterdir()} | {
        "annotations",
        "TYPE_CHECKING",
        "Any",
        "import_module",
    }
    assert public <= set(th.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        th.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        ("thresher", "sklearn pandas polars pyarrow scipy.special tqdm narwhals"),
        ("thresher.cli", "numpy numba pyarrow scipy thresher.files thresher.tables"),
        ("thresher.runs.memory_run", "sklearn pandas scipy.special thresher.knn thresher.forest"
         " thresher.regression thresher.runs.problems thresher.sides.stored"),
    ],
)  # fmt: skip
def test_importing_loads_nothing_slow(module, slow):
    code = f"import sys, {module}; print([m for m in sys.argv[1:] if m in sys.modules])"
    done = waits.run([sys.executable, "-c", code, *slow.split()], check=True)
    assert done.stdout.strip() == "[]"


def test_errors_are_of_one_tree():
    assert issubclass(th.InputError, th.ThresherError)
    assert issubclass(th.InputError, ValueError)
    assert issubclass(th.ExtraError, th.ThresherError)
    assert issubclass(th.ExtraError, ImportError)
    assert issubclass(th.BudgetError, th.ThresherError)


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {th.__version__}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{th.__version__}]" in changelog or "## [Unreleased]" in changelog


def entries():
    """The names in docs/api.md, by module: Sphinx makes the reference from their docstrings."""
    found, module = {}, None
    for line in (ROOT / "docs" / "api.md").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split(":: ")[1]
        elif re.fullmatch(r"   [\w.]+", line):
            found.setdefault(module, []).append(line.strip())
    return found


def test_the_reference_has_every_public_name_of_every_module():
    listed = entries()
    public = {
        f"thresher.{path.parent.name}"
        for path in SOURCE.glob("*/__init__.py")
        if "__all__ = " in path.read_text()
    }
    reached_from_others = {"thresher.live"}  # LiveCounts
    assert public - reached_from_others <= set(listed)
    assert sorted(listed.pop("thresher")) == th.__all__
    for module, names in listed.items():
        public = getattr(importlib.import_module(module), "__all__", names)
        missing = {name for name in public if name not in names}
        parts = {"Details", "Evidence", "Pictures", "check_target", "report_valuation"}
        exempt = {"thresher.paper": {"EXPERIMENTS"}, "thresher.report": parts}  # no functions
        assert missing <= exempt.get(module, set()), module


def test_every_entry_of_the_reference_has_an_example():
    for module, names in entries().items():
        for name in names:
            inner, _, last = f"{module}.{name}".rpartition(".")
            entry = getattr(importlib.import_module(inner), last)
            assert ">>> " in entry.__doc__, f"{module}.{name}"


def test_every_public_member_and_field_of_a_result_is_described():
    for name in th.__all__:
        entry = getattr(th, name)
        if inspect.isclass(entry):
            text = " ".join(each.__doc__ or "" for each in entry.__mro__[:-1])
            for field in dataclasses.fields(entry) if dataclasses.is_dataclass(entry) else ():
                assert field.name.startswith("_") or re.search(rf"\b{field.name}\b", text), (
                    name, field.name,
                )  # fmt: skip
            for member, thing in vars(entry).items():
                if not member.startswith("_") and isinstance(thing, FunctionType | property):
                    assert thing.__doc__, (name, member)


def test_every_target_of_the_makefile_is_in_the_readme_or_contributing():
    makefile = (ROOT / "Makefile").read_text()
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    for target in re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE):
        if target not in {"help", "setup", "clean"}:
            assert f"make {target}" in text, target


def test_contributing_counts_lines_and_modules():
    """Within a fiftieth, so that not every change has to touch it."""
    lengths = [len(path.read_text().splitlines()) for path, _ in modules()]
    names = [path.name for path, _ in modules() if path.name != "__init__.py"]
    counted = {
        "lines in all modules": [sum(lengths), len(lengths)],
        "lines in a module, on average": [sum(lengths) / len(lengths)],
        "modules directly in `src/thresher`": [len(list(SOURCE.glob("*.py")))],
        "file names that two modules share": [sum(names.count(name) > 1 for name in set(names))],
        "layers": [len(LAYERS)],
    }
    text = (ROOT / "CONTRIBUTING.md").read_text().replace(",", "")
    for row, figures in counted.items():
        shown = re.search(rf"^\| {row.replace(',', '')} \| (.*) \|$", text, re.MULTILINE)[1]
        near = pytest.approx(figures, rel=0.02)
        assert [int(each) for each in re.findall(r"\d+", shown)] == near, row


def test_the_lock_holds_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = list(project["project"]["dependencies"])
    for group in project["dependency-groups"].values():
        wanted += group
    lock = (ROOT / "requirements.lock").read_text()
    for requirement in wanted:
        name = re.match(r"[A-Za-z0-9-]+", requirement)[0].lower()
        assert re.search(rf"^{name}==", lock, re.MULTILINE), name
    assert "://" not in lock


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_no_test_passes_by_forgetting_to_assert(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            text = ast.dump(node)
            checks = ("Assert(", "'raises'", "'warns'", "'assert_", "check_")
            assert any(check in text for check in checks), f"{node.name} asserts nothing"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            assert not called.endswith(("allclose", "array_equal")) or "assert_" in called, called
