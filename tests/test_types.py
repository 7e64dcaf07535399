"""The types that users see: a program of theirs passes `mypy --strict` without an ignore."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import dask.array as da
import pytest
import user_program

from thresher import errors

PROGRAM = Path(user_program.__file__)
SOURCE = PROGRAM.parent.parent / "src"


def problems(program, folder, monkeypatch):
    """What mypy says of a program, and not of the library that it imports."""
    api = pytest.importorskip("mypy.api")
    monkeypatch.setenv("MYPYPATH", str(SOURCE))
    words = ["--strict", "--follow-imports=silent", f"--cache-dir={folder}", "--config-file="]
    return api.run([*words, str(program)])


def test_a_program_of_a_user_passes_strict_type_checks(tmp_path, monkeypatch):
    assert "# type:" not in PROGRAM.read_text(encoding="utf-8")
    printed, failed, code = problems(PROGRAM, tmp_path, monkeypatch)
    assert not code, printed + failed
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import thresher\n\nprint(thresher.tknn_shapley([[1.0]], [1], k=5))\n")
    assert "call-overload" in problems(wrong, tmp_path, monkeypatch)[0]


@pytest.mark.filterwarnings("default")
def test_the_same_program_runs(tmp_path, capsys):
    points = da.from_array(user_program.rows(0, 40)[0], chunks=(20, 3))
    user_program.main(tmp_path, points)
    assert "9 labels are wrong" in capsys.readouterr().out


def test_the_package_says_that_it_has_types():
    assert files("thresher").joinpath("py.typed").is_file()


LAZY = [
    path
    for path in sorted((SOURCE / "thresher").rglob("__init__.py"))
    if "lazy_names" in path.read_text()
]


def test_a_misspelled_name_is_an_error_for_a_type_checker(tmp_path, monkeypatch):
    packages = [".".join(path.parent.relative_to(SOURCE).parts) for path in LAZY]
    assert packages == ["thresher", "thresher.federate", "thresher.privacy"]
    program = tmp_path / "misspelled.py"
    wrong = [f"from {package} import misspelled as x{at}" for at, package in enumerate(packages)]
    used = ["import thresher as th", "print(th.tknn_shaply, th.federate.Silos, th.Valuations)"]
    right = ["from thresher import federate, knn_shapley", "print(federate.Silo, knn_shapley)"]
    program.write_text("\n".join([*wrong, *used, *right]))
    printed = problems(program, tmp_path / "cache", monkeypatch)[0]
    found = [line for line in printed.splitlines() if "attr-defined" in line]
    assert len(found) == len(wrong) + 3, printed
    assert f"Found {len(found)} errors" in printed, printed


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_what_a_type_checker_sees_is_what_there_is(path):
    """Names of a package come from the same modules for a type checker and at run time."""
    package = import_module(".".join(path.parent.relative_to(SOURCE).parts))
    blocks = [
        node for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]  # fmt: skip
    seen = {
        alias.name: node.module
        for node in blocks[0].body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("thresher")
        for alias in node.names
    }
    eager = {name for name in package.__all__ if name not in seen}
    assert all(hasattr(errors, name) for name in eager)
    for name, home in seen.items():
        assert getattr(package, name) is getattr(import_module(home), name), name
    homes = vars(package).get("_LATER") or {
        name for names in package._HOMES.values() for name in names.split()
    }
    assert set(homes) == set(seen) - {"federate"}
    assert set(package.__all__) - eager == set(homes)
    with pytest.raises(AttributeError, match="no attribute 'misspelled'"):
        _ = package.misspelled
