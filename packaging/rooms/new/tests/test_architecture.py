"""The house: rooms in one order, doors, wings that come off. All of it is read from the code."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest
import waits

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "thresher"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CORE, WINGS = (re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) for part in PAGE.split("| wing |"))
ROOMS = [*CORE, *WINGS]
FILES = {
    ".".join(("thresher", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in sorted(SOURCE.rglob("*.py"))
}
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def room(module):
    """The room of a module, or "" for the root."""
    first = [*module.split("."), ""][1]
    return first if (SOURCE / first).is_dir() else ""


def imports(path):
    """Every module of ours that a file imports: also late, and for types alone."""
    package = ".".join(("thresher", *path.parent.relative_to(SOURCE).parts)) if path in INSIDE else ""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join((*above, *([node.module] if node.module else []))) if node.level else node.module
            for alias in node.names if start.split(".")[0] == "thresher" else ():
                inner = f"{start}.{alias.name}"
                yield inner if inner in FILES else start
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "thresher")


INSIDE = set(FILES.values())


def test_every_folder_is_a_room_and_every_room_is_a_folder():
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert folders == set(ROOMS)


def test_a_room_imports_only_earlier_rooms():
    for module, path in FILES.items():
        for target in imports(path) if room(module) else ():
            if room(target):
                assert ROOMS.index(room(target)) <= ROOMS.index(room(module)), (module, target)


def test_nobody_reaches_past_a_door():
    for module, path in FILES.items():
        for target in imports(path):
            if room(target) and room(target) != room(module):
                assert target.count(".") == 1, (module, target)


def test_tests_look_inside_their_own_room_only():
    for path in TESTS:
        own = path.relative_to(ROOT / "tests").parts[0]
        for target in imports(path):
            if room(target) and room(target) != own:
                assert target.count(".") == 1 or (path.name, target) in EXCEPTIONS, (path, target)


EXCEPTIONS = {  # tests that replace a part of another room's module
    ("test_federate_noise.py", "thresher.privacy.tabled_noise"),
    ("test_regression.py", "thresher.walk.checkpoint"),
    ("test_streamed_runs.py", "thresher.walk.checkpoint"),
}


def test_no_module_imports_itself_in_a_circle():
    below = {
        name: set(imports(path)) & set(FILES) - {name}
        for name, path in FILES.items()
        if path.name != "__init__.py"
    }
    below = {name: {each for each in names if each in below} for name, names in below.items()}
    while leaves := {name for name, names in below.items() if not names}:
        below = {name: names - leaves for name, names in below.items() if name not in leaves}
    assert not below


def halves(name):
    """What a door says to type checkers, and what it says to Python."""
    tree = ast.parse((SOURCE / name / "__init__.py").read_text(encoding="utf-8"))
    (switch,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {}
    for node in switch.body:
        for alias in node.names:
            assert alias.asname == alias.name, alias.name  # else it is not exported
            typed[alias.name] = "." * node.level + (node.module or "")
    (call,) = (node for node in ast.walk(switch) if isinstance(node, ast.Call))
    homes = ast.literal_eval(call.args[1])
    return typed, {each: home for home, names in homes.items() for each in names.split()}


@pytest.mark.parametrize("name", ROOMS)
def test_both_halves_of_a_door_are_the_same(name):
    typed, runtime = halves(name)
    assert typed == runtime
    door = importlib.import_module(f"thresher.{name}")
    assert door.__all__ == sorted(runtime)
    for each in door.__all__:
        getattr(door, each)
    files = {path.stem for path in (SOURCE / name).iterdir()}
    assert not files & set(runtime)  # the file would shadow the name


def test_kernels_call_kernels_of_their_own_file_only():
    """Numba's cache of a kernel outlives changes of other files; names of types do not matter."""
    for module, path in FILES.items():
        if room(module) == "kernels" and path.name != "__init__.py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module.startswith("thresher"):
                    assert node.module == "thresher.base", path
                    assert all(alias.name[0].isupper() for alias in node.names), path


def test_the_rest_works_without_the_wings(tmp_path):
    """Import, value a table with a report, and be told what is missing."""
    rest = tmp_path / "thresher"
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, rest, ignore=skipped)
    for wing in WINGS:
        shutil.rmtree(rest / wing)
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{i % 7 + 10 * (i % 2)},{'ab'[i % 2]}\n" for i in range(60)))
    command = [sys.executable, "-m", "thresher", "value", str(table), "--report", "r.html"]
    done = waits.run([*command, "--out", "v.csv"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.html").stat().st_size > 10_000
    code = (
        "import thresher as th; from thresher import *\n"
        "assert th.__file__.startswith(__import__('os').getcwd()), th.__file__\n"
        "try: th.Ledger\nexcept th.ExtraError as missing: print(missing)"
    )
    done = waits.run([sys.executable, "-c", code], cwd=tmp_path)
    assert "privacy" in done.stdout, done.stderr
