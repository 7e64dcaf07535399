from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import waits
from browsers import start
from hypothesis import HealthCheck, settings

settings.register_profile(
    "thresher",
    deadline=None,  # the first call compiles
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("thresher")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every process that tests start compiles


@pytest.fixture(scope="module")
def browser(folder):
    """A browser for the tests of a module, with a fixture `folder` that it downloads to."""
    driver = start(folder)
    yield driver
    driver.quit()


@pytest.fixture
def rng():
    return np.random.default_rng(20231210)


@pytest.fixture
def run_command():
    """A function that runs the command `thresher` in a process of its own."""

    def run(*arguments, cwd=None):
        command = [sys.executable, "-m", "thresher", *arguments]
        return waits.run(command, cwd=cwd)

    return run


@pytest.fixture
def dataset():
    """A function that loads a data set of the paper, or skips the test where it is absent."""
    folder = os.environ.get("THRESHER_DATA")

    def load(name):
        if not folder or not (Path(folder) / f"{name}.npz").is_file():
            pytest.skip(f"set THRESHER_DATA to a folder that holds {name}.npz")
        with np.load(Path(folder) / f"{name}.npz") as stored:
            return {key: stored[key] for key in stored.files}

    return load


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of 256 rows, so that small data have many."""
    monkeypatch.setattr("thresher.passes.memory.LARGEST", 1)


@pytest.fixture
def public(rng):
    """A validation set of three classes, on a grid."""
    from stores import validation

    return validation(rng)


@pytest.fixture
def fast_path():
    """A folder in memory, where there is one: for tests that write thousands of files."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
