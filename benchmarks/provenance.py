"""On what machine, by what version and when figures were measured: every page of results says it.

As a program, it counts the files of the library whose code has changed since each page was
measured. `--files` names them.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import re
import subprocess
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parent.parent
CPU = Path("/proc/cpuinfo")
FAMILIES = {"25": " (Zen 3 or 4)", "26": " (Zen 5)"}  # what an EPYC in the cloud says of itself
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "thresher")


def machine():
    """The processor and its cores, the versions of what is measured, the commit, and the date."""
    told = dict(re.findall(r"^(model name|cpu family)\s*: (.*)$", CPU.read_text(), re.MULTILINE))
    processor = told.get("model name") or platform.processor()
    family = FAMILIES.get(told.get("cpu family"), "")
    return {
        "processor": processor + family,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "commit": (git("rev-parse", "--short", "HEAD") or "").strip(),
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


class _Code(ast.NodeTransformer):
    """Leave out of a syntax tree what only people read: docstrings, and the text of strings."""

    def visit_Expr(self, node):
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else self.generic_visit(node)

    def visit_Constant(self, node):
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node):
        values = [each for each in node.values if not isinstance(each, ast.Constant)]
        return ast.JoinedStr([self.visit(each) for each in values])


@cache
def code(name, text):
    """What a file does; comments, docstrings and the text of strings make no difference.

    >>> code("a.py", 'def f(x):\\n    "Twice."\\n    return 2 * x, "a"') == code(
    ...     "a.py", 'def f(x):  # double\\n    return 2 * x, "b"')
    True
    """
    return ast.dump(_Code().visit(ast.parse(text))) if name.endswith(".py") else text


def git(*words, root=ROOT):
    """What git prints, or None if it fails."""
    done = subprocess.run(
        ["git", *words], capture_output=True, text=True, encoding="utf-8", check=False, cwd=root
    )
    return None if done.returncode else done.stdout


def changed_since(commit, root=ROOT):
    """Files below src whose code is not what it was at a commit; None if git has no such commit.

    A file that has only moved is unchanged. One that is gone has its old name.
    """
    told = git("diff", "--name-status", "-z", "--find-renames", commit, "--", "src", root=root)
    if told is None:
        return None
    words, found = iter(told.split("\0")[:-1]), []
    for status in words:
        old = next(words)
        new = next(words) if status[0] in "RC" else old
        before = "" if status == "A" else git("show", f"{commit}:{old}", root=root)
        after = "" if status == "D" else (root / new).read_text(encoding="utf-8")
        if code(old, before) != code(new, after):
            found.append(new)
    return found


def main():
    """Print one line for each page of results, and with --files what has changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="name the files that changed")
    asked = parser.parse_args()
    changed = cache(changed_since)
    for page, commit in commits().items():
        files = changed(commit)
        if files is None:
            print(f"{page}: commit {commit} is not in this repository, so measure the page again")
            continue
        print(f"{page}: since commit {commit}, the code of {len(files)} files changed")
        if asked.files:
            print("".join(f"  {name}\n" for name in files), end="")


if __name__ == "__main__":
    main()
