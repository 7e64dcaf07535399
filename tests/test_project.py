"""The project about itself: layers, public names, documents, tests that can fail."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import thresher as th

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "thresher"
TESTS = sorted((ROOT / "tests").glob("test_*.py"))

LAYERS = [
    {"errors", "kernels", "progress"},
    {"checks", "files", "threads"},
    {"labels", "metrics", "valuation", "prices"},
    {"space"},
    {"tree"},
    {"costs", "near"},
    {"neighbors"},
    {"inputs"},
    {"tiles", "truncation"},
    {"panels", "price_list", "closest", "order", "threshold", "classifier", "radius", "corrupt"},
    {"counts", "nearest"},
    {"findings"},
    {"demo", "embed", "live", "privacy", "retrain"},
    {"attack", "report", "tables"},
    {"engines"},
    {"paper", "plots", "runs"},
    {"cli"},
    {"__init__", "__main__"},
]
INNER_LAYERS = {
    "privacy": [
        {"accountants", "chain", "noise", "points"},
        {"cap", "contributions"},
        {"design", "ledger", "prior"},
        {"bounds"},
        {"cells", "paper", "table"},
        {"mechanisms", "outcome"},
        {"release"},
        {"knn", "plan"},
        {"__init__"},
    ],
    "attack": [
        {"roc", "targets", "curves", "verdict"},
        {"bounds", "membership"},
        {"sampled", "plots"},
        {"canaries"},
        {"audit"},
        {"__init__"},
    ],
    "live": [
        {"points"},
        {"journal", "values"},
        {"folder"},
        {"replay"},
        {"store"},
        {"__init__"},
    ],
    "retrain": [
        {"coalitions", "moments"},
        {"utility"},
        {"journal", "logistic", "plans"},
        {"engine"},
        {"valuing"},
        {"methods"},
        {"__init__"},
    ],
    "paper": [
        {"datasets", "printed"},
        {"draws"},
        {"cells"},
        {"consistency", "detection", "records"},
        {"ablation", "figures", "grids", "runtime", "tradeoff"},
        {"membership", "neighbor", "pages"},
        {"reproduce"},
        {"__init__"},
    ],
    "tables": [
        {"classes", "finding", "labeled", "moments"},
        {"delimited"},
        {"label_files", "text"},
        {"reading"},
        {"batches", "columns"},
        {"cells", "changes"},
        {"encoding", "holdout", "relabeling"},
        {"cutting"},
        {"writing"},
        {"__init__"},
    ],
    "engines": [
        {"ahead", "awaited", "fitting", "lazy", "memory", "partitions", "parts", "ranks", "resume"},
        {"cluster", "counted", "files", "repeats"},
        {"scan", "stream"},
        {"valuing"},
        {"__init__"},
    ],
    "report": [
        {"charts", "payout", "subject", "words"},
        {"narrow", "reach", "spread", "suggested", "worst"},
        {"doubt", "models", "plane", "private"},
        {"crosscheck", "removal"},
        {"cautions", "figures", "verdict"},
        {"evidence"},
        {"gathering", "tables", "told"},
        {"render"},
        {"__init__"},
    ],
    "runs": [
        {"settings"},
        {"hints", "methods", "sources"},
        {"valued"},
        {"opened", "results"},
        {"appraisal", "gathered"},
        {"streamed"},
        {"clustered"},
        {"__init__"},
    ],
    "cli": [
        {"words"},
        {"valuing"},
        {"appraise", "attack", "clean", "demo", "embed", "ledger", "release", "reproduce", "value"},
        {"__init__"},
    ],
}


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield path, parts[0]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def levels(layers):
    return {name: i for i, names in enumerate(layers) for name in names}


def test_a_module_imports_only_from_layers_below():
    level = levels(LAYERS)
    inner = {package: levels(layers) for package, layers in INNER_LAYERS.items()}
    for path, module in modules():
        for name in imports(path):
            _, *target = name.split(".")
            if not name.startswith("thresher."):
                continue
            if module == target[0] and module in inner:
                below = inner[module]
                assert below[target[1]] < below[path.stem], f"{path.name} imports {name}"
            else:
                assert level[target[0]] < level[module], f"{path.name} imports {name}"


def test_kernels_call_kernels_of_their_own_file_only():
    """Numba's cache of a kernel outlives changes of other files."""
    for path, module in modules():
        if module == "kernels":
            assert not any(name.startswith("thresher") for name in imports(path)), path


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


def test_importing_loads_nothing_slow():
    code = "import sys, thresher; print([m for m in sys.argv[1:] if m in sys.modules])"
    slow = ["sklearn", "pandas", "polars", "pyarrow", "scipy.special", "tqdm", "narwhals"]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *slow], capture_output=True, text=True, check=True
    )
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


def test_every_public_name_is_documented():
    reference = (ROOT / "docs" / "reference.md").read_text()
    for name in th.__all__:
        assert f"`{name}" in reference, name
        assert getattr(th, name).__doc__, name


def test_every_target_of_the_makefile_is_in_the_readme_or_contributing():
    makefile = (ROOT / "Makefile").read_text()
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    for target in re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE):
        if target not in {"help", "setup", "clean"}:
            assert f"make {target}" in text, target


def test_the_lock_holds_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = list(project["project"]["dependencies"])
    for group in project["dependency-groups"].values():
        wanted += group
    lock = (ROOT / "requirements.lock").read_text()
    for requirement in wanted:
        name = re.match(r"[A-Za-z0-9-]+", requirement)[0].lower()
        assert re.search(rf"^{name}==", lock, re.MULTILINE), name
    assert "http" not in lock


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
