"""On what machine, by what version and when figures were measured: every page of results says it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "thresher")


def machine():
    """The processor and its cores, the versions of what is measured, the commit, and the date."""
    models = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
    ).stdout.strip()  # fmt: skip
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "commit": commit,
        "date": time.strftime("%Y-%m-%d"),
    }


def measured(script, about):
    """The line below the title of a page.

    >>> about = {"processor": "EPYC", "cores": 2, "python": "3.11", "commit": "abc", "date": "today"}
    >>> measured("live.py", about | {"versions": {"thresher": "0.2"}})
    'Measured by `benchmarks/live.py`: EPYC, 2 cores, Python 3.11, thresher 0.2, commit abc, today.'
    """
    packages = about["versions"].items()
    named = ", ".join(f"{name} {number}" for name, number in packages if name == "thresher")
    return (
        f"Measured by `benchmarks/{script}`: {about['processor']}, {about['cores']} cores, "
        f"Python {about['python']}, {named}, commit {about['commit']}, {about['date']}."
    )


def store(name, result, page):
    """Write results/NAME.json, and results/NAME.md with a line on how it was measured.

    A result that has been stored before may hold what `machine` said then.
    """
    about = result.setdefault("machine", machine())
    RESULTS.joinpath(f"{name}.json").write_text(json.dumps(result, indent=1, default=float) + "\n")
    store_page(name, page, about)


def store_page(name, page, about=None):
    """Write results/NAME.md alone."""
    title, _, rest = page.partition("\n")
    line = measured(f"{name.replace('-', '_')}.py", about or machine())
    RESULTS.joinpath(f"{name}.md").write_text(f"{title}\n\n{line}\n{rest}")
