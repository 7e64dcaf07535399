"""The wheel and the sdist hold what they should, and the wheel works where the checkout is not.

`make package` tries both on several Pythons, with each extra on its own; it takes minutes.
"""

from __future__ import annotations

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

import pytest
import waits

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
