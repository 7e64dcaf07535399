"""The wheel and the sdist hold what they should, and the wheel works where the checkout is not.

`make package` tries both on several Pythons, with each extra on its own; it takes minutes.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import waits

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
