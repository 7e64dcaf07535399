"""On what machine, by what version and when figures were measured: every page of results says it.

As a program, it lists what has changed in the library since each page was measured.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
CPU = Path("/proc/cpuinfo")
FAMILIES = {"25": " (Zen 3 or 4)", "26": " (Zen 5)"}  # what an EPYC in the cloud says of itself
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "thresher")


def machine():
    """The processor and its cores, the versions of what is measured, the commit, and the date."""
    told = dict(re.findall(r"^(model name|cpu family)\s*: (.*)$", CPU.read_text(), re.MULTILINE))
    processor = told.get("model name") or platform.processor()
    family = FAMILIES.get(told.get("cpu family"), "")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
    ).stdout.strip()  # fmt: skip
    return {
        "processor": processor + family,
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
    title, _, rest = page.partition("\n")
    line = measured(f"{name.replace('-', '_')}.py", about)
    RESULTS.joinpath(f"{name}.md").write_text(f"{title}\n\n{line}\n{rest}")


def commits():
    """The commit at which each page of results was measured."""
    pages = sorted(RESULTS.glob("*.md"))
    return {page.name: re.search(r"commit (\w+)", page.read_text())[1] for page in pages}


def changed_since(commit):
    """Files of the library that have changed since a commit."""
    asked = ["git", "diff", "--name-only", commit, "--", "src"]
    root = Path(__file__).parent.parent
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=root)
    return done.stdout.splitlines()


if __name__ == "__main__":
    for name, commit in commits().items():
        files = changed_since(commit)
        print(f"{name}: commit {commit}, since then {len(files)} files of the library changed")
