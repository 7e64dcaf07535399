"""The wheel and the sdist hold what they should, and the wheel works where the checkout is not.

`make package` tries both on several Pythons, with each extra on its own; it takes minutes.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import waits
from pyarrow import parquet

import thresher as th
from thresher.errors import installing

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    waits.run([*command, "-t", "sdist"], cwd=ROOT, check=True)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    waits.run([*command, "-t", "wheel"], cwd=unpacked, check=True)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def sources():
    return {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*")
        if path.is_file() and path.suffix not in {".nbc", ".nbi", ".pyc"}
    }


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == sources()
    assert {"thresher/py.typed", "thresher/report/page.css"} <= names


def test_the_sdist_holds_source_tests_documents_and_licence(built):
    with tarfile.open(built[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {f"src/{name}" for name in sources()} <= names
    assert {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "tests/oracles.py",
        "docs/concepts.md",
    } <= names
    assert not any("/.git" in name or name.startswith((".ci", ".venv")) for name in names)


def test_the_wheel_works_where_the_checkout_is_not(built, tmp_path):
    with zipfile.ZipFile(built[1]) as archive:
        archive.extractall(tmp_path / "installed")  # noqa: S202
    program = (
        "import thresher as th; print(th.__file__);"
        "print(th.tknn_shapley([[0.0], [3.0]], ['a', 'b'], [[0.1]], ['a'], radius=1, metric='euclidean').values)"
    )
    paths = [str(tmp_path / "installed"), sysconfig.get_paths()["purelib"]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for arguments in (["-c", program], ["-m", "thresher", "value", "--help"]):
        done = waits.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        if arguments[0] == "-c":
            where, values = done.stdout.splitlines()
            assert where.startswith(str(tmp_path))
            assert values == "[0.5 0. ]"


NEEDS = "from thresher.errors import require; require('no_such', purpose='a page', extra='report')"


@pytest.mark.parametrize("source", ["wheel", "folder", "editable"])
def test_a_hint_installs_an_extra_from_where_the_library_came_from(built, tmp_path, source):
    wheel = built[1]
    place = tmp_path / "a wheel" / wheel.name if source == "wheel" else tmp_path / "a folder"
    if source == "wheel":
        place.parent.mkdir()
        shutil.copy(wheel, place)
    else:
        with tarfile.open(built[0]) as archive:
            archive.extractall(tmp_path, filter="data")
        (tmp_path / built[0].name.removesuffix(".tar.gz")).rename(place)
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    (here,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (here / "others.pth").write_text(sysconfig.get_paths()["purelib"])  # what it depends on
    quiet = [str(python), "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--quiet"]
    editable = ["-e"] if source == "editable" else []
    environment = {key: entry for key, entry in os.environ.items() if key != "PYTHONPATH"}

    def run(command):
        return waits.run(command, cwd=tmp_path, env=environment)

    done = run([*quiet, *editable, str(place)])
    assert done.returncode == 0, done.stderr
    said = run([str(python), "-c", NEEDS]).stderr.splitlines()[-1]
    start, way_out = said.split(" by pip install ")
    assert start.endswith("ExtraError: a page needs no_such: install the extra 'report'")
    assert shlex.split(way_out) == [*editable, f"{place}[report]"]
    done = run([*quiet, "--dry-run", *shlex.split(way_out)])
    assert done.returncode == 0, done.stderr
    assert "does not provide the extra" not in done.stderr


def test_a_hint_never_names_a_package_that_no_index_has(tmp_path):
    gone = {"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}}
    for unknown in ({}, gone):
        assert installing("report", unknown) == (
            " from the folder or wheel that Thresher came from: by pip install '.[report]' in the "
            "folder, or pip install 'FILE.whl[report]'"
        )
    cloned = {"url": "https://host/it.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    said = installing("private", cloned)
    assert said == " by pip install 'thresher[private] @ git+https://host/it.git@abc'"
    for path in SOURCE.rglob("*.py"):
        for line in path.read_text().splitlines():
            if path.name != "errors.py":  # which makes the sentence
                assert "thresher[" not in line, path
                assert "pip install" not in line.replace("pip install {package}", ""), path


def test_every_extra_is_tried_by_make_package():
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        import check
    finally:
        sys.path.remove(str(ROOT / "packaging"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(check.SMOKE) == {"", *extras}
    assert check.supported(sys.executable) == sys.version_info[:2]


def script(name):
    """A script of the folder `packaging`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_comparison_of_two_commits_finds_a_bit_a_word_and_a_field(tmp_path, monkeypatch):
    """What `make same` compares: planted changes are found, and nothing else is."""
    monkeypatch.chdir(tmp_path)
    same, worker = script("same"), script("same_worker")

    def ran(number=0.1, word="radius", field="rank"):
        def refuse():
            raise th.InputError(f"{word} must be positive")

        def write():
            path = tmp_path / "v.parquet"
            parquet.write_table(pa.table({"row": [0], field: [1]}), path)
            return path

        functions = {"value": lambda: np.array([1.0, number]), "refusal": refuse, "file": write}
        return {name: worker.run(function) for name, function in functions.items()}

    old = ran()
    assert same.differences(old, ran()) == {}
    assert {*same.differences(old, ran(number=np.nextafter(0.1, 1)))} == {"value"}
    assert {*same.differences(old, ran(word="reach"))} == {"refusal"}
    assert {*same.differences(old, ran(field="place"))} == {"file"}
    assert {*same.differences(old, old | {"new": []})} == {"new"}
    assert {*same.differences(old | {"gone": []}, old)} == {"gone"}


def test_a_comparison_leaves_out_only_what_varies():
    same = script("same")
    wanted = same.template(["token 1a of 3 rows", "end"], ["token 2b of 3 rows", "end"])
    assert same.difference(wanted, ["token 3c of 3 rows", "end"]) is None
    assert same.difference(wanted, ["token 3c of 4 rows", "end"])[0] == 0
    assert same.difference(wanted, ["token 3c of 3 rows", "End"])[0] == 1
    assert same.difference(wanted, ["token 3c of 3 rows"])[0] == 1
    assert same.template(["one"], ["one", "two"]) is None
    assert same.differences({"varies": None}, {"varies": ["one"]}) == {}


def test_a_comparison_has_hundreds_of_cases_with_a_name_each():
    command = [sys.executable, ROOT / "packaging" / "same.py", "--list"]
    for part, least in (("library", 600), ("command", 300), ("releases", 40)):
        names = waits.run([*command, "--only", part], check=True).stdout.splitlines()
        assert len({*names}) == len(names) > least
        assert all(name.startswith(f"{part}: ") for name in names)
