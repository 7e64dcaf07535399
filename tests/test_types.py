"""The types that users see: a program of theirs passes `mypy --strict` without an ignore."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import dask.array as da
import pytest
import user_program

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
